//! Rows of up to 64 elements on machines with threads: lengths of all kinds, over widths of types and kinds
//! of statistics, with rows that fill no block, in memory that is not aligned, under masks, and with two
//! inputs. The simulator finds no violation.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Special, array, check, numbers};

use coulis::{Array, DType, DeviceChoice, Request, Tuned};

/// Rows of a call: more than a block has, and no multiple of it.
const ROWS: i64 = 263;

fn made(dtype: DType, shape: &[i64], seed: u64) -> Array {
    let n = shape.iter().product::<i64>() as usize;
    array(dtype, shape, &numbers(n, Special::Zeros, seed))
}

fn simulated(ops: &[&str], warp: u32) -> Request {
    Request { device: DeviceChoice::Sim { warp, orders: 1 }, ..Request::new(ops).over(&[1]) }
}

#[track_caller]
fn exact(inputs: &[Array], request: &Request) {
    let shape = inputs[0].shape();
    check(inputs, request).unwrap_or_else(|why| panic!("{:?} of {shape:?}: {why}", request.ops));
}

#[test]
fn rows_of_every_kind_of_length_are_exact_on_both_widths_of_warps() {
    let kinds: [(DType, &[&str]); 6] = [
        (DType::F32, &["sum"]),
        (DType::I8, &["sum", "argmax"]),
        (DType::F16, &["mean", "var"]),
        (DType::F64, &["max"]),
        (DType::F32, &["sum", "mean", "var", "min", "max", "argmax"]),
        (DType::BF16, &["logsumexp"]),
    ];
    // Around the widths of accesses, and some that have no width in common with any.
    for (turn, length) in [2, 3, 6, 7, 8, 12, 16, 31, 33, 48, 64].into_iter().enumerate() {
        for offset in [0, 3] {
            let (dtype, ops) = kinds[(turn + offset) % kinds.len()];
            let warp = if offset == 0 { 32 } else { 64 };
            exact(&[made(dtype, &[ROWS, length], length as u64)], &simulated(ops, warp));
        }
    }
}

#[test]
fn rows_longer_than_a_run_are_several_runs() {
    let kinds: [(DType, &[&str]); 3] = [
        (DType::BF16, &["logsumexp"]),
        (DType::F16, &["sum", "var"]),
        (DType::F32, &["logsumexp", "argmin"]),
    ];
    for (turn, length) in [17, 31, 40, 48, 63].into_iter().enumerate() {
        for (dtype, ops) in kinds {
            let warp = if turn % 2 == 0 { 32 } else { 64 };
            exact(&[made(dtype, &[ROWS, length], 3)], &simulated(ops, warp));
        }
    }
}

#[test]
fn longer_rows_that_begin_anywhere() {
    let kinds: [(DType, i64, &[&str]); 2] =
        [(DType::F32, 701, &["sum", "argmin"]), (DType::F16, 333, &["mean"])];
    for (turn, (dtype, length, ops)) in kinds.into_iter().enumerate() {
        // As many blocks as the strategy wants, and rows that fill none.
        let rows = 1 + 128 * ((16 << 10) / (length * dtype.bytes() as i64));
        let warp = if turn % 2 == 0 { 32 } else { 64 };
        let input = [made(dtype, &[rows, length], 7)];
        let tuned = Tuned::As { strategy: "gpu_odd_rows".to_owned(), changes: Vec::new() };
        exact(&input, &Request { tuned, ..simulated(ops, warp) });
    }
}

#[test]
fn several_rows_of_a_thread_and_the_last_of_them_outside() {
    for (rows, length, unroll) in [(1100, 3, 4), (1024, 2, 2), (515, 8, 2), (520, 7, 8)] {
        let changes = vec![(coulis::PlanKnob::Unroll, unroll), (coulis::PlanKnob::Rows, 128)];
        let tuned = Tuned::As { strategy: "gpu_short_rows".to_owned(), changes };
        exact(&[made(DType::F16, &[rows, length], 5)], &Request { tuned, ..simulated(&["sum", "max"], 32) });
    }
}

#[test]
fn rows_in_memory_that_is_not_aligned() {
    for (dtype, length) in [(DType::F32, 7), (DType::I8, 5), (DType::F16, 8)] {
        let all = made(dtype, &[ROWS * length + 1], 3);
        let view = all.view(&[ROWS, length], &[length, 1], 1).unwrap();
        assert_ne!(view.as_ptr() as usize % 16, 0);
        exact(&[view], &simulated(&["sum", "min"], 32));
    }
}

#[test]
fn masked_rows_and_rows_of_two_inputs() {
    for length in [5, 12] {
        let shape = [ROWS, length];
        let mask = made(DType::Bool, &shape, 9);
        let first = made(DType::F32, &shape, 1);
        exact(
            std::slice::from_ref(&first),
            &Request { where_: Some(mask), ..simulated(&["sum", "count"], 32) },
        );
        exact(&[first, made(DType::F32, &shape, 2)], &simulated(&["dot"], 64));
    }
}
