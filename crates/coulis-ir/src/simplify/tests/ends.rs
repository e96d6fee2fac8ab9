//! What asks the analyzer comes to an end, in a number of steps that goes with the size of what it asks about.

use super::super::n_steps;
use super::random::Dice;
use crate::expr::{Expr, Var};
use crate::simplify::Analyzer;
use crate::{DType, Node};

/// Steps for one question about an expression of the greatest depth here.
const MOST_STEPS: u64 = 20_000;

/// Minima, maxima, floored quotients and remainders of each other, by sizes and what is made of them.
fn nested(dice: &mut Dice, leaves: &[Expr], depth: u32) -> Expr {
    if depth == 0 {
        return dice.of(leaves);
    }
    let (a, b) = (nested(dice, leaves, depth - 1), nested(dice, leaves, depth - 1));
    match dice.below(8) {
        0 => a.min(b),
        1 => a.max(b),
        2 => a.floordiv(b),
        3 => a.floormod(b),
        4 => a - b,
        5 => a + Expr::int(2),
        6 => (a + Expr::int(1)).floormod(dice.of(leaves)),
        _ => a * b,
    }
}

#[test]
fn questions_about_nested_extrema_and_quotients_by_sizes_end() {
    let (n, m) = (Var::size("n", DType::I32), Var::size("m", DType::I32));
    let [i, j] = ["i", "j"].map(|name| Var::new(name, DType::I32));
    let leaves: Vec<Expr> = [&n, &m, &i, &j].into_iter().map(Var::expr).chain([Expr::int(3)]).collect();
    let mut dice = Dice(7);
    for round in 0..600 {
        let mut known = Analyzer::new();
        known.bind(&i, &Expr::int(0), &n.expr());
        let depth = 1 + dice.below(5) as u32;
        let extent = nested(&mut dice, &leaves, depth);
        known.bind(&j, &Expr::int(0), &extent);
        let (a, b) = (nested(&mut dice, &leaves, depth), nested(&mut dice, &leaves, depth));
        let before = n_steps();
        let _ = known.can_prove(&a.clone().lt(b.clone()));
        let width = a.clone().max(b.clone()) - a.clone().min(b.clone()) + Expr::int(1);
        let simple = known.simplify(&width);
        let _ = known.const_bounds(&simple);
        let _ = known.with(&a.clone().le(b.clone())).can_prove(&extent.clone().gt(Expr::int(0)));
        let steps = n_steps() - before;
        assert!(steps < MOST_STEPS, "{steps} steps in round {round}: {a:?} and {b:?} in {extent:?}");
        assert!(!matches!(simple.node(), Node::Float(_)));
    }
}

#[test]
fn of_a_product_that_is_at_least_1_both_factors_are_where_one_is_not_negative() {
    let (n, m) = (Var::size("n", DType::I32), Var::size("m", DType::I32));
    let f = Var::new("f", DType::I32);
    let less = |var: &Var| var.expr() - Expr::int(2);
    let extent = less(&n).max(Expr::int(0)) * less(&m);
    let there = |var: &Var| var.expr().gt(Expr::int(2));
    let mut looped = Analyzer::new();
    looped.bind(&f, &Expr::int(0), &extent);
    let guarded = Analyzer::new().with(&f.expr().ge(Expr::int(0))).with(&f.expr().lt(extent.clone()));
    for known in [&looped, &guarded] {
        assert!(known.can_prove(&there(&n)) && known.can_prove(&there(&m)));
        assert!(known.can_prove(&f.expr().floordiv(less(&m)).lt(less(&n))));
        assert!(!known.can_prove(&n.expr().gt(Expr::int(3))));
    }
    // Both may be negative.
    let mut unknown = Analyzer::new();
    unknown.bind(&f, &Expr::int(0), &(less(&n) * less(&m)));
    assert!(!unknown.can_prove(&there(&n)) && !unknown.can_prove(&there(&m)));
}

#[test]
fn the_next_boundary_is_not_before_a_place_that_is_made_of_quotients() {
    // The quotient by 8 holds the others, and is bounded before they are.
    let (block, mut a) = (Var::new("block", DType::I64), Analyzer::new());
    let c = |n: i128| Expr::int_of(n, DType::I64);
    a.bind(&block, &c(0), &c(48));
    let (row, piece) = (block.expr().floormod(c(4)), block.expr().floordiv(c(4)));
    let place = row * c(166_836) + piece * c(13_903);
    let ahead = (place.clone() + c(7)).floordiv(c(8)) * c(8) - place;
    assert!(a.can_prove(&ahead.clone().ge(c(0))) && a.can_prove(&ahead.clone().lt(c(8))));
    assert!(!a.can_prove(&ahead.ge(c(1))), "a place may be a boundary");
}
