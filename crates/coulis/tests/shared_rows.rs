//! Rows that so few threads share as bringing their states together is worth: the plans of arrays that fill a
//! GPU, run over arrays of a few blocks. Lengths of all kinds, over widths of types and kinds of statistics,
//! with NaN and ties. The simulator finds no violation.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Special, array, check, numbers};

use coulis::reduce::plan;
use coulis::{ArrayInfo, DType, DeviceChoice, Request};

const SIX: &[&str] = &["sum", "mean", "var", "min", "max", "argmax"];

/// Runs over `rows` rows what is planned for 240 MB of them; the plan's name and its trace.
#[track_caller]
fn exact(ops: &[&str], dtype: DType, (rows, length): (i64, i64), special: Special) -> (String, String) {
    let request =
        Request { device: DeviceChoice::Sim { warp: 32, orders: 1 }, ..Request::new(ops).over(&[1]) };
    let many = 240_000_000 / (length * dtype.bytes() as i64);
    let info = ArrayInfo { dtype, shape: vec![many, length], strides: vec![length, 1] };
    let planned = plan(&[info], &request).unwrap();
    let x = array(dtype, &[rows, length], &numbers((rows * length) as usize, special, length as u64));
    check(&[x], &Request { plan: Some(planned.trace.clone()), ..request })
        .unwrap_or_else(|why| panic!("{ops:?} of {dtype} [{rows}, {length}]: {why}\n{}", planned.trace));
    (planned.name, planned.trace)
}

#[test]
fn rows_that_accesses_fit_are_shared_by_fewer_threads_than_a_warp() {
    let kinds: [(DType, &[&str], i64); 8] = [
        (DType::F32, &["var"], 128),
        (DType::F32, SIX, 256),
        (DType::F16, &["mean", "var"], 512),
        (DType::BF16, &["logsumexp"], 256),
        (DType::BF16, SIX, 1024),
        (DType::BF16, &["argmax"], 128),
        (DType::I8, &["var"], 256),
        (DType::F64, SIX, 128),
    ];
    for (dtype, ops, length) in kinds {
        let (name, trace) = exact(ops, dtype, (77, length), Special::Zeros);
        assert_eq!(name, "gpu_rows");
        assert!(!trace.contains("factor=32)\nS_rf ="), "{trace}");
    }
}

#[test]
fn rows_that_begin_anywhere_are_shared_by_few_threads_in_shared_memory_or_from_their_first_boundaries() {
    let kinds: [(DType, &[&str], i64, &str); 15] = [
        (DType::F16, &["sum"], 65, "gpu_odd_rows"),
        (DType::F32, &["var"], 65, "gpu_odd_rows"),
        (DType::I8, &["sum", "argmax"], 65, "gpu_odd_rows"),
        (DType::I8, &["var"], 129, "gpu_odd_rows"),
        (DType::BF16, &["logsumexp"], 151, "gpu_odd_rows"),
        (DType::BF16, SIX, 301, "gpu_odd_rows"),
        (DType::F32, &["logsumexp"], 301, "gpu_odd_rows"),
        (DType::F32, SIX, 501, "gpu_odd_rows"),
        (DType::F64, &["logsumexp"], 301, "gpu_odd_rows"),
        (DType::F16, &["var"], 1009, "gpu_odd_rows"),
        (DType::F32, &["argmax"], 1009, "gpu_odd_rows"),
        (DType::I8, &["sum"], 513, "gpu_rows"),
        (DType::F16, &["sum", "var"], 1025, "gpu_rows"),
        (DType::BF16, &["logsumexp"], 2049, "gpu_rows"),
        (DType::I8, SIX, 2049, "gpu_rows"),
    ];
    for (dtype, ops, length, name) in kinds {
        let (found, trace) = exact(ops, dtype, (43, length), Special::Zeros);
        assert_eq!(found, name, "{ops:?} of {dtype} {length}\n{trace}");
        assert_eq!(trace.contains(".peel("), name == "gpu_rows", "{trace}");
    }
}

#[test]
fn special_values_reach_the_results_of_shared_rows() {
    for special in [Special::Nan, Special::All] {
        for (ops, dtype, length) in [
            (&["max", "argmax"][..], DType::F16, 301),
            (&["logsumexp"], DType::BF16, 151),
            (&["logsumexp"], DType::F32, 256),
            (&["sum", "argmin"], DType::F32, 128),
            (SIX, DType::F32, 301),
        ] {
            exact(ops, dtype, (21, length), special);
        }
    }
}
