//! The part `coulis._coulis.te`: tensor expressions, schedules, and functions built from them.

use pyo3::prelude::*;

use crate::{axis, expr, fold, function, schedule, tensor};

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
