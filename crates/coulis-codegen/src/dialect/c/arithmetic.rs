//! Extrema and integer divisions.

use coulis_ir::BinaryOp;

use super::memory::FN;
use crate::EmitError;
use crate::c::helper::{Comparison, Division, Helper, Needs};
use crate::c::plain;
use crate::c::types::{CTy, VTy};

/// The smaller or larger of two, the second where the comparison fails: x86's own minimum and maximum.
pub fn extremum(
    stem: &str,
    comparison: Comparison,
    ty: VTy,
    needs: &mut dyn Needs,
) -> Result<String, EmitError> {
    let helper = if stem == "min" { Helper::Min(ty) } else { Helper::Max(ty) };
    if ty.lanes == 0 {
        return Ok(plain::extremum(helper, comparison, ty.ty, needs));
    }
    let name = helper.name();
    let value = needs.ty(ty);
    let select = needs.helper(Helper::Select(ty))?;
    let compare = needs.helper(Helper::Compare(comparison, ty))?;
    let generic = format!("return {select}({compare}(a, b), a, b);");
    let letter = if ty.ty == CTy::F32 { "s" } else { "d" };
    let fast = match ty.bytes() {
        _ if !ty.ty.is_float() => None,
        64 => {
            Some(("CX_GCC_AVX512", format!("return __builtin_ia32_{stem}p{letter}512_mask(a, b, a, -1, 4);")))
        }
        32 => Some(("CX_GCC_AVX2", format!("return __builtin_ia32_{stem}p{letter}256(a, b);"))),
        _ => None,
    };
    let body = match fast {
        Some((guard, fast)) => format!("\n#ifdef {guard}\n    {fast}\n#else\n    {generic}\n#endif\n"),
        None => format!(" {generic} "),
    };
    Ok(format!("{FN} {value} {name}({value} a, {value} b) {{{body}}}\n"))
}

/// A shift by any amount, lane by lane.
pub fn shift(op: BinaryOp, ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    if ty.lanes == 0 {
        return Ok(plain::shift(op, ty.ty, needs));
    }
    let (name, value) = (Helper::Shift(op, ty).name(), needs.ty(ty));
    let bits = needs.ty(VTy { ty: CTy::unsigned(ty.ty.bytes()), ..ty });
    let most = 8 * ty.ty.bytes() - 1;
    let (head, by) = (format!("{FN} {value} {name}({value} a, {value} b)"), format!("({bits})b"));
    let body = match op {
        BinaryOp::Shl => format!("({value})(({bits})a << ({by} & {most}) & inside)"),
        _ if ty.ty.is_signed() => format!("a >> ({value})(({by} & inside) | ({most} & ~inside))"),
        _ => format!("({value})(({bits})a >> ({by} & {most}) & inside)"),
    };
    Ok(format!(
        "{head}
{{
    const {bits} inside = ({bits})({by} <= {most});
    return {body};
}}
"
    ))
}

/// Divisions that no operand can trap: a zero divisor gives 0 and sets the status.
pub fn divide(division: Division, ty: VTy, needs: &mut dyn Needs) -> Result<String, EmitError> {
    if ty.lanes == 0 {
        return plain::divide(division, ty.ty, needs);
    }
    let name = Helper::Divide(division, ty).name();
    let value = needs.ty(ty);
    let one = needs.helper(Helper::Divide(division, VTy::scalar(ty.ty)))?;
    Ok(format!(
        "{FN} {value} {name}({value} a, {value} b, i32 *status) {{ for (int i = 0; i < {}; ++i) a[i] = {one}(a[i], b[i], status); return a; }}\n",
        ty.lanes
    ))
}
