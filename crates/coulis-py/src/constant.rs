//! Numbers of Python that take the type of a state: identities, and constants that functions of states give.
//!
//! A number of Python has no width of its own, so it is read into the type that is wanted. One that this type does not hold
//! is refused: an identity that wraps is the identity of nothing.

use coulis::DType;
use coulis::te::{Expr, operators};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use crate::expr::{PrimExpr, expr_of};

/// The object as an expression of a type: exactly, where it is a constant, and converted otherwise. `what` names it
/// in errors.
pub fn fitted(object: &Bound<'_, PyAny>, dtype: DType, what: &str) -> PyResult<Expr> {
    if object.cast::<PrimExpr>().is_err() && !object.is_instance_of::<PyBool>() {
        if object.is_instance_of::<PyFloat>() {
            return float(object.extract()?, dtype, what);
        }
        if object.is_instance_of::<PyInt>() {
            let value = object.extract::<i64>().map(i128::from);
            let value = value.or_else(|_| object.extract::<u64>().map(i128::from));
            let value = value.map_err(|_| no_place(&object.to_string(), dtype, what))?;
            return int(value, dtype, what);
        }
    }
    expr_fitted(expr_of(object)?, dtype, what)
}

/// The expression in a type, exactly where it is a constant.
pub fn expr_fitted(expr: Expr, dtype: DType, what: &str) -> PyResult<Expr> {
    match (expr.as_int(), expr.as_float()) {
        (Some(value), _) => int(value, dtype, what),
        (None, Some(value)) => float(value, dtype, what),
        (None, None) => Ok(operators::convert(expr, dtype)),
    }
}

fn int(value: i128, dtype: DType, what: &str) -> PyResult<Expr> {
    let Some((least, most)) = dtype.int_range() else { return float(value as f64, dtype, what) };
    if (least..=most).contains(&value) {
        return Ok(Expr::int_of(value, dtype));
    }
    Err(no_place(&value.to_string(), dtype, what))
}

fn float(value: f64, dtype: DType, what: &str) -> PyResult<Expr> {
    if dtype.is_float() {
        let made = Expr::float(value, dtype);
        return match made.as_float() {
            Some(kept) if value.is_finite() != kept.is_finite() => {
                Err(no_place(&value.to_string(), dtype, what))
            }
            _ => Ok(made),
        };
    }
    let is_whole = value.fract() == 0.0 && value.abs() < 2f64.powi(64);
    if is_whole { int(value as i128, dtype, what) } else { Err(no_place(&value.to_string(), dtype, what)) }
}

fn no_place(value: &str, dtype: DType, what: &str) -> PyErr {
    let legal = match dtype.int_range() {
        Some((least, most)) => format!("the integers from {least} to {most}"),
        None => "the numbers that do not round to an infinity, and the infinities".to_owned(),
    };
    PyValueError::new_err(format!(
        "{what} is {value}, which {dtype} does not hold; legal are {legal} (te.min_value and te.max_value give the ends)"
    ))
}
