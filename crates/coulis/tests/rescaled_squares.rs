//! Variances of 16-bit floats whose squared deviations leave `float32`, on every plan of the CPU: elements of one magnitude and
//! of several, beside zeros, constants, infinities and NaN.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Special, array, check, executed, numbers};
use coulis::{DType, Request};
use coulis_ir::args::ArrayInfo;

/// Powers of two from the least `bfloat16` to the greatest, close to where squares leave `float32` and back.
const POWERS: [i32; 19] =
    [-133, -130, -126, -110, -90, -70, -64, -60, -56, -48, -46, -30, 0, 50, 62, 66, 70, 100, 124];

/// An element by its place, a number in -4 to 4 and a magnitude.
type Made = fn(usize, f64, f64) -> f64;

/// How the elements of a row are made.
const KINDS: [(&str, Made); 7] = [
    ("one magnitude", |_, x, size| x.round() * size),
    ("a third of another magnitude", |i, x, size| if i % 3 == 0 { x.round() * size } else { x }),
    ("zeros but for a few", |i, x, size| if i % 61 == 7 { x.round() * size } else { 0.0 }),
    ("a lane of another magnitude", |i, x, size| if i % 32 == 5 { x.round() * size } else { x }),
    ("constants", |_, _, size| 3.0 * size),
    ("neighbours", |_, x, size| (128.0 + f64::from(x > 0.0)) / 128.0 * size),
    ("beside an infinity and NaN", |i, x, size| match i {
        300 => f64::INFINITY,
        900 => f64::NAN,
        _ => x.round() * size,
    }),
];

#[test]
fn squares_of_every_magnitude_are_summed_within_the_bound() {
    let mut wrong = Vec::new();
    for (shape, axis) in [([8, 512], 1), ([3, 200], 1), ([256, 40], 0), ([64, 32], 1)] {
        let ops = ["mean", "var"];
        let mut requests = [Request::new(&ops).over(&[axis]), executed(&ops, &[axis])];
        for request in &mut requests {
            request.out_dtypes.insert(String::new(), DType::F64);
        }
        let n = shape.iter().product::<i64>() as usize;
        for (turn, power) in POWERS.into_iter().enumerate() {
            for (kind, made) in KINDS {
                let plain = numbers(n, Special::Zeros, turn as u64);
                let largest = f64::from(f32::MAX) * (1.0 - 1.0 / 256.0);
                let size = 2f64.powi(power);
                let values = plain.iter().enumerate().map(|(i, x)| {
                    let value = made(i, *x, size);
                    if value.is_finite() { value.clamp(-largest, largest) } else { value }
                });
                let input = array(DType::BF16, &shape, &values.collect::<Vec<f64>>());
                for request in &requests {
                    if let Err(why) = check(std::slice::from_ref(&input), request) {
                        wrong.push(format!("{kind} of 2^{power} over axis {axis} of {shape:?}: {why}"));
                    }
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong, the first of them {}",
        wrong.len(),
        wrong[..3.min(wrong.len())].join("\n")
    );
}

#[test]
fn lanes_ask_together_whether_their_run_is_to_be_walked_again() {
    let info = ArrayInfo { dtype: DType::BF16, shape: vec![1 << 15, 4096], strides: vec![4096, 1] };
    let request = Request::new(&["mean", "var"]).over(&[1]);
    let (kernel, target) = coulis::reduce::kernel(&[info], &request).unwrap();
    if !(32..=256).contains(&target.vector_bytes) {
        println!("SKIP lanes_ask_together: vectors of {} bytes", target.vector_bytes);
        return;
    }
    let text = coulis_ir::print::print_kernel(&kernel);
    assert!(text.contains("if asked[T.int64(0)] | asked[T.int64(1)]"), "{text}");
    // A run of so many steps counts nothing: it has a sum, a pivot and squares.
    let kept =
        ["v0", "v1", "v2", "v3", "v4"].map(|field| text.contains(&format!("_{field}_run = T.allocate")));
    assert_eq!(kept.iter().filter(|kept| **kept).count(), 3, "{text}");
}
