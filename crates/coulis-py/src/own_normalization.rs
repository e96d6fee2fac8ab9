//! Normalizations of the caller's own: a function of symbolic values, called once for the types of the elements.
//!
//! The function gets the elements, the finished statistics of their row and the arrays beside them, all in the type in which
//! the map computes, and gives the expression of one element's result. Nothing of Python runs when an array is mapped.

use std::sync::{Arc, Mutex, PoisonError};

use coulis::te::{Expr, Lambda, Var};
use coulis::{Along, DType, Normalize, UserNormalization};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::expr::{exprs_of, wrap};
use crate::options::n_inputs;
use crate::prologue::takes;

/// A normalization of the caller's own; `coulis.normalization` makes it.
#[pyclass(frozen, module = "coulis._coulis")]
pub struct OwnNormalization {
    normalize: Normalize,
    /// Arrays that its statistics read: 1 or 2.
    n_inputs: usize,
    /// What the function raised when it was called last.
    failure: Arc<Mutex<Option<PyErr>>>,
}

#[pymethods]
impl OwnNormalization {
    #[new]
    fn new(
        name: String,
        map: Py<PyAny>,
        statistics: Vec<String>,
        beside: Vec<(String, String)>,
        left_out: Option<f64>,
    ) -> PyResult<OwnNormalization> {
        let mut placed = Vec::with_capacity(beside.len());
        for (array, along) in beside {
            let found =
                [Along::Reduced, Along::Kept, Along::All].into_iter().find(|a| along_name(*a) == along);
            let Some(found) = found else {
                let message = format!(
                    "the array `{array}` of `{name}` lies along `{along}`; legal are reduced, kept and all"
                );
                return Err(PyValueError::new_err(message));
            };
            placed.push((array, found));
        }
        let failure = Arc::new(Mutex::new(None));
        let n_inputs = n_inputs(&statistics);
        let map = Arc::new(map_of(map, failure.clone()));
        let normalize = Normalize::own(UserNormalization { name, statistics, beside: placed, left_out, map });
        Ok(OwnNormalization { normalize, n_inputs, failure })
    }
}

impl OwnNormalization {
    /// What a request asks for.
    pub fn normalize(&self) -> Normalize {
        self.normalize.clone()
    }

    /// Arrays that its statistics read: 1 or 2.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// What the function raised, in place of what came of it.
    pub fn or_failure<T>(&self, found: PyResult<T>) -> PyResult<T> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (found, failure) {
            (Err(_), Some(failure)) => Err(failure),
            (found, _) => found,
        }
    }
}

/// What Python calls the axes of an array beside the elements.
pub fn along_name(along: Along) -> &'static str {
    match along {
        Along::Reduced => "reduced",
        Along::Kept => "kept",
        Along::All => "all",
    }
}

/// The expression that the function gives for values of these types, and its variables.
fn called(py: Python<'_>, map: &Py<PyAny>, dtypes: &[DType]) -> PyResult<Lambda> {
    takes(map.bind(py), "`map`", dtypes.len())?;
    let params: Vec<Var> = dtypes.iter().map(|dtype| Var::new("v", *dtype)).collect();
    let arguments = params.iter().map(|var| wrap(py, var.expr())).collect::<PyResult<Vec<_>>>()?;
    let found = exprs_of(&map.bind(py).call1(PyTuple::new(py, arguments)?)?)?;
    if found.len() != 1 {
        return Err(PyTypeError::new_err(format!("a map gives one value an element, got {}", found.len())));
    }
    Ok(Lambda { params, body: found })
}

/// The function as one of expressions. What it gave is kept, so that it is called once for each list of types.
fn map_of(
    map: Py<PyAny>,
    failure: Arc<Mutex<Option<PyErr>>>,
) -> impl Fn(&[Expr], &[Expr], &[Expr]) -> Expr + Send + Sync + 'static {
    let known: Mutex<Vec<Lambda>> = Mutex::default();
    move |elements, statistics, beside| {
        let arguments: Vec<Expr> = elements.iter().chain(statistics).chain(beside).cloned().collect();
        let dtypes: Vec<DType> = arguments.iter().map(Expr::dtype).collect();
        let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of = |lambda: &&Lambda| lambda.params.iter().map(Var::dtype).eq(dtypes.iter().copied());
        let seen = lock().iter().find(is_of).cloned();
        let found = match seen {
            Some(found) => Ok(found),
            None => Python::attach(|py| called(py, &map, &dtypes)).inspect(|made| lock().push(made.clone())),
        };
        match found {
            Ok(lambda) => lambda.apply(&arguments).swap_remove(0),
            Err(error) => {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                // It is refused as no float, and the caller gets the error.
                Expr::bool(false)
            }
        }
    }
}
