//! Finished values as outputs: scaled, with what was there before, and rounded once.

use coulis_ir::{DType, Expr, Intrinsic};

use crate::program::OutputSpec;

/// The value in the output's type. A float becomes the nearest integer, of two equally near ones the even one, where a
/// conversion alone would cut its fraction off (contract N5); NaN becomes 0 and what is beyond the type's range its limit.
fn rounded(value: Expr, to: DType) -> Expr {
    let (is_float, bytes) = (value.dtype().is_float(), value.dtype().bytes());
    if !is_float || !to.is_int() {
        return value.cast(to);
    }
    let wide = if bytes < 4 { value.cast(DType::F32) } else { value };
    Expr::call1(Intrinsic::Nearbyint, wide).cast(to)
}

/// `alpha * value + beta * prior`, rounded once to the output's type (contract N1). Integers are scaled in
/// `float64` unless the factors are 1 and 0.
pub fn scale(value: Expr, output: &OutputSpec, prior: Option<Expr>) -> Expr {
    if output.alpha == 1.0 && prior.is_none() {
        return rounded(value, output.dtype);
    }
    let mut scaled = value.cast(DType::F64);
    if output.alpha != 1.0 {
        scaled = Expr::float(output.alpha, DType::F64) * scaled;
    }
    if let Some(prior) = prior {
        scaled = scaled + Expr::float(output.beta, DType::F64) * prior.cast(DType::F64);
    }
    rounded(scaled, output.dtype)
}
