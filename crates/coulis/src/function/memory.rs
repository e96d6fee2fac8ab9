//! The memory of a call's buffers.

use coulis_io::{AlignedBytes, Array};
use coulis_ir::DType;
use coulis_ir::args::{ArrayInfo, compact_strides};

use super::{Parameter, Value};
use crate::error::Error;
use crate::request::NamedArray;

/// The memory of one buffer parameter during a call.
pub(super) struct Memory {
    name: String,
    is_written: bool,
    pub(super) info: ArrayInfo,
    pub(super) contents: Contents,
}

/// Whose memory it is.
pub(super) enum Contents {
    /// The caller's, which is only read.
    Shared(Array),
    /// The call's.
    Owned {
        /// The elements, and what may lie between them.
        bytes: AlignedBytes,
        /// Whether they are the caller's or random values, and not what memory happens to hold.
        is_given: bool,
    },
}

impl Memory {
    /// The memory for an argument: the caller's where it is only read, else a copy, random values, or zeros.
    pub(super) fn of(
        facts: &Parameter,
        info: &ArrayInfo,
        given: Option<Value>,
        seed: Option<u64>,
    ) -> Result<Memory, Error> {
        let is_compact = info.strides == compact_strides(&info.shape);
        let contents = match given {
            Some(Value::Array(array)) if !facts.is_written => Contents::Shared(array),
            Some(Value::Array(array)) if is_compact || array.is_empty() => {
                let rows = array.to_row_major()?;
                let bytes = AlignedBytes::copy_of(rows.as_bytes().unwrap_or_default())?;
                Contents::Owned { bytes, is_given: true }
            }
            Some(Value::Array(_)) => {
                let message = format!(
                    "output `{}` is not row-major, and no start value can be given for it",
                    facts.name
                );
                return Err(Error::unsupported("call/output", message));
            }
            Some(Value::Int(_)) | None => {
                let mut bytes = AlignedBytes::zeroed(reach_in_bytes(info))?;
                if let Some(seed) = seed {
                    fill(&mut bytes, info.dtype, seed);
                }
                Contents::Owned { bytes, is_given: seed.is_some() }
            }
        };
        Ok(Memory { name: facts.name.clone(), is_written: facts.is_written, info: info.clone(), contents })
    }

    /// Bytes before the first element of memory of ours: those of dimensions that run backwards.
    pub(super) fn first_byte(&self) -> usize {
        steps_before(&self.info) as usize * self.info.dtype.bytes()
    }

    /// The array after the call, and whether it was written.
    pub(super) fn into_array(self) -> Result<(bool, NamedArray), Error> {
        let Memory { name, is_written, info, contents } = self;
        let array = match contents {
            Contents::Shared(array) => array,
            Contents::Owned { bytes, .. } => {
                let n = (bytes.as_slice().len() / info.dtype.bytes()) as i64;
                let flat = Array::from_owned(info.dtype, &[n], bytes)?;
                flat.view(&info.shape, &info.strides, steps_before(&info))?
            }
        };
        Ok((is_written, NamedArray { name, array }))
    }
}

/// Elements from the lowest address to the first one.
fn steps_before(info: &ArrayInfo) -> i64 {
    info.reach().and_then(|(lo, _)| i64::try_from(-lo).ok()).unwrap_or(i64::MAX)
}

/// Bytes from the element at the lowest address to that at the highest, both included.
fn reach_in_bytes(info: &ArrayInfo) -> usize {
    if info.shape.contains(&0) {
        return 0;
    }
    let elements = info.reach().map_or(i128::MAX, |(lo, hi)| hi - lo + 1);
    usize::try_from(elements.saturating_mul(info.dtype.bytes() as i128)).unwrap_or(usize::MAX)
}

/// Small values of the type, the same for the same seed: floats in [-1, 1), integers from -5 to 4 (0 to 9 unsigned).
fn fill(bytes: &mut AlignedBytes, dtype: DType, seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for element in bytes.as_mut_slice().chunks_exact_mut(dtype.bytes()) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let high = state >> 40;
        let float = high as f64 / f64::from(1 << 23) - 1.0;
        let unsigned = high % 10;
        let int = unsigned as i64 - 5;
        match dtype {
            DType::Bool => element.copy_from_slice(&[(unsigned % 2) as u8]),
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => {
                element.copy_from_slice(&unsigned.to_le_bytes()[..dtype.bytes()]);
            }
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
                element.copy_from_slice(&int.to_le_bytes()[..dtype.bytes()]);
            }
            DType::F8E4M3 => element.copy_from_slice(&[coulis_ir::float8::f64_to_e4m3(float)]),
            DType::F8E5M2 => element.copy_from_slice(&[coulis_ir::float8::f64_to_e5m2(float)]),
            // The upper half of a float32 with few digits is the same number as a bfloat16, and float16 has this one.
            DType::BF16 => element.copy_from_slice(&(float as f32).to_le_bytes()[2..]),
            DType::F16 => element.copy_from_slice(&half_bits(int).to_le_bytes()),
            DType::F32 => element.copy_from_slice(&(float as f32).to_le_bytes()),
            DType::F64 => element.copy_from_slice(&float.to_le_bytes()),
        }
    }
}

/// The float16 of `(v + 0.5) / 8` for -5 <= v <= 4: numbers of at most four binary digits.
fn half_bits(v: i64) -> u16 {
    let value = (v as f32 + 0.5) / 8.0;
    let bits = value.to_bits();
    let exponent = ((bits >> 23) & 0xff) as i32 - 127 + 15;
    ((bits >> 16) & 0x8000) as u16 | ((exponent as u16) << 10) | ((bits >> 13) & 0x3ff) as u16
}
