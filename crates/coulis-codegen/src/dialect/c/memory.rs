//! Loads, stores, broadcasts and workspace.

use coulis_ir::DType;

use super::{mask, storage};
use crate::EmitError;
use crate::c::helper::{Helper, Needs};
use crate::c::scalar::is_storage_float;
use crate::c::types::{CTy, VTy};

/// Memory that the running process gives. What is so large that it is given back to the system after each call, from 32 MiB on with
/// glibc, is asked for in large pages (`MADV_HUGEPAGE`, 14; source: madvise(2)): the first store to each small page of 64 MiB took as long
/// as all that was computed with them.
pub const ALLOC: &str = "\
extern void *aligned_alloc(__SIZE_TYPE__, __SIZE_TYPE__);
#if defined(__linux__)
extern int madvise(void *, __SIZE_TYPE__, int);
#endif
static void *cx_alloc(i64 length, i64 bytes)
{
    i64 total;
    if (length < 0 || __builtin_mul_overflow(length, bytes, &total) || total > ((i64)1 << 62)) return 0;
#if defined(__linux__)
    if (total >= (i64)32 << 20) {
        __SIZE_TYPE__ rounded = ((__SIZE_TYPE__)total + 0x1fffff) & ~(__SIZE_TYPE__)0x1fffff;
        void *memory = aligned_alloc(0x200000, rounded);
        if (memory) madvise(memory, rounded, 14);
        return memory;
    }
#endif
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
    let carrier = VTy { ty: CTy::carrier(dtype), lanes };
    let (value, body) = match (lanes, dtype) {
        (0, DType::Bool) => ("b8".to_owned(), "return *p != 0;".to_owned()),
        (0, _) if is_storage_float(dtype) => ("f32".to_owned(), storage::load_one(dtype, needs)?),
        (0, _) => (element.to_owned(), "return *p;".to_owned()),
        _ => {
            let read = format!("*(const {} *)p", needs.unaligned(VTy::vector(memory, lanes)));
            if dtype == DType::Bool {
                let mask = needs.ty(VTy::vector(CTy::M8, lanes));
                let body = format!("return ({mask})({read} != 0);");
                (mask, body)
            } else if is_storage_float(dtype) {
                let widen = needs.helper(Helper::WidenAll(dtype, lanes))?;
                (needs.ty(carrier), format!("return {widen}({read});"))
            } else {
                (needs.ty(carrier), format!("return {read};"))
            }
        }
    };
    Ok(format!("{FN} {value} {name}(const {element} *p) {{ {body} }}\n"))
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
    let (result, value) = if dtype == DType::Bool {
        let mask = needs.ty(VTy::vector(CTy::M8, lanes));
        let value = format!("({mask})(v != 0)");
        (mask, value)
    } else if is_storage_float(dtype) {
        let widen = needs.helper(Helper::WidenAll(dtype, lanes))?;
        (needs.ty(VTy::vector(CTy::F32, lanes)), format!("{widen}(v)"))
    } else {
        (raw, "v".to_owned())
    };
    Ok(format!("{FN} {result} {name}(const {} *p) {{ {body} return {value}; }}\n", memory.name()))
}

/// A store, of one element where `lanes` is 0.
pub fn store(dtype: DType, lanes: u32, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let name = Helper::Store(dtype, lanes).name();
    let memory = CTy::memory(dtype);
    let element = memory.name();
    let carrier = CTy::carrier(dtype);
    if lanes == 0 {
        let body =
            if is_storage_float(dtype) { storage::store_one(dtype, needs)? } else { "*p = v;".to_owned() };
        return Ok(format!("{FN} void {name}({element} *p, {} v) {{ {body} }}\n", carrier.name()));
    }
    let value = needs.ty(VTy::vector(if dtype == DType::Bool { CTy::M8 } else { carrier }, lanes));
    let bits = bits_of(dtype, lanes, needs)?;
    let target = format!("*({} *)p", needs.unaligned(VTy::vector(memory, lanes)));
    Ok(format!("{FN} void {name}({element} *p, {value} v) {{ {target} = {bits}; }}\n"))
}

/// What a vector `v` is in memory.
fn bits_of(dtype: DType, lanes: u32, needs: &mut dyn Needs) -> Result<String, EmitError> {
    if dtype == DType::Bool {
        return Ok(format!("({})v & 1", needs.ty(VTy::vector(CTy::memory(dtype), lanes))));
    }
    if is_storage_float(dtype) {
        return Ok(format!("{}(v)", needs.helper(Helper::NarrowAll(dtype, lanes))?));
    }
    Ok("v".to_owned())
}

/// A store past the caches, where the place is aligned and the compiler has a way to say so.
pub fn stream(dtype: DType, lanes: u32, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let name = Helper::Stream(dtype, lanes).name();
    let memory = CTy::memory(dtype);
    let (element, bytes) = (memory.name(), memory.bytes() * lanes);
    let raw = needs.ty(VTy::vector(memory, lanes));
    let store = needs.helper(Helper::Store(dtype, lanes))?;
    let value = needs.ty(VTy::vector(CTy::carrier(dtype), lanes));
    let bits = bits_of(dtype, lanes, needs)?;
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
        const {raw} w = {bits};
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
