//! Comparisons, minima and maxima.

use super::Analyzer;
use super::poly::gcd;
use super::sum::{Collect, Sum};
use crate::expr::{BinaryOp, Expr, Node};
use crate::op::floor_div;

/// The comparison with its sides exchanged.
pub(crate) fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        other => other,
    }
}

/// The comparison that holds where this one does not; on integers only.
pub(crate) fn negated(op: BinaryOp) -> Option<BinaryOp> {
    match op {
        BinaryOp::Lt => Some(BinaryOp::Ge),
        BinaryOp::Le => Some(BinaryOp::Gt),
        BinaryOp::Gt => Some(BinaryOp::Le),
        BinaryOp::Ge => Some(BinaryOp::Lt),
        BinaryOp::Eq => Some(BinaryOp::Ne),
        BinaryOp::Ne => Some(BinaryOp::Eq),
        _ => None,
    }
}

/// A scalar comparison of integers.
pub(crate) fn integer_comparison(expr: &Expr) -> Option<(BinaryOp, &Expr, &Expr)> {
    match expr.node() {
        Node::Binary(op, a, b) if op.is_comparison() && a.ty().is_scalar() && !a.dtype().is_float() => {
            Some((*op, a, b))
        }
        _ => None,
    }
}

/// A comparison whose outcome bounds, divisibility or known conditions tell is a constant.
pub(super) fn decide_comparison(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    let (op, a, b) = integer_comparison(expr)?;
    analyzer.decide(op, a, b).map(Expr::bool)
}

/// Terms on both sides of a comparison stand on one, constants beside a lone constant move to it, and a constant
/// stands on the right.
pub(super) fn cancel_common_terms(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    let (mut op, a, b) = integer_comparison(expr)?;
    let mut left = analyzer.sum_of(a, Collect::Exact)?;
    let mut right = analyzer.sum_of(b, Collect::Exact)?;
    for (term, coeff) in &mut left.terms {
        if let Some((_, other)) = right.terms.iter_mut().find(|(e, _)| e == term) {
            let net = coeff.checked_sub(*other)?;
            (*coeff, *other) = (net.max(0), net.min(0).checked_neg()?);
        }
    }
    left.tidy();
    right.tidy();
    let net = left.constant.checked_sub(right.constant)?;
    if left.terms.is_empty() {
        std::mem::swap(&mut left, &mut right);
        op = mirrored(op);
        (left.constant, right.constant) = (0, net);
    } else if right.terms.is_empty() {
        (left.constant, right.constant) = (0, net.checked_neg()?);
    } else if left.constant != 0 && right.constant != 0 {
        (left.constant, right.constant) = (net, 0);
    }
    if right.terms.is_empty() && left.terms.iter().any(|(_, c)| *c < 0) {
        move_negative_terms(&mut left, &mut right);
        if left.terms.is_empty() {
            std::mem::swap(&mut left, &mut right);
            op = mirrored(op);
            (left.constant, right.constant) = (0, left.constant.checked_neg()?);
        }
    }
    if !left.terms.is_empty() && !right.terms.is_empty() {
        let common = gcd(left.common_divisor(), right.common_divisor());
        if common > 1 && left.constant % common == 0 && right.constant % common == 0 {
            divide_sum(&mut left, common);
            divide_sum(&mut right, common);
        }
        op = without_one(op, &mut left, &mut right);
    }
    let (x, y) = (analyzer.write_exact(&left, a.dtype())?, analyzer.write_exact(&right, a.dtype())?);
    Some(Expr::binary(op, x, y))
}

/// Takes terms of negative multiplier to the other side, whose constant goes the other way as far as it is
/// negative.
fn move_negative_terms(left: &mut Sum, right: &mut Sum) {
    for (term, coeff) in &mut left.terms {
        if *coeff < 0 {
            right.terms.push((term.clone(), -*coeff));
            *coeff = 0;
        }
    }
    left.tidy();
    if right.constant < 0 && !left.terms.is_empty() {
        (left.constant, right.constant) = (-right.constant, 0);
    }
}

fn divide_sum(sum: &mut Sum, divisor: i128) {
    sum.constant /= divisor;
    sum.terms.iter_mut().for_each(|(_, c)| *c /= divisor);
}

/// `a + 1 <= b` is `a < b`, and `a < b + 1` is `a <= b`.
fn without_one(op: BinaryOp, left: &mut Sum, right: &mut Sum) -> BinaryOp {
    let (changed, gap) = match op {
        BinaryOp::Le => (BinaryOp::Lt, 1),
        BinaryOp::Lt => (BinaryOp::Le, -1),
        BinaryOp::Ge => (BinaryOp::Gt, -1),
        BinaryOp::Gt => (BinaryOp::Ge, 1),
        other => return other,
    };
    if left.constant.checked_sub(right.constant) != Some(gap) {
        return op;
    }
    (left.constant, right.constant) = (0, 0);
    changed
}

/// A comparison with a constant is divided by what its terms have in common: `x*32 + y < 100` is
/// `x*8 + y//4 < 25`.
pub(super) fn divide_comparison(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    let (op, a, b) = integer_comparison(expr)?;
    let bound = b.as_int()?;
    let mut sum = analyzer.sum_of(a, Collect::Exact)?;
    if sum.terms.is_empty() || sum.constant != 0 {
        return None;
    }
    let dtype = a.dtype();
    let write = |op, sum: &Sum, bound: i128| {
        let left = analyzer.write_exact(sum, dtype)?;
        let right = analyzer.write_sum(&Sum { terms: Vec::new(), constant: bound }, dtype)?;
        Some(Expr::binary(op, left, right))
    };
    let ceil_div = |x: i128, y: i128| floor_div(x, y) + i128::from(x % y != 0);
    let common = sum.common_divisor();
    if common > 1 {
        divide_sum(&mut sum, common);
        return match op {
            BinaryOp::Lt | BinaryOp::Ge => write(op, &sum, ceil_div(bound, common)),
            BinaryOp::Le | BinaryOp::Gt => write(op, &sum, floor_div(bound, common)),
            BinaryOp::Eq | BinaryOp::Ne if bound % common == 0 => write(op, &sum, bound / common),
            BinaryOp::Eq | BinaryOp::Ne => Some(Expr::bool(op == BinaryOp::Ne)),
            _ => None,
        };
    }
    let (op, bound) = match op {
        BinaryOp::Lt | BinaryOp::Ge => (op, bound),
        BinaryOp::Le => (BinaryOp::Lt, bound.checked_add(1)?),
        BinaryOp::Gt => (BinaryOp::Ge, bound.checked_add(1)?),
        _ => return None,
    };
    let (high, low): (Vec<_>, Vec<_>) = sum.terms.iter().cloned().partition(|(_, c)| c.abs() > 1);
    let [(low, 1)] = low.as_slice() else { return None };
    let mut high = Sum { terms: high, constant: 0 };
    let common = gcd(high.common_divisor(), bound);
    if high.terms.is_empty() || common <= 1 {
        return None;
    }
    divide_sum(&mut high, common);
    let part = low.clone().floordiv(Expr::int_of(common, dtype));
    let turn = analyzer.interval(low).floor_div(common).as_point();
    match turn {
        Some(turn) => high.constant = turn,
        None if bound == 0 => return None,
        None => high.push(&part, 1)?,
    }
    write(op, &high, bound / common)
}

/// A minimum or maximum whose order is known is one operand.
pub(super) fn decide_extremum(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    let Node::Binary(op @ (BinaryOp::Min | BinaryOp::Max), a, b) = expr.node() else { return None };
    if a == b {
        return Some(a.clone());
    }
    let ordered = if analyzer.holds(BinaryOp::Le, a, b) {
        true
    } else if analyzer.holds(BinaryOp::Ge, a, b) {
        false
    } else {
        return None;
    };
    Some(if ordered == (*op == BinaryOp::Min) { a.clone() } else { b.clone() })
}

/// `min(min(x, c), d)` is `min(x, min(c, d))` for constants, and operands that occur twice count once.
pub(super) fn flatten_extremum(_: &Analyzer, expr: &Expr) -> Option<Expr> {
    let Node::Binary(op @ (BinaryOp::Min | BinaryOp::Max), a, b) = expr.node() else { return None };
    if expr.dtype().is_float() {
        return None;
    }
    match a.node() {
        Node::Binary(inner, x, c) if inner == op => match (c.as_int(), b.as_int()) {
            (Some(c), Some(d)) if expr.ty().is_scalar() => {
                let folded = if *op == BinaryOp::Min { c.min(d) } else { c.max(d) };
                Some(Expr::binary(*op, x.clone(), Expr::int_of(folded, expr.dtype())))
            }
            _ if x == b || c == b => Some(a.clone()),
            _ => None,
        },
        _ => match b.node() {
            Node::Binary(inner, x, y) if inner == op && (x == a || y == a) => Some(b.clone()),
            _ => None,
        },
    }
}
