//! Reducers of the caller's own: functions of symbolic values, called once for the element types of an input.
//!
//! The functions are called with variables and give expressions; nothing of Python runs when an array is reduced. What a
//! reducer claims (that the order of combining does not matter) is tried on random values first (contract N16).

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

use coulis::te::{Expr, Var};
use coulis::{DType, Error, OwnReducer, Prologue, UserReducer, comm_reducer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::array::dtype;
use crate::constant::{check_constant, expr_fitted, fitted};
use crate::error::{OrRaise, exception};
use crate::expr::{items_of, maybe_expr, wrap};

/// Registers `Reducer`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Reducer>()
}

/// A reducer of the caller's own, which `coulis.reduce` takes in place of a name. `coulis.reducer` makes it.
#[pyclass(frozen, module = "coulis")]
pub struct Reducer {
    name: String,
    /// `None` of one that coulis made itself, for one list of types.
    functions: Option<Functions>,
    /// The function and the arguments that make the same one again, of one that coulis made itself.
    origin: Option<(Py<PyAny>, Py<PyTuple>)>,
    /// Those that were made, by the types of the elements.
    made: Mutex<Vec<(Vec<DType>, OwnReducer)>>,
}

/// What a reducer is made from.
struct Functions {
    combine: Py<PyAny>,
    identity: Py<PyAny>,
    lift: Option<Py<PyAny>>,
    finish: Option<Py<PyAny>>,
    dtypes: Option<Vec<DType>>,
    commutative: bool,
}

#[pymethods]
impl Reducer {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "the signature is Python's")]
    fn new(
        py: Python<'_>,
        name: String,
        combine: Py<PyAny>,
        identity: Py<PyAny>,
        lift: Option<Py<PyAny>>,
        finish: Option<Py<PyAny>>,
        dtypes: Option<Vec<Bound<'_, PyAny>>>,
        commutative: bool,
    ) -> PyResult<Reducer> {
        let dtypes = dtypes.map(|list| list.iter().map(dtype).collect::<PyResult<Vec<_>>>()).transpose()?;
        let functions = Some(Functions { combine, identity, lift, finish, dtypes, commutative });
        let reducer = Reducer { name, functions, origin: None, made: Mutex::default() };
        // Where the types are known its laws are tried at once; else those of an input are awaited, since functions such as
        // `a ^ b` have no meaning for all of them.
        if reducer.functions.as_ref().is_some_and(|functions| functions.dtypes.is_some()) {
            reducer.own(py, &[])?;
        }
        Ok(reducer)
    }

    /// Its name.
    #[getter]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn __repr__(&self) -> String {
        format!("<coulis.Reducer {}>", self.name)
    }

    /// How another process makes it again: from its functions, which are to be found there.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        match (&self.functions, &self.origin) {
            (Some(f), _) => {
                let dtypes: Option<Vec<&str>> =
                    f.dtypes.as_ref().map(|list| list.iter().map(|dtype| dtype.name()).collect());
                let made =
                    (self.name.as_str(), &f.combine, &f.identity, &f.lift, &f.finish, dtypes, f.commutative);
                Ok((py.get_type::<Reducer>().into_any(), made.into_pyobject(py)?))
            }
            (None, Some((function, arguments))) => {
                Ok((function.bind(py).clone(), arguments.bind(py).clone()))
            }
            (None, None) => {
                Err(PyTypeError::new_err(format!("`{}` cannot be made again elsewhere", self.name)))
            }
        }
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// The same: nothing of it changes.
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }
}

impl Reducer {
    /// One that is made already, and how it is made again.
    pub fn of(own: OwnReducer, origin: (Py<PyAny>, Py<PyTuple>)) -> Reducer {
        let inputs = own.reducer().input_dtypes();
        Reducer {
            name: own.name().to_owned(),
            functions: None,
            origin: Some(origin),
            made: Mutex::new(vec![(inputs, own)]),
        }
    }

    /// The reducer for elements of these types; `n_inputs` of them at most, if the caller named types.
    pub fn own(&self, py: Python<'_>, inputs: &[DType]) -> PyResult<OwnReducer> {
        let named = self.functions.as_ref().and_then(|functions| functions.dtypes.as_deref());
        let inputs = named.unwrap_or(inputs);
        let lock = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, own)) = lock().iter().find(|(dtypes, _)| dtypes == inputs) {
            return Ok(own.clone());
        }
        let Some(functions) = &self.functions else {
            let made: Vec<String> = lock().iter().map(|(dtypes, _)| format!("{dtypes:?}")).collect();
            let message = format!("`{}` folds elements of {}, got {inputs:?}", self.name, made.join(", "));
            return Err(PyTypeError::new_err(message));
        };
        let own = functions.make(py, &self.name, inputs)?;
        lock().push((inputs.to_vec(), own.clone()));
        Ok(own)
    }
}

impl Functions {
    fn make(&self, py: Python<'_>, name: &str, inputs: &[DType]) -> PyResult<OwnReducer> {
        let identity = items_of(self.identity.bind(py))?;
        let is_tuple = self.identity.bind(py).is_instance_of::<PyTuple>();
        let elements = |dtype: &dyn Fn(DType) -> DType| -> Vec<Expr> {
            inputs.iter().map(|d| Var::new("v", dtype(*d)).expr()).collect()
        };
        let state = match &self.lift {
            Some(_) => {
                let widened = elements(&|d| Prologue::element_dtype(d, None));
                self.lifted(py, name, &widened, &Var::new("i", DType::I64).expr())?
            }
            None => elements(&|d| d),
        };
        if identity.len() != state.len() {
            return Err(PyValueError::new_err(format!(
                "the identity of reducer `{name}` is to be a number for each field of a state, of which there are {}, got {}",
                state.len(),
                identity.len()
            )));
        }
        // The state has the types that `lift` gives; those of an identity of Python's numbers follow.
        let typed = |(at, (value, field)): (usize, (&Bound<'_, PyAny>, &Expr))| {
            let what = format!("identity {at} of reducer `{name}`");
            check_constant(value, field.dtype(), &what)?;
            fitted(value, field.dtype(), &what)
        };
        let identity: Vec<Expr> =
            identity.iter().zip(&state).enumerate().map(typed).collect::<PyResult<_>>()?;
        let dtypes: Vec<DType> = identity.iter().map(Expr::dtype).collect();
        let failure: RefCell<Option<PyErr>> = RefCell::new(None);
        let caught = |given: PyResult<Vec<Expr>>| {
            given.unwrap_or_else(|error| {
                *failure.borrow_mut() = Some(error);
                Vec::new()
            })
        };
        let convert = |what: &str, exprs: Vec<Expr>| -> PyResult<Vec<Expr>> {
            let what = |at: usize| format!("field {at} of what `{what}` of reducer `{name}` gives");
            let fields = exprs.into_iter().enumerate();
            fields
                .map(|(at, e)| dtypes.get(at).map_or(Ok(e.clone()), |d| expr_fitted(e, *d, &what(at))))
                .collect()
        };
        let combine = |a: &[Expr], b: &[Expr]| {
            let call = || {
                let states = (symbolic(py, a, is_tuple)?, symbolic(py, b, is_tuple)?);
                convert(
                    "combine",
                    values(&self.combine.bind(py).call1(states)?, &format!("`combine` of reducer `{name}`"))?,
                )
            };
            caught(call())
        };
        let lift = |v: &[Expr], at: &Expr| {
            caught(self.lifted(py, name, v, at).and_then(|exprs| convert("lift", exprs)))
        };
        let finish = |s: &[Expr]| {
            let call = || match &self.finish {
                Some(finish) => {
                    let given = finish.bind(py).call1((symbolic(py, s, is_tuple)?,))?;
                    values(&given, &format!("`finish` of reducer `{name}`"))
                }
                None => Ok(s.to_vec()),
            };
            caught(call())
        };
        let mut user = UserReducer::new(name, inputs, identity, &combine);
        user.lift = self.lift.as_ref().map(|_| &lift as _);
        user.finish = self.finish.as_ref().map(|_| &finish as _);
        user.claims.commutative = self.commutative;
        let made = comm_reducer(&user);
        if let Some(error) = failure.take() {
            return Err(error);
        }
        let reducer = made.map_err(|error| exception(Error::user("reduce/reducer", error)))?;
        OwnReducer::new(reducer).or_raise()
    }

    /// The state of elements. `lift` takes their position after them where it has a parameter for it, without a default.
    fn lifted(&self, py: Python<'_>, name: &str, elements: &[Expr], position: &Expr) -> PyResult<Vec<Expr>> {
        let Some(lift) = &self.lift else { return Ok(elements.to_vec()) };
        let n = elements.len();
        let check = py.import(intern!(py, "coulis._functions"))?.getattr(intern!(py, "check"))?;
        let n_taken: usize =
            check.call1((lift, format!("`lift` of reducer `{name}`"), (n, n + 1)))?.extract()?;
        let extra = (n_taken > n).then_some(position);
        let arguments = elements.iter().chain(extra).map(|e| Ok(wrap(py, e.clone())?.into_any()));
        let arguments: Vec<Bound<'_, PyAny>> = arguments.collect::<PyResult<_>>()?;
        values(&lift.bind(py).call1(PyTuple::new(py, arguments)?)?, &format!("`lift` of reducer `{name}`"))
    }
}

/// A state as the functions see it: a value, or a tuple of values where the identity is one.
fn symbolic<'py>(py: Python<'py>, state: &[Expr], is_tuple: bool) -> PyResult<Bound<'py, PyAny>> {
    let fields = state.iter().map(|e| Ok(wrap(py, e.clone())?.into_any()));
    let mut fields: Vec<Bound<'py, PyAny>> = fields.collect::<PyResult<_>>()?;
    if !is_tuple && fields.len() == 1 {
        return Ok(fields.swap_remove(0));
    }
    Ok(PyTuple::new(py, fields)?.into_any())
}

/// The expressions of a value, or of a tuple of values, that a function gives.
fn values(given: &Bound<'_, PyAny>, function: &str) -> PyResult<Vec<Expr>> {
    let value = |item: &Bound<'_, PyAny>| {
        let found = || item.get_type().name();
        let wanted =
            |found| format!("{function} is to give an expression or a number for each field, got {found}");
        maybe_expr(item)?.map_or_else(|| Err(PyTypeError::new_err(wanted(found()?))), Ok)
    };
    items_of(given)?.iter().map(value).collect()
}
