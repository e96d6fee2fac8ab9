//! What the Python half of the package asks before anything runs: types of results, and the steps of a reduction by parts.

use coulis::partial::{OfNone, partial};
use coulis::reduce::check;
use coulis::{ArrayInfo, DType, NanPolicy, Request};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::dtype;
use crate::error::OrRaise;
use crate::options::{self, Ops, Options};
use crate::reducer::Reducer;

/// Registers `results_of` and `steps_of`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(results_of, m)?)?;
    m.add_function(wrap_pyfunction!(steps_of, m)?)?;
    m.add_function(wrap_pyfunction!(step_of, m)?)
}

/// The request of these statistics of elements of one type.
fn request_of(
    py: Python<'_>,
    dtype: DType,
    ops: &Bound<'_, PyAny>,
    nan: NanPolicy,
    ddof: f64,
    acc_dtype: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Vec<DType>, Request)> {
    let ops = Ops::of(ops)?;
    let options = Options {
        axis: None,
        keepdims: false,
        nan,
        ddof,
        init: None,
        acc_dtype,
        dtype: None,
        alpha: None,
        beta: None,
        fast_math: false,
        reproducible: false,
        plan: None,
    };
    let dtypes = vec![dtype; ops.n_inputs()];
    let request = options.request(py, &ops, &dtypes)?;
    Ok((dtypes, request))
}

/// Names and types of the results of statistics of elements of a type.
#[pyfunction]
fn results_of(
    py: Python<'_>,
    x_dtype: &Bound<'_, PyAny>,
    ops: &Bound<'_, PyAny>,
) -> PyResult<Vec<(String, &'static str)>> {
    let (dtypes, request) = request_of(py, dtype(x_dtype)?, ops, NanPolicy::Propagate, 0.0, None)?;
    let one = |dtype: &DType| ArrayInfo { dtype: *dtype, shape: vec![1], strides: vec![1] };
    let infos: Vec<ArrayInfo> = dtypes.iter().map(one).collect();
    let call = check(&infos, &request).or_raise()?;
    Ok(call.results().map(|(name, dtype)| (name.to_owned(), dtype.name())).collect())
}

/// The reducers of a reduction by parts: from elements to states (`part`), from states to a state (`merge`) and to results
/// (`finish`); type of each field of a state, and whether it holds a position; whether
/// parts may be merged in any order; names and types of the results, and what they are where no element takes part: a
/// `value`, nothing that they tell (`untold`), or a position of -1 (`no position`).
#[pyfunction]
fn steps_of<'py>(
    py: Python<'py>,
    x_dtype: &Bound<'py, PyAny>,
    ops: &Bound<'py, PyAny>,
    nan: &Bound<'py, PyAny>,
    ddof: &Bound<'py, PyAny>,
    acc_dtype: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let policy = options::nan(nan)?;
    let (dtypes, request) = request_of(py, dtype(x_dtype)?, ops, policy, options::ddof(ddof)?, acc_dtype)?;
    let steps = py.detach(|| partial(&dtypes, &request)).or_raise()?;
    let answer = PyDict::new(py);
    let word = |of_none: &OfNone| match of_none {
        OfNone::Value => "value",
        OfNone::Untold => "untold",
        OfNone::NoPosition => "no position",
    };
    let results: Vec<(&str, &str, &str)> = (steps.results.iter().zip(&steps.of_none))
        .map(|(result, of_none)| (result.name.as_str(), result.dtype.name(), word(of_none)))
        .collect();
    answer.set_item("results", results)?;
    let fields: Vec<(&str, bool)> = steps.fields.iter().map(|f| (f.dtype.name(), f.is_position)).collect();
    answer.set_item("fields", fields)?;
    answer.set_item("any_order", steps.part.reducer().claims.commutative)?;
    for (name, own) in [("part", steps.part), ("merge", steps.merge), ("finish", steps.finish)] {
        let again = py.import(intern!(py, "coulis._coulis"))?.getattr(intern!(py, "step_of"))?;
        let words = (name, x_dtype, ops, nan, ddof, acc_dtype).into_pyobject(py)?;
        answer.set_item(name, Bound::new(py, Reducer::of(own, (again.unbind(), words.unbind())))?)?;
    }
    Ok(answer)
}

/// One of the reducers of `steps_of`, for processes to which it is sent.
#[pyfunction]
fn step_of<'py>(
    py: Python<'py>,
    step: &str,
    x_dtype: &Bound<'py, PyAny>,
    ops: &Bound<'py, PyAny>,
    nan: &Bound<'py, PyAny>,
    ddof: &Bound<'py, PyAny>,
    acc_dtype: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    steps_of(py, x_dtype, ops, nan, ddof, acc_dtype)?.get_item(step)
}
