//! Loads, stores, broadcasts and workspace.

use coulis_ir::DType;

use super::mask;
use crate::EmitError;
use crate::c::helper::{Helper, Needs};
use crate::c::types::{CTy, VTy};

/// Memory that the running process gives.
pub const ALLOC: &str = "\
extern void *aligned_alloc(__SIZE_TYPE__, __SIZE_TYPE__);
static void *cx_alloc(i64 length, i64 bytes)
{
    i64 total;
    if (length < 0 || __builtin_mul_overflow(length, bytes, &total) || total > ((i64)1 << 62)) return 0;
    return aligned_alloc(64, (__SIZE_TYPE__)(((total + 63) & ~(i64)63) + (total == 0 ? 64 : 0)));
}
";

/// Its opposite.
pub const FREE: &str = "\
extern void free(void *);
static inline void cx_free(void *memory) { free(memory); }
";

/// What went wrong, for the caller of the entry.
pub const FAIL: &str = "\
static void cx_fail(i32 *status, i32 what) { __atomic_store_n(status, what, __ATOMIC_RELAXED); }
";

/// What comes after stores past the caches: those of x86 are not in the order of other stores.
pub const DRAIN: &str = "\
static inline void cx_drain(void)
{
#if defined(__SSE__)
    __builtin_ia32_sfence();
#endif
}
";

/// How a function of the prelude begins.
pub const FN: &str = "static inline __attribute__((always_inline))";

/// The same value in each lane.
pub fn splat(ty: VTy, needs: &mut dyn Needs) -> String {
    if ty.ty.is_mask() {
        return mask::splat(ty, needs);
    }
    let vector = needs.ty(ty);
    let lanes = vec!["a"; ty.lanes as usize].join(", ");
    format!(
        "{FN} {vector} {}({} a) {{ return ({vector}){{{lanes}}}; }}\n",
        Helper::Splat(ty).name(),
        ty.ty.name()
    )
}

/// A load, of one element where `lanes` is 0.
pub fn load(dtype: DType, lanes: u32, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let name = Helper::Load(dtype, lanes).name();
    let memory = CTy::memory(dtype);
    let element = memory.name();
    if lanes == 0 {
        let body = match dtype {
            DType::F16 => return Ok(scalar_f16(&name, needs)),
            DType::BF16 => "union { u32 u; f32 f; } v = { (u32)*p << 16 }; return v.f;".to_owned(),
            DType::F8E5M2 => {
                let half = needs.helper(Helper::Load(DType::F16, 0))?;
                format!("const u16 h = (u16)(*p << 8); return {half}(&h);")
            }
            DType::F8E4M3 => "union { u32 u; f32 f; } v = { (u32)(*p & 0x7f) << 20 }; \
                const f32 m = (*p & 0x7f) == 0x7f ? __builtin_nanf(\"\") : v.f * 0x1p120f; \
                return *p & 0x80 ? -m : m;"
                .to_owned(),
            DType::Bool => return Ok(format!("{FN} b8 {name}(const u8 *p) {{ return *p != 0; }}\n")),
            DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::F32
            | DType::F64 => {
                return Ok(format!("{FN} {element} {name}(const {element} *p) {{ return *p; }}\n"));
            }
        };
        return Ok(format!("{FN} f32 {name}(const {element} *p) {{ {body} }}\n"));
    }
    let shape = VTy::vector(memory, lanes);
    let raw = needs.ty(shape);
    let read = format!("*(const {} *)p", needs.unaligned(shape));
    let f32s = VTy::vector(CTy::F32, lanes);
    let body = match dtype {
        DType::Bool => {
            let mask = needs.ty(VTy::vector(CTy::M8, lanes));
            return Ok(format!("{FN} {mask} {name}(const u8 *p) {{ return ({mask})({read} != 0); }}\n"));
        }
        DType::BF16 => bfloat_vector(lanes, &read, needs)?,
        DType::F16 => half_vector(lanes, &read, "p + i", needs)?,
        DType::F8E5M2 | DType::F8E4M3 => {
            let one = needs.helper(Helper::Load(dtype, 0))?;
            let f = needs.ty(f32s);
            format!("{f} v; for (int i = 0; i < {lanes}; ++i) v[i] = {one}(p + i); return v;")
        }
        DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F32
        | DType::F64 => {
            return Ok(format!("{FN} {raw} {name}(const {element} *p) {{ return {read}; }}\n"));
        }
    };
    let f = needs.ty(f32s);
    Ok(format!("{FN} {f} {name}(const {element} *p) {{ {body} }}\n"))
}

/// A load of elements that lie `step` apart: of the vectors of neighbours that have them, the last of which ends with the
/// last of these, so that nothing but them and what lies between them is read.
pub fn load_every(dtype: DType, lanes: u32, step: i32, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let name = Helper::LoadEvery(dtype, lanes, step).name();
    let memory = CTy::memory(dtype);
    let shape = VTy::vector(memory, lanes);
    let (raw, unaligned) = (needs.ty(shape), needs.unaligned(shape));
    let (apart, n) = (i64::from(step.unsigned_abs()), i64::from(lanes));
    let last = (n - 1) * apart;
    let place = |lane: i64| if step < 0 { last - lane * apart } else { lane * apart };
    let begin = |vector: i64| (vector * n).min(last + 1 - n);
    let read = |vector: i64| match begin(vector) - if step < 0 { last } else { 0 } {
        0 => format!("*(const {unaligned} *)p"),
        at if at < 0 => format!("*(const {unaligned} *)(p - {})", -at),
        at => format!("*(const {unaligned} *)(p + {at})"),
    };
    let mut body = format!("{raw} v = {};", read(0));
    // The first two vectors give what they have at once, each other what it has to those before it.
    for vector in 1..=(last / n).max(1) {
        let picked = (0..n).map(|lane| match place(lane) / n {
            0 if vector == 1 => place(lane),
            of if of == vector => n + place(lane) - begin(vector),
            of if of < vector => lane,
            _ => -1,
        });
        let picked: Vec<String> = picked.map(|lane| lane.to_string()).collect();
        let other = if last < n { "v".to_owned() } else { read(vector) };
        body = format!("{body} v = __builtin_shufflevector(v, {other}, {});", picked.join(", "));
    }
    let (result, value) = match dtype {
        DType::Bool => {
            let mask = needs.ty(VTy::vector(CTy::M8, lanes));
            let value = format!("({mask})(v != 0)");
            (mask, value)
        }
        DType::F16 | DType::BF16 => {
            let widen = needs.helper(Helper::WidenAll(dtype, lanes))?;
            (needs.ty(VTy::vector(CTy::F32, lanes)), format!("{widen}(v)"))
        }
        DType::F8E4M3 | DType::F8E5M2 => {
            return Err(EmitError::Unsupported { dialect: "c", what: format!("`{name}`") });
        }
        DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F32
        | DType::F64 => (raw, "v".to_owned()),
    };
    Ok(format!("{FN} {result} {name}(const {} *p) {{ {body} return {value}; }}\n", memory.name()))
}

/// The value of a binary16. Without hardware the exponent is rebiased by an exact product, and infinities and NaN get the widest
/// exponent.
fn scalar_f16(name: &str, needs: &mut dyn Needs) -> String {
    let i16s = needs.ty(VTy::vector(CTy::I16, 8));
    format!(
        "{FN} f32 {name}(const u16 *p)
{{
#if defined(__F16C__)
    return __builtin_ia32_vcvtph2ps(({i16s}){{(i16)*p}})[0];
#else
    union {{ u32 u; f32 f; }} v = {{ (u32)(*p & 0x7fff) << 13 }};
    v.f *= 0x1p112f;
    if ((*p & 0x7c00) == 0x7c00) v.u |= 0x7f800000;
    v.u |= (u32)(*p & 0x8000) << 16;
    return v.f;
#endif
}}
"
    )
}

/// The values of a vector of bits of a 16-bit float.
pub fn widen_all(dtype: DType, lanes: u32, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let name = Helper::WidenAll(dtype, lanes).name();
    let body = match dtype {
        DType::F16 => half_vector(lanes, "a", "(const u16 *)&a + i", needs)?,
        DType::BF16 => bfloat_vector(lanes, "a", needs)?,
        _ => return Err(EmitError::Unsupported { dialect: "c", what: format!("`{name}`") }),
    };
    let (bits, f) = (needs.ty(VTy::vector(CTy::U16, lanes)), needs.ty(VTy::vector(CTy::F32, lanes)));
    Ok(format!("{FN} {f} {name}({bits} a) {{ {body} }}\n"))
}

fn bfloat_vector(lanes: u32, read: &str, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let (f, u) = (needs.ty(VTy::vector(CTy::F32, lanes)), needs.ty(VTy::vector(CTy::U32, lanes)));
    let widen = needs.helper(Helper::Convert(VTy::vector(CTy::U16, lanes), CTy::U32))?;
    Ok(format!("const {u} w = {widen}({read}); return ({f})(w << 16);"))
}

/// `read`: the bits; `at`: the address of number `i` of them.
fn half_vector(lanes: u32, read: &str, at: &str, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let one = needs.helper(Helper::Load(DType::F16, 0))?;
    let f = needs.ty(VTy::vector(CTy::F32, lanes));
    let loop_ = format!("{f} v; for (int i = 0; i < {lanes}; ++i) v[i] = {one}({at}); return v;");
    let i16s = needs.ty(VTy::vector(CTy::I16, lanes));
    let wide = match lanes {
        16 => Some((
            "defined(CX_GCC_AVX512)",
            format!("return __builtin_ia32_vcvtph2ps512_mask(({i16s}){read}, ({f}){{0}}, -1, 4);"),
        )),
        8 => Some(("defined(__F16C__)", format!("return __builtin_ia32_vcvtph2ps256(({i16s}){read});"))),
        // The instruction takes the first half of a vector of eight.
        4 => {
            let i16x8 = needs.ty(VTy::vector(CTy::I16, 8));
            let u16x4 = needs.ty(VTy::vector(CTy::U16, 4));
            let eight = format!("__builtin_shufflevector({read}, ({u16x4}){{0}}, 0, 1, 2, 3, 4, 5, 6, 7)");
            Some(("defined(__F16C__)", format!("return __builtin_ia32_vcvtph2ps(({i16x8}){eight});")))
        }
        _ => None,
    };
    Ok(match wide {
        Some((guard, fast)) => format!("\n#if {guard}\n    {fast}\n#else\n    {loop_}\n#endif\n"),
        None => loop_,
    })
}

/// A store.
pub fn store(dtype: DType, lanes: u32, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let name = Helper::Store(dtype, lanes).name();
    let memory = CTy::memory(dtype);
    let element = memory.name();
    let carrier = CTy::carrier(dtype);
    if lanes == 0 {
        return Ok(scalar_store(dtype, &name));
    }
    let shape = VTy::vector(memory, lanes);
    let raw = needs.ty(shape);
    let target = format!("*({} *)p", needs.unaligned(shape));
    let (value, body) = match dtype {
        DType::Bool => (needs.ty(VTy::vector(CTy::M8, lanes)), format!("{target} = ({raw})v & 1;")),
        DType::F16 | DType::BF16 | DType::F8E4M3 | DType::F8E5M2 => {
            let one = needs.helper(Helper::Store(dtype, 0))?;
            let value = needs.ty(VTy::vector(carrier, lanes));
            let mut body = format!("    for (int i = 0; i < {lanes}; ++i) {one}(p + i, v[i]);\n");
            if dtype == DType::F16
                && let Some((guard, fast)) = half_store(lanes, &target, needs)
            {
                body = format!("#if {guard}\n{fast}#else\n{body}#endif\n");
            }
            // Not inlined: a loop over lanes is long once unrolled.
            return Ok(format!("static void {name}({element} *p, {value} v)\n{{\n{body}}}\n"));
        }
        DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F32
        | DType::F64 => (raw.clone(), format!("{target} = v;")),
    };
    Ok(format!("{FN} void {name}({element} *p, {value} v) {{ {body} }}\n"))
}

/// A store past the caches, where the place is aligned and the compiler has a way to say so.
pub fn stream(dtype: DType, lanes: u32, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let name = Helper::Stream(dtype, lanes).name();
    let memory = CTy::memory(dtype);
    let (element, bytes) = (memory.name(), memory.bytes() * lanes);
    let raw = needs.ty(VTy::vector(memory, lanes));
    let store = needs.helper(Helper::Store(dtype, lanes))?;
    let value = needs.ty(VTy::vector(CTy::carrier(dtype), lanes));
    // What is rounded for memory is rounded into a place of its own first.
    let (rounded, bits) = if memory == CTy::carrier(dtype) {
        (String::new(), "v".to_owned())
    } else {
        let own = format!(
            "{element} own[{lanes}] __attribute__((aligned({bytes})));\n        {store}(own, v);\n        "
        );
        (own, format!("*(const {} *)own", needs.unaligned(VTy::vector(memory, lanes))))
    };
    let words = needs.ty(VTy::vector(CTy::I64, bytes / 8));
    let (guard, builtin) = match bytes {
        16 => ("defined(__SSE2__)", "__builtin_ia32_movntdq"),
        32 => ("defined(__AVX__)", "__builtin_ia32_movntdq256"),
        64 => ("defined(__AVX512F__)", "__builtin_ia32_movntdq512"),
        _ => return Err(EmitError::Unsupported { dialect: "c", what: format!("`{name}`") }),
    };
    Ok(format!(
        "{FN} void {name}({element} *p, {value} v)
{{
#if defined(__clang__) || {guard}
    if (((__UINTPTR_TYPE__)p & {}) == 0) {{
        {rounded}const {raw} w = {bits};
#if defined(__clang__)
        __builtin_nontemporal_store(w, ({raw} *)p);
#else
        {builtin}(({words} *)p, ({words})w);
#endif
        return;
    }}
#endif
    {store}(p, v);
}}
",
        bytes - 1
    ))
}

/// The hardware's way of storing binary16: when it is there, and the text. NaN becomes the one of the loop over lanes.
fn half_store(lanes: u32, target: &str, needs: &mut dyn Needs) -> Option<(&'static str, String)> {
    let (guard, narrow) = match lanes {
        16 => ("defined(CX_GCC_AVX512)", "__builtin_ia32_vcvtps2ph512_mask((FLOATS)w, 0, (HALVES){0}, -1)"),
        8 => ("defined(__F16C__)", "__builtin_ia32_vcvtps2ph256((FLOATS)w, 0)"),
        _ => return None,
    };
    let words = needs.ty(VTy::vector(CTy::U32, lanes));
    let narrow = narrow
        .replace("FLOATS", &needs.ty(VTy::vector(CTy::F32, lanes)))
        .replace("HALVES", &needs.ty(VTy::vector(CTy::I16, lanes)));
    let memory = needs.ty(VTy::vector(CTy::U16, lanes));
    let text = format!(
        "    {words} w = ({words})v;
    w ^= (w ^ ((w & 0x80000000u) | 0x7fc00000u)) & ({words})(v != v);
    {target} = ({memory}){narrow};
"
    );
    Some((guard, text))
}

fn scalar_store(dtype: DType, name: &str) -> String {
    let element = CTy::memory(dtype).name();
    let carrier = CTy::carrier(dtype).name();
    let body = match dtype {
        // To nearest even in integer arithmetic; NaN keeps its sign and becomes quiet.
        DType::BF16 => "    union { f32 f; u32 u; } x = { v };
    if (v != v) *p = (u16)(x.u >> 16 | 0x40);
    else *p = (u16)((x.u + 0x7fff + (x.u >> 16 & 1)) >> 16);
"
        .to_owned(),
        // Adding a power of two whose last bit is the last kept bit rounds; the sum's low bits are the result.
        DType::F16 => "    union { f32 f; u32 u; } x = { v }, m;
    const u32 sign = x.u >> 16 & 0x8000, bits = x.u & 0x7fffffff;
    u32 h;
    if (bits > 0x7f800000) h = 0x7e00;
    else if (bits >= 0x477ff000) h = 0x7c00;
    else if (bits < 0x38800000) { m.u = bits; m.f += 0.5f; h = m.u - 0x3f000000; }
    else h = (bits - 0x38000000 + 0xfff + (bits >> 13 & 1)) >> 13;
    *p = (u16)(sign | h);
"
        .to_owned(),
        DType::F8E5M2 => narrow8(2, "0x7b", "0x7c"),
        DType::F8E4M3 => narrow8(3, "0x7e", "0x7f"),
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
        | DType::F64 => "    *p = v;\n".to_owned(),
    };
    format!("{FN} void {name}({element} *p, {carrier} v)\n{{\n{body}}}\n")
}

/// To an 8-bit float of `man` mantissa bits, ties to even: magnitudes that round above `largest` give `overflow`,
/// NaN gives 0x7f.
fn narrow8(man: u32, largest: &str, overflow: &str) -> String {
    let shift = 23 - man;
    let bias = if man == 2 { 15 } else { 7 };
    let drop = (127 - bias) << 23;
    let normal = (128 - bias) << 23;
    // The spacing of subnormals is 2^(1 - bias - man); a sum with 2^(24 - bias - man) rounds to it.
    let magic = (127 + 24 - bias - man) << 23;
    format!(
        "    union {{ f32 f; u32 u; }} x = {{ v }}, m, k = {{ .u = {magic:#x} }};
    const u32 sign = x.u >> 24 & 0x80, bits = x.u & 0x7fffffff;
    u32 h;
    if (bits > 0x7f800000) h = 0x7f;
    else if (bits < {normal:#x}) {{ m.u = bits; m.f += k.f; h = m.u - k.u; }}
    else {{
        h = (bits - {drop:#x} + {half:#x} + (bits >> {shift} & 1)) >> {shift};
        if (h > {largest} || bits == 0x7f800000) h = {overflow};
    }}
    *p = (u8)(sign | h);
",
        half = (1u32 << (shift - 1)) - 1,
    )
}
