//! The options of `coulis.reduce`, read from what Python gives.

use std::collections::BTreeMap;

use coulis::{DType, DeviceChoice, NanPolicy, Request, Scalar};
use pyo3::exceptions::{PyNotImplementedError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::array::dtype;
use crate::error::axis_exception;
use crate::reducer::Reducer;

/// The statistics that a call names.
pub struct Ops {
    /// Names, none twice.
    pub names: Vec<String>,
    /// Reducers of the caller's own among them.
    pub reducers: Vec<Py<Reducer>>,
    /// Whether one was given, and not a list: then its result stands alone.
    pub is_single: bool,
}

/// Arrays that the statistics of the catalogue among these read: 1 or 2.
pub fn n_inputs(names: &[String]) -> usize {
    let listed = coulis::CATALOGUE.iter().filter(|entry| names.iter().any(|name| name == entry.name));
    listed.map(|entry| entry.n_inputs).max().unwrap_or(1)
}

impl Ops {
    /// Reads a name, a reducer, or a list of these.
    pub fn of(given: &Bound<'_, PyAny>) -> PyResult<Ops> {
        let mut ops = Ops { names: Vec::new(), reducers: Vec::new(), is_single: false };
        if let Ok(list) = given.cast::<PyList>() {
            list.iter().try_for_each(|op| ops.add(&op))?;
        } else if let Ok(tuple) = given.cast::<PyTuple>() {
            tuple.iter().try_for_each(|op| ops.add(&op))?;
        } else {
            ops.add(given)?;
            ops.is_single = true;
        }
        Ok(ops)
    }

    /// A normalization of that name.
    pub fn named(name: &str) -> Ops {
        Ops { names: vec![name.to_owned()], reducers: Vec::new(), is_single: true }
    }

    /// Arrays that the statistics of the catalogue among them read: 1 or 2.
    pub fn n_inputs(&self) -> usize {
        n_inputs(&self.names)
    }

    fn add(&mut self, op: &Bound<'_, PyAny>) -> PyResult<()> {
        let name = if let Ok(name) = op.cast::<PyString>() {
            name.to_str()?.to_owned()
        } else if let Ok(reducer) = op.cast::<Reducer>() {
            self.reducers.push(reducer.clone().unbind());
            reducer.get().name().to_owned()
        } else {
            let message = format!(
                "`ops` is to be the name of a statistic, a reducer, or a list of these, got an object of type `{}`",
                op.get_type().name()?
            );
            return Err(PyTypeError::new_err(message));
        };
        if self.names.contains(&name) {
            return Err(PyValueError::new_err(format!("`ops` names `{name}` twice; once is enough")));
        }
        self.names.push(name);
        Ok(())
    }
}

/// The refusal of an option: what it is called, and what is legal.
fn wrong(name: &str, legal: &str, given: &Bound<'_, PyAny>) -> PyErr {
    let kind = given.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("`{name}` is to be {legal}, got an object of type `{kind}`"))
}

fn no_axis(given: &Bound<'_, PyAny>) -> PyErr {
    wrong("axis", "an integer, a tuple of integers or None", given)
}

fn flag(name: &str, given: &Bound<'_, PyAny>) -> PyResult<bool> {
    given.extract().map_err(|_| wrong(name, "True or False", given))
}

/// A float option, by name.
pub fn number(name: &str, given: &Bound<'_, PyAny>) -> PyResult<f64> {
    given.extract().map_err(|error: PyErr| {
        let is_large = error.is_instance_of::<PyOverflowError>(given.py());
        if is_large {
            return PyValueError::new_err(format!("`{name}` is larger than the largest float64"));
        }
        wrong(name, "a real number", given)
    })
}

fn word<'a>(name: &str, legal: &str, given: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    match given.cast::<PyString>() {
        Ok(text) => text.to_str(),
        Err(_) => Err(wrong(name, legal, given)),
    }
}

/// `keepdims`.
pub fn keepdims(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    flag("keepdims", given)
}

/// `fast_math`.
pub fn fast_math(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    flag("fast_math", given)
}

/// `reproducible`.
pub fn reproducible(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    flag("reproducible", given)
}

/// `ddof`.
pub fn ddof(given: &Bound<'_, PyAny>) -> PyResult<f64> {
    number("ddof", given)
}

/// `nan`.
pub fn nan(given: &Bound<'_, PyAny>) -> PyResult<NanPolicy> {
    let legal = "\"propagate\" or \"ignore\"";
    match word("nan", legal, given)? {
        "propagate" => Ok(NanPolicy::Propagate),
        "ignore" => Ok(NanPolicy::Ignore),
        other => Err(PyValueError::new_err(format!("`nan` is to be {legal}, got \"{other}\""))),
    }
}

/// `device`, if it is given.
pub fn device(given: &Bound<'_, PyAny>) -> PyResult<Option<DeviceChoice>> {
    if given.is_none() {
        return Ok(None);
    }
    // An object of `coulis.device` prints itself as `cuda(0)`.
    if let (Ok(kind), Ok(index)) = (given.getattr("kind"), given.getattr("index"))
        && !given.is_instance_of::<PyString>()
    {
        return device_of(&format!("{kind}:{index}")).map(Some);
    }
    device_of(word("device", "a device, its name or None", given)?).map(Some)
}

/// Axes: none, one, or a sequence.
pub fn axes(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Vec<i64>>> {
    let Some(given) = given.filter(|g| !g.is_none()) else { return Ok(None) };
    let one = |axis: &Bound<'_, PyAny>| -> PyResult<i64> {
        // `True` is no axis, though Python counts it among the integers.
        let is_number = !axis.is_instance_of::<PyBool>() && axis.hasattr("__index__")?;
        if !is_number {
            return Err(no_axis(axis));
        }
        // Arrays have the method, and are no integers unless they have no axes.
        let index = axis.call_method0("__index__").map_err(|_| no_axis(axis))?;
        index
            .extract()
            .map_err(|_| axis_exception(format!("axis {index} is out of range: no array has as many")))
    };
    if given.is_instance_of::<PyInt>() && !given.is_instance_of::<PyBool>() {
        return Ok(Some(vec![one(given)?]));
    }
    if given.is_instance_of::<PyTuple>() || given.is_instance_of::<PyList>() {
        let list: PyResult<Vec<i64>> = given.try_iter()?.map(|axis| one(&axis?)).collect();
        return list.map(Some);
    }
    Ok(Some(vec![one(given)?]))
}

/// A value for all statistics (under the name ``""``), or one a statistic in a dict.
fn by_op<T>(
    given: Option<&Bound<'_, PyAny>>,
    read: impl Fn(&Bound<'_, PyAny>) -> PyResult<T>,
) -> PyResult<BTreeMap<String, T>> {
    let mut values = BTreeMap::new();
    let Some(given) = given.filter(|g| !g.is_none()) else { return Ok(values) };
    match given.cast::<PyDict>() {
        Ok(dict) => {
            for (name, value) in dict.iter().filter(|(_, value)| !value.is_none()) {
                values.insert(name.extract::<String>()?, read(&value)?);
            }
        }
        Err(_) => {
            values.insert(String::new(), read(given)?);
        }
    }
    Ok(values)
}

fn no_plan(given: &Bound<'_, PyAny>) -> PyErr {
    let kind = given.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "`plan` is to be what `coulis.plan` gives, or its trace as text, got an object of type `{kind}`"
    ))
}

fn scalar(value: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    if value.is_instance_of::<PyBool>() {
        return Ok(Scalar::Bool(value.extract()?));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Scalar::Float(value.extract()?));
    }
    let refused = || -> PyResult<PyErr> {
        let shape = value.getattr("shape").map(|shape| format!(" of shape {shape}")).unwrap_or_default();
        Ok(PyTypeError::new_err(format!(
            "`init` is to be one number for every output, or a dict of numbers by statistic, got an object of type \
             `{}`{shape}; to go on from an array, give it as `out` with `beta=1`, or combine it with the result",
            value.get_type().name()?
        )))
    };
    // Arrays of one element say that they are numbers, which they are only where they have no axes.
    if value.getattr("ndim").is_ok_and(|n| n.ne(0).unwrap_or(true)) {
        return Err(refused()?);
    }
    if let Ok(index) = value.call_method0("__index__") {
        if let Ok(small) = index.extract::<i64>() {
            return Ok(Scalar::Int(small));
        }
        if let Ok(large) = index.extract::<u64>() {
            return Ok(Scalar::UInt(large));
        }
        // No integer type has it, and floats may.
        return match index.extract::<f64>() {
            // The least of `int64` is what some become that are less.
            Ok(float) if float == i64::MIN as f64 => {
                let message = format!(
                    "`init` is {index}, which is beyond every integer type; where the result is a float, give one"
                );
                Err(PyValueError::new_err(message))
            }
            Ok(float) => Ok(Scalar::Float(float)),
            Err(_) => {
                let bits: u64 = index.call_method0("bit_length")?.extract()?;
                let message =
                    format!("`init` is an integer of {bits} bits, which is beyond every element type");
                Err(PyValueError::new_err(message))
            }
        };
    }
    match value.extract() {
        Ok(float) => Ok(Scalar::Float(float)),
        Err(_) => Err(refused()?),
    }
}

/// The device that a word names.
pub fn device_of(text: &str) -> PyResult<DeviceChoice> {
    DeviceChoice::named(text).ok_or_else(|| {
        PyValueError::new_err(format!(
            "there is no device `{text}`; legal are auto, cpu, cpu:0, cuda, cuda:N and sim"
        ))
    })
}

/// The options that the facade takes as they are.
pub struct Options<'a, 'py> {
    /// `axis`.
    pub axis: Option<&'a Bound<'py, PyAny>>,
    /// `keepdims`.
    pub keepdims: bool,
    /// `nan`.
    pub nan: NanPolicy,
    /// `ddof`.
    pub ddof: f64,
    /// `init`.
    pub init: Option<&'a Bound<'py, PyAny>>,
    /// `acc_dtype`.
    pub acc_dtype: Option<&'a Bound<'py, PyAny>>,
    /// `dtype`.
    pub dtype: Option<&'a Bound<'py, PyAny>>,
    /// `alpha`.
    pub alpha: Option<&'a Bound<'py, PyAny>>,
    /// `beta`.
    pub beta: Option<&'a Bound<'py, PyAny>>,
    /// `fast_math`.
    pub fast_math: bool,
    /// `reproducible`.
    pub reproducible: bool,
    /// `plan`.
    pub plan: Option<&'a Bound<'py, PyAny>>,
}

impl Options<'_, '_> {
    /// Whether nothing is asked for but axes, and that these stay.
    pub fn are_plain(&self) -> bool {
        let given = [self.init, self.acc_dtype, self.dtype, self.alpha, self.beta, self.plan];
        given.into_iter().flatten().all(|option| option.is_none())
            && self.nan == NanPolicy::Propagate
            && self.ddof == 0.0
            && !self.fast_math
            && !self.reproducible
    }

    /// The accumulator type that is asked for.
    pub fn acc_dtype(&self) -> PyResult<Option<DType>> {
        self.acc_dtype.filter(|d| !d.is_none()).map(dtype).transpose()
    }

    /// As [`Options::request`], of what the function `prologue` makes of the inputs, where there is one.
    pub fn request_with(
        &self,
        prologue: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
        ops: &Ops,
        inputs: &[DType],
    ) -> PyResult<Request> {
        let Some(function) = prologue.filter(|given| !given.is_none()) else {
            return self.request(py, ops, inputs);
        };
        let (prologue, folded) = crate::prologue::prologue(function, inputs, self.acc_dtype()?)?;
        Ok(Request { prologue: Some(prologue), ..self.request(py, ops, &folded)? })
    }

    /// The request of these statistics of inputs of these types, without mask and device.
    pub fn request(&self, py: Python<'_>, ops: &Ops, inputs: &[DType]) -> PyResult<Request> {
        for (name, is_asked) in [("fast_math", self.fast_math), ("reproducible", self.reproducible)] {
            if is_asked {
                return Err(PyNotImplementedError::new_err(format!("`{name}=True` is not supported yet")));
            }
        }
        let mut request = Request::new(&[]);
        request.ops.clone_from(&ops.names);
        request.reducers = ops.reducers.iter().map(|r| r.get().own(py, inputs)).collect::<PyResult<_>>()?;
        request.axes = axes(self.axis)?;
        request.keepdims = self.keepdims;
        request.nan = self.nan;
        request.ddof = self.ddof;
        request.acc_dtype = self.acc_dtype()?;
        request.out_dtypes = by_op::<DType>(self.dtype, dtype)?;
        request.alpha = by_op(self.alpha, |value| number("alpha", value))?;
        request.beta = by_op(self.beta, |value| number("beta", value))?;
        let init = by_op(self.init, scalar)?;
        for (name, value) in init {
            if name.is_empty() {
                request.init.extend(ops.names.iter().map(|op| (op.clone(), value)));
            } else {
                request.init.insert(name, value);
            }
        }
        request.plan = match self.plan.filter(|p| !p.is_none()) {
            None => None,
            Some(plan) => match plan.extract::<String>() {
                Ok(text) => Some(text),
                Err(_) => {
                    Some(plan.getattr("trace").and_then(|trace| trace.extract()).map_err(|_| no_plan(plan))?)
                }
            },
        };
        Ok(request)
    }
}
