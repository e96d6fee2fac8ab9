//! Types that live in memory only: to `f32` and back, on their bits; memory of other blocks of a cluster; and when memory
//! of other launches is seen.
//!
//! The machine converts 16-bit types; NaN stays NaN. The 8-bit types are widened by the machine from `sm_89` on, and
//! rounded by integer arithmetic everywhere: the machine's own rounding saturates, where the IR's overflows to
//! infinity or NaN.

use coulis_ir::DType;

use super::FN;
use crate::EmitError;
use crate::c::helper::{Helper, Needs};
use crate::c::types::{CTy, VTy};

fn unsupported(what: &str, dtype: DType) -> EmitError {
    EmitError::Unsupported { dialect: "cuda", what: format!("{what} of `{dtype}`") }
}

/// An instruction by which launches that follow each other overlap, which the machine has from `sm_90` on. Source: PTX
/// ISA, griddepcontrol.
pub fn of_launches(name: &str, instruction: &str) -> String {
    format!(
        "{FN} void {name}()
{{
#if __CUDA_ARCH__ >= 900
    asm volatile(\"{instruction};\" ::: \"memory\");
#endif
}}
"
    )
}

/// A read of another block's shared memory, which the machine has from `sm_90` on. Source: PTX ISA, mapa.
pub fn cluster_load(dtype: DType) -> String {
    let name = Helper::ClusterLoad(dtype).name();
    let memory = CTy::memory(dtype);
    let (register, constraint, load) = match memory.bytes() {
        1 => ("u32", "r", "u8"),
        2 => ("u16", "h", "u16"),
        4 if memory == CTy::F32 => ("f32", "f", "f32"),
        4 => ("u32", "r", "u32"),
        _ if memory == CTy::F64 => ("f64", "d", "f64"),
        _ => ("u64", "l", "u64"),
    };
    let ty = memory.name();
    format!(
        "{FN} {ty} {name}(const {ty} *p, i32 block)
{{
    {register} v;
    asm volatile(\"{{ .reg .u64 own; .reg .u32 at; cvta.to.shared.u64 own, %1; cvt.u32.u64 at, own; mapa.shared::cluster.u32 at, at, %2; ld.shared::cluster.{load} %0, [at]; }}\" : \"={constraint}\"(v) : \"l\"(p), \"r\"(block) : \"memory\");
    return ({ty})v;
}}
"
    )
}

/// A read of a word of so many fields that is kept in no first-level cache and leaves the second-level cache
/// before others. No memory is said to be read, so that the compiler may read a word once for all who want
/// it, which it may as nothing writes there. Source: PTX ISA, ld.global.nc.
pub fn passing(field: CTy, fields: u32) -> Option<String> {
    let (ty, constraint) = match field {
        CTy::F32 => ("f32", "f"),
        CTy::F64 => ("f64", "d"),
        CTy::I32 | CTy::U32 => ("u32", "r"),
        CTy::I64 | CTy::U64 => ("u64", "l"),
        _ => return None,
    };
    let word = match (field, fields) {
        (CTy::U32, 1) => "uint",
        (CTy::F32, 4) => "float4",
        (CTy::F32, 2) => "float2",
        (CTy::I32, 4) => "int4",
        (CTy::I32, 2) => "int2",
        (CTy::U32, 4) => "uint4",
        (CTy::U32, 2) => "uint2",
        (CTy::F64, 2) => "double2",
        (CTy::I64, 2) => "longlong2",
        (CTy::U64, 2) => "ulonglong2",
        _ => return None,
    };
    let name = Helper::Passing(field, fields).name();
    let of_fields =
        |text: &dyn Fn(usize) -> String| (0..fields as usize).map(text).collect::<Vec<_>>().join(", ");
    let (vector, operands, outputs) = match fields {
        1 => (String::new(), "%0".to_owned(), format!("\"={constraint}\"(v)")),
        _ => (
            format!(".v{fields}"),
            format!("{{{}}}", of_fields(&|i| format!("%{i}"))),
            of_fields(&|i| format!("\"={constraint}\"(v.{})", ["x", "y", "z", "w"][i])),
        ),
    };
    Some(format!(
        "{FN} {word} {name}(const {word} *p)
{{
    {word} v;
    asm(\"ld.global.nc.L1::no_allocate{vector}.{ty} {operands}, [%{fields}];\" : {outputs} : \"l\"(__cvta_generic_to_global(p)));
    return v;
}}
"
    ))
}

/// A copy of 16 bytes of global memory into shared memory that is under way until [`wait_for_copies`], on machines from `sm_80` on; at
/// once on others. Source: PTX ISA, cp.async.
pub fn copy_word(name: &str) -> String {
    format!(
        "{FN} void {name}(void *to, const void *from)
{{
#if __CUDA_ARCH__ >= 800
    asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\" :: \"r\"((u32)__cvta_generic_to_shared(to)), \"l\"(__cvta_generic_to_global(from)) : \"memory\");
#else
    *(uint4*)to = *(const uint4*)from;
#endif
}}
"
    )
}

/// Returns when the copies of the thread are there. Source: PTX ISA, cp.async.wait_all.
pub fn wait_for_copies(name: &str) -> String {
    format!(
        "{FN} void {name}()
{{
#if __CUDA_ARCH__ >= 800
    asm volatile(\"cp.async.wait_all;\" ::: \"memory\");
#endif
}}
"
    )
}

/// Bits to `f32`.
pub fn widen(dtype: DType) -> Result<String, EmitError> {
    let name = Helper::Widen(dtype).name();
    let memory = CTy::memory(dtype).name();
    let by_machine = |format: &str, generic: &str| {
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
            "e5m2",
            "    f32 v;
    asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(v) : \"h\"((unsigned short)(a << 8)));
    return v;
",
        ),
        DType::F8E4M3 => by_machine(
            "e4m3",
            "    const u32 magnitude = a & 0x7f;
    const f32 m = magnitude == 0x7f ? __uint_as_float(0x7fc00000u) : __uint_as_float(magnitude << 20) * 0x1p120f;
    return a & 0x80 ? -m : m;
",
        ),
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
        | DType::F64 => return Err(unsupported("a widening", dtype)),
    })
}

/// `f32` to bits, to nearest even.
pub fn narrow(dtype: DType) -> Result<String, EmitError> {
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
        DType::F8E5M2 => narrow8(&name, 2, "0x7b", "0x7c"),
        DType::F8E4M3 => narrow8(&name, 3, "0x7e", "0x7f"),
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
        | DType::F64 => return Err(unsupported("a narrowing", dtype)),
    })
}

/// To an 8-bit float of `man` mantissa bits: magnitudes that round above `largest` give `overflow`, NaN gives 0x7f.
fn narrow8(name: &str, man: u32, largest: &str, overflow: &str) -> String {
    let shift = 23 - man;
    let bias = if man == 2 { 15 } else { 7 };
    let drop = (127 - bias) << 23;
    let normal = (128 - bias) << 23;
    // The spacing of subnormals is 2^(1 - bias - man); a sum with 2^(24 - bias - man) rounds to it.
    let magic = (127 + 24 - bias - man) << 23;
    format!(
        "{FN} u8 {name}(f32 a)
{{
    const u32 raw = __float_as_uint(a), sign = raw >> 24 & 0x80, bits = raw & 0x7fffffff;
    u32 h;
    if (bits > 0x7f800000) h = 0x7f;
    else if (bits < {normal:#x}) h = __float_as_uint(__uint_as_float(bits) + __uint_as_float({magic:#x})) - {magic:#x};
    else {{
        h = (bits - {drop:#x} + {half:#x} + (bits >> {shift} & 1)) >> {shift};
        if (h > {largest} || bits == 0x7f800000) h = {overflow};
    }}
    return (u8)(sign | h);
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

/// A byte of a word, the upper bytes of the value being its sign, or 0. `prmt` repeats the sign of the byte whose number has
/// bit 3 set; the function `__byte_perm` drops that bit. Source: PTX ISA, `prmt`.
pub fn byte(ty: CTy, byte: u32, name: &str) -> String {
    let upper = if ty.is_signed() { 0x8880 + 0x1110 * byte } else { 0x4440 };
    let selector = upper + byte;
    format!(
        "{FN} i32 {name}(u32 a) {{ i32 v; asm(\"prmt.b32 %0, %1, 0, {selector:#x};\" : \"=r\"(v) : \"r\"(a)); return v; }}\n"
    )
}

/// Bytes of `a` whose highest bit is set where they are not zero: of others it is carried out of the lower ones.
const HIGHEST_IF_SET: &str = "((a & 0x7f7f7f7fu) + 0x7f7f7f7fu) | a";

/// All ones where a byte of a word is not zero, by its highest bit, which `prmt` repeats over bytes whose number has bit 3 set.
pub fn non_zero(byte: u32, name: &str) -> String {
    let selector = 0x8888 + 0x1111 * byte;
    format!(
        "{FN} i32 {name}(u32 a) {{ u32 set = {HIGHEST_IF_SET}; i32 v; \
         asm(\"prmt.b32 %0, %1, 0, {selector:#x};\" : \"=r\"(v) : \"r\"(set)); return v; }}\n"
    )
}

/// Bytes that are 1 where those of a word are not zero.
pub fn ones(name: &str) -> String {
    format!("{FN} u32 {name}(u32 a) {{ return ({HIGHEST_IF_SET}) >> 7 & 0x01010101u; }}\n")
}
