//! What this machine has, for people who ask why a call runs where it runs.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::OrRaise;

/// Registers `machine`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(machine, m)?)
}

/// Device, threads, C compiler, cache folder, and what was found of CUDA.
#[pyfunction]
fn machine(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let found = py.detach(coulis::machine::machine).or_raise()?;
    let answer = PyDict::new(py);
    answer.set_item("device", found.device)?;
    answer.set_item("threads", found.threads)?;
    answer.set_item("vector_bytes", found.vector_bytes)?;
    let compiler =
        found.compiler.map_or_else(|why| why, |(command, version)| format!("{command}: {version}"));
    answer.set_item("compiler", compiler)?;
    answer.set_item("cache", found.cache.map(|path| path.display().to_string()))?;
    // Lines without a name are the places where a part that is missing was looked for; its own line counts them.
    for (name, words) in found.cuda.into_iter().filter(|(name, _)| !name.is_empty()) {
        answer.set_item(name, words)?;
    }
    Ok(answer)
}
