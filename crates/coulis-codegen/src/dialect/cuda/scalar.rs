//! Scalars of CUDA text: constants, operations that wrap, exact products of pairs.

use coulis_ir::{BinaryOp, Intrinsic};

use super::FN;
use crate::EmitError;
use crate::c::helper::{Helper, Needs};
use crate::c::types::{CTy, VTy};

/// An infinity or NaN, by its bits.
pub(super) fn special(value: f64, ty: CTy) -> String {
    if ty == CTy::F32 {
        let bits = if value.is_nan() { f32::NAN } else { value as f32 }.to_bits();
        format!("__uint_as_float({bits:#x}u)")
    } else {
        let bits = if value.is_nan() { f64::NAN } else { value }.to_bits();
        let sign = if bits >> 63 == 1 { "-" } else { "" };
        format!("{sign}__longlong_as_double({:#x}ll)", bits & (u64::MAX >> 1))
    }
}

/// As C prints it, with 6 decimals or with as many as tell the value from its neighbours.
pub(super) fn scientific(value: f64, single: bool) -> String {
    for decimals in 6..=16 {
        let text = format!("{value:.decimals$e}");
        let exact = if single {
            text.parse::<f32>().is_ok_and(|read| read.to_bits() == (value as f32).to_bits())
        } else {
            text.parse::<f64>().is_ok_and(|read| read.to_bits() == value.to_bits())
        };
        if exact || decimals == 16 {
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let sign = if exponent < 0 { '-' } else { '+' };
            return format!("{mantissa}e{sign}{:02}", exponent.abs());
        }
    }
    value.to_string()
}

/// An operation by way of unsigned types.
pub(super) fn wrap(op: BinaryOp, ty: CTy) -> Option<String> {
    let symbol = match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Shl => "<<",
        _ => return None,
    };
    let (name, value) = (Helper::Wrap(op, ty).name(), ty.name());
    let unsigned = CTy::unsigned(ty.bytes().max(4)).name();
    let second = if op == BinaryOp::Shl { "b".to_owned() } else { format!("({unsigned})b") };
    Some(format!(
        "{FN} {value} {name}({value} a, {value} b) {{ return ({value})(({unsigned})a {symbol} {second}); }}\n"
    ))
}

/// A product as an instruction of its own.
pub(super) fn opaque_product(ty: CTy) -> String {
    let (name, value) = (Helper::OpaqueProduct(ty).name(), ty.name());
    let (bits, register) = if ty.bytes() == 8 { (64, 'l') } else { (32, 'r') };
    format!(
        "{FN} {value} {name}({value} a, {value} b) {{ {value} v; \
         asm(\"mul.lo.s{bits} %0, %1, %2;\" : \"={register}\"(v) : \"{register}\"(a), \"{register}\"(b)); return v; }}\n"
    )
}

/// One instruction from `sm_100` on; the rounding is that of two sums.
pub(super) fn add_pair(ftz: bool, needs: &mut dyn Needs) -> Result<String, EmitError> {
    let name = Helper::AddPair { ftz }.name();
    let sum = match ftz {
        true => needs.helper(Helper::Math(Intrinsic::AddFtz, VTy::scalar(CTy::F32)))?,
        false => String::new(),
    };
    let one = |field: &str| match ftz {
        true => format!("{sum}(a.{field}, b.{field})"),
        false => format!("a.{field} + b.{field}"),
    };
    let (flush, x, y) = (if ftz { ".ftz" } else { "" }, one("x"), one("y"));
    Ok(format!(
        "\
static __device__ __forceinline__ float2 {name}(float2 a, float2 b)
{{
#if __CUDA_ARCH__ >= 1000
    unsigned long long x, y;
    asm(\"mov.b64 %0, {{%1, %2}};\" : \"=l\"(x) : \"f\"(a.x), \"f\"(a.y));
    asm(\"mov.b64 %0, {{%1, %2}};\" : \"=l\"(y) : \"f\"(b.x), \"f\"(b.y));
    asm(\"add.rn{flush}.f32x2 %0, %0, %1;\" : \"+l\"(x) : \"l\"(y));
    asm(\"mov.b64 {{%0, %1}}, %2;\" : \"=f\"(a.x), \"=f\"(a.y) : \"l\"(x));
    return a;
#else
    return make_float2({x}, {y});
#endif
}}
"
    ))
}
