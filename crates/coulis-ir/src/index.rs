//! The shape of indices: constants and ramps, folded as emitters of text and code write them.
//!
//! Folding here keeps the terms and their order; what may be reordered is the simplifier's.

use crate::args::eval_constant;
use crate::expr::{BinaryOp, Expr, Node};
use crate::hash::FastMap;
use crate::visit::map_children;

/// The value of an integer expression without variables.
pub fn constant(expr: &Expr) -> Option<i64> {
    if expr.lanes() != 1 || expr.dtype().is_float() {
        return None;
    }
    match expr.node() {
        Node::Int(value) => i64::try_from(*value).ok(),
        Node::Var(_) | Node::Load(..) | Node::Float(_) => None,
        _ => eval_constant(expr),
    }
}

/// `(base, stride)` of a vector index `base + i * stride`, both scalars.
pub fn as_ramp(expr: &Expr) -> Option<(Expr, Expr)> {
    if expr.lanes() == 1 {
        return None;
    }
    let dtype = expr.dtype();
    match expr.node() {
        Node::Ramp(base, stride) => Some((base.clone(), stride.clone())),
        Node::Broadcast(value) => Some((value.clone(), Expr::int_of(0, dtype))),
        Node::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) => {
            let ((x, s), (y, t)) = (as_ramp(a)?, as_ramp(b)?);
            Some((fold_binary(*op, x, y), fold_binary(*op, s, t)))
        }
        Node::Binary(BinaryOp::Mul, a, b) => {
            let ((x, s), (y, t)) = (as_ramp(a)?, as_ramp(b)?);
            if t.is_int(0) {
                Some((fold_binary(BinaryOp::Mul, x, y.clone()), fold_binary(BinaryOp::Mul, s, y)))
            } else if s.is_int(0) {
                Some((fold_binary(BinaryOp::Mul, x.clone(), y), fold_binary(BinaryOp::Mul, x, t)))
            } else {
                None
            }
        }
        // Indices stay within their type, so widening the ends widens every lane.
        Node::Cast(a) if a.dtype().is_int() && dtype.is_int() && a.dtype().bytes() <= dtype.bytes() => {
            let (x, s) = as_ramp(a)?;
            Some((fold(&x.cast(dtype)), fold(&s.cast(dtype))))
        }
        _ => None,
    }
}

/// `a op b` with constants folded and neutral elements dropped, but no division by what may be 0.
pub fn fold_binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    fold_node(&Expr::binary(op, a, b))
}

fn fold_node(expr: &Expr) -> Expr {
    let dtype = expr.dtype();
    if expr.lanes() != 1 || dtype.is_float() {
        return expr.clone();
    }
    match expr.node() {
        Node::Binary(op, a, b) => {
            if a.as_int().is_some() && b.as_int().is_some() {
                return match constant(expr) {
                    Some(value) => Expr::int_of(i128::from(value), dtype),
                    None => expr.clone(),
                };
            }
            match op {
                BinaryOp::Add if a.is_int(0) => b.clone(),
                BinaryOp::Add | BinaryOp::Sub if b.is_int(0) => a.clone(),
                BinaryOp::Mul if a.is_int(1) => b.clone(),
                BinaryOp::Mul if b.is_int(1) => a.clone(),
                BinaryOp::Mul if (a.is_int(0) || b.is_int(0)) && !expr.divides() => Expr::int_of(0, dtype),
                _ => expr.clone(),
            }
        }
        Node::Cast(a) => match a.as_int() {
            Some(value) => Expr::int_of(value, dtype),
            None => expr.clone(),
        },
        _ => expr.clone(),
    }
}

/// The expression with integer constants folded everywhere below.
pub fn fold(expr: &Expr) -> Expr {
    fn go(expr: &Expr, memo: &mut FastMap<Expr, Expr>) -> Expr {
        if let Some(done) = memo.get(expr) {
            return done.clone();
        }
        let new = fold_node(&map_children(expr, &mut |child| go(child, memo)));
        memo.insert(expr.clone(), new.clone());
        new
    }
    go(expr, &mut FastMap::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Var};

    #[test]
    fn a_division_by_what_may_be_zero_is_not_folded_away() {
        let (n, zero) = (Var::size("n", DType::I32).expr(), Expr::int(0));
        let quotient = Expr::int(12).floordiv(n.clone());
        assert_eq!(fold(&(quotient.clone() * zero.clone())), quotient * zero.clone());
        assert_eq!(fold(&(n.floordiv(Expr::int(4)) * zero.clone())), zero);
    }

    #[test]
    fn sums_and_products_of_ramps_and_repeated_scalars_are_ramps() {
        let (x, y) = (Var::new("x", DType::I32).expr(), Var::new("y", DType::I32).expr());
        let int = Expr::int;
        let ramp = |base: &Expr, stride: i64| Expr::ramp(base.clone(), Expr::int(stride as i32), 4);
        let repeated = |value: &Expr| value.clone().broadcast_to(4);
        let some = |base: Expr, stride: i32| Some((base, int(stride)));
        let (xs, ys) = (ramp(&x, 1), ramp(&y, 2));
        assert_eq!(as_ramp(&(xs.clone() + ys.clone())), some(&x + &y, 3));
        assert_eq!(as_ramp(&(xs.clone() - ys.clone())), some(&x - &y, -1));
        assert_eq!(as_ramp(&(repeated(&int(3)) * ys.clone())), some(int(3) * y.clone(), 6));
        assert_eq!(as_ramp(&(ys.clone() * repeated(&x))), Some((y.clone() * x.clone(), int(2) * x.clone())));
        assert_eq!(as_ramp(&repeated(&x)), some(x.clone(), 0));
        let wide = Expr::int_of(2, DType::I64);
        assert_eq!(as_ramp(&ys.clone().cast(DType::I64)), Some((y.clone().cast(DType::I64), wide)));
        for other in [x.clone(), xs.clone() * ys.clone(), xs.cast(DType::I8)] {
            assert_eq!(as_ramp(&other), None, "{other:?}");
        }
    }
}
