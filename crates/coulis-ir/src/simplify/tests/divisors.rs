//! Divisions by what may be 0 stay.

use super::random::{Dice, lanes, world};
use crate::buffer::{Buffer, MemScope};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, Var};
use crate::simplify::Analyzer;

const DIVISIONS: [BinaryOp; 4] = [BinaryOp::Div, BinaryOp::TruncMod, BinaryOp::FloorDiv, BinaryOp::FloorMod];

/// Expressions of `x` whose value takes no division by it, and that divide by it all the same.
fn of_no_need(x: &Expr) -> Vec<Expr> {
    let c = Expr::int;
    let mut all = Vec::new();
    for op in DIVISIONS {
        let by_x = |dividend: Expr| Expr::binary(op, dividend, x.clone());
        all.extend([x.clone(), x * &c(6), x * &(x + &c(1)), c(0), c(7)].map(by_x));
        let quotient = by_x(c(7));
        all.extend([
            quotient.clone() * c(0),
            quotient.clone() - quotient.clone(),
            quotient.clone().floormod(c(1)),
            (quotient.clone() * c(4)).floormod(c(4)),
            quotient.clone().equal(quotient.clone()).cast(DType::I32),
            quotient.clone().max(quotient.clone() + c(1)),
            Expr::select(Expr::bool(true), c(1), quotient.clone()),
            (quotient.clone() * c(0)).broadcast_to(4),
            (c(0).floordiv(x.clone()) + by_x(x.clone())).broadcast_to(4),
        ]);
    }
    all
}

#[test]
fn a_division_by_what_may_be_zero_stays() {
    let table = Buffer::new("A", DType::I32, vec![Expr::int(8)], MemScope::Global);
    for x in [Var::size("n", DType::I32).expr(), table.at([Expr::int(3)])] {
        for expr in of_no_need(&x) {
            let simple = Analyzer::new().simplify(&expr);
            assert!(simple.divides(), "{expr:?} became {simple:?}");
        }
    }
}

#[test]
fn a_division_by_what_is_known_not_to_be_zero_goes() {
    let (n, i) = (Var::size("n", DType::I32), Var::new("i", DType::I32));
    let zero = Expr::int(0);
    let check = |known: &Analyzer| {
        for (op, want) in DIVISIONS.into_iter().zip([None, None, Some(1), Some(0)]) {
            let simple = known.simplify(&Expr::binary(op, n.expr(), n.expr()));
            assert!(want.is_none_or(|want| simple.is_int(want)), "{op:?} is {simple:?}");
        }
    };
    check(&Analyzer::new().with(&n.expr().not_equal(zero.clone())));
    check(&Analyzer::new().with(&n.expr().gt(zero.clone())));
    // What was computed before did not fail.
    check(&Analyzer::new().with(&i.expr().lt(Expr::int(9).floordiv(n.expr()))));
    for extent in [n.expr(), n.expr() * Expr::int(3), Expr::int(9).floormod(n.expr()) + Expr::int(1)] {
        let mut known = Analyzer::new();
        known.bind(&i, &zero, &extent);
        check(&known);
    }
    let guarded = Expr::if_then_else(n.expr().not_equal(zero.clone()), n.expr().floordiv(n.expr()), zero);
    let chosen = Analyzer::new().simplify(&guarded);
    assert!(!chosen.divides(), "{chosen:?}");
}

#[test]
fn what_divides_by_zero_does_so_when_it_is_simplified() {
    let world = world();
    let mut dice = Dice(7);
    let mut n_failing = 0;
    for _ in 0..3_000 {
        let expr = divided(&world.some_ints(), &mut dice, 3);
        let simple = world.analyzer.simplify(&expr);
        for _ in 0..12 {
            let values = world.values(&mut dice);
            if lanes(&expr, &values).is_none() {
                n_failing += 1;
                assert_eq!(lanes(&simple, &values), None, "{expr:?} became {simple:?} with {values:?}");
            }
        }
    }
    assert!(n_failing > 1_000, "{n_failing}");
}

/// A random expression with many divisions.
fn divided(leaves: &[Expr], dice: &mut Dice, depth: u32) -> Expr {
    if depth == 0 {
        return match dice.below(3) {
            0 => Expr::int(dice.below(4) as i32),
            _ => dice.of(leaves),
        };
    }
    let ops = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Min, BinaryOp::Lt, BinaryOp::Eq];
    let (a, b) = (divided(leaves, dice, depth - 1), divided(leaves, dice, depth - 1));
    match dice.below(5) {
        0 | 1 => Expr::binary(dice.of(&DIVISIONS), a, b),
        2 => Expr::select(a.clone().lt(b.clone()), b, a),
        _ => Expr::binary(dice.of(&ops), a, b).cast(DType::I32),
    }
}
