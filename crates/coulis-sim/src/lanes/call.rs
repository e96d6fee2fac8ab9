//! The pure functions, as documented on [`Intrinsic`].

use coulis_ir::math::{erf_f64, exp_f32, exp_f64, log_f32, log_f64, sigmoid_f32, sigmoid_f64, tanh_f64};
use coulis_ir::{DType, Intrinsic};

use super::float::{BF16, F8E4M3, F8E5M2, F16, Float};
use super::int::{Int, magnitude, ones};
use super::{F1, F2, F3, map1, map2, map3};

/// What a call comes down to.
pub(crate) enum Call<const W: usize> {
    /// The first argument as it is.
    Same,
    /// A function of one argument.
    One(F1<W>),
    /// A function of two.
    Two(F2<W>),
    /// A function of three.
    Three(F3<W>),
}

/// What calling `intrinsic` on a type does; `None` where it is not defined on it.
pub(crate) fn call<const W: usize>(intrinsic: Intrinsic, dtype: DType) -> Option<Call<W>> {
    if intrinsic == Intrinsic::Likely {
        return Some(Call::Same);
    }
    match dtype {
        DType::Bool => None,
        DType::I8 => on_int::<i8, W>(intrinsic),
        DType::I16 => on_int::<i16, W>(intrinsic),
        DType::I32 => on_int::<i32, W>(intrinsic),
        DType::I64 => on_int::<i64, W>(intrinsic),
        DType::U8 => on_int::<u8, W>(intrinsic),
        DType::U16 => on_int::<u16, W>(intrinsic),
        DType::U32 => on_int::<u32, W>(intrinsic),
        DType::U64 => on_int::<u64, W>(intrinsic),
        DType::F8E4M3 => on_float::<F8E4M3, W>(intrinsic),
        DType::F8E5M2 => on_float::<F8E5M2, W>(intrinsic),
        DType::F16 => on_float::<F16, W>(intrinsic),
        DType::BF16 => on_float::<BF16, W>(intrinsic),
        DType::F32 => on_float::<f32, W>(intrinsic),
        DType::F64 => on_float::<f64, W>(intrinsic),
    }
}

fn on_int<T: Int, const W: usize>(intrinsic: Intrinsic) -> Option<Call<W>> {
    Some(match intrinsic {
        Intrinsic::Abs => Call::One(magnitude::<T, W>()),
        Intrinsic::Popcount => Call::One(ones::<T, W>()),
        Intrinsic::Floor
        | Intrinsic::Ceil
        | Intrinsic::Round
        | Intrinsic::Trunc
        | Intrinsic::Nearbyint
        | Intrinsic::Likely => Call::Same,
        Intrinsic::IsNan | Intrinsic::IsInf => Call::One(|a| map1(a, |_: bool| false)),
        Intrinsic::IsFinite => Call::One(|a| map1(a, |_: bool| true)),
        Intrinsic::Fma => Call::Three(|a, b, c| map3(a, b, c, |x: T, y: T, z: T| x.mul(y).add(z))),
        Intrinsic::Exp
        | Intrinsic::Exp2
        | Intrinsic::Exp2Ftz
        | Intrinsic::Log
        | Intrinsic::Log2
        | Intrinsic::Sqrt
        | Intrinsic::Rsqrt
        | Intrinsic::Tanh
        | Intrinsic::Sigmoid
        | Intrinsic::Erf
        | Intrinsic::Sin
        | Intrinsic::Cos
        | Intrinsic::Pow
        | Intrinsic::Fmod
        | Intrinsic::AddFtz
        | Intrinsic::Max3
        | Intrinsic::Min3 => return None,
    })
}

/// A function in the precision that a type is computed in: `float64` for itself, `float32` for itself and all narrower
/// types (contract N4).
#[inline(always)]
fn apply<T: Float>(x: T, single: impl Fn(f32) -> f32, double: impl Fn(f64) -> f64) -> T {
    if size_of::<T>() == 8 && T::round(1.0 / 3.0).wide() == 1.0 / 3.0 {
        T::round(double(x.wide()))
    } else {
        T::round(f64::from(single(x.wide() as f32)))
    }
}

/// A function in `float64`, rounded to `float32` on the way to narrower types, as compiled code does it.
#[inline(always)]
fn by_double<T: Float>(x: T, double: impl Fn(f64) -> f64) -> T {
    let of = |v: f32| double(f64::from(v)) as f32;
    apply(x, of, &double)
}

/// The larger or the smaller of two floats of 4 bytes, NaN where one is NaN; `None` of other types.
pub(crate) fn extremum<const W: usize>(is_max: bool, dtype: DType) -> Option<F2<W>> {
    match (dtype, is_max) {
        (DType::F32, true) => Some(|a, b| map2(a, b, |x: f32, y: f32| larger(x, y))),
        (DType::F32, false) => Some(|a, b| map2(a, b, |x: f32, y: f32| smaller(x, y))),
        _ => None,
    }
}

/// The value, or the zero of its sign where it is subnormal, of the types that have the exponents of `float32`.
#[inline(always)]
fn without_subnormal<T: Float>(x: T) -> T {
    let least = f64::from(f32::MIN_POSITIVE);
    let is_single = T::round(least).wide() == least && T::round(least * least).wide() == 0.0;
    if is_single && x.wide().abs() < least { T::round(0f64.copysign(x.wide())) } else { x }
}

/// The larger of two, by signs where they are equal; a NaN of either.
#[inline(always)]
fn larger<T: Float>(x: T, y: T) -> T {
    let first = x.wide().is_nan() || x > y || (x == y && y.wide().is_sign_negative());
    if first { x } else { y }
}

/// The smaller of two, by signs where they are equal; a NaN of either.
#[inline(always)]
fn smaller<T: Float>(x: T, y: T) -> T {
    let first = x.wide().is_nan() || x < y || (x == y && x.wide().is_sign_negative());
    if first { x } else { y }
}

fn on_float<T: Float, const W: usize>(intrinsic: Intrinsic) -> Option<Call<W>> {
    Some(match intrinsic {
        Intrinsic::Exp => Call::One(|a| map1(a, |x: T| apply(x, exp_f32, exp_f64))),
        Intrinsic::Exp2 => Call::One(|a| map1(a, |x: T| by_double(x, f64::exp2))),
        Intrinsic::Exp2Ftz => Call::One(|a| map1(a, |x: T| without_subnormal(by_double(x, f64::exp2)))),
        Intrinsic::Log => Call::One(|a| map1(a, |x: T| apply(x, log_f32, log_f64))),
        Intrinsic::Log2 => Call::One(|a| map1(a, |x: T| by_double(x, f64::log2))),
        Intrinsic::Sqrt => Call::One(|a| map1(a, |x: T| apply(x, f32::sqrt, f64::sqrt))),
        Intrinsic::Rsqrt => Call::One(|a| map1(a, |x: T| apply(x, |v| 1.0 / v.sqrt(), |v| 1.0 / v.sqrt()))),
        Intrinsic::Tanh => Call::One(|a| map1(a, |x: T| by_double(x, tanh_f64))),
        Intrinsic::Sigmoid => Call::One(|a| map1(a, |x: T| apply(x, sigmoid_f32, sigmoid_f64))),
        Intrinsic::Erf => Call::One(|a| map1(a, |x: T| by_double(x, erf_f64))),
        Intrinsic::Sin => Call::One(|a| map1(a, |x: T| by_double(x, f64::sin))),
        Intrinsic::Cos => Call::One(|a| map1(a, |x: T| by_double(x, f64::cos))),
        Intrinsic::Pow => Call::Two(|a, b| map2(a, b, |x: T, y: T| by_double(x, |v| v.powf(y.wide())))),
        Intrinsic::Fmod => Call::Two(|a, b| map2(a, b, |x: T, y: T| T::round(x.wide() % y.wide()))),
        Intrinsic::AddFtz => Call::Two(|a, b| {
            map2(a, b, |x: T, y: T| without_subnormal(without_subnormal(x).add(without_subnormal(y))))
        }),
        Intrinsic::Fma => Call::Three(|a, b, c| map3(a, b, c, |x: T, y: T, z: T| x.fma(y, z))),
        Intrinsic::Max3 => Call::Three(|a, b, c| map3(a, b, c, |x: T, y: T, z: T| larger(larger(x, y), z))),
        Intrinsic::Min3 => Call::Three(|a, b, c| map3(a, b, c, |x: T, y: T, z: T| smaller(smaller(x, y), z))),
        Intrinsic::Abs => Call::One(|a| map1(a, |x: T| T::round(x.wide().abs()))),
        Intrinsic::Floor => Call::One(|a| map1(a, |x: T| T::round(x.wide().floor()))),
        Intrinsic::Ceil => Call::One(|a| map1(a, |x: T| T::round(x.wide().ceil()))),
        Intrinsic::Round => Call::One(|a| map1(a, |x: T| T::round(x.wide().round()))),
        Intrinsic::Trunc => Call::One(|a| map1(a, |x: T| T::round(x.wide().trunc()))),
        Intrinsic::Nearbyint => Call::One(|a| map1(a, |x: T| T::round(x.wide().round_ties_even()))),
        Intrinsic::IsNan => Call::One(|a| map1(a, |x: T| x.wide().is_nan())),
        Intrinsic::IsInf => Call::One(|a| map1(a, |x: T| x.wide().is_infinite())),
        Intrinsic::IsFinite => Call::One(|a| map1(a, |x: T| x.wide().is_finite())),
        Intrinsic::Likely => Call::Same,
        Intrinsic::Popcount => return None,
    })
}
