//! Masks, comparisons and selections.
//!
//! A mask is a vector of integers, 0 or -1. For gcc with AVX-512, masks of 4-byte and 8-byte lanes that fill a
//! register are mask registers instead: gcc 12 compares into one, but makes an integer vector of it and selects by
//! three logical instructions where a masked move would do. Bits above the last lane may hold anything. Pieces are cut
//! and joined by builtins, since shifts in C leave the mask registers.

use super::convert;
use super::memory::FN;
use crate::c::helper::{Comparison, Helper, Needs};
use crate::c::types::{CTy, VTy};

/// Whether such masks, or masks of such vectors, are mask registers where `CX_GCC_AVX512` is defined.
fn in_register(ty: VTy) -> bool {
    matches!(ty.ty.bytes(), 4 | 8) && matches!(ty.bytes(), 16 | 32 | 64)
}

/// A body that is one statement, or two of which the compiler takes one.
fn body(fast: Option<String>, generic: &str) -> String {
    body_or(fast, None, generic)
}

/// The same with another for machines that have AVX2 and no mask registers. With these, gcc 12 makes the opposite of a selection by
/// `pblendvb` between two vectors of 16-bit integers of which the mask says that one is greater.
fn body_or(avx512: Option<String>, avx2: Option<String>, generic: &str) -> String {
    let without = if avx512.is_none() { " && !defined CX_GCC_AVX512" } else { "" };
    let avx2 = avx2.map(|fast| (format!("defined CX_GCC_AVX2{without}"), fast));
    let guarded = [avx512.map(|fast| ("defined CX_GCC_AVX512".to_owned(), fast)), avx2];
    let guarded: Vec<String> =
        guarded.into_iter().flatten().map(|(guard, fast)| format!("if {guard}\n    {fast}\n")).collect();
    match guarded.as_slice() {
        [] => format!(" {{ {generic} }}\n"),
        some => format!("\n{{\n#{}#else\n    {generic}\n#endif\n}}\n", some.join("#el")),
    }
}

/// `512` of a 64-byte vector.
fn width(ty: VTy) -> u32 {
    8 * ty.bytes()
}

/// The integer vector of a mask register.
fn to_lanes(ty: VTy, mask: &str) -> String {
    let letter = if ty.ty.bytes() == 4 { "d" } else { "q" };
    format!("__builtin_ia32_cvtmask2{letter}{}({mask})", width(ty))
}

/// The mask register of an integer vector of that shape.
fn from_lanes(ty: VTy, lanes: &str) -> String {
    let letter = if ty.ty.bytes() == 4 { "d" } else { "q" };
    format!("__builtin_ia32_cvt{letter}2mask{}({lanes})", width(ty))
}

/// The declaration of a mask type.
pub fn definition(ty: VTy) -> String {
    let (name, lane) = (ty.name(), CTy::signed(ty.ty.bytes()).name());
    let bytes = ty.bytes();
    let vector = format!("typedef {lane} {name} __attribute__((vector_size({bytes})));");
    if !in_register(ty) {
        return vector;
    }
    let register = if ty.lanes == 16 { "u16" } else { "u8" };
    format!("#ifdef CX_GCC_AVX512\ntypedef {register} {name};\n#else\n{vector}\n#endif")
}

/// The same truth value in each lane.
pub fn splat(ty: VTy, needs: &mut dyn Needs) -> String {
    let mask = needs.ty(ty);
    let lane = CTy::signed(ty.ty.bytes()).name();
    let lanes = vec!["v"; ty.lanes as usize].join(", ");
    let fast = in_register(ty).then(|| format!("return ({mask})-(i32)a;"));
    let generic = format!("const {lane} v = -({lane})a; return ({mask}){{{lanes}}};");
    format!("{FN} {mask} {}(b8 a){}", Helper::Splat(ty).name(), body(fast, &generic))
}

/// One lane.
pub fn lane(ty: VTy, needs: &mut dyn Needs) -> String {
    let mask = needs.ty(ty);
    let fast = in_register(ty).then(|| "return m >> lane & 1;".to_owned());
    let name = Helper::Lane(ty).name();
    format!("{FN} b8 {name}({mask} m, int lane){}", body(fast, "return m[lane] & 1;"))
}

/// Whether any integer of a vector in memory is not zero.
pub fn any_set(ty: VTy, needs: &mut dyn Needs) -> String {
    let (vector, memory) = (needs.ty(ty), needs.unaligned(ty));
    let lanes: Vec<String> = (0..ty.lanes).map(|lane| format!("v[{lane}]")).collect();
    let (bytes, bits) = (ty.bytes(), width(ty));
    let fast = format!("return __builtin_ia32_pmovmskb{bits}((cx_chars{bytes})(v != 0)) != 0;");
    format!(
        "{FN} b8 {}(const {} *p)
{{
    const {vector} v = *(const {memory} *)p;
#ifdef CX_GCC_AVX2
    {fast}
#else
    return ({}) != 0;
#endif
}}
",
        Helper::AnySet(ty).name(),
        ty.ty.name(),
        lanes.join(" | ")
    )
}

/// Part of a wider mask.
pub fn piece(piece: VTy, of: u32, index: u32, needs: &mut dyn Needs) -> String {
    let whole = VTy { lanes: of, ..piece };
    let (small, large) = (needs.ty(piece), needs.ty(whole));
    let first = index * piece.lanes;
    let lanes: Vec<String> = (first..first + piece.lanes).map(|lane| lane.to_string()).collect();
    let lanes = lanes.join(", ");
    let fast = match (in_register(piece), in_register(whole)) {
        (true, true) if first == 0 => Some(format!("return ({small})a;")),
        (true, true) => {
            let letters = if of == 16 { "hi" } else { "qi" };
            Some(format!("return ({small})__builtin_ia32_kshiftri{letters}(a, {first});"))
        }
        (false, true) => {
            let (vector, wide) = (needs.ty(piece.bits()), needs.ty(whole.bits()));
            let all = to_lanes(whole, "a");
            Some(format!("const {wide} v = {all}; return ({vector})__builtin_shufflevector(v, v, {lanes});"))
        }
        // A piece of a vector that is no register is none itself.
        (true | false, false) => None,
    };
    let generic = format!("return __builtin_shufflevector(a, a, {lanes});");
    let name = Helper::Piece(piece, of, index).name();
    format!("{FN} {small} {name}({large} a){}", body(fast, &generic))
}

/// Two halves.
pub fn concat(half: VTy, needs: &mut dyn Needs) -> String {
    let whole = VTy { lanes: 2 * half.lanes, ..half };
    let (small, large) = (needs.ty(half), needs.ty(whole));
    let lanes: Vec<String> = (0..whole.lanes).map(|lane| lane.to_string()).collect();
    let lanes = lanes.join(", ");
    let fast = match (in_register(half), in_register(whole)) {
        (true, true) if half.lanes == 8 => Some(format!("return ({large})__builtin_ia32_kunpckhi(b, a);")),
        (true, true) => {
            Some(format!("return ({large})((a & {}) | b << {});", (1u32 << half.lanes) - 1, half.lanes))
        }
        (false, true) => {
            let joined = from_lanes(whole, &format!("__builtin_shufflevector(a, b, {lanes})"));
            Some(format!("return {joined};"))
        }
        (true | false, false) => None,
    };
    let generic = format!("return __builtin_shufflevector(a, b, {lanes});");
    let name = Helper::Concat(half).name();
    format!("{FN} {large} {name}({small} a, {small} b){}", body(fast, &generic))
}

/// To a mask of wider or narrower lanes. gcc 12 takes vectors of bytes that become wider apart byte by byte, so that those
/// that fill a register go by its own builtins.
pub fn convert(from: VTy, to: CTy, needs: &mut dyn Needs) -> String {
    let into = VTy { ty: to, ..from };
    let (source, target) = (needs.ty(from), needs.ty(into));
    let name = Helper::Convert(from, to).name();
    let head = format!("{FN} {target} {name}({source} a)");
    let (wider, of) = (into.bits(), from.bits());
    let widening = |needs: &mut dyn Needs, target: &str| convert::gcc_widening(of, wider.ty, target, needs);
    let fast = match (in_register(from), in_register(into)) {
        (true, true) => Some("return a;".to_owned()),
        (true, false) => {
            let vector = needs.ty(into.bits());
            Some(format!("return ({target})__builtin_convertvector({}, {vector});", to_lanes(from, "a")))
        }
        (false, true) => {
            let bytes = from.bytes();
            let of_bytes = (from.ty, bytes) == (CTy::M8, 16);
            Some(if of_bytes {
                "return __builtin_ia32_cvtb2mask128((cx_chars16)a);".to_owned()
            } else {
                let vector = needs.ty(wider);
                let lanes = widening(needs, &vector).map(|(_, lanes)| lanes);
                let lanes = lanes.unwrap_or_else(|| format!("__builtin_convertvector(a, {vector})"));
                format!("return {};", from_lanes(into, &lanes))
            })
        }
        (false, false) => None,
    };
    let steps = convert::gcc_narrowing(from.bits(), wider.ty, &target, needs);
    let generic =
        format!("return {};", steps.unwrap_or_else(|| format!("__builtin_convertvector(a, {target})")));
    let Some((guard, lanes)) = widening(needs, &target).filter(|_| fast.is_none() || guards_both(into))
    else {
        return match halved(from, to, &target, needs) {
            Some(halves) => format!("{head}{}", body_or(fast, Some(halves), &generic)),
            None => format!("{head}{}", body(fast, &generic)),
        };
    };
    let fast = fast.map(|fast| format!("#ifdef CX_GCC_AVX512\n    {fast}\n")).unwrap_or_default();
    let or = if fast.is_empty() { "#ifdef " } else { "#elif defined " };
    format!("{head}\n{{\n{fast}{or}{guard}\n    return {lanes};\n#else\n    {generic}\n#endif\n}}\n")
}

/// The lanes of a mask that become half as wide, where they fill a register of AVX2 and become 4 bytes: any half of each is the mask.
/// gcc 12 takes five operations that change places in place of these two.
fn halved(from: VTy, to: CTy, target: &str, needs: &mut dyn Needs) -> Option<String> {
    let is_one = from.bytes() == 32 && (from.ty.bytes(), to.bytes()) == (8, 4);
    let vector = is_one.then(|| needs.ty(VTy::vector(CTy::F32, 8)))?;
    let half = |lanes| format!("__builtin_shufflevector(v, v, {lanes})");
    let (low, high) = (half("0, 1, 2, 3"), half("4, 5, 6, 7"));
    Some(format!(
        "const {vector} v = ({vector})a; return ({target})__builtin_ia32_shufps({low}, {high}, 0x88);"
    ))
}

/// Whether machines without mask registers have a builtin for masks of that shape too.
fn guards_both(ty: VTy) -> bool {
    width(ty) < 512
}

/// A comparison of vectors.
pub fn compare(comparison: Comparison, ty: VTy, needs: &mut dyn Needs) -> String {
    let (value, mask) = (needs.ty(ty), needs.ty(ty.mask()));
    let name = Helper::Compare(comparison, ty).name();
    let generic = format!("return ({mask})(a {} b);", comparison.operator());
    let fast = in_register(ty).then(|| {
        // Predicates of VCMPPS and VPCMPD; floats compare without NaN, which is unlike everything.
        let predicate = match (comparison, ty.ty.is_float()) {
            (Comparison::Eq, _) => 0,
            (Comparison::Lt, _) => 1,
            (Comparison::Le, _) => 2,
            (Comparison::Ne, _) => 4,
            (Comparison::Ge, false) => 5,
            (Comparison::Gt, false) => 6,
            (Comparison::Ge, true) => 13,
            (Comparison::Gt, true) => 14,
        };
        let letter = element(ty.ty);
        let unsigned = if ty.ty.is_float() || ty.ty.is_signed() { "" } else { "u" };
        let rounding = if ty.ty.is_float() && width(ty) == 512 { ", 4" } else { "" };
        let cast = if unsigned.is_empty() { String::new() } else { format!("({})", needs.ty(ty.bits())) };
        let width = width(ty);
        format!(
            "return __builtin_ia32_{unsigned}cmp{letter}{width}_mask({cast}a, {cast}b, {predicate}, -1{rounding});"
        )
    });
    format!("{FN} {mask} {name}({value} a, {value} b){}", body(fast, &generic))
}

/// `m ? a : b` by lanes.
pub fn select(ty: VTy, needs: &mut dyn Needs) -> String {
    let (value, mask) = (needs.ty(ty), needs.ty(ty.mask()));
    let head = format!("{FN} {value} {}({mask} m, {value} a, {value} b)", Helper::Select(ty).name());
    if ty.ty.is_mask() {
        return format!("{head} {{ return (a & m) | (b & ~m); }}\n");
    }
    let bits = needs.ty(ty.bits());
    let generic = format!("return ({value})((({bits})a & m) | (({bits})b & ~m));");
    let fast = in_register(ty).then(|| {
        let register = if ty.ty.is_float() { &value } else { &bits };
        let (letter, width) = (element(ty.ty), width(ty));
        format!(
            "return ({value})__builtin_ia32_blendm{letter}_{width}_mask(({register})b, ({register})a, m);"
        )
    });
    let blend = blended(ty, needs).map(|blend| format!("return ({value}){blend};"));
    format!("{head}{}", body_or(fast, blend, &generic))
}

/// The selection in one operation of AVX2, for vectors that fill a register, in place of the three logical ones that gcc 12 makes of it.
fn blended(ty: VTy, needs: &mut dyn Needs) -> Option<String> {
    let bytes = ty.bytes();
    let wide = match bytes {
        16 => "",
        32 => "256",
        _ => return None,
    };
    let (name, register) = match ty.ty.bytes() {
        8 => (format!("blendvpd{wide}"), needs.ty(VTy::vector(CTy::F64, bytes / 8))),
        4 => (format!("blendvps{wide}"), needs.ty(VTy::vector(CTy::F32, bytes / 4))),
        _ => (format!("pblendvb{}", 8 * bytes), format!("cx_chars{bytes}")),
    };
    Some(format!("__builtin_ia32_{name}(({register})b, ({register})a, ({register})m)"))
}

/// How builtins name vectors of such lanes.
fn element(ty: CTy) -> &'static str {
    match (ty.is_float(), ty.bytes()) {
        (true, 4) => "ps",
        (true, _) => "pd",
        (false, 4) => "d",
        (false, _) => "q",
    }
}
