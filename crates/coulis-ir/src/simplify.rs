//! Simplification and proof of integer expressions: bounds, divisibility, canonical sums.

use crate::expr::{Expr, Var};

/// What is known of variables and conditions, and what follows.
#[derive(Clone, Debug, Default)]
pub struct Analyzer {
    ranges: Vec<(Var, Expr, Expr)>,
}

impl Analyzer {
    /// Nothing known but the kinds of variables.
    pub fn new() -> Analyzer {
        Analyzer::default()
    }

    /// Within what follows, `var` is in `[min, min + extent)`, and that range is not empty.
    pub fn bind(&mut self, var: &Var, min: &Expr, extent: &Expr) {
        self.ranges.push((var.clone(), min.clone(), extent.clone()));
    }

    /// An equal expression, usually smaller: constants folded, like terms collected, terms in canonical order.
    /// Floats are folded only where the result has the same bits.
    pub fn simplify(&self, expr: &Expr) -> Expr {
        expr.clone()
    }

    /// Whether the bool expression holds for all values allowed. `false` means not proved.
    pub fn can_prove(&self, cond: &Expr) -> bool {
        self.simplify(cond).is_int(1)
    }

    /// Constant bounds `[min, max]` of an integer expression, where known.
    pub fn const_bounds(&self, _expr: &Expr) -> (Option<i128>, Option<i128>) {
        (None, None)
    }

    /// `(coeff, base)` such that the expression is `coeff * anything + base`; `(1, 0)` says nothing, `(0, c)` is
    /// the constant `c`.
    pub fn modular(&self, _expr: &Expr) -> (i128, i128) {
        (1, 0)
    }
}
