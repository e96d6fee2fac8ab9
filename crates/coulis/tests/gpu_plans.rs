//! Calls of any shape, order in memory, dtype and set of statistics have a plan for a GPU that is lowered, verified and
//! written as CUDA: no legal call is refused for want of a plan that fits it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use coulis::reduce::kernel_for;
use coulis::{ArrayInfo, DType, NanPolicy, Request, TargetChoice, Tuned};
use coulis_codegen::{dialect_named, emit_module};
use coulis_ir::Target;
use coulis_ir::print::print_kernel;
use coulis_ir::verify::{verify, verify_more_for};
use coulis_lower::{Options, lower};
use coulis_script::parse_module;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

/// A call of one input.
#[derive(Clone, Debug)]
struct Call {
    input: ArrayInfo,
    axes: Vec<i64>,
    ops: Vec<&'static str>,
    nan: NanPolicy,
}

/// An extent, the distance of neighbours in elements of the next axis, and whether the axis is reduced.
type Axis = (i64, i64, bool);

fn extent() -> impl Strategy<Value = i64> {
    let edges = vec![16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300, 511, 512, 513];
    prop_oneof![
        3 => 1i64..9,
        4 => 1i64..131,
        2 => prop::sample::select(edges),
        2 => 100i64..5000,
        1 => 5000i64..200_000,
        1 => prop::sample::select(vec![20_000i64, 65_536, 100_003, 300_001, 4_194_305]),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let step = prop_oneof![8 => Just(1i64), 1 => Just(2), 1 => Just(3)];
    let axes = prop::collection::vec((extent(), step, any::<bool>()), 1..5);
    let names: Vec<&'static str> =
        coulis::CATALOGUE.iter().filter(|e| e.n_inputs == 1).map(|e| e.name).collect();
    let all = names.len();
    let ops = prop_oneof![
        3 => prop::sample::subsequence(names.clone(), 1),
        2 => prop::sample::subsequence(names.clone(), 2..7),
        2 => prop::sample::subsequence(names.clone(), 7..=all),
        1 => prop::sample::subsequence(names, all)
    ];
    let nan = prop_oneof![4 => Just(NanPolicy::Propagate), 1 => Just(NanPolicy::Ignore)];
    (prop::sample::select(DType::ALL.to_vec()), axes, 0..4usize, ops.prop_shuffle(), nan).prop_map(
        |(dtype, mut axes, order, ops, nan)| {
            // No more elements than an array of a few GiB has.
            while axes.iter().fold(1i64, |n, axis| n.saturating_mul(axis.0 * axis.1)) > 1 << 31 {
                axes.pop();
            }
            axes[0].2 |= axes.iter().all(|axis| !axis.2);
            let (input, axes) = in_memory(dtype, &axes, order);
            Call { input, axes, ops, nan }
        },
    )
}

/// The array whose axes lie in memory in that order and stand in it turned by `order`, and which of them are reduced.
fn in_memory(dtype: DType, axes: &[Axis], order: usize) -> (ArrayInfo, Vec<i64>) {
    let mut placed: Vec<(Axis, i64)> = Vec::new();
    let mut stride = 1;
    for &axis in axes.iter().rev() {
        placed.insert(0, (axis, stride * axis.1));
        stride *= axis.0 * axis.1;
    }
    placed.rotate_left(order % axes.len());
    let reduced = placed.iter().enumerate().filter(|(_, (axis, _))| axis.2).map(|(at, _)| at as i64);
    let reduced = reduced.collect();
    let shape = placed.iter().map(|(axis, _)| axis.0).collect();
    let strides = placed.iter().map(|(_, stride)| *stride).collect();
    (ArrayInfo { dtype, shape, strides }, reduced)
}

fn written(call: &Call, target: &Target) -> Result<String, Box<dyn std::error::Error>> {
    let request = Request {
        axes: Some(call.axes.clone()),
        nan: call.nan,
        tuned: Tuned::Ignored,
        ..Request::new(&call.ops)
    };
    let nest = kernel_for(std::slice::from_ref(&call.input), &request, target)?;
    let text = print_kernel(&nest);
    match &parse_module(&text)?[..] {
        [read] if print_kernel(read) == text => {}
        others => return Err(format!("{} kernels are read, or another one", others.len()).into()),
    }
    let flat = lower(nest, &Options { target, simple_mode: false }, &mut |_, _| {})?;
    let checked = verify_more_for(verify(flat)?, target)?;
    Ok(emit_module(&checked, dialect_named("cuda")?)?.text)
}

/// Writes the calls, as accesses are as wide as they may be, and element by element, as memory is read whose first element may
/// lie anywhere.
#[track_caller]
fn check(calls: impl Iterator<Item = Call>) {
    let wide = TargetChoice::Cuda { arch: None }.facts().unwrap();
    let single = Target { vector_bytes: 1, ..wide.clone() };
    let mut faults = Vec::new();
    for call in calls {
        for target in [&wide, &single] {
            if let Err(error) = written(&call, target) {
                faults.push(format!("{call:?} by accesses of {} bytes: {error}", target.vector_bytes));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_call_has_a_plan_for_a_gpu() {
    let n_calls = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    let mut runner = TestRunner::deterministic();
    check((0..n_calls).map(|_| call().new_tree(&mut runner).unwrap().current()));
}

#[test]
fn calls_at_the_edges_of_plans_have_one() {
    let of = |dtype, axes: &[Axis], order, ops: &[&'static str]| {
        let (input, axes) = in_memory(dtype, axes, order);
        Call { input, axes, ops: ops.to_vec(), nan: NanPolicy::Propagate }
    };
    let calls = [
        // Columns in fewer chunks, or of fewer rows one after another, than a block has threads for each.
        of(DType::F64, &[(59, 1, false), (57, 2, true), (6, 1, true), (17, 1, false)], 2, &["sumsq"]),
        of(DType::I8, &[(85, 1, true), (52, 1, false), (61, 1, true), (6, 1, false)], 0, &["max"]),
        of(DType::F32, &[(2, 1, false), (82, 17, true), (116, 1, true), (17, 1, false)], 1, &["argmin"]),
        // Rows that begin anywhere, of which nothing is read, or element by element.
        of(DType::F16, &[(99, 1, false), (513, 1, true)], 1, &["count"]),
        of(DType::BF16, &[(8, 1, false), (4323, 1, true)], 0, &["count"]),
        of(DType::U8, &[(4148, 1, false), (4212, 1, true)], 0, &["var"]),
        of(DType::I16, &[(4233, 1, false), (256, 1, true)], 0, &["absmax"]),
        // Two blocks, of which the second has less than its share.
        of(DType::I16, &[(35_016, 1, true)], 0, &["count_nonzero", "minloc", "norm2"]),
        of(DType::F16, &[(32_832, 1, true)], 0, &["argmax", "max", "maxloc", "all", "mean", "logsumexp"]),
        of(DType::BF16, &[(40_000, 1, true)], 0, &["all", "minloc", "sum", "mean", "min", "norm1"]),
    ];
    check(calls.into_iter());
}
