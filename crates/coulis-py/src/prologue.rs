//! Prologues: a function of symbolic elements, called when a call of `coulis.reduce` is read.

use coulis::te::{Expr, Var};
use coulis::{DType, Prologue};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::expr::{exprs_of, wrap};

/// Refuses what is no function of `n` arguments, those with a default not counted.
pub fn takes(function: &Bound<'_, PyAny>, what: &str, n: usize) -> PyResult<()> {
    let py = function.py();
    let check = py.import(intern!(py, "coulis._functions"))?.getattr(intern!(py, "check"))?;
    check.call1((function, what, (n,))).map(|_| ())
}

/// What is folded in place of elements of these types, and its types.
pub fn prologue(
    function: &Bound<'_, PyAny>,
    inputs: &[DType],
    acc_dtype: Option<DType>,
) -> PyResult<(Prologue, Vec<DType>)> {
    let py = function.py();
    takes(function, "`prologue`", inputs.len())?;
    let elements: Vec<Var> =
        inputs.iter().map(|dtype| Var::new("v", Prologue::element_dtype(*dtype, acc_dtype))).collect();
    let arguments = elements.iter().map(|var| wrap(py, var.expr())).collect::<PyResult<Vec<_>>>()?;
    let given = function.call1(PyTuple::new(py, arguments)?)?;
    let values = exprs_of(&given).map_err(|_| {
        let found = given.get_type();
        PyTypeError::new_err(format!(
            "`prologue` is to give one or two expressions of its elements, got an object of {found}"
        ))
    })?;
    let dtypes = values.iter().map(Expr::dtype).collect();
    Ok((Prologue::of(elements, values), dtypes))
}
