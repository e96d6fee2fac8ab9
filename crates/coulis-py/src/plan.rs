//! Plans and measurements of `coulis.reduce`, for the half of the package that is written in Python.

use coulis::bench::{Amount, Init, Verdict, Workload, measure};
use coulis::reduce::{plan, predict, prepare};
use coulis::{AlignedBytes, Array, ArrayInfo, DType, DeviceChoice, NanPolicy, Order, compact_strides};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::array::{Given, dtype, dtype_named, is_array};
use crate::dlpack::Place;
use crate::error::OrRaise;
use crate::normalize::{listed, numbers_of, with_settings};
use crate::options::{self, Ops, Options, axes, device_of};
use crate::outside;
use crate::own_normalization::OwnNormalization;
use crate::recent::NormalizeSettings;
use crate::reduce::{chosen_by, inputs as inputs_of, mask_of, nulls_of_a_map};

/// Registers `plan_of` and `bench_of`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(described, m)?)?;
    m.add_function(wrap_pyfunction!(described_beside, m)?)?;
    m.add_function(wrap_pyfunction!(plan_of, m)?)?;
    m.add_function(wrap_pyfunction!(bench_of, m)?)
}

/// What is planned for: element type, shape, strides in elements, the device that holds it, if that is not the host, and
/// whether there are nulls, which a call masks. It is what a plan keeps of an array.
type Described = (String, Vec<i64>, Vec<i64>, Option<String>, bool);

/// What is planned for of arrays beside the elements, by name.
type Beside = Vec<(String, Described)>;

/// What is planned for: that of an array, of each of a tuple of arrays, or of a shape and an element type.
#[pyfunction]
fn described(x: &Bound<'_, PyAny>, x_dtype: &Bound<'_, PyAny>) -> PyResult<Vec<Described>> {
    let are_several = match x.cast::<PyTuple>() {
        Ok(several) => {
            !several.is_empty() && several.iter().map(|one| is_array(&one)).all(|is| matches!(is, Ok(true)))
        }
        Err(_) => false,
    };
    if are_several || is_array(x)? {
        return Ok(inputs_of(x, None, false)?.iter().map(of_given).collect());
    }
    let Ok(shape) = x.extract::<Vec<i64>>() else {
        let message = match x.cast::<PyTuple>() {
            Ok(_) => format!("a shape is of integers, got {x}"),
            Err(_) => {
                format!("an array or a shape is wanted, got an object of type `{}`", x.get_type().name()?)
            }
        };
        return Err(PyTypeError::new_err(message));
    };
    Ok(vec![of_shape(shape, x_dtype)?])
}

/// What is planned for of an array beside the elements: of all that a call takes, or of a tuple, which is its shape.
#[pyfunction]
fn described_beside(x: &Bound<'_, PyAny>, name: &str, x_dtype: &Bound<'_, PyAny>) -> PyResult<Described> {
    match x.cast::<PyTuple>() {
        Ok(_) => of_shape(x.extract()?, x_dtype),
        Err(_) => Ok(of_given(&Given::of(x, name)?)),
    }
}

fn of_given(given: &Given<'_>) -> Described {
    let ArrayInfo { dtype, shape, strides } = given.info.clone();
    let device = match given.place {
        Place::Host => None,
        Place::Cuda(id) => Some(format!("cuda:{id}")),
    };
    (dtype.name().to_owned(), shape, strides, device, given.valid.is_some())
}

fn of_shape(shape: Vec<i64>, x_dtype: &Bound<'_, PyAny>) -> PyResult<Described> {
    let strides = compact_strides(&shape);
    Ok((dtype(x_dtype)?.name().to_owned(), shape, strides, None, false))
}

/// The arrays that are planned for, and the device of the first unless another is asked for.
fn infos_of(
    described: Vec<Described>,
    on: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Vec<ArrayInfo>, DeviceChoice)> {
    let place = described.first().and_then(|(_, _, _, place, _)| place.as_deref());
    let on = match on.map(options::device).transpose()?.flatten() {
        Some(on) => on,
        None => place.map(device_of).transpose()?.unwrap_or_default(),
    };
    let info =
        |(name, shape, strides, ..): Described| Ok(ArrayInfo { dtype: dtype_named(&name)?, shape, strides });
    Ok((described.into_iter().map(info).collect::<PyResult<_>>()?, on))
}

/// Name, trace, reasons and predictions of a plan; and its source, where that is asked for, which compiles it. The plan of a normalization
/// has what is planned for of the arrays beside the elements, and its numbers, both by name.
#[pyfunction]
fn plan_of<'py>(
    py: Python<'py>,
    x: Vec<Described>,
    ops: &Bound<'py, PyAny>,
    axis: Option<&Bound<'py, PyAny>>,
    options: &Bound<'py, PyDict>,
    wants_source: bool,
    map: Option<(Beside, Bound<'py, PyDict>)>,
) -> PyResult<Bound<'py, PyDict>> {
    let own = ops.cast::<OwnNormalization>().ok().map(Bound::get);
    let map = match map {
        Some((beside, numbers)) => Some((listed(ops)?, beside, numbers_of(Some(&numbers))?)),
        None => None,
    };
    let ops = match &map {
        Some((normalize, ..)) => Ops::named(normalize.name()),
        None => Ops::of(ops)?,
    };
    let get = |name: &str| options.get_item(name);
    // A mask of nulls has this shape in memory of the host; what it says is for calls.
    let of_nulls = x.iter().filter(|(.., has_nulls)| *has_nulls).map(|(_, shape, ..)| {
        let n = shape.iter().product::<i64>() as usize;
        Array::from_owned(DType::Bool, shape, AlignedBytes::zeroed(n).or_raise()?).or_raise()
    });
    let valid: Vec<Array> = of_nulls.collect::<PyResult<_>>()?;
    let (mut infos, on) = infos_of(x, get("device")?.as_ref())?;
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
        fast_math: get("fast_math")?.map_or(Ok(false), |v| options::fast_math(&v))?,
        reproducible: get("reproducible")?.map_or(Ok(false), |v| options::reproducible(&v))?,
        plan: trace.as_ref(),
    };
    let prologue = get("prologue")?.filter(|v| !v.is_none());
    // A shape is that of each input of the statistics; a prologue says by itself how many arrays it reads.
    if let (None, [one]) = (&prologue, &infos[..]) {
        infos = vec![one.clone(); own.map_or_else(|| ops.n_inputs(), OwnNormalization::n_inputs)];
    }
    let dtypes: Vec<DType> = infos.iter().map(|info| info.dtype).collect();
    let normalize = match map {
        Some((normalize, beside, parameters)) => {
            let (names, arrays): (Vec<String>, Vec<Described>) = beside.into_iter().unzip();
            infos.extend(infos_of(arrays, None)?.0);
            Some(with_settings(normalize, &NormalizeSettings { beside: names, parameters }))
        }
        None => None,
    };
    let mut request = read.request_with(prologue.as_ref(), py, &ops, &dtypes)?;
    if normalize.is_some() {
        request.ops.clear();
    }
    request.normalize = normalize;
    request.device = on;
    request.order = Order::OfInput;
    if request.normalize.is_some() && !valid.is_empty() {
        return Err(nulls_of_a_map());
    }
    let mask = mask_of(get("where")?.as_ref())?;
    // SAFETY: the mask is kept to the end of this function, and the request does not leave it.
    request.where_ = unsafe { chosen_by(mask.as_ref(), valid.iter())? };
    let found = outside::at_length(py, || {
        let found = plan(&infos, &request)?;
        let source = match wants_source {
            true => prepare(&infos, &request)?.source().map(str::to_owned),
            false => None,
        };
        Ok::<_, coulis::Error>((found, predict(&infos, &request)?, source))
    });
    let (plan, prediction, source) = match own {
        Some(own) => own.or_failure(found)?,
        None => found?,
    };
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
    x: Vec<Described>,
    ops: &Bound<'py, PyAny>,
    axis: Option<&Bound<'py, PyAny>>,
    on: Option<&Bound<'py, PyAny>>,
    seconds: f64,
    verify: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let (mut infos, device) = infos_of(x, on)?;
    let ops = Ops::of(ops)?;
    if infos.len() != 1 || ops.n_inputs() != 1 || !ops.reducers.is_empty() {
        let message = "`bench` makes up one array, for statistics of the catalogue that read one; time other calls \
                       by yourself";
        return Err(PyValueError::new_err(message));
    }
    let info = infos.swap_remove(0);
    let strides = Some(info.strides);
    let workload =
        Workload { strides, ..Workload::new("bench", info.dtype, info.shape, axes(axis)?, ops.names) };
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
