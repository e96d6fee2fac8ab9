//! Positions of extrema on machines with threads, where elements are equal by the dozen and some are NaN: runs seek the position by a
//! second walk, from their last element to their first, of rows, of columns by several a thread, and of rows in shared memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{array, check};

use coulis::{DType, DeviceChoice, Request};

/// Elements of three values, by a rule that repeats after no power of two; each `nan`-th one is NaN.
fn few_values(n: usize, nan: usize) -> Vec<f64> {
    let value = |i: usize| [1.0, -2.0, 2.0, 2.0, -2.0, 0.0, 1.0][(i * i + i / 7) % 7];
    (0..n).map(|i| if nan > 0 && i % nan == nan - 1 { f64::NAN } else { value(i) }).collect()
}

#[test]
fn the_first_and_the_last_of_equal_ones_are_told_apart_in_every_plan() {
    let shapes: [(&[i64], &[i64]); 6] = [
        (&[2, 700], &[1]),
        (&[5, 133], &[1]),
        (&[260, 17], &[1]),
        (&[150, 64], &[0]),
        (&[180, 33], &[0]),
        (&[2, 70, 24], &[1]),
    ];
    let ops: [&[&str]; 3] = [
        &["argmax"],
        &["argmin", "argmax_last", "logsumexp"],
        &["sum", "mean", "var", "min", "max", "argmax"],
    ];
    let dtypes = [DType::F32, DType::BF16, DType::F16, DType::F64];
    let mut turn = 0;
    for (shape, axes) in shapes {
        for ops in ops {
            let n = shape.iter().product::<i64>() as usize;
            let nan = if turn / 2 % 2 == 0 { 0 } else { 97 };
            let input = [array(dtypes[turn % dtypes.len()], shape, &few_values(n, nan))];
            let device = DeviceChoice::Sim { warp: if turn % 5 == 0 { 64 } else { 32 }, orders: 1 };
            let request = Request { device, ..Request::new(ops).over(axes) };
            check(&input, &request).unwrap_or_else(|why| panic!("{ops:?} of {shape:?}, {nan}: {why}"));
            turn += 1;
        }
    }
}
