//! Floored quotients and remainders.

use super::Analyzer;
use super::poly::{floor_mod, gcd};
use super::sum::{Collect, Sum};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, Node};
use crate::op::floor_div;

/// A dividend split for a division by a constant: `divisor * quotient + rest`.
struct Division {
    quotient: Sum,
    rest: Sum,
}

/// The operands of a scalar floored division.
fn operands(expr: &Expr, wanted: BinaryOp) -> Option<(&Expr, &Expr)> {
    match expr.node() {
        Node::Binary(op, a, b) if *op == wanted && expr.ty().is_scalar() => Some((a, b)),
        _ => None,
    }
}

/// The expression as a quotient (or remainder) by a positive constant.
fn by_constant(expr: &Expr, wanted: BinaryOp) -> Option<(&Expr, i128)> {
    let (a, b) = operands(expr, wanted)?;
    Some((a, b.as_int().filter(|c| *c > 0)?))
}

impl Analyzer {
    /// Takes the terms that `divisor` divides out of the dividend. The rest's constant is between `-divisor` and
    /// `divisor`.
    fn divide(&self, dividend: &Expr, divisor: i128) -> Option<Division> {
        let sum = self.sum_of(dividend, Collect::Exact)?;
        let (mut quotient, mut rest) = (Sum::default(), Sum::default());
        for (expr, coeff) in &sum.terms {
            if coeff % divisor == 0 {
                quotient.push(expr, coeff / divisor)?;
            } else {
                rest.push(expr, *coeff)?;
            }
        }
        quotient.constant = sum.constant / divisor;
        rest.constant = sum.constant % divisor;
        Some(Division { quotient, rest })
    }

    /// What leaves the same remainder by `divisor`, of as few terms as are seen: without those that it divides, without whole
    /// turns of coefficients, and with the dividends of remainders by its multiples.
    pub(super) fn residue(&self, dividend: &Sum, divisor: i128) -> Option<Sum> {
        let mut reduced = Sum { terms: Vec::new(), constant: dividend.constant };
        for (term, coeff) in dividend.terms.iter().filter(|(_, coeff)| coeff % divisor != 0) {
            match by_constant(term, BinaryOp::FloorMod) {
                // The inner remainder differs from its dividend by multiples of `divisor` only.
                Some((x, m)) if coeff.checked_mul(m).is_some_and(|p| p % divisor == 0) => {
                    reduced.push_sum(&self.sum_of(x, Collect::Exact)?, *coeff)?;
                }
                _ => reduced.push(term, *coeff)?,
            }
        }
        for (_, coeff) in &mut reduced.terms {
            *coeff %= divisor;
        }
        reduced.constant %= divisor;
        reduced.tidy();
        Some(reduced)
    }

    /// Splits a rest into terms that a divisor of `divisor` divides and others that lie within one multiple of it:
    /// `(g, high, low)` with `rest = g * high + low` and `0 <= low < g`.
    fn split_digits(&self, rest: &Sum, divisor: i128) -> Option<(i128, Sum, Sum)> {
        let mut candidates: Vec<i128> =
            rest.terms.iter().map(|(_, c)| gcd(*c, divisor)).filter(|g| *g > 1).collect();
        candidates.sort_unstable();
        candidates.dedup();
        candidates.into_iter().rev().find_map(|g| {
            let (mut high, mut low) = (Sum::default(), Sum::default());
            for (expr, coeff) in &rest.terms {
                if coeff % g == 0 {
                    high.push(expr, coeff / g)?;
                } else {
                    low.push(expr, *coeff)?;
                }
            }
            low.constant = rest.constant;
            let turn = self.sum_interval(&low).floor_div(g).as_point()?;
            high.constant = turn;
            low.constant -= turn.checked_mul(g)?;
            Some((g, high, low))
        })
    }
}

/// `x // c` by a constant: terms that `c` divides leave the quotient, common factors cancel, and a rest that lies
/// within one multiple of `c`, by its bounds or by what conditions say, goes away.
pub(super) fn divide_by_constant(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    let (a, divisor) = by_constant(expr, BinaryOp::FloorDiv)?;
    let dtype = expr.dtype();
    if divisor == 1 {
        return Some(a.clone());
    }
    let Division { mut quotient, mut rest } = analyzer.divide(a, divisor)?;
    let (coeff, base) = analyzer.sum_modular(&Sum { terms: rest.terms.clone(), constant: 0 });
    if !rest.terms.is_empty() && coeff % divisor == 0 {
        // The terms are a multiple of the divisor and `base`: whatever is added is known to make a whole turn or not.
        let base = floor_mod(base, divisor);
        quotient.constant = quotient.constant.checked_add(floor_div(base + rest.constant, divisor))?;
        rest.constant = -base;
    }
    if let Some(value) = analyzer.sum_interval(&rest).floor_div(divisor).as_point() {
        quotient.constant = quotient.constant.checked_add(value)?;
        return analyzer.write_sum(&quotient, dtype);
    }
    if analyzer.is_known_digit(&rest, divisor, dtype) {
        return analyzer.write_sum(&quotient, dtype);
    }
    let (rest, divisor) = match analyzer.split_digits(&rest, divisor) {
        Some((g, high, _)) => (high, divisor / g),
        None => (rest, divisor),
    };
    let numerator = analyzer.write_exact(&rest, dtype)?;
    let last = match divisor {
        1 => numerator,
        _ => numerator.floordiv(Expr::int_of(divisor, dtype)),
    };
    if quotient.terms.is_empty() && quotient.constant == 0 {
        return Some(last);
    }
    quotient.push(&last, 1)?;
    analyzer.write_sum(&quotient, dtype)
}

/// `(x // b + k) // c` is `(x + k*b) // (b*c)`.
pub(super) fn join_nested_quotients(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    let (a, outer) = by_constant(expr, BinaryOp::FloorDiv)?;
    let sum = analyzer.sum_of(a, Collect::Exact)?;
    let [(inner, 1)] = sum.terms.as_slice() else { return None };
    let (x, divisor) = by_constant(inner, BinaryOp::FloorDiv)?;
    let both = divisor.checked_mul(outer)?;
    let shift = sum.constant.checked_mul(divisor)?;
    let (lo, hi) = expr.dtype().int_range()?;
    if both > hi || shift < lo || shift > hi {
        return None;
    }
    let number = |v| Expr::int_of(v, expr.dtype());
    let shifted = if shift == 0 { x.clone() } else { x.clone() + number(shift) };
    analyzer.is_exact(&shifted).then(|| shifted.floordiv(number(both)))
}

/// `x % c` by a constant: terms that `c` divides go away, common factors move out, and a rest within one multiple
/// of `c`, by its bounds or by what conditions say, is the remainder.
pub(super) fn remainder_by_constant(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    let (a, divisor) = by_constant(expr, BinaryOp::FloorMod)?;
    let dtype = expr.dtype();
    let mut rest = analyzer.residue(&analyzer.sum_of(a, Collect::Exact)?, divisor)?;
    if rest.terms.is_empty() {
        return analyzer
            .write_sum(&Sum { terms: Vec::new(), constant: floor_mod(rest.constant, divisor) }, dtype);
    }
    let (coeff, base) = analyzer.sum_modular(&rest);
    if coeff % divisor == 0 {
        return Some(Expr::int_of(floor_mod(base, divisor), dtype));
    }
    if let Some(turn) = analyzer.sum_interval(&rest).floor_div(divisor).as_point() {
        rest.constant = rest.constant.checked_sub(turn.checked_mul(divisor)?)?;
        return analyzer.write_sum(&rest, dtype);
    }
    if analyzer.is_known_digit(&rest, divisor, dtype) {
        return analyzer.write_sum(&rest, dtype);
    }
    let (g, high, low) =
        analyzer.split_digits(&rest, divisor).unwrap_or_else(|| (1, rest.clone(), Sum::default()));
    let digit = analyzer.write_exact(&high, dtype)?;
    let digit = match divisor / g {
        1 => Expr::int_of(0, dtype),
        m => digit.floormod(Expr::int_of(m, dtype)),
    };
    let mut result = low;
    match digit.as_int() {
        Some(value) => result.constant = result.constant.checked_add(value.checked_mul(g)?)?,
        None => result.push(&digit, g)?,
    }
    analyzer.write_sum(&result, dtype)
}

/// `(x // b) % d` is `x % (b*d) // b`.
pub(super) fn take_remainder_first(_: &Analyzer, expr: &Expr) -> Option<Expr> {
    let (a, d) = by_constant(expr, BinaryOp::FloorMod)?;
    let (x, b) = by_constant(a, BinaryOp::FloorDiv)?;
    let both = b.checked_mul(d).filter(|v| expr.dtype().int_range().is_some_and(|(_, hi)| *v <= hi))?;
    let number = |v| Expr::int_of(v, expr.dtype());
    Some(x.clone().floormod(number(both)).floordiv(number(b)))
}

/// A product without one factor `divisor`.
fn without_factor(analyzer: &Analyzer, product: &Expr, divisor: &Expr) -> Option<Expr> {
    if product == divisor {
        return Some(Expr::int_of(1, product.dtype()));
    }
    let Node::Binary(BinaryOp::Mul, a, b) = product.node() else { return None };
    if !analyzer.is_exact(product) {
        return None;
    }
    if let Some(rest) = without_factor(analyzer, a, divisor) {
        return Some(rest * b.clone());
    }
    without_factor(analyzer, b, divisor).map(|rest| a.clone() * rest)
}

impl Analyzer {
    /// Splits a dividend at the terms that have a non-constant divisor as a factor: `(quotient, rest)`.
    fn divide_by_expr(&self, dividend: &Expr, divisor: &Expr) -> Option<(Sum, Sum)> {
        let sum = self.sum_of(dividend, Collect::Exact)?;
        let (mut quotient, mut rest) = (Sum::default(), Sum { terms: Vec::new(), constant: sum.constant });
        for (term, coeff) in &sum.terms {
            match without_factor(self, term, divisor) {
                Some(factor) => match factor.as_int() {
                    Some(value) => {
                        quotient.constant = quotient.constant.checked_add(value.checked_mul(*coeff)?)?;
                    }
                    None => quotient.push(&factor, *coeff)?,
                },
                None => rest.push(term, *coeff)?,
            }
        }
        Some((quotient, rest))
    }

    /// Whether `0 <= value < divisor` is proved.
    fn is_digit(&self, value: &Expr, divisor: &Expr) -> bool {
        let zero = Expr::int_of(0, value.dtype());
        self.holds(BinaryOp::Ge, value, &zero) && self.holds(BinaryOp::Lt, value, divisor)
    }
}

impl Analyzer {
    /// Whether conditions say that `0 <= rest < divisor`, as the guard of a split says of what is left of a row.
    fn is_known_digit(&self, rest: &Sum, divisor: i128, dtype: DType) -> bool {
        let has_conditions = !self.facts.inequalities.is_empty();
        let value = has_conditions.then(|| self.write_exact(rest, dtype)).flatten();
        value.is_some_and(|value| self.is_digit(&value, &Expr::int_of(divisor, dtype)))
    }
}

/// `(q*d + r) // d` is `q + r // d`, and `r // d` is 0 where `r` is, or `0 <= r < d`.
pub(super) fn divide_by_expression(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    let (a, d) = operands(expr, BinaryOp::FloorDiv)?;
    if d.as_int().is_some() {
        return None;
    }
    let dtype = expr.dtype();
    let (mut quotient, rest) = analyzer.divide_by_expr(a, d)?;
    let rest = analyzer.write_exact(&rest, dtype)?;
    if !rest.is_int(0) && !analyzer.is_digit(&rest, d) {
        if quotient == Sum::default() {
            return None;
        }
        quotient.push(&rest.floordiv(d.clone()), 1)?;
    }
    analyzer.write_sum(&quotient, dtype)
}

/// `(q*d + r) % d` is `r % d`, and `r % d` is `r` where that is 0, or `0 <= r < d`.
pub(super) fn remainder_by_expression(analyzer: &Analyzer, expr: &Expr) -> Option<Expr> {
    let (a, d) = operands(expr, BinaryOp::FloorMod)?;
    if d.as_int().is_some() {
        return None;
    }
    let (quotient, rest) = analyzer.divide_by_expr(a, d)?;
    let rest = analyzer.write_exact(&rest, expr.dtype())?;
    if rest.is_int(0) || analyzer.is_digit(&rest, d) {
        return Some(rest);
    }
    (quotient != Sum::default()).then(|| rest.floormod(d.clone()))
}
