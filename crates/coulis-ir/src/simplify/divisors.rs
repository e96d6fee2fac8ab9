//! Divisors that may be 0.
//!
//! An integer that is divided by 0 ends a call with an error. So a division by what may be 0 is an effect that no
//! rewrite loses, whatever is made of its result: `x // x` is no 1, `x // y * 0` no 0. One that was carried out
//! before had a divisor other than 0, and is not needed again.

use std::rc::Rc;

use super::{Analyzer, logic};
use crate::expr::{BinaryOp, Expr, Node};

impl Analyzer {
    /// Whether `after` divides by all that `before` divides by and that may be 0.
    pub(super) fn keeps_divisors(&self, before: &Expr, after: &Expr) -> bool {
        if !before.divides() {
            return true;
        }
        let wanted = self.open_divisors(before);
        wanted.is_empty() || {
            let kept = self.open_divisors(after);
            wanted.iter().all(|divisor| kept.contains(divisor))
        }
    }

    /// Whether a condition holds wherever the divisions in it are carried out.
    pub(super) fn holds_once_divided(&self, cond: &Expr) -> bool {
        match cond.node() {
            Node::Binary(BinaryOp::And, a, b) => self.holds_once_divided(a) && self.holds_once_divided(b),
            Node::Binary(BinaryOp::Or, a, b) => self.holds_once_divided(a) || self.holds_once_divided(b),
            Node::Binary(op, a, b) if cond.divides() => self.holds(*op, a, b),
            _ => cond.is_int(1),
        }
    }

    /// Whether the bool expression fails for all values allowed for which it has a value: where it is computed, nothing that it
    /// divides by is 0. `false` means not proved.
    pub fn can_refute(&self, cond: &Expr) -> bool {
        let cond = logic::without_likely(cond);
        self.simplify(cond).is_int(0) || (cond.divides() && self.can_prove(&cond.clone().logical_not()))
    }

    /// Divisors of what is computed in any case with the expression, as far as they may be 0.
    pub(super) fn open_divisors(&self, expr: &Expr) -> Rc<Vec<Expr>> {
        if !expr.divides() {
            return Rc::default();
        }
        if let Some(known) = self.found(expr, |found| found.open_divisors.clone()) {
            return known;
        }
        let mut all = Vec::new();
        each_computed(expr, &mut |e| all.extend(self.open_divisors(e).iter().cloned()));
        if let Some(divisor) = expr.divisor().map(one_lane)
            && !self.is_nonzero(divisor)
        {
            all.push(divisor.clone());
        }
        let all = Rc::new(all);
        self.note(expr, |found| found.open_divisors = Some(all.clone()));
        all
    }

    /// What was computed divided by nothing that is 0.
    pub(super) fn take_as_divided(&mut self, computed: &Expr) {
        for divisor in self.open_divisors(computed).iter().filter(|divisor| divisor.ty().is_scalar()) {
            self.take_as_nonzero(divisor);
        }
    }

    /// An integer is not 0, and so no factor of it is.
    pub(super) fn take_as_nonzero(&mut self, expr: &Expr) {
        if let Node::Binary(BinaryOp::Mul, a, b) = expr.node() {
            self.take_as_nonzero(a);
            self.take_as_nonzero(b);
        }
        if expr.as_int().is_none() {
            let zero = Expr::int_of(0, expr.dtype());
            Rc::make_mut(&mut self.facts_mut().truths).insert(expr.clone().not_equal(zero), true);
            self.forget();
        }
    }

    /// Whether an integer is known not to be 0.
    fn is_nonzero(&self, expr: &Expr) -> bool {
        if let Some(value) = expr.as_int() {
            return value != 0;
        }
        let zero = Expr::int_of(0, expr.dtype());
        let is_known = || self.facts.truths.get(&expr.clone().not_equal(zero.clone())) == Some(&true);
        let interval = self.interval(expr);
        interval.at_least(1) || interval.at_most(-1) || is_known() || self.holds(BinaryOp::Ne, expr, &zero)
    }
}

/// The scalar that every lane of the expression is, where there is one.
fn one_lane(expr: &Expr) -> &Expr {
    match expr.node() {
        Node::Broadcast(scalar) => scalar,
        _ => expr,
    }
}

/// Calls `f` on the operands that are computed whatever the others are.
fn each_computed(expr: &Expr, f: &mut impl FnMut(&Expr)) {
    match expr.node() {
        Node::IfThenElse(cond, ..) => f(cond),
        Node::Binary(BinaryOp::And | BinaryOp::Or, first, _) => f(first),
        _ => expr.each_child(f),
    }
}
