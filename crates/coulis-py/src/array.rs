//! Arrays as callers give them: where their elements are, of what type, under which strides.
//!
//! DLPack is asked first; NumPy's array interface and CUDA's take what DLPack cannot say (`bfloat16` of `ml_dtypes`) or
//! what an old version of a library does not export (arrays that may not be written). Nothing is copied. Lists and
//! numbers go through `numpy.asarray`, which copies them.

use coulis::{Array, ArrayInfo, DType, compact_strides, numpy_dtype};
use pyo3::exceptions::{PyBufferError, PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::arrow;
use crate::dlpack::{self, Described, Place, legal_dtypes};
use crate::error::OrRaise;
use crate::exchange::Exchange;
use crate::library::{Library, TypeFacts, numpy};

/// An array of a caller, whose memory stays as long as this lives.
pub struct Given<'py> {
    /// The array, or what it became.
    pub object: Bound<'py, PyAny>,
    /// The library that results are to be of.
    pub library: Library,
    /// Element type, shape, strides in elements.
    pub info: ArrayInfo,
    /// Address of element `[0, ..., 0]`.
    pub address: usize,
    /// Where that is.
    pub place: Place,
    /// Whether it is not to be written.
    pub is_readonly: bool,
    /// The stream that the array came with, where it names one.
    pub stream: Option<usize>,
    /// How its library makes arrays and tells its stream, where it says so by DLPack.
    pub exchange: Option<&'static Exchange>,
    /// Which elements are valid, of Arrow arrays with nulls.
    pub valid: Option<Array>,
    /// What keeps the memory.
    _keep: Keep<'py>,
}

/// What keeps the memory of a given array.
enum Keep<'py> {
    /// The array itself, or a capsule of it.
    Object { _object: Option<Bound<'py, PyAny>> },
    /// An array of coulis' own.
    Own { _array: Array },
}

/// Whether an object is an array of some library, and not a list or a number.
pub fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyList>() {
        return Ok(false);
    }
    let py = object.py();
    for name in [
        intern!(py, "__dlpack__"),
        intern!(py, "__array_interface__"),
        intern!(py, "__cuda_array_interface__"),
        intern!(py, "__arrow_c_array__"),
    ] {
        if object.hasattr(name)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What errors call the mask of a call, whose elements are bools.
pub const MASK: &str = "where";

impl<'py> Given<'py> {
    /// The array of an object; `what` names the argument in errors.
    pub fn of(object: &Bound<'py, PyAny>, what: &str) -> PyResult<Given<'py>> {
        let py = object.py();
        let facts = TypeFacts::of(object)?;
        if facts.is_masked {
            let way = match what {
                MASK => "give an array in which its mask is False, `x.filled(False)`",
                _ => "give its `data`, and `where=~x.mask`",
            };
            let message = format!("`{what}` is a masked array; {way}");
            return Err(PyTypeError::new_err(message));
        }
        if let Some(exchange) = facts.exchange
            && let Some(given) = Given::of_exchange(object, facts.library, exchange)?
        {
            return Ok(given);
        }
        match facts.library {
            Some(Library::NumPy) if facts.is_ndarray => Given::of_numpy(object, what),
            // Its tensors are arrays of several dimensions, and no Arrow arrays.
            Some(library @ Library::Named("pyarrow"))
                if object.hasattr(intern!(py, "__dlpack__"))?
                    && !object.hasattr(intern!(py, "__arrow_c_array__"))? =>
            {
                Given::of_any(object, library, what)
            }
            Some(library @ Library::Named("pyarrow")) => Given::of_arrow(object, library),
            Some(library @ Library::Named(_)) => {
                let seen = library.adapter(py)?.call_method1(intern!(py, "view"), (object, what))?;
                // Bytes, and the type of the elements that they hold, which the library does not say by DLPack.
                let Ok((bytes, held)) = seen.extract::<(Bound<'py, PyAny>, String)>() else {
                    return Given::of_any(&seen, library, what);
                };
                let mut given = Given::of_any(&bytes, library, what)?;
                given.info.dtype = dtype(held.into_pyobject(py)?.as_any())?;
                given.object = object.clone();
                Ok(given)
            }
            Some(Library::NumPy) | None => {
                if object.hasattr(intern!(py, "__arrow_c_array__"))? {
                    return Given::of_arrow(object, Library::Named("pyarrow"));
                }
                if object.hasattr(intern!(py, "__dlpack__"))?
                    || object.hasattr(intern!(py, "__cuda_array_interface__"))?
                {
                    return Given::of_any(object, Library::Named("other"), what);
                }
                Given::of_numbers(object, what)
            }
        }
    }

    /// Lists, numbers, and what speaks NumPy's protocols only.
    fn of_numbers(object: &Bound<'py, PyAny>, what: &str) -> PyResult<Given<'py>> {
        let array = numpy(object.py())?.asarray.bind(object.py()).call1((object,))?;
        Given::of(&array, what)
    }

    /// The array as the functions of its type say; `None` where they do not say it, or not all of it.
    fn of_exchange(
        object: &Bound<'py, PyAny>,
        library: Option<Library>,
        exchange: &'static Exchange,
    ) -> PyResult<Option<Given<'py>>> {
        // Tensors of PyTorch may be read as negated, of which DLPack knows nothing.
        if library == Some(Library::Named("torch"))
            && object.call_method0(intern!(object.py(), "is_neg"))?.is_truthy()?
        {
            return Ok(None);
        }
        // What it refuses, the slow way refuses with its own words, or takes.
        let Ok(found) = exchange.describe(object) else { return Ok(None) };
        // Of a tensor that stands for a shape alone this is an offset from address 0; the slow way tells which is which.
        if u32::try_from(found.address).is_ok() {
            return Ok(None);
        }
        // It calls integers of fewer bits those of 8.
        if library == Some(Library::Named("torch")) && found.info.dtype.bytes() == 1 {
            return Ok(None);
        }
        let library = library.unwrap_or(Library::Named("other"));
        let given = Given::described(object, library, found, None)?;
        Ok(Some(Given { exchange: Some(exchange), ..given }))
    }

    fn of_numpy(object: &Bound<'py, PyAny>, what: &str) -> PyResult<Given<'py>> {
        let py = object.py();
        let library = Library::NumPy;
        static VERSIONED: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
        let words = VERSIONED.get_or_try_init(py, || {
            let words = PyDict::new(py);
            words.set_item("max_version", (1, 1))?;
            Ok::<_, PyErr>(words.unbind())
        })?;
        let name = intern!(py, "__dlpack__");
        let capsule = object.call_method(name, (), Some(words.bind(py)));
        match capsule {
            Ok(capsule) => Given::described(object, library, dlpack::describe(&capsule)?, Some(capsule)),
            Err(error)
                if error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyBufferError>(py) =>
            {
                if let Some((bytes, held)) = numpy(py)?.as_integers(object)? {
                    let mut given = Given::of_numpy(&bytes, what)?;
                    given.info.dtype = held;
                    given.object = object.clone();
                    return Ok(given);
                }
                let interface = object.getattr(intern!(py, "__array_interface__"))?;
                Given::of_interface(object, library, &interface, Place::Host, what)
            }
            Err(error) => Err(error),
        }
    }

    fn of_any(object: &Bound<'py, PyAny>, library: Library, what: &str) -> PyResult<Given<'py>> {
        let py = object.py();
        if !object.hasattr(intern!(py, "__dlpack__"))? {
            let interface = object.getattr(intern!(py, "__cuda_array_interface__"))?;
            // The interface does not name the device, of which the driver knows by the address.
            let (address, _): (usize, bool) = interface.get_item("data")?.extract()?;
            let device = coulis::machine::cuda_device_of(address).unwrap_or(0);
            return Given::of_interface(object, library, &interface, Place::Cuda(device), what);
        }
        let (kind, _): (i32, i32) = object.call_method0(intern!(py, "__dlpack_device__"))?.extract()?;
        dlpack::reachable(kind)?;
        let name = intern!(py, "__dlpack__");
        let capsule = if matches!(kind, 2 | 13) {
            // -1: work goes on the library's own stream, so nothing needs to wait. JAX shows none, and waits for the
            // default stream, which coulis then takes.
            let stream = if library == Library::Named("jax") { 1 } else { -1 };
            let words = PyDict::new(py);
            words.set_item(intern!(py, "stream"), stream)?;
            object.call_method(name, (), Some(&words))?
        } else {
            let words = PyDict::new(py);
            words.set_item(intern!(py, "max_version"), (1, 1))?;
            match object.call_method(name, (), Some(&words)) {
                Err(error) if error.is_instance_of::<PyTypeError>(py) => object.call_method0(name)?,
                // What DLPack has no type for.
                Err(error) if error.is_instance_of::<PyBufferError>(py) => {
                    let why = error.value(py);
                    return Err(PyTypeError::new_err(format!("`{what}` cannot be read: {why}")));
                }
                other => other?,
            }
        };
        Given::described(object, library, dlpack::describe(&capsule)?, Some(capsule))
    }

    fn described(
        object: &Bound<'py, PyAny>,
        library: Library,
        found: Described,
        keep: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Given<'py>> {
        let Described { info, address, place, is_readonly } = found;
        let object = object.clone();
        let keep = Keep::Object { _object: keep };
        Ok(Given {
            object,
            library,
            info,
            address,
            place,
            is_readonly,
            stream: None,
            exchange: None,
            valid: None,
            _keep: keep,
        })
    }

    /// The array of an array interface, NumPy's or CUDA's.
    fn of_interface(
        object: &Bound<'py, PyAny>,
        library: Library,
        interface: &Bound<'py, PyAny>,
        place: Place,
        what: &str,
    ) -> PyResult<Given<'py>> {
        let typestr: String = interface.get_item("typestr")?.extract()?;
        let dtype = match interface_dtype(&typestr) {
            Some(dtype) => dtype,
            None if !typestr.starts_with('>')
                && typestr.contains(['V', 'f'])
                && object.hasattr("dtype")? =>
            {
                let named = object.getattr("dtype")?;
                dtype(&named).or_else(|_| Err(no_elements(what, named.str()?.to_str()?)))?
            }
            None if typestr.contains('c') => {
                let message = format!("complex elements are not supported; {}", legal_dtypes());
                return Err(PyNotImplementedError::new_err(message));
            }
            None => return Err(no_elements(what, &typestr)),
        };
        let is_masked = interface.get_item("mask").is_ok_and(|mask| !mask.is_none());
        if is_masked {
            let message = format!("`{what}` is a masked array; give its data, and its mask as `where`");
            return Err(PyTypeError::new_err(message));
        }
        let shape: Vec<i64> = interface.get_item("shape")?.extract()?;
        let (address, is_readonly): (usize, bool) = interface.get_item("data")?.extract()?;
        let given: Option<Vec<i64>> = match interface.get_item("strides") {
            Ok(strides) => strides.extract()?,
            Err(_) => None,
        };
        let width = dtype.bytes() as i64;
        let strides = match given {
            None => compact_strides(&shape),
            Some(strides) if strides.iter().zip(&shape).all(|(s, n)| *n < 2 || s % width == 0) => {
                strides.iter().map(|s| s / width).collect()
            }
            Some(strides) => {
                let message = format!(
                    "`{what}` has strides of {strides:?} bytes, which are to be multiples of {width}; give a copy of it"
                );
                return Err(PyValueError::new_err(message));
            }
        };
        let stream: Option<usize> = match interface.get_item("stream") {
            Ok(stream) => stream.extract()?,
            Err(_) => None,
        };
        Ok(Given {
            object: object.clone(),
            library,
            info: ArrayInfo { dtype, shape, strides },
            address,
            place,
            is_readonly,
            stream,
            exchange: None,
            valid: None,
            _keep: Keep::Object { _object: None },
        })
    }

    /// Arrow's arrays are of one dimension; its booleans are unpacked, everything else is read where it is.
    fn of_arrow(object: &Bound<'py, PyAny>, library: Library) -> PyResult<Given<'py>> {
        let found = arrow::read(object)?;
        let (address, keep) = match found.values {
            arrow::Values::There(address) => (address, Keep::Object { _object: Some(found.keep) }),
            arrow::Values::Unpacked(array) => (array.as_ptr().addr(), Keep::Own { _array: array }),
        };
        Ok(Given {
            object: object.clone(),
            library,
            info: ArrayInfo { dtype: found.dtype, shape: vec![found.len], strides: vec![1] },
            address,
            place: Place::Host,
            is_readonly: true,
            stream: None,
            exchange: None,
            valid: found.valid,
            _keep: keep,
        })
    }

    /// The array as the facade takes it. Of arrays on a device only what it is like may be asked, not its elements.
    ///
    /// # Safety
    /// This lives longer than the result.
    pub unsafe fn array(&self) -> PyResult<Array> {
        let ArrayInfo { dtype, shape, strides } = &self.info;
        let first = std::ptr::with_exposed_provenance(self.address);
        // SAFETY: the library that gave the memory keeps it as long as this lives; that nobody writes to it meanwhile
        // is the caller's part, as with every library that gives up the interpreter's lock.
        unsafe { Array::from_foreign(*dtype, shape, strides, first, None) }.or_raise()
    }

    /// The stream for work on this array of a device, and whether that work is to be waited for: the stream that the
    /// array came with, the current one of its library, else the default one.
    pub fn current_stream(&self, py: Python<'_>) -> PyResult<(usize, bool)> {
        if let (Some(exchange), Place::Cuda(id)) = (self.exchange, self.place) {
            return Ok((exchange.current_stream(py, id)?, false));
        }
        match (self.stream, self.library) {
            (Some(stream), _) => Ok((stream, true)),
            (None, library @ Library::Named("torch" | "cupy")) => {
                let adapter = library.adapter(py)?;
                Ok((adapter.call_method1(intern!(py, "stream"), (&self.object,))?.extract()?, false))
            }
            (None, Library::Named(_) | Library::NumPy) => Ok((0, true)),
        }
    }

    /// Whether an element of this array may share a byte with one of the other: not where their ranges are apart, nor
    /// where both step over each other's elements, as columns or halves of the columns of one table do.
    pub fn may_meet(&self, other: &Given) -> bool {
        let (mine, theirs) = (self.range(), other.range());
        if mine.0 >= theirs.1 || theirs.0 >= mine.1 {
            return false;
        }
        let steps: Vec<i128> =
            [self, other].into_iter().flat_map(Given::steps).map(|(step, _)| step.abs()).collect();
        let common = steps.iter().copied().fold(0, coulis::gcd);
        !steps.into_iter().chain([common]).any(|period| self.is_beside(other, period))
    }

    /// Whether the elements of the two are at other bytes of any `period` bytes, counted from one place.
    fn is_beside(&self, other: &Given, period: i128) -> bool {
        if period == 0 {
            return false;
        }
        let (Some(own), Some(others)) = (self.within(period), other.within(period)) else { return false };
        let ahead = (others.0 - own.0).rem_euclid(period);
        own.1 <= ahead && others.1 <= period - ahead
    }

    /// The first byte of the elements that are not a whole number of periods behind another, and how many bytes these span.
    fn within(&self, period: i128) -> Option<(i128, i128)> {
        let (mut lo, mut hi) = (0i128, self.info.dtype.bytes() as i128);
        for (step, extent) in self.steps().filter(|(step, _)| step % period != 0) {
            let reach = step.checked_mul(extent - 1)?;
            let end = if reach < 0 { &mut lo } else { &mut hi };
            *end = end.checked_add(reach)?;
        }
        Some((lo.checked_add(self.address as i128)?, hi.checked_sub(lo)?))
    }

    /// Bytes between neighbours along each axis that has some, and its extent.
    fn steps(&self) -> impl Iterator<Item = (i128, i128)> + '_ {
        let width = self.info.dtype.bytes() as i128;
        let axes = self.info.shape.iter().zip(&self.info.strides);
        let of_several = axes.filter(|(extent, _)| **extent > 1);
        of_several.map(move |(extent, stride)| (i128::from(*stride) * width, i128::from(*extent)))
    }

    /// Bytes from the first to the last element, by address.
    pub fn range(&self) -> (i128, i128) {
        if self.info.shape.contains(&0) {
            return (0, 0);
        }
        let width = self.info.dtype.bytes() as i128;
        let place = |n: i128| n.checked_mul(width)?.checked_add(self.address as i128);
        // What no memory holds is refused elsewhere, and meets everything here.
        let range = self.info.reach().and_then(|(lo, hi)| place(lo).zip(place(hi.checked_add(1)?)));
        range.unwrap_or((i128::MIN, i128::MAX))
    }
}

fn no_elements(what: &str, found: &str) -> PyErr {
    let why = match found {
        _ if found.starts_with('>') => {
            ", whose bytes are in the order of other machines (`x.astype(x.dtype.newbyteorder('='))` turns them)"
        }
        // The name of an element type of coulis, which has no infinities.
        "float8_e4m3" => ", which here has infinities (`x.astype(ml_dtypes.float8_e4m3fn)` has none)",
        _ => "",
    };
    let legal = if what == MASK { "they are to be bool".to_owned() } else { legal_dtypes() };
    PyTypeError::new_err(format!("`{what}` has elements of type `{found}`{why}; {legal}"))
}

fn interface_dtype(typestr: &str) -> Option<DType> {
    typestr.strip_prefix('<').or_else(|| typestr.strip_prefix('|')).and_then(numpy_dtype)
}

/// What NumPy calls a dtype whose bytes are in the order of other machines, which its name leaves out.
fn foreign_order(object: &Bound<'_, PyAny>) -> Option<String> {
    let text = |name| object.getattr(name).and_then(|text| text.extract::<String>()).ok();
    (text("byteorder")? == ">").then(|| text("str")).flatten()
}

/// The element type that an object names: a string, a dtype of any library, or a Python type.
pub fn dtype(object: &Bound<'_, PyAny>) -> PyResult<DType> {
    let text = if let Ok(word) = object.extract::<String>() {
        return dtype_named(&word);
    } else if let Some(text) = foreign_order(object) {
        text
    } else if let Ok(name) = object.getattr("name").and_then(|name| name.extract::<String>()) {
        name
    } else if let Ok(name) = object.getattr("__name__").and_then(|name| name.extract::<String>()) {
        name
    } else {
        object.str()?.to_string()
    };
    // Other libraries call another type so, which has infinities.
    if text.ends_with("float8_e4m3") {
        let message =
            format!("`{text}` with infinities is not supported, `float8_e4m3fn` is; {}", legal_dtypes());
        return Err(PyTypeError::new_err(message));
    }
    dtype_named(&text)
}

/// The element type of that name, coulis', NumPy's or Python's.
pub fn dtype_named(text: &str) -> PyResult<DType> {
    let name = text.rsplit('.').next().unwrap_or(text);
    // A byte order says that the word is NumPy's.
    if let Some(dtype) = interface_dtype(&name.replacen('=', "<", 1)) {
        return Ok(dtype);
    }
    // NumPy counts bytes in such names, and coulis bits.
    if let Some((stem, narrow)) = match name {
        "i8" => Some(("int", "int8")),
        "u8" => Some(("uint", "uint8")),
        "f8" => Some(("float", "float8_e4m3")),
        _ => None,
    } {
        let message = format!(
            "`{text}` is {stem}64 where bytes are counted, as by NumPy, and 8 bits wide where bits are; legal are \
             `{stem}64` and `{narrow}`"
        );
        return Err(PyTypeError::new_err(message));
    }
    let name = match name {
        "float" | "double" => "float64",
        "half" | "e" | "f2" => "float16",
        "single" | "f" | "f4" => "float32",
        "d" => "float64",
        "i1" | "b" => "int8",
        "i2" | "h" => "int16",
        "i4" | "i" => "int32",
        "q" => "int64",
        "u1" | "B" => "uint8",
        "u2" | "H" => "uint16",
        "u4" | "I" => "uint32",
        "Q" => "uint64",
        "b1" | "?" => "bool",
        "int" => "int64",
        "bool_" => "bool",
        other => other,
    };
    name.parse()
        .map_err(|_| PyTypeError::new_err(format!("`{text}` names no element type; {}", legal_dtypes())))
}
