//! Products of elements that are near 1 and far from it, in runs of either kind and in both.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{array, check, executed};

use coulis::{DType, Request};

/// Elements of every kind, `far` of them among `n` near 1.
fn numbers(n: usize, far: &[f64]) -> Vec<f64> {
    let near = |i: usize| 1.0 + (i * 37 % 101) as f64 / 64.0 - 0.75;
    let mut all: Vec<f64> = (0..n).map(near).collect();
    for (i, value) in far.iter().enumerate() {
        all[i * 13 % n] = *value;
    }
    all
}

#[track_caller]
fn is_exact(dtype: DType, far: &[f64]) {
    // Rows, columns, columns of a few, and all.
    for (shape, axes) in
        [([3, 299], &[1][..]), ([150, 24], &[0]), ([400, 3], &[0]), ([300, 7], &[1]), ([1, 5000], &[1])]
    {
        let input = [array(dtype, &shape, &numbers((shape[0] * shape[1]) as usize, far))];
        for request in [Request::new(&["prod"]).over(axes), executed(&["prod"], axes)] {
            check(&input, &request).unwrap_or_else(|why| panic!("{dtype} {shape:?} over {axes:?}: {why}"));
        }
    }
}

#[test]
fn of_common_elements() {
    is_exact(DType::F64, &[2.0, -3.0]);
    is_exact(DType::F32, &[-0.5]);
}

#[test]
fn of_large_and_small_ones_that_make_up_for_each_other() {
    let extreme = [1e300, 1e-300, 1e308, 3e-308, 5e-324, 1e-300, 1e300, 1e300, 1e22, 1e-20, 1e15, 1e-15];
    is_exact(DType::F64, &extreme);
    is_exact(DType::F64, &[1e300, 1e300, -1e-300]);
    is_exact(DType::F32, &[1e38, 1e-38, 1e-45, 3e38, 1e30, 1e-30]);
    is_exact(DType::BF16, &[1e38, 1e-38, 1e30, 1e-30]);
}

#[test]
fn of_zeros_and_of_what_is_no_number() {
    is_exact(DType::F64, &[0.0, 1e300, 1e300, -0.0]);
    is_exact(DType::F64, &[f64::INFINITY, 1e-300]);
    is_exact(DType::F32, &[f64::INFINITY, 0.0]);
    is_exact(DType::F32, &[f64::NAN, 1e30]);
    is_exact(DType::F64, &[1e300, f64::NAN, 1e300]);
}
