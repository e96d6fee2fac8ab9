//! Elements a few apart, either way: what is read together of these ends where the first and the last one do.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Special, array, check, executed, numbers};

use coulis::{Array, DType, Request};

/// Rows of two vectors and a rest, and of a vector's half.
const SHAPES: [[i64; 2]; 2] = [[9, 150], [70, 20]];

/// Every `step`-th element of rows that lie a little further apart than their elements take.
fn apart(dtype: DType, [rows, len]: [i64; 2], step: i64) -> Array {
    let pitch = (len - 1) * step.abs() + 8;
    let n = (rows - 1) * pitch + (len - 1) * step.abs() + 1;
    let all = array(dtype, &[n], &numbers(n as usize, Special::Zeros, 5));
    let first = if step < 0 { (len - 1) * -step } else { 0 };
    all.view(&[rows, len], &[pitch, step], first).unwrap()
}

fn of_all_steps(dtype: DType, ops: &[&str]) {
    for (turn, step) in [-5, -4, -3, -2, -1, 2, 3, 4, 5].into_iter().enumerate() {
        let axes = [[1], [0]][turn / 2 % 2];
        let input = [apart(dtype, SHAPES[turn % 2], step)];
        for request in [Request::new(ops).over(&axes), executed(ops, &axes)] {
            check(&input, &request).unwrap_or_else(|why| panic!("{dtype} {step} apart over {axes:?}: {why}"));
        }
    }
}

#[test]
fn bytes() {
    of_all_steps(DType::I8, &["sum", "argmax"]);
}

#[test]
fn bools() {
    of_all_steps(DType::Bool, &["count_nonzero"]);
}

#[test]
fn floats_of_two_bytes() {
    of_all_steps(DType::F16, &["max"]);
    of_all_steps(DType::BF16, &["sum"]);
}

#[test]
fn floats_of_one_byte() {
    of_all_steps(DType::F8E5M2, &["max"]);
}

#[test]
fn wide_elements() {
    of_all_steps(DType::F32, &["sum"]);
    of_all_steps(DType::I64, &["argmin"]);
}
