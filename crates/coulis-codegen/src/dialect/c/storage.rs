//! Floats of 8 and 16 bits, which live in memory only: their bits as `f32`, and `f32` as their bits.
//!
//! All of it is written for vectors; one element is the first of four. What a compiler has no types for is integer arithmetic in
//! lanes of 32 bits, or the machine's own conversion of binary16 where it has one, which the two 8-bit formats go through as well.

use coulis_ir::DType;

use super::memory::FN;
use crate::EmitError;
use crate::c::helper::{Comparison, Helper, Needs};
use crate::c::types::{CTy, VTy};

/// Lanes of the vector that a single element is the first of.
const ONE: u32 = 4;

/// The value of the element at `p`.
pub fn load_one(dtype: DType, needs: &mut dyn Needs) -> Result<String, EmitError> {
    if dtype == DType::BF16 {
        return Ok("union { u32 u; f32 f; } v = { (u32)*p << 16 }; return v.f;".to_owned());
    }
    let widen = needs.helper(Helper::WidenAll(dtype, ONE))?;
    let vector = needs.ty(VTy::vector(CTy::memory(dtype), ONE));
    Ok(format!("return {widen}(({vector}){{*p}})[0];"))
}

/// Writes the bits of `v` at `p`.
pub fn store_one(dtype: DType, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let narrow = needs.helper(Helper::NarrowAll(dtype, ONE))?;
    let vector = needs.ty(VTy::vector(CTy::F32, ONE));
    Ok(format!("*p = {narrow}(({vector}){{v}})[0];"))
}

/// The values of a vector of bits.
pub fn widen_all(dtype: DType, lanes: u32, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let name = Helper::WidenAll(dtype, lanes).name();
    let memory = VTy::vector(CTy::memory(dtype), lanes);
    let halves = needs.ty(VTy::vector(CTy::U16, lanes));
    let body = match dtype {
        DType::BF16 => upper_halves(lanes, needs)?,
        DType::F16 => halves_to_singles(lanes, needs)?,
        // The upper half of a binary16.
        DType::F8E5M2 => {
            let half = needs.helper(Helper::WidenAll(DType::F16, lanes))?;
            let wide = needs.helper(Helper::Convert(memory, CTy::U16))?;
            format!("return {half}({wide}(a) << 8);")
        }
        // A binary16 of a 256th of the value, but for NaN.
        DType::F8E4M3 => {
            let half = needs.helper(Helper::WidenAll(DType::F16, lanes))?;
            let bytes = VTy { ty: CTy::I8, ..memory };
            let wide = needs.helper(Helper::Convert(bytes, CTy::I16))?;
            let signed = needs.ty(bytes);
            format!(
                "
    const {halves} h = ({halves}){wide}(({signed})a) << 7 & 0xbf80;
    const {halves} nan = ({halves})((h & 0x3f80) == 0x3f80) & (0x3f80 ^ 0x7e00);
    return {half}(h ^ nan) * 0x1p8f;
"
            )
        }
        _ => return Err(EmitError::Unsupported { dialect: "c", what: format!("`{name}`") }),
    };
    let (bits, f) = (needs.ty(memory), needs.ty(VTy::vector(CTy::F32, lanes)));
    Ok(format!("{FN} {f} {name}({bits} a) {{ {body} }}\n"))
}

/// Each `bfloat16` as the upper half of its `f32`. Where one shuffle of bytes does it, that takes the place of an extension and a
/// shift: a vector of eight is read into both halves of its register first, as the shuffle stays within these.
fn upper_halves(lanes: u32, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let memory = VTy::vector(CTy::U16, lanes);
    let (f, u) = (needs.ty(VTy::vector(CTy::F32, lanes)), needs.ty(VTy::vector(CTy::U32, lanes)));
    let widen = needs.helper(Helper::Convert(memory, CTy::U32))?;
    let generic = format!("const {u} w = {widen}(a); return ({f})(w << 16);");
    if !matches!(lanes, 4 | 8) {
        return Ok(generic);
    }
    let long = needs.ty(VTy::vector(CTy::I64, 2));
    let both = match lanes {
        8 => format!("__builtin_ia32_vbroadcastsi256(({long})a)"),
        _ => format!("({long}){{(i64)a, 0}}"),
    };
    let bytes: Vec<String> =
        (0..lanes).map(|lane| format!("-1, -1, {}, {}", 2 * lane, 2 * lane + 1)).collect();
    let (chars, bits) = (format!("cx_chars{}", 4 * lanes), 32 * lanes);
    let places = format!("({chars}){{{}}}", bytes.join(", "));
    let fast = format!("({f})__builtin_ia32_pshufb{bits}(({chars}){both}, {places})");
    Ok(guarded("defined(CX_GCC_AVX2)", &fast, &format!("    {generic}\n")))
}

/// Without the machine's conversion the exponent is rebiased by an exact product, and infinities and NaN get the widest exponent.
fn halves_to_singles(lanes: u32, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let halves = VTy::vector(CTy::U16, lanes);
    let (f, u) = (needs.ty(VTy::vector(CTy::F32, lanes)), needs.ty(VTy::vector(CTy::U32, lanes)));
    let i16s = needs.ty(VTy::vector(CTy::I16, lanes));
    let wide = needs.helper(Helper::Convert(halves, CTy::U32))?;
    let generic = format!(
        "    const {u} w = {wide}(a), finite = ({u})(({f})((w & 0x7fff) << 13) * 0x1p112f);
    const {u} widest = ({u})((w & 0x7c00) == 0x7c00) & 0x7f800000u;
    return ({f})(finite | widest | (w & 0x8000) << 16);
"
    );
    Ok(match conversion(lanes) {
        Some((guard, Registers::Whole(64))) => guarded(
            guard,
            &format!("__builtin_ia32_vcvtph2ps512_mask(({i16s})a, ({f}){{0}}, -1, 4)"),
            &generic,
        ),
        Some((guard, Registers::Whole(_))) => {
            guarded(guard, &format!("__builtin_ia32_vcvtph2ps256(({i16s})a)"), &generic)
        }
        // The instruction takes the first half of a vector of eight.
        Some((guard, Registers::Half)) => {
            let i16x8 = needs.ty(VTy::vector(CTy::I16, 8));
            let i64x2 = needs.ty(VTy::vector(CTy::I64, 2));
            let eight = format!("({i16x8})({i64x2}){{(i64)a, 0}}");
            guarded(guard, &format!("__builtin_ia32_vcvtph2ps({eight})"), &generic)
        }
        None => format!("\n{generic}"),
    })
}

/// The bits of a vector of values, rounded to nearest, ties to even. NaN is quiet: of `bfloat16` it keeps its sign and its upper
/// bits, of the others its sign.
pub fn narrow_all(dtype: DType, lanes: u32, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let name = Helper::NarrowAll(dtype, lanes).name();
    let memory = VTy::vector(CTy::memory(dtype), lanes);
    let body = match dtype {
        DType::BF16 => {
            let (f, u) = (VTy::vector(CTy::F32, lanes), VTy::vector(CTy::U32, lanes));
            let select = needs.helper(Helper::Select(f))?;
            let ordered = needs.helper(Helper::Compare(Comparison::Eq, f))?;
            let short = needs.helper(Helper::Convert(u, CTy::U16))?;
            let (f, u) = (needs.ty(f), needs.ty(u));
            format!(
                "
    const {u} w = ({u})a, nearest = w + 0x7fffu + (w >> 16 & 1u);
    return {short}(({u}){select}({ordered}(a, a), ({f})nearest, ({f})(w | 0x400000u)) >> 16);
"
            )
        }
        DType::F16 => singles_to_halves(lanes, needs)?,
        DType::F8E5M2 => format!("\n{}", by_integers(&Format::E5M2, memory, needs)?),
        DType::F8E4M3 => format!("\n{}", by_integers(&Format::E4M3, memory, needs)?),
        _ => return Err(EmitError::Unsupported { dialect: "c", what: format!("`{name}`") }),
    };
    let (bits, f) = (needs.ty(memory), needs.ty(VTy::vector(CTy::F32, lanes)));
    Ok(format!("{FN} {bits} {name}({f} a) {{{body}}}\n"))
}

fn singles_to_halves(lanes: u32, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let memory = VTy::vector(CTy::U16, lanes);
    let generic = by_integers(&Format::HALF, memory, needs)?;
    let Some((guard, registers)) = conversion(lanes) else { return Ok(format!("\n{generic}")) };
    let (f, u) = (needs.ty(VTy::vector(CTy::F32, lanes)), needs.ty(VTy::vector(CTy::U32, lanes)));
    let bits = needs.ty(memory);
    let narrow = match registers {
        Registers::Whole(64) => {
            let i16s = needs.ty(VTy::vector(CTy::I16, lanes));
            format!("({bits})__builtin_ia32_vcvtps2ph512_mask(({f})w, 0, ({i16s}){{0}}, -1)")
        }
        Registers::Whole(_) => format!("({bits})__builtin_ia32_vcvtps2ph256(({f})w, 0)"),
        Registers::Half => {
            let eight = needs.ty(VTy::vector(CTy::U16, 8));
            let whole = format!("({eight})__builtin_ia32_vcvtps2ph(({f})w, 0)");
            format!("__builtin_shufflevector({whole}, ({eight}){{0}}, 0, 1, 2, 3)")
        }
    };
    Ok(format!(
        "
#if {guard}
    {u} w = ({u})a;
    w ^= (w ^ ((w & 0x80000000u) | 0x7fc00000u)) & ({u})(a != a);
    return {narrow};
#else
{generic}#endif
"
    ))
}

/// How the machine's conversion takes its vector of `f32`.
enum Registers {
    /// In a register of so many bytes.
    Whole(u32),
    /// In one whose `f16` are half of another.
    Half,
}

/// Where the machine converts that many binary16 at a time.
fn conversion(lanes: u32) -> Option<(&'static str, Registers)> {
    match lanes {
        16 => Some(("defined(CX_GCC_AVX512)", Registers::Whole(64))),
        8 => Some(("defined(__F16C__)", Registers::Whole(32))),
        4 => Some(("defined(__F16C__)", Registers::Half)),
        _ => None,
    }
}

fn guarded(guard: &str, fast: &str, generic: &str) -> String {
    format!("\n#if {guard}\n    return {fast};\n#else\n{generic}#endif\n")
}

/// A binary format of 8 or 16 bits.
struct Format {
    bias: u32,
    /// Bits of its significands without the first one.
    man: u32,
    /// The bits of its largest number, of what is beyond that and of NaN, without the sign.
    largest: u32,
    beyond: u32,
    nan: u32,
}

impl Format {
    const HALF: Format = Format { bias: 15, man: 10, largest: 0x7bff, beyond: 0x7c00, nan: 0x7e00 };
    const E5M2: Format = Format { bias: 15, man: 2, largest: 0x7b, beyond: 0x7c, nan: 0x7f };
    const E4M3: Format = Format { bias: 7, man: 3, largest: 0x7e, beyond: 0x7f, nan: 0x7f };
}

/// Normal results: half of the last kept bit, less one where that is even, carries into it. Subnormal ones: a sum with a power of two
/// whose last bit is their spacing rounds to it, and the low bits of the sum are the result.
fn by_integers(format: &Format, memory: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let Format { bias, man, largest, beyond, nan } = format;
    let shift = 23 - man;
    let (drop, normal) = ((127 - bias) << 23, (128 - bias) << 23);
    let half = (1u32 << (shift - 1)) - 1;
    // The spacing of subnormals is 2^(1 - bias - man).
    let magic = (127 + 24 - bias - man) << 23;
    let exponent = 24 - i64::from(bias + man);
    let ints = VTy { ty: CTy::I32, ..memory };
    let select = needs.helper(Helper::Select(ints))?;
    let less = needs.helper(Helper::Compare(Comparison::Lt, ints))?;
    let splat = needs.helper(Helper::Splat(ints))?;
    let narrow = needs.helper(Helper::Convert(VTy { ty: CTy::U32, ..memory }, memory.ty))?;
    let (i, u, f) =
        (needs.ty(ints), needs.ty(VTy { ty: CTy::U32, ..ints }), needs.ty(VTy { ty: CTy::F32, ..ints }));
    let sign = if memory.ty == CTy::U8 { "24 & 0x80u" } else { "16 & 0x8000u" };
    Ok(format!(
        "    const {i} bits = ({i})a & 0x7fffffff;
    const {i} small = ({i})(({f})bits + 0x1p{exponent}f) - {magic:#x};
    const {i} other = (bits - {drop:#x} + {half:#x} + (bits >> {shift} & 1)) >> {shift};
    {i} h = {select}({less}(bits, {splat}({normal:#x})), small, other);
    h = {select}({less}({splat}({largest:#x}), h), {splat}({beyond:#x}), h);
    h = {select}({less}({splat}(0x7f800000), bits), {splat}({nan:#x}), h);
    return {narrow}(({u})h | ({u})a >> {sign});
"
    ))
}
