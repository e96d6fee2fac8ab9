//! The float types of 8 and 16 bits: widening to `f32`, rounding of an `f32` or `f64` to one of them, storing.
//!
//! All steps are plain integer and float operations that vectorise, so that every level gives the same bits.
//! Rounding is to nearest even, once; from `f64` it goes through rounding to odd.

use coulis_ir::DType;
use coulis_ir::math::{f64_to_f32_odd, fma_odd, i128_to_f64_odd};

use super::{Fns, Lane, Op, Reg, fns};
use crate::level::Level;

/// The value of binary16 bits.
#[inline(always)]
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7fff) << 13;
    // 2^112 moves the exponent from bias 15 to bias 127 and makes subnormals normal.
    let scaled = f32::from_bits(magnitude) * f32::from_bits((112 + 127) << 23);
    let special = magnitude >= 0x7c00 << 13;
    let filled = if special { scaled.to_bits() | 0x7f80_0000 } else { scaled.to_bits() };
    f32::from_bits(filled | (u32::from(bits & 0x8000) << 16))
}

/// The nearest binary16, ties to even.
#[inline(always)]
pub(crate) fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let special = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    // Adding 0.5 puts the unit of binary16 subnormals at the last bit of the sum.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + odd) >> 13;
    let finite = if magnitude < 113 << 23 { subnormal } else { normal };
    let rounded = if magnitude >= 143 << 23 { special } else { finite };
    (rounded | ((bits >> 16) & 0x8000)) as u16
}

#[inline(always)]
fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[inline(always)]
fn f32_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let nan = (bits >> 16) | 0x40;
    (if value.is_nan() { nan } else { rounded }) as u16
}

#[inline(always)]
fn e5m2_to_f32(bits: u8) -> f32 {
    f16_to_f32(u16::from(bits) << 8)
}

#[inline(always)]
fn e4m3_to_f32(bits: u8) -> f32 {
    let magnitude = u32::from(bits & 0x7f);
    let scaled = f32::from_bits(magnitude << 20) * f32::from_bits((120 + 127) << 23);
    let value = if magnitude == 0x7f { 0x7fc0_0000 } else { scaled.to_bits() };
    f32::from_bits(value | (u32::from(bits & 0x80) << 24))
}

/// How an `f32` becomes a float of 8 bits.
pub(crate) struct ToByte {
    /// How many bits of the `f32` lie below the last one of the byte.
    pub(crate) shift: u32,
    /// The `f32` bits of the number that is as far above 0 as 1 is in the exponent of the byte.
    pub(crate) moved: u32,
    /// The `f32` bits of the least normal number.
    pub(crate) normal: u32,
    /// The `f32` bits of a number whose last bit is worth the least subnormal number: adding it rounds to one.
    pub(crate) magic: u32,
    /// The code behind the largest finite one.
    pub(crate) overflow: u32,
}

/// The code of NaN.
pub(crate) const NAN_BYTE: u32 = 0x7f;

impl ToByte {
    const fn new(mantissa_bits: u32, bias: u32, overflow: u32) -> ToByte {
        ToByte {
            shift: 23 - mantissa_bits,
            moved: (127 - bias) << 23,
            normal: (128 - bias) << 23,
            magic: (127 + 24 - bias - mantissa_bits) << 23,
            overflow,
        }
    }

    pub(crate) const E4M3: ToByte = ToByte::new(3, 7, NAN_BYTE);
    pub(crate) const E5M2: ToByte = ToByte::new(2, 15, 0x7c);

    /// What is added to the bits of a normal number before they are shifted, besides the last bit that stays: ties go to
    /// even.
    pub(crate) const fn to_round(&self) -> u32 {
        ((1 << (self.shift - 1)) - 1u32).wrapping_sub(self.moved)
    }

    /// The nearest byte, ties to even.
    #[inline(always)]
    fn nearest(&self, value: f32) -> u8 {
        let bits = value.to_bits();
        let magnitude = bits & 0x7fff_ffff;
        let subnormal = (f32::from_bits(magnitude) + f32::from_bits(self.magic)).to_bits() - self.magic;
        let odd = (magnitude >> self.shift) & 1;
        let normal = magnitude.wrapping_add(self.to_round() + odd) >> self.shift;
        let finite = if magnitude < self.normal { subnormal } else { normal.min(self.overflow) };
        let code = if magnitude > 0x7f80_0000 { NAN_BYTE } else { finite };
        (code | ((bits >> 24) & 0x80)) as u8
    }
}

#[inline(always)]
fn f32_to_e5m2(value: f32) -> u8 {
    ToByte::E5M2.nearest(value)
}

#[inline(always)]
fn f32_to_e4m3(value: f32) -> u8 {
    ToByte::E4M3.nearest(value)
}

macro_rules! lanes {
    ($($name:ident: $a:ident => $out:ident, |$x:ident| $body:expr;)+) => {$(
        struct $name;
        impl Lane for $name {
            type A = $a;
            type B = ();
            type C = ();
            type Out = $out;
            #[inline(always)]
            fn f($x: $a, _: (), _: ()) -> $out {
                $body
            }
        }
    )+};
}

lanes!(
    WidenF16: u16 => f32, |x| f16_to_f32(x);
    WidenBf16: u16 => f32, |x| bf16_to_f32(x);
    WidenE5m2: u8 => f32, |x| e5m2_to_f32(x);
    WidenE4m3: u8 => f32, |x| e4m3_to_f32(x);
    NarrowF16: f32 => u16, |x| f32_to_f16(x);
    NarrowBf16: f32 => u16, |x| f32_to_bf16(x);
    NarrowE5m2: f32 => u8, |x| f32_to_e5m2(x);
    NarrowE4m3: f32 => u8, |x| f32_to_e4m3(x);
    RoundF16: f32 => f32, |x| f16_to_f32(f32_to_f16(x));
    RoundBf16: f32 => f32, |x| bf16_to_f32(f32_to_bf16(x));
    RoundE5m2: f32 => f32, |x| e5m2_to_f32(f32_to_e5m2(x));
    RoundE4m3: f32 => f32, |x| e4m3_to_f32(f32_to_e4m3(x));
    F16FromF64: f64 => f32, |x| f16_to_f32(f32_to_f16(f64_to_f32_odd(x)));
    Bf16FromF64: f64 => f32, |x| bf16_to_f32(f32_to_bf16(f64_to_f32_odd(x)));
    E5m2FromF64: f64 => f32, |x| e5m2_to_f32(f32_to_e5m2(f64_to_f32_odd(x)));
    E4m3FromF64: f64 => f32, |x| e4m3_to_f32(f32_to_e4m3(f64_to_f32_odd(x)));
    OddFromI64: i64 => f64, |x| i128_to_f64_odd(i128::from(x));
    OddFromU64: u64 => f64, |x| i128_to_f64_odd(i128::from(x));
);

macro_rules! fused {
    ($($name:ident: |$x:ident| $body:expr;)+) => {$(
        struct $name;
        impl Lane for $name {
            type A = f32;
            type B = f32;
            type C = f32;
            type Out = f32;
            #[inline(always)]
            fn f(a: f32, b: f32, c: f32) -> f32 {
                let $x = fma_odd(f64::from(a), f64::from(b), f64::from(c));
                $body
            }
        }
    )+};
}

fused!(
    FmaF16: |x| f16_to_f32(f32_to_f16(f64_to_f32_odd(x)));
    FmaBf16: |x| bf16_to_f32(f32_to_bf16(f64_to_f32_odd(x)));
    FmaE5m2: |x| e5m2_to_f32(f32_to_e5m2(f64_to_f32_odd(x)));
    FmaE4m3: |x| e4m3_to_f32(f32_to_e4m3(f64_to_f32_odd(x)));
);

macro_rules! by_narrow {
    ($dtype:expr, $level:expr; $f16:ident, $bf16:ident, $e5m2:ident, $e4m3:ident) => {
        match $dtype {
            DType::F16 => Some(fns::<$f16>($level)),
            DType::BF16 => Some(fns::<$bf16>($level)),
            DType::F8E5M2 => Some(fns::<$e5m2>($level)),
            DType::F8E4M3 => Some(fns::<$e4m3>($level)),
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
            | DType::F64 => None,
        }
    };
}

/// Memory to register; `None` for types whose memory form is the register form. Any byte but 0 is true.
pub(crate) fn widen(dtype: DType, level: Level) -> Option<Fns> {
    if dtype == DType::Bool {
        return super::cast(Reg::U8, Reg::Bool, level);
    }
    let found = by_narrow!(dtype, level; WidenF16, WidenBf16, WidenE5m2, WidenE4m3);
    found.map(|fns| fns.being(Op::Widen(dtype)))
}

/// Register to memory; `None` for types whose memory form is the register form.
pub(crate) fn narrow(dtype: DType, level: Level) -> Option<Fns> {
    let found = by_narrow!(dtype, level; NarrowF16, NarrowBf16, NarrowE5m2, NarrowE4m3);
    found.map(|fns| fns.being(Op::Narrow(dtype)))
}

/// Rounds an `f32` register to the values of `dtype`; `None` for types that need no rounding.
pub(crate) fn round_in_f32(dtype: DType, level: Level) -> Option<Fns> {
    let found = by_narrow!(dtype, level; RoundF16, RoundBf16, RoundE5m2, RoundE4m3);
    found.map(|fns| fns.being(Op::Round(dtype)))
}

/// Rounds an `f64` register to the values of `dtype`, held as `f32`; `None` for types of 32 bits and more.
pub(crate) fn round_from_f64(dtype: DType, level: Level) -> Option<Fns> {
    by_narrow!(dtype, level; F16FromF64, Bf16FromF64, E5m2FromF64, E4m3FromF64)
}

/// `a * b + c` in `f32` registers, rounded once to `dtype`; `None` for types of 32 bits and more.
pub(crate) fn fma(dtype: DType, level: Level) -> Option<Fns> {
    by_narrow!(dtype, level; FmaF16, FmaBf16, FmaE5m2, FmaE4m3)
}

/// A 64-bit integer to `f64`, rounded to odd, so that a second rounding is right.
pub(crate) fn to_f64_odd(signed: Signedness, level: Level) -> Fns {
    match signed {
        Signedness::Signed => fns::<OddFromI64>(level),
        Signedness::Unsigned => fns::<OddFromU64>(level),
    }
}

/// How the bits of an integer are read.
#[derive(Clone, Copy)]
pub(crate) enum Signedness {
    Signed,
    Unsigned,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_and_every_byte_widens_as_the_reference_does() {
        for bits in 0..=u16::MAX {
            let (got, want) = (f16_to_f32(bits), half::f16::from_bits(bits).to_f32());
            assert!(got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()), "{bits:#x}");
            let (got, want) = (bf16_to_f32(bits), half::bf16::from_bits(bits).to_f32());
            assert!(got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()), "{bits:#x}");
        }
        for bits in 0..=u8::MAX {
            let (got, want) = (e4m3_to_f32(bits), coulis_ir::float8::e4m3_to_f32(bits));
            assert!(got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()), "{bits:#x}");
            let (got, want) = (e5m2_to_f32(bits), coulis_ir::float8::e5m2_to_f32(bits));
            assert!(got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()), "{bits:#x}");
        }
    }

    #[test]
    fn f32_narrows_as_the_reference_does_at_and_around_every_tie() {
        for bits in 0..=u16::MAX {
            let value = half::f16::from_bits(bits).to_f32();
            let wide = u32::from(bits) << 16;
            for step in -3i32..=3 {
                let tie = value.to_bits().wrapping_add(0x1000).wrapping_add_signed(step);
                for candidate in [tie, value.to_bits().wrapping_add_signed(step), wide.wrapping_add(0x8000)] {
                    let x = f32::from_bits(candidate.wrapping_add_signed(step));
                    if x.is_nan() {
                        assert!(f16_to_f32(f32_to_f16(x)).is_nan() && bf16_to_f32(f32_to_bf16(x)).is_nan());
                        continue;
                    }
                    assert_eq!(f32_to_f16(x), half::f16::from_f32(x).to_bits(), "{x:e}");
                    assert_eq!(f32_to_bf16(x), half::bf16::from_f32(x).to_bits(), "{x:e}");
                }
            }
        }
        // The midpoint of the two smallest subnormals' ties, and the limit of overflow.
        for (x, want) in [(2.98e-8f32, 0u16), (2.981e-8, 1), (65519.0, 0x7bff), (65520.0, 0x7c00)] {
            assert_eq!(f32_to_f16(x), want, "{x:e}");
        }
    }

    #[test]
    fn floats_become_bytes_as_in_the_reference_at_and_around_every_tie() {
        use coulis_ir::float8::{f64_to_e4m3, f64_to_e5m2};
        for upper in 0..=u32::from(u16::MAX) {
            let [tie, above, below] = [0, 1, 0xffff].map(|low| f64::from(f32::from_bits(upper << 16 | low)));
            // What lies nearer to a tie than any `f32` is rounded once all the same.
            for wide in [tie, above, below, tie.next_up(), tie.next_down()] {
                let odd = f64_to_f32_odd(wide);
                assert_eq!(f32_to_e4m3(odd), f64_to_e4m3(wide), "{wide:e}");
                assert_eq!(f32_to_e5m2(odd), f64_to_e5m2(wide), "{wide:e}");
            }
        }
    }
}
