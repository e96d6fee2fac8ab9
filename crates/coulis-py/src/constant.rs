//! Numbers of Python that take the type of a state: identities, and constants that functions of states give.
//!
//! A number of Python has no width of its own, so it is read into the type that is wanted. One that this type does not hold
//! is refused: an identity that wraps is the identity of nothing.

use coulis::DType;
use coulis::te::{Expr, Node, for_each_expr, operators};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use crate::expr::{PrimExpr, expr_of, maybe_expr};

/// An identity of a type: a number, which takes the type, or a constant of it. `what` names it in errors.
pub fn identity(object: &Bound<'_, PyAny>, dtype: DType, what: &str) -> PyResult<Expr> {
    check_constant(object, dtype, what)?;
    // A number of Python has no type of its own.
    let Ok(typed) = object.cast::<PrimExpr>() else { return fitted(object, dtype, what) };
    match typed.get().expr.dtype() {
        found if found == dtype => Ok(typed.get().expr.clone()),
        found => {
            let message =
                format!("{what} is a constant of {found}, and its source is of {dtype}; {}", legal(dtype));
            Err(PyValueError::new_err(message))
        }
    }
}

/// Refuses what is neither a number nor a constant.
pub fn check_constant(object: &Bound<'_, PyAny>, dtype: DType, what: &str) -> PyResult<()> {
    if object.is_instance_of::<PyFloat>() || object.is_instance_of::<PyInt>() {
        return Ok(());
    }
    let Some(expr) = maybe_expr(object)? else {
        let found = object.get_type().name()?;
        let message = format!("{what} is to be a number, got an object of type `{found}`; {}", legal(dtype));
        return Err(PyTypeError::new_err(message));
    };
    let mut is_constant = true;
    for_each_expr(&expr, &mut |part| {
        is_constant &= !matches!(part.node(), Node::Var(_) | Node::Load(..));
    });
    if is_constant {
        return Ok(());
    }
    let message = format!("{what} is `{}`, which is no constant; {}", object.repr()?, legal(dtype));
    Err(PyValueError::new_err(message))
}

fn legal(dtype: DType) -> String {
    format!("legal is a number, or a constant of {dtype} as te.const and te.min_value give")
}

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
