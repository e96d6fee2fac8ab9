//! Random kernels with accumulators: machine code and the interpreter agree at every level, with one thread and several.
//!
//! Each has a parallel loop over rows, accumulators in local memory whose lengths need not be those of
//! registers, a fold over the elements of a row with comparisons and choices, a short loop for what is left
//! over, and a strided read at its end.

mod common;

use common::{Lane, Memory, array, int, interesting, iota, kernel, levels, run_at};
use coulis_ir::{BinaryOp, Buffer, DType, Expr, Intrinsic, LoopKind, MemScope, Stmt, Var};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// How an accumulator takes an element in.
#[derive(Clone, Copy, Debug)]
enum Fold {
    Binary(BinaryOp),
    /// Where a comparison with the accumulator holds, the element.
    Choose(BinaryOp),
    /// Where both comparisons hold.
    ChooseBoth(BinaryOp, BinaryOp),
    /// Where a comparison in another type holds, and one in this.
    ChooseThrough(DType, BinaryOp),
    /// Through another type.
    Through(DType, BinaryOp),
    /// Where the element is no NaN.
    Present,
    Exp,
    Log,
}

/// A kernel: element type, lanes of each accumulator with its fold, rounds of a row, elements left over.
#[derive(Clone, Debug)]
struct Shape {
    dtype: DType,
    folds: Vec<(usize, Fold)>,
    rounds: usize,
    rest: usize,
    rows: usize,
}

fn folds() -> impl Strategy<Value = Fold> {
    let arithmetic =
        prop::sample::select(vec![BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Min, BinaryOp::Max]);
    let orders =
        || prop::sample::select(vec![BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Eq, BinaryOp::Ne]);
    let types = prop::sample::select(vec![
        DType::F32,
        DType::F64,
        DType::I64,
        DType::I32,
        DType::U32,
        DType::I8,
        DType::F16,
    ]);
    prop_oneof![
        arithmetic.clone().prop_map(Fold::Binary),
        orders().prop_map(Fold::Choose),
        (orders(), orders()).prop_map(|(a, b)| Fold::ChooseBoth(a, b)),
        (types.clone(), orders()).prop_map(|(d, op)| Fold::ChooseThrough(d, op)),
        (types, arithmetic).prop_map(|(d, op)| Fold::Through(d, op)),
        Just(Fold::Present),
        Just(Fold::Exp),
        Just(Fold::Log),
    ]
}

fn shapes() -> impl Strategy<Value = Shape> {
    let types = prop::sample::select(vec![
        DType::F32,
        DType::F64,
        DType::F16,
        DType::BF16,
        DType::I8,
        DType::U8,
        DType::I16,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::U64,
    ]);
    let lanes = prop::sample::select(vec![1usize, 2, 3, 4, 5, 8, 11, 16, 19, 32, 48]);
    let folds = prop::collection::vec((lanes, folds()), 1..4);
    (types, folds, 0..4usize, 0..6usize, 1..6usize).prop_map(|(dtype, folds, rounds, rest, rows)| Shape {
        dtype,
        folds,
        rounds,
        rest,
        rows,
    })
}

fn folded(fold: Fold, dtype: DType, old: Expr, new: Expr) -> Expr {
    let is_float = dtype.is_float();
    match fold {
        Fold::Binary(op) => Expr::binary(op, old, new),
        Fold::Choose(op) => Expr::select(Expr::binary(op, new.clone(), old.clone()), new, old),
        Fold::ChooseBoth(one, two) => {
            let zero = Expr::constant(0, dtype).broadcast_to(new.lanes());
            let first = Expr::binary(one, new.clone(), old.clone());
            let second = Expr::binary(two, new.clone(), zero).logical_not();
            Expr::select(Expr::binary(BinaryOp::Or, first, second), new, old)
        }
        Fold::ChooseThrough(other, op) => {
            let zero = Expr::constant(0, dtype).broadcast_to(new.lanes());
            let first = Expr::binary(op, new.clone().cast(other), old.clone().cast(other));
            let second = Expr::binary(BinaryOp::Ne, new.clone(), zero);
            Expr::select(Expr::binary(BinaryOp::And, first, second), new, old)
        }
        Fold::Through(other, op) => Expr::binary(op, old.cast(other), new.cast(other)).cast(dtype),
        Fold::Present if is_float => {
            let absent = Expr::call1(Intrinsic::IsNan, new.clone());
            Expr::select(absent, old.clone(), old + new)
        }
        Fold::Exp if is_float => old + Expr::call1(Intrinsic::Exp, new),
        Fold::Log if is_float => old + Expr::call1(Intrinsic::Log, new),
        Fold::Present | Fold::Exp | Fold::Log => Expr::call1(Intrinsic::Abs, old - new),
    }
}

/// Elements that a row takes.
fn row_elements(shape: &Shape) -> i64 {
    let lanes: usize = shape.folds.iter().map(|(lanes, _)| lanes).sum();
    (lanes * shape.rounds.max(1) + shape.rest) as i64
}

fn row_results(shape: &Shape) -> i64 {
    shape.folds.iter().map(|(lanes, _)| *lanes as i64).sum::<i64>() + 1
}

fn body(shape: &Shape, a: &Buffer, o: &Buffer) -> Stmt {
    let (row, round) = (Var::size("row", DType::I64), Var::size("round", DType::I64));
    let (in_row, out_row) = (row_elements(shape), row_results(shape));
    let all: i64 = shape.folds.iter().map(|(lanes, _)| *lanes as i64).sum();
    let s = Buffer::new("S", shape.dtype, vec![int(all)], MemScope::Local);
    let (mut begin, mut folds, mut end) = (Vec::new(), Vec::new(), Vec::new());
    let mut from = 0;
    for (lanes, fold) in &shape.folds {
        let own = || vec![iota(int(from), *lanes)];
        let start = if *lanes == 1 { vec![int(from)] } else { own() };
        let first = row.expr() * int(in_row) + round.expr() * int(all) + int(from);
        let element = if *lanes == 1 { a.at(vec![first]) } else { a.at(vec![iota(first, *lanes)]) };
        begin.push(Stmt::store(
            &s,
            start.clone(),
            Expr::constant(1, shape.dtype).broadcast_to(*lanes as u32),
        ));
        folds.push(Stmt::store(&s, start.clone(), folded(*fold, shape.dtype, s.at(start.clone()), element)));
        let into = row.expr() * int(out_row) + int(from);
        let into = if *lanes == 1 { into } else { iota(into, *lanes) };
        end.push(Stmt::store(o, vec![into], s.at(start)));
        from += *lanes as i64;
    }
    let i = Var::size("i", DType::I64);
    let left = row.expr() * int(in_row) + int(all * shape.rounds as i64) + i.expr();
    let at = i.expr().floormod(int(all));
    let rest = Stmt::store(&s, vec![at.clone()], s.at(vec![at]) + a.at(vec![left]));
    // Every second accumulator, if there are two: a strided read of what may be in registers.
    let pair =
        if all >= 3 { s.at(vec![Expr::ramp(int(0), int(2), 2)]) } else { s.at(vec![int(0)]).broadcast_to(2) };
    let t = Buffer::new("T", shape.dtype, vec![int(2)], MemScope::Local);
    let last = row.expr() * int(out_row) + int(all);
    let sum = t.at(vec![int(0)]) + t.at(vec![int(1)]);
    let finish = Stmt::allocate(
        t.clone(),
        Stmt::seq([Stmt::store(&t, vec![iota(int(0), 2)], pair), Stmt::store(o, vec![last], sum)]),
    );
    let rows = Stmt::seq(
        begin
            .into_iter()
            .chain([Stmt::range(round, int(shape.rounds as i64), Stmt::seq(folds))])
            .chain([Stmt::range(i, int(shape.rest as i64), rest)])
            .chain(end)
            .chain([finish]),
    );
    Stmt::for_(row, int(0), int(shape.rows as i64), LoopKind::Parallel, Stmt::allocate(s, rows))
}

#[test]
fn machine_code_and_the_interpreter_agree_on_random_kernels() {
    let config = Config { cases: 250, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[11; 32]));
    runner
        .run(&shapes(), |shape| {
            let n_in = row_elements(&shape) as usize * shape.rows;
            let n_out = row_results(&shape) as usize * shape.rows;
            let (a, o) = (array("A", shape.dtype, n_in), array("O", shape.dtype, n_out));
            let kernel = kernel(&[a.clone(), o.clone()], body(&shape, &a, &o));
            let values: Vec<Lane> = interesting(shape.dtype).into_iter().cycle().take(n_in).collect();
            let zero = if shape.dtype.is_float() { Lane::F(0.0) } else { Lane::I(0) };
            for level in levels() {
                for threads in [1, 2] {
                    let mut arrays =
                        [Memory::new(shape.dtype, &values), Memory::new(shape.dtype, &vec![zero; n_out])];
                    // The two ways are compared where they run.
                    run_at(&kernel, &mut arrays, level, threads).unwrap();
                }
            }
            Ok(())
        })
        .unwrap();
}
