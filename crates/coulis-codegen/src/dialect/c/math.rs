//! Functions of floats. exp, log and tanh follow `coulis_ir::math` step by step, fused where it is fused, so that the
//! executor and compiled code give the same bits; the others are the C library's, called in `f64` for `f32`.

use coulis_ir::Intrinsic;
use coulis_ir::math::{TANH_BELOW, TANH_TOP};

use super::memory::FN;
use crate::EmitError;
use crate::c::elementary::{exp, log, one, sigmoid, suffix};
use crate::c::helper::{Comparison, Helper, Needs};
use crate::c::plain;
use crate::c::types::{CTy, VTy};

/// The definition of `intrinsic` on values of type `ty`.
pub fn define(intrinsic: Intrinsic, ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    if !ty.ty.is_float() {
        return integer(intrinsic, ty, needs);
    }
    match intrinsic {
        Intrinsic::Exp => exp(&Helper::Math(intrinsic, ty).name(), ty, needs),
        Intrinsic::Log => log(ty, needs),
        Intrinsic::Sigmoid => sigmoid(&needs.helper(Helper::Math(Intrinsic::Exp, ty))?, ty, needs),
        Intrinsic::Abs if ty.lanes > 0 => {
            let mask = needs.ty(ty.bits());
            let (value, bits) =
                (ty.name(), if ty.ty == CTy::F32 { "0x7fffffff" } else { "0x7fffffffffffffffLL" });
            Ok(one_line(intrinsic, ty, &format!("return ({value})(({mask})a & {bits});")))
        }
        Intrinsic::IsNan => predicate(intrinsic, ty, Comparison::Ne, "a", &["a"], needs),
        Intrinsic::IsInf => predicate(intrinsic, ty, Comparison::Eq, "a", &["{inf}", "-{inf}"], needs),
        Intrinsic::IsFinite => predicate(intrinsic, ty, Comparison::Eq, "a - a", &["{zero}"], needs),
        Intrinsic::Fma => fused(ty, needs),
        Intrinsic::Max3 | Intrinsic::Min3 => extremum3(intrinsic, ty, needs),
        Intrinsic::Exp2
        | Intrinsic::Exp2Ftz
        | Intrinsic::Log2
        | Intrinsic::Sqrt
        | Intrinsic::Rsqrt
        | Intrinsic::Tanh
        | Intrinsic::Erf
        | Intrinsic::Sin
        | Intrinsic::Cos
        | Intrinsic::Abs
        | Intrinsic::Floor
        | Intrinsic::Ceil
        | Intrinsic::Round
        | Intrinsic::Trunc
        | Intrinsic::Nearbyint
        | Intrinsic::Likely => unary(intrinsic, ty, needs),
        Intrinsic::Pow | Intrinsic::Fmod | Intrinsic::AddFtz => binary(intrinsic, ty, needs),
        Intrinsic::Popcount => Err(unsupported(intrinsic, ty)),
    }
}

fn unsupported(intrinsic: Intrinsic, ty: VTy) -> EmitError {
    EmitError::Unsupported { dialect: "c", what: format!("`{}` of {}", intrinsic.name(), ty.name()) }
}

fn one_line(intrinsic: Intrinsic, ty: VTy, body: &str) -> String {
    let value = ty.name();
    format!("{FN} {value} {}({value} a) {{ {body} }}\n", Helper::Math(intrinsic, ty).name())
}

fn integer(intrinsic: Intrinsic, ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let value = ty.name();
    if ty.lanes > 0 {
        return lanes(intrinsic, ty, needs);
    }
    match intrinsic {
        Intrinsic::Abs => Ok(one_line(intrinsic, ty, &format!("return a < 0 ? ({value})-a : a;"))),
        Intrinsic::Popcount => {
            let unsigned = CTy::unsigned(ty.ty.bytes()).name();
            Ok(one_line(intrinsic, ty, &format!("return ({value})__builtin_popcountll(({unsigned})a);")))
        }
        Intrinsic::Fma => Ok(format!(
            "{FN} {value} {}({value} a, {value} b, {value} c) {{ return ({value})(a * b + c); }}\n",
            Helper::Math(intrinsic, ty).name()
        )),
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
        | Intrinsic::Min3
        | Intrinsic::Floor
        | Intrinsic::Ceil
        | Intrinsic::Round
        | Intrinsic::Trunc
        | Intrinsic::Nearbyint
        | Intrinsic::IsNan
        | Intrinsic::IsInf
        | Intrinsic::IsFinite
        | Intrinsic::Likely => Err(unsupported(intrinsic, ty)),
    }
}

/// The scalar function in each lane.
fn lanes(intrinsic: Intrinsic, ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let value = needs.ty(ty);
    let one = needs.helper(Helper::Math(intrinsic, VTy::scalar(ty.ty)))?;
    let names = ["a", "b", "c"];
    let names = &names[..intrinsic.arity()];
    let params: Vec<String> = names.iter().map(|n| format!("{value} {n}")).collect();
    let args: Vec<String> = names.iter().map(|n| format!("{n}[i]")).collect();
    Ok(format!(
        "{FN} {value} {}({}) {{ for (int i = 0; i < {}; ++i) a[i] = {one}({}); return a; }}\n",
        Helper::Math(intrinsic, ty).name(),
        params.join(", "),
        ty.lanes,
        args.join(", ")
    ))
}

/// Whether `left` compares so with any of `rights`.
fn predicate(
    intrinsic: Intrinsic,
    ty: VTy,
    comparison: Comparison,
    left: &str,
    rights: &[&str],
    needs: &mut dyn Needs,
) -> Result<String, EmitError> {
    let (name, value, s) = (Helper::Math(intrinsic, ty).name(), ty.name(), suffix(ty));
    let literal = |text: &str| {
        text.replace("{inf}", &format!("__builtin_inf{s}()")).replace("{zero}", &format!("0.0{s}"))
    };
    let mut tests = Vec::new();
    if ty.lanes == 0 {
        let op = comparison.operator();
        tests.extend(rights.iter().map(|right| format!("({left}) {op} {}", literal(right))));
        return Ok(format!("{FN} b8 {name}({value} a) {{ return {}; }}\n", tests.join(" || ")));
    }
    needs.ty(ty);
    let mask = needs.ty(ty.mask());
    let compare = needs.helper(Helper::Compare(comparison, ty))?;
    for right in rights {
        let right = match *right {
            "a" => "a".to_owned(),
            right => format!("{}({})", needs.helper(Helper::Splat(ty))?, literal(right)),
        };
        tests.push(format!("{compare}({left}, {right})"));
    }
    Ok(format!("{FN} {mask} {name}({value} a) {{ return {}; }}\n", tests.join(" | ")))
}

/// The builtin of `a * b + c` of a vector that fills a register, and where there is one.
fn fused_builtin(ty: VTy) -> Option<(&'static str, String)> {
    let letter = if ty.ty == CTy::F32 { "s" } else { "d" };
    match ty.bytes() {
        64 => Some(("defined(CX_GCC_AVX512)", format!("vfmaddp{letter}512_mask(a, b, c, -1, 4)"))),
        32 => Some(("defined(CX_GCC_AVX2) && defined(__FMA__)", format!("vfmaddp{letter}256(a, b, c)"))),
        16 => Some(("defined(CX_GCC_AVX2) && defined(__FMA__)", format!("vfmaddp{letter}(a, b, c)"))),
        _ => None,
    }
}

/// `a * b + c` where the product is exact: one operation or two, of the same bits.
pub fn add_exact(ty: VTy, needs: &mut dyn Needs) -> String {
    let (name, value) = (Helper::AddExact(ty).name(), needs.ty(ty));
    let body = match fused_builtin(ty) {
        Some((guard, fast)) => {
            format!(
                "\n#if {guard}\n    return __builtin_ia32_{fast};\n#else\n    return a * b + c;\n#endif\n"
            )
        }
        None => " return a * b + c; ".to_owned(),
    };
    format!("{FN} {value} {name}({value} a, {value} b, {value} c) {{{body}}}\n")
}

/// Where `a * b + c`, rounded once, is an operation of the machine, or where nothing is known of that.
const HAS_FMA: &str = "defined(__FMA__) || defined(__FP_FAST_FMA) || !defined(__x86_64__)";

/// How a function begins that is too long to be written out wherever it is called: a kernel of exponentials calls some hundred.
const APART: &str = "static __attribute__((noinline))";

/// `a * b + c`, rounded once. On machines without such an operation that is put together from others, since the C library's
/// function takes some hundred cycles there.
fn fused(ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let (name, value, s) = (Helper::Math(Intrinsic::Fma, ty).name(), ty.name(), suffix(ty));
    let (by_machine, by_parts) = if ty.lanes == 0 {
        let by_parts = if ty.ty == CTy::F32 { SINGLE_FUSED.to_owned() } else { double_fused_of_one() };
        (format!("    return __builtin_fma{s}(a, b, c);\n"), by_parts)
    } else {
        let Some((guard, fast)) = fused_builtin(ty) else { return lanes(Intrinsic::Fma, ty, needs) };
        needs.ty(ty);
        let one_by_one =
            |one: &str| format!("for (int i = 0; i < {}; ++i) a[i] = {one}(a[i], b[i], c[i]);", ty.lanes);
        let by_machine = format!(
            "#if {guard}
    return __builtin_ia32_{fast};
#else
    {}
    return a;
#endif
",
            one_by_one(&format!("__builtin_fma{s}"))
        );
        let by_parts = match ty.ty {
            CTy::F32 => single_fused(ty),
            _ => {
                let one = needs.helper(Helper::Math(Intrinsic::Fma, VTy::scalar(ty.ty)))?;
                double_fused(ty, &one_by_one(&one))
            }
        };
        (by_machine, by_parts)
    };
    Ok(format!(
        "#if {HAS_FMA}
{FN} {value} {name}({value} a, {value} b, {value} c)
{{
{by_machine}}}
#else
{APART} {value} {name}({value} a, {value} b, {value} c)
{{
{by_parts}}}
#endif
"
    ))
}

/// As in [`SINGLE_FUSED`], without comparisons, which compilers take apart lane by lane: what is off counts if it is not
/// zero, of a finite sum.
fn single_fused(ty: VTy) -> String {
    let (value, bytes) = (ty.name(), 8 * ty.lanes);
    format!(
        "    typedef f64 wide __attribute__((vector_size({bytes})));
    typedef u64 bits __attribute__((vector_size({bytes})));
    const wide p = __builtin_convertvector(a, wide) * __builtin_convertvector(b, wide);
    const wide z = __builtin_convertvector(c, wide), s = p + z, part = s - p;
    const wide rest = (p - (s - part)) + (z - part);
    const bits own = (bits)s, off = (bits)rest, some = off << 1;
    const bits inexact = ((some | -some) & ~((own & 0x7ff0000000000000ull) + 0x0010000000000000ull)) >> 63;
    const bits odd = (own - (((off ^ own) >> 63) & inexact)) | inexact;
    return __builtin_convertvector((wide)odd, {value});
"
    )
}

/// As in [`double_fused_of_one`], without comparisons: lanes are left to `one_by_one` where the highest bit of a difference
/// says that a size is beyond its bounds. A product of zero is as good as any if something is added to it.
fn double_fused(ty: VTy, one_by_one: &str) -> String {
    let (value, bytes) = (ty.name(), ty.bytes());
    let any = (0..ty.lanes).map(|lane| format!("left[{lane}]")).collect::<Vec<_>>().join(" | ");
    format!(
        "    typedef u64 bits __attribute__((vector_size({bytes})));
    const {value} p = a * b;
    const bits size_a = (bits)a & 0x7fffffffffffffffull, size_b = (bits)b & 0x7fffffffffffffffull;
    const bits size_c = (bits)c & 0x7fffffffffffffffull, size_p = (bits)p & 0x7fffffffffffffffull;
    const bits nil = ((size_a - 1) | (size_b - 1)) & -size_c, small = (size_p - 0x07b0000000000001ull) & ~nil;
    const bits large = (0x7dcfffffffffffffull - size_a) | (0x7dcfffffffffffffull - size_b)
        | (0x7dcfffffffffffffull - size_c) | (0x7dcfffffffffffffull - size_p);
    const bits left = large | small;
    if (__builtin_expect((i64)({any}) < 0, 0)) {{
        {one_by_one}
        return a;
    }}
{parts}    const bits own = (bits)s, off = (bits)rest, some = off << 1, inexact = (some | -some) >> 63;
    const bits odd = (own - (((off ^ own) >> 63) & inexact)) | inexact;
    return v + ({value})odd;
",
        parts = DOUBLE_PARTS.replace("f64", &value),
    )
}

/// `f64` holds the product. Their sum is rounded to odd there, from which the last rounding is that of the exact value.
/// Source: S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
/// odd", 2008; `coulis_ir::math::fma_odd`.
const SINGLE_FUSED: &str = "    const f64 p = (f64)a * b, s = p + c, part = s - p;
    const f64 rest = (p - (s - part)) + (c - part);
    union { f64 value; u64 bits; } odd = { s }, sign = { rest };
    if (rest < 0.0 || rest > 0.0) odd.bits = (odd.bits - ((sign.bits ^ odd.bits) >> 63)) | 1;
    return (f32)odd.value;
";

/// The product as a sum of two (Dekker and Veltkamp), then a sum of three by a rounding to odd; see
/// [`SINGLE_FUSED`]. Where a part may leave the range, the C library's.
fn double_fused_of_one() -> String {
    format!(
        "    const f64 p = a * b, size = __builtin_fabs(p);
    if (p == 0.0 && (a == 0.0 || b == 0.0)) return p + c;
    const b8 fits = __builtin_fabs(a) < 0x1p990 && __builtin_fabs(b) < 0x1p990 && __builtin_fabs(c) < 0x1p990;
    if (!(fits && 0x1p-900 < size && size < 0x1p990)) return __builtin_fma(a, b, c);
{DOUBLE_PARTS}    union {{ f64 value; u64 bits; }} odd = {{ s }}, sign = {{ rest }};
    if (rest < 0.0 || rest > 0.0) odd.bits = (odd.bits - ((sign.bits ^ odd.bits) >> 63)) | 1;
    return v + odd.value;
"
    )
}

/// The product and what is added as `v + s`, and what `s` is off by.
const DOUBLE_PARTS: &str =
    "    const f64 a_scaled = a * 134217729.0, a_high = a_scaled - (a_scaled - a), a_low = a - a_high;
    const f64 b_scaled = b * 134217729.0, b_high = b_scaled - (b_scaled - b), b_low = b - b_high;
    const f64 p_low = a_low * b_low - (((p - a_high * b_high) - a_low * b_high) - a_high * b_low);
    const f64 t = c + p_low, t_part = t - c, t_low = (c - (t - t_part)) + (p_low - t_part);
    const f64 v = p + t, v_part = v - p, v_low = (p - (v - v_part)) + (t - v_part);
    const f64 s = t_low + v_low, part = s - t_low, rest = (t_low - (s - part)) + (v_low - part);
";

fn extremum3(intrinsic: Intrinsic, ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    if ty.lanes > 0 {
        return lanes(intrinsic, ty, needs);
    }
    Ok(plain::extremum3(intrinsic, ty.ty, needs))
}

fn unary(intrinsic: Intrinsic, ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    if ty.lanes > 0 {
        return lanes(intrinsic, ty, needs);
    }
    let s = suffix(ty);
    let value = ty.name();
    let by_f64 = |name: &str| format!("return ({value})__builtin_{name}((f64)a);");
    let exact = |name: &str| format!("return __builtin_{name}{s}(a);");
    let body = match intrinsic {
        Intrinsic::Sqrt => exact("sqrt"),
        Intrinsic::Rsqrt => format!("return {} / __builtin_sqrt{s}(a);", one(ty)),
        Intrinsic::Abs => exact("fabs"),
        Intrinsic::Floor => exact("floor"),
        Intrinsic::Ceil => exact("ceil"),
        Intrinsic::Round => exact("round"),
        Intrinsic::Trunc => exact("trunc"),
        Intrinsic::Nearbyint => exact("nearbyint"),
        Intrinsic::Exp2 => by_f64("exp2"),
        Intrinsic::Exp2Ftz if ty.ty == CTy::F32 => {
            let power = format!("{value} power = ({value})__builtin_exp2((f64)a);");
            format!("{power} return power < 1.17549435e-38f ? 0.0f : power;")
        }
        Intrinsic::Exp2Ftz => by_f64("exp2"),
        Intrinsic::Log2 => by_f64("log2"),
        Intrinsic::Tanh if ty.ty == CTy::F32 => {
            let wide = needs.helper(Helper::Math(intrinsic, VTy::scalar(CTy::F64)))?;
            format!("return ({value}){wide}((f64)a);")
        }
        Intrinsic::Tanh => return tanh(needs),
        Intrinsic::Erf => by_f64("erf"),
        Intrinsic::Sin => by_f64("sin"),
        Intrinsic::Cos => by_f64("cos"),
        Intrinsic::Exp
        | Intrinsic::Log
        | Intrinsic::Sigmoid
        | Intrinsic::Pow
        | Intrinsic::Fmod
        | Intrinsic::AddFtz
        | Intrinsic::Fma
        | Intrinsic::Max3
        | Intrinsic::Min3
        | Intrinsic::IsNan
        | Intrinsic::IsInf
        | Intrinsic::IsFinite
        | Intrinsic::Popcount
        | Intrinsic::Likely => return Err(unsupported(intrinsic, ty)),
    };
    Ok(one_line(intrinsic, ty, &body))
}

/// The hyperbolic tangent of `f64`, as `coulis_ir::math::tanh_f64` has it.
fn tanh(needs: &mut dyn Needs) -> Result<String, EmitError> {
    let ty = VTy::scalar(CTy::F64);
    let exp = needs.helper(Helper::Math(Intrinsic::Exp, ty))?;
    let polynomial = |coefficients: &[f64]| {
        let steps = coefficients.iter().rev().map(|c| format!("{c:?}"));
        steps.reduce(|sum, c| format!("({c} + z * {sum})")).unwrap_or_default()
    };
    let (top, below) = (polynomial(&TANH_TOP), polynomial(&TANH_BELOW));
    Ok(format!(
        "{FN} f64 {name}(f64 a)
{{
    const f64 size = __builtin_fabs(a);
    if (size < 0.625) {{
        const f64 z = a * a;
        return __builtin_copysign(a + a * (z * ({top} / {below})), a);
    }}
    const f64 t = {exp}(-2.0 * size);
    return __builtin_copysign(1.0 - 2.0 * t / (1.0 + t), a);
}}
",
        name = Helper::Math(Intrinsic::Tanh, ty).name(),
    ))
}

/// A product with zero is a zero of the factor's sign.
fn add_ftz(ty: CTy, name: &str) -> String {
    let value = ty.name();
    if ty != CTy::F32 {
        return format!("{FN} {value} {name}({value} a, {value} b) {{ return a + b; }}\n");
    }
    let flush =
        |x: &str| format!("    {x} = {x} < 1.17549435e-38f && {x} > -1.17549435e-38f ? {x} * 0.0f : {x};\n");
    format!(
        "{FN} {value} {name}({value} a, {value} b)\n{{\n    {value} sum;\n{}{}    sum = a + b;\n{}    return sum;\n}}\n",
        flush("a"),
        flush("b"),
        flush("sum")
    )
}

fn binary(intrinsic: Intrinsic, ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    if ty.lanes > 0 {
        return lanes(intrinsic, ty, needs);
    }
    let (name, value) = (Helper::Math(intrinsic, ty).name(), ty.name());
    if intrinsic == Intrinsic::AddFtz {
        return Ok(add_ftz(ty.ty, &name));
    }
    let builtin = if intrinsic == Intrinsic::Pow { "pow" } else { "fmod" };
    Ok(format!(
        "{FN} {value} {name}({value} a, {value} b) {{ return ({value})__builtin_{builtin}((f64)a, (f64)b); }}\n"
    ))
}
