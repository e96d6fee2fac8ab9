//! Functions of floats. exp and log follow `coulis_ir::math` step by step, fused where it is fused, so that the
//! executor and compiled code give the same bits; the others are the C library's, called in `f64` for `f32`.

use std::fmt::Write as _;

use coulis_ir::{Intrinsic, math};

use super::memory::FN;
use crate::EmitError;
use crate::c::helper::{Comparison, Helper, Needs};
use crate::c::types::{CTy, VTy};

/// The definition of `intrinsic` on values of type `ty`.
pub fn define(intrinsic: Intrinsic, ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    if !ty.ty.is_float() {
        return integer(intrinsic, ty, needs);
    }
    match intrinsic {
        Intrinsic::Exp => exp(ty, needs),
        Intrinsic::Log => log(ty, needs),
        Intrinsic::Sigmoid => {
            let exp = needs.helper(Helper::Math(Intrinsic::Exp, ty))?;
            Ok(one_line(intrinsic, ty, &format!("return {one} / ({one} + {exp}(-a));", one = one(ty))))
        }
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
        Intrinsic::Exp2
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
        Intrinsic::Pow | Intrinsic::Fmod => binary(intrinsic, ty, needs),
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

/// Ends of the names of builtins: `f` for `f32`.
fn suffix(ty: VTy) -> &'static str {
    if ty.ty == CTy::F32 { "f" } else { "" }
}

/// The literal one in the type of a lane: vectors take no literal of another type.
fn one(ty: VTy) -> &'static str {
    if ty.ty == CTy::F32 { "1.0f" } else { "1.0" }
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

fn fused(ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let (name, value, s) = (Helper::Math(Intrinsic::Fma, ty).name(), ty.name(), suffix(ty));
    if ty.lanes > 0 {
        let letter = if ty.ty == CTy::F32 { "s" } else { "d" };
        let (guard, fast) = match ty.ty.bytes() * ty.lanes {
            64 => ("defined(CX_GCC_AVX512)", format!("vfmaddp{letter}512_mask(a, b, c, -1, 4)")),
            32 => ("defined(CX_GCC_AVX2) && defined(__FMA__)", format!("vfmaddp{letter}256(a, b, c)")),
            16 => ("defined(CX_GCC_AVX2) && defined(__FMA__)", format!("vfmaddp{letter}(a, b, c)")),
            _ => return lanes(Intrinsic::Fma, ty, needs),
        };
        needs.ty(ty);
        return Ok(format!(
            "{FN} {value} {name}({value} a, {value} b, {value} c)
{{
#if {guard}
    return __builtin_ia32_{fast};
#else
    for (int i = 0; i < {}; ++i) a[i] = __builtin_fma{s}(a[i], b[i], c[i]);
    return a;
#endif
}}
",
            ty.lanes
        ));
    }
    Ok(format!(
        "{FN} {value} {name}({value} a, {value} b, {value} c) {{ return __builtin_fma{s}(a, b, c); }}\n"
    ))
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
        Intrinsic::Log2 => by_f64("log2"),
        Intrinsic::Tanh => by_f64("tanh"),
        Intrinsic::Erf => by_f64("erf"),
        Intrinsic::Sin => by_f64("sin"),
        Intrinsic::Cos => by_f64("cos"),
        Intrinsic::Exp
        | Intrinsic::Log
        | Intrinsic::Sigmoid
        | Intrinsic::Pow
        | Intrinsic::Fmod
        | Intrinsic::Fma
        | Intrinsic::IsNan
        | Intrinsic::IsInf
        | Intrinsic::IsFinite
        | Intrinsic::Popcount
        | Intrinsic::Likely => return Err(unsupported(intrinsic, ty)),
    };
    Ok(one_line(intrinsic, ty, &body))
}

fn binary(intrinsic: Intrinsic, ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    if ty.lanes > 0 {
        return lanes(intrinsic, ty, needs);
    }
    let (name, value) = (Helper::Math(intrinsic, ty).name(), ty.name());
    let builtin = if intrinsic == Intrinsic::Pow { "pow" } else { "fmod" };
    Ok(format!(
        "{FN} {value} {name}({value} a, {value} b) {{ return ({value})__builtin_{builtin}((f64)a, (f64)b); }}\n"
    ))
}

/// What exp and log need to know of a float format, as C literals.
struct Format {
    int: String,
    mantissa_bits: u32,
    bias: u32,
    ln2_hi: String,
    ln2_lo: String,
    inv_ln2: String,
    magic: String,
    magic_bits: String,
    exp_min: String,
    exp_max: String,
    sqrt_half_bits: &'static str,
    one_bits: &'static str,
    mantissa_mask: &'static str,
    least_normal: &'static str,
    tiny_scale: &'static str,
    tiny_bits: &'static str,
}

impl Format {
    fn of(ty: VTy) -> Format {
        let int = ty.bits().name();
        if ty.ty == CTy::F32 {
            Format {
                int,
                mantissa_bits: 23,
                bias: 127,
                ln2_hi: f32_literal(math::LN2_HI_F32),
                ln2_lo: f32_literal(math::LN2_LO_F32),
                inv_ln2: f32_literal(math::INV_LN2_F32),
                magic: f32_literal(math::MAGIC_F32),
                magic_bits: format!("{:#x}", math::MAGIC_F32.to_bits()),
                exp_min: f32_literal(math::EXP_MIN_F32),
                exp_max: f32_literal(math::EXP_MAX_F32),
                sqrt_half_bits: "0x3f3504f3",
                one_bits: "0x3f800000",
                mantissa_mask: "0x007fffff",
                least_normal: "0x1p-126f",
                tiny_scale: "0x1p25f",
                tiny_bits: "25.0f",
            }
        } else {
            Format {
                int,
                mantissa_bits: 52,
                bias: 1023,
                ln2_hi: f64_literal(math::LN2_HI_F64),
                ln2_lo: f64_literal(math::LN2_LO_F64),
                inv_ln2: f64_literal(math::INV_LN2_F64),
                magic: f64_literal(math::MAGIC_F64),
                magic_bits: format!("{:#x}LL", math::MAGIC_F64.to_bits()),
                exp_min: f64_literal(math::EXP_MIN_F64),
                exp_max: f64_literal(math::EXP_MAX_F64),
                sqrt_half_bits: "0x3fe6a09e667f3bcdLL",
                one_bits: "0x3ff0000000000000LL",
                mantissa_mask: "0x000fffffffffffffLL",
                least_normal: "0x1p-1022",
                tiny_scale: "0x1p54",
                tiny_bits: "54.0",
            }
        }
    }
}

fn f32_literal(value: f32) -> String {
    format!("{value:?}f")
}

fn f64_literal(value: f64) -> String {
    format!("{value:?}")
}

/// `float` reinterpreted as its integer, and back; `cond ? a : b`.
struct Spelling {
    ty: VTy,
    value: String,
    int: String,
    select: String,
}

impl Spelling {
    fn new(ty: VTy, needs: &mut dyn Needs) -> Result<Spelling, EmitError> {
        let (value, int) =
            if ty.lanes > 0 { (needs.ty(ty), needs.ty(ty.bits())) } else { (ty.name(), ty.bits().name()) };
        let select = if ty.lanes > 0 { needs.helper(Helper::Select(ty))? } else { String::new() };
        Ok(Spelling { ty, value, int, select })
    }

    fn bits(&self, value: &str) -> String {
        let (v, i) = (&self.value, &self.int);
        if self.ty.lanes > 0 {
            format!("({i}){value}")
        } else {
            format!("((union {{ {v} f; {i} i; }}){{ .f = {value} }}).i")
        }
    }

    fn float(&self, bits: &str) -> String {
        let (v, i) = (&self.value, &self.int);
        if self.ty.lanes > 0 {
            format!("({v})({bits})")
        } else {
            format!("((union {{ {i} i; {v} f; }}){{ .i = {bits} }}).f")
        }
    }

    /// By how `a` compares with a constant.
    fn select(
        &self,
        (comparison, bound): (Comparison, &str),
        (yes, no): (&str, &str),
        needs: &mut dyn Needs,
    ) -> Result<String, EmitError> {
        if self.ty.lanes == 0 {
            return Ok(format!("(a {} {bound} ? {yes} : {no})", comparison.operator()));
        }
        let compare = needs.helper(Helper::Compare(comparison, self.ty))?;
        let bound = self.splat(bound, needs)?;
        Ok(format!("{}({compare}(a, {bound}), {yes}, {no})", self.select))
    }

    /// The constant in every lane: adding it to zero would lose the sign of -0.0, so it is listed.
    fn splat(&self, constant: &str, needs: &mut dyn Needs) -> Result<String, EmitError> {
        if self.ty.lanes == 0 {
            return Ok(constant.to_owned());
        }
        Ok(format!("{}({constant})", needs.helper(Helper::Splat(self.ty))?))
    }
}

fn horner(coefficients: &[String], variable: &str) -> String {
    let (last, rest) = match coefficients.split_last() {
        Some((last, rest)) => (last.clone(), rest),
        None => return "0".to_owned(),
    };
    rest.iter().rev().fold(last, |inner, c| {
        let inner = if inner.contains(' ') { format!("({inner})") } else { inner };
        format!("{c} + {variable} * {inner}")
    })
}

fn exp(ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let (s, f) = (Spelling::new(ty, needs)?, Format::of(ty));
    let (value, int) = (&s.value, &f.int);
    let (low, high) = (s.splat(&f.exp_min, needs)?, s.splat(&f.exp_max, needs)?);
    let (min, max) = (needs.helper(Helper::Min(ty))?, needs.helper(Helper::Max(ty))?);
    let steps = if ty.ty == CTy::F32 {
        let fma = needs.helper(Helper::Math(Intrinsic::Fma, ty))?;
        let mut constant = |c: f32| s.splat(&f32_literal(c), needs);
        let (inv, magic) = (constant(math::INV_LN2_F32)?, constant(math::MAGIC_F32)?);
        let (hi, lo) = (constant(-math::LN2_HI_F32)?, constant(-math::LN2_LO_F32)?);
        let one = constant(1.0)?;
        let [c0, c1, c2, c3, c4] = math::EXP_F32;
        let last = constant(c4)?;
        let mut lines = String::new();
        for c in [c3, c2, c1, c0] {
            let c = constant(c)?;
            let _ = writeln!(lines, "    q = {fma}(r, q, {c});");
        }
        format!(
            "    const {value} shifted = {fma}(x, {inv}, {magic});
    const {value} n = shifted - {magic};
    const {int} k = {bits} - {magic_bits};
    const {value} r = {fma}(n, {lo}, {fma}(n, {hi}, x));
    {value} q = {last};
{lines}    q = {fma}(r, q, {one});
    const {value} p = {fma}(r, q, {one});
",
            bits = s.bits("shifted"),
            magic_bits = f.magic_bits,
        )
    } else {
        let c = math::EXP_F64.map(f64_literal);
        let poly =
            format!("({}) + (r * r * r) * (r * r * r) * ({})", horner(&c[..6], "r"), horner(&c[6..], "r"));
        format!(
            "    const {value} shifted = x * {inv} + {magic};
    const {value} n = shifted - {magic};
    const {int} k = {bits} - {magic_bits};
    const {value} r = (x - n * {hi}) - n * {lo};
    const {value} poly = {poly};
    const {value} p = {one} + (r + r * r * poly);
",
            one = one(ty),
            inv = f.inv_ln2,
            magic = f.magic,
            magic_bits = f.magic_bits,
            bits = s.bits("shifted"),
            hi = f.ln2_hi,
            lo = f.ln2_lo,
        )
    };
    let (bias, shift) = (f.bias, f.mantissa_bits);
    // Two exact factors, since one power of two does not reach the subnormals; the result is rounded once.
    let by_factors = format!(
        "    const {int} half = k >> 1;\n    return p * {} * {};\n",
        s.float(&format!("(half + {bias}) << {shift}")),
        s.float(&format!("(k - half + {bias}) << {shift}")),
    );
    let scale = if ty.ty.bytes() * ty.lanes == 64 {
        let letter = if ty.ty == CTy::F32 { "s" } else { "d" };
        let at_once = format!("    return __builtin_ia32_scalefp{letter}512_mask(p, n, p, -1, 4);\n");
        format!("#ifdef CX_GCC_AVX512\n{at_once}#else\n{by_factors}#endif\n")
    } else {
        by_factors
    };
    Ok(format!(
        "{FN} {value} {name}({value} a)
{{
    const {value} x = {max}({low}, {min}({high}, a));
{steps}{scale}}}
",
        name = Helper::Math(Intrinsic::Exp, ty).name(),
    ))
}

fn log(ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let (s, f) = (Spelling::new(ty, needs)?, Format::of(ty));
    let (value, int) = (&s.value, &f.int);
    let zero = s.splat("0", needs)?;
    let tiny_bits = s.splat(f.tiny_bits, needs)?;
    let suffix = suffix(ty);
    let minus_inf = s.splat(&format!("-__builtin_inf{suffix}()"), needs)?;
    let nan = s.splat(&format!("__builtin_nan{suffix}(\"\")"), needs)?;
    let series = if ty.ty == CTy::F32 {
        horner(&math::LOG_F32.map(f32_literal), "z")
    } else {
        horner(&math::LOG_F64.map(f64_literal), "z")
    };
    let tiny = (Comparison::Lt, f.least_normal);
    let scaled = s.select(tiny, (&format!("a * {}", f.tiny_scale), "a"), needs)?;
    let tiny = s.select(tiny, (&tiny_bits, &zero), needs)?;
    let at_zero = s.select((Comparison::Eq, &format!("0.0{suffix}")), (&minus_inf, "y"), needs)?;
    let infinity = format!("__builtin_inf{suffix}()");
    let at_inf = s.select((Comparison::Eq, &infinity), ("a", "finite"), needs)?;
    let at_nan = s.select((Comparison::Ge, &format!("0.0{suffix}")), ("positive", &nan), needs)?;
    // The exponent becomes a float by the magic number's low bits, since few machines convert 64-bit integers.
    let (shift, bias) = (f.mantissa_bits, f.bias);
    Ok(format!(
        "{FN} {value} {name}({value} a)
{{
    const {value} scaled = {scaled};
    const {int} bits = {raw} + ({one_bits} - {sqrt_half});
    const {value} k = ({exponent} - {magic}) - {tiny};
    const {value} f = {mantissa} - {one};
    const {value} s = f / (2.0{suffix} + f);
    const {value} z = s * s;
    const {value} r = z * ({series});
    const {value} square = 0.5{suffix} * f * f;
    const {value} y = k * {hi} - ((square - (s * (square + r) + k * {lo})) - f);
    const {value} finite = {at_zero};
    const {value} positive = {at_inf};
    return {at_nan};
}}
",
        name = Helper::Math(Intrinsic::Log, ty).name(),
        raw = s.bits("scaled"),
        one_bits = f.one_bits,
        sqrt_half = f.sqrt_half_bits,
        exponent = s.float(&format!("((bits >> {shift}) - {bias}) + {}", f.magic_bits)),
        magic = f.magic,
        mantissa = s.float(&format!("(bits & {}) + {}", f.mantissa_mask, f.sqrt_half_bits)),
        hi = f.ln2_hi,
        lo = f.ln2_lo,
        one = one(ty),
    ))
}
