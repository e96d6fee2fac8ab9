//! Divisibility: which residue class an integer expression lies in.
//!
//! A class `(coeff, base)` holds the integers `coeff * anything + base`; `coeff` is at least 0, and `base` is in
//! `[0, coeff)` unless `coeff` is 0, which is the constant `base`.

use super::Analyzer;
use super::poly::{floor_mod, gcd};
use super::sum::Sum;
use crate::expr::{BinaryOp, Expr, Node};
use crate::op::floor_div;

/// `(coeff, base)`.
pub(crate) type Class = (i128, i128);

/// The class of every integer.
pub(crate) const ANY: Class = (1, 0);

/// The class in its canonical form.
fn class(coeff: i128, base: i128) -> Class {
    if coeff == 0 { (0, base) } else { (coeff, floor_mod(base, coeff)) }
}

fn sum_class((c, b): Class, (d, e): Class) -> Option<Class> {
    Some(class(gcd(c, d), b.checked_add(e)?))
}

fn product_class((c, b): Class, (d, e): Class) -> Option<Class> {
    let cross = gcd(c.checked_mul(e)?, b.checked_mul(d)?);
    Some(class(gcd(c.checked_mul(d)?, cross), b.checked_mul(e)?))
}

fn union_class((c, b): Class, (d, e): Class) -> Option<Class> {
    Some(class(gcd(gcd(c, d), b.checked_sub(e)?), b))
}

impl Analyzer {
    /// `(coeff, base)` such that the expression is `coeff * anything + base`; `(1, 0)` says nothing, `(0, c)` is
    /// the constant `c`.
    pub fn modular(&self, expr: &Expr) -> (i128, i128) {
        if !expr.ty().is_scalar() || expr.dtype().is_float() {
            return ANY;
        }
        if let Some(known) = self.found(expr, |found| found.class) {
            return known;
        }
        let found = self.class_of(expr).unwrap_or(ANY);
        self.note(expr, |known| known.class = Some(found));
        found
    }

    /// The class of a sum.
    pub(crate) fn sum_modular(&self, sum: &Sum) -> Class {
        let total = sum.terms.iter().try_fold((0, sum.constant), |total, (expr, coeff)| {
            sum_class(total, product_class(self.modular(expr), (0, *coeff))?)
        });
        total.unwrap_or(ANY)
    }

    fn class_of(&self, expr: &Expr) -> Option<Class> {
        match expr.node() {
            Node::Int(value) => Some((0, *value)),
            Node::Var(var) => {
                self.look_at(var);
                self.facts.vars.get(&var.id())?.class
            }
            Node::Cast(a) => {
                let same = self.interval(a).fits(expr.dtype());
                same.then(|| self.modular(a))
            }
            Node::Select(_, a, b) | Node::IfThenElse(_, a, b) => {
                union_class(self.modular(a), self.modular(b))
            }
            Node::Binary(op, a, b) => {
                let (x, y) = (self.modular(a), self.modular(b));
                match op {
                    BinaryOp::Add if self.is_exact(expr) => sum_class(x, y),
                    BinaryOp::Sub if self.is_exact(expr) => sum_class(x, product_class(y, (0, -1))?),
                    BinaryOp::Mul if self.is_exact(expr) => product_class(x, y),
                    BinaryOp::Min | BinaryOp::Max => union_class(x, y),
                    BinaryOp::FloorDiv => {
                        let c = b.as_int().filter(|c| *c > 0)?;
                        (x.0 % c == 0).then(|| class(x.0 / c, floor_div(x.1, c)))
                    }
                    BinaryOp::FloorMod => {
                        let c = b.as_int().filter(|c| *c > 0)?;
                        if x.0 % c == 0 {
                            return Some((0, floor_mod(x.1, c)));
                        }
                        Some(class(gcd(x.0, c), x.1))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
