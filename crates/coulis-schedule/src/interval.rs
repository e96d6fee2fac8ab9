//! Bounds of an expression when some of its variables run over ranges.

use coulis_ir::hash::FastMap;

use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::uses_any;
use coulis_ir::{BinaryOp, Expr, Node, Var};

use crate::fold;

/// Smallest and largest value, both reached or outside.
pub(crate) type Interval = (Expr, Expr);

/// Bounds of `expr` when each variable of `env` is anywhere in its interval; `None` where no bound is known.
pub(crate) fn bounds(expr: &Expr, env: &FastMap<Var, Interval>, analyzer: &Analyzer) -> Option<Interval> {
    let vars: Vec<Var> = env.keys().cloned().collect();
    go(expr, env, &vars, analyzer)
}

fn go(expr: &Expr, env: &FastMap<Var, Interval>, vars: &[Var], an: &Analyzer) -> Option<Interval> {
    if !uses_any(expr, vars) {
        return Some((expr.clone(), expr.clone()));
    }
    let zero = || fold::int(0, expr.dtype());
    match expr.node() {
        Node::Var(var) => env.get(var).cloned(),
        Node::Cast(a) if a.dtype().is_int() && expr.dtype().is_int() => {
            let (lo, hi) = go(a, env, vars, an)?;
            Some((fold::cast(&lo, expr.dtype()), fold::cast(&hi, expr.dtype())))
        }
        // An arm that reads memory may only be read where it is chosen.
        Node::Select(..) | Node::IfThenElse(..) if expr.reads_memory() => None,
        Node::Select(_, a, b) | Node::IfThenElse(_, a, b) => {
            let ((a_lo, a_hi), (b_lo, b_hi)) = (go(a, env, vars, an)?, go(b, env, vars, an)?);
            Some((fold::min(an, &a_lo, &b_lo), fold::max(an, &a_hi, &b_hi)))
        }
        Node::Binary(op, a, b) => {
            let ((a_lo, a_hi), (b_lo, b_hi)) = (go(a, env, vars, an)?, go(b, env, vars, an)?);
            let point = a_lo == a_hi && b_lo == b_hi;
            let fixed_b = b_lo == b_hi && fold::proves(an, BinaryOp::Gt, &b_lo, &zero());
            match op {
                BinaryOp::Add => Some((fold::add(&a_lo, &b_lo), fold::add(&a_hi, &b_hi))),
                BinaryOp::Sub => Some((fold::sub(&a_lo, &b_hi), fold::sub(&a_hi, &b_lo))),
                BinaryOp::Mul if point => {
                    let product = fold::mul(&a_lo, &b_lo);
                    Some((product.clone(), product))
                }
                BinaryOp::Mul => {
                    let (scale, (lo, hi)) = if b_lo == b_hi {
                        (b_lo, (a_lo, a_hi))
                    } else if a_lo == a_hi {
                        (a_lo, (b_lo, b_hi))
                    } else {
                        return None;
                    };
                    let (x, y) = (fold::mul(&lo, &scale), fold::mul(&hi, &scale));
                    if fold::proves(an, BinaryOp::Ge, &scale, &zero()) {
                        Some((x, y))
                    } else if fold::proves(an, BinaryOp::Le, &scale, &zero()) {
                        Some((y, x))
                    } else {
                        None
                    }
                }
                BinaryOp::FloorDiv if fixed_b => {
                    Some((fold::floordiv(&a_lo, &b_lo), fold::floordiv(&a_hi, &b_lo)))
                }
                BinaryOp::FloorMod if fixed_b => {
                    let (lo, hi) = (fold::floordiv(&a_lo, &b_lo), fold::floordiv(&a_hi, &b_lo));
                    if fold::proves(an, BinaryOp::Eq, &lo, &hi) {
                        Some((fold::floormod(&a_lo, &b_lo), fold::floormod(&a_hi, &b_lo)))
                    } else {
                        Some((zero(), fold::sub(&b_lo, &fold::int(1, b_lo.dtype()))))
                    }
                }
                BinaryOp::Min => Some((fold::min(an, &a_lo, &b_lo), fold::min(an, &a_hi, &b_hi))),
                BinaryOp::Max => Some((fold::max(an, &a_lo, &b_lo), fold::max(an, &a_hi, &b_hi))),
                _ => None,
            }
        }
        _ => None,
    }
}
