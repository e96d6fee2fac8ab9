//! Arrow's arrays by the PyCapsule interface: values where they are, validity as a mask.
//!
//! Validity is a bit an element, and masks of coulis are a byte, so it is unpacked: an eighth of the bytes of `float64`
//! values, and only where there are nulls. Source: the Arrow C data interface.

use std::ffi::{CStr, c_char, c_void};

use coulis::{AlignedBytes, Array, DType};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::error::OrRaise;

#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *const *const Schema,
    dictionary: *const Schema,
    rest: [*const c_void; 2],
}

#[repr(C)]
struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const u8,
    rest: [*const c_void; 4],
}

/// Where the values are.
pub enum Values {
    /// At this address.
    There(usize),
    /// Unpacked from bits.
    Unpacked(Array),
}

/// What an Arrow array says of itself.
pub struct Found<'py> {
    /// Element type.
    pub dtype: DType,
    /// Elements.
    pub len: i64,
    /// Values, those of nulls included.
    pub values: Values,
    /// Which elements are no nulls, where there may be nulls.
    pub valid: Option<Array>,
    /// What keeps the memory.
    pub keep: Bound<'py, PyAny>,
}

/// Reads an array; tables, nested types and text are refused.
pub fn read<'py>(object: &Bound<'py, PyAny>) -> PyResult<Found<'py>> {
    if !object.hasattr("__arrow_c_array__")? {
        let is_chunked = object.hasattr("__arrow_c_stream__")?;
        let advice = if is_chunked { "; combine its chunks first" } else { "" };
        let message =
            format!("an object of type `{}` is no single Arrow array{advice}", object.get_type().name()?);
        return Err(PyTypeError::new_err(message));
    }
    let pair = object.call_method0("__arrow_c_array__")?;
    let (schema, array) = (pair.get_item(0)?, pair.get_item(1)?);
    let pointer = |capsule: &Bound<'_, PyAny>, name: &CStr| {
        // SAFETY: the type and the name are looked at before the pointer.
        let found = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()) };
        if found.is_null() { Err(PyErr::fetch(capsule.py())) } else { Ok(found) }
    };
    // SAFETY: a capsule of this name holds this struct, which the capsule keeps; `pair` keeps both.
    let schema = unsafe { &*pointer(&schema, c"arrow_schema")?.cast::<Schema>() };
    // SAFETY: a schema has a format, which ends with a zero.
    let format = unsafe { CStr::from_ptr(schema.format) };
    if !schema.dictionary.is_null() {
        let message = "a dictionary-encoded Arrow array holds positions in its dictionary and no values; give \
                       `array.dictionary_decode()`";
        return Err(PyTypeError::new_err(message));
    }
    // SAFETY: as above.
    let array = unsafe { &*pointer(&array, c"arrow_array")?.cast::<ArrowArray>() };
    let Some(dtype) = dtype_of(format.to_bytes()) else {
        let message = format!(
            "Arrow's type `{}` cannot be reduced; legal are booleans, integers and floats",
            format.to_string_lossy()
        );
        return Err(PyTypeError::new_err(message));
    };
    let buffer = |at: usize| {
        let is_there = array.n_buffers > at as i64 && !array.buffers.is_null();
        // SAFETY: the array has that many buffers.
        if is_there { unsafe { *array.buffers.add(at) } } else { std::ptr::null() }
    };
    let (len, offset) = (array.length.max(0) as usize, array.offset.max(0) as usize);
    let valid = match buffer(0) {
        bits if bits.is_null() || array.null_count == 0 => None,
        // SAFETY: a validity bitmap has a bit for each element up to the last.
        bits => Some(unsafe { unpack(bits, offset, len) }?),
    };
    let values = match (dtype, buffer(1)) {
        // SAFETY: as above; booleans are bits.
        (DType::Bool, bits) if !bits.is_null() => Values::Unpacked(unsafe { unpack(bits, offset, len) }?),
        (_, start) => Values::There(start.addr() + offset * dtype.bytes()),
    };
    Ok(Found { dtype, len: len as i64, values, valid, keep: pair })
}

fn dtype_of(format: &[u8]) -> Option<DType> {
    Some(match format {
        b"b" => DType::Bool,
        b"c" => DType::I8,
        b"C" => DType::U8,
        b"s" => DType::I16,
        b"S" => DType::U16,
        b"i" => DType::I32,
        b"I" => DType::U32,
        b"l" => DType::I64,
        b"L" => DType::U64,
        b"e" => DType::F16,
        b"f" => DType::F32,
        b"g" => DType::F64,
        _ => return None,
    })
}

/// Bits as an array of `bool`.
///
/// # Safety
/// `bits` holds `offset + len` bits.
unsafe fn unpack(bits: *const u8, offset: usize, len: usize) -> PyResult<Array> {
    let mut bytes = AlignedBytes::zeroed(len).or_raise()?;
    for (at, byte) in bytes.as_mut_slice().iter_mut().enumerate() {
        let at = at + offset;
        // SAFETY: the caller's promise.
        *byte = unsafe { *bits.add(at / 8) } >> (at % 8) & 1;
    }
    Array::from_owned(DType::Bool, &[len as i64], bytes).or_raise()
}
