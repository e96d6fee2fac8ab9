//! Errors of coulis as exceptions of Python: the one place where that is decided.
//!
//! The exceptions are Python's own, so that callers catch what they would catch of any library. An axis out of range is
//! both a `ValueError` and an `IndexError`, as NumPy's is. The code in brackets of the message says where an error arose.

use coulis::{Error, Owner};
use pyo3::exceptions::{
    PyIndexError, PyKeyboardInterrupt, PyMemoryError, PyNotImplementedError, PyRuntimeError, PyTypeError,
    PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

/// Registers `AxisError`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("AxisError", axis_error(m.py())?)
}

/// The exception of an axis that the array does not have.
fn axis_error(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static TYPE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = TYPE.get_or_try_init(py, || {
        let bases = PyTuple::new(py, [py.get_type::<PyValueError>(), py.get_type::<PyIndexError>()])?;
        let dict = PyDict::new(py);
        dict.set_item("__module__", "coulis")?;
        dict.set_item("__doc__", "An axis that the array does not have.")?;
        Ok::<_, PyErr>(py.get_type::<PyType>().call1(("AxisError", bases, dict))?.unbind())
    })?;
    Ok(made.bind(py))
}

/// The exception of an axis, with its text.
pub fn axis_exception(text: String) -> PyErr {
    Python::attach(|py| match axis_error(py).and_then(|ty| ty.call1((text,))) {
        Ok(value) => PyErr::from_value(value),
        Err(failure) => failure,
    })
}

/// The exception of an error.
pub fn exception(error: Error) -> PyErr {
    let text = error.to_string();
    let text = text.strip_prefix("error").unwrap_or(&text).to_owned();
    match (error.owner, error.code) {
        (Owner::User, "interrupted") => PyKeyboardInterrupt::new_err(()),
        (Owner::User, "memory") => PyMemoryError::new_err(text),
        (Owner::User, "reduce/axis") => axis_exception(text),
        (Owner::User, "reduce/type") => PyTypeError::new_err(text),
        (Owner::User, _) => PyValueError::new_err(text),
        (Owner::Unsupported, "device" | "run") | (Owner::Bug, _) => PyRuntimeError::new_err(text),
        (Owner::Unsupported, _) => PyNotImplementedError::new_err(text),
    }
}

/// Results of coulis as results of Python.
pub trait OrRaise<T> {
    /// The value, or the exception of the error.
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: Into<Error>> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| exception(error.into()))
    }
}
