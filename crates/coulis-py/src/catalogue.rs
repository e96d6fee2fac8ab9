//! The catalogue of statistics, for the half of the package that is written in Python.
//!
//! The conveniences (`coulis.sum(x)`) are made from this list, so a new reducer is a new function there.

use pyo3::prelude::*;

/// Registers `ops`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(ops, m)?)
}

/// Name, number of inputs and summary of each statistic.
#[pyfunction]
fn ops() -> Vec<(&'static str, usize, &'static str)> {
    coulis::CATALOGUE.iter().map(|e| (e.name, e.n_inputs, e.summary)).collect()
}
