//! Plans and measurements of `coulis.reduce`, for the half of the package that is written in Python.

use coulis::bench::{Amount, Init, Verdict, Workload, measure};
use coulis::reduce::{plan, predict, prepare};
use coulis::{ArrayInfo, DeviceChoice, NanPolicy, Request};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::{Given, dtype, is_array};
use crate::dlpack::{Place, row_major};
use crate::expr::dtype_named;
use crate::options::{self, Ops, Options, axes, device_of};
use crate::outside;

/// Registers `plan_of` and `bench_of`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(described, m)?)?;
    m.add_function(wrap_pyfunction!(plan_of, m)?)?;
    m.add_function(wrap_pyfunction!(bench_of, m)?)
}

/// What is planned for: element type, shape, strides in elements, and the device that holds it, if that is not the host.
/// It is what a plan keeps of an array.
type Described = (String, Vec<i64>, Vec<i64>, Option<String>);

/// What is planned for: that of an array, or of a shape and an element type.
#[pyfunction]
fn described(x: &Bound<'_, PyAny>, x_dtype: &Bound<'_, PyAny>) -> PyResult<Described> {
    if is_array(x)? {
        let given = Given::of(x, "x")?;
        let ArrayInfo { dtype, shape, strides } = given.info.clone();
        let device = match given.place {
            Place::Host => None,
            Place::Cuda(id) => Some(format!("cuda:{id}")),
        };
        return Ok((dtype.name().to_owned(), shape, strides, device));
    }
    let Ok(shape) = x.extract::<Vec<i64>>() else {
        let message =
            format!("an array or a shape is wanted, got an object of type `{}`", x.get_type().name()?);
        return Err(PyTypeError::new_err(message));
    };
    let strides = row_major(&shape);
    Ok((dtype(x_dtype)?.name().to_owned(), shape, strides, None))
}

/// The array that is planned for, and its device unless another is asked for.
fn info_of(described: Described, on: Option<&str>) -> PyResult<(ArrayInfo, DeviceChoice)> {
    let (name, shape, strides, place) = described;
    let on = on.or(place.as_deref()).map(device_of).transpose()?.unwrap_or_default();
    Ok((ArrayInfo { dtype: dtype_named(&name)?, shape, strides }, on))
}

/// Name, trace, reasons and predictions of a plan; and its source, where that is asked for, which compiles it.
#[pyfunction]
fn plan_of<'py>(
    py: Python<'py>,
    x: Described,
    ops: &Bound<'py, PyAny>,
    axis: Option<&Bound<'py, PyAny>>,
    options: &Bound<'py, PyDict>,
    wants_source: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let ops = Ops::of(ops)?;
    let get = |name: &str| options.get_item(name);
    let text = |name: &str| get(name)?.filter(|v| !v.is_none()).map(|v| v.extract::<String>()).transpose();
    let (info, on) = info_of(x, text("device")?.as_deref())?;
    let (init, acc, out) = (get("init")?, get("acc_dtype")?, get("dtype")?);
    let (alpha, beta, trace) = (get("alpha")?, get("beta")?, get("plan")?);
    let read = Options {
        axis,
        keepdims: get("keepdims")?.map_or(Ok(false), |v| options::keepdims(&v))?,
        nan: get("nan")?.map_or(Ok(NanPolicy::Propagate), |v| options::nan(&v))?,
        ddof: get("ddof")?.map_or(Ok(0.0), |v| options::ddof(&v))?,
        init: init.as_ref(),
        acc_dtype: acc.as_ref(),
        dtype: out.as_ref(),
        alpha: alpha.as_ref(),
        beta: beta.as_ref(),
        fast_math: false,
        reproducible: false,
        plan: trace.as_ref(),
    };
    let mut request: Request = read.request(py, &ops, &vec![info.dtype; ops.n_inputs()])?;
    request.device = on;
    let infos = vec![info; ops.n_inputs()];
    let (plan, prediction, source) = outside::at_length(py, || {
        let found = plan(&infos, &request)?;
        let source = match wants_source {
            true => prepare(&infos, &request)?.source().map(str::to_owned),
            false => None,
        };
        Ok::<_, coulis::Error>((found, predict(&infos, &request)?, source))
    })?;
    let answer = PyDict::new(py);
    answer.set_item("name", plan.name)?;
    answer.set_item("trace", plan.trace)?;
    answer.set_item("reasons", plan.reasons)?;
    answer.set_item("bytes", prediction.bytes)?;
    answer.set_item("seconds", prediction.time.map(|time| time.seconds))?;
    answer.set_item("source", source)?;
    Ok(answer)
}

/// Times a reduction of a made-up input.
#[pyfunction]
fn bench_of<'py>(
    py: Python<'py>,
    x: Described,
    ops: &Bound<'py, PyAny>,
    axis: Option<&Bound<'py, PyAny>>,
    on: Option<&str>,
    seconds: f64,
    verify: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let (info, device) = info_of(x, on)?;
    let workload = Workload {
        id: "bench".to_owned(),
        dtype: info.dtype,
        shape: info.shape,
        axes: axes(axis)?,
        ops: Ops::of(ops)?.names,
        out_dtype: None,
        plan: None,
    };
    let options = coulis::bench::Options {
        init: Init::Integers,
        verify,
        amount: Some(Amount::Seconds(seconds)),
        threads: None,
        device,
        tuned: coulis::Tuned::default(),
    };
    let report = outside::at_length(py, || measure(&workload, &options))?;
    let answer = PyDict::new(py);
    let timing = report.timing;
    answer.set_item("seconds", timing.map(|t| t.best))?;
    answer.set_item("median", timing.map(|t| t.median))?;
    answer.set_item("bytes", report.bytes)?;
    answer.set_item("gb_per_second", timing.map(|t| report.gb_per_second(t.best)))?;
    answer.set_item("floor", report.floor)?;
    answer.set_item("plan", report.plan)?;
    answer.set_item("device", report.device)?;
    answer.set_item("verified", report.verdict.map(|v| matches!(v, Verdict::Verified { .. })))?;
    Ok(answer)
}
