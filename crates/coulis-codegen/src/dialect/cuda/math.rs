//! Functions of numbers. exp and log are coulis' own; roots, roundings and fused operations are exact on the machine;
//! the others are CUDA's functions of `double`, rounded to the type.

use coulis_ir::{DType, Intrinsic, math};

use super::FN;
use crate::EmitError;
use crate::c::elementary::{exp, log, one, sigmoid};
use crate::c::helper::{Helper, Needs};
use crate::c::plain;
use crate::c::types::{CTy, VTy};
use crate::dialect::Dialect as _;

/// The definition of `intrinsic` on scalars of type `ty`.
pub fn define(intrinsic: Intrinsic, ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let (name, value) = (Helper::Math(intrinsic, ty).name(), ty.name());
    let unsupported = || EmitError::Unsupported {
        dialect: "cuda",
        what: format!("`{}` of {}", intrinsic.name(), ty.name()),
    };
    let single = ty.ty == CTy::F32;
    let unary = |body: String| Ok(format!("{FN} {value} {name}({value} a) {{ return {body}; }}\n"));
    let predicate = |body: String| Ok(format!("{FN} b8 {name}({value} a) {{ return {body}; }}\n"));
    let unsigned = CTy::unsigned(ty.ty.bytes().max(4)).name();
    if !ty.ty.is_float() {
        return match intrinsic {
            Intrinsic::Abs if !ty.ty.is_signed() => unary("a".to_owned()),
            Intrinsic::Abs => unary(format!("a < 0 ? ({value})(0 - ({unsigned})a) : a")),
            Intrinsic::Popcount => {
                let exact = CTy::unsigned(ty.ty.bytes()).name();
                unary(format!("({value})__popcll((unsigned long long)({exact})a)"))
            }
            Intrinsic::Fma => Ok(format!(
                "{FN} {value} {name}({value} a, {value} b, {value} c) {{ return ({value})(({unsigned})a * ({unsigned})b + ({unsigned})c); }}\n"
            )),
            _ => Err(unsupported()),
        };
    }
    let exact = |one: &str, two: &str| unary(format!("{}(a)", if single { one } else { two }));
    let by_double = |function: &str| unary(format!("({value}){function}((f64)a)"));
    match intrinsic {
        Intrinsic::Exp if single => Ok(exp_of_single(&name)),
        Intrinsic::Exp => exp(&name, ty, needs),
        Intrinsic::Log => log(ty, needs),
        Intrinsic::Sigmoid if single => {
            // The machine's power errs by too much: just below a power of two the result has half the unit of
            // the exponential.
            let by_steps = "cx_exp_by_steps_f32";
            Ok(exp(by_steps, ty, needs)? + &sigmoid(by_steps, ty, needs)?)
        }
        Intrinsic::Sigmoid => sigmoid(&needs.helper(Helper::Math(Intrinsic::Exp, ty))?, ty, needs),
        Intrinsic::Sqrt => exact("__fsqrt_rn", "__dsqrt_rn"),
        Intrinsic::Rsqrt => {
            unary(format!("{} / {}(a)", one(ty), if single { "__fsqrt_rn" } else { "__dsqrt_rn" }))
        }
        Intrinsic::Abs => exact("fabsf", "fabs"),
        Intrinsic::Floor => exact("floorf", "floor"),
        Intrinsic::Ceil => exact("ceilf", "ceil"),
        Intrinsic::Round => exact("roundf", "round"),
        Intrinsic::Trunc => exact("truncf", "trunc"),
        Intrinsic::Nearbyint => exact("rintf", "rint"),
        Intrinsic::Exp2 if single => Ok(exp2_of_single(&name)),
        Intrinsic::Exp2Ftz if single => Ok(format!(
            "{FN} f32 {name}(f32 a)
{{
    f32 power;
    asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(power) : \"f\"(a));
    return power;
}}
"
        )),
        Intrinsic::Exp2 | Intrinsic::Exp2Ftz => by_double("exp2"),
        Intrinsic::Log2 => by_double("log2"),
        Intrinsic::Tanh => by_double("tanh"),
        Intrinsic::Erf => by_double("erf"),
        Intrinsic::Sin => by_double("sin"),
        Intrinsic::Cos => by_double("cos"),
        Intrinsic::Pow | Intrinsic::Fmod => Ok(format!(
            "{FN} {value} {name}({value} a, {value} b) {{ return ({value}){}((f64)a, (f64)b); }}\n",
            intrinsic.name()
        )),
        Intrinsic::AddFtz if single => Ok(format!(
            "{FN} f32 {name}(f32 a, f32 b)
{{
    asm(\"add.rn.ftz.f32 %0, %0, %1;\" : \"+f\"(a) : \"f\"(b));
    return a;
}}
"
        )),
        Intrinsic::AddFtz => Ok(format!("{FN} {value} {name}({value} a, {value} b) {{ return a + b; }}\n")),
        Intrinsic::Fma => Ok(format!(
            "{FN} {value} {name}({value} a, {value} b, {value} c) {{ return {}(a, b, c); }}\n",
            if single { "__fmaf_rn" } else { "__fma_rn" }
        )),
        Intrinsic::Max3 | Intrinsic::Min3 if single => Ok(extremum3(intrinsic, &name)),
        Intrinsic::Max3 | Intrinsic::Min3 => Ok(plain::extremum3(intrinsic, ty.ty, needs)),
        Intrinsic::IsNan => predicate("a != a".to_owned()),
        Intrinsic::IsInf => {
            let infinity = super::Cuda.float_literal(f64::INFINITY, ty.ty).text;
            predicate(format!("(a == {infinity}) | (a == -{infinity})"))
        }
        Intrinsic::IsFinite => predicate(format!("a - a == {}", if single { "0.0f" } else { "0.0" })),
        Intrinsic::Popcount | Intrinsic::Likely => Err(unsupported()),
    }
}

/// e to the x by the machine's power of two, as contract N15 allows: `x = (n + r) * ln 2` with a whole `n`
/// that stays within the exponents of normal numbers, and `2^r * 2^n`, rounded once. `n` is the product with
/// `1 / ln 2` rounded down, found as a part of its range, which the machine cuts off at 0 and 1 at no cost;
/// so `r` is from 0 to 1, but for what the part's rounding adds. It has the product in two parts and errs by
/// less than `2^-24`; the machine's power errs by 2 ulp at most. Where `n` is cut off `r` is far from there,
/// and the product is infinite, subnormal or 0, as it should be; what the power flushes is 0 then. Over all
/// numbers the result errs by 1.94 ulp at most, measured on an NVIDIA H100. The magic number's low bits are
/// the exponent's, so that its sum with `n` is the factor when shifted to its place.
fn exp_of_single(name: &str) -> String {
    const RANGE: f32 = 252.0;
    let magic = math::MAGIC_F32 + 127.0;
    let least = magic - RANGE / 2.0;
    let (high, low) = (math::INV_LN2_F32, (std::f64::consts::LOG2_E - f64::from(math::INV_LN2_F32)) as f32);
    let part = (std::f64::consts::LOG2_E / f64::from(RANGE)) as f32;
    format!(
        "{FN} f32 {name}(f32 a)
{{
    const f32 part = __saturatef(__fmaf_rn(a, {part:?}f, 0.5f));
    const f32 shifted = __fmaf_rd(part, {RANGE:?}f, {least:?}f);
    const f32 r = __fmaf_rn(a, {low:?}f, __fmaf_rn(a, {high:?}f, {magic:?}f - shifted));
    f32 power;
    asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(power) : \"f\"(r));
    return power * __int_as_float(__float_as_int(shifted) << 23);
}}
"
    )
}

/// 2 to the x by the machine's power of two, whose word for 2 ulp from the rounded result is taken (2.06 from
/// the exact one at most, measured over all numbers on an NVIDIA H100), and which flushes what is subnormal:
/// powers that are, or nearly, are taken of 32 more, which is exact, and scaled down, which rounds once.
/// Source: CUDA C++ Programming Guide, errors of `exp2f`.
fn exp2_of_single(name: &str) -> String {
    format!(
        "{FN} f32 {name}(f32 a)
{{
    const bool tiny = a < -120.0f;
    f32 power;
    asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(power) : \"f\"(tiny ? a + 32.0f : a));
    return tiny ? power * 0x1p-32f : power;
}}
"
    )
}

/// One instruction.
pub fn extremum2(intrinsic: Intrinsic, name: &str) -> String {
    let op = if intrinsic == Intrinsic::Max3 { "max" } else { "min" };
    format!(
        "{FN} f32 {name}(f32 a, f32 b) {{ f32 c; asm(\"{op}.NaN.f32 %0, %1, %2;\" : \"=f\"(c) : \"f\"(a), \"f\"(b)); return c; }}\n"
    )
}

/// One instruction.
pub fn extremum_pair(intrinsic: Intrinsic, dtype: DType, name: &str) -> String {
    let op = if intrinsic == Intrinsic::Max3 { "max" } else { "min" };
    let ty = if dtype == DType::BF16 { "bf16x2" } else { "f16x2" };
    format!(
        "{FN} u32 {name}(u32 a, u32 b) {{ u32 c; asm(\"{op}.NaN.{ty} %0, %1, %2;\" : \"=r\"(c) : \"r\"(a), \"r\"(b)); return c; }}\n"
    )
}

/// One instruction from `sm_100` on, two before. That machine knows three sources of `f32` only.
fn extremum3(intrinsic: Intrinsic, name: &str) -> String {
    let op = if intrinsic == Intrinsic::Max3 { "max" } else { "min" };
    format!(
        "{FN} f32 {name}(f32 a, f32 b, f32 c)
{{
    f32 d;
#if __CUDA_ARCH__ >= 1000
    asm(\"{op}.NaN.f32 %0, %1, %2, %3;\" : \"=f\"(d) : \"f\"(a), \"f\"(b), \"f\"(c));
#else
    asm(\"{op}.NaN.f32 %0, %1, %2;\" : \"=f\"(d) : \"f\"(a), \"f\"(b));
    asm(\"{op}.NaN.f32 %0, %0, %1;\" : \"+f\"(d) : \"f\"(c));
#endif
    return d;
}}
"
    )
}
