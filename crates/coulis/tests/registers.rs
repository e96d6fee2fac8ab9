//! Plans for GPUs keep their states within the registers of a thread: several statistics at once, on every kind of shape.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use coulis_ir::args::{ArrayInfo, compact_strides};
use coulis_ir::verify::verify_for;
use coulis_ir::{DType, Target};
use coulis_lower::Options;
use coulis_plan::{OutputSpec, Problem, ResultForm, Spec, choose, schedule};

/// The permit for an sm_90a of the kernel that folds these statistics.
fn permit(ops: &[&str], dtype: DType, shape: &[i64], axes: &[i64]) -> Result<&'static str, String> {
    let target = Target::cuda("sm_90a").unwrap();
    let info = ArrayInfo { dtype, shape: shape.to_vec(), strides: compact_strides(shape) };
    let problem =
        Problem::new(std::slice::from_ref(&info), None, Some(axes), ResultForm::default(), true).unwrap();
    let request = coulis_reducers::ReducerRequest::new(&[dtype]);
    let parts: Vec<_> =
        ops.iter().map(|op| (*op, coulis_reducers::find(op).unwrap().build(&request).unwrap())).collect();
    let reducer = coulis_reducers::product(&parts).unwrap().reducer;
    let outputs = reducer.results.iter().map(|field| OutputSpec::plain(field.dtype)).collect();
    let spec = Spec::new(problem, vec![dtype], false, reducer, outputs, None);
    let choice = choose(&spec, &target).unwrap();
    let planned = schedule(&spec, choice.strategy, &choice.sketch).unwrap();
    let args = planned.statement.program.args();
    let nest = coulis_schedule::build_nest(&planned.schedule, args, "reduce").unwrap();
    let options = Options { target: &target, simple_mode: false };
    let flat = coulis_lower::lower(nest, &options, &mut |_, _| {}).unwrap();
    match verify_for(flat, &target) {
        Ok(_) => Ok(choice.strategy.name),
        Err(why) => Err(format!("{ops:?} of {dtype} {shape:?} over {axes:?}: {why}")),
    }
}

#[test]
fn several_statistics_fit_on_every_kind_of_shape() {
    let shapes: [(&[i64], &[i64]); 3] = [(&[64, 40, 128], &[1]), (&[4096, 300], &[0]), (&[300, 4096], &[1])];
    let ops = ["sum", "mean", "var", "min", "max", "argmax"];
    let refused: Vec<String> =
        shapes.iter().filter_map(|(shape, axes)| permit(&ops, DType::F32, shape, axes).err()).collect();
    assert!(refused.is_empty(), "{} plans were refused, the first:\n{}", refused.len(), refused[0]);
}
