//! Calls of any shape, order in memory, dtype and set of statistics have a plan for a GPU that is printed and read
//! back, lowered, verified and written as CUDA: no legal call is refused for want of a plan that fits it. Plans for
//! as few registers as there may be give right results in the simulator.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "common/placed.rs"]
mod placed;

use common::{Special, array, numbers};
use coulis::reduce::kernel_for;
use coulis::{
    Arguments, Array, ArrayInfo, CompileOptions, DType, DeviceChoice, Function, NamedArray, NanPolicy,
    Normalize, Outcome, PlanInfo, Request, TargetChoice, Tuned, Value, compact_strides,
};
use coulis_codegen::{dialect_named, emit_module};
use coulis_ir::print::print_kernel;
use coulis_ir::verify::{verify, verify_more_for};
use coulis_ir::{BlockLimits, Checked, Kernel, Target};
use coulis_lower::{Options, lower};
use coulis_plan::{Problem, ResultForm};
use coulis_script::parse_module;
use placed::{Axis, in_memory};
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

fn extent() -> impl Strategy<Value = i64> {
    let edges = vec![16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300, 511, 512, 513];
    prop_oneof![
        3 => 1i64..9,
        4 => 1i64..131,
        2 => prop::sample::select(edges),
        2 => 100i64..5000,
        1 => 5000i64..200_000,
        1 => prop::sample::select(vec![20_000i64, 65_536, 100_003, 300_001, 4_194_305, 1 << 30]),
    ]
}

/// The statistics of one input.
fn one_input() -> Vec<&'static str> {
    coulis::CATALOGUE.iter().filter(|e| e.n_inputs == 1).map(|e| e.name).collect()
}

fn call() -> impl Strategy<Value = Call> {
    let step = prop_oneof![8 => Just(1i64), 1 => Just(2), 1 => Just(3), 2 => Just(0)];
    let axes = prop::collection::vec((extent(), step, any::<bool>()), 1..5);
    let names = one_input();
    let all = names.len();
    let ops = prop_oneof![
        6 => prop::sample::subsequence(names.clone(), 1),
        4 => prop::sample::subsequence(names.clone(), 2..7),
        1 => prop::sample::subsequence(names.clone(), 7..=all),
        1 => prop::sample::subsequence(names, all)
    ];
    let nan = prop_oneof![4 => Just(NanPolicy::Propagate), 1 => Just(NanPolicy::Ignore)];
    (prop::sample::select(DType::ALL.to_vec()), axes, 0..4usize, ops.prop_shuffle(), nan).prop_map(
        |(dtype, mut axes, order, ops, nan)| {
            // No more elements than an array of some GiB has.
            while axes.iter().fold(1i64, |n, axis| n.saturating_mul(axis.0 * axis.1.max(1))) > 1 << 33 {
                axes.pop();
            }
            axes[0].2 |= axes.iter().all(|axis| !axis.2);
            let (input, axes) = in_memory(dtype, &axes, order);
            Call { input, axes, ops, nan }
        },
    )
}

const SIMULATED: DeviceChoice = DeviceChoice::Sim { warp: 32, orders: 1 };

impl Call {
    fn request(&self) -> Request {
        // A normalization by its name, or statistics.
        let asked = match self.ops[..] {
            [name] if coulis::NORMALIZATIONS.iter().any(|entry| entry.name == name) => {
                Request::normalizing(Normalize::named(name).unwrap())
            }
            _ => Request::new(&self.ops),
        };
        let axes = Some(self.axes.clone());
        Request { axes, nan: self.nan, tuned: Tuned::Ignored, device: SIMULATED, ..asked }
    }
}

fn written(call: &Call, target: &Target) -> Result<String, Box<dyn std::error::Error>> {
    let request = call.request();
    let nest = kernel_for(std::slice::from_ref(&call.input), &request, target)?;
    let text = print_kernel(&nest);
    match &parse_module(&text)?[..] {
        [read] if print_kernel(read) == text => {}
        others => return Err(format!("{} kernels are read, or another one", others.len()).into()),
    }
    let checked = permitted(nest, target)?;
    Ok(emit_module(&checked, dialect_named("cuda")?)?.text)
}

fn permitted(nest: Kernel, target: &Target) -> Result<Checked, Box<dyn std::error::Error>> {
    let flat = lower(nest, &Options { target, simple_mode: false }, &mut |_, _| {})?;
    Ok(verify_more_for(verify(flat)?, target)?)
}

/// A machine whose memory is as swift for each thread as that of an H200.
fn swift(target: &Target) -> Target {
    Target { thread_bytes_per_second: 18_000_000, ..target.clone() }
}

/// Writes the calls, as accesses are as wide as they may be, and element by element, as memory is read whose first
/// element may lie anywhere; and for a machine whose memory is swift.
#[track_caller]
fn check(calls: impl Iterator<Item = Call>) {
    let wide = TargetChoice::Cuda { arch: None }.facts().unwrap();
    let single = Target { vector_bytes: 1, ..wide.clone() };
    let swift = swift(&wide);
    let mut faults = Vec::new();
    for call in calls {
        for target in [&wide, &single, &swift] {
            if let Err(error) = written(&call, target) {
                faults.push(format!("{call:?} for {target:?}: {error}"));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// How many calls are drawn where the variable of the environment does not say.
fn n_cases(usual: usize) -> usize {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

#[test]
fn every_call_has_a_plan_for_a_gpu() {
    let mut runner = TestRunner::deterministic();
    check((0..n_cases(100)).map(|_| call().new_tree(&mut runner).unwrap().current()));
}

#[test]
fn every_normalization_has_a_plan_for_a_gpu() {
    let names: Vec<&'static str> = coulis::NORMALIZATIONS.iter().map(|entry| entry.name).collect();
    let normalization = (call(), prop::sample::select(names))
        .prop_map(|(call, name)| Call { ops: vec![name], ..call })
        .prop_filter("numbers", |call| call.input.dtype != DType::Bool);
    let mut runner = TestRunner::deterministic();
    check((0..n_cases(100)).map(|_| normalization.new_tree(&mut runner).unwrap().current()));
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
        // States of exactly the shared memory that a text may declare, beside the flag of the last block.
        of(
            DType::U64,
            &[(15, 1, false), (512, 1, true), (256, 1, false)],
            0,
            &["logsumexp", "prod", "mean", "min", "max", "std"],
        ),
        // Columns whose reducer has shorter runs than others.
        of(DType::F32, &[(40, 1, true), (33, 1, false)], 0, &["prod", "norm1", "norm2", "any", "logsumexp"]),
        // Rows that begin anywhere, of which nothing is read, or element by element.
        of(DType::F16, &[(99, 1, false), (513, 1, true)], 1, &["count"]),
        of(DType::BF16, &[(8, 1, false), (4323, 1, true)], 0, &["count"]),
        of(DType::U8, &[(4148, 1, false), (4212, 1, true)], 0, &["var"]),
        of(DType::I16, &[(4233, 1, false), (256, 1, true)], 0, &["absmax"]),
        // Two blocks, of which the second has less than its share.
        of(DType::I16, &[(35_016, 1, true)], 0, &["count_nonzero", "minloc", "norm2"]),
        of(DType::F16, &[(32_832, 1, true)], 0, &["argmax", "max", "maxloc", "all", "mean", "logsumexp"]),
        of(DType::BF16, &[(40_000, 1, true)], 0, &["all", "minloc", "sum", "mean", "min", "norm1"]),
        // More runs of one result than a sweep may leave parts; the same row again and again.
        of(DType::F32, &[(20_000, 1, true), (3, 1, false), (16_384, 1, true)], 0, &["sum"]),
        of(DType::F16, &[(70_000, 1, true), (2, 1, false), (8192, 1, true)], 0, &["mean", "var", "argmax"]),
        of(DType::I16, &[(42_966, 0, true), (49_981, 1, true)], 0, &["sum", "max"]),
        of(DType::F64, &[(65_536, 0, true), (65_537, 1, true)], 0, &["sum"]),
        // Rows of several dimensions, of which the innermost has a few words, that fit into memory of a block.
        of(DType::F32, &[(64, 1, true), (64, 1, false), (64, 1, true)], 0, &["batch_norm"]),
        of(DType::I32, &[(128, 1, true), (50, 1, false), (31, 1, true)], 0, &["softmax"]),
        of(DType::F16, &[(4096, 1, true), (1024, 1, false), (13, 1, true)], 0, &["softmax"]),
        // More broadcast rows than a block has threads above each other.
        of(DType::F32, &[(125, 0, false), (6, 0, true), (4, 1, false)], 0, &["softmax"]),
    ];
    // Pieces of several outputs that lie apart and begin anywhere, each of which is a part of its own.
    let strides = |shape: &[i64]| vec![shape[1] * (shape[2] + 2), shape[2] + 2, 1];
    let pieces = |dtype, shape: &[i64], ops: &[&'static str]| {
        let input = ArrayInfo { dtype, shape: shape.to_vec(), strides: strides(shape) };
        Call { input, axes: vec![1, 2], ops: ops.to_vec(), nan: NanPolicy::Propagate }
    };
    let apart = [
        pieces(DType::F16, &[4, 120, 139_001], &["max"]),
        pieces(DType::F32, &[4, 120, 139_001], &["argmax"]),
        pieces(DType::BF16, &[12, 40, 100_001], &["sum", "mean", "var", "min", "max", "argmax"]),
        pieces(DType::I8, &[3, 260, 300_007], &["sum"]),
    ];
    check(calls.into_iter().chain(apart));
}

/// The CUDA text of the kernel of a call of rows, behind its head.
fn body_of_rows(dtype: DType, rows: i64, extent: i64, ops: &[&'static str]) -> String {
    let (input, axes) = in_memory(dtype, &[(rows, 1, false), (extent, 1, true)], 0);
    let call = Call { input, axes, ops: ops.to_vec(), nan: NanPolicy::Propagate };
    let target = TargetChoice::Cuda { arch: None }.facts().unwrap();
    let text = written(&call, &target).unwrap();
    text.split_once("__global__").unwrap().1.to_owned()
}

#[test]
fn slabs_of_narrow_rows_are_on_their_way_until_the_barrier() {
    let body = body_of_rows(DType::BF16, 398_671, 301, &["logsumexp"]);
    let lines: Vec<&str> = body.lines().map(str::trim).collect();
    let copies = lines.iter().rposition(|line| line.starts_with("cx_copy_16(")).expect("a copy");
    let wait = lines.iter().position(|line| *line == "cx_wait_for_copies();").expect("a wait");
    let barrier = lines.iter().position(|line| *line == "__syncthreads();").expect("a barrier");
    assert!(copies < wait && wait < barrier, "{body}");
    assert!(!body_of_rows(DType::F32, 59_465, 1009, &["var"]).contains("cx_copy_"));
}

#[test]
fn words_are_asked_for_before_any_is_folded_and_rows_past_the_end_need_no_guard() {
    let body = body_of_rows(DType::BF16, 234_375, 512, &["sum", "mean", "var", "min", "max", "argmax"]);
    let eighth = body.match_indices("*(uint4*)(A").nth(7).expect("eight words").0;
    let first_fold = body.find("_run[0] = t").expect("a fold");
    assert!(eighth < first_fold, "{body}");
    let guards = body.lines().filter(|line| line.contains("if (") && line.contains("234375")).count();
    assert_eq!(guards, 1, "the guard of the results: {body}");
}

/// Extents of the axes in order of memory, which of them are reduced, and registers of a thread.
fn small_call() -> impl Strategy<Value = (Call, u32)> {
    let extents = vec![1i64, 2, 3, 5, 8, 16, 31, 33, 64, 100, 257, 700];
    let axes = prop::collection::vec((prop::sample::select(extents), any::<bool>()), 1..4);
    let names = one_input();
    let all = names.len();
    let ops = prop_oneof![
        2 => prop::sample::subsequence(names.clone(), 1..7),
        1 => prop::sample::subsequence(names.clone(), 7..=all),
        1 => prop::sample::subsequence(names, all)
    ];
    let registers = prop::sample::select(vec![255u32, 128, 64, 40, 20, 8, 1]);
    (prop::sample::select(DType::ALL.to_vec()), axes, ops.prop_shuffle(), registers).prop_map(
        |(dtype, mut axes, ops, registers)| {
            while axes.iter().map(|axis| axis.0).product::<i64>() > 3000 {
                axes.pop();
            }
            axes[0].1 |= axes.iter().all(|axis| !axis.1);
            let shape: Vec<i64> = axes.iter().map(|axis| axis.0).collect();
            let reduced = (0..).zip(&axes).filter(|(_, axis)| axis.1).map(|(at, _)| at).collect();
            let input = ArrayInfo { dtype, strides: compact_strides(&shape), shape };
            (Call { input, axes: reduced, ops, nan: NanPolicy::Propagate }, registers)
        },
    )
}

/// A call over a view, whose axes lie in memory in that order, outermost first, each with so many elements behind it that are none of the view.
fn view_call(
    dtype: DType,
    axes: &[(i64, i64)],
    order: &[usize],
    reduced: &[i64],
    ops: &[&'static str],
) -> Call {
    let mut strides = vec![0; axes.len()];
    let mut next = 1;
    for &axis in order.iter().rev() {
        strides[axis] = next;
        next *= axes[axis].0 + axes[axis].1;
    }
    let shape = axes.iter().map(|axis| axis.0).collect();
    let input = ArrayInfo { dtype, shape, strides };
    Call { input, axes: reduced.to_vec(), ops: ops.to_vec(), nan: NanPolicy::Propagate }
}

#[test]
fn views_have_plans() {
    let mut calls = Vec::new();
    for name in ["softmax", "rms_norm", "layer_norm"] {
        // Fewer rows than words have lanes, of several dimensions.
        calls.push(view_call(
            DType::F64,
            &[(25, 0), (3, 0), (9, 0), (8, 0)],
            &[2, 1, 0, 3],
            &[1, 2],
            &[name],
        ));
        calls.push(view_call(DType::F32, &[(9, 0), (5, 1), (4, 0)], &[0, 1, 2], &[0, 1], &[name]));
    }
    // What threads ask for first is of pieces of which steps end inside.
    let several = ["minloc", "logsumexp", "count_nonzero", "argmax_last"];
    calls.push(view_call(DType::F16, &[(5000, 0), (512, 0), (2, 0)], &[1, 2, 0], &[0, 2], &several));
    let mut state = 15u64;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % n as u64) as usize
    };
    let extents = [2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 25, 32, 33, 64, 77, 100, 128, 257, 1000, 4096, 5000];
    let statistics = ["sum", "mean", "var", "max", "min", "argmax", "logsumexp", "minloc", "prod", "any"];
    while calls.len() < 90 {
        let rank = 2 + below(3);
        let longest = if rank > 3 { 13 } else { extents.len() };
        let axes: Vec<(i64, i64)> = (0..rank)
            .map(|_| (extents[below(longest)], if below(4) == 0 { 1 + below(3) as i64 } else { 0 }))
            .collect();
        let mut order: Vec<usize> = (0..rank).collect();
        (1..rank).rev().for_each(|at| order.swap(at, below(at + 1)));
        let reduced: Vec<i64> = (0..rank as i64).filter(|_| below(2) == 0).collect();
        let dtype = [DType::F32, DType::F16, DType::F64, DType::I8, DType::BF16][below(5)];
        let normalization = ["softmax", "log_softmax", "layer_norm", "rms_norm"][below(4)];
        let first = below(statistics.len());
        let ops = if below(2) == 0 && dtype != DType::I8 {
            vec![normalization]
        } else {
            (0..1 + below(4)).map(|at| statistics[(first + at) % statistics.len()]).collect()
        };
        if !reduced.is_empty() {
            calls.push(view_call(dtype, &axes, &order, &reduced, &ops));
        }
    }
    check(calls.into_iter());
}

/// Plans a call for a machine, has the plan verified for it, and runs it in the simulator: the distance of its results from the
/// exact ones is within what is stated.
fn run_with(call: &Call, target: &Target) -> Result<(), Box<dyn std::error::Error>> {
    let (info, request) = (std::slice::from_ref(&call.input), call.request());
    let nest = kernel_for(info, &request, target)?;
    permitted(nest.clone(), target)?;
    let n = call.input.shape.iter().product::<i64>() as usize;
    let input = array(call.input.dtype, &call.input.shape, &numbers(n, Special::Zeros, 5));
    // The kernel has the dimensions that axes are fused to.
    let problem = Problem::new(info, None, Some(&call.axes), ResultForm::default(), true)?;
    let (shape, strides): (Vec<i64>, Vec<i64>) =
        problem.dims.iter().map(|dim| (dim.extent, dim.strides[0])).unzip();
    let function =
        Function::of_kernel(nest, &CompileOptions { device: SIMULATED, ..CompileOptions::default() })?;
    let given = [("A".to_owned(), Value::from(&input.view(&shape, &strides, 0)?))].into_iter().collect();
    let called = function.call_named(&Arguments { values: given, random: None })?;
    let report = called.report.ok_or("no report")?;
    if !report.is_clean() {
        return Err(report.to_string().into());
    }
    let outputs = called.buffers.into_iter().filter(|buffer| buffer.name != "A");
    let checked = coulis::reduce::check(info, &request)?;
    let made = outputs.zip(checked.results()).map(|(buffer, (name, _))| {
        let bytes = buffer.array.as_bytes().ok_or("results with gaps")?;
        let array = Array::from_bytes(buffer.array.dtype(), &problem.out_shape, bytes)?;
        Ok(NamedArray { name: name.to_owned(), array })
    });
    let plan = PlanInfo { name: String::new(), trace: String::new(), reasons: Vec::new(), tuned: None };
    let outcome = Outcome {
        results: made.collect::<Result<_, Box<dyn std::error::Error>>>()?,
        plan,
        seconds: 0.0,
        bytes: 0,
        device: String::new(),
        axes: problem.axes.clone(),
        notices: Vec::new(),
    };
    let verified = coulis::reduce::verify_outcome(&[input], &request, &outcome)?;
    match verified.results.iter().find(|result| result.refuted.is_some()) {
        Some(wrong) => Err(format!("{wrong:?}").into()),
        None => Ok(()),
    }
}

#[test]
fn every_set_of_statistics_is_right_however_few_registers_a_thread_has() {
    let n_calls = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let mut runner = TestRunner::deterministic();
    let mut faults = Vec::new();
    for nth in 0..n_calls {
        let (call, registers) = small_call().new_tree(&mut runner).unwrap().current();
        let plain = Target::simulated(32);
        let plain = if nth % 2 == 0 { plain } else { swift(&plain) };
        let target = Target { block: BlockLimits { registers, ..plain.block }, ..plain };
        if let Err(error) = run_with(&call, &target) {
            faults.push(format!("{call:?} for {target:?}: {error}"));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// What threads do beside reading is less where memory is swift: fewer of them share a row, and a thread has more of a column
/// under way. These are other plans than of the same machine with slower memory, and as right.
#[test]
fn plans_for_swift_memory_are_others_and_right() {
    let plain = Target { n_threads: 2048, ..Target::simulated(32) };
    let five = ["sum", "mean", "var", "min", "max"];
    let six = ["sum", "mean", "var", "min", "max", "argmax"];
    let two = ["mean", "var"];
    for (dtype, shape, axes, ops) in [
        (DType::F32, &[40, 9216][..], &[1][..], &five[..]),
        (DType::BF16, &[40, 16384], &[1], &six[..]),
        (DType::F32, &[600, 128], &[1], &six[..]),
        (DType::F32, &[4200, 117], &[1], &six[..]),
        (DType::I8, &[400, 528], &[1], &["sum"][..]),
        (DType::F32, &[260, 70], &[0], &five[..]),
        // Images of 28 x 28, 56 x 56, 26 x 52 and 30 x 44, whose accesses are no whole turns of warps; a chunk with an image fewer.
        (DType::F32, &[16, 40, 784], &[0, 2], &two[..]),
        (DType::BF16, &[19, 40, 3136], &[0, 2], &five[..]),
        (DType::F16, &[16, 40, 1352], &[0, 2], &["var", "argmax"][..]),
        (DType::F32, &[13, 9, 1320], &[0, 2], &two[..]),
        // Too few images for chunks of them.
        (DType::F32, &[3, 40, 784], &[0, 2], &two[..]),
    ] {
        let input = ArrayInfo { dtype, shape: shape.to_vec(), strides: compact_strides(shape) };
        let call = Call { input, axes: axes.to_vec(), ops: ops.to_vec(), nan: NanPolicy::Propagate };
        let plan = |target: &Target| {
            let planned = kernel_for(std::slice::from_ref(&call.input), &call.request(), target).unwrap();
            print_kernel(&planned)
        };
        assert!(plan(&plain) != plan(&swift(&plain)), "{call:?} has the same plan");
        if let Err(error) = run_with(&call, &swift(&plain)) {
            panic!("{call:?}: {error}");
        }
    }
}

/// Rows of 7 are walked as one, so that each of the lanes of a thread has a row of its own. What tells them apart is
/// added to a position where a run is closed; before, all lanes count the same steps.
#[test]
fn positions_in_rows_walked_as_one_are_counted_from_the_begin_of_runs() {
    let target = TargetChoice::Cuda { arch: None }.facts().unwrap();
    let (input, axes) = in_memory(DType::I8, &[(1_000_000, 1, true), (7, 1, false)], 0);
    let call = Call { input, axes, ops: vec!["argmax"], nan: NanPolicy::Propagate };
    let text = written(&call, &target).unwrap();
    // The row of each of eight lanes, in both walks of a run and where it is closed.
    let of_lanes = text.lines().filter(|line| line.contains("/ 7)") || line.contains("/ (int64_t)7)"));
    assert!((8..=24).contains(&of_lanes.count()), "{text}");
    assert!(text.contains("= cx_max_i8("), "the extremum of integers waits for no comparison\n{text}");
}

#[test]
fn conditions_on_elements_that_were_read_are_no_branches() {
    // Steps of branches by the dozen: NVRTC 13.0 lost lanes of a warp at the barrier behind them.
    let input =
        ArrayInfo { dtype: DType::F32, shape: vec![18, 53, 40, 13, 3], strides: vec![27_560, 520, 13, 1, 0] };
    let ops = vec!["norm1", "count", "maxloc", "prod"];
    let call = Call { input, axes: vec![1, 3, 4], ops, nan: NanPolicy::Propagate };
    let text = written(&call, &Target::cuda("sm_90a").unwrap()).unwrap();
    assert!(text.contains("A_word") && !text.contains("||"), "{text}");
}
