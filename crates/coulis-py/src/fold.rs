//! Reductions in Python: `te.sum(A[i, k], axis=k)` and its like, and user-defined reducers from lambdas.
//!
//! The lambdas of a reducer are called with variables as soon as the types of the sources are known; what they give is
//! the reducer. Nothing of Python runs when the program does.

use coulis::DType;
use coulis::te::{self, Expr, IterVar, Reduction, TensorError, Var};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::axis::{is_axes, reduce_axes};
use crate::constant::{self, expr_fitted, fitted};
use crate::error::OrRaise;
use crate::expr::{Reduce, expr_of, exprs_of, items_of, wrap};

/// Registers the functions as a part of `te`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(fold, m)?)?;
    m.add_function(wrap_pyfunction!(fold_by, m)?)?;
    m.add_function(wrap_pyfunction!(folds_axes, m)?)
}

/// Whether the second argument of a reducer names axes, so that it is not an operand.
#[pyfunction]
fn folds_axes(object: &Bound<'_, PyAny>) -> bool {
    is_axes(object)
}

/// A built-in reduction of one source.
type Builtin = fn(Expr, &[IterVar]) -> Result<Reduction, TensorError>;

/// The reduction of that name: `sum`, `prod`, `min`, `max`, `all`, `any`.
#[pyfunction]
fn fold<'py>(
    name: &str,
    source: &Bound<'py, PyAny>,
    axis: &Bound<'py, PyAny>,
    condition: Option<&Bound<'py, PyAny>>,
    init: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let make: Builtin = match name {
        "sum" => te::sum,
        "prod" => te::prod,
        "min" => te::min,
        "max" => te::max,
        "all" => te::all,
        "any" => te::any,
        other => return Err(PyValueError::new_err(format!("there is no reduction `{other}`"))),
    };
    if items_of(source)?.len() != 1 {
        return Err(PyTypeError::new_err(format!(
            "`{name}` folds one source; te.comm_reducer folds several"
        )));
    }
    let reduction = make(expr_of(source)?, &reduce_axes(axis)?).or_raise()?;
    finish(source.py(), reduction, condition, init, false)
}

/// The reduction by a user-defined reducer. `params` name the two states.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn fold_by<'py>(
    name: &str,
    params: (String, String),
    combine: &Bound<'py, PyAny>,
    identity: &Bound<'py, PyAny>,
    source: &Bound<'py, PyAny>,
    axis: &Bound<'py, PyAny>,
    condition: Option<&Bound<'py, PyAny>>,
    init: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = source.py();
    let is_tuple = source.is_instance_of::<PyTuple>() || source.is_instance_of::<PyList>();
    let sources = exprs_of(source)?;
    let dtypes: Vec<DType> = sources.iter().map(Expr::dtype).collect();
    let identity = identities(py, name, identity, &dtypes)?;
    let state = |name: &str| -> Vec<Var> {
        let named = |field: usize| if is_tuple { format!("{name}_{field}") } else { name.to_owned() };
        identity.iter().enumerate().map(|(field, id)| Var::new(&named(field), id.dtype())).collect()
    };
    let (left, right) = (state(&params.0), state(&params.1));
    let body = combined(py, combine, &left, &right, is_tuple)?;
    // The constants of a combiner take the type of its state.
    let body: Vec<Expr> = body
        .into_iter()
        .enumerate()
        .map(|(field, expr)| match identity.get(field) {
            Some(id) if expr.as_int().is_some() => expr_fitted(
                expr,
                id.dtype(),
                &format!("what the combiner of `{name}` gives for field {field}"),
            ),
            _ => Ok(expr),
        })
        .collect::<PyResult<_>>()?;
    let reduction =
        te::Reduction::of_parts(name, (left, right), body, identity, sources, &reduce_axes(axis)?);
    finish(py, reduction.or_raise()?, condition, init, is_tuple)
}

/// The identities that a function of type names gives.
fn identities(
    py: Python<'_>,
    name: &str,
    identity: &Bound<'_, PyAny>,
    dtypes: &[DType],
) -> PyResult<Vec<Expr>> {
    let names = PyTuple::new(py, dtypes.iter().map(|dtype| dtype.name()))?;
    let found = identity.call1(names)?;
    let values = items_of(&found)?;
    // The combiner is called with states of that many fields, so what it does with others is no fault of its own.
    if values.len() != dtypes.len() {
        return Err(PyValueError::new_err(format!(
            "the identity of `{name}` is to give one value a source, of which there are {}, got {}",
            dtypes.len(),
            values.len()
        )));
    }
    let fields = values.iter().zip(dtypes).enumerate();
    fields
        .map(|(at, (value, dtype))| {
            constant::identity(value, *dtype, &format!("identity {at} of reducer `{name}`"))
        })
        .collect()
}

/// What the combiner gives for two states.
fn combined(
    py: Python<'_>,
    combine: &Bound<'_, PyAny>,
    left: &[Var],
    right: &[Var],
    is_tuple: bool,
) -> PyResult<Vec<Expr>> {
    let states = |vars: &[Var]| -> PyResult<Py<PyAny>> {
        let fields = vars.iter().map(|var| wrap(py, var.expr())).collect::<PyResult<Vec<_>>>()?;
        match (is_tuple, fields.first()) {
            (false, Some(one)) => Ok(one.clone().into_any().unbind()),
            _ => Ok(PyTuple::new(py, fields)?.into_any().unbind()),
        }
    };
    exprs_of(&combine.call1((states(left)?, states(right)?))?)
}

/// The reduction with its condition and initial values, one Python object a component.
fn finish<'py>(
    py: Python<'py>,
    mut reduction: Reduction,
    condition: Option<&Bound<'py, PyAny>>,
    init: Option<&Bound<'py, PyAny>>,
    is_tuple: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(condition) = condition {
        reduction = reduction.where_(expr_of(condition)?).or_raise()?;
    }
    if let Some(init) = init {
        let values = items_of(init)?;
        let typed = |(at, value): (usize, &Bound<'py, PyAny>)| -> PyResult<Expr> {
            let is_number = value.cast::<crate::expr::PrimExpr>().is_err();
            match reduction.identity.get(at).filter(|_| is_number) {
                Some(identity) => fitted(
                    value,
                    identity.dtype(),
                    &format!("initial value {at} of reducer `{}`", reduction.name),
                ),
                None => expr_of(value),
            }
        };
        let values = values.iter().enumerate().map(typed).collect::<PyResult<_>>()?;
        reduction = reduction.init(values).or_raise()?;
    }
    let component =
        |index| -> PyResult<Bound<'py, PyAny>> { Ok(Reduce::wrap(py, reduction.clone(), index)?.into_any()) };
    if !is_tuple && reduction.arity() == 1 {
        return component(0);
    }
    let all = (0..reduction.arity()).map(component).collect::<PyResult<Vec<_>>>()?;
    Ok(PyTuple::new(py, all)?.into_any())
}
