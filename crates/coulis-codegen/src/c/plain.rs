//! Helpers of scalars that are the same text in every C-like dialect.

use coulis_ir::{BinaryOp, Intrinsic};

use crate::EmitError;
use crate::c::helper::{Comparison, Division, Helper, Needs};
use crate::c::style::Overflow;
use crate::c::types::{CTy, VTy};
use crate::dialect::DialectKind;

/// The smaller or larger of two, the second where the comparison fails.
pub fn extremum(helper: Helper, comparison: Comparison, ty: CTy, needs: &dyn Needs) -> String {
    let dialect = needs.dialect();
    let (function, name, value, op) =
        (dialect.function(), helper.name(), dialect.held(ty).name(), comparison.operator());
    format!("{function} {value} {name}({value} a, {value} b) {{ return a {op} b ? a : b; }}\n")
}

/// The largest or smallest of three floats. Numbers of which neither is larger are the same, or zeros, or one is NaN:
/// the sum of zeros is 0.0 unless both are -0.0, and that of a NaN is NaN.
pub fn extremum3(intrinsic: Intrinsic, ty: CTy, needs: &dyn Needs) -> String {
    let (function, name, value) =
        (needs.dialect().function(), Helper::Math(intrinsic, VTy::scalar(ty)).name(), ty.name());
    let (op, other, neither) = match intrinsic {
        Intrinsic::Min3 => ("<", ">", "-(-a - b)"),
        _ => (">", "<", "a + b"),
    };
    let step = |to: &str, a: &str, b: &str| {
        let neither = neither.replace('a', "@").replace('b', b).replace('@', a);
        format!(
            "    const {value} {to} = {a} {op} {b} ? {a} : {a} {other} {b} || ({a} == {b} && {a} != 0) ? {b} : {neither};\n"
        )
    };
    format!(
        "{function} {value} {name}({value} a, {value} b, {value} c)
{{
{}{}    return whole;
}}
",
        step("two", "a", "b"),
        step("whole", "two", "c")
    )
}

/// A shift by any amount, which is read as a number without a sign: by the width or more gives 0, or the sign.
pub fn shift(op: BinaryOp, ty: CTy, needs: &dyn Needs) -> String {
    let (function, name, value) =
        (needs.dialect().function(), Helper::Shift(op, VTy::scalar(ty)).name(), ty.name());
    let width = 8 * ty.bytes();
    let amount = format!("({})b", CTy::unsigned(ty.bytes()).name());
    // What is shifted to the left has no sign either, and no fewer bits than an `int`.
    let bits = CTy::unsigned(ty.bytes().max(4)).name();
    let body = match op {
        BinaryOp::Shl => format!("{amount} < {width} ? ({value})(({bits})a << b) : ({value})0"),
        _ if ty.is_signed() => format!("({value})(a >> ({amount} < {width} ? b : {}))", width - 1),
        _ => format!("{amount} < {width} ? ({value})(a >> b) : ({value})0"),
    };
    format!("{function} {value} {name}({value} a, {value} b) {{ return {body}; }}\n")
}

/// Divisions that no operand can trap: a zero divisor gives 0, and on a CPU sets the status.
pub fn divide(division: Division, ty: CTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let (name, value) = (Helper::Divide(division, VTy::scalar(ty)).name(), ty.name());
    let (status, fail) = match needs.dialect().kind() {
        DialectKind::Cpu(_) => {
            (", i32 *status", format!("{{ {}(status, 2); return 0; }}", needs.helper(Helper::Fail)?))
        }
        DialectKind::Gpu(_) => ("", "return 0;".to_owned()),
    };
    let head = format!("{} {value} {name}({value} a, {value} b{status})", needs.dialect().function());
    let negated = match needs.dialect().style().overflow {
        Overflow::Wraps => "-a".to_owned(),
        Overflow::Undefined => format!("(0 - ({})a)", CTy::unsigned(ty.bytes()).name()),
    };
    let overflow = if !ty.is_signed() {
        String::new()
    } else {
        match division {
            Division::Div | Division::FloorDiv => format!("    if (b == -1) return ({value}){negated};\n"),
            Division::Mod | Division::FloorMod => "    if (b == -1) return 0;\n".to_owned(),
        }
    };
    let result = match (division, ty.is_signed()) {
        (Division::Div, _) | (Division::FloorDiv, false) => "a / b".to_owned(),
        (Division::Mod, _) | (Division::FloorMod, false) => "a % b".to_owned(),
        (Division::FloorDiv, true) => "a / b - (a % b != 0 && (a ^ b) < 0)".to_owned(),
        (Division::FloorMod, true) => "a % b + (a % b != 0 && (a ^ b) < 0 ? b : 0)".to_owned(),
    };
    Ok(format!(
        "{head}
{{
    if (b == 0) {fail}
{overflow}    return ({value})({result});
}}
"
    ))
}

/// Bounds of a saturating conversion, as C literals in the float type: the least value, and the first above the
/// largest.
pub fn bounds(to: CTy) -> (&'static str, &'static str) {
    match to {
        CTy::I8 => ("-0x1p7", "0x1p7"),
        CTy::I16 => ("-0x1p15", "0x1p15"),
        CTy::I32 => ("-0x1p31", "0x1p31"),
        CTy::I64 => ("-0x1p63", "0x1p63"),
        CTy::U8 => ("0x0p0", "0x1p8"),
        CTy::U16 => ("0x0p0", "0x1p16"),
        CTy::U32 => ("0x0p0", "0x1p32"),
        CTy::U64 | CTy::Bool | CTy::F32 | CTy::F64 | CTy::M8 | CTy::M16 | CTy::M32 | CTy::M64 => {
            ("0x0p0", "0x1p64")
        }
    }
}

/// The least and the largest value of an integer type, as C literals.
pub fn limits(to: CTy) -> (&'static str, &'static str) {
    match to {
        CTy::I8 => ("-128", "127"),
        CTy::I16 => ("-32768", "32767"),
        CTy::I32 => ("-2147483647 - 1", "2147483647"),
        CTy::I64 => ("-9223372036854775807LL - 1", "9223372036854775807LL"),
        CTy::U8 => ("0", "255"),
        CTy::U16 => ("0", "65535"),
        CTy::U32 => ("0", "4294967295u"),
        CTy::U64 | CTy::Bool | CTy::F32 | CTy::F64 | CTy::M8 | CTy::M16 | CTy::M32 | CTy::M64 => {
            ("0", "18446744073709551615ull")
        }
    }
}

/// Float to integer.
pub fn saturate(from: CTy, to: CTy, needs: &dyn Needs) -> String {
    let name = Helper::Saturate(VTy::scalar(from), to).name();
    let (low, high) = bounds(to);
    let (least, largest) = limits(to);
    let (function, float, target) = (needs.dialect().function(), from.name(), to.name());
    let suffix = if from == CTy::F32 { "f" } else { "" };
    format!(
        "{function} {target} {name}({float} a)
{{
    if (a != a) return 0;
    if (a < {low}{suffix}) return {least};
    return a < {high}{suffix} ? ({target})a : {largest};
}}
"
    )
}

/// Rounding to odd: of the two neighbours of an inexact result, the one whose last bit is 1.
pub fn odd(from: CTy, needs: &dyn Needs) -> String {
    let (function, name) = (needs.dialect().function(), Helper::Odd(VTy::scalar(from)).name());
    if from == CTy::F64 {
        return format!(
            "{function} f32 {name}(f64 a)
{{
    union {{ f32 f; u32 u; }} v = {{ (f32)a }};
    if (a != a || (f64)v.f == a || (v.u & 1)) return v.f;
    v.u += (a < 0 ? -a : a) < (v.f < 0 ? -(f64)v.f : (f64)v.f) ? -1u : 1u;
    return v.f;
}}
"
        );
    }
    let source = from.name();
    let exact = if from.is_signed() { "a >= -(1LL << 53) && a <= 1LL << 53" } else { "a <= 1ull << 53" };
    format!(
        "{function} f64 {name}({source} a)
{{
    if ({exact}) return (f64)a;
    return (f64)(a >> 11 | ((a & 2047) != 0)) * 2048.0;
}}
"
    )
}
