//! What the tests share of plans that keep on the chip what a map reads again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common::{Special, array, numbers};
use crate::meaning::{Case, is_right, values};
use coulis::reduce::array_info;
use coulis::{Arguments, Array, CompileOptions, DType, DeviceChoice, Function, SimReport, Value};
use coulis_ir::Target;
use coulis_ir::args::{ArrayInfo, compact_strides};
use coulis_plan::{Map, Order, OutputSpec, Problem, Spec, choose, schedule};
use coulis_reducers::{NormalizationRequest, ReducerRequest, find_normalization};

/// Panels of columns: numbers, with some that are special.
#[allow(dead_code, reason = "not all tests are of columns")]
pub fn panels(dtype: DType, shape: &[i64], special: Special) -> Array {
    let n = shape.iter().product::<i64>() as usize;
    array(dtype, shape, &numbers(n, special, 21))
}

/// Asserts that results, whose axes are the kept ones and then those that are reduced, are within what is stated of the normalization
/// over these.
#[track_caller]
fn assert_is(name: &'static str, axes: &[usize], x: &Array, found: &Array, what: &str) {
    let extents: Vec<usize> = x.shape().iter().map(|n| *n as usize).collect();
    let is_kept = |axis: &usize| !axes.contains(axis);
    let order: Vec<usize> =
        (0..extents.len()).filter(is_kept).chain((0..extents.len()).filter(|axis| !is_kept(axis))).collect();
    let in_place = |mut at: usize| {
        let mut index = vec![0; extents.len()];
        for (axis, extent) in extents.iter().enumerate().rev() {
            (at, index[axis]) = (at / extent, at % extent);
        }
        order.iter().fold(0, |at, axis| at * extents[*axis] + index[*axis])
    };
    let found = values(found);
    let exact = Case::new(name, axes).exact(x);
    for (at, exact) in exact.into_iter().enumerate() {
        let found = found[in_place(at)];
        assert!(is_right(found, exact, x.dtype()), "{at}: {found} {exact:?}: {what}");
    }
}

/// Asserts that this strategy reads each element of columns once, that its results are right and that the simulator has nothing to say
/// against it; the trace.
#[track_caller]
#[allow(dead_code, reason = "not all tests are of columns")]
pub fn assert_read_once(
    strategy: &str,
    target: &Target,
    name: &'static str,
    (x, axes): (&Array, &[usize]),
) -> String {
    let of: Vec<i64> = axes.iter().map(|axis| *axis as i64).collect();
    let (trace, result, report) = by(strategy, target, name, (x, &of));
    let what = format!("{name} of {} {:?}:\n{trace}", x.dtype(), x.shape());
    assert!(report.is_clean(), "{what}\n{report}");
    let (loads, stores) = (&report.counters.global_loads, &report.counters.global_stores);
    assert_eq!((loads.bytes, stores.bytes), (x.n_bytes(), x.n_bytes()), "{what}");
    assert_is(name, axes, x, &result, &what);
    trace
}

/// The simulator, with one order of warps.
pub const SIMULATED: DeviceChoice = DeviceChoice::Sim { warp: 32, orders: 1 };

/// The normalization over one axis of an array without gaps.
pub fn spec(name: &str, dtype: DType, shape: &[i64], axis: i64) -> Spec {
    spec_over(name, dtype, shape, &[axis])
}

/// The same over several axes.
pub fn spec_over(name: &str, dtype: DType, shape: &[i64], axes: &[i64]) -> Spec {
    spec_of(name, &ArrayInfo { dtype, shape: shape.to_vec(), strides: compact_strides(shape) }, axes)
}

/// The same of an array that lies in any way.
fn spec_of(name: &str, info: &ArrayInfo, axes: &[i64]) -> Spec {
    let dtype = info.dtype;
    let problem =
        Problem::of_map(std::slice::from_ref(info), None, &[], Some(axes), Order::RowMajor, false).unwrap();
    let fold = ReducerRequest::new(&[dtype]).with_two_walks();
    let request = NormalizationRequest::new(fold);
    let normalization = find_normalization(name).unwrap().build(&request).unwrap();
    let outputs = vec![OutputSpec::plain(normalization.result.dtype)];
    let map =
        Some(Map { lambda: normalization.map.clone(), beside: Vec::new(), staged: None, left_out: None });
    Spec::new(problem, vec![dtype], false, normalization.reducer, outputs, map)
}

/// The normalization on a machine of these facts, run by the simulator, where that strategy is to be the planner's choice: the
/// plan's trace, the result, and what the simulator reports.
pub fn by(
    strategy: &str,
    target: &Target,
    name: &str,
    (x, axes): (&Array, &[i64]),
) -> (String, Array, SimReport) {
    let spec = spec_of(name, &array_info(x), axes);
    let choice = choose(&spec, target).unwrap();
    assert_eq!(choice.strategy.name, strategy, "{name} of {} {:?}", x.dtype(), x.shape());
    let planned = schedule(&spec, choice.strategy, &choice.sketch).unwrap();
    let args = planned.statement.program.args();
    let options = CompileOptions { device: SIMULATED, ..CompileOptions::default() };
    let function = coulis::te::build_with(&planned.schedule, args, "reduce", &options).unwrap();
    let dims = &spec.problem.dims;
    let (shape, strides): (Vec<i64>, Vec<i64>) = dims.iter().map(|dim| (dim.extent, dim.strides[0])).unzip();
    let called = call(&function, &[&x.view(&shape, &strides, spec.problem.starts[0]).unwrap()]);
    let result = called.1.into_iter().next_back().unwrap();
    (planned.schedule.trace().to_string(), result, called.0)
}

fn call(function: &Function, inputs: &[&Array]) -> (SimReport, Vec<Array>) {
    let names = function.parameters().iter().map(|p| p.name.clone());
    let given = names.zip(inputs.iter().map(|x| Value::from(*x))).collect();
    let called = function.call_named(&Arguments { values: given, random: None }).unwrap();
    (called.report.unwrap(), called.buffers.into_iter().map(|b| b.array).collect())
}
