//! Constants and neutral operands of every type.
//!
//! Integers wrap into their type. Floats are folded only where every machine gives the same bits: one correctly
//! rounded operation on constants that are not NaN, with a result that is not NaN. No law of real numbers is used
//! on floats but `x * 1`, `x / 1`, `x - 0` and `x + -0` (contract N15).

use super::Analyzer;
use super::interval::{Interval, element_range};
use crate::dtype::DType;
use crate::eval::{Value, eval_binary};
use crate::expr::{BinaryOp, Expr, Intrinsic, Node};

/// The constant in every lane.
fn lanes_int(expr: &Expr) -> Option<i128> {
    match expr.node() {
        Node::Broadcast(inner) => inner.as_int(),
        _ => expr.as_int(),
    }
}

/// The float constant in every lane.
fn lanes_float(expr: &Expr) -> Option<f64> {
    match expr.node() {
        Node::Broadcast(inner) => inner.as_float(),
        _ => expr.as_float(),
    }
}

/// An operation on two constants. Of floats, one that is not NaN and has no NaN among its operands.
pub(super) fn fold_constants(_: &Analyzer, expr: &Expr) -> Option<Expr> {
    let Node::Binary(op, a, b) = expr.node() else { return None };
    let dtype = a.dtype();
    if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
        let (value, _) = op.on_integers(x, y, 8 * dtype.bytes() as u32)?;
        return Some(Expr::int_of(value, expr.dtype()));
    }
    let (x, y) = (a.as_float()?, b.as_float()?);
    let is_storage = matches!(dtype, DType::F8E4M3 | DType::F8E5M2);
    if !op.is_comparison() && (x.is_nan() || y.is_nan() || is_storage) {
        return None;
    }
    match eval_binary(*op, Value::Float(x), Value::Float(y), dtype).ok()? {
        Value::Int(truth) => Some(Expr::bool(truth != 0)),
        Value::Float(value) => (!value.is_nan()).then(|| Expr::float(value, expr.dtype())),
    }
}

/// An operand that changes nothing, or decides alone: `x + 0`, `x * 1`, `x * 0`, `x - x`, `x // 1` and the like.
pub(super) fn drop_neutral_operand(_: &Analyzer, expr: &Expr) -> Option<Expr> {
    let Node::Binary(op, a, b) = expr.node() else { return None };
    if a.dtype().is_float() {
        return drop_neutral_float(*op, a, b);
    }
    let zero = || Some(Expr::int_of(0, a.dtype()).broadcast_to(a.lanes()));
    let (x, y) = (lanes_int(a), lanes_int(b));
    match op {
        BinaryOp::Add | BinaryOp::BitOr | BinaryOp::BitXor if x == Some(0) => Some(b.clone()),
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr
            if y == Some(0) =>
        {
            Some(a.clone())
        }
        BinaryOp::Sub | BinaryOp::BitXor if a == b => zero(),
        BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::And | BinaryOp::Or if a == b => Some(a.clone()),
        BinaryOp::Mul if x == Some(1) => Some(b.clone()),
        BinaryOp::Mul | BinaryOp::Div | BinaryOp::FloorDiv if y == Some(1) => Some(a.clone()),
        BinaryOp::Mul | BinaryOp::BitAnd if x == Some(0) || y == Some(0) => zero(),
        BinaryOp::FloorMod | BinaryOp::TruncMod if y == Some(1) => zero(),
        BinaryOp::And if x == Some(1) => Some(b.clone()),
        BinaryOp::And if y == Some(1) => Some(a.clone()),
        BinaryOp::And if x == Some(0) || y == Some(0) => zero(),
        BinaryOp::Or if x == Some(0) => Some(b.clone()),
        BinaryOp::Or if y == Some(0) => Some(a.clone()),
        _ => None,
    }
}

fn drop_neutral_float(op: BinaryOp, a: &Expr, b: &Expr) -> Option<Expr> {
    let is = |value: Option<f64>, wanted: f64| value.is_some_and(|v| v.to_bits() == wanted.to_bits());
    let (x, y) = (lanes_float(a), lanes_float(b));
    match op {
        BinaryOp::Mul if is(x, 1.0) => Some(b.clone()),
        BinaryOp::Mul | BinaryOp::Div if is(y, 1.0) => Some(a.clone()),
        BinaryOp::Sub if is(y, 0.0) => Some(a.clone()),
        BinaryOp::Add if is(y, -0.0) => Some(a.clone()),
        BinaryOp::Add if is(x, -0.0) => Some(b.clone()),
        _ => None,
    }
}

/// A scalar integer that can have one value only is that constant.
pub(super) fn replace_by_only_value(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    if !expr.ty().is_scalar() || expr.dtype().is_float() || expr.as_int().is_some() {
        return None;
    }
    let value = analyzer.interval(expr).as_point()?;
    Some(Expr::int_of(value, expr.dtype()))
}

/// A loop variable of one iteration is its first value.
pub(super) fn replace_single_iteration(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    let (min, extent) = analyzer.facts.vars.get(&expr.as_var()?.id())?.range.as_ref()?;
    (extent.is_int(1) && min.ty() == expr.ty()).then(|| min.clone())
}

/// Casts of constants, and casts that undo or repeat one another.
pub(super) fn reduce_cast(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    let Node::Cast(inner) = expr.node() else { return None };
    let to = expr.dtype();
    if let Some(value) = inner.as_int() {
        return cast_integer(value, to);
    }
    if let Some(value) = inner.as_float() {
        return cast_float(value, to);
    }
    let Node::Cast(source) = inner.node() else { return None };
    let (from, between) = (source.dtype(), inner.dtype());
    let known = |e: &Expr| {
        let bounds = if e.ty().is_scalar() { analyzer.interval(e) } else { Interval::ALL };
        let of_elements = element_range(e).map_or(Interval::ALL, |(lo, hi)| Interval::of(lo, hi));
        bounds.intersect(of_elements)
    };
    let keeps = match (from.is_float(), between.is_float()) {
        (false, false) => between != DType::Bool && known(source).fits(between),
        (true, true) => float_widens(from, between),
        (true, false) | (false, true) => false,
    };
    keeps.then(|| source.clone().cast(to))
}

/// A `float32` that is scaled up by a power of two in `float64` and rounded is scaled as it is: that is exact, and what leaves the range
/// of `float32` is infinite in narrower types too.
pub(super) fn scale_before_rounding(_: &Analyzer, expr: &Expr) -> Option<Expr> {
    let Node::Cast(scaled) = expr.node() else { return None };
    let Node::Binary(BinaryOp::Mul, wide, factor) = scaled.node() else { return None };
    let Node::Cast(value) = wide.node() else { return None };
    let factor = factor.as_float()?;
    let is_power =
        (1.0..=MOST_SCALED).contains(&factor) && factor.to_bits().trailing_zeros() >= MANTISSA_BITS;
    let widens = value.dtype() == DType::F32 && scaled.dtype() == DType::F64;
    let rounds = matches!(expr.dtype(), DType::F32 | DType::BF16 | DType::F16);
    (is_power && widens && rounds).then(|| {
        Expr::binary(BinaryOp::Mul, value.clone(), Expr::float(factor, DType::F32)).cast(expr.dtype())
    })
}

/// Digits of a `float64` behind the first.
const MANTISSA_BITS: u32 = 52;
/// A power of two that `float32` has.
const MOST_SCALED: f64 = 1e30;

fn float_widens(from: DType, to: DType) -> bool {
    let narrow = matches!(from, DType::F8E4M3 | DType::F8E5M2);
    match to {
        DType::F64 => true,
        DType::F32 => narrow || matches!(from, DType::F16 | DType::BF16),
        DType::F16 => narrow,
        _ => false,
    }
}

fn cast_integer(value: i128, to: DType) -> Option<Expr> {
    if !to.is_float() {
        return Some(Expr::int_of(value, to));
    }
    let float = match to {
        DType::F32 => f64::from(value as f32),
        _ => value as f64,
    };
    let exact = to.round_float(float) == float && float as i128 == value;
    (exact || matches!(to, DType::F32 | DType::F64)).then(|| Expr::float(float, to))
}

fn cast_float(value: f64, to: DType) -> Option<Expr> {
    match to.int_range() {
        Some(_) if to == DType::Bool => Some(Expr::bool(value != 0.0)),
        Some((lo, hi)) => {
            let truncated = if value.is_nan() { 0 } else { value.trunc() as i128 };
            Some(Expr::int_of(truncated.clamp(lo, hi), to))
        }
        None => {
            let rounded = to.round_float(value);
            let same = rounded == value || matches!(to, DType::F32 | DType::F64) && !rounded.is_nan();
            same.then(|| Expr::float(rounded, to))
        }
    }
}

/// The magnitude of a constant, and of what is never negative.
pub(super) fn reduce_abs(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    let Node::Call(Intrinsic::Abs, args) = expr.node() else { return None };
    let [x] = args.as_slice() else { return None };
    if expr.dtype().is_float() || !expr.ty().is_scalar() {
        return None;
    }
    if let Some(value) = x.as_int() {
        return Some(Expr::int_of(value.abs(), expr.dtype()));
    }
    analyzer.interval(x).at_least(0).then(|| x.clone())
}
