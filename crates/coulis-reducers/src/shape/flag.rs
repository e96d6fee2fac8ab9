//! Flags: integers that are 0 or all ones, as wide as the elements that set them.
//!
//! Of that width and with these values a vector of flags is a comparison's mask itself, so setting one costs the
//! comparison and one bitwise operation.

use coulis_ir::{BinaryOp, DType, Expr, Intrinsic, Node};

use crate::builder::{Builder, Slot};

/// Longest run of a flag; a sum of magnitudes may well overflow to an infinity.
const LONGEST_RUN: u32 = 1 << 30;

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

/// Adds a flag that tells whether any element is NaN. A run keeps the sum of magnitudes in its place: NaN only with
/// an element that is, as no magnitude is negative. It takes an addition an element and no mask, and additions are not slow
/// with subnormal numbers, as products are.
pub(crate) fn add_nan_seen(builder: &mut Builder) -> Slot {
    let x = builder.element(0);
    let dtype = flag_dtype(x.dtype());
    let flag = |x: &Expr| mask(Expr::call1(Intrinsic::IsNan, x.clone()), dtype);
    let or = |a: &Expr, b: Expr| Expr::binary(BinaryOp::BitOr, a.clone(), b);
    let seen = builder.field("nan_seen", Expr::constant(0, dtype), flag(&x));
    builder.combine(&seen, or(&seen.left, seen.right.clone()));
    let run = builder.run_field(&seen, Expr::constant(0, x.dtype()), Expr::call1(Intrinsic::Abs, x));
    builder.run_step(&seen, &run.left + &run.right, LONGEST_RUN);
    builder.close(&seen, or(&seen.left, flag(&run.left)));
    builder.nan_witness(&seen);
    seen
}

/// Whether an element of the first input is non-zero; NaN is.
pub(crate) fn non_zero(builder: &Builder) -> Expr {
    let x = builder.element(0);
    // A bool, of which a number was made, is the answer.
    if let Node::Cast(truth) = x.node()
        && truth.dtype() == DType::Bool
    {
        return truth.clone();
    }
    let zero = Expr::constant(0, x.dtype());
    x.not_equal(zero)
}

/// Whether a flag is set.
pub(crate) fn is_set(flag: &Expr) -> Expr {
    flag.clone().not_equal(Expr::constant(0, flag.dtype()))
}
