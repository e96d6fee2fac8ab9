//! Where results are written, and what the caller gets of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use coulis::reduce::Prepared;
use coulis::{AlignedBytes, Array, ArrayInfo, DType, Order, compact_strides};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::array::Given;
use crate::dlpack::{Export, Memory, Place};
use crate::error::OrRaise;
use crate::library::{Library, TypeFacts, numpy};
use crate::options::Ops;
use crate::recent::Known;

/// The arrays of `out`, one a result; none at all where coulis makes the results.
pub struct Outs<'py>(Vec<Option<Bound<'py, PyAny>>>);

/// Results of each statistic: 2 of `maxloc`, whose results are `maxloc.value` and `maxloc.index`.
pub fn n_results(ops: &Ops, prepared: &Prepared) -> Vec<usize> {
    let is_of = |result: &str, op: &str| result.split('.').next() == Some(op);
    ops.names.iter().map(|op| prepared.results().filter(|(result, _)| is_of(result, op)).count()).collect()
}

impl<'py> Outs<'py> {
    /// Reads `out`: an array, a list of arrays in the order of the statistics, or a dict by their names. A statistic with
    /// two results takes a pair.
    pub fn of(out: Option<&Bound<'py, PyAny>>, known: &Known) -> PyResult<Outs<'py>> {
        let Some(out) = out.filter(|o| !o.is_none()) else { return Ok(Outs(Vec::new())) };
        let ops = &known.ops;
        let by_name: Vec<Option<Bound<'py, PyAny>>> = if let Ok(dict) = out.cast::<PyDict>() {
            for name in dict.keys() {
                let name: String = name.extract()?;
                if !ops.names.contains(&name) {
                    let message =
                        format!("`out` names `{name}`, which is not asked for: {}", ops.names.join(", "));
                    return Err(PyValueError::new_err(message));
                }
            }
            ops.names.iter().map(|name| dict.get_item(name)).collect::<PyResult<_>>()?
        } else if ops.is_single {
            vec![Some(out.clone())]
        } else {
            let list: Vec<Bound<'py, PyAny>> =
                match out.is_instance_of::<PyList>() || out.is_instance_of::<PyTuple>() {
                    true => out.try_iter()?.collect::<PyResult<_>>()?,
                    false => vec![out.clone()],
                };
            if list.len() != ops.names.len() {
                let (wanted, found) = (ops.names.len(), list.len());
                let message =
                    format!("`out` is to have an array for each statistic, {wanted} in all, got {found}");
                return Err(PyValueError::new_err(message));
            }
            list.into_iter().map(Some).collect()
        };
        let mut outs = Vec::new();
        for ((name, &n), given) in ops.names.iter().zip(&known.n_results).zip(by_name) {
            match given {
                None => outs.extend(std::iter::repeat_n(None, n)),
                Some(one) if n == 1 => outs.push(Some(one)),
                Some(several) => {
                    let list: Vec<Bound<'py, PyAny>> = several.try_iter()?.collect::<PyResult<_>>()?;
                    if list.len() != n {
                        let message = format!("`out` of `{name}` is to be {n} arrays, got {}", list.len());
                        return Err(PyValueError::new_err(message));
                    }
                    outs.extend(list.into_iter().map(Some));
                }
            }
        }
        Ok(Outs(outs))
    }
}

/// What a result becomes.
enum Kind<'py> {
    /// A scalar of NumPy; its bytes are here.
    Scalar(AlignedBytes),
    /// An array of the caller's library, made for the result or given as `out`.
    Array(Bound<'py, PyAny>),
    /// An array that is copied to another one, of `out`, at the end.
    Copied { made: Bound<'py, PyAny>, out: Bound<'py, PyAny> },
    /// Memory of coulis, which the caller's library adopts.
    Export(Py<Export>),
}

/// What is folded into a result, for a beta.
pub enum Prior<'py> {
    /// On the host.
    Host(Array),
    /// On a device; keeps it.
    Device(Box<Given<'py>>),
}

/// A result, and where it is written.
pub struct Target<'a, 'py> {
    /// Its name.
    pub name: &'a str,
    /// Its element type.
    pub dtype: DType,
    /// Its shape.
    pub shape: &'a [i64],
    /// Address of its memory.
    pub address: usize,
    /// Its library.
    pub library: Library,
    /// What is folded in.
    pub prior: Option<Prior<'py>>,
    kind: Kind<'py>,
}

impl<'py> Target<'_, 'py> {
    /// Bytes of the result.
    pub fn n_bytes(&self) -> usize {
        n_bytes(self.dtype, self.shape)
    }

    /// The array that was written.
    pub fn array(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.kind {
            Kind::Scalar(bytes) => {
                let mut word = [0; 8];
                word.copy_from_slice(bytes.as_slice());
                numpy(py)?.scalar(py, self.dtype, word)
            }
            Kind::Array(array) | Kind::Copied { made: array, .. } => Ok(array.clone()),
            Kind::Export(export) => self.library.adapter(py)?.call_method1(intern!(py, "adopt"), (export,)),
        }
    }
}

fn n_bytes(dtype: DType, shape: &[i64]) -> usize {
    shape.iter().product::<i64>() as usize * dtype.bytes()
}

/// A place for each result: in `out`, or newly made. `read` are the arrays that the kernel reads, the first input first.
pub fn targets<'a, 'py>(
    py: Python<'py>,
    read: &[&Given<'py>],
    place: Place,
    outs: &Outs<'py>,
    prepared: &'a Prepared,
) -> PyResult<Vec<Target<'a, 'py>>> {
    let priors = prepared.wants_priors();
    let (shape, order) = (prepared.out_shape(), prepared.out_order());
    let strides = prepared.out_strides();
    // What is found only after the run leaves every `out` as it was.
    let is_final = outs.0.is_empty() || !prepared.may_be_empty() || prepared.doubts().or_raise()?.is_empty();
    let mut targets = Vec::with_capacity(prepared.results().len());
    let mut given_outs: Vec<Given<'py>> = Vec::new();
    for (nth, (name, info)) in prepared.results().enumerate() {
        let dtype = info.dtype;
        let Some(out) = outs.0.get(nth).and_then(Option::as_ref) else {
            if priors.contains(&name) {
                let message =
                    format!("beta of `{name}` is not 0, and there is no `out` that holds its prior");
                return Err(PyValueError::new_err(message));
            }
            let (address, kind) = made(py, dtype, shape, read[0], place, prepared)?;
            let library = read[0].library;
            targets.push(Target { name, dtype, shape, address, library, prior: None, kind });
            continue;
        };
        let given = checked(out, name, dtype, shape, place)?;
        if given_outs.iter().any(|other| other.may_meet(&given)) {
            let message = format!("`out` of `{name}` overlaps another result's");
            return Err(PyValueError::new_err(message));
        }
        given_outs.push(given);
        let Some(given) = given_outs.last() else { continue };
        let has_prior = priors.contains(&name);
        let is_apart = !read.iter().any(|array| array.may_meet(given));
        let is_direct = !has_prior && is_final && is_apart && has_strides(&given.info, &strides);
        if is_direct {
            let (address, library) = (given.address, given.library);
            let kind = Kind::Array(out.clone());
            targets.push(Target { name, dtype, shape, address, library, prior: None, kind });
            continue;
        }
        let (made, address) = made_array(py, given.library, &given.object, dtype, shape, order)?;
        let prior = match (has_prior, place) {
            (false, _) => None,
            // SAFETY: the copy, if there is one, owns its memory; else the call keeps `out`.
            (true, Place::Host) => {
                Some(Prior::Host(prepared.in_order(&unsafe { given.array() }?).or_raise()?))
            }
            (true, Place::Cuda(_)) => {
                let adapter = given.library.adapter(py)?;
                let seen = adapter.call_method1(intern!(py, "compact"), (&given.object, order))?;
                Some(Prior::Device(Box::new(Given::of(&seen, "out")?)))
            }
        };
        let kind = Kind::Copied { made, out: out.clone() };
        let library = given.library;
        targets.push(Target { name, dtype, shape, address, library, prior, kind });
    }
    Ok(targets)
}

/// `out`, if the result can be written there.
fn checked<'py>(
    out: &Bound<'py, PyAny>,
    name: &str,
    dtype: DType,
    shape: &[i64],
    place: Place,
) -> PyResult<Given<'py>> {
    let facts = TypeFacts::of(out)?;
    // NumPy's scalars have an array's protocols too, for a copy of theirs.
    let is_scalar = facts.library == Some(Library::NumPy) && !facts.is_ndarray;
    if is_scalar || !crate::array::is_array(out)? {
        let message = format!(
            "`out` of `{name}` is to be an array, got an object of type `{}`",
            out.get_type().name()?
        );
        return Err(PyTypeError::new_err(message));
    }
    let given = Given::of(out, "out")?;
    let refused = |message: String| Err(PyValueError::new_err(message));
    if given.info.dtype != dtype || given.info.shape != shape {
        return refused(format!(
            "`out` of `{name}` is to be {dtype} of shape {shape:?}, got {} of shape {:?}",
            given.info.dtype, given.info.shape
        ));
    }
    if given.is_readonly {
        return refused(format!("`out` of `{name}` is not to be written"));
    }
    if given.place != place {
        return refused(format!("`out` of `{name}` is not where the input is"));
    }
    if given.address == 0 && n_bytes(dtype, shape) > 0 {
        return refused(format!("`out` of `{name}` has no memory"));
    }
    if !given.address.is_multiple_of(dtype.bytes()) && n_bytes(dtype, shape) > 0 {
        let wanted = dtype.bytes();
        return refused(format!("`out` of `{name}` is to be at a multiple of {wanted} bytes, as {dtype} is"));
    }
    if !given.info.is_apart() {
        let strides = &given.info.strides;
        return refused(format!(
            "`out` of `{name}` has elements that share memory: its strides are {strides:?}"
        ));
    }
    given.library.written(out, &format!("`out` of `{name}`"))?;
    Ok(given)
}

fn has_strides(info: &ArrayInfo, wanted: &[i64]) -> bool {
    info.shape.contains(&0)
        || info.shape.iter().zip(info.strides.iter().zip(wanted)).all(|(&n, (s, w))| n == 1 || s == w)
}

/// The order of the results of an input: as it lies, where its library has arrays in any order and not all of `out` are row-major.
pub fn order_of(input: &Given<'_>, out: Option<&Bound<'_, PyAny>>) -> PyResult<Order> {
    let steps = &input.info.strides;
    if !input.library.has_strides() || steps.is_sorted_by(|a, b| a.unsigned_abs() >= b.unsigned_abs()) {
        return Ok(Order::RowMajor);
    }
    let mut given = Vec::new();
    if let Some(out) = out.filter(|out| !out.is_none()) {
        arrays_in(out, &mut given)?;
    }
    let is_row_major = |info: &ArrayInfo| has_strides(info, &compact_strides(&info.shape));
    let is_given = !given.is_empty();
    // What is no array is refused later.
    let mut read = given.iter().filter_map(|array| Given::of(array, "out").ok());
    Ok(if is_given && read.all(|array| is_row_major(&array.info)) { Order::RowMajor } else { Order::OfInput })
}

/// The objects in an object, and in those: what is neither a dict nor a sequence.
fn arrays_in<'py>(object: &Bound<'py, PyAny>, found: &mut Vec<Bound<'py, PyAny>>) -> PyResult<()> {
    let inner: Vec<Bound<'py, PyAny>> = if let Ok(dict) = object.cast::<PyDict>() {
        dict.values().iter().collect()
    } else if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        object.try_iter()?.collect::<PyResult<_>>()?
    } else {
        found.push(object.clone());
        return Ok(());
    };
    inner.iter().try_for_each(|object| arrays_in(object, found))
}

/// A new array of a library whose arrays can be written, with its axes in that order, and its address.
fn made_array<'py>(
    py: Python<'py>,
    library: Library,
    like: &Bound<'py, PyAny>,
    dtype: DType,
    shape: &[i64],
    order: &[usize],
) -> PyResult<(Bound<'py, PyAny>, usize)> {
    if library == Library::NumPy {
        let array = numpy(py)?.empty(py, shape, dtype, order)?;
        let address = Given::of(&array, "out")?.address;
        return Ok((array, address));
    }
    let words = (like, PyTuple::new(py, shape)?, dtype.name(), PyTuple::new(py, order)?);
    library.adapter(py)?.call_method1(intern!(py, "empty"), words)?.extract()
}

/// A new place for a result of the input's library.
fn made<'py>(
    py: Python<'py>,
    dtype: DType,
    shape: &[i64],
    input: &Given<'py>,
    place: Place,
    prepared: &Prepared,
) -> PyResult<(usize, Kind<'py>)> {
    let (library, order) = (input.library, prepared.out_order());
    Ok(match library {
        _ if let Some(exchange) = input.exchange
            && library != Library::NumPy
            && order.is_sorted() =>
        {
            let (array, address) = exchange.empty(py, dtype, shape, place)?;
            (address, Kind::Array(array))
        }
        Library::NumPy | Library::Named("pyarrow") if shape.is_empty() => {
            let mut bytes = AlignedBytes::zeroed(size_of::<u64>()).or_raise()?;
            (bytes.as_mut_slice().as_mut_ptr().expose_provenance(), Kind::Scalar(bytes))
        }
        Library::NumPy | Library::Named("pyarrow") => {
            let (array, address) = made_array(py, Library::NumPy, &input.object, dtype, shape, order)?;
            (address, Kind::Array(array))
        }
        Library::Named("torch" | "cupy") => {
            let (array, address) = made_array(py, library, &input.object, dtype, shape, order)?;
            (address, Kind::Array(array))
        }
        Library::Named(_) => {
            let n_bytes = n_bytes(dtype, shape);
            let (memory, address) = match place {
                Place::Host => {
                    let mut bytes = AlignedBytes::zeroed(n_bytes).or_raise()?;
                    let address = bytes.as_mut_slice().as_mut_ptr().expose_provenance();
                    (Memory::Host(bytes), address)
                }
                Place::Cuda(id) => match py.detach(|| prepared.allocate_on_device(n_bytes)).or_raise()? {
                    Some(memory) => {
                        let address = memory.pointer() as usize;
                        (Memory::Device(memory, id), address)
                    }
                    None => return Err(PyTypeError::new_err("the device has no memory of its own")),
                },
            };
            (address, Kind::Export(Py::new(py, Export::new(memory, dtype, shape))?))
        }
    })
}

/// What the caller gets: one result, or a named tuple of the results by statistic.
pub fn assemble<'py>(
    py: Python<'py>,
    known: &Known,
    targets: Vec<Target<'_, 'py>>,
    input: &Given<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let ops = &known.ops;
    let mut targets = targets.into_iter();
    let mut next = |op: &str, n: usize| -> PyResult<Bound<'py, PyAny>> {
        if n == 1
            && let Some(target) = targets.next()
        {
            return finished(py, target, input);
        }
        let of_op: Vec<Target<'_, 'py>> = targets.by_ref().take(n).collect();
        let field =
            |t: &Target<'_, 'py>| t.name.split_once('.').map_or("value", |(_, field)| field).to_owned();
        let class = named_tuple(py, op, &of_op.iter().map(field).collect::<Vec<_>>())?;
        let values = of_op.into_iter().map(|t| finished(py, t, input)).collect::<PyResult<Vec<_>>>()?;
        tuple_of(&class, values)
    };
    if ops.is_single {
        return next(&ops.names[0], known.n_results[0]);
    }
    let results = ops.names.iter().zip(&known.n_results).map(|(op, &n)| next(op, n));
    let results = results.collect::<PyResult<Vec<_>>>()?;
    let class = match known.class.get() {
        Some(class) => class.bind(py).clone(),
        None => {
            let class = named_tuple(py, "Reduced", &ops.names)?;
            known.class.get_or_init(|| class.clone().unbind());
            class
        }
    };
    tuple_of(&class, results)
}

/// A named tuple of as many values as its class has fields, past the class's own `__new__`, which is written in Python.
fn tuple_of<'py>(class: &Bound<'py, PyAny>, values: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    static NEW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = class.py();
    let new =
        NEW.get_or_try_init(py, || Ok::<_, PyErr>(py.get_type::<PyTuple>().getattr("__new__")?.unbind()))?;
    new.bind(py).call1((class, PyTuple::new(py, values)?))
}

fn finished<'py>(
    py: Python<'py>,
    target: Target<'_, 'py>,
    input: &Given<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = target.array(py)?;
    match target.kind {
        Kind::Scalar(_) if input.library == Library::Named("pyarrow") => {
            input.library.adapter(py)?.call_method1(intern!(py, "adopt"), (&input.object, array))
        }
        Kind::Scalar(_) | Kind::Array(_) => Ok(array),
        Kind::Export(_) => {
            input.library.adapter(py)?.call_method1(intern!(py, "settle"), (&input.object, array))
        }
        Kind::Copied { made, out } => {
            let library =
                if target.library == Library::NumPy { Library::Named("numpy") } else { target.library };
            library.adapter(py)?.call_method1(intern!(py, "assign"), (&out, made))?;
            Ok(out)
        }
    }
}

/// The class of named tuples with these fields, looked up once.
fn named_tuple<'py>(py: Python<'py>, name: &str, fields: &[String]) -> PyResult<Bound<'py, PyAny>> {
    static KNOWN: Mutex<Option<HashMap<String, Py<PyAny>>>> = Mutex::new(None);
    let key = format!("{name}({})", fields.join(","));
    let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(class) = lock().get_or_insert_default().get(&key) {
        return Ok(class.bind(py).clone());
    }
    let fields = PyTuple::new(py, fields)?;
    let class = py.import("coulis._named")?.getattr("named")?.call1((name, fields))?;
    lock().get_or_insert_default().insert(key, class.clone().unbind());
    Ok(class)
}
