//! The pure functions, as documented on [`Intrinsic`], and logical not.

use std::marker::PhantomData;

use coulis_ir::Intrinsic;
use coulis_ir::math::{erf_f64, exp_f32, exp_f64, log_f32, log_f64, sigmoid_f32, sigmoid_f64, tanh_f64};

use super::{Fns, Lane, Op, Reg, fns, lane1, lane2};
use crate::level::Level;

macro_rules! declare {
    ($($name:ident),+) => {$(struct $name<T>(PhantomData<T>);)+};
}

declare!(
    Exp, Exp2, Exp2Ftz, Log, Log2, Sqrt, Rsqrt, Tanh, Sigmoid, Erf, Sin, Cos, Pow, Fmod, AddFtz, Fma, Max3,
    Min3, Abs, Floor, Ceil, Round, Trunc, Nearbyint, IsNan, IsInf, IsFinite, Popcount, Never, Always, Not
);

lane1!(Exp, same, |a| exp_f32(a); f32);
lane1!(Exp, same, |a| exp_f64(a); f64);
lane1!(Log, same, |a| log_f32(a); f32);
lane1!(Log, same, |a| log_f64(a); f64);
lane1!(Sigmoid, same, |a| sigmoid_f32(a); f32);
lane1!(Sigmoid, same, |a| sigmoid_f64(a); f64);
lane1!(Erf, same, |a| erf_f64(f64::from(a)) as f32; f32);
lane1!(Erf, same, |a| erf_f64(a); f64);
lane1!(Tanh, same, |a| tanh_f64(f64::from(a)) as f32; f32);
lane1!(Tanh, same, |a| tanh_f64(a); f64);
// Of the platform's functions those of `f64` are taken for `f32` too, as compiled C does: rounded, they err by half an ulp.
lane1!(Exp2, same, |a| f64::from(a).exp2() as f32; f32);
lane1!(Exp2, same, |a| a.exp2(); f64);
lane1!(Exp2Ftz, same, |a| flushed(f64::from(a).exp2() as f32); f32);
lane1!(Exp2Ftz, same, |a| a.exp2(); f64);
lane1!(Log2, same, |a| f64::from(a).log2() as f32; f32);
lane1!(Log2, same, |a| a.log2(); f64);
lane1!(Sqrt, same, |a| a.sqrt(); f32, f64);
lane1!(Rsqrt, same, |a| 1.0 / a.sqrt(); f32, f64);
lane1!(Sin, same, |a| f64::from(a).sin() as f32; f32);
lane1!(Sin, same, |a| a.sin(); f64);
lane1!(Cos, same, |a| f64::from(a).cos() as f32; f32);
lane1!(Cos, same, |a| a.cos(); f64);
lane1!(Floor, same, |a| a.floor(); f32, f64);
lane1!(Ceil, same, |a| a.ceil(); f32, f64);
lane1!(Round, same, |a| a.round(); f32, f64);
lane1!(Trunc, same, |a| a.trunc(); f32, f64);
lane1!(Nearbyint, same, |a| a.round_ties_even(); f32, f64);
lane1!(IsNan, bool, |a| u8::from(a.is_nan()); f32, f64);
lane1!(IsInf, bool, |a| u8::from(a.is_infinite()); f32, f64);
lane1!(IsFinite, bool, |a| u8::from(a.is_finite()); f32, f64);
lane1!(Abs, same, |a| a.abs(); f32, f64);
lane1!(Abs, same, |a| a.wrapping_abs(); i8, i16, i32, i64);
lane1!(Popcount, same, |a| a.count_ones() as _; u8, u16, u32, u64);
lane1!(Never, bool, |_a| 0; u8, u16, u32, u64);
lane1!(Always, bool, |_a| 1; u8, u16, u32, u64);
lane1!(Not, same, |a| a ^ 1; u8);
lane2!(Pow, same, |a, b| f64::from(a).powf(f64::from(b)) as f32; f32);
lane2!(Pow, same, |a, b| a.powf(b); f64);
lane2!(Fmod, same, |a, b| a % b; f32, f64);
lane2!(AddFtz, same, |a, b| flushed(flushed(a) + flushed(b)); f32);
lane2!(AddFtz, same, |a, b| a + b; f64);

/// The value, or the zero of its sign where it is subnormal.
fn flushed(x: f32) -> f32 {
    if x.is_subnormal() { 0f32.copysign(x) } else { x }
}

/// The larger of two floats, of which 0.0 is larger than -0.0; NaN where one is NaN.
macro_rules! larger {
    ($a:expr, $b:expr) => {{
        let (a, b) = ($a, $b);
        // Sums: of zeros, 0.0 unless both are -0.0; of a NaN and anything, NaN.
        if a > b {
            a
        } else if b > a {
            b
        } else if a == b && a != 0.0 {
            a
        } else {
            a + b
        }
    }};
}

macro_rules! lane3 {
    ($name:ident, |$a:ident, $b:ident, $c:ident| $value:expr; $($t:ident),+) => {$(
        impl Lane for $name<$t> {
            type A = $t;
            type B = $t;
            type C = $t;
            type Out = $t;
            #[inline(always)]
            fn f($a: $t, $b: $t, $c: $t) -> $t {
                $value
            }
        }
    )+};
}

lane3!(Fma, |a, b, c| a.mul_add(b, c); f32, f64);
lane3!(Max3, |a, b, c| larger!(larger!(a, b), c); f32, f64);
lane3!(Min3, |a, b, c| -larger!(larger!(-a, -b), -c); f32, f64);

/// What a call comes down to.
pub(crate) enum Call {
    /// Apply these functions.
    Apply(Fns),
    /// The first argument as it is.
    Same,
}

macro_rules! float {
    ($op:ident, $level:expr, $reg:expr) => {
        match $reg {
            Reg::F32 => Some(Call::Apply(fns::<$op<f32>>($level))),
            Reg::F64 => Some(Call::Apply(fns::<$op<f64>>($level))),
            _ => None,
        }
    };
}

macro_rules! bits {
    ($op:ident, $level:expr, $reg:expr) => {
        match $reg {
            Reg::I8 | Reg::U8 => Some(Call::Apply(fns::<$op<u8>>($level))),
            Reg::I16 | Reg::U16 => Some(Call::Apply(fns::<$op<u16>>($level))),
            Reg::I32 | Reg::U32 => Some(Call::Apply(fns::<$op<u32>>($level))),
            Reg::I64 | Reg::U64 => Some(Call::Apply(fns::<$op<u64>>($level))),
            Reg::Bool | Reg::F32 | Reg::F64 => None,
        }
    };
}

/// What calling `intrinsic` on a register type does; `None` where the function is not defined on that type.
pub(crate) fn call(intrinsic: Intrinsic, reg: Reg, level: Level) -> Option<Call> {
    Some(match function(intrinsic, reg, level)? {
        Call::Apply(fns) => Call::Apply(fns.being(Op::Call(intrinsic, reg))),
        Call::Same => Call::Same,
    })
}

fn function(intrinsic: Intrinsic, reg: Reg, level: Level) -> Option<Call> {
    match intrinsic {
        Intrinsic::Exp => float!(Exp, level, reg),
        Intrinsic::Exp2 => float!(Exp2, level, reg),
        Intrinsic::Exp2Ftz => float!(Exp2Ftz, level, reg),
        Intrinsic::Log => float!(Log, level, reg),
        Intrinsic::Log2 => float!(Log2, level, reg),
        Intrinsic::Sqrt => float!(Sqrt, level, reg),
        Intrinsic::Rsqrt => float!(Rsqrt, level, reg),
        Intrinsic::Tanh => float!(Tanh, level, reg),
        Intrinsic::Sigmoid => float!(Sigmoid, level, reg),
        Intrinsic::Erf => float!(Erf, level, reg),
        Intrinsic::Sin => float!(Sin, level, reg),
        Intrinsic::Cos => float!(Cos, level, reg),
        Intrinsic::Pow => float!(Pow, level, reg),
        Intrinsic::Fmod => float!(Fmod, level, reg),
        Intrinsic::AddFtz => float!(AddFtz, level, reg),
        Intrinsic::Fma => float!(Fma, level, reg),
        Intrinsic::Max3 => float!(Max3, level, reg),
        Intrinsic::Min3 => float!(Min3, level, reg),
        Intrinsic::Abs => match reg {
            Reg::F32 => Some(Call::Apply(fns::<Abs<f32>>(level))),
            Reg::F64 => Some(Call::Apply(fns::<Abs<f64>>(level))),
            Reg::I8 => Some(Call::Apply(fns::<Abs<i8>>(level))),
            Reg::I16 => Some(Call::Apply(fns::<Abs<i16>>(level))),
            Reg::I32 => Some(Call::Apply(fns::<Abs<i32>>(level))),
            Reg::I64 => Some(Call::Apply(fns::<Abs<i64>>(level))),
            Reg::Bool | Reg::U8 | Reg::U16 | Reg::U32 | Reg::U64 => Some(Call::Same),
        },
        Intrinsic::Floor => rounding(float!(Floor, level, reg), reg),
        Intrinsic::Ceil => rounding(float!(Ceil, level, reg), reg),
        Intrinsic::Round => rounding(float!(Round, level, reg), reg),
        Intrinsic::Trunc => rounding(float!(Trunc, level, reg), reg),
        Intrinsic::Nearbyint => rounding(float!(Nearbyint, level, reg), reg),
        Intrinsic::IsNan => float!(IsNan, level, reg).or_else(|| bits!(Never, level, reg)),
        Intrinsic::IsInf => float!(IsInf, level, reg).or_else(|| bits!(Never, level, reg)),
        Intrinsic::IsFinite => float!(IsFinite, level, reg).or_else(|| bits!(Always, level, reg)),
        Intrinsic::Popcount => bits!(Popcount, level, reg),
        Intrinsic::Likely => Some(Call::Same),
    }
}

/// Integers are rounded already.
fn rounding(float: Option<Call>, reg: Reg) -> Option<Call> {
    if reg.is_int() { Some(Call::Same) } else { float }
}

/// Logical not.
pub(crate) fn not(level: Level) -> Fns {
    fns::<Not<u8>>(level).being(Op::Not)
}
