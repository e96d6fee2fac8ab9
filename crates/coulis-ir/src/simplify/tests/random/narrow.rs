//! Random arithmetic on narrow integers, written in 64 bits.

use super::Dice;
use crate::dtype::DType;
use crate::eval::{Env, Value, eval_expr};
use crate::expr::{BinaryOp, Expr, Intrinsic, Var};
use crate::simplify::narrow_integers;

const NARROW: [DType; 7] =
    [DType::Bool, DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32];
const OPERATIONS: [BinaryOp; 7] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Min,
    BinaryOp::Max,
    BinaryOp::FloorDiv,
    BinaryOp::FloorMod,
];

/// An integer of a wide type, of the elements.
fn wide(dice: &mut Dice, elements: &[Var], dtype: DType, depth: usize) -> Expr {
    if depth == 0 || dice.below(6) == 0 {
        return match dice.below(4) {
            0 => Expr::int_of(dice.range(0, 9).into(), dtype),
            _ => dice.of(elements).expr().cast(dtype),
        };
    }
    let mut operand = || wide(dice, elements, dtype, depth - 1);
    let (a, b) = (operand(), operand());
    match dice.below(12) {
        0 => Expr::select(a.clone().lt(b.clone()), a, b),
        1 => Expr::call1(Intrinsic::Abs, a),
        2 => &a * &a,
        3 => {
            let other = if dtype == DType::I64 { DType::U64 } else { DType::I64 };
            a.cast(other).cast(dtype)
        }
        4 => Expr::binary(BinaryOp::FloorDiv, a, Expr::int_of(dice.range(1, 9).into(), dtype)),
        _ => Expr::binary(dice.of(&OPERATIONS), a, b),
    }
}

#[test]
fn narrow_arithmetic_gives_the_same_numbers() {
    let mut dice = Dice(11);
    let (mut n_narrow, mut n_squares) = (0, 0);
    for round in 0..4_000 {
        let elements: Vec<Var> = (0..2)
            .map(|i| Var::new(&format!("x{i}"), dice.of(&NARROW[..if round % 2 == 0 { 3 } else { 7 }])))
            .collect();
        let dtype = dice.of(&[DType::I64, DType::U64]);
        let depth = dice.below(4);
        let integer = wide(&mut dice, &elements, dtype, depth);
        let other = wide(&mut dice, &elements, dtype, depth);
        let scaled = integer.clone().cast(DType::F64) * Expr::float(0.5, DType::F64);
        for expr in [integer.clone(), integer.clone().lt(other), scaled] {
            let narrow = narrow_integers(&expr);
            let is_integer = expr.dtype() == dtype;
            assert!(is_integer || narrow.dtype() == expr.dtype());
            n_narrow += usize::from(narrow != expr);
            n_squares += usize::from(narrow.dtype() == DType::U16 && is_integer);
            for _ in 0..8 {
                let mut env = Env::new();
                for var in &elements {
                    let (lo, hi) = var.dtype().int_range().unwrap();
                    let (lo, hi) = (lo as i64, hi as i64);
                    let value = dice.of(&[lo, hi, 0, 1]);
                    let value = if dice.below(2) == 0 { value.clamp(lo, hi) } else { dice.range(lo, hi) };
                    env.set(var, Value::Int(value.into()));
                }
                let Ok(want) = eval_expr(&expr, &mut env) else { continue };
                let got = eval_expr(&narrow, &mut env).unwrap();
                assert!(got.same(want), "{expr:?} is {want:?}, {narrow:?} is {got:?}");
            }
        }
    }
    assert!(n_narrow > 6_000 && n_squares > 100, "{n_narrow} {n_squares}");
}

#[test]
fn shared_operands_are_looked_at_once() {
    let x = Var::new("x", DType::U8).expr().cast(DType::I64);
    let halved = |e: &Expr| Expr::binary(BinaryOp::FloorDiv, e + e, Expr::int_of(2, DType::I64));
    let deep = (0..60).fold(x.clone(), |e, _| halved(&e));
    assert_eq!(narrow_integers(&deep).dtype(), DType::I16);
    let squared = (0..60).fold(x, |e, _| &e * &e);
    assert_eq!(narrow_integers(&squared).dtype(), DType::I64);
}
