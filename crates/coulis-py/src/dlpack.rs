//! DLPack 1.x: the structs by which libraries hand arrays to each other, read and made.
//!
//! A capsule is read while it is held, and not taken: its own destructor then gives the array back. Source: DLPack 1.1,
//! `dlpack.h` and the Python specification.

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use coulis::{AlignedBytes, ArrayInfo, DType, DeviceMemory, compact_strides};
use pyo3::exceptions::{PyBufferError, PyNotImplementedError, PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

const LEGACY: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const READ_ONLY: u64 = 1;
/// The version that is written; any of the same first number is read.
pub const VERSION: [u32; 2] = [1, 0];

/// A device: DLPack's number of its kind, and its own.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct DlDevice {
    /// 1 is the CPU, 2 CUDA.
    pub kind: i32,
    /// Its number among its kind.
    pub id: i32,
}

/// An element type.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct DlDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// An array: where it is, and what.
#[repr(C)]
pub struct DlTensor {
    data: *mut c_void,
    /// Where it is.
    pub device: DlDevice,
    /// Number of axes.
    pub ndim: i32,
    /// Element type.
    pub dtype: DlDataType,
    /// Extents.
    pub shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

impl DlTensor {
    /// Nothing, to be written.
    pub fn empty() -> DlTensor {
        DlTensor {
            data: std::ptr::null_mut(),
            device: DlDevice { kind: 1, id: 0 },
            ndim: 0,
            dtype: DlDataType { code: 0, bits: 0, lanes: 0 },
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        }
    }

    /// Address of element `[0, ..., 0]`.
    pub fn address(&self) -> usize {
        self.data.addr().wrapping_add(self.byte_offset as usize)
    }
}

#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// An array with what frees it.
#[repr(C)]
pub struct ManagedVersioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    /// The array.
    pub tensor: DlTensor,
}

/// Where an array's elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Memory that the CPU reads.
    Host,
    /// Memory of a CUDA device of that number.
    Cuda(usize),
}

/// A place by DLPack's numbers.
pub fn device_of(place: Place) -> DlDevice {
    match place {
        Place::Host => DlDevice { kind: 1, id: 0 },
        Place::Cuda(id) => DlDevice { kind: 2, id: i32::try_from(id).unwrap_or(0) },
    }
}

/// What a capsule says of its array.
pub struct Described {
    /// Element type, shape, strides in elements.
    pub info: ArrayInfo,
    /// Address of element `[0, ..., 0]`.
    pub address: usize,
    /// Where that is.
    pub place: Place,
    /// Whether it is not to be written.
    pub is_readonly: bool,
}

/// What a capsule of either kind says; it is true as long as the capsule lives.
pub fn describe(capsule: &Bound<'_, PyAny>) -> PyResult<Described> {
    let pointer = |name: &CStr| {
        // SAFETY: asks for the type and name of any object before its pointer.
        unsafe {
            let is_named = ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 1;
            is_named.then(|| ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()))
        }
    };
    if let Some(found) = pointer(VERSIONED) {
        // SAFETY: a capsule of this name holds this struct, whose beginning is the same in all versions.
        let managed = unsafe { &*found.cast::<ManagedVersioned>() };
        if managed.version[0] != VERSION[0] {
            let message =
                format!("DLPack {}.{} is not read; legal is 1.x", managed.version[0], managed.version[1]);
            return Err(PyBufferError::new_err(message));
        }
        // SAFETY: as above.
        return unsafe { read(&managed.tensor, managed.flags & READ_ONLY != 0) };
    }
    match pointer(LEGACY) {
        // SAFETY: a capsule of this name holds this struct.
        Some(found) => unsafe { read(&(*found.cast::<Managed>()).tensor, false) },
        None => {
            Err(PyTypeError::new_err("`__dlpack__` did not give a DLPack capsule that is still to be used"))
        }
    }
}

fn unreachable_device(kind: i32) -> PyErr {
    PyRuntimeError::new_err(format!(
        "the array is on a device of DLPack's kind {kind}, which coulis cannot reach; legal are the CPU and CUDA"
    ))
}

/// Refuses devices that are neither the CPU nor CUDA.
pub fn reachable(kind: i32) -> PyResult<()> {
    if matches!(kind, 1 | 2 | 3 | 13) { Ok(()) } else { Err(unreachable_device(kind)) }
}

/// What a struct says of its array.
///
/// # Safety
/// The tensor's shape and strides have `ndim` entries.
pub unsafe fn read(tensor: &DlTensor, is_readonly: bool) -> PyResult<Described> {
    let place = match (tensor.device.kind, usize::try_from(tensor.device.id)) {
        (1 | 3, _) => Place::Host,
        (2 | 13, Ok(id)) => Place::Cuda(id),
        (kind, _) => return Err(unreachable_device(kind)),
    };
    let rank = usize::try_from(tensor.ndim).unwrap_or(0);
    let list = |from: *const i64| {
        if rank == 0 || from.is_null() {
            return Vec::new();
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(from, rank) }.to_vec()
    };
    let shape = list(tensor.shape);
    let dtype = dtype_of(tensor.dtype)?;
    // CuPy divides strides below 0 as if they were unsigned; in bytes, modulo 2^64, they are what they were.
    let width = dtype.bytes() as i64;
    let signed = |stride: i64| stride.wrapping_mul(width) / width;
    let strides = if tensor.strides.is_null() {
        compact_strides(&shape)
    } else {
        list(tensor.strides).into_iter().map(signed).collect()
    };
    Ok(Described { info: ArrayInfo { dtype, shape, strides }, address: tensor.address(), place, is_readonly })
}

fn dtype_of(found: DlDataType) -> PyResult<DType> {
    let dtype = match (found.code, found.bits) {
        (0, 8) => Some(DType::I8),
        (0, 16) => Some(DType::I16),
        (0, 32) => Some(DType::I32),
        (0, 64) => Some(DType::I64),
        (1, 8) => Some(DType::U8),
        (1, 16) => Some(DType::U16),
        (1, 32) => Some(DType::U32),
        (1, 64) => Some(DType::U64),
        (2, 16) => Some(DType::F16),
        (2, 32) => Some(DType::F32),
        (2, 64) => Some(DType::F64),
        (4, 16) => Some(DType::BF16),
        (6, 8) => Some(DType::Bool),
        (10, 8) => Some(DType::F8E4M3),
        (12, 8) => Some(DType::F8E5M2),
        _ => None,
    };
    dtype.filter(|_| found.lanes == 1).ok_or_else(|| {
        let what = if found.code == 5 {
            "complex elements".to_owned()
        } else {
            format!(
                "elements of DLPack's type {} with {} bits and {} lanes",
                found.code, found.bits, found.lanes
            )
        };
        PyNotImplementedError::new_err(format!("{what} are not supported; {}", legal_dtypes()))
    })
}

/// The element types, for messages.
pub fn legal_dtypes() -> String {
    let names: Vec<&str> = DType::ALL.iter().map(|d| d.name()).collect();
    format!("legal element types are {}", names.join(", "))
}

/// DLPack's number of an element type.
pub fn code_of(dtype: DType) -> DlDataType {
    let code = match dtype {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 0,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 1,
        DType::F16 | DType::F32 | DType::F64 => 2,
        DType::BF16 => 4,
        DType::Bool => 6,
        DType::F8E4M3 => 10,
        DType::F8E5M2 => 12,
    };
    DlDataType { code, bits: dtype.bytes() as u8 * 8, lanes: 1 }
}

/// Memory of coulis behind a result.
pub enum Memory {
    /// Of the host.
    Host(AlignedBytes),
    /// Of the CUDA device of that number.
    Device(DeviceMemory, usize),
}

struct Parts {
    memory: Memory,
    dtype: DType,
    shape: Vec<i64>,
}

/// A row-major array of coulis, which other libraries take by DLPack.
#[pyclass(frozen, module = "coulis")]
pub struct Export(Arc<Parts>);

impl Export {
    /// An array over its memory.
    pub fn new(memory: Memory, dtype: DType, shape: &[i64]) -> Export {
        Export(Arc::new(Parts { memory, dtype, shape: shape.to_vec() }))
    }

    fn device(&self) -> DlDevice {
        device_of(match &self.0.memory {
            Memory::Host(_) => Place::Host,
            Memory::Device(_, id) => Place::Cuda(*id),
        })
    }
}

/// What a consumer keeps of an export.
struct Kept {
    parts: Arc<Parts>,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// # Safety
/// The struct is one that `Export::__dlpack__` made, and it is not used again.
unsafe extern "C" fn drop_legacy(managed: *mut Managed) {
    // SAFETY: the caller's promise.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Kept>()));
    }
}

/// # Safety
/// As for [`drop_legacy`].
unsafe extern "C" fn drop_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: the caller's promise.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Kept>()));
    }
}

/// Frees what no consumer took: one that takes it renames the capsule.
unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule is one that `Export::__dlpack__` made; its name says what it holds.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            drop_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, LEGACY.as_ptr()) == 1 {
            drop_legacy(ffi::PyCapsule_GetPointer(capsule, LEGACY.as_ptr()).cast());
        }
    }
}

#[pymethods]
impl Export {
    /// The kind and number of the device.
    fn __dlpack_device__(&self) -> (i32, i32) {
        let device = self.device();
        (device.kind, device.id)
    }

    /// A capsule; what it holds is ready on every stream.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<Bound<'py, PyTuple>>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = stream;
        let device = self.device();
        if copy == Some(true) || dl_device.is_some_and(|asked| asked != (device.kind, device.id)) {
            return Err(PyBufferError::new_err("an array of coulis is given where it is, without a copy"));
        }
        let first = max_version.map(|v| v.get_item(0)?.extract::<u32>()).transpose()?;
        let shape = self.0.shape.clone();
        let mut kept = Box::new(Kept { parts: self.0.clone(), strides: compact_strides(&shape), shape });
        let data = match &kept.parts.memory {
            Memory::Host(bytes) => bytes.as_ptr().cast(),
            Memory::Device(memory, _) => std::ptr::without_provenance_mut(memory.pointer() as usize),
        };
        let tensor = DlTensor {
            data,
            device,
            ndim: i32::try_from(kept.shape.len()).unwrap_or(0),
            dtype: code_of(kept.parts.dtype),
            shape: kept.shape.as_mut_ptr(),
            strides: kept.strides.as_mut_ptr(),
            byte_offset: 0,
        };
        let context = Box::into_raw(kept).cast();
        let (pointer, name): (*mut c_void, &CStr) = if first.is_some_and(|v| v >= VERSION[0]) {
            let deleter = Some(drop_versioned as unsafe extern "C" fn(*mut ManagedVersioned));
            let managed = ManagedVersioned { version: VERSION, context, deleter, flags: 0, tensor };
            (Box::into_raw(Box::new(managed)).cast(), VERSIONED)
        } else {
            let deleter = Some(drop_legacy as unsafe extern "C" fn(*mut Managed));
            (Box::into_raw(Box::new(Managed { tensor, context, deleter })).cast(), LEGACY)
        };
        // SAFETY: the pointer is not null and the name is static.
        unsafe {
            let capsule = ffi::PyCapsule_New(pointer, name.as_ptr(), Some(drop_capsule));
            Bound::from_owned_ptr_or_err(py, capsule)
        }
    }
}
