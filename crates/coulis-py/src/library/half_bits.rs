//! Values of single floats by their bytes, read by the facade's own arrays.

use coulis::{Array, DType};
use pyo3::PyResult;

use crate::error::OrRaise;

/// The value of a float whose bytes are the first of these.
pub fn to_f64(dtype: DType, bytes: [u8; 8]) -> PyResult<f64> {
    match dtype {
        DType::F64 => return Ok(f64::from_le_bytes(bytes)),
        DType::F32 => return Ok(f64::from(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))),
        _ => {}
    }
    let array = Array::from_bytes(dtype, &[], &bytes[..dtype.bytes()]).or_raise()?;
    Ok(array.scalars().next().map_or(f64::NAN, coulis::Scalar::to_f64))
}
