//! Tests of the simplifier: the written forms, the proofs that lowering needs, and evaluation of random expressions
//! before and after.

mod divisors;
mod ends;
mod forms;
mod random;

use super::Analyzer;
use crate::{DType, Expr, Var};

#[test]
fn an_analyzer_knows_nothing_of_those_whose_memory_it_has() {
    let i = Var::new("i", DType::I32);
    let cond = i.expr().lt(Expr::int(8));
    for extent in [8, 9, 4, 100] {
        let mut known = Analyzer::new();
        known.bind(&i, &Expr::int(0), &Expr::int(extent));
        // Many more, so that tables grow and are found by hash.
        let all: Vec<Expr> =
            (0..40).map(|n| known.simplify(&(i.expr() * Expr::int(3) + Expr::int(n)))).collect();
        assert_eq!(known.can_prove(&cond), extent <= 8, "{extent}");
        assert_eq!(known.const_bounds(&all[39]), (Some(39), Some(3 * i128::from(extent) + 36)));
    }
    assert!(!Analyzer::new().can_prove(&cond));
}

#[test]
fn a_copy_that_learns_leaves_the_other_as_it_was() {
    let [i, j] = ["i", "j"].map(|name| Var::new(name, DType::I32));
    let mut known = Analyzer::new();
    known.bind(&i, &Expr::int(0), &Expr::int(16));
    let mut inner = known.clone();
    inner.bind(&j, &Expr::int(0), &i.expr());
    inner.assume(&i.expr().lt(Expr::int(4)));
    assert!(inner.can_prove(&j.expr().lt(Expr::int(3))) && inner.can_prove(&i.expr().lt(Expr::int(4))));
    assert!(!known.can_prove(&j.expr().lt(Expr::int(3))) && !known.can_prove(&i.expr().lt(Expr::int(4))));
    assert!(known.can_prove(&i.expr().lt(Expr::int(16))));
}
