//! Conversions between element types, and between lanes and the bytes of memory.

use coulis_ir::DType;
use coulis_ir::float8::{e4m3_to_f32, e5m2_to_f32, f64_to_e4m3, f64_to_e5m2};
use coulis_ir::math::i128_to_f64_odd;

use super::float::{BF16, F8E4M3, F8E5M2, F16, Float};
use super::{F1, Lanes, Number, map1};

/// A value that any type converts from: integers as they are, floats as the `float64` of the same value.
trait Source: Number {
    fn int<T: Number>(self, signed: fn(i64) -> T, unsigned: fn(u64) -> T, float: fn(f64) -> T) -> T;
}

impl Source for i64 {
    #[inline(always)]
    fn int<T: Number>(self, signed: fn(i64) -> T, _: fn(u64) -> T, _: fn(f64) -> T) -> T {
        signed(self)
    }
}

impl Source for u64 {
    #[inline(always)]
    fn int<T: Number>(self, _: fn(i64) -> T, unsigned: fn(u64) -> T, _: fn(f64) -> T) -> T {
        unsigned(self)
    }
}

impl Source for f32 {
    #[inline(always)]
    fn int<T: Number>(self, _: fn(i64) -> T, _: fn(u64) -> T, float: fn(f64) -> T) -> T {
        float(f64::from(self))
    }
}

impl Source for f64 {
    #[inline(always)]
    fn int<T: Number>(self, _: fn(i64) -> T, _: fn(u64) -> T, float: fn(f64) -> T) -> T {
        float(self)
    }
}

/// The conversion from one type to another: float to integer truncates and saturates, NaN gives 0, integer to integer
/// wraps, to bool is `!= 0`, to a float rounds once to nearest even.
pub(crate) fn cast<const W: usize>(from: DType, to: DType) -> F1<W> {
    match from {
        DType::Bool | DType::I8 | DType::I16 | DType::I32 | DType::I64 => to_any::<i64, W>(to),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => to_any::<u64, W>(to),
        DType::F32 => to_any::<f32, W>(to),
        DType::F64 | DType::F16 | DType::BF16 | DType::F8E4M3 | DType::F8E5M2 => to_any::<f64, W>(to),
    }
}

fn to_any<S: Source, const W: usize>(to: DType) -> F1<W> {
    macro_rules! plain {
        ($t:ty) => {
            |a| map1(a, |x: S| x.int(|v| v as $t, |v| v as $t, |v| v as $t))
        };
    }
    macro_rules! narrow {
        ($t:ty) => {
            |a| {
                map1(a, |x: S| {
                    x.int(
                        |v| <$t>::round(i128_to_f64_odd(i128::from(v))),
                        |v| <$t>::round(i128_to_f64_odd(i128::from(v))),
                        <$t>::round,
                    )
                })
            }
        };
    }
    match to {
        DType::Bool => |a| map1(a, |x: S| x.int(|v| v != 0, |v| v != 0, |v| v != 0.0)),
        DType::I8 => plain!(i8),
        DType::I16 => plain!(i16),
        DType::I32 => plain!(i32),
        DType::I64 => plain!(i64),
        DType::U8 => plain!(u8),
        DType::U16 => plain!(u16),
        DType::U32 => plain!(u32),
        DType::U64 => plain!(u64),
        DType::F32 => plain!(f32),
        DType::F64 => plain!(f64),
        DType::F16 => narrow!(F16),
        DType::BF16 => narrow!(BF16),
        DType::F8E4M3 => narrow!(F8E4M3),
        DType::F8E5M2 => narrow!(F8E5M2),
    }
}

/// From the bytes of memory, zero-extended, to lanes.
pub(crate) fn decode<const W: usize>(dtype: DType) -> F1<W> {
    fn each<const W: usize>(a: &Lanes<W>, f: impl Fn(u64) -> u64) -> Lanes<W> {
        a.map(f)
    }
    match dtype {
        DType::Bool => |a| each(a, |x| u64::from(x != 0)),
        DType::I8 => |a| each(a, |x| (x as i8).bits()),
        DType::I16 => |a| each(a, |x| (x as i16).bits()),
        DType::I32 => |a| each(a, |x| (x as i32).bits()),
        DType::I64 | DType::U8 | DType::U16 | DType::U32 | DType::U64 | DType::F32 | DType::F64 => |a| *a,
        DType::F16 => |a| each(a, |x| half::f16::from_bits(x as u16).to_f64().to_bits()),
        DType::BF16 => |a| each(a, |x| half::bf16::from_bits(x as u16).to_f64().to_bits()),
        DType::F8E4M3 => |a| each(a, |x| f64::from(e4m3_to_f32(x as u8)).to_bits()),
        DType::F8E5M2 => |a| each(a, |x| f64::from(e5m2_to_f32(x as u8)).to_bits()),
    }
}

/// From lanes to the bytes of memory; those above the type's width are not looked at. The value is on the type's
/// grid already.
pub(crate) fn encode<const W: usize>(dtype: DType) -> F1<W> {
    match dtype {
        DType::F16 => |a| a.map(|x| u64::from(half::f16::from_f64(f64::from_bits(x)).to_bits())),
        DType::BF16 => |a| a.map(|x| u64::from(half::bf16::from_f64(f64::from_bits(x)).to_bits())),
        DType::F8E4M3 => |a| a.map(|x| u64::from(f64_to_e4m3(f64::from_bits(x)))),
        DType::F8E5M2 => |a| a.map(|x| u64::from(f64_to_e5m2(f64::from_bits(x)))),
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F32
        | DType::F64 => |a| *a,
    }
}
