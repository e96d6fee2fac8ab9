//! Calls and their plans.

#![allow(dead_code, reason = "not every test needs all of it")]

use coulis_ir::args::{ArrayInfo, compact_strides};
use coulis_ir::{DType, Target};
use coulis_plan::{OutputSpec, Problem, ResultForm, Sketch, Spec, choose, schedule};

/// A call of one statistic of one array.
pub fn spec(op: &str, dtype: DType, shape: &[i64], strides: &[i64], axes: &[i64]) -> Spec {
    let input = ArrayInfo { dtype, shape: shape.to_vec(), strides: strides.to_vec() };
    let problem = Problem::new(std::slice::from_ref(&input), None, Some(axes), ResultForm::default(), true)
        .expect("a problem");
    let request = coulis_reducers::ReducerRequest::new(&[dtype]);
    let reducer = coulis_reducers::find(op).expect("a statistic").build(&request).expect("a reducer");
    let outputs = reducer.results.iter().map(|field| OutputSpec::plain(field.dtype)).collect();
    Spec::new(problem, vec![dtype], false, reducer, outputs, None)
}

/// Name of the strategy, what it decided, and the trace, on a GPU.
pub fn planned(spec: &Spec) -> (&'static str, Sketch, String) {
    planned_for(spec, &Target::cuda("sm_90a").expect("a target"))
}

/// The same on any machine.
pub fn planned_for(spec: &Spec, target: &Target) -> (&'static str, Sketch, String) {
    let choice = choose(spec, target).expect("a plan");
    let planned = schedule(spec, choice.strategy, &choice.sketch).expect("a schedule");
    let trace = planned.schedule.trace().to_string();
    (choice.strategy.name, choice.sketch, trace)
}

/// The same of an array without gaps.
pub fn of(op: &str, dtype: DType, shape: &[i64], axes: &[i64]) -> (&'static str, Sketch, String) {
    planned(&spec(op, dtype, shape, &compact_strides(shape), axes))
}
