//! Made-up inputs: ordinary numbers, the same in each run, written faster than they could be drawn one by one.

use coulis_io::{AlignedBytes, Array};
use coulis_ir::args::reach;
use coulis_ir::{DType, float8};
use half::{bf16, f16};

use super::Workload;
use crate::error::Error;

/// The values of an input, numbered as on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Init {
    /// 0: zeros.
    Zeros,
    /// 1: ones.
    Ones,
    /// 2: integers from -5 to 4 (0 to 9 for unsigned types).
    Integers,
    /// 3: uniform in -5 to 5; for integer types integers from -5 to 5 (0 to 10 for unsigned types).
    Uniform,
}

/// Elements that are drawn before they repeat: a prime, so that no two rows of a usual length are alike.
const BLOCK: usize = 1_048_573;

/// A row-major array of these values. Every page is written, so that no two pages share memory.
pub fn input(dtype: DType, shape: &[i64], init: Init) -> Result<Array, Error> {
    let too_large =
        || Error::user("bench/shape", format!("the shape {shape:?} of {dtype} is too large or negative"));
    let mut n = 1usize;
    for &extent in shape {
        let extent = usize::try_from(extent).map_err(|_| too_large())?;
        n = n.checked_mul(extent).ok_or_else(too_large)?;
    }
    let n_bytes = n.checked_mul(dtype.bytes()).ok_or_else(too_large)?;
    let block = block(dtype, init, n.min(BLOCK));
    let mut bytes = AlignedBytes::zeroed(n_bytes)?;
    for chunk in bytes.as_mut_slice().chunks_mut(block.len().max(1)) {
        chunk.copy_from_slice(&block[..chunk.len()]);
    }
    Ok(Array::from_owned(dtype, shape, bytes)?)
}

impl Workload {
    /// Its input: a row-major array of these values, or a view of memory that is full of them.
    ///
    /// # Errors
    /// A shape that no memory holds.
    pub fn input(&self, init: Init) -> Result<Array, Error> {
        let Some(strides) = &self.strides else {
            if self.start == 0 {
                return input(self.dtype, &self.shape, init);
            }
            return Workload { strides: Some(self.array_info().strides), ..self.clone() }.input(init);
        };
        let too_far = || {
            let Workload { dtype, shape, .. } = self;
            Error::user(
                "bench/shape",
                format!("the shape {shape:?} of {dtype} by strides {strides:?} is too large"),
            )
        };
        let (lo, hi) = reach(&self.shape, strides).ok_or_else(too_far)?;
        let number = |n: Option<i128>| n.and_then(|n| i64::try_from(n).ok());
        let before = number(i128::from(self.start).checked_sub(lo)).ok_or_else(too_far)?;
        let n = number(hi.checked_add(i128::from(before) + 1)).ok_or_else(too_far)?;
        Ok(input(self.dtype, &[n], init)?.view(&self.shape, strides, before)?)
    }
}

/// Bytes of the first `n` elements.
fn block(dtype: DType, init: Init, n: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(n * dtype.bytes());
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..n {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let random = state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        let shift = if dtype.is_unsigned_int() { 5.0 } else { 0.0 };
        let value = match init {
            Init::Zeros => 0.0,
            Init::Ones => 1.0,
            Init::Integers => (random % 10) as f64 - 5.0 + shift,
            Init::Uniform if dtype.is_float() => random as f64 / (1u64 << 53) as f64 * 10.0 - 5.0,
            Init::Uniform => (random % 11) as f64 - 5.0 + shift,
        };
        push(dtype, value, &mut bytes);
    }
    bytes
}

/// The little-endian bytes of a value as an element.
fn push(dtype: DType, value: f64, bytes: &mut Vec<u8>) {
    match dtype {
        DType::Bool => bytes.push(u8::from(value > 0.0)),
        DType::I8 => bytes.push((value as i8) as u8),
        DType::U8 => bytes.push(value as u8),
        DType::F8E4M3 => bytes.push(float8::f64_to_e4m3(value)),
        DType::F8E5M2 => bytes.push(float8::f64_to_e5m2(value)),
        DType::I16 => bytes.extend((value as i16).to_le_bytes()),
        DType::U16 => bytes.extend((value as u16).to_le_bytes()),
        DType::F16 => bytes.extend(f16::from_f64(value).to_le_bytes()),
        DType::BF16 => bytes.extend(bf16::from_f64(value).to_le_bytes()),
        DType::I32 => bytes.extend((value as i32).to_le_bytes()),
        DType::U32 => bytes.extend((value as u32).to_le_bytes()),
        DType::F32 => bytes.extend((value as f32).to_le_bytes()),
        DType::I64 => bytes.extend((value as i64).to_le_bytes()),
        DType::U64 => bytes.extend((value as u64).to_le_bytes()),
        DType::F64 => bytes.extend(value.to_le_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_holds_what_the_number_of_its_init_says() {
        for dtype in DType::ALL {
            for (init, lo, hi) in [
                (Init::Zeros, 0.0, 0.0),
                (Init::Ones, 1.0, 1.0),
                (Init::Integers, -5.0, 9.0),
                (Init::Uniform, -5.0, 10.0),
            ] {
                let array = input(dtype, &[7, 30], init).unwrap();
                let values: Vec<f64> = array.scalars().map(|v| v.to_f64()).collect();
                assert!(values.iter().all(|v| lo <= *v && *v <= hi), "{dtype} {init:?}");
                let varied = values.iter().any(|v| *v != values[0]);
                assert_eq!(varied, lo != hi, "{dtype} {init:?}");
            }
        }
    }

    #[test]
    fn long_inputs_repeat_without_a_gap() {
        let n = BLOCK as i64 + 9;
        let array = input(DType::F32, &[n], Init::Uniform).unwrap();
        let values = array.as_slice::<f32>().unwrap();
        assert_eq!(values[..9], values[BLOCK..]);
    }

    #[test]
    fn impossible_shapes_are_refused() {
        assert!(input(DType::F32, &[-1], Init::Ones).is_err());
        assert!(input(DType::F32, &[i64::MAX, 4], Init::Ones).is_err());
        assert_eq!(input(DType::F32, &[0, 3], Init::Ones).unwrap().len(), 0);
    }
}
