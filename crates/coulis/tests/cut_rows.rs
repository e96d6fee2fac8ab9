//! Rows on the CPU that are folded by vectors as far as these go, and behind that by the end of one more or with one row a
//! lane: lengths of all kinds, over widths of types and kinds of statistics, with rows that fill no block, special values, masks, and
//! several dimensions of both kinds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Special, array, check, numbers};
use coulis::reduce::{array_info, plan};
use coulis::{Array, DType, Request};

fn made(dtype: DType, shape: &[i64], special: Special, seed: u64) -> Array {
    let n = shape.iter().product::<i64>() as usize;
    array(dtype, shape, &numbers(n, special, seed))
}

#[track_caller]
fn exact(inputs: &[Array], request: &Request) {
    let shape = inputs[0].shape();
    check(inputs, request).unwrap_or_else(|why| panic!("{:?} of {shape:?}: {why}", request.ops));
}

const KINDS: [(DType, &[&str]); 9] = [
    (DType::F32, &["sum"]),
    (DType::F32, &["sum", "mean", "var", "min", "max"]),
    (DType::F16, &["mean", "prod"]),
    (DType::BF16, &["argmax", "min"]),
    (DType::F32, &["logsumexp"]),
    (DType::F64, &["argmin", "sum"]),
    (DType::F32, &["prod"]),
    (DType::I8, &["sum", "argmax_last"]),
    (DType::I32, &["any", "max"]),
];

#[test]
fn rows_of_every_remainder_are_exact() {
    for (turn, length) in [17, 31, 33, 38, 45, 63, 65, 79, 97, 101, 127, 150, 251].into_iter().enumerate() {
        for offset in [0, 5] {
            let (dtype, ops) = KINDS[(turn + offset) % KINDS.len()];
            let rows = [16, 19, 41][(turn + offset) % 3];
            let request = Request::new(ops).over(&[1]);
            let special = if dtype.is_float() && offset > 0 { Special::All } else { Special::Zeros };
            exact(&[made(dtype, &[rows, length], special, length as u64)], &request);
        }
    }
}

#[test]
fn longer_rows_of_every_remainder_are_exact() {
    let lengths = [257, 263, 271, 300, 319, 383, 385, 449, 511, 600, 1009, 1023, 2049, 4095];
    for (turn, length) in lengths.into_iter().enumerate() {
        for offset in [0, 4] {
            let (dtype, ops) = KINDS[(turn + offset) % KINDS.len()];
            let rows = [1, 8, 19][(turn + offset) % 3];
            let request = Request::new(ops).over(&[1]);
            let special = if dtype.is_float() && offset > 0 { Special::All } else { Special::Zeros };
            let whole = made(dtype, &[rows, length + 3], special, length as u64);
            exact(&[whole.view(&[rows, length], &[length + 3, 1], 3).unwrap()], &request);
        }
    }
}

#[test]
fn what_is_behind_the_last_vector_is_cut_off() {
    let trace_of = |dtype: DType, op: &str, length: i64| {
        let x = made(dtype, &[128, length], Special::Zeros, 1);
        plan(&[array_info(&x)], &Request::new(&[op]).over(&[1])).unwrap().trace
    };
    let trace = |length: i64| trace_of(DType::F32, "sum", length);
    let bytes = coulis::machine::machine().unwrap().vector_bytes;
    if !(32..=64).contains(&bytes) {
        println!("SKIP what_is_behind_the_last_vector_is_cut_off: vectors of {bytes} bytes");
        return;
    }
    assert!(trace(65).contains("s.cut(S, k0, 64)"), "one element, with one row a lane: {}", trace(65));
    let overlaps =
        |trace: &str| trace.contains("s.overlap(S, k0, ") && trace.contains("s.cut(S_rf, k0_outer, ");
    assert!(overlaps(&trace(67)), "{}", trace(67));
    assert!(overlaps(&trace(300)) && !trace(300).contains("s.cut(S, "), "{}", trace(300));
    assert!(!trace(64).contains(".cut("), "{}", trace(64));
    let of_bytes = trace_of(DType::I8, "max", 45);
    assert!(
        bytes == 32 || of_bytes.contains("s.cut(S_rf, k0_outer, 2)"),
        "two vectors that are shorter than those of the machine: {of_bytes}"
    );
}

#[test]
fn the_first_of_equal_elements_is_found_on_both_sides_of_the_cut() {
    let equal = array(DType::F32, &[19, 67], &vec![3.0; 19 * 67]);
    exact(&[equal], &Request::new(&["argmax", "argmax_last", "argmin", "argmin_last"]).over(&[1]));
    // The greatest stands behind the last vector, and in it too.
    let values: Vec<f64> =
        (0..19 * 67).map(|i| if [63, 64, 66].contains(&(i % 67)) { 9.0 } else { 1.0 }).collect();
    exact(
        &[array(DType::F32, &[19, 67], &values)],
        &Request::new(&["argmax", "argmax_last", "max"]).over(&[1]),
    );
}

#[test]
fn under_masks_and_of_several_dimensions() {
    let several = Request::new(&["sum", "var", "argmax"]).over(&[0, 2]);
    exact(&[made(DType::F32, &[3, 21, 45], Special::Nan, 5)], &several);
    exact(&[made(DType::F32, &[3, 21, 45], Special::Nan, 6)], &Request::new(&["sum", "max"]).over(&[2]));
    let ignoring =
        Request { nan: coulis::NanPolicy::Ignore, ..Request::new(&["sum", "min", "count"]).over(&[1]) };
    exact(&[made(DType::F32, &[40, 53], Special::Nan, 7)], &ignoring);
}
