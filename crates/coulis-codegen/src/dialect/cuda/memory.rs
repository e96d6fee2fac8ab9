//! Words and bytes of them, copies that are under way, memory of other blocks of a cluster, and when memory of other launches
//! is seen.

use coulis_ir::DType;

use super::FN;
use crate::c::helper::Helper;
use crate::c::types::CTy;

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
/// before others. It is volatile: compilers take an instruction whose operands do not change out of a loop, and from under the condition
/// that says whether there is such a word. Source: PTX ISA, ld.global.nc.
pub fn passing(field: CTy, fields: u32) -> Option<String> {
    let (ty, constraint) = match field {
        CTy::F32 => ("f32", "f"),
        CTy::F64 => ("f64", "d"),
        CTy::I32 | CTy::U32 => ("u32", "r"),
        CTy::I64 | CTy::U64 => ("u64", "l"),
        CTy::U16 => ("u16", "h"),
        _ => return None,
    };
    let word = match (field, fields) {
        (CTy::U16, 1) => "ushort",
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
    asm volatile(\"ld.global.nc.L1::no_allocate{vector}.{ty} {operands}, [%{fields}];\" : {outputs} : \"l\"(__cvta_generic_to_global(p)));
    return v;
}}
"
    ))
}

/// A copy of 4, 8 or 16 bytes of global memory into shared memory that is under way until [`wait_for_copies`], on machines from `sm_80`
/// on; at once on others. Of 16 the first cache keeps none. Source: PTX ISA, cp.async.
pub fn copy_word(bytes: u32, name: &str) -> Option<String> {
    let (ty, cache) = match bytes {
        4 => ("u32", "ca"),
        8 => ("uint2", "ca"),
        16 => ("uint4", "cg"),
        _ => return None,
    };
    Some(format!(
        "{FN} void {name}(void *to, const void *from)
{{
#if __CUDA_ARCH__ >= 800
    asm volatile(\"cp.async.{cache}.shared.global [%0], [%1], {bytes};\" :: \"r\"((u32)__cvta_generic_to_shared(to)), \"l\"(__cvta_generic_to_global(from)) : \"memory\");
#else
    *({ty}*)to = *(const {ty}*)from;
#endif
}}
"
    ))
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
