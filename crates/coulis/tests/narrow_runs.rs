//! Sums of `float32` on CPUs run in `float32`: elements whose runs leave its range where their sum does not,
//! beside infinities, NaN and subnormal numbers, on every way to run.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Special, array, check, executed, numbers};
use coulis::{DType, Request};
use coulis_ir::args::ArrayInfo;

/// An element by its place and a number in -4 to 4.
type Made = fn(usize, f64) -> f64;

const GREATEST: f64 = f32::MAX as f64;

/// How the elements are made.
const KINDS: [(&str, Made); 7] = [
    ("the greatest of both signs", |_, x| GREATEST.copysign(x)),
    (
        "the greatest, then as many of the other sign",
        |i, _| if i / 96 % 2 == 0 { GREATEST } else { -GREATEST },
    ),
    ("a few of the greatest", |i, x| if i % 61 < 3 { GREATEST } else { x }),
    ("halves of the greatest in one lane", |i, x| if i % 16 == 5 { GREATEST / 2.0 } else { x }),
    ("an infinity", |i, x| if i == 40 { f64::INFINITY } else { x }),
    ("infinities of both signs and NaN", |i, x| match i {
        7 => f64::INFINITY,
        90 => f64::NEG_INFINITY,
        130 => f64::NAN,
        _ => x,
    }),
    ("subnormal numbers", |_, x| x.round() * 2f64.powi(-149)),
];

#[test]
fn sums_are_right_where_runs_leave_float32() {
    let shapes: [(&[i64], &[i64]); 10] = [
        (&[4096], &[0]),
        (&[100_003], &[0]),
        (&[64, 1024], &[1]),
        (&[24, 517], &[1]),
        (&[256, 16], &[1]),
        (&[256, 40], &[0]),
        (&[300, 64], &[0]),
        (&[129, 7], &[0]),
        (&[3, 200, 64], &[1]),
        (&[4, 66, 5, 32], &[0, 3]),
    ];
    let mut wrong = Vec::new();
    for (shape, axes) in shapes {
        let n = shape.iter().product::<i64>() as usize;
        for (turn, (kind, made)) in KINDS.iter().enumerate() {
            let plain = numbers(n, Special::Zeros, turn as u64);
            let values: Vec<f64> = plain.iter().enumerate().map(|(i, x)| made(i, *x)).collect();
            let input = array(DType::F32, shape, &values);
            // One is much like the other.
            let ops = if n == 64 * 1024 { &["sum", "mean", "norm1"][..] } else { &["sum"] };
            for &op in ops {
                for mut request in [Request::new(&[op]).over(axes), executed(&[op], axes)] {
                    request.out_dtypes.insert(String::new(), DType::F64);
                    if let Err(why) = check(std::slice::from_ref(&input), &request) {
                        wrong.push(format!("{op} of {kind} over {axes:?} of {shape:?}: {why}"));
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

/// Whether the kernel of these statistics keeps runs of a type, and whether it asks for spoilt states.
#[track_caller]
fn check_runs(ops: &[&str], dtype: DType, wanted: [bool; 2]) {
    let info = ArrayInfo { dtype, shape: vec![4096, 512], strides: vec![512, 1] };
    let (kernel, target) = coulis::reduce::kernel(&[info], &Request::new(ops).over(&[0])).unwrap();
    if !target.vectors_are_registers {
        println!("SKIP {ops:?}: vectors of {} bytes", target.vector_bytes);
        return;
    }
    let text = coulis_ir::print::print_kernel(&kernel);
    let is_narrow = |line: &str| ["_run", "T.allocate", "\"float32\""].iter().all(|word| line.contains(word));
    let narrow = text.lines().any(is_narrow);
    assert_eq!([narrow, text.contains("asked")], wanted, "{ops:?} of {dtype}: {text}");
}

#[test]
fn a_sum_that_stands_alone_runs_in_float32_and_asks_for_spoilt_states() {
    check_runs(&["sum"], DType::F32, [true, true]);
    check_runs(&["mean"], DType::F32, [true, true]);
    // Runs of 16-bit floats stay in the range.
    check_runs(&["sum"], DType::F16, [true, false]);
    check_runs(&["sum"], DType::BF16, [true, false]);
    // Sums beside other statistics, products and wider elements do not run in `float32`.
    check_runs(&["sum", "var"], DType::F32, [false, false]);
    check_runs(&["sumsq"], DType::F32, [false, false]);
    check_runs(&["sum"], DType::F64, [false, false]);
}
