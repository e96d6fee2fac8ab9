//! Reducers of the caller's own, as Python holds them.

use coulis::OwnReducer;
use pyo3::prelude::*;

/// Registers `Reducer`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Reducer>()
}

/// A reducer of the caller's own, which `coulis.reduce` takes in place of a name.
#[pyclass(frozen, from_py_object, module = "coulis")]
#[derive(Clone)]
pub struct Reducer(OwnReducer);

impl Reducer {
    /// Of a reducer whose claims were looked at.
    pub fn new(own: OwnReducer) -> Reducer {
        Reducer(own)
    }

    /// As the facade takes it.
    pub fn own(&self) -> &OwnReducer {
        &self.0
    }
}

#[pymethods]
impl Reducer {
    /// Its name.
    #[getter]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    fn __repr__(&self) -> String {
        format!("<coulis.Reducer {}>", self.0.name())
    }
}
