//! Flags: integers that are 0 or all ones, as wide as the elements that set them.
//!
//! Of that width and with these values a vector of flags is a comparison's mask itself, so setting one costs the
//! comparison and one bitwise operation.

use coulis_ir::{BinaryOp, DType, Expr, Intrinsic};

use crate::builder::{Builder, Slot};

/// The flag type for elements of a compute type.
pub(crate) const fn flag_dtype(compute: DType) -> DType {
    match compute.bytes() {
        1 => DType::I8,
        2 => DType::I16,
        4 => DType::I32,
        _ => DType::I64,
    }
}

/// All ones where the condition holds, else 0.
pub(crate) fn mask(cond: Expr, dtype: DType) -> Expr {
    Expr::select(cond, Expr::constant(-1, dtype), Expr::constant(0, dtype))
}

/// Adds a flag that tells whether any element is NaN.
pub(crate) fn add_nan_seen(builder: &mut Builder) -> Slot {
    let x = builder.element(0);
    let dtype = flag_dtype(x.dtype());
    let lift = mask(Expr::call1(Intrinsic::IsNan, x), dtype);
    let seen = builder.field("nan_seen", Expr::constant(0, dtype), lift);
    builder.combine(&seen, Expr::binary(BinaryOp::BitOr, seen.left.clone(), seen.right.clone()));
    seen
}

/// Whether an element of the first input is non-zero; NaN is.
pub(crate) fn non_zero(builder: &Builder) -> Expr {
    let x = builder.element(0);
    let zero = Expr::constant(0, x.dtype());
    x.not_equal(zero)
}

/// Whether a flag is set.
pub(crate) fn is_set(flag: &Expr) -> Expr {
    flag.clone().not_equal(Expr::constant(0, flag.dtype()))
}
