//! Long rows that begin anywhere, read from their first boundaries by whole accesses, with their ends folded
//! apart: lengths of all kinds, over widths of types and kinds of statistics, with NaN and ties at both ends,
//! and in memory that is not aligned. The simulator finds no violation.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Special, array, check, numbers};

use coulis::reduce::{array_info, plan};
use coulis::{Array, DType, DeviceChoice, Request, Tuned};

fn made(dtype: DType, shape: &[i64], special: Special, seed: u64) -> Array {
    let n = shape.iter().product::<i64>() as usize;
    array(dtype, shape, &numbers(n, special, seed))
}

fn simulated(ops: &[&str], warp: u32) -> Request {
    let tuned = Tuned::As { strategy: "gpu_rows".to_owned(), changes: Vec::new() };
    Request { device: DeviceChoice::Sim { warp, orders: 1 }, tuned, ..Request::new(ops).over(&[-1]) }
}

/// Whether the plan of a call peels.
fn is_peeled(x: &Array, request: &Request) -> bool {
    plan(&[array_info(x)], request).unwrap().trace.contains(".peel(")
}

#[track_caller]
fn exact(x: &Array, request: &Request) {
    let shape = x.shape().to_vec();
    assert!(is_peeled(x, request), "{:?} of {} {shape:?}", request.ops, x.dtype());
    let inputs = std::slice::from_ref(x);
    check(inputs, request)
        .unwrap_or_else(|why| panic!("{:?} of {} {shape:?}: {why}", request.ops, x.dtype()));
}

#[test]
fn rows_of_every_remainder_are_exact_on_both_widths_of_warps() {
    let kinds: [(DType, &[&str]); 6] = [
        (DType::I8, &["sum"]),
        (DType::U8, &["sum", "max", "argmax"]),
        (DType::F16, &["mean", "var"]),
        (DType::I8, &["argmin_last", "min"]),
        (DType::BF16, &["logsumexp"]),
        (DType::F16, &["sum", "mean", "var", "min", "max", "argmax"]),
    ];
    for (turn, more) in [1, 2, 3, 5, 7, 9, 11, 13, 14, 15, 499].into_iter().enumerate() {
        for offset in [0, 2, 5] {
            let (dtype, ops) = kinds[(turn + offset) % kinds.len()];
            let warp = if (turn + offset) % 2 == 0 { 32 } else { 64 };
            // Where an access of two elements fits every row of two bytes each, none is peeled.
            let length = 2048 / dtype.bytes() as i64 + if dtype.bytes() == 2 { more | 1 } else { more };
            exact(&made(dtype, &[9, length], Special::Zeros, 7 + more as u64), &simulated(ops, warp));
        }
    }
}

#[test]
fn special_values_and_ties_at_both_ends() {
    for special in [Special::Nan, Special::All] {
        for ops in [&["max", "argmax"][..], &["sum", "argmin"], &["logsumexp"]] {
            exact(&made(DType::F16, &[7, 1035], special, 5), &simulated(ops, 32));
        }
    }
    // All elements are equal, so each row has its first and its last at its very ends.
    let equal = array(DType::I8, &[18, 2051], &vec![3.0; 18 * 2051]);
    exact(&equal, &simulated(&["argmax", "argmax_last", "argmin", "argmin_last", "sum"], 32));
}

#[test]
fn rows_of_several_kept_axes_and_rows_in_memory_that_is_not_aligned() {
    exact(&made(DType::I8, &[3, 4, 2049], Special::Zeros, 1), &simulated(&["sum", "min"], 32));
    for offset in [1, 3] {
        let (rows, length) = (6, 2055);
        let all = made(DType::I8, &[rows * length + offset], Special::Zeros, 3);
        let view = all.view(&[rows, length], &[length, 1], offset).unwrap();
        exact(&view, &simulated(&["sum", "argmax"], 32));
    }
}

#[test]
fn rows_with_gaps_are_peeled_where_they_begin_anywhere() {
    let all = made(DType::I8, &[8 * 2100], Special::Zeros, 3);
    exact(&all.view(&[8, 2049], &[2099, 1], 0).unwrap(), &simulated(&["sum"], 32));
    let apart = all.view(&[8, 2048], &[2096, 1], 0).unwrap();
    assert!(!is_peeled(&apart, &simulated(&["sum"], 32)), "rows that begin where accesses may");
}

#[test]
fn rows_under_masks_and_folds_in_order_are_not_peeled() {
    let x = made(DType::I8, &[8, 2049], Special::Zeros, 3);
    let mask = made(DType::Bool, &[8, 2049], Special::Zeros, 4);
    assert!(!is_peeled(&x, &Request { where_: Some(mask), ..simulated(&["sum"], 32) }));
    let x = made(DType::I8, &[8, 2064], Special::Zeros, 3);
    assert!(!is_peeled(&x, &simulated(&["sum"], 32)), "rows that accesses fit");
}
