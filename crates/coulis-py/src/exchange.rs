//! DLPack's C exchange API: a table of functions on an array's type, by which an array is described, made and given to
//! Python without capsules, and the current stream is asked for.
//!
//! It is taken where a library offers it; `__dlpack__` says the same, slower. Source: DLPack 1.3, `dlpack.h`.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use coulis::DType;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::dlpack::{Described, DlTensor, ManagedVersioned, Place, VERSION, code_of, device_of, read};

const NAME: &CStr = c"dlpack_exchange_api";

type SetError = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);
type Allocate = unsafe extern "C" fn(*mut DlTensor, *mut *mut ManagedVersioned, *mut c_void, SetError) -> i32;
type Export = unsafe extern "C" fn(*mut c_void, *mut *mut ManagedVersioned) -> i32;
type Import = unsafe extern "C" fn(*mut ManagedVersioned, *mut *mut c_void) -> i32;
type Describe = unsafe extern "C" fn(*mut c_void, *mut DlTensor) -> i32;
type CurrentStream = unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> i32;

/// What is the same in the tables of all versions.
#[repr(C)]
struct Header {
    version: [u32; 2],
    /// The table of an older version.
    older: *const Header,
}

/// The table of a type; libraries keep it to the end of the process.
#[repr(C)]
pub struct Exchange {
    header: Header,
    allocate: Option<Allocate>,
    export: Option<Export>,
    import: Option<Import>,
    describe: Option<Describe>,
    current_stream: Option<CurrentStream>,
}

// SAFETY: the table is never written.
unsafe impl Send for Exchange {}
// SAFETY: as above.
unsafe impl Sync for Exchange {}

/// Keeps what a library says of a failure that is not an exception.
///
/// # Safety
/// The context is a `String`, and the texts end with zero bytes.
unsafe extern "C" fn keep_message(context: *mut c_void, kind: *const c_char, message: *const c_char) {
    for text in [kind, message].into_iter().filter(|text| !text.is_null()) {
        // SAFETY: the caller's promise.
        let (kept, text) = unsafe { (&mut *context.cast::<String>(), CStr::from_ptr(text)) };
        if !kept.is_empty() {
            kept.push_str(": ");
        }
        kept.push_str(&text.to_string_lossy());
    }
}

impl Exchange {
    /// The table of a type, where it has one of a version that is known and that describes arrays.
    pub fn of_type(ty: &Bound<'_, PyType>) -> Option<&'static Exchange> {
        let capsule = ty.getattr(intern!(ty.py(), "__dlpack_c_exchange_api__")).ok()?;
        // SAFETY: asks for the type and name of any object before its pointer.
        let mut found: *const Header = unsafe {
            if ffi::PyCapsule_IsValid(capsule.as_ptr(), NAME.as_ptr()) != 1 {
                return None;
            }
            ffi::PyCapsule_GetPointer(capsule.as_ptr(), NAME.as_ptr()).cast()
        };
        loop {
            // SAFETY: a capsule of this name holds such a table, which begins with this header and is never freed.
            let header = unsafe { found.as_ref() }?;
            if header.version[0] == VERSION[0] {
                break;
            }
            found = header.older;
        }
        // SAFETY: tables of this version have these fields.
        let table: &'static Exchange = unsafe { &*found.cast::<Exchange>() };
        let is_whole = table.describe.is_some()
            && table.allocate.is_some()
            && table.import.is_some()
            && table.current_stream.is_some();
        is_whole.then_some(table)
    }

    /// What the library says of an array of the type.
    pub fn describe(&self, object: &Bound<'_, PyAny>) -> PyResult<Described> {
        let mut tensor = DlTensor::empty();
        let Some(describe) = self.describe else { return Err(missing("describe arrays")) };
        // SAFETY: the object is of the table's type; the struct is written.
        let status = unsafe { describe(object.as_ptr().cast(), &raw mut tensor) };
        if status != 0 {
            return Err(raised(object.py()));
        }
        // SAFETY: the library wrote it; shape and strides are the array's own.
        unsafe { read(&tensor, false) }
    }

    /// An unwritten row-major array of the library, and its address.
    pub fn empty<'py>(
        &self,
        py: Python<'py>,
        dtype: DType,
        shape: &[i64],
        place: Place,
    ) -> PyResult<(Bound<'py, PyAny>, usize)> {
        let (Some(allocate), Some(import)) = (self.allocate, self.import) else {
            return Err(missing("make arrays"));
        };
        let mut prototype = DlTensor::empty();
        prototype.device = device_of(place);
        prototype.ndim = i32::try_from(shape.len()).unwrap_or(0);
        prototype.dtype = code_of(dtype);
        // Who makes an array reads what it is to be like, and does not write there.
        prototype.shape = shape.as_ptr().cast_mut();
        let mut managed = ptr::null_mut();
        let mut said = String::new();
        // SAFETY: the prototype says all that is asked for; what is said of a failure is kept in the string.
        let status =
            unsafe { allocate(&raw mut prototype, &raw mut managed, (&raw mut said).cast(), keep_message) };
        if status != 0 || managed.is_null() {
            return Err(PyMemoryError::new_err(format!("the library has no memory for a result: {said}")));
        }
        // SAFETY: the array was made, and is given away only below.
        let address = unsafe { (*managed).tensor.address() };
        let mut object = ptr::null_mut();
        // SAFETY: takes the array; gives a new reference.
        unsafe {
            if import(managed, &raw mut object) != 0 || object.is_null() {
                return Err(raised(py));
            }
            Ok((Bound::from_owned_ptr(py, object.cast()), address))
        }
    }

    /// The library's current stream of a CUDA device.
    pub fn current_stream(&self, py: Python<'_>, id: usize) -> PyResult<usize> {
        let Some(current_stream) = self.current_stream else { return Err(missing("tell streams")) };
        let device = device_of(Place::Cuda(id));
        let mut stream = ptr::null_mut();
        // SAFETY: writes one pointer.
        match unsafe { current_stream(device.kind, device.id, &raw mut stream) } {
            0 => Ok(stream.addr()),
            _ => Err(raised(py)),
        }
    }
}

fn missing(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("the library's exchange table does not {what}"))
}

/// The exception that a function of a table left.
fn raised(py: Python<'_>) -> PyErr {
    PyErr::take(py).unwrap_or_else(|| PyRuntimeError::new_err("the library failed and did not say why"))
}
