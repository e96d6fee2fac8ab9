//! Variances of 16-bit floats whose squared deviations leave `float32`, on plans of the CPU and of the
//! simulator: elements of one magnitude and of several, beside zeros, constants, infinities and NaN.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Special, array, check, executed, numbers};
use coulis::{DType, DeviceChoice, Request};
use coulis_ir::Target;
use coulis_ir::args::ArrayInfo;

/// Powers of two from the least `bfloat16` to the greatest, close to where squares leave `float32` and back.
const POWERS: [i32; 19] =
    [-133, -130, -126, -110, -90, -70, -64, -60, -56, -48, -46, -30, 0, 50, 62, 66, 70, 100, 124];

/// An element by its place, a number in -4 to 4 and a magnitude.
type Made = fn(usize, f64, f64) -> f64;

/// How the elements of a row are made.
const KINDS: [(&str, Made); 8] = [
    ("one magnitude", |_, x, size| x.round() * size),
    ("a third of another magnitude", |i, x, size| if i % 3 == 0 { x.round() * size } else { x }),
    ("zeros but for a few", |i, x, size| if i % 61 == 7 { x.round() * size } else { 0.0 }),
    ("a lane of another magnitude", |i, x, size| if i % 32 == 5 { x.round() * size } else { x }),
    ("constants", |_, _, size| 3.0 * size),
    ("runs about what is far from all others", |i, x, size| {
        if i % 512 < 8 { 0.0 } else { (64.0 + x.round()) / 64.0 * size }
    }),
    ("neighbours", |_, x, size| (128.0 + f64::from(x > 0.0)) / 128.0 * size),
    ("beside an infinity and NaN", |i, x, size| match i {
        300 => f64::INFINITY,
        900 => f64::NAN,
        _ => x.round() * size,
    }),
];

/// What is wrong of the results of requests over rows of each magnitude and kind.
fn wrong_of(shape: [i64; 2], powers: &[i32], requests: &[Request]) -> Vec<String> {
    let mut wrong = Vec::new();
    let n = shape.iter().product::<i64>() as usize;
    for (turn, power) in powers.iter().enumerate() {
        for (kind, made) in KINDS {
            let plain = numbers(n, Special::Zeros, turn as u64);
            let largest = f64::from(f32::MAX) * (1.0 - 1.0 / 256.0);
            let size = 2f64.powi(*power);
            let values = plain.iter().enumerate().map(|(i, x)| {
                let value = made(i, *x, size);
                if value.is_finite() { value.clamp(-largest, largest) } else { value }
            });
            let input = array(DType::BF16, &shape, &values.collect::<Vec<f64>>());
            for request in requests {
                if let Err(why) = check(std::slice::from_ref(&input), request) {
                    let (ops, axes) = (&request.ops, &request.axes);
                    wrong.push(format!("{ops:?} of {kind} of 2^{power} over {axes:?} of {shape:?}: {why}"));
                }
            }
        }
    }
    wrong
}

#[track_caller]
fn assert_none(wrong: &[String]) {
    let first = wrong[..3.min(wrong.len())].join("\n");
    assert!(wrong.is_empty(), "{} wrong, the first of them {first}", wrong.len());
}

#[test]
fn squares_of_every_magnitude_are_summed_within_the_bound() {
    let mut wrong = Vec::new();
    for (shape, axis) in [([8, 512], 1), ([3, 4500], 1), ([3, 200], 1), ([256, 40], 0), ([64, 32], 1)] {
        let ops = ["mean", "var"];
        let mut requests = [Request::new(&ops).over(&[axis]), executed(&ops, &[axis])];
        for request in &mut requests {
            request.out_dtypes.insert(String::new(), DType::F64);
        }
        wrong.extend(wrong_of(shape, &POWERS, &requests));
    }
    assert_none(&wrong);
}

/// Runs of a GPU's plans are walked again for positions too, each for its own reason.
#[test]
fn squares_beside_positions_are_summed_within_the_bound_on_the_simulator() {
    let mut wrong = Vec::new();
    for (shape, axis) in [([2, 512], 1), ([3, 203], 1), ([128, 6], 0)] {
        let simulated = |ops: &[&str]| Request {
            device: DeviceChoice::Sim { warp: 32, orders: 1 },
            ..Request::new(ops).over(&[axis])
        };
        let requests = [simulated(&["var"]), simulated(&["sum", "mean", "var", "min", "max", "argmax"])];
        wrong.extend(wrong_of(shape, &[-133, -64, 0, 124], &requests));
    }
    assert_none(&wrong);
}

#[test]
fn lanes_ask_together_whether_their_run_is_to_be_walked_again() {
    let info = ArrayInfo { dtype: DType::BF16, shape: vec![1 << 15, 4096], strides: vec![4096, 1] };
    let request = Request::new(&["mean", "var"]).over(&[1]);
    let info = [info];
    let (_, machine) = coulis::reduce::kernel(&info, &request).unwrap();
    // Machines that read several pages faster side by side walk such rows in another order.
    let target = Target { pages: 1, ..machine };
    let kernel = coulis::reduce::kernel_for(&info, &request, &target).unwrap();
    if target.vector_bytes < 32 || !target.vectors_are_registers {
        println!("SKIP lanes_ask_together: vectors of {} bytes", target.vector_bytes);
        return;
    }
    let text = coulis_ir::print::print_kernel(&kernel);
    let last = format!("| asked[T.int64({})] !=", 7);
    assert!(text.contains("if asked[T.int64(0)] | asked[T.int64(1)]") && text.contains(&last), "{text}");
    // Four chains of 16 steps about one pivot, of as many lanes as a register has.
    if target.register_bytes == 512 {
        let apart = text.lines().filter(|l| l.contains("_run = T.allocate([T.int64(4), T.int64(8)]")).count();
        assert_eq!((apart, text.contains("for k0_outer in range(T.int64(8))")), (2, true), "{text}");
    }
    // A run of so many steps counts nothing: it has a sum, a pivot and squares.
    let kept =
        ["v0", "v1", "v2", "v3", "v4"].map(|field| text.contains(&format!("_{field}_run = T.allocate")));
    assert_eq!(kept.iter().filter(|kept| **kept).count(), 3, "{text}");
}
