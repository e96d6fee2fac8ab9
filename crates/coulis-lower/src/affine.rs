//! Sums and products with constants folded, and splitting of an index into `coeff * var + rest`.
//!
//! Index arithmetic does not overflow (contract N6: it is 64 bits wide unless a check at launch holds), so a split
//! looks through widening casts of integers.

use coulis_ir::DType;
use coulis_ir::expr::{BinaryOp, Expr, Node, Var};
use coulis_ir::index::fold_binary;
use coulis_ir::visit::uses_any;

/// `a + b`, folded where one is 0 or both are constants.
pub fn sum(a: Expr, b: Expr) -> Expr {
    fold_binary(BinaryOp::Add, a, b)
}

/// `a - b`, folded where `b` is 0, both are constants, or both are the same.
pub fn difference(a: Expr, b: Expr) -> Expr {
    if a == b { Expr::int_of(0, a.dtype()) } else { fold_binary(BinaryOp::Sub, a, b) }
}

/// `a * b`, folded where one is 0 or 1 or both are constants.
pub fn product(a: Expr, b: Expr) -> Expr {
    fold_binary(BinaryOp::Mul, a, b)
}

/// An integer converted to `dtype`, constants folded.
pub fn widen(a: Expr, dtype: DType) -> Expr {
    match a.as_int() {
        Some(value) => Expr::int_of(value, dtype),
        None => a.cast(dtype),
    }
}

/// `coeff * var + rest`, where neither part contains the variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affine {
    /// Factor of the variable; the constant 0 where it does not occur.
    pub coeff: Expr,
    /// What remains.
    pub rest: Expr,
}

/// Splits a scalar integer expression by `var`; `None` where it is not affine in it.
pub fn split(expr: &Expr, var: &Var) -> Option<Affine> {
    let dtype = expr.dtype();
    if !expr.ty().is_scalar() || !dtype.is_int() {
        return None;
    }
    let zero = || Expr::int_of(0, dtype);
    if expr.as_var() == Some(var) {
        return Some(Affine { coeff: Expr::int_of(1, dtype), rest: zero() });
    }
    if !uses(expr, var) {
        return Some(Affine { coeff: zero(), rest: expr.clone() });
    }
    match expr.node() {
        Node::Binary(BinaryOp::Add, a, b) => {
            let (a, b) = (split(a, var)?, split(b, var)?);
            Some(Affine { coeff: sum(a.coeff, b.coeff), rest: sum(a.rest, b.rest) })
        }
        Node::Binary(BinaryOp::Sub, a, b) => {
            let (a, b) = (split(a, var)?, split(b, var)?);
            Some(Affine { coeff: difference(a.coeff, b.coeff), rest: difference(a.rest, b.rest) })
        }
        Node::Binary(BinaryOp::Mul, a, b) => {
            let (inner, factor) = if uses(b, var) { (b, a) } else { (a, b) };
            if uses(factor, var) {
                return None;
            }
            let inner = split(inner, var)?;
            Some(Affine {
                coeff: product(inner.coeff, factor.clone()),
                rest: product(inner.rest, factor.clone()),
            })
        }
        Node::Cast(inner) if inner.dtype().is_int() && inner.dtype().bytes() <= dtype.bytes() => {
            let inner = split(inner, var)?;
            Some(Affine { coeff: widen(inner.coeff, dtype), rest: widen(inner.rest, dtype) })
        }
        _ => None,
    }
}

/// Whether `var` occurs in the expression.
pub fn uses(expr: &Expr, var: &Var) -> bool {
    uses_any(expr, std::slice::from_ref(var))
}

/// The parts of a conjunction, in order; marks of likelihood are looked through.
pub fn conjuncts(cond: &Expr) -> Vec<Expr> {
    match cond.node() {
        Node::Binary(BinaryOp::And, a, b) => [conjuncts(a), conjuncts(b)].concat(),
        Node::Call(coulis_ir::Intrinsic::Likely, args) => conjuncts(&args[0]),
        _ => vec![cond.clone()],
    }
}

/// A comparison of signed integers as `lhs - rhs < 0`; `None` for anything else.
fn as_negative(cond: &Expr) -> Option<(Expr, Expr)> {
    let Node::Binary(op, a, b) = cond.node() else { return None };
    if !a.dtype().is_signed_int() || !a.ty().is_scalar() {
        return None;
    }
    let one = Expr::int_of(1, a.dtype());
    match op {
        BinaryOp::Lt => Some((a.clone(), b.clone())),
        BinaryOp::Gt => Some((b.clone(), a.clone())),
        BinaryOp::Le => Some((a.clone(), sum(b.clone(), one))),
        BinaryOp::Ge => Some((b.clone(), sum(a.clone(), one))),
        _ => None,
    }
}

/// `lhs < rhs` with the one quotient by a constant taken apart whose dividend contains `var`: `x // c + r < n` is
/// `x < (n - r) * c`. As it stands where there is none.
fn without_quotient((lhs, rhs): (Expr, Expr), var: &Var) -> (Expr, Expr) {
    fn take(expr: &Expr, var: &Var) -> Option<(Expr, Expr, Expr)> {
        let zero = Expr::int_of(0, expr.dtype());
        match expr.node() {
            Node::Binary(BinaryOp::FloorDiv, x, c) if c.as_int().is_some_and(|c| c > 0) => {
                Some((x.clone(), c.clone(), zero))
            }
            Node::Binary(BinaryOp::Add, a, b) => {
                let (with, other) = if uses(a, var) { (a, b) } else { (b, a) };
                let (x, c, rest) = take(with, var).filter(|_| !uses(other, var))?;
                Some((x, c, sum(rest, other.clone())))
            }
            Node::Binary(BinaryOp::Sub, a, b) if !uses(b, var) => {
                let (x, c, rest) = take(a, var)?;
                Some((x, c, difference(rest, b.clone())))
            }
            _ => None,
        }
    }
    match take(&lhs, var).filter(|_| uses(&lhs, var) && !uses(&rhs, var)) {
        Some((x, c, rest)) => (x, product(difference(rhs, rest), c)),
        None => (lhs, rhs),
    }
}

/// A comparison of signed integers that holds where `step * var + left < right`; no part contains the variable, and `step` is not 0.
pub struct Comparison {
    /// Factor of the variable.
    pub step: i128,
    /// What is added to that.
    pub left: Expr,
    /// What the sum is less than.
    pub right: Expr,
}

impl Comparison {
    /// The condition as one of the variable; `None` for anything else.
    pub fn of(cond: &Expr, var: &Var) -> Option<Comparison> {
        let (lhs, rhs) = without_quotient(as_negative(cond)?, var);
        let (lhs, rhs) = (split(&lhs, var)?, split(&rhs, var)?);
        let step = difference(lhs.coeff, rhs.coeff).as_int().filter(|step| *step != 0)?;
        Some(Comparison { step, left: lhs.rest, right: rhs.rest })
    }

    /// The first value of the variable for which it fails, or where `step` is negative for which it holds, with these for `left` and
    /// `right`.
    pub fn cut(&self, left: Expr, right: Expr) -> Expr {
        let (by, dtype) = (self.step.abs(), left.dtype());
        let int = |n: i128| Expr::int_of(n, dtype);
        let quotient = |e: Expr| if by == 1 { e } else { e.floordiv(int(by)) };
        match self.step > 0 {
            true => quotient(sum(difference(right, left), int(by - 1))),
            false => sum(quotient(difference(left, right)), int(1)),
        }
    }
}

/// `(x, c)` where the expression is `(x + (c - 1)) // c`.
pub fn ceil_quotient(expr: &Expr) -> Option<(Expr, i128)> {
    let (sum, by) = floor_quotient(expr)?;
    match sum.node() {
        Node::Binary(BinaryOp::Add, x, less) if less.is_int(by - 1) => Some((x.clone(), by)),
        _ => None,
    }
}

/// `(x, c)` where the expression is `x // c`.
pub fn floor_quotient(expr: &Expr) -> Option<(Expr, i128)> {
    match expr.node() {
        Node::Binary(BinaryOp::FloorDiv, x, by) => by.as_int().filter(|c| *c > 1).map(|by| (x.clone(), by)),
        _ => None,
    }
}

/// Whether `x // c <= (x + (c - 1)) // c` says that the first is at most the second.
pub fn is_part_of(part: &Expr, whole: &Expr) -> bool {
    matches!((floor_quotient(part), ceil_quotient(whole)), (Some(a), Some(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_splits_into_coefficient_and_rest() {
        let (i, k, s) =
            (Var::new("i", DType::I32), Var::new("k", DType::I32), Var::new("stride", DType::I32));
        let (i, s) = (i.expr(), s.expr());
        let index = i.clone() * s.clone() + (Expr::int(3) + k.expr() * Expr::int(4)) * s.clone();
        let found = split(&index, &k).unwrap();
        assert_eq!(found.coeff, Expr::int(4) * s.clone());
        assert_eq!(found.rest, i * s.clone() + Expr::int(3) * s);
    }

    #[test]
    fn products_of_the_variable_with_itself_are_not_affine() {
        let k = Var::new("k", DType::I32);
        assert_eq!(split(&(k.expr() * k.expr()), &k), None);
        assert_eq!(split(&k.expr().floordiv(Expr::int(2)), &k), None);
    }

    #[test]
    fn a_bound_on_a_quotient_is_one_on_its_dividend() {
        let (i, k) = (Var::new("i", DType::I64), Var::new("k", DType::I64));
        let int = |n| Expr::int_of(n, DType::I64);
        let x = k.expr() + int(3);
        let found = without_quotient((i.expr() * int(9) + x.clone().floordiv(int(7)), int(100)), &k);
        assert_eq!(found, (x.clone(), (int(100) - i.expr() * int(9)) * int(7)));
        for kept in [
            (x.clone(), int(9)),
            (x.clone().floordiv(int(7)) * int(2), int(9)),
            (i.expr(), x.floordiv(int(7))),
        ] {
            assert_eq!(without_quotient(kept.clone(), &k), kept);
        }
    }

    #[test]
    fn splitting_looks_through_widening_casts() {
        let k = Var::new("k", DType::I32);
        let found = split(&((k.expr() + Expr::int(2)).cast(DType::I64)), &k).unwrap();
        assert_eq!(found.coeff, Expr::int_of(1, DType::I64));
        assert_eq!(found.rest, Expr::int_of(2, DType::I64));
    }
}
