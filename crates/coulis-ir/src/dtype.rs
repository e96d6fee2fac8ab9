//! Element types and vector types.
//!
//! The storage-only types (`float8_e4m3`, `float8_e5m2`) are converted to `float32` on load; `float16` and
//! `bfloat16` are computed in `float32` wherever a reducer computes (contract N4).

use std::fmt;
use std::str::FromStr;

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// 8-bit signed integer.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// OCP 8-bit float with 4 exponent and 3 mantissa bits; no infinities (`e4m3fn`). Storage only.
    F8E4M3,
    /// OCP 8-bit float with 5 exponent and 2 mantissa bits. Storage only.
    F8E5M2,
    /// IEEE binary16.
    F16,
    /// The upper half of an IEEE binary32.
    BF16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl DType {
    /// Every element type, in the order of the documentation's tables.
    pub const ALL: [DType; 15] = [
        DType::Bool,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F8E4M3,
        DType::F8E5M2,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];

    /// The long name, as printed everywhere: `float32`, `int8`, `bool`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::U8 => "uint8",
            DType::U16 => "uint16",
            DType::U32 => "uint32",
            DType::U64 => "uint64",
            DType::F8E4M3 => "float8_e4m3",
            DType::F8E5M2 => "float8_e5m2",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
        }
    }

    /// The short name that is also read: `f32`, `i8`.
    pub const fn short_name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::F8E4M3 => "f8e4m3",
            DType::F8E5M2 => "f8e5m2",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }

    /// Size of one element in bytes: 1, 2, 4 or 8.
    pub const fn bytes(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 | DType::F8E4M3 | DType::F8E5M2 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 => 8,
        }
    }

    /// Whether values are only stored in this type, and computed with in `float32`.
    pub const fn is_storage_only(self) -> bool {
        matches!(self, DType::F8E4M3 | DType::F8E5M2)
    }

    /// Whether this is a floating-point type, storage-only ones included.
    pub const fn is_float(self) -> bool {
        match self {
            DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 | DType::F32 | DType::F64 => true,
            DType::Bool
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64 => false,
        }
    }

    /// Whether this is an integer type; `bool` is not one.
    pub const fn is_int(self) -> bool {
        !self.is_float() && !matches!(self, DType::Bool)
    }

    /// Whether this is a signed integer type.
    pub const fn is_signed_int(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// Whether this is an unsigned integer type; `bool` is not one.
    pub const fn is_unsigned_int(self) -> bool {
        matches!(self, DType::U8 | DType::U16 | DType::U32 | DType::U64)
    }

    /// Smallest and largest value of an integer type or `bool`; `None` for floats.
    pub const fn int_range(self) -> Option<(i128, i128)> {
        match self {
            DType::Bool => Some((0, 1)),
            DType::I8 => Some((i8::MIN as i128, i8::MAX as i128)),
            DType::I16 => Some((i16::MIN as i128, i16::MAX as i128)),
            DType::I32 => Some((i32::MIN as i128, i32::MAX as i128)),
            DType::I64 => Some((i64::MIN as i128, i64::MAX as i128)),
            DType::U8 => Some((0, u8::MAX as i128)),
            DType::U16 => Some((0, u16::MAX as i128)),
            DType::U32 => Some((0, u32::MAX as i128)),
            DType::U64 => Some((0, u64::MAX as i128)),
            DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 | DType::F32 | DType::F64 => None,
        }
    }

    /// The largest finite value of a float type; for any other type that of `float64`.
    pub fn max_finite(self) -> f64 {
        match self {
            DType::F8E4M3 => 448.0,
            DType::F8E5M2 => 57344.0,
            DType::F16 => F16_MAX,
            DType::BF16 => BF16_MAX,
            DType::F32 => f64::from(f32::MAX),
            DType::F64
            | DType::Bool
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64 => f64::MAX,
        }
    }

    /// `value` rounded to nearest even into this float type and widened back; for `float64` the value itself.
    /// For integer types the value is returned unchanged.
    pub fn round_float(self, value: f64) -> f64 {
        match self {
            DType::F64 => value,
            DType::F32 => f64::from(value as f32),
            DType::F16 => round_to_grid(value, 11, -14, F16_MAX),
            DType::BF16 => round_to_grid(value, 8, -126, BF16_MAX),
            DType::F8E4M3 => f64::from(crate::float8::e4m3_to_f32(crate::float8::f64_to_e4m3(value))),
            DType::F8E5M2 => f64::from(crate::float8::e5m2_to_f32(crate::float8::f64_to_e5m2(value))),
            DType::Bool
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64 => value,
        }
    }

    /// Wraps an integer into this type's range, two's complement; `bool` takes non-zero as 1.
    /// Floats return the value unchanged.
    pub fn wrap_int(self, value: i128) -> i128 {
        match self {
            DType::Bool => i128::from(value != 0),
            DType::I8 => i128::from(value as i8),
            DType::I16 => i128::from(value as i16),
            DType::I32 => i128::from(value as i32),
            DType::I64 => i128::from(value as i64),
            DType::U8 => i128::from(value as u8),
            DType::U16 => i128::from(value as u16),
            DType::U32 => i128::from(value as u32),
            DType::U64 => i128::from(value as u64),
            DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 | DType::F32 | DType::F64 => value,
        }
    }
}

/// Largest finite `float16`, `(2 - 2^-10) * 2^15`.
const F16_MAX: f64 = 65504.0;

/// Largest finite `bfloat16`, `(2 - 2^-7) * 2^127`.
const BF16_MAX: f64 = 3.389_531_389_251_535_5e38;

/// `value` rounded to nearest even, once, on the grid of a format with `precision` significant bits, smallest
/// normal exponent `min_exp` and largest finite value `max`. Conversions by way of `float32` round twice.
fn round_to_grid(value: f64, precision: i32, min_exp: i32, max: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let quantum = 2f64.powi(exponent.max(min_exp) - (precision - 1));
    let rounded = (value / quantum).round_ties_even() * quantum;
    if rounded.abs() > max { f64::INFINITY.copysign(value) } else { rounded }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A dtype name that is not one of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown dtype `{name}`; legal dtypes are bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, \
     float64, float8_e4m3, float8_e5m2, and short names of these such as i32, bf16 and f64"
)]
pub struct UnknownDType {
    /// The name that was given.
    pub name: String,
}

impl FromStr for DType {
    type Err = UnknownDType;

    /// Reads both spellings: `f32` and `float32`; and `float8_e4m3fn`, as libraries of arrays call the one without infinities.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let name = if name == "float8_e4m3fn" { DType::F8E4M3.name() } else { name };
        DType::ALL
            .into_iter()
            .find(|d| d.name() == name || d.short_name() == name)
            .ok_or_else(|| UnknownDType { name: name.to_owned() })
    }
}

/// An element type with a number of vector lanes; 1 lane is a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ty {
    /// Type of one lane.
    pub dtype: DType,
    /// Number of lanes, at least 1.
    pub lanes: u32,
}

impl Ty {
    /// A scalar of `dtype`.
    pub const fn scalar(dtype: DType) -> Ty {
        Ty { dtype, lanes: 1 }
    }

    /// The same lanes with another element type.
    pub const fn with_dtype(self, dtype: DType) -> Ty {
        Ty { dtype, lanes: self.lanes }
    }

    /// Whether this is a scalar.
    pub const fn is_scalar(self) -> bool {
        self.lanes == 1
    }
}

impl fmt::Display for Ty {
    /// `float32`, or `float32x8` for a vector.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lanes == 1 { write!(f, "{}", self.dtype) } else { write!(f, "{}x{}", self.dtype, self.lanes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_16_bit_float_is_on_its_grid() {
        for bits in 0..=u16::MAX {
            for (dtype, value) in [
                (DType::F16, half::f16::from_bits(bits).to_f64()),
                (DType::BF16, half::bf16::from_bits(bits).to_f64()),
            ] {
                let rounded = dtype.round_float(value);
                assert!(rounded == value || (rounded.is_nan() && value.is_nan()), "{dtype} {bits:#x}");
            }
        }
    }

    #[test]
    fn midpoints_go_to_even_and_a_hair_above_goes_up() {
        let check = |dtype: DType, low: f64, high: f64| {
            let middle = (low + high) / 2.0;
            assert_eq!(dtype.round_float(middle), low);
            assert_eq!(dtype.round_float(middle * (1.0 + f64::EPSILON)), high);
            assert_eq!(dtype.round_float(-middle), -low);
        };
        check(DType::F16, 1.0, 1.0 + 2f64.powi(-10));
        check(DType::BF16, 1.0, 1.0 + 2f64.powi(-7));
        check(DType::F16, 0.0, 2f64.powi(-24));
        check(DType::BF16, 0.0, 2f64.powi(-133));
    }

    #[test]
    fn half_types_overflow_at_the_midpoint_above_their_largest_value() {
        assert_eq!(DType::F16.round_float(65519.999), 65504.0);
        for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_float()) {
            let (most, twice) = (dtype.max_finite(), dtype.round_float(2.0 * dtype.max_finite()));
            assert!(dtype.round_float(most) == most && !twice.is_finite(), "{dtype}: {twice}");
        }
        assert_eq!(DType::F16.round_float(65520.0), f64::INFINITY);
        assert_eq!(DType::BF16.round_float(f64::from(f32::MAX)), f64::INFINITY);
        assert_eq!(DType::BF16.round_float(-BF16_MAX), half::bf16::MIN.to_f64());
    }
}
