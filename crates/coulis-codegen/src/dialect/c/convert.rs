//! Conversions between types and shapes of vectors.
//!
//! gcc 12 splits a conversion that doubles the width of a 32-byte vector into four instructions, and converts bytes
//! that it just loaded one by one; its own builtins are one instruction. Measured on `u16` to `u32`: 2.3 times
//! slower without them.

use coulis_ir::DType;

use super::mask;
use super::memory::FN;
use crate::EmitError;
use crate::c::helper::{Comparison, Helper, Needs};
use crate::c::plain::{self, bounds, limits};
use crate::c::types::{CTy, VTy};

/// Part of a wider vector.
pub fn piece(piece: VTy, of: u32, index: u32, needs: &mut dyn Needs) -> String {
    if piece.ty.is_mask() {
        return mask::piece(piece, of, index, needs);
    }
    let (small, whole) = (needs.ty(piece), needs.ty(VTy { lanes: of, ..piece }));
    let first = index * piece.lanes;
    let lanes: Vec<String> = (first..first + piece.lanes).map(|lane| lane.to_string()).collect();
    let name = Helper::Piece(piece, of, index).name();
    let cut = format!("return __builtin_shufflevector(a, a, {});", lanes.join(", "));
    format!("{FN} {small} {name}({whole} a) {{ {cut} }}\n")
}

/// Puts a vector into memory.
pub fn keep(whole: VTy, needs: &mut dyn Needs) -> String {
    let (ty, name) = (needs.ty(whole), Helper::Keep(whole).name());
    let body = "\n#ifdef CX_GCC_AVX512\n    __asm__(\"\" : \"+m\"(*a));\n#endif\n";
    format!("{FN} void {name}({ty} *a) {{{body}}}\n")
}

/// Part of a vector that was kept in memory.
pub fn kept(piece: VTy, of: u32, index: u32, needs: &mut dyn Needs) -> String {
    let (small, whole) = (needs.ty(piece), needs.ty(VTy { lanes: of, ..piece }));
    let first = index * piece.lanes;
    let lanes: Vec<String> = (first..first + piece.lanes).map(|lane| lane.to_string()).collect();
    let (name, lane) = (Helper::Kept(piece, of, index).name(), piece.ty.name());
    let read = format!("return *(const {} *)((const {lane} *)a + {first});", needs.unaligned(piece));
    let cut = format!("return __builtin_shufflevector(*a, *a, {});", lanes.join(", "));
    format!(
        "{FN} {small} {name}(const {whole} *a)\n{{\n#ifdef CX_GCC_AVX512\n    {read}\n#else\n    {cut}\n#endif\n}}\n"
    )
}

/// Two halves.
pub fn concat(half: VTy, needs: &mut dyn Needs) -> String {
    if half.ty.is_mask() {
        return mask::concat(half, needs);
    }
    let (small, whole) = (needs.ty(half), needs.ty(VTy { lanes: 2 * half.lanes, ..half }));
    let lanes: Vec<String> = (0..2 * half.lanes).map(|lane| lane.to_string()).collect();
    let name = Helper::Concat(half).name();
    format!(
        "{FN} {whole} {name}({small} a, {small} b) {{ return __builtin_shufflevector(a, b, {}); }}\n",
        lanes.join(", ")
    )
}

/// Lanes of half of each block of both, by turns.
pub fn zip(ty: VTy, block: u32, high: bool, needs: &mut dyn Needs) -> String {
    let lanes = (0..ty.lanes).map(|lane| {
        let (start, within) = (lane / block * block, lane % block);
        start + within / 2 + if high { block / 2 } else { 0 } + within % 2 * ty.lanes
    });
    shuffle(Helper::Zip(ty, block, high), ty, lanes, needs)
}

/// Every other lane of each block of both.
pub fn unzip(ty: VTy, block: u32, odd: bool, needs: &mut dyn Needs) -> String {
    let lanes = (0..ty.lanes).map(|lane| {
        let (start, twice) = (lane / block * block, lane % block * 2);
        start + twice % block + u32::from(odd) + twice / block * ty.lanes
    });
    shuffle(Helper::Unzip(ty, block, odd), ty, lanes, needs)
}

/// Lanes of the second where a bit of the block is set.
pub fn blend(ty: VTy, block: u32, taken: u64, needs: &mut dyn Needs) -> String {
    let lanes = (0..ty.lanes).map(|lane| lane + if taken >> (lane % block) & 1 == 1 { ty.lanes } else { 0 });
    shuffle(Helper::Blend(ty, block, taken), ty, lanes, needs)
}

/// Every `step`-th lane of each block from `first` on, around.
pub fn around(ty: VTy, block: u32, [step, first]: [u32; 2], needs: &mut dyn Needs) -> String {
    let lanes: Vec<String> = (0..ty.lanes)
        .map(|lane| (lane / block * block + (first + lane % block * step) % block).to_string())
        .collect();
    let (vector, name) = (needs.ty(ty), Helper::Around { of: ty, block, step, first }.name());
    let lanes = lanes.join(", ");
    format!("{FN} {vector} {name}({vector} a) {{ return __builtin_shufflevector(a, a, {lanes}); }}\n")
}

fn shuffle(helper: Helper, ty: VTy, lanes: impl Iterator<Item = u32>, needs: &mut dyn Needs) -> String {
    let (vector, name) = (needs.ty(ty), helper.name());
    let lanes: Vec<String> = lanes.map(|lane| lane.to_string()).collect();
    let lanes = lanes.join(", ");
    format!(
        "{FN} {vector} {name}({vector} a, {vector} b) {{ return __builtin_shufflevector(a, b, {lanes}); }}\n"
    )
}

/// Lane by lane.
pub fn convert(from: VTy, to: CTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    if from.ty.is_mask() {
        return Ok(mask::convert(from, to, needs));
    }
    let into = VTy { ty: to, ..from };
    let (source, target) = (needs.ty(from), needs.ty(into));
    let name = Helper::Convert(from, to).name();
    let generic = format!("return __builtin_convertvector(a, {target});");
    let body = match gcc_widening(from, to, &target, needs) {
        Some((guard, fast)) => {
            format!("\n#ifdef {guard}\n    return {fast};\n#else\n    {generic}\n#endif\n")
        }
        None => match long_by_parts(from, to, &target, needs)? {
            Some(fast) => format!("\n#ifdef CX_LONG_BY_PARTS\n{fast}#else\n    {generic}\n#endif\n"),
            None => format!(" {generic} "),
        },
    };
    Ok(format!("{FN} {target} {name}({source} a) {{{body}}}\n"))
}

/// Integers of 64 bits, and unsigned ones of 32, as `f64` on x86 without AVX-512, which has no instruction for it: the lower half is
/// put below the digits of 2^52 and the higher one, less its sign, below those of 2^84, which is exact; their sum less both powers is
/// rounded once. With AVX2 a variance of `int64` takes .38 of the time.
fn long_by_parts(
    from: VTy,
    to: CTy,
    target: &str,
    needs: &mut dyn Needs,
) -> Result<Option<String>, EmitError> {
    let long = VTy { ty: CTy::U64, ..from };
    let body = match (from.ty, to) {
        (CTy::U32, CTy::F64) => {
            let low = needs.helper(Helper::Convert(from, CTy::U64))?;
            format!("    return ({target})({low}(a) | 0x4330000000000000ull) - 0x1p52;\n")
        }
        (CTy::I64 | CTy::U64, CTy::F64) => {
            let long = needs.ty(long);
            // 2^84 + 2^52, and 2^63 more where the sign's bit was flipped.
            let (high, both) = match from.ty.is_signed() {
                true => ("0x4530000080000000", "0x1.00000801p84"),
                false => ("0x4530000000000000", "0x1.00000001p84"),
            };
            format!(
                "    const {long} high = (({long})a >> 32) ^ {high}ull;
    const {long} low = (({long})a & 0xffffffffull) | 0x4330000000000000ull;
    return (({target})high - {both}) + ({target})low;
"
            )
        }
        _ => return Ok(None),
    };
    Ok(Some(body))
}

/// Integers of 64 bits that are at most 2^51 in magnitude as `f64`: added to the digits of 1.5 times 2^52, which is then taken away.
pub fn short(from: VTy, needs: &mut dyn Needs) -> String {
    let into = VTy { ty: CTy::F64, ..from };
    let (source, target) = (needs.ty(from), needs.ty(into));
    let long = needs.ty(VTy { ty: CTy::U64, ..from });
    let name = Helper::Short(from).name();
    format!(
        "{FN} {target} {name}({source} a)
{{
#ifdef CX_LONG_BY_PARTS
    return ({target})(({long})a + 0x4338000000000000ull) - 0x1.8p52;
#else
    return __builtin_convertvector(a, {target});
#endif
}}
"
    )
}

/// gcc's builtin for a conversion of `a` that fills a whole register from a part of one, and where it has that.
pub fn gcc_widening(
    from: VTy,
    to: CTy,
    target: &str,
    needs: &mut dyn Needs,
) -> Option<(&'static str, String)> {
    // Bytes of the result.
    let into = to.bytes() * from.lanes;
    let (guard, wide) = match into {
        64 => ("CX_GCC_AVX512", true),
        16 | 32 => ("CX_GCC_AVX2", false),
        _ => return None,
    };
    if to.bytes() <= from.ty.bytes() {
        return None;
    }
    if wide && (from.ty.bytes(), to.bytes()) == (1, 8) {
        // gcc 12 dies on vpmovzxbq and vpmovsxbq under a mask ("could not split insn"), which it makes of this
        // builtin and a select, also of two steps that it sees through.
        let half = if from.ty.is_signed() { CTy::I16 } else { CTy::U16 };
        let short = needs.ty(VTy { ty: CTy::I16, ..from });
        let (_, half) = gcc_widening(from, half, &short, needs)?;
        let half = format!("({{ {short} half = {half}; __asm__(\"\" : \"+v\"(half)); half; }})");
        let long = needs.ty(VTy { ty: CTy::I64, ..from });
        let extension = if from.ty.is_signed() { "sx" } else { "zx" };
        let value = format!("{half}, ({long}){{0}}, -1");
        return Some((guard, format!("({target})__builtin_ia32_pmov{extension}wq512_mask({value})")));
    }
    let (stem, argument, result) = match (from.ty, to) {
        (CTy::F32, CTy::F64) if into != 16 => ("cvtps2pd".to_owned(), CTy::F32, CTy::F64),
        (CTy::I32, CTy::F64) if into != 16 => ("cvtdq2pd".to_owned(), CTy::I32, CTy::F64),
        _ if from.ty.is_float() || to.is_float() || from.ty == CTy::Bool => return None,
        _ => {
            let letter = |bytes: u32| match bytes {
                1 => 'b',
                2 => 'w',
                4 => 'd',
                _ => 'q',
            };
            let extension = if from.ty.is_signed() { "sx" } else { "zx" };
            let stem = format!("pmov{extension}{}{}", letter(from.ty.bytes()), letter(to.bytes()));
            (stem, CTy::signed(from.ty.bytes()), CTy::signed(to.bytes()))
        }
    };
    // The builtins take at least 16 bytes, of which they use the first; those of bytes take plain `char`.
    let bytes = from.bytes();
    let register = match (argument, bytes) {
        (CTy::I8, 32) => "cx_chars32".to_owned(),
        (CTy::I8, _) => "cx_chars16".to_owned(),
        (_, 0..16) => needs.ty(VTy::vector(argument, 16 / argument.bytes())),
        _ => needs.ty(VTy { ty: argument, ..from }),
    };
    let value = match bytes {
        16.. => format!("({register})a"),
        8 => format!("({register})({}){{(i64)a, 0}}", needs.ty(VTy::vector(CTy::I64, 2))),
        4 => format!("({register})({}){{(i32)a, 0, 0, 0}}", needs.ty(VTy::vector(CTy::I32, 4))),
        _ => return None,
    };
    let result = needs.ty(VTy { ty: result, ..from });
    let suffix = match into {
        64 => "512_mask",
        32 => "256",
        _ => "128",
    };
    let rest = match (wide, argument) {
        (true, CTy::F32) => format!(", ({result}){{0}}, -1, 4"),
        (true, _) => format!(", ({result}){{0}}, -1"),
        (false, _) => String::new(),
    };
    Some((guard, format!("({target})__builtin_ia32_{stem}{suffix}({value}{rest})")))
}

/// A conversion of `a` to integers of a quarter or less of the width, by halves: gcc 12 knows how to pack two registers, and takes
/// vectors apart lane by lane otherwise.
pub fn gcc_narrowing(from: VTy, to: CTy, target: &str, needs: &mut dyn Needs) -> Option<String> {
    if from.ty.is_float() || to.is_float() || from.ty.bytes() < 4 * to.bytes() {
        return None;
    }
    let mut value = "a".to_owned();
    let mut bytes = from.ty.bytes();
    while bytes > 2 * to.bytes() {
        bytes /= 2;
        let half = needs.ty(VTy { ty: CTy::signed(bytes), ..from });
        value = format!("__builtin_convertvector({value}, {half})");
    }
    Some(format!("__builtin_convertvector({value}, {target})"))
}

/// Float to integer; a vector's target is as wide as its lanes.
pub fn saturate(from: VTy, to: CTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    if from.lanes == 0 {
        return Ok(plain::saturate(from.ty, to, needs));
    }
    let name = Helper::Saturate(from, to).name();
    let (low, high) = bounds(to);
    let (least, largest) = limits(to);
    let suffix = if from.ty == CTy::F32 { "f" } else { "" };
    let target = to.name();
    let (source, result) = (needs.ty(from), needs.ty(VTy { ty: to, ..from }));
    let mask = needs.ty(from.bits());
    Ok(format!(
        "{FN} {result} {name}({source} a)
{{
    const {mask} under = a < {low}{suffix}, over = a >= {high}{suffix}, inside = (a == a) & ~under & ~over;
    const {result} exact = __builtin_convertvector(({source})(({mask})a & inside), {result});
    return (exact & ({result})inside) | (({result})under & ({target})({least})) | (({result})over & ({target}){largest});
}}
"
    ))
}

/// To a storage type and back.
pub fn round(ty: VTy, dtype: DType, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let name = Helper::Round(ty, dtype).name();
    let value = ty.name();
    if ty.lanes == 0 {
        let (load, store) = (needs.helper(Helper::Load(dtype, 0))?, needs.helper(Helper::Store(dtype, 0))?);
        let memory = CTy::memory(dtype).name();
        return Ok(format!("{FN} f32 {name}(f32 a) {{ {memory} m; {store}(&m, a); return {load}(&m); }}\n"));
    }
    needs.ty(ty);
    if dtype == DType::BF16 {
        let bits = needs.ty(VTy { ty: CTy::U32, ..ty });
        let select = needs.helper(Helper::Select(ty))?;
        let ordered = needs.helper(Helper::Compare(Comparison::Eq, ty))?;
        return Ok(format!(
            "{FN} {value} {name}({value} a)
{{
    const {bits} w = ({bits})a;
    const {value} nearest = ({value})((w + 0x7fffu + (w >> 16 & 1u)) & 0xffff0000u);
    return {select}({ordered}(a, a), nearest, a);
}}
"
        ));
    }
    let (narrow, widen) =
        (needs.helper(Helper::NarrowAll(dtype, ty.lanes))?, needs.helper(Helper::WidenAll(dtype, ty.lanes))?);
    Ok(format!("{FN} {value} {name}({value} a) {{ return {widen}({narrow}(a)); }}\n"))
}

/// Rounding to odd: of the two neighbours of an inexact result, the one whose last bit is 1.
pub fn odd(from: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let name = Helper::Odd(from).name();
    let to = if from.ty == CTy::F64 { CTy::F32 } else { CTy::F64 };
    if from.lanes > 0 {
        let (source, target) = (needs.ty(from), needs.ty(VTy { ty: to, ..from }));
        // Not inlined: outputs are few, and the text is long.
        let head = format!("static {target} {name}({source} a)");
        if from.ty != CTy::F64 {
            let one = needs.helper(Helper::Odd(VTy::scalar(from.ty)))?;
            let lanes = from.lanes;
            return Ok(format!(
                "{head} {{ {target} v; for (int i = 0; i < {lanes}; ++i) v[i] = {one}(a[i]); return v; }}\n"
            ));
        }
        let (long, short) = (needs.ty(VTy { ty: CTy::I64, ..from }), needs.ty(VTy { ty: CTy::I32, ..from }));
        // Magnitudes compare like their bits; where the nearest is even and not exact, its neighbour on the other side
        // of the value is odd.
        return Ok(format!(
            "{head}
{{
    const {target} n = __builtin_convertvector(a, {target});
    const {long} x = ({long})a & 0x7fffffffffffffffll;
    const {long} y = ({long})__builtin_convertvector(n, {source}) & 0x7fffffffffffffffll;
    const {long} step = ({long})(a == a) & ({long})(x != y) & (({long})(x < y) | 1ll);
    const {short} even = ({short})((({short})n & 1) == 0);
    return ({target})(({short})n + (__builtin_convertvector(step, {short}) & even));
}}
"
        ));
    }
    Ok(plain::odd(from.ty, needs))
}

/// `a * b + c` of a storage type, rounded once. The product of two such values is exact in `f64`, which has more than twice
/// their bits; the sum there is rounded to odd by its own error, which Knuth's two-sum gives exactly; and a value that is
/// rounded to odd with two bits or more to spare rounds on like the exact one.
pub fn fma(ty: VTy, dtype: DType, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let name = Helper::Fma(ty, dtype).name();
    if ty.lanes > 0 {
        let one = needs.helper(Helper::Fma(VTy::scalar(CTy::F32), dtype))?;
        let value = needs.ty(ty);
        // Not inlined: a loop over lanes is long once unrolled.
        return Ok(format!(
            "static {value} {name}({value} a, {value} b, {value} c)
{{
    for (int i = 0; i < {}; ++i) a[i] = {one}(a[i], b[i], c[i]);
    return a;
}}
",
            ty.lanes
        ));
    }
    let odd = needs.helper(Helper::Odd(VTy::scalar(CTy::F64)))?;
    let round = needs.helper(Helper::Round(VTy::scalar(CTy::F32), dtype))?;
    Ok(format!(
        "static f32 {name}(f32 a, f32 b, f32 c)
{{
    const f64 p = (f64)a * (f64)b, q = (f64)c;
    union {{ f64 f; u64 u; }} sum = {{ p + q }};
    const f64 back = sum.f - p, error = (p - (sum.f - back)) + (q - back);
    if (sum.f - sum.f == 0 && error != 0 && !(sum.u & 1)) sum.u += (error > 0) == (sum.f > 0) ? 1 : -1;
    return {round}({odd}(sum.f));
}}
"
    ))
}
