//! `coulis.reduce`: arrays of the caller's library in, statistics in arrays of that library out.
//!
//! Inputs are read where they are. Results are written into memory of the caller's library, or, where a library makes no
//! memory to be written to, into memory of coulis that the library adopts by DLPack. The interpreter's lock is given up
//! while a kernel is made and while it runs.

use std::rc::Rc;

use coulis::reduce::{Doubt, Prepared, prepare};
use coulis::{
    AlignedBytes, Array, ArrayInfo, DType, DeviceChoice, DevicePointer, NamedArray, NanPolicy, Request,
    StreamHandle,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyTuple};

use crate::array::{Given, MASK, is_array};
use crate::dlpack::Place;
use crate::error::{OrRaise, exception};
use crate::options::{self, Ops, Options};
use crate::outside;
use crate::recent::{self, Known};
use crate::result::{Outs, Prior, Target, assemble, order_of, targets};

/// Elements of a call that runs too short a time to be interrupted, wherever it runs.
const BRIEF: i64 = 1 << 16;

/// Registers `reduce`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<crate::dlpack::Export>()?;
    m.add_function(wrap_pyfunction!(reduce, m)?)
}

/// Reduces an array: one read of it, any set of statistics.
///
/// Parameters
/// ----------
/// x : array
///     An array of NumPy, PyTorch, CuPy, JAX, Arrow, or any library with DLPack or an array interface; a tuple of two
///     arrays for `dot` and `wmean`, whose result has the wider of their types and whose shapes are broadcast to one. It is
///     read where it is, under any strides. Lists and numbers become NumPy arrays. Arrays of Dask are for `coulis.dask`.
/// ops : str, Reducer, or list of these
///     Statistics by name (`coulis.ops()` lists them). A list gives a named tuple with a field each.
/// axis : int, tuple of int, or None
///     Axes to reduce; all of them by default.
/// keepdims : bool
///     Whether reduced axes stay, with length 1.
/// where : array of bool, or None
///     Which elements take part; broadcast to the shape of `x`: from the last axis on, each extent is 1 or that of `x`.
/// nan : "propagate" or "ignore"
///     Whether NaN makes a result NaN, or does not take part.
/// ddof : float
///     Taken off the count in `var` and `std`.
/// init : number, or dict by statistic
///     One more element, of the type of `x`, for `absmax`, `all`, `any`, `max`, `min`, `prod` and `sum`, and reducers of
///     one's own. It starts their fold, so that a group without elements has a result. Beside a `prologue` it is of the type
///     of what that gives, and is taken as it is.
/// acc_dtype : dtype
///     Type of accumulators; statistics that add nothing up (``max``, ``argmax``, ``any``) have none, and are what they are without it.
/// dtype : dtype, or dict by statistic
///     Type of results. Counts and positions are refused in one that does not hold all that they may be.
/// alpha, beta : float, or dict by statistic
///     The result is `alpha * statistic + beta * out`. Positions that may be those of no element, under a mask or without
///     NaN, take neither.
/// out : array, list of arrays, or dict by statistic
///     Where results are written; of exactly their type and shape.
/// fast_math, reproducible : bool
///     Not supported yet.
/// device : str
///     "auto", "cpu", "cuda", "cuda:N" or "sim", or what `coulis.cpu` and `coulis.cuda` give, for arrays of the host; others
///     are reduced where they are.
/// stream : int or stream
///     CUDA stream for arrays of a GPU; the library's current one by default. Nothing waits for it. Refused for arrays of the
///     host.
/// plan : Plan or str
///     A plan of `coulis.plan`, or its trace, to be run in place of coulis' own choice.
/// prologue : function, or None
///     Of symbolic elements, one an array of `x`: what is reduced in their place, one value, or two for `dot` and `wmean`.
///     It is computed as the arrays are read, of elements widened to the type that sums of them have (float16 to float32,
///     int8 to int64), or to `acc_dtype`; bools stay bools. `x` may then be a tuple of any number of arrays.
///
/// Returns
/// -------
/// array, or named tuple of arrays
///     Of the library of `x`, on its device. A full reduction of a NumPy array gives NumPy scalars. Arrays of NumPy, PyTorch
///     and CuPy lie in memory as `x` does (NumPy's order K): the results of a transposed view are a transposed view.
///
/// Raises
/// ------
/// ValueError
///     Unknown or repeated statistics, shapes that do not fit, extrema of nothing.
/// AxisError
///     An axis that `x` does not have; it is a ValueError and an IndexError.
/// TypeError
///     Elements that are no numbers.
/// NotImplementedError
///     Complex elements, `fast_math`, `reproducible`.
/// RuntimeError
///     A device that is not there.
///
/// Examples
/// --------
/// >>> import coulis, numpy as np
/// >>> x = np.arange(6, dtype=np.float32).reshape(2, 3)
/// >>> coulis.reduce(x, ["sum", "max"], axis=1)
/// Reduced(sum=array([ 3., 12.], dtype=float32), max=array([2., 5.], dtype=float32))
#[pyfunction]
#[pyo3(signature = (x, ops, axis=None, *, keepdims=false, r#where=None, nan=NanPolicy::Propagate, ddof=0.0, init=None,
    acc_dtype=None, dtype=None, alpha=None, beta=None, out=None, fast_math=false, reproducible=false, device=None,
    stream=None, plan=None, prologue=None), text_signature = "(x, ops, axis=None, *, keepdims=False, where=None, \
    nan='propagate', ddof=0.0, init=None, acc_dtype=None, dtype=None, alpha=None, beta=None, out=None, fast_math=False, \
    reproducible=False, device=None, stream=None, plan=None, prologue=None)")]
#[expect(clippy::too_many_arguments, reason = "the signature is Python's")]
fn reduce<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    ops: &Bound<'py, PyAny>,
    axis: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = options::keepdims)] keepdims: bool,
    r#where: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = options::nan)] nan: NanPolicy,
    #[pyo3(from_py_with = options::ddof)] ddof: f64,
    init: Option<&Bound<'py, PyAny>>,
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
    let is_given = |option: Option<&Bound<'_, PyAny>>| option.is_some_and(|option| !option.is_none());
    let inputs = inputs(x, Some(ops), is_given(prologue))?;
    let options = Options {
        axis,
        keepdims,
        nan,
        ddof,
        init,
        acc_dtype,
        dtype,
        alpha,
        beta,
        fast_math,
        reproducible,
        plan,
    };
    let is_plain = options.are_plain()
        && inputs.len() == 1
        && inputs[0].valid.is_none()
        && device.is_none()
        && !is_given(r#where)
        && !is_given(prologue);
    let order = order_of(&inputs[0], out)?;
    let wanted = recent::Wanted { ops, axis, keepdims, order, map: None };
    if is_plain && let Some(known) = recent::find(&wanted, &inputs) {
        return Call::plain(inputs).run(py, &known, out, stream);
    }
    let ops = Ops::of(ops)?;
    let dtypes: Vec<DType> = inputs.iter().map(|input| input.info.dtype).collect();
    let mut request = options.request_with(prologue, py, &ops, &dtypes)?;
    request.order = order;
    let call = Call::new(inputs, r#where, &mut request, device)?;
    let prepared = call.prepare(py, &request)?;
    let known = Rc::new(Known::new(ops, request, prepared));
    if is_plain {
        recent::keep(&known, None, &call.inputs);
    }
    call.run(py, &known, out, stream)
}

/// The mask that is given, if one is that may leave elements out.
pub fn mask_of<'py>(given: Option<&Bound<'py, PyAny>>) -> PyResult<Option<Given<'py>>> {
    let is_all = |m: &&Bound<'_, PyAny>| m.cast::<PyBool>().is_ok_and(|b| b.is_true());
    given.filter(|m| !m.is_none() && !is_all(m)).map(|m| Given::of(m, MASK)).transpose()
}

/// Which elements take part: those of the mask, but nothing that is null, wherever it stands. `valid` has what is not null of
/// each input with nulls.
///
/// # Safety
///
/// The mask outlives what is given.
pub unsafe fn chosen_by<'a>(
    mask: Option<&'a Given<'_>>,
    valid: impl Iterator<Item = &'a Array>,
) -> PyResult<Option<Array>> {
    // SAFETY: as the caller promises.
    let given = mask.map(|m| unsafe { m.array() }).transpose()?;
    let mut valid = valid.chain(mask.and_then(|mask| mask.valid.as_ref()));
    valid.try_fold(given, |chosen, valid| {
        let chosen = chosen.map_or_else(|| Ok(valid.clone()), |chosen| both(&chosen, valid))?;
        Ok(Some(chosen))
    })
}

/// The arrays of a call.
pub struct Call<'py> {
    /// The inputs, and those beside them.
    inputs: Vec<Given<'py>>,
    mask: Option<Given<'py>>,
    /// The mask as it is read: `mask`, and what is valid of the first input.
    chosen: Option<Array>,
    /// Where all arrays are.
    place: Place,
}

impl<'py> Call<'py> {
    /// A call whose arrays are all inputs, as one of a kernel that is known.
    pub fn plain(inputs: Vec<Given<'py>>) -> Call<'py> {
        let place = inputs[0].place;
        Call { inputs, mask: None, chosen: None, place }
    }

    /// The arrays that are reduced, and those beside them.
    pub fn inputs(&self) -> &[Given<'py>] {
        &self.inputs
    }

    /// Reads the mask and completes the request.
    pub fn new(
        inputs: Vec<Given<'py>>,
        mask: Option<&Bound<'py, PyAny>>,
        request: &mut Request,
        on: Option<DeviceChoice>,
    ) -> PyResult<Call<'py>> {
        let place = inputs[0].place;
        let mask = mask_of(mask)?;
        for (given, what) in
            inputs.iter().skip(1).map(|i| (i, "the second input")).chain(mask.iter().map(|m| (m, "`where`")))
        {
            if given.place != place {
                let message = format!(
                    "{what} is in memory of {}, and the first input in that of {}; all arrays of a call are to be in \
                     one place",
                    words(given.place),
                    words(place)
                );
                return Err(PyValueError::new_err(message));
            }
        }
        request.device = chosen(place, on)?;
        let valid = inputs.iter().filter_map(|input| input.valid.as_ref());
        if request.normalize.is_some() && valid.clone().next().is_some() {
            return Err(nulls_of_a_map());
        }
        // SAFETY: the call keeps the mask, and the request does not leave the call.
        request.where_ = unsafe { chosen_by(mask.as_ref(), valid)? };
        Ok(Call { inputs, mask, chosen: request.where_.clone(), place })
    }

    /// The kernel, bound to these arrays.
    pub fn prepare(&self, py: Python<'_>, request: &Request) -> PyResult<Prepared> {
        let infos: Vec<ArrayInfo> = self.inputs.iter().map(|i| i.info.clone()).collect();
        outside::at_length(py, || prepare(&infos, request))
    }

    /// Runs it, and gives what the caller gets.
    pub fn run(
        &self,
        py: Python<'py>,
        known: &Known,
        out: Option<&Bound<'py, PyAny>>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Known { request, prepared, .. } = known;
        let outs = Outs::of(out, known)?;
        let read: Vec<&Given<'py>> = self.inputs.iter().chain(&self.mask).collect();
        let targets = targets(py, &read, self.place, &outs, prepared)?;
        match self.place {
            Place::Host => {
                if let Some(stream) = stream {
                    handle_of(stream)?;
                    let message = "`stream` is for arrays in memory of a GPU, and those of this call are in that of the CPU, \
                                   where calls are done when they return; leave it out";
                    return Err(PyValueError::new_err(message));
                }
                self.launch_on_host(py, prepared, &targets)?;
            }
            Place::Cuda(_) => self.launch_on_stream(py, prepared, &targets, stream)?,
        }
        if prepared.may_be_empty() {
            match self.place {
                Place::Host => self.check_results(py, prepared, request, &targets)?,
                Place::Cuda(_) => self.check_results_there(py, prepared, request, &targets)?,
            }
        }
        assemble(py, known, targets, &self.inputs[0])
    }

    /// Arrays that are read: the inputs and the mask, as a launch takes them.
    fn arrays(&self, prepared: &Prepared) -> PyResult<Vec<Array>> {
        // SAFETY: the call outlives the launch.
        let inputs = self.inputs.iter().map(|input| unsafe { input.array() });
        Ok(prepared.as_read(inputs.collect::<PyResult<_>>()?, self.chosen.clone()))
    }

    /// Runs on arrays of the host.
    fn launch_on_host(
        &self,
        py: Python<'py>,
        prepared: &Prepared,
        targets: &[Target<'_, 'py>],
    ) -> PyResult<()> {
        let arrays = self.arrays(prepared)?;
        let on_host = |t: &Target<'_, 'py>| match t.prior.as_ref()? {
            Prior::Host(array) => Some(array.clone()),
            Prior::Device(_) => None,
        };
        let priors: Vec<Array> = targets.iter().filter_map(on_host).collect();
        let places: Vec<(usize, usize)> = targets.iter().map(|t| (t.address, t.n_bytes())).collect();
        let launch = || {
            let slices = places.iter().map(|&(address, n)| {
                if n == 0 {
                    return &mut [][..];
                }
                let first = std::ptr::with_exposed_provenance_mut::<u8>(address);
                // SAFETY: the targets keep this memory, and it overlaps nothing that is read and no other target: `targets` looked.
                unsafe { std::slice::from_raw_parts_mut(first, n) }
            });
            let mut outputs: Vec<&mut [u8]> = slices.collect();
            let arrays: Vec<&Array> = arrays.iter().collect();
            prepared.launch_into(&arrays, &priors.iter().collect::<Vec<_>>(), &mut outputs)
        };
        // To watch for an interrupt takes microseconds, which kernels that hear of none are not to wait for.
        let n_elements: i64 = arrays.iter().map(|array| array.len() as i64).sum();
        let is_brief = n_elements < BRIEF || !prepared.hears_interrupts();
        if is_brief { outside::briefly(py, launch) } else { outside::at_length(py, launch) }
    }

    /// Puts a run on a stream of the arrays' device.
    fn launch_on_stream(
        &self,
        py: Python<'py>,
        prepared: &Prepared,
        targets: &[Target<'_, 'py>],
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let first = &self.inputs[0];
        let (handle, waits) = match stream {
            Some(stream) => (handle_of(stream)?, false),
            None => first.current_stream(py)?,
        };
        let read = prepared.as_read(self.inputs.iter().collect(), self.mask.as_ref());
        let read = read.into_iter().map(|given| given.address);
        let on_device = |t: &Target<'_, 'py>| match t.prior.as_ref()? {
            Prior::Device(given) => Some(given.address),
            Prior::Host(_) => None,
        };
        let priors = targets.iter().filter_map(on_device);
        let addresses = read.chain(priors).chain(targets.iter().map(|t| t.address));
        // SAFETY: the libraries keep the memory and reuse it in the order of their stream, which this is, or it is waited
        // for below; overlaps were looked for.
        let pointers: Vec<DevicePointer> =
            addresses.map(|address| unsafe { DevicePointer::new(address) }).collect();
        let launch = || {
            // SAFETY: the library or the caller says that this stream is alive.
            let stream = unsafe { StreamHandle::new(handle) };
            prepared.launch_on_stream(&pointers, stream)?;
            if waits { prepared.wait(stream) } else { Ok(()) }
        };
        outside::briefly(py, launch)
    }

    /// Refuses positions and extrema of nothing, which show in the results.
    fn check_results(
        &self,
        py: Python<'py>,
        prepared: &Prepared,
        request: &Request,
        targets: &[Target<'_, 'py>],
    ) -> PyResult<()> {
        let mut results = Vec::with_capacity(targets.len());
        for target in targets {
            let first = std::ptr::with_exposed_provenance::<u8>(target.address);
            let bytes = match target.n_bytes() {
                0 => &[][..],
                // SAFETY: the target keeps its memory, which was written.
                n => unsafe { std::slice::from_raw_parts(first, n) },
            };
            let array = prepared.result(target.dtype, AlignedBytes::copy_of(bytes).or_raise()?).or_raise()?;
            results.push(NamedArray { name: target.name.to_owned(), array });
        }
        let shape = &self.inputs[0].info.shape;
        outside::briefly(py, || prepared.check_results(request, shape, &results))
    }

    /// The same for results on a device. They stay there: what comes back is whether one is in doubt, and whether
    /// elements took part in every output.
    fn check_results_there(
        &self,
        py: Python<'py>,
        prepared: &Prepared,
        request: &Request,
        targets: &[Target<'_, 'py>],
    ) -> PyResult<()> {
        let reduce = py.import(intern!(py, "coulis._coulis"))?.getattr(intern!(py, "reduce"))?;
        let smallest = |array: &Bound<'py, PyAny>| -> PyResult<i64> {
            reduce.call1((array, intern!(py, "min")))?.call_method0(intern!(py, "__int__"))?.extract()
        };
        let refused = |array: &Bound<'py, PyAny>, doubt: &Doubt| -> PyResult<()> {
            let output: usize = reduce
                .call1((array, intern!(py, "argmin")))?
                .call_method0(intern!(py, "__int__"))?
                .extract()?;
            Err(exception(doubt.refusal(output)))
        };
        for doubt in prepared.doubts().or_raise()? {
            let target = &targets[doubt.result];
            if target.n_bytes() == 0 {
                continue;
            }
            let results = target.array(py)?;
            if doubt.is_position() {
                if smallest(&results)? < 0 {
                    return refused(&results, &doubt);
                }
                continue;
            }
            let (Some(mask), Some(x)) = (&self.mask, self.inputs.first()) else { continue };
            let end = |op: &str| -> PyResult<f64> {
                reduce.call1((&results, op))?.call_method0(intern!(py, "__float__"))?.extract()
            };
            // Each end is waited for, and one of them mostly says that there is no doubt.
            let is_open = !doubt.depends_on_results()
                || match doubt.is_high() {
                    true => doubt.may_lie_between(f64::NEG_INFINITY, end("max")?),
                    false => doubt.may_lie_between(end("min")?, f64::INFINITY),
                };
            if !is_open {
                continue;
            }
            let shape = PyTuple::new(py, &x.info.shape)?;
            let whole =
                mask.library.adapter(py)?.call_method1(intern!(py, "broadcast"), (&mask.object, shape))?;
            let axes = request.axes.as_deref().map(|axes| PyTuple::new(py, axes)).transpose()?;
            let taken = reduce.call1((whole, intern!(py, "any"), axes))?;
            if smallest(&taken)? == 0 {
                return refused(&taken, &doubt);
            }
        }
        Ok(())
    }
}

/// One array, or a tuple of one or several, broadcast to one shape. Lists and numbers in a tuple are arrays of their own where the
/// statistics read two arrays, and rows of one array where they do not.
pub fn inputs<'py>(
    x: &Bound<'py, PyAny>,
    ops: Option<&Bound<'py, PyAny>>,
    has_prologue: bool,
) -> PyResult<Vec<Given<'py>>> {
    let read_two = || ops.map_or(Ok(false), |ops| Ok::<_, PyErr>(Ops::of(ops)?.n_inputs() == 2));
    if let Ok(several) = x.cast::<PyTuple>() {
        let mut n_arrays = 0;
        for one in several.iter() {
            n_arrays += usize::from(is_array(&one)?);
        }
        let are_arrays = n_arrays > 0 && (has_prologue || n_arrays == several.len());
        if are_arrays || several.len() == 2 && read_two()? {
            let mut inputs: Vec<Given> =
                several.iter().map(|one| Given::of(&one, "x")).collect::<PyResult<_>>()?;
            broadcast(&mut inputs);
            return Ok(inputs);
        }
    }
    if x.is_instance_of::<PyList>() && read_two()? {
        let message = "`x` is a list, which is one array, and two are read; give a tuple of two arrays";
        return Err(PyValueError::new_err(message));
    }
    Ok(vec![Given::of(x, "x")?])
}

/// Gives all inputs the shape that theirs broadcast to, under strides of 0; shapes that do not fit stay, and are
/// refused later. So do those of arrays with nulls.
fn broadcast(inputs: &mut [Given<'_>]) {
    let rank = inputs.iter().map(|input| input.info.shape.len()).max().unwrap_or(0);
    let mut shape = vec![1; rank];
    for input in inputs.iter() {
        let begin = rank - input.info.shape.len();
        for (whole, &own) in shape[begin..].iter_mut().zip(&input.info.shape) {
            match (*whole, own) {
                (_, 1) => {}
                (1, _) => *whole = own,
                (whole, own) if whole == own => {}
                _ => return,
            }
        }
    }
    if inputs.iter().any(|input| input.valid.is_some()) {
        return;
    }
    for input in inputs.iter_mut().filter(|input| input.info.shape != shape) {
        let begin = rank - input.info.shape.len();
        let mut strides = vec![0; rank];
        for (at, (&extent, &stride)) in input.info.shape.iter().zip(&input.info.strides).enumerate() {
            strides[begin + at] = if extent == shape[begin + at] { stride } else { 0 };
        }
        input.info.strides = strides;
        input.info.shape.clone_from(&shape);
    }
}

fn words(place: Place) -> String {
    match place {
        Place::Host => "the CPU".to_owned(),
        Place::Cuda(id) => format!("cuda:{id}"),
    }
}

/// The device of a call: where the arrays are, unless host arrays are to be sent to another.
fn chosen(place: Place, asked: Option<DeviceChoice>) -> PyResult<DeviceChoice> {
    let asked = asked.unwrap_or_default();
    match place {
        Place::Host => Ok(asked),
        Place::Cuda(id) if matches!(asked, DeviceChoice::Auto) || asked == DeviceChoice::Cuda(id) => {
            Ok(DeviceChoice::Cuda(id))
        }
        Place::Cuda(_) => {
            let message =
                format!("arrays in memory of {} are reduced there; `device` names another one", words(place));
            Err(PyValueError::new_err(message))
        }
    }
}

/// The handle of a stream: a number, or an object of PyTorch, CuPy or the CUDA stream protocol.
fn handle_of(stream: &Bound<'_, PyAny>) -> PyResult<usize> {
    if let Ok(handle) = stream.extract() {
        return Ok(handle);
    }
    for name in ["cuda_stream", "ptr"] {
        if let Ok(handle) = stream.getattr(name).and_then(|handle| handle.extract()) {
            return Ok(handle);
        }
    }
    if let Ok(pair) = stream.call_method0("__cuda_stream__") {
        return pair.get_item(1)?.extract();
    }
    let message = format!(
        "`stream` is to be a handle or a stream of PyTorch, CuPy or the CUDA stream protocol, got an object of type `{}`",
        stream.get_type().name()?
    );
    Err(PyTypeError::new_err(message))
}

/// Of a null a map has no result.
pub fn nulls_of_a_map() -> PyErr {
    PyValueError::new_err("an array has nulls, of which a map has no result; fill them first")
}

/// Elements that are valid and chosen.
fn both(given: &Array, valid: &Array) -> PyResult<Array> {
    let n = valid.len();
    if given.dtype() != DType::Bool || !(given.len() == n || given.len() == 1) {
        let message = format!(
            "`where` is to be bool of shape {:?}, got {} of shape {:?}",
            valid.shape(),
            given.dtype(),
            given.shape()
        );
        return Err(PyValueError::new_err(message));
    }
    let chosen: Vec<bool> = given.scalars().map(|s| s.to_f64() != 0.0).collect();
    let valid = valid.scalars().map(|s| s.to_f64() != 0.0).enumerate();
    let bytes: Vec<u8> = valid.map(|(at, v)| u8::from(v && chosen[at % chosen.len()])).collect();
    Array::from_bytes(DType::Bool, &[n as i64], &bytes).or_raise()
}
