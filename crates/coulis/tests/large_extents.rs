//! Calls of large extents, which no test has the memory for, are planned for every kind of machine: statistics, and
//! norms whose results a cache does not hold.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/placed.rs"]
mod placed;

use coulis::reduce::kernel_for;
use coulis::{DType, DeviceChoice, Normalize, Request, TargetChoice, Tuned};
use coulis_ir::Target;
use placed::{Axis, in_memory};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

/// A GPU, and CPUs of one and of many threads, of vectors as long as they come and of none.
fn machines() -> Vec<Target> {
    let cpu = TargetChoice::Cpu.facts().unwrap();
    let of = |vector_bytes, n_threads| Target { vector_bytes, n_threads, ..cpu.clone() };
    let interpreter = Target { vectors_are_registers: false, ..of(1 << 14, 2) };
    vec![TargetChoice::Cuda { arch: None }.facts().unwrap(), of(16, 1), of(32, 2), of(64, 64), interpreter]
}

/// What is asked of an array: statistics, or a norm.
fn wanted() -> impl Strategy<Value = Request> {
    let ops: Vec<&[&str]> =
        vec![&["sum"], &["max", "argmax"], &["mean", "var"], &["sum", "mean", "var", "min", "max"]];
    let norms: Vec<&str> = coulis::NORMALIZATIONS.iter().map(|entry| entry.name).collect();
    prop_oneof![
        prop::sample::select(ops).prop_map(Request::new),
        prop::sample::select(norms).prop_map(|norm| Request::normalizing(Normalize::named(norm).unwrap())),
    ]
}

/// Up to four axes, at least one of them reduced, of up to `2^38` elements together.
fn axes() -> impl Strategy<Value = Vec<Axis>> {
    let extent = prop_oneof![3 => 1i64..100_000, 1 => 1i64..9, 1 => 1i64..1 << 28];
    prop::collection::vec((extent, 0i64..3, any::<bool>()), 1..5).prop_map(|mut axes| {
        while axes.iter().fold(1i64, |n, axis| n.saturating_mul(axis.0 * axis.1.max(1))) > 1 << 38 {
            axes.pop();
        }
        axes[0].2 |= axes.iter().all(|axis| !axis.2);
        axes
    })
}

fn plan(dtype: DType, axes: &[Axis], order: usize, wanted: &Request) -> Result<(), String> {
    let (input, reduced) = in_memory(dtype, axes, order);
    let device = DeviceChoice::Sim { warp: 32, orders: 1 };
    let request = Request { axes: Some(reduced), tuned: Tuned::Ignored, device, ..wanted.clone() };
    for machine in machines() {
        if let Err(error) = kernel_for(std::slice::from_ref(&input), &request, &machine) {
            let norm = request.normalize.as_ref().map(Normalize::name);
            let what = format!("{input:?}, axes {:?}, {:?} {norm:?}", request.axes, request.ops);
            return Err(format!("{what} for {machine:?}: {error}"));
        }
    }
    Ok(())
}

#[test]
fn every_call_of_large_extents_is_planned() {
    let calls = (prop::sample::select(DType::ALL.to_vec()), axes(), 0..4usize, wanted());
    let mut runner = TestRunner::deterministic();
    let n_cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    for _ in 0..n_cases {
        let (dtype, axes, order, wanted) = calls.new_tree(&mut runner).unwrap().current();
        plan(dtype, &axes, order, &wanted).unwrap();
    }
}

#[test]
fn maps_of_few_long_rows_are_planned_where_no_cache_holds_their_results() {
    let softmax = Request::normalizing(Normalize::named("softmax").unwrap());
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for n in [1 << 26, (1 << 26) + 1] {
            plan(dtype, &[(n, 1, true)], 0, &softmax).unwrap();
            plan(dtype, &[(8, 1, false), (n / 8, 1, true)], 0, &softmax).unwrap();
            plan(dtype, &[(2, 1, false), (3, 1, true), (n / 8, 1, true)], 0, &softmax).unwrap();
        }
    }
}
