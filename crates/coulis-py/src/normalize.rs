//! `coulis._coulis.normalize`: maps over the elements and the statistics of their row, for the functions of
//! `python/coulis/_normalizations.py`.

use std::rc::Rc;

use coulis::{DType, DeviceChoice, NanPolicy, Normalize};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::Given;
use crate::error::OrRaise;
use crate::options::{self, Ops, Options};
use crate::own_normalization::{OwnNormalization, along_name};
use crate::recent::{self, Known, NormalizeSettings, Wanted};
use crate::reduce::{Call, inputs as inputs_of};
use crate::result::order_of;

/// Registers `normalize` and `normalizations`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<OwnNormalization>()?;
    m.add_function(wrap_pyfunction!(normalize, m)?)?;
    m.add_function(wrap_pyfunction!(normalizations, m)?)
}

/// Name, default and meaning of a number that a normalization takes.
type Number = (&'static str, Option<f64>, &'static str);

/// Name, axes and meaning of an array that a normalization takes.
type BesideArray = (&'static str, &'static str, &'static str);

/// Of each normalization: name, summary, details, example, the numbers and arrays that it takes, and whether it takes
/// `ddof`.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "the tuple is Python's")]
fn normalizations()
-> Vec<(&'static str, &'static str, &'static str, &'static str, Vec<Number>, Vec<BesideArray>, bool)> {
    let one = |e: &&'static coulis::NormalizationEntry| {
        let numbers = e.parameters.iter().map(|p| (p.name, p.default, p.meaning)).collect();
        let arrays =
            e.beside.iter().map(|array| (array.name, along_name(array.along), array.meaning)).collect();
        (e.name, e.summary, e.details, e.example, numbers, arrays, e.takes_ddof)
    };
    coulis::NORMALIZATIONS.iter().map(one).collect()
}

/// A normalization that Python names, or makes of a function of its own.
pub fn listed(given: &Bound<'_, PyAny>) -> PyResult<Normalize> {
    match given.cast::<OwnNormalization>() {
        Ok(own) => Ok(own.get().normalize()),
        Err(_) => Normalize::named(&given.extract::<String>()?).or_raise(),
    }
}

/// It with these arrays beside the elements, by name, and these numbers.
pub fn with_settings(listed: Normalize, settings: &NormalizeSettings) -> Normalize {
    let beside: Vec<&str> = settings.beside.iter().map(String::as_str).collect();
    let set = |normalize: Normalize, (name, value): &(String, f64)| normalize.with(name, *value);
    settings.parameters.iter().fold(listed.beside(&beside), set)
}

/// The numbers that are given, by name.
pub fn numbers_of(parameters: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(String, f64)>> {
    let given = parameters.into_iter().flat_map(|p| p.iter()).filter(|(_, value)| !value.is_none());
    let one = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract()?;
        let value = options::number(&name, &value)?;
        Ok((name, value))
    };
    given.map(one).collect()
}

/// The result of a normalization, by name or one of the caller's own, for `x`, with `beside` its arrays and
/// `parameters` its numbers by name. The other arguments are those of `coulis.reduce`.
#[pyfunction]
#[pyo3(signature = (x, name, axis=None, beside=None, parameters=None, *, r#where=None, nan=NanPolicy::Propagate, ddof=0.0,
    acc_dtype=None, dtype=None, alpha=None, beta=None, out=None, fast_math=false, reproducible=false, device=None, stream=None,
    plan=None, prologue=None), text_signature = "(x, name, axis=None, beside=None, parameters=None, *, where=None, nan='propagate', \
    ddof=0.0, acc_dtype=None, dtype=None, alpha=None, beta=None, out=None, fast_math=False, reproducible=False, device=None, \
    stream=None, plan=None, prologue=None)")]
#[expect(clippy::too_many_arguments, reason = "the signature is Python's")]
fn normalize<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    name: &Bound<'py, PyAny>,
    axis: Option<&Bound<'py, PyAny>>,
    beside: Option<&Bound<'py, PyDict>>,
    parameters: Option<&Bound<'py, PyDict>>,
    r#where: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = options::nan)] nan: NanPolicy,
    #[pyo3(from_py_with = options::ddof)] ddof: f64,
    acc_dtype: Option<&Bound<'py, PyAny>>,
    dtype: Option<&Bound<'py, PyAny>>,
    alpha: Option<&Bound<'py, PyAny>>,
    beta: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = options::fast_math)] fast_math: bool,
    #[pyo3(from_py_with = options::reproducible)] reproducible: bool,
    #[pyo3(from_py_with = options::device)] device: Option<DeviceChoice>,
    stream: Option<&Bound<'py, PyAny>>,
    plan: Option<&Bound<'py, PyAny>>,
    prologue: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let own = name.cast::<OwnNormalization>().ok().map(Bound::get);
    let prologue = prologue.filter(|given| !given.is_none());
    let (listed, mut inputs) = (listed(name)?, inputs_of(x, None, prologue.is_some())?);
    if own.is_none() && prologue.is_none() && inputs.len() > 1 {
        let message = format!("{} arrays are given, and `{}` reads 1", inputs.len(), listed.name());
        return Err(PyValueError::new_err(message));
    }
    let dtypes: Vec<DType> = inputs.iter().map(|input| input.info.dtype).collect();
    let mut settings =
        NormalizeSettings { parameters: numbers_of(parameters)?, ..NormalizeSettings::default() };
    for (name, array) in beside.into_iter().flat_map(|b| b.iter()).filter(|(_, array)| !array.is_none()) {
        let name: String = name.extract()?;
        inputs.push(Given::of(&array, &name)?);
        settings.beside.push(name);
    }
    let options = Options {
        axis,
        keepdims: false,
        nan,
        ddof,
        init: None,
        acc_dtype,
        dtype,
        alpha,
        beta,
        fast_math,
        reproducible,
        plan,
    };
    let are_whole = inputs.iter().all(|input| input.valid.is_none());
    let is_plain = options.are_plain()
        && own.is_none()
        && r#where.is_none()
        && prologue.is_none()
        && device.is_none()
        && are_whole;
    let order = order_of(&inputs[0], out)?;
    let wanted = Wanted { ops: name, axis, keepdims: false, order, map: Some(&settings) };
    if is_plain && let Some(known) = recent::find(&wanted, &inputs) {
        return Call::plain(inputs).run(py, &known, out, stream);
    }
    let ops = Ops::named(listed.name());
    let mut request = options.request_with(prologue, py, &ops, &dtypes)?;
    request.ops.clear();
    request.order = order;
    request.normalize = Some(with_settings(listed, &settings));
    let call = Call::new(inputs, r#where, &mut request, device)?;
    let prepared = call.prepare(py, &request);
    let prepared = match own {
        Some(own) => own.or_failure(prepared),
        None => prepared,
    };
    let known = Rc::new(Known::new(ops, request, prepared?));
    if is_plain {
        recent::keep(&known, Some(settings), call.inputs());
    }
    call.run(py, &known, out, stream)
}
