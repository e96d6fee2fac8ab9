//! Ramps and broadcasts.

use super::Analyzer;
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, Node, Var};

/// A ramp that does not move, or of one lane, is its base.
pub(super) fn reduce_ramp(_: &Analyzer, expr: &Expr) -> Option<Expr> {
    let Node::Ramp(base, stride) = expr.node() else { return None };
    (stride.is_int(0) || expr.lanes() == 1).then(|| base.clone().broadcast_to(expr.lanes()))
}

/// An operation on scalars in every lane is done once.
pub(super) fn operate_before_broadcast(_: &Analyzer, expr: &Expr) -> Option<Expr> {
    let lanes = expr.lanes();
    let inner = |e: &Expr| match e.node() {
        Node::Broadcast(x) => Some(x.clone()),
        _ => None,
    };
    let scalar = match expr.node() {
        Node::Binary(op, a, b) => Expr::binary(*op, inner(a)?, inner(b)?),
        Node::Cast(a) => inner(a)?.cast(expr.dtype()),
        Node::Not(a) => inner(a)?.logical_not(),
        Node::Select(c, a, b) => Expr::select(inner(c)?, inner(a)?, inner(b)?),
        _ => return None,
    };
    Some(scalar.broadcast_to(lanes))
}

/// Sums of ramps, and ramps times constants, are ramps. Lanes wrap as scalars do, so this holds for every integer
/// type.
pub(super) fn combine_ramps(_: &Analyzer, expr: &Expr) -> Option<Expr> {
    let Node::Binary(op, a, b) = expr.node() else { return None };
    if a.lanes() == 1 || a.dtype().is_float() {
        return None;
    }
    let zero = || Expr::int_of(0, expr.dtype());
    let parts = |e: &Expr| match e.node() {
        Node::Ramp(base, stride) => Some((base.clone(), stride.clone())),
        Node::Broadcast(x) => Some((x.clone(), zero())),
        _ => None,
    };
    let ((x, s), (y, t)) = (parts(a)?, parts(b)?);
    let ramp = |base: Expr, stride: Expr| Some(Expr::ramp(base, stride, expr.lanes()));
    match op {
        BinaryOp::Add => ramp(x + y, s + t),
        BinaryOp::Sub => ramp(x - y, s - t),
        BinaryOp::Mul if t.is_int(0) => ramp(x * y.clone(), s * y),
        BinaryOp::Mul if s.is_int(0) => ramp(x.clone() * y, x * t),
        _ => None,
    }
}

/// One lane of a vector made of ramps and broadcasts.
fn lane_of(expr: &Expr, lane: &Expr) -> Option<Expr> {
    match expr.node() {
        Node::Ramp(base, stride) => Some(base.clone() + lane.clone().cast(base.dtype()) * stride.clone()),
        Node::Broadcast(x) => Some(x.clone()),
        Node::Binary(op, a, b) => Some(Expr::binary(*op, lane_of(a, lane)?, lane_of(b, lane)?)),
        Node::Not(a) => Some(lane_of(a, lane)?.logical_not()),
        _ => None,
    }
}

/// A comparison of vectors that comes out the same in every lane is that constant in every lane.
pub(super) fn decide_vector_comparison(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    let Node::Binary(op, a, _) = expr.node() else { return None };
    if a.lanes() == 1 || a.dtype().is_float() || !op.is_comparison() {
        return None;
    }
    let lane = Var::size("lane", DType::I32);
    let scalar = lane_of(expr, &lane.expr())?;
    let mut within = analyzer.clone();
    within.bind(&lane, &Expr::int(0), &Expr::int(i32::try_from(a.lanes()).ok()?));
    let value = within.simplify(&scalar).as_int()?;
    Some(Expr::bool(value != 0).broadcast_to(expr.lanes()))
}
