//! Conditions and selections.

use super::Analyzer;
use super::compare::{integer_comparison, negated};
use super::poly::Poly;
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, Intrinsic, Node};

/// The condition that a `likely` marks.
pub(crate) fn without_likely(expr: &Expr) -> &Expr {
    match expr.node() {
        Node::Call(Intrinsic::Likely, args) if args.len() == 1 => &args[0],
        _ => expr,
    }
}

/// The opposite of a scalar condition, without a `not` where a comparison of integers says it.
pub(crate) fn opposite(cond: &Expr) -> Expr {
    if let Some((op, a, b)) = integer_comparison(cond)
        && let Some(op) = negated(op)
    {
        return Expr::binary(op, a.clone(), b.clone());
    }
    match cond.node() {
        Node::Not(inner) => inner.clone(),
        _ => cond.clone().logical_not(),
    }
}

/// The operands of nested `and`s or `or`s, in order.
fn operands<'e>(expr: &'e Expr, op: BinaryOp, out: &mut Vec<&'e Expr>) {
    match expr.node() {
        Node::Binary(found, a, b) if *found == op => {
            operands(a, op, out);
            operands(b, op, out);
        }
        _ => out.push(expr),
    }
}

/// Whether `b` holds wherever `a` does, both comparisons of integers that differ by a bounded amount.
fn implies(analyzer: &Analyzer, a: &Expr, b: &Expr) -> bool {
    let margin = |cond: &Expr| -> Option<Poly> {
        let (op, x, y) = integer_comparison(without_likely(cond))?;
        let (x, y) = (analyzer.poly(x), analyzer.poly(y));
        match op {
            BinaryOp::Lt => y.add_scaled(&x, -1)?.plus(-1),
            BinaryOp::Le => y.add_scaled(&x, -1),
            BinaryOp::Gt => x.add_scaled(&y, -1)?.plus(-1),
            BinaryOp::Ge => x.add_scaled(&y, -1),
            _ => None,
        }
    };
    if without_likely(a) == without_likely(b) {
        return true;
    }
    let gap = margin(a).zip(margin(b)).and_then(|(a, b)| b.add_scaled(&a, -1));
    gap.is_some_and(|gap| analyzer.poly_interval(&gap).at_least(0))
}

/// `and` and `or` without constants, repetitions, and operands that follow from others.
pub(super) fn reduce_conjunctions(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    let Node::Binary(op @ (BinaryOp::And | BinaryOp::Or), ..) = expr.node() else { return None };
    if !expr.ty().is_scalar() || expr.dtype() != DType::Bool {
        return None;
    }
    let conjunction = *op == BinaryOp::And;
    let (neutral, absorbing) = (i128::from(conjunction), i128::from(!conjunction));
    let mut all = Vec::new();
    operands(expr, *op, &mut all);
    let mut kept: Vec<&Expr> = Vec::new();
    for &cond in &all {
        if cond.is_int(absorbing) {
            return Some(Expr::bool(!conjunction));
        }
        let against = opposite(without_likely(cond));
        if kept.iter().any(|k| *without_likely(k) == against) {
            return Some(Expr::bool(!conjunction));
        }
        // In an `and`, what follows from another operand goes; in an `or`, what another follows from.
        let goes = |this: &Expr, other: &Expr| {
            if conjunction { implies(analyzer, other, this) } else { implies(analyzer, this, other) }
        };
        if cond.is_int(neutral) || kept.iter().any(|k| goes(cond, k)) {
            continue;
        }
        // One that stands before an operand which may fail says where that is evaluated, whatever follows from one behind.
        let last = if cond.may_fail() { Some(kept.len()) } else { kept.iter().rposition(|k| k.may_fail()) };
        let mut place = 0;
        kept.retain(|k| {
            place += 1;
            last.is_some_and(|last| place <= last + 1) || !goes(k, cond)
        });
        kept.push(cond);
    }
    if kept.len() == all.len() {
        return None;
    }
    let joined = kept.into_iter().cloned().reduce(|a, b| Expr::binary(*op, a, b));
    Some(joined.unwrap_or_else(|| Expr::bool(conjunction)))
}

/// `not` of a constant, of a `not`, and of a comparison of integers.
pub(super) fn reduce_not(_: &Analyzer, expr: &Expr) -> Option<Expr> {
    let Node::Not(inner) = expr.node() else { return None };
    if let Some(value) = inner.as_int().filter(|_| inner.dtype() == DType::Bool) {
        return Some(Expr::bool(value == 0));
    }
    match inner.node() {
        Node::Not(_) | Node::Binary(..) if inner.ty().is_scalar() => {
            let flipped = opposite(inner);
            (flipped != *expr).then_some(flipped)
        }
        _ => None,
    }
}

/// A condition that is known to hold, or not to, is a constant.
pub(super) fn apply_known_conditions(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    if expr.ty() != crate::Ty::scalar(DType::Bool) || expr.as_int().is_some() {
        return None;
    }
    analyzer.facts.truths.get(expr).map(|truth| Expr::bool(*truth))
}

/// `likely` of a constant is the constant, and one mark is enough.
pub(super) fn reduce_likely(_: &Analyzer, expr: &Expr) -> Option<Expr> {
    let Node::Call(Intrinsic::Likely, args) = expr.node() else { return None };
    let inner = args.first()?;
    let marked = matches!(inner.node(), Node::Call(Intrinsic::Likely, _));
    (inner.as_int().is_some() || marked).then(|| inner.clone())
}

/// A selection by a constant, or between equal arms, is an arm; a selection between true and false is the
/// condition.
pub(super) fn reduce_selection(_: &Analyzer, expr: &Expr) -> Option<Expr> {
    let (Node::Select(cond, a, b) | Node::IfThenElse(cond, a, b)) = expr.node() else { return None };
    if a == b {
        return Some(a.clone());
    }
    if expr.dtype() == DType::Bool && cond.ty() == expr.ty() {
        match (a.as_int(), b.as_int()) {
            (Some(1), Some(0)) => return Some(cond.clone()),
            (Some(0), Some(1)) => return Some(cond.clone().logical_not()),
            _ => {}
        }
    }
    let value = match cond.node() {
        Node::Broadcast(inner) => inner.as_int(),
        _ => cond.as_int(),
    }?;
    Some(if value != 0 { a.clone() } else { b.clone() })
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::expr::{BinaryOp, Expr, Var};
    use crate::simplify::Analyzer;

    #[test]
    fn what_guards_an_operand_that_may_fail_stays_whatever_follows_from_one_behind_it() {
        let (i, d) = (Var::new("i", DType::I32), Var::new("d", DType::I32));
        let below = |n: i128| Expr::binary(BinaryOp::Lt, i.expr(), Expr::int_of(n, DType::I32));
        let quotient = Expr::binary(BinaryOp::FloorDiv, Expr::int_of(12, DType::I32), d.expr());
        let divides = Expr::binary(BinaryOp::Gt, quotient, Expr::int_of(2, DType::I32));
        let simplified = |of: [&Expr; 3]| {
            let all = of.into_iter().cloned().reduce(Expr::and).unwrap();
            Analyzer::new().simplify(&all)
        };
        let guarded = simplified([&below(5), &divides, &below(3)]);
        assert_eq!(guarded, below(5).and(divides.clone()).and(below(3)));
        assert_eq!(simplified([&divides, &below(5), &below(3)]), divides.clone().and(below(3)));
        assert_eq!(simplified([&below(3), &divides, &below(5)]), below(3).and(divides.clone()));
        let any = below(3).or(divides.clone()).or(below(5));
        assert_eq!(
            Analyzer::new().simplify(&any),
            any,
            "of which the first says where the second is evaluated"
        );
    }
}
