//! A few outputs side by side, and rows of a few elements: all small numbers of them, over types and kinds of
//! statistics, with rests of all kinds, compiled and executed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Special, array, check, executed, numbers};

use coulis::{Array, DType, Request};

/// Statistics whose states differ in width, in what they read, and in how their runs go.
const KINDS: [(DType, &[&str]); 14] = [
    (DType::F16, &["max"]),
    (DType::Bool, &["sum"]),
    (DType::I32, &["sum", "argmax"]),
    (DType::BF16, &["sum", "mean", "var", "min", "max"]),
    (DType::I8, &["sum", "max"]),
    (DType::F16, &["logsumexp"]),
    (DType::F32, &["argmin", "sum"]),
    (DType::Bool, &["all", "count_nonzero"]),
    (DType::F64, &["sum", "argmax_last"]),
    (DType::I16, &["argmax"]),
    (DType::U8, &["max", "norm2"]),
    (DType::BF16, &["argmax"]),
    (DType::F16, &["mean", "var"]),
    (DType::I64, &["sum", "min"]),
];

/// Few outputs or elements: odd numbers, those with factors of two, and powers of two.
const FEW: [i64; 9] = [2, 3, 4, 6, 7, 9, 12, 20, 31];

fn made(dtype: DType, shape: &[i64], seed: u64) -> Array {
    array(dtype, shape, &numbers(shape.iter().product::<i64>() as usize, Special::Nan, seed))
}

#[track_caller]
fn exact(input: &Array, ops: &[&str], axes: &[i64]) {
    for request in [Request::new(ops).over(axes), executed(ops, axes)] {
        check(std::slice::from_ref(input), &request).unwrap_or_else(|why| {
            panic!("{ops:?} of {} {:?} over {axes:?}: {why}", input.dtype(), input.shape())
        });
    }
}

#[test]
fn a_few_outputs_side_by_side() {
    for (turn, few) in FEW.into_iter().enumerate() {
        for part in 0..KINDS.len() / 5 {
            let (dtype, ops) = KINDS[(5 * part + turn) % KINDS.len()];
            // Fewer steps than a wide one has, some of them with a rest, and many.
            let steps = [9, 100, 1003][(turn + part) % 3];
            exact(&made(dtype, &[steps, few], turn as u64), ops, &[0]);
        }
    }
}

#[test]
fn outputs_side_by_side_that_are_no_whole_vectors() {
    // More than a vector and a rest: wide steps of several rows, where there are many, and tiles that overlap.
    for (turn, width) in [33, 47, 71, 100, 127].into_iter().enumerate() {
        for part in 0..KINDS.len() / 5 {
            let (dtype, ops) = KINDS[(5 * part + turn) % KINDS.len()];
            exact(&made(dtype, &[1003, width], turn as u64), ops, &[0]);
            exact(&made(dtype, &[19, 40, width], turn as u64), ops, &[1]);
        }
    }
}

#[test]
fn a_few_outputs_side_by_side_in_parts_and_of_several_arrays() {
    for (turn, (dtype, ops)) in KINDS.into_iter().enumerate() {
        exact(&made(dtype, &[100_003, 7], turn as u64), ops, &[0]);
        if turn % 2 == 0 {
            exact(&made(dtype, &[5, 517, 3], turn as u64), ops, &[1]);
        } else {
            exact(&made(dtype, &[3, 40, 2, 6], turn as u64), ops, &[0, 2]);
        }
    }
}

#[test]
fn rows_of_a_few_elements() {
    for (turn, few) in FEW.into_iter().enumerate() {
        for part in 0..KINDS.len() / 5 {
            let (dtype, ops) = KINDS[(5 * part + turn) % KINDS.len()];
            let rows = [64, 67, 1003][(turn + part) % 3];
            exact(&made(dtype, &[rows, few], turn as u64), ops, &[1]);
        }
    }
}

#[test]
fn positions_in_rows_of_bytes_that_come_into_lanes_by_tiles() {
    // Rests behind whole tiles and without, as many tiles as make up runs and a prime number of them; fewer rows than a vector has lanes.
    let kinds: [(DType, &[&str]); 4] = [
        (DType::Bool, &["argmax"]),
        (DType::U8, &["max", "argmin_last"]),
        (DType::I8, &["argmax", "argmin"]),
        (DType::I16, &["argmax"]),
    ];
    for (turn, extent) in [65, 96, 100, 128, 248, 255, 300, 512, 640].into_iter().enumerate() {
        let (dtype, ops) = kinds[turn % 4];
        exact(&made(dtype, &[67, extent], turn as u64), ops, &[1]);
        let (dtype, ops) = kinds[(turn + 1) % 4];
        exact(&made(dtype, &[3, 19, extent], turn as u64), ops, &[2]);
    }
    // Nothing that is greater than all others, and only in the last elements.
    let mut values = vec![0.0; 64 * 300];
    exact(&array(DType::Bool, &[64, 300], &values), &["argmax"], &[1]);
    (0..64).for_each(|row| values[row * 300 + 299 - row % 9] = 1.0);
    exact(&array(DType::Bool, &[64, 300], &values), &["argmax"], &[1]);
}

#[test]
fn rows_whose_elements_do_not_follow_each_other() {
    for (turn, (dtype, ops)) in KINDS.into_iter().enumerate() {
        let whole = made(dtype, &[400, 13], turn as u64);
        let part = whole.view(&[400, 7], &[13, 1], 3).unwrap();
        exact(&part, ops, &[turn as i64 % 2]);
    }
}

#[test]
fn compilers_take_the_kernels() {
    for (turn, (dtype, ops)) in KINDS.into_iter().enumerate() {
        for (shape, axis) in [([1003, 7], 0), ([1003, 6], 1)] {
            let input = made(dtype, &shape, turn as u64);
            let outcome = coulis::reduce::run(&[input], &Request::new(ops).over(&[axis])).unwrap();
            let refused = outcome.notices.iter().find(|notice| notice.contains("a kernel is not compiled"));
            assert_eq!(refused, None, "{ops:?} of {dtype} {shape:?} over {axis}");
        }
    }
}
