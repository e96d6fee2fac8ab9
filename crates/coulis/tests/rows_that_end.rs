//! Rows whose ends are folded together, and rows of one output that are walked side by side, on the CPU:
//! kinds of statistics and widths of types, lengths that runs and vectors divide and do not, rows that fill
//! no block, several kept dimensions, and special values.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Special, array, check, numbers};
use coulis::reduce::{plan, prepare};
use coulis::{Array, DType, Request};
use coulis_ir::args::{ArrayInfo, compact_strides};

fn made(dtype: DType, shape: &[i64], special: Special, seed: u64) -> Array {
    let n = shape.iter().product::<i64>() as usize;
    array(dtype, shape, &numbers(n, special, seed))
}

fn info(dtype: DType, shape: &[i64]) -> ArrayInfo {
    ArrayInfo { dtype, shape: shape.to_vec(), strides: compact_strides(shape) }
}

#[track_caller]
fn exact(input: Array, request: &Request) {
    let shape = input.shape().to_vec();
    check(&[input], request).unwrap_or_else(|why| panic!("{:?} of {shape:?}: {why}", request.ops));
}

const KINDS: [(DType, &[&str]); 8] = [
    (DType::F32, &["sum"]),
    (DType::F32, &["sum", "mean", "var", "min", "max"]),
    (DType::BF16, &["mean", "var"]),
    (DType::F16, &["mean", "meansq"]),
    (DType::F32, &["logsumexp"]),
    (DType::F32, &["argmax", "min"]),
    (DType::F32, &["prod"]),
    (DType::I8, &["sum", "max"]),
];

#[test]
fn rows_of_every_kind_end_together_exactly() {
    for (turn, rows) in [8, 13, 40].into_iter().enumerate() {
        for (at, (dtype, ops)) in KINDS.into_iter().enumerate() {
            let length = [512, 277, 320][(turn + at) % 3];
            let request = Request::new(ops).over(&[1]);
            let seed = (7 * turn + at) as u64;
            exact(made(dtype, &[rows, length], Special::Zeros, seed), &request);
            if dtype.is_float() {
                exact(made(dtype, &[rows, length], Special::All, seed), &request);
            }
        }
    }
}

#[test]
fn rows_that_fill_no_block_are_no_second_kernel() {
    let source = |rows: i64| {
        let request = Request::new(&["logsumexp"]).over(&[1]);
        prepare(&[info(DType::F32, &[rows, 400])], &request).unwrap().source().map(str::len)
    };
    let (Some(whole), Some(odd)) = (source(64), source(67)) else {
        println!("SKIP rows_that_fill_no_block_are_no_second_kernel: no compiler");
        return;
    };
    assert!(odd < whole * 3 / 2, "{odd} and {whole}");
}

#[test]
fn the_last_of_several_kept_dimensions_ends_together() {
    let request = Request::new(&["sum", "var", "max"]).over(&[2]);
    for rows in [16, 11] {
        exact(made(DType::F32, &[3, rows, 288], Special::Nan, 5), &request);
    }
}

#[test]
fn rows_of_several_outputs_or_of_one_are_walked_side_by_side_where_that_pays() {
    let bytes = coulis::machine::machine().unwrap().vector_bytes;
    if bytes < 64 {
        println!(
            "SKIP rows_of_several_outputs_or_of_one_are_walked_side_by_side_where_that_pays: vectors of {bytes} bytes"
        );
        return;
    }
    let trace = |dtype: DType, shape: &[i64], axes: &[i64], ops: &[&str]| {
        plan(&[info(dtype, shape)], &Request::new(ops).over(axes)).unwrap().trace
    };
    let ends_together = "i0_outer, i0_inner = s[O].split(i0, factor=8)";
    // More than the caches of any machine.
    let short = trace(DType::F32, &[1 << 18, 2048], &[1], &["sum"]);
    assert!(short.contains(ends_together), "{short}");
    // Where the machine reads one page as fast as several, the rows of each are walked one after another.
    let beside = short.contains("split(ax0, factor=2)");
    let long = trace(DType::F32, &[4096, 1 << 16], &[1], &["sum"]);
    assert!(!long.contains(ends_together), "{long}");
    let few = trace(DType::F32, &[4, 2048], &[1], &["sum"]);
    assert!(!few.contains(ends_together), "{few}");

    // Two pages of a row, and two rows: the trace for an array in memory is right for a smaller one too.
    let (dtype, ops) = (DType::F16, ["mean", "var"]);
    let planned = trace(dtype, &[256, 1001, 64, 64], &[0, 2, 3], &ops);
    assert_eq!(planned.contains("split(k0, factor=2)"), beside, "{planned}");
    let request = Request { plan: Some(planned), ..Request::new(&ops).over(&[0, 2, 3]) };
    for n in [4, 3] {
        exact(made(dtype, &[n, 2, 64, 64], Special::Zeros, 9), &request);
    }
    let odd = trace(dtype, &[255, 1001, 64, 64], &[0, 2, 3], &ops);
    assert!(!odd.contains("split(k0, factor=2)"), "{odd}");
}

#[test]
fn tiles_of_several_outputs_are_folded_together_in_the_order_of_memory() {
    let (around, ops) = ([16, 512, 64, 128], [["sum", "max"], ["mean", "var"], ["argmax", "argmin_last"]]);
    for (at, dtype) in [DType::F32, DType::F16, DType::I16].into_iter().enumerate() {
        for ops in ops {
            let plain = Request::new(&ops).over(&[0, 2]);
            let planned = plan(&[info(dtype, &around)], &plain).unwrap().trace;
            // Machines that read several pages side by side fold one tile after another.
            println!("{dtype} {ops:?} together: {}", planned.contains("i0_inner = s["));
            let request = Request { plan: Some(planned), ..plain };
            let special = if dtype.is_float() { Special::All } else { Special::Few };
            for special in [Special::Zeros, special] {
                exact(made(dtype, &[2, 33, 17, 128], special, at as u64), &request);
            }
        }
    }
}
