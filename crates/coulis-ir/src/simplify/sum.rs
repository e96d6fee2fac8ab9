//! Canonical sums: how `+ - *` of scalar integers are written.
//!
//! A sum is a list of terms, each an expression times a constant, and a constant. It is written with larger
//! constant multipliers first and the constant last. Terms of one multiplier other than 1 stand in loop order, what
//! depends on no loop first; so do plain loop variables of multiplier 1; other terms stay in the order in which they
//! were written. A product of two expressions is one term, and its factors are not multiplied out.
//!
//! Source: the canonical forms of seed 003's listings.

use super::Analyzer;
use super::interval::Interval;
use super::poly::gcd;
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, Node, Var};

/// Which operations are looked into when terms are collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collect {
    /// All; equal modulo the type's width.
    Modular,
    /// Those that cannot wrap; equal as mathematical integers.
    Exact,
}

/// A constant plus constant multiples of expressions, in order of first occurrence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    /// Expressions and their multipliers.
    pub terms: Vec<(Expr, i128)>,
    /// What stands last.
    pub constant: i128,
}

impl Sum {
    /// Adds `expr * coeff`; `None` on overflow.
    pub fn push(&mut self, expr: &Expr, coeff: i128) -> Option<()> {
        match self.terms.iter_mut().find(|(e, _)| e == expr) {
            Some((_, c)) => *c = c.checked_add(coeff)?,
            None => self.terms.push((expr.clone(), coeff)),
        }
        Some(())
    }

    /// Adds `other * factor`.
    pub fn push_sum(&mut self, other: &Sum, factor: i128) -> Option<()> {
        for (expr, coeff) in &other.terms {
            self.push(expr, coeff.checked_mul(factor)?)?;
        }
        self.constant = self.constant.checked_add(other.constant.checked_mul(factor)?)?;
        Some(())
    }

    /// Drops terms of multiplier 0.
    pub fn tidy(&mut self) {
        self.terms.retain(|(_, c)| *c != 0);
    }

    /// Greatest common divisor of the multipliers; 0 without terms.
    pub fn common_divisor(&self) -> i128 {
        self.terms.iter().fold(0, |g, (_, c)| gcd(g, *c))
    }
}

impl Analyzer {
    /// The terms of a scalar integer expression. `None` when a multiplier leaves the type's range.
    pub(crate) fn sum_of(&self, expr: &Expr, how: Collect) -> Option<Sum> {
        let mut sum = Sum::default();
        self.collect(expr, 1, how, &mut sum)?;
        sum.tidy();
        Some(sum)
    }

    fn collect(&self, expr: &Expr, factor: i128, how: Collect, sum: &mut Sum) -> Option<()> {
        match expr.node() {
            Node::Int(value) => {
                sum.constant = sum.constant.checked_add(value.checked_mul(factor)?)?;
                Some(())
            }
            Node::Binary(op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul), a, b)
                if how == Collect::Modular || self.is_exact(expr) =>
            {
                match (op, a.as_int(), b.as_int()) {
                    (BinaryOp::Add, _, _) => {
                        self.collect(a, factor, how, sum)?;
                        self.collect(b, factor, how, sum)
                    }
                    (BinaryOp::Sub, _, _) => {
                        self.collect(a, factor, how, sum)?;
                        self.collect(b, factor.checked_neg()?, how, sum)
                    }
                    (_, Some(c), _) => self.collect(b, factor.checked_mul(c)?, how, sum),
                    (_, None, Some(c)) => self.collect(a, factor.checked_mul(c)?, how, sum),
                    (_, None, None) => sum.push(expr, factor),
                }
            }
            _ => sum.push(expr, factor),
        }
    }

    /// Where the sum lies, term by term.
    pub(crate) fn sum_interval(&self, sum: &Sum) -> Interval {
        sum.terms.iter().fold(Interval::point(sum.constant), |total, (expr, coeff)| {
            total.add(self.interval(expr).mul(Interval::point(*coeff)))
        })
    }

    /// The position of a bound variable.
    fn order_of(&self, var: &Var) -> Option<usize> {
        self.facts.vars.get(&var.id())?.order
    }

    /// The loop that the expression depends on, counted from the outermost; `None` where it depends on none.
    pub(crate) fn loop_depth(&self, expr: &Expr) -> Option<usize> {
        if !expr.names().may_meet(self.facts.ordered) {
            return None;
        }
        match expr.node() {
            Node::Var(var) => self.order_of(var),
            _ => expr.children().filter_map(|child| self.loop_depth(child)).max(),
        }
    }

    /// Puts the terms into the order in which they are written.
    fn arrange(&self, sum: &mut Sum) {
        sum.terms.sort_by_key(|(_, coeff)| std::cmp::Reverse(*coeff));
        let mut start = 0;
        while start < sum.terms.len() {
            let coeff = sum.terms[start].1;
            let len = sum.terms[start..].iter().take_while(|(_, c)| *c == coeff).count();
            let run = &mut sum.terms[start..start + len];
            if len > 1 {
                let movable = |e: &Expr| {
                    let product = matches!(e.node(), Node::Binary(BinaryOp::Mul, ..));
                    let loop_var = e.as_var().is_some_and(|v| self.order_of(v).is_some());
                    if coeff == 1 { loop_var } else { !product }
                };
                let places: Vec<usize> = (0..len).filter(|i| movable(&run[*i].0)).collect();
                let mut moved: Vec<Expr> = places.iter().map(|i| run[*i].0.clone()).collect();
                moved.sort_by_cached_key(|e| self.loop_depth(e));
                for (place, expr) in places.into_iter().zip(moved) {
                    run[place].0 = expr;
                }
            }
            start += len;
        }
    }

    /// Writes a sum that cannot wrap, as a dividend or an operand of a comparison.
    pub(crate) fn write_exact(&self, sum: &Sum, dtype: DType) -> Option<Expr> {
        let expr = self.write_sum(sum, dtype)?;
        let mut exact = true;
        let mut below = vec![&expr];
        while let Some(e) = below.pop() {
            if let Node::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, a, b) = e.node() {
                exact &= self.is_exact(e);
                below.extend([a, b]);
            }
        }
        exact.then_some(expr)
    }

    /// Writes a sum of values of `dtype`. `None` when a number in it is not one of `dtype`.
    pub(crate) fn write_sum(&self, sum: &Sum, dtype: DType) -> Option<Expr> {
        let mut sum = sum.clone();
        sum.tidy();
        self.arrange(&mut sum);
        let (lo, hi) = dtype.int_range()?;
        let legal = |v: i128| lo < v && v <= hi;
        if !sum.terms.iter().all(|(_, c)| legal(*c)) || !(legal(sum.constant) || sum.constant == lo) {
            return None;
        }
        let number = |v: i128| Expr::int_of(v, dtype);
        let times = |e: &Expr, c: i128| if c == 1 { e.clone() } else { e.clone() * number(c) };
        let leading_constant = sum.constant > 0 && sum.terms.first().is_some_and(|(_, c)| *c < 0);
        let mut text: Option<Expr> = leading_constant.then(|| number(sum.constant));
        for (expr, coeff) in &sum.terms {
            text = Some(match text {
                None => times(expr, *coeff),
                Some(before) if *coeff < 0 => before - times(expr, -*coeff),
                Some(before) => before + times(expr, *coeff),
            });
        }
        Some(match text {
            None => number(sum.constant),
            Some(before) if leading_constant || sum.constant == 0 => before,
            Some(before) if sum.constant < 0 && sum.constant != lo => before - number(-sum.constant),
            Some(before) => before + number(sum.constant),
        })
    }
}

/// Whether sums of this type are rewritten: signed 32 and 64 bit integers, by themselves.
pub(crate) fn has_sums(expr: &Expr) -> bool {
    expr.ty().is_scalar() && matches!(expr.dtype(), DType::I32 | DType::I64)
}

/// Collects like terms of `+ - *` and writes them in canonical order; quotients and remainders of one value are
/// joined.
pub(super) fn write_sums_canonically(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    let arithmetic = matches!(expr.node(), Node::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, ..));
    if !has_sums(expr) || !arithmetic || is_canonical(expr) {
        return None;
    }
    let mut sum = analyzer.sum_of(expr, Collect::Modular)?;
    while join_quotients(analyzer, &mut sum)? {}
    analyzer.write_sum(&sum, expr.dtype())
}

/// Whether it is a variable, or something else that is no arithmetic, plus or times a constant that changes it: most are.
fn is_canonical(expr: &Expr) -> bool {
    let Node::Binary(op, a, b) = expr.node() else { return false };
    let is_term = !matches!(a.node(), Node::Binary(..) | Node::Int(_));
    let constant = b.as_int().filter(|_| is_term);
    let least = if *op == BinaryOp::Mul { 2 } else { 1 };
    constant.is_some_and(|c| c >= least)
}

/// `x // c * (k*c) + x % c * k` is `x * k`, and `x // m * (k*m/b) + (x % m) // b * k` is `x // b * k`; `x // c * c`
/// is `x` where `c` divides it. In the first the remainder may be that of another dividend which leaves the same. Whether
/// something changed.
fn join_quotients(analyzer: &Analyzer, sum: &mut Sum) -> Option<bool> {
    let parts = |e: &Expr, wanted: BinaryOp| match e.node() {
        Node::Binary(op, x, c) if *op == wanted => c.as_int().filter(|c| *c > 0).map(|c| (x.clone(), c)),
        _ => None,
    };
    for i in 0..sum.terms.len() {
        let (term, k) = sum.terms[i].clone();
        if let Some((x, c)) = parts(&term, BinaryOp::FloorDiv)
            && k % c == 0
        {
            let (coeff, base) = analyzer.modular(&x);
            let base = if coeff == 0 { base.rem_euclid(c) } else { base };
            if coeff % c == 0 && base == 0 {
                sum.terms[i].1 = 0;
                analyzer.collect(&x, k / c, Collect::Modular, sum)?;
                sum.tidy();
                return Some(true);
            }
        }
        let joined = match parts(&term, BinaryOp::FloorMod) {
            Some((x, c)) => Some((x.clone(), x, c, c)),
            None => parts(&term, BinaryOp::FloorDiv).and_then(|(inner, b)| {
                let (x, m) = parts(&inner, BinaryOp::FloorMod)?;
                let whole = x.clone().floordiv(Expr::int_of(b, x.dtype()));
                (m % b == 0).then_some((x, whole, m, m / b))
            }),
        };
        let Some((x, whole, m, ratio)) = joined else { continue };
        let quotient = x.clone().floordiv(Expr::int_of(m, x.dtype()));
        let Some(wanted) = k.checked_mul(ratio) else { continue };
        if let Some(j) = sum.terms.iter().position(|(e, c)| *e == quotient && *c == wanted) {
            sum.terms[i].1 = 0;
            sum.terms[j].1 = 0;
            analyzer.collect(&whole, k, Collect::Modular, sum)?;
            sum.tidy();
            return Some(true);
        }
        if let Some((y, c)) = parts(&term, BinaryOp::FloorMod)
            && let Some((j, x)) = sum.terms.iter().enumerate().find_map(|(j, (e, found))| {
                let (x, by) = parts(e, BinaryOp::FloorDiv)?;
                (by == c && *found == wanted && are_congruent(analyzer, &x, &y, c)?).then_some((j, x))
            })
        {
            sum.terms[i].1 = 0;
            sum.terms[j].1 = 0;
            analyzer.collect(&x, k, Collect::Modular, sum)?;
            sum.tidy();
            return Some(true);
        }
    }
    sum.tidy();
    Some(false)
}

/// Whether `x - y` is seen to be a multiple of `c`: what is left of a dividend where only its remainder counts.
fn are_congruent(analyzer: &Analyzer, x: &Expr, y: &Expr, c: i128) -> Option<bool> {
    let mut apart = analyzer.sum_of(x, Collect::Exact)?;
    apart.push_sum(&analyzer.sum_of(y, Collect::Exact)?, -1)?;
    Some(analyzer.residue(&apart, c)? == Sum::default())
}

/// Moves constant factors out of a product: `(x * 2) * y` is `x * y * 2`.
pub(super) fn move_factors_out(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    let Node::Binary(BinaryOp::Mul, a, b) = expr.node() else { return None };
    if !has_sums(expr) || a.as_int().is_some() || b.as_int().is_some() {
        return None;
    }
    let strip = |e: &Expr| {
        let sum = analyzer.sum_of(e, Collect::Modular)?;
        match sum.terms.as_slice() {
            [(inner, c)] if sum.constant == 0 && *c != 1 => Some((inner.clone(), *c)),
            _ => Some((e.clone(), 1)),
        }
    };
    let ((x, c), (y, d)) = (strip(a)?, strip(b)?);
    let factor = c.checked_mul(d)?;
    if factor == 1 || !Interval::point(factor).fits(expr.dtype()) {
        return None;
    }
    Some((x * y) * Expr::int_of(factor, expr.dtype()))
}
