//! Integer expressions with constants folded on the way, so that small schedules read well even before any
//! simplification.

use coulis_ir::simplify::Analyzer;
use coulis_ir::{BinaryOp, DType, Expr};

/// A constant of that type.
pub(crate) fn int(value: i128, dtype: DType) -> Expr {
    Expr::int_of(value, dtype)
}

/// Both operands in the wider type of the two.
fn promote(a: &Expr, b: &Expr) -> (Expr, Expr) {
    let dtype = coulis_ir::expr::promoted_dtype(a.dtype(), b.dtype());
    (cast(a, dtype), cast(b, dtype))
}

/// A conversion; of a constant at once.
pub(crate) fn cast(a: &Expr, dtype: DType) -> Expr {
    match a.as_int() {
        Some(value) => int(value, dtype),
        None => a.clone().cast(dtype),
    }
}

/// The sum.
pub(crate) fn add(a: &Expr, b: &Expr) -> Expr {
    let (a, b) = promote(a, b);
    match (a.as_int(), b.as_int()) {
        (Some(x), Some(y)) => int(x + y, a.dtype()),
        (Some(0), None) => b,
        (None, Some(0)) => a,
        _ => a + b,
    }
}

/// The difference.
pub(crate) fn sub(a: &Expr, b: &Expr) -> Expr {
    let (a, b) = promote(a, b);
    match (a.as_int(), b.as_int()) {
        (Some(x), Some(y)) => int(x - y, a.dtype()),
        (None, Some(0)) => a,
        _ if a == b => int(0, a.dtype()),
        _ => a - b,
    }
}

/// The product.
pub(crate) fn mul(a: &Expr, b: &Expr) -> Expr {
    let (a, b) = promote(a, b);
    match (a.as_int(), b.as_int()) {
        (Some(x), Some(y)) => int(x * y, a.dtype()),
        (Some(0), None) | (None, Some(1)) => a,
        (Some(1), None) | (None, Some(0)) => b,
        _ => a * b,
    }
}

/// The floored quotient; `b` is above 0.
pub(crate) fn floordiv(a: &Expr, b: &Expr) -> Expr {
    let (a, b) = promote(a, b);
    match (a.as_int(), b.as_int()) {
        (Some(x), Some(y)) if y != 0 => int(x.div_euclid(y), a.dtype()),
        (_, Some(1)) => a,
        _ => a.floordiv(b),
    }
}

/// The floored remainder; `b` is above 0.
pub(crate) fn floormod(a: &Expr, b: &Expr) -> Expr {
    let (a, b) = promote(a, b);
    match (a.as_int(), b.as_int()) {
        (Some(x), Some(y)) if y != 0 => int(x.rem_euclid(y), a.dtype()),
        (_, Some(1)) => int(0, a.dtype()),
        _ => a.floormod(b),
    }
}

/// A comparison.
pub(crate) fn compare(op: BinaryOp, a: &Expr, b: &Expr) -> Expr {
    let (a, b) = promote(a, b);
    Expr::binary(op, a, b)
}

/// Whether `a op b` holds for sure.
pub(crate) fn proves(analyzer: &Analyzer, op: BinaryOp, a: &Expr, b: &Expr) -> bool {
    if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
        return match op {
            BinaryOp::Lt => x < y,
            BinaryOp::Le => x <= y,
            BinaryOp::Ge => x >= y,
            BinaryOp::Gt => x > y,
            BinaryOp::Eq => x == y,
            BinaryOp::Ne => x != y,
            _ => false,
        };
    }
    let reflexive = matches!(op, BinaryOp::Le | BinaryOp::Ge | BinaryOp::Eq);
    (reflexive && a == b) || analyzer.can_prove(&compare(op, a, b))
}

/// The smaller of two, decided where it can be.
pub(crate) fn min(analyzer: &Analyzer, a: &Expr, b: &Expr) -> Expr {
    if proves(analyzer, BinaryOp::Le, a, b) {
        a.clone()
    } else if proves(analyzer, BinaryOp::Le, b, a) {
        b.clone()
    } else {
        let (a, b) = promote(a, b);
        a.min(b)
    }
}

/// The larger of two, decided where it can be.
pub(crate) fn max(analyzer: &Analyzer, a: &Expr, b: &Expr) -> Expr {
    if proves(analyzer, BinaryOp::Ge, a, b) {
        a.clone()
    } else if proves(analyzer, BinaryOp::Ge, b, a) {
        b.clone()
    } else {
        let (a, b) = promote(a, b);
        a.max(b)
    }
}

/// `a / b` rounded up; exact where divisibility is proved. `b` is above 0.
pub(crate) fn ceildiv(analyzer: &Analyzer, a: &Expr, b: &Expr) -> Expr {
    let one = int(1, b.dtype());
    if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
        let dtype = coulis_ir::expr::promoted_dtype(a.dtype(), b.dtype());
        return int((x + y - 1).div_euclid(y), dtype);
    }
    if b.is_int(1) {
        return a.clone();
    }
    let zero = int(0, a.dtype());
    if proves(analyzer, BinaryOp::Eq, &floormod(a, b), &zero) {
        return analyzer.simplify(&floordiv(a, b));
    }
    floordiv(&add(a, &sub(b, &one)), b)
}
