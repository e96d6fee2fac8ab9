//! Where results are written, and what the caller gets of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use coulis::reduce::Prepared;
use coulis::{AlignedBytes, Array, ArrayInfo};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::array::Given;
use crate::dlpack::{Export, Memory, Place, row_major};
use crate::error::OrRaise;
use crate::library::{Library, numpy};
use crate::options::Ops;
use crate::recent::Known;

/// The arrays of `out`, one a result; none where coulis makes the results.
pub struct Outs<'py>(Vec<Option<Bound<'py, PyAny>>>);

/// The statistic of a result: `maxloc` of `maxloc.index`.
fn op_of(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

impl<'py> Outs<'py> {
    /// Reads `out`: an array, a list of arrays in the order of the statistics, or a dict by their names. A statistic with
    /// two results takes a pair.
    pub fn of(out: Option<&Bound<'py, PyAny>>, ops: &Ops, prepared: &Prepared) -> PyResult<Outs<'py>> {
        let n_results = prepared.results().count();
        let Some(out) = out.filter(|o| !o.is_none()) else {
            return Ok(Outs(vec![None; n_results]));
        };
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
                let message = format!("`out` has {} arrays for {} statistics", list.len(), ops.names.len());
                return Err(PyValueError::new_err(message));
            }
            list.into_iter().map(Some).collect()
        };
        let mut outs = Vec::with_capacity(n_results);
        for (name, given) in ops.names.iter().zip(by_name) {
            let n = prepared.results().filter(|(result, _)| op_of(result) == name).count();
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

/// A result, and where it is written.
pub struct Target<'py> {
    /// Its name.
    pub name: String,
    /// Its type and shape, row-major.
    pub info: ArrayInfo,
    /// Address of its memory.
    pub address: usize,
    /// Its library.
    pub library: Library,
    /// What is folded in, for a beta; on the host.
    pub prior: Option<Array>,
    /// The same on a device.
    pub prior_address: Option<usize>,
    kind: Kind<'py>,
    /// Keeps a prior on a device.
    _prior: Option<Given<'py>>,
}

impl<'py> Target<'py> {
    /// Bytes of the result.
    pub fn n_bytes(&self) -> usize {
        self.info.shape.iter().product::<i64>() as usize * self.info.dtype.bytes()
    }

    /// The array that was written.
    pub fn array(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.kind {
            Kind::Scalar(bytes) => {
                let mut word = [0; 8];
                word.copy_from_slice(bytes.as_slice());
                numpy(py)?.scalar(py, self.info.dtype, word)
            }
            Kind::Array(array) | Kind::Copied { made: array, .. } => Ok(array.clone()),
            Kind::Export(export) => self.library.adapter(py)?.call_method1(intern!(py, "adopt"), (export,)),
        }
    }
}

/// A place for each result: in `out`, or newly made.
pub fn targets<'py>(
    py: Python<'py>,
    inputs: &[Given<'py>],
    place: Place,
    outs: &Outs<'py>,
    prepared: &Prepared,
) -> PyResult<Vec<Target<'py>>> {
    let priors = prepared.wants_priors();
    let shape = prepared.out_shape();
    let mut targets: Vec<Target<'py>> = Vec::with_capacity(outs.0.len());
    let mut given_outs: Vec<Given<'py>> = Vec::new();
    for ((name, info), out) in prepared.results().zip(&outs.0) {
        let strides = row_major(shape);
        let info = ArrayInfo { dtype: info.dtype, shape: shape.to_vec(), strides };
        let name = name.to_owned();
        let Some(out) = out else {
            if priors.contains(&name.as_str()) {
                let message =
                    format!("beta of `{name}` is not 0, and there is no `out` that holds its prior");
                return Err(PyValueError::new_err(message));
            }
            targets.push(made(py, name, info, &inputs[0], place, prepared)?);
            continue;
        };
        let given = checked(out, &name, &info, place)?;
        if given_outs.iter().any(|other| other.may_meet(&given)) {
            let message = format!("`out` of `{name}` overlaps another result's");
            return Err(PyValueError::new_err(message));
        }
        given_outs.push(given);
        let Some(given) = given_outs.last() else { continue };
        let has_prior = priors.contains(&name.as_str());
        let is_direct =
            !has_prior && is_row_major(&given.info) && !inputs.iter().any(|input| input.may_meet(given));
        if is_direct {
            let (address, library) = (given.address, given.library);
            let kind = Kind::Array(out.clone());
            targets.push(Target {
                name,
                info,
                address,
                library,
                prior: None,
                prior_address: None,
                kind,
                _prior: None,
            });
            continue;
        }
        let fresh = made_array(py, given.library, &given.object, &info)?;
        let mut target = Target {
            name,
            info,
            address: fresh.1,
            library: given.library,
            prior: None,
            prior_address: None,
            kind: Kind::Copied { made: fresh.0, out: out.clone() },
            _prior: None,
        };
        if has_prior {
            match place {
                // SAFETY: the copy, if there is one, owns its memory; else the call keeps `out`.
                Place::Host => target.prior = Some(unsafe { given.array() }?.to_row_major().or_raise()?),
                Place::Cuda(_) => {
                    let adapter = given.library.adapter(py)?;
                    let seen = adapter.call_method1(intern!(py, "row_major"), (&given.object,))?;
                    let seen = Given::of(&seen, "out")?;
                    target.prior_address = Some(seen.address);
                    target._prior = Some(seen);
                }
            }
        }
        targets.push(target);
    }
    Ok(targets)
}

/// `out`, if the result can be written there.
fn checked<'py>(out: &Bound<'py, PyAny>, name: &str, info: &ArrayInfo, place: Place) -> PyResult<Given<'py>> {
    if !crate::array::is_array(out)? {
        let message = format!(
            "`out` of `{name}` is to be an array, got an object of type `{}`",
            out.get_type().name()?
        );
        return Err(PyTypeError::new_err(message));
    }
    let given = Given::of(out, "out")?;
    if given.library == Library::Named("jax") || given.library == Library::Named("pyarrow") {
        let message = format!("`out` of `{name}` is of a library whose arrays cannot be written");
        return Err(PyTypeError::new_err(message));
    }
    let refused = |message: String| Err(PyValueError::new_err(message));
    if given.info.dtype != info.dtype || given.info.shape != info.shape {
        return refused(format!(
            "`out` of `{name}` is to be {} of shape {:?}, got {} of shape {:?}",
            info.dtype, info.shape, given.info.dtype, given.info.shape
        ));
    }
    if given.is_readonly {
        return refused(format!("`out` of `{name}` is not to be written"));
    }
    if given.place != place {
        return refused(format!("`out` of `{name}` is not where the input is"));
    }
    Ok(given)
}

fn is_row_major(info: &ArrayInfo) -> bool {
    let wanted = row_major(&info.shape);
    info.shape.contains(&0)
        || info.shape.iter().zip(info.strides.iter().zip(wanted)).all(|(&n, (&s, w))| n == 1 || s == w)
}

/// A new array of a library whose arrays can be written, and its address.
fn made_array<'py>(
    py: Python<'py>,
    library: Library,
    like: &Bound<'py, PyAny>,
    info: &ArrayInfo,
) -> PyResult<(Bound<'py, PyAny>, usize)> {
    if library == Library::NumPy {
        let array = numpy(py)?.empty(py, &info.shape, info.dtype)?;
        let address = Given::of(&array, "out")?.address;
        return Ok((array, address));
    }
    let shape = PyTuple::new(py, &info.shape)?;
    let words = (like, shape, info.dtype.name());
    library.adapter(py)?.call_method1(intern!(py, "empty"), words)?.extract()
}

/// A new place for a result of the input's library.
fn made<'py>(
    py: Python<'py>,
    name: String,
    info: ArrayInfo,
    input: &Given<'py>,
    place: Place,
    prepared: &Prepared,
) -> PyResult<Target<'py>> {
    let library = input.library;
    let n_bytes = info.shape.iter().product::<i64>() as usize * info.dtype.bytes();
    let (address, kind) = match library {
        _ if let Some(exchange) = input.exchange
            && library != Library::NumPy =>
        {
            let (array, address) = exchange.empty(py, &info, place)?;
            (address, Kind::Array(array))
        }
        Library::NumPy | Library::Named("pyarrow") if info.shape.is_empty() => {
            let mut bytes = AlignedBytes::zeroed(size_of::<u64>()).or_raise()?;
            (bytes.as_mut_slice().as_mut_ptr().expose_provenance(), Kind::Scalar(bytes))
        }
        Library::NumPy | Library::Named("pyarrow") => {
            let (array, address) = made_array(py, Library::NumPy, &input.object, &info)?;
            (address, Kind::Array(array))
        }
        Library::Named("torch" | "cupy") => {
            let (array, address) = made_array(py, library, &input.object, &info)?;
            (address, Kind::Array(array))
        }
        Library::Named(_) => {
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
            (address, Kind::Export(Py::new(py, Export::new(memory, info.dtype, &info.shape))?))
        }
    };
    Ok(Target { name, info, address, library, prior: None, prior_address: None, kind, _prior: None })
}

/// What the caller gets: one result, or a named tuple of the results by statistic.
pub fn assemble<'py>(
    py: Python<'py>,
    known: &Known,
    targets: Vec<Target<'py>>,
    input: &Given<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let ops = &known.ops;
    let mut results = Vec::with_capacity(ops.names.len());
    let mut left = targets.into_iter().peekable();
    for op in &ops.names {
        let mut fields = Vec::new();
        let mut values = Vec::new();
        while let Some(target) = left.next_if(|t| op_of(&t.name) == op) {
            fields.push(target.name.split_once('.').map_or("value", |(_, field)| field).to_owned());
            values.push(finished(py, target, input)?);
        }
        results.push(match values.len() {
            1 => values.swap_remove(0),
            _ => named_tuple(py, op, &fields)?.call1(PyTuple::new(py, values)?)?,
        });
    }
    if ops.is_single {
        return Ok(results.swap_remove(0));
    }
    let class = match known.class.get() {
        Some(class) => class.bind(py).clone(),
        None => {
            let class = named_tuple(py, "Reduced", &ops.names)?;
            known.class.get_or_init(|| class.clone().unbind());
            class
        }
    };
    class.call1(PyTuple::new(py, results)?)
}

fn finished<'py>(py: Python<'py>, target: Target<'py>, input: &Given<'py>) -> PyResult<Bound<'py, PyAny>> {
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
