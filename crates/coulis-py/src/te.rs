//! The part `coulis._coulis.te`: tensor expressions, schedules, and functions built from them.

use pyo3::prelude::*;

use crate::{axis, expr, fold, function, schedule, tensor};

/// `te.power` of two values, one of them an expression.
pub fn power<'py>(base: &Bound<'py, PyAny>, exponent: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    base.py().import("coulis.te")?.getattr("power")?.call1((base, exponent))
}

/// Registers the part.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let te = PyModule::new(m.py(), "te")?;
    expr::register(&te)?;
    axis::register(&te)?;
    tensor::register(&te)?;
    fold::register(&te)?;
    schedule::register(&te)?;
    function::register(&te)?;
    m.add_submodule(&te)
}
