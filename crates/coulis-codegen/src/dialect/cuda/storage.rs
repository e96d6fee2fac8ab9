//! Types that live in memory only: to `f32` and back, on their bits.
//!
//! The machine converts 16-bit types; NaN stays NaN. From `sm_89` on it converts the 8-bit types too, two at a time; as its own
//! rounding saturates, where the IR's overflows to infinity or NaN, what is beyond their numbers is told apart before.

use coulis_ir::DType;

use super::FN;
use crate::EmitError;
use crate::c::helper::{Helper, Needs};
use crate::c::types::{CTy, VTy};

fn unsupported(what: &str, dtype: DType) -> EmitError {
    EmitError::Unsupported { dialect: "cuda", what: format!("{what} of `{dtype}`") }
}

/// The machine's name of an 8-bit float.
fn machine_name(dtype: DType) -> Option<&'static str> {
    match dtype {
        DType::F8E4M3 => Some("e4m3"),
        DType::F8E5M2 => Some("e5m2"),
        _ => None,
    }
}

/// Bits to `f32`.
pub fn widen(dtype: DType) -> Result<String, EmitError> {
    let name = Helper::Widen(dtype).name();
    let memory = CTy::memory(dtype).name();
    let by_machine = |generic: &str| {
        let format = machine_name(dtype).unwrap_or_default();
        format!(
            "{FN} f32 {name}({memory} a)
{{
#if __CUDA_ARCH__ >= 890
    u32 pair;
    asm(\"cvt.rn.f16x2.{format}x2 %0, %1;\" : \"=r\"(pair) : \"h\"((unsigned short)a));
    f32 v;
    asm(\"{{ .reg .b16 low, high; mov.b32 {{low, high}}, %1; cvt.f32.f16 %0, low; }}\" : \"=f\"(v) : \"r\"(pair));
    return v;
#else
{generic}#endif
}}
"
        )
    };
    Ok(match dtype {
        DType::F16 => format!(
            "{FN} f32 {name}({memory} a) {{ f32 v; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(v) : \"h\"(a)); return v; }}\n"
        ),
        DType::BF16 => format!("{FN} f32 {name}({memory} a) {{ return __uint_as_float((u32)a << 16); }}\n"),
        DType::F8E5M2 => by_machine(
            "    f32 v;
    asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(v) : \"h\"((unsigned short)(a << 8)));
    return v;
",
        ),
        DType::F8E4M3 => by_machine(
            "    const u32 magnitude = a & 0x7f;
    const f32 m = magnitude == 0x7f ? __uint_as_float(0x7fc00000u) : __uint_as_float(magnitude << 20) * 0x1p120f;
    return a & 0x80 ? -m : m;
",
        ),
        _ => return Err(unsupported("a widening", dtype)),
    })
}

/// The lowest two bytes of 32 bits to `f32`.
pub fn widen_pair(dtype: DType, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let name = Helper::WidenAll(dtype, 2).name();
    let Some(format) = machine_name(dtype) else { return Err(unsupported("a widening of pairs", dtype)) };
    let one = needs.helper(Helper::Widen(dtype))?;
    Ok(format!(
        "{FN} float2 {name}(u32 a)
{{
#if __CUDA_ARCH__ >= 890
    u32 pair;
    asm(\"cvt.rn.f16x2.{format}x2 %0, %1;\" : \"=r\"(pair) : \"h\"((unsigned short)a));
    float2 v;
    asm(\"{{ .reg .b16 low, high; mov.b32 {{low, high}}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }}\"
        : \"=f\"(v.x), \"=f\"(v.y) : \"r\"(pair));
    return v;
#else
    return make_float2({one}((u8)a), {one}((u8)(a >> 8)));
#endif
}}
"
    ))
}

/// `f32` to bits, to nearest even.
pub fn narrow(dtype: DType, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let name = Helper::Narrow(dtype).name();
    let memory = CTy::memory(dtype).name();
    let by_machine = |format: &str| {
        format!(
            "{FN} {memory} {name}(f32 a) {{ {memory} h; asm(\"cvt.rn.{format}.f32 %0, %1;\" : \"=h\"(h) : \"f\"(a)); return h; }}\n"
        )
    };
    Ok(match dtype {
        DType::F16 => by_machine("f16"),
        DType::BF16 => by_machine("bf16"),
        DType::F8E5M2 | DType::F8E4M3 => {
            let pair = needs.helper(Helper::NarrowAll(dtype, 2))?;
            format!("{FN} u8 {name}(f32 a) {{ return (u8){pair}(a, 0.0f); }}\n")
        }
        _ => return Err(unsupported("a narrowing", dtype)),
    })
}

/// Two `f32` to the lowest bytes of 32 bits, to nearest even: magnitudes that round beyond the largest number give infinity, or NaN where
/// the type has none.
pub fn narrow_pair(dtype: DType) -> Result<String, EmitError> {
    let name = Helper::NarrowAll(dtype, 2).name();
    if let DType::F16 | DType::BF16 = dtype {
        // The first operand is the upper half. Source: PTX ISA, cvt.
        let format = if dtype == DType::F16 { "f16x2" } else { "bf16x2" };
        return Ok(format!(
            "{FN} u32 {name}(f32 a, f32 b) {{ u32 h; asm(\"cvt.rn.{format}.f32 %0, %1, %2;\" : \"=r\"(h) : \"f\"(b), \"f\"(a)); return h; }}\n"
        ));
    }
    // What the machine saturates to is the largest number: NaN is one bit more and has all other bits, infinity the number after it.
    let (man, largest, overflow, beyond) = match dtype {
        DType::F8E4M3 => {
            (3, "0x7e", "0x7f", ["fabsf(a) > 464.0f ? 0x7fu : 0u", "fabsf(b) > 464.0f ? 0x7f00u : 0u"])
        }
        DType::F8E5M2 => {
            (2, "0x7b", "0x7c", ["fabsf(a) >= 61440.0f ? 1u : 0u", "fabsf(b) >= 61440.0f ? 0x100u : 0u"])
        }
        _ => return Err(unsupported("a narrowing of pairs", dtype)),
    };
    let operator = if man == 3 { "|" } else { "+" };
    let format = machine_name(dtype).unwrap_or_default();
    let [first, second] = beyond;
    Ok(format!(
        "#if __CUDA_ARCH__ >= 890
{FN} u32 {name}(f32 a, f32 b)
{{
    unsigned short h;
    asm(\"cvt.rn.satfinite.{format}x2.f32 %0, %1, %2;\" : \"=h\"(h) : \"f\"(b), \"f\"(a));
    return (u32)h {operator} ({first}) {operator} ({second});
}}
#else
{}{FN} u32 {name}(f32 a, f32 b) {{ return {name}_low(a) | {name}_low(b) << 8; }}
#endif
",
        by_integers(&format!("{name}_low"), man, largest, overflow)
    ))
}

/// To an 8-bit float of `man` mantissa bits: magnitudes that round above `largest` give `overflow`, NaN gives 0x7f.
fn by_integers(name: &str, man: u32, largest: &str, overflow: &str) -> String {
    let shift = 23 - man;
    let bias = if man == 2 { 15 } else { 7 };
    let drop = (127 - bias) << 23;
    let normal = (128 - bias) << 23;
    // The spacing of subnormals is 2^(1 - bias - man); a sum with 2^(24 - bias - man) rounds to it.
    let magic = (127 + 24 - bias - man) << 23;
    format!(
        "{FN} u32 {name}(f32 a)
{{
    const u32 raw = __float_as_uint(a), sign = raw >> 24 & 0x80, bits = raw & 0x7fffffff;
    u32 h;
    if (bits > 0x7f800000) h = 0x7f;
    else if (bits < {normal:#x}) h = __float_as_uint(__uint_as_float(bits) + __uint_as_float({magic:#x})) - {magic:#x};
    else {{
        h = (bits - {drop:#x} + {half:#x} + (bits >> {shift} & 1)) >> {shift};
        if (h > {largest} || bits == 0x7f800000) h = {overflow};
    }}
    return sign | h;
}}
",
        half = (1u32 << (shift - 1)) - 1,
    )
}

/// To a storage type and back.
pub fn round(dtype: DType, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let name = Helper::Round(VTy::scalar(CTy::F32), dtype).name();
    let (widen, narrow) = (needs.helper(Helper::Widen(dtype))?, needs.helper(Helper::Narrow(dtype))?);
    Ok(format!("{FN} f32 {name}(f32 a) {{ return {widen}({narrow}(a)); }}\n"))
}

/// Rounding to odd: what truncation leaves, with a last bit of 1 where it left something out. NaN remains NaN.
pub fn odd() -> String {
    let name = Helper::Odd(VTy::scalar(CTy::F64)).name();
    format!(
        "{FN} f32 {name}(f64 a)
{{
    f32 v = __double2float_rz(a);
    return (f64)v == a ? v : __uint_as_float(__float_as_uint(v) | 1u);
}}
"
    )
}

/// `a * b + c`, rounded once: the product is exact in `f64`, and the sum is rounded to odd there.
pub fn fma(dtype: DType, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let name = Helper::Fma(VTy::scalar(CTy::F32), dtype).name();
    let odd = needs.helper(Helper::Odd(VTy::scalar(CTy::F64)))?;
    let round = needs.helper(Helper::Round(VTy::scalar(CTy::F32), dtype))?;
    Ok(format!(
        "{FN} f32 {name}(f32 a, f32 b, f32 c)
{{
    const f64 p = (f64)a * (f64)b, q = (f64)c;
    f64 sum = __dadd_rz(p, q);
    if (__dadd_rd(p, q) != __dadd_ru(p, q)) sum = __longlong_as_double(__double_as_longlong(sum) | 1);
    return {round}({odd}(sum));
}}
"
    ))
}
