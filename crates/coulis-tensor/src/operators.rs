//! Operators for doors whose operands come with types of their own: checked, promoted, constants converted at once.
//!
//! The operators of [`Expr`] want equal types and trust their caller. These bring operands together as tensor
//! expressions do of floats and integers and report what has no meaning as an error. A constant takes the
//! type of the operation without a conversion, so that `x + 1` of a float reads `x + T.float32(1)`.

use coulis_ir::expr::promoted_dtype;
use coulis_ir::{BinaryOp, DType, Expr, Intrinsic};

use crate::error::TensorError;
use crate::reduction::pick;

/// The expression in another type; a constant in that type where it is one.
pub fn convert(value: Expr, dtype: DType) -> Expr {
    match (value.as_int(), value.as_float()) {
        (Some(int), _) if dtype != DType::Bool || value.dtype() == DType::Bool => Expr::constant(int, dtype),
        (None, Some(float)) if dtype.is_float() => Expr::float(float, dtype),
        _ => value.cast(dtype),
    }
}

/// Both operands in the type that holds them.
pub fn promoted(a: Expr, b: Expr) -> (Expr, Expr) {
    let dtype = promoted_dtype(a.dtype(), b.dtype());
    (convert(a, dtype), convert(b, dtype))
}

/// `a op b`. Arithmetic takes numbers, logic takes bools, remainders and shifts take integers; `//` of floats is the
/// floor of the quotient.
pub fn binary(op: BinaryOp, a: Expr, b: Expr) -> Result<Expr, TensorError> {
    use BinaryOp::{
        Add, And, BitAnd, BitOr, BitXor, Div, Eq, FloorDiv, FloorMod, Ge, Gt, Le, Lt, Max, Min, Mul, Ne, Or,
        Shl, Shr, Sub, TruncMod,
    };
    let (a, b) = promoted(a, b);
    let dtype = a.dtype();
    let refused = |wanted| Err(TensorError::OperandType { operation: op.symbol(), wanted, found: dtype });
    match op {
        Eq | Ne | Lt | Le | Gt | Ge => Ok(Expr::binary(op, a, b)),
        And | Or if dtype != DType::Bool => refused("bools"),
        BitAnd if dtype == DType::Bool => Ok(a.and(b)),
        BitOr if dtype == DType::Bool => Ok(a.or(b)),
        BitXor if dtype == DType::Bool => Ok(a.not_equal(b)),
        Add | Sub | Mul | Div | Min | Max if dtype == DType::Bool => refused("numbers; cast it"),
        FloorDiv if dtype.is_float() => Ok(Expr::call1(Intrinsic::Floor, a / b)),
        FloorDiv | FloorMod | TruncMod | BitAnd | BitOr | BitXor | Shl | Shr if !dtype.is_int() => {
            refused("integers")
        }
        Min => Ok(pick(Min, a, b)),
        Max => Ok(pick(Max, a, b)),
        Add | Sub | Mul | Div | And | Or | FloorDiv | FloorMod | TruncMod | BitAnd | BitOr | BitXor | Shl
        | Shr => Ok(Expr::binary(op, a, b)),
    }
}

/// `-a`, as `a * -1`.
pub fn negative(a: Expr) -> Result<Expr, TensorError> {
    let minus = Expr::constant(-1, a.dtype());
    match (a.as_int(), a.as_float()) {
        (Some(value), _) if a.dtype().is_signed_int() => Ok(Expr::int_of(-value, a.dtype())),
        (_, Some(value)) => Ok(Expr::float(-value, a.dtype())),
        _ => binary(BinaryOp::Mul, a, minus),
    }
}

/// Logical not of a bool, every bit turned over of an integer.
pub fn not(a: Expr) -> Result<Expr, TensorError> {
    let dtype = a.dtype();
    if dtype == DType::Bool {
        return Ok(a.logical_not());
    }
    if !dtype.is_int() {
        return Err(TensorError::OperandType {
            operation: "not",
            wanted: "a bool or an integer",
            found: dtype,
        });
    }
    let all_bits = if dtype.is_signed_int() { -1 } else { (1i128 << (8 * dtype.bytes())) - 1 };
    Ok(Expr::binary(BinaryOp::BitXor, a, Expr::int_of(all_bits, dtype)))
}

/// A choice of two by a bool, as `make` makes it.
fn choice(cond: Expr, a: Expr, b: Expr, make: fn(Expr, Expr, Expr) -> Expr) -> Result<Expr, TensorError> {
    if cond.dtype() != DType::Bool {
        return Err(TensorError::OperandType {
            operation: "a condition",
            wanted: "a bool",
            found: cond.dtype(),
        });
    }
    let (a, b) = promoted(a, b);
    Ok(make(cond, a, b))
}

/// `cond ? a : b`, both evaluated.
pub fn select(cond: Expr, a: Expr, b: Expr) -> Result<Expr, TensorError> {
    choice(cond, a, b, Expr::select)
}

/// `cond ? a : b`, only the taken one evaluated.
pub fn if_then_else(cond: Expr, a: Expr, b: Expr) -> Result<Expr, TensorError> {
    choice(cond, a, b, Expr::if_then_else)
}

/// A function of the arguments. Functions of real numbers take floats; those that round leave integers as they are.
pub fn call(intrinsic: Intrinsic, args: Vec<Expr>) -> Result<Expr, TensorError> {
    use Intrinsic::{Abs, Ceil, Floor, IsFinite, IsInf, IsNan, Likely, Nearbyint, Popcount, Round, Trunc};
    let (wanted, found) = (intrinsic.arity(), args.len());
    if wanted != found {
        return Err(TensorError::ArgumentCount { function: intrinsic.name(), wanted, found });
    }
    let dtype = args.iter().map(Expr::dtype).reduce(promoted_dtype).unwrap_or(DType::F32);
    let refused =
        |wanted| Err(TensorError::OperandType { operation: intrinsic.name(), wanted, found: dtype });
    match intrinsic {
        Likely if dtype != DType::Bool => return refused("a bool"),
        Popcount if !dtype.is_int() => return refused("integers"),
        Floor | Ceil | Round | Trunc | Nearbyint if dtype.is_int() => return Ok(args[0].clone()),
        IsNan | IsInf if dtype.is_int() => return Ok(Expr::bool(false)),
        IsFinite if dtype.is_int() => return Ok(Expr::bool(true)),
        Abs if dtype.is_unsigned_int() => return Ok(args[0].clone()),
        Likely | Popcount => {}
        Abs if dtype.is_signed_int() => {}
        _ if !dtype.is_float() => return refused("floats; cast it"),
        _ => {}
    }
    Ok(Expr::call(intrinsic, args.into_iter().map(|arg| convert(arg, dtype)).collect()))
}

/// The domain `[min, end)` as a smallest index and an extent.
pub fn range(min: Expr, end: Expr) -> Result<(Expr, Expr), TensorError> {
    let (min, end) = promoted(min, end);
    let extent = match (min.as_int(), end.as_int()) {
        (Some(lo), Some(hi)) => Expr::constant(hi - lo, end.dtype()),
        (Some(0), None) => end,
        _ => binary(BinaryOp::Sub, end, min.clone())?,
    };
    Ok((min, extent))
}

/// The smallest and the largest finite value of a type.
pub fn limits(dtype: DType) -> (Expr, Expr) {
    if let Some((lo, hi)) = dtype.int_range() {
        return (Expr::int_of(lo, dtype), Expr::int_of(hi, dtype));
    }
    let largest = dtype.max_finite();
    (Expr::float(-largest, dtype), Expr::float(largest, dtype))
}

#[cfg(test)]
mod tests {
    use coulis_ir::Var;
    use coulis_ir::print::print_expr;

    use super::*;

    #[track_caller]
    fn check(expr: Result<Expr, TensorError>, want: &str) {
        assert_eq!(print_expr(&expr.expect("no error")), want);
    }

    #[test]
    fn constants_take_the_type_of_the_operation_and_variables_are_converted() {
        let (x, i) = (Var::new("x", DType::F32).expr(), Var::new("i", DType::I32).expr());
        check(binary(BinaryOp::Add, x.clone(), Expr::int(1)), "x + T.float32(1)");
        check(
            binary(BinaryOp::Mul, i.clone(), Expr::float(0.5, DType::F32)),
            "T.Cast(\"float32\", i) * T.float32(0.5)",
        );
        check(binary(BinaryOp::FloorDiv, i.clone(), Expr::int(2)), "i // 2");
        check(
            binary(BinaryOp::BitAnd, i.clone().lt(Expr::int(2)), x.clone().lt(x.clone())),
            "i < 2 and x < x",
        );
        check(negative(x), "x * T.float32(-1)");
        check(negative(Expr::int(3)), "-3");
        check(call(Intrinsic::Floor, vec![i]), "i");
    }

    #[test]
    fn operands_without_a_meaning_are_refused_by_name() {
        let (x, b) = (Var::new("x", DType::F32).expr(), Var::new("b", DType::Bool).expr());
        let refusals = [
            (binary(BinaryOp::FloorMod, x.clone(), x.clone()), "`%` takes integers, got float32"),
            (binary(BinaryOp::And, x.clone(), b.clone()), "`and` takes bools, got float32"),
            (binary(BinaryOp::Add, b.clone(), b), "`+` takes numbers; cast it, got bool"),
            (not(x.clone()), "`not` takes a bool or an integer, got float32"),
            (call(Intrinsic::Exp, vec![Expr::int(1)]), "`exp` takes floats; cast it, got int32"),
            (call(Intrinsic::Pow, vec![x]), "`pow` takes 2 arguments, got 1"),
        ];
        for (found, want) in refusals {
            assert_eq!(found.expect_err("an error").to_string(), want);
        }
    }

    #[test]
    fn a_range_from_zero_has_its_end_as_extent() {
        let n = Var::new("n", DType::I32).expr();
        assert_eq!(range(Expr::int(0), n.clone()), Ok((Expr::int(0), n.clone())));
        assert_eq!(range(Expr::int(1), Expr::int(4)), Ok((Expr::int(1), Expr::int(3))));
        check(range(Expr::int(1), n).map(|r| r.1), "n - 1");
    }
}
