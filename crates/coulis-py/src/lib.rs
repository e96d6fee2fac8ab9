//! The native half of the Python package `coulis`.
//!
//! The facade `coulis` does the work; here Python's arrays and words become its requests, and its answers become arrays
//! of the caller's library. One file a part, and one line here that registers it. Python's own half is under `python/`.

mod array;
mod arrow;
mod axis;
mod catalogue;
mod constant;
mod dlpack;
mod error;
mod exchange;
mod expr;
mod fold;
mod fork;
mod function;
mod library;
mod machine;
mod measure;
mod normalize;
mod options;
mod outside;
mod own_normalization;
mod partial;
mod plan;
mod prologue;
mod recent;
mod reduce;
mod reducer;
mod result;
mod schedule;
mod target;
mod te;
mod tensor;

use pyo3::prelude::*;

/// The module `coulis._coulis`.
#[pymodule]
fn _coulis(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    error::register(m)?;
    catalogue::register(m)?;
    normalize::register(m)?;
    machine::register(m)?;
    te::register(m)?;
    fork::register(m)?;
    reduce::register(m)?;
    reducer::register(m)?;
    partial::register(m)?;
    plan::register(m)?;
    Ok(())
}
