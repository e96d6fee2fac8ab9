//! Random expressions on threads, inside a loop and under branches, against the plain evaluator.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use coulis_ir::args::ArrayInfo;
use coulis_ir::eval::{Env, EvalError, Value, eval_expr};
use coulis_ir::verify::verify;
use coulis_ir::{
    BinaryOp, Buffer, DType, Expr, Form, Intrinsic, Kernel, MemScope, Param, Stmt, ThreadTag, Var,
};
use coulis_sim::{Options, SimArg, SimArray, run};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Threads of the block, and turns of the loop.
const THREADS: usize = 40;
const TURNS: usize = 3;

/// A recipe for an integer expression.
#[derive(Clone, Debug)]
enum Recipe {
    Thread,
    Turn,
    /// The element of the input at this distance from the thread, modulo the threads.
    Input(u8),
    Constant(i8),
    Binary(BinaryOp, Box<Recipe>, Box<Recipe>),
    Choose(bool, Box<Recipe>, Box<Recipe>, Box<Recipe>),
    Through(DType, Box<Recipe>),
    Abs(Box<Recipe>),
    Named(Box<Recipe>, Box<Recipe>),
}

fn recipes() -> impl Strategy<Value = Recipe> {
    let leaf = prop_oneof![
        Just(Recipe::Thread),
        Just(Recipe::Turn),
        any::<u8>().prop_map(Recipe::Input),
        any::<i8>().prop_map(Recipe::Constant)
    ];
    let ops = vec![
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Min,
        BinaryOp::Max,
        BinaryOp::BitAnd,
        BinaryOp::BitXor,
        BinaryOp::FloorDiv,
        BinaryOp::TruncMod,
    ];
    let ops = prop::sample::select(ops);
    let types =
        prop::sample::select(vec![DType::I8, DType::U16, DType::I64, DType::F32, DType::F16, DType::Bool]);
    leaf.prop_recursive(5, 30, 3, move |inner| {
        let one = || inner.clone().prop_map(Box::new);
        prop_oneof![
            3 => (ops.clone(), one(), one()).prop_map(|(op, a, b)| Recipe::Binary(op, a, b)),
            2 => (any::<bool>(), one(), one(), one()).prop_map(|(lazy, c, a, b)| Recipe::Choose(lazy, c, a, b)),
            1 => (types.clone(), one()).prop_map(|(to, a)| Recipe::Through(to, a)),
            1 => one().prop_map(Recipe::Abs),
            1 => (one(), one()).prop_map(|(a, b)| Recipe::Named(a, b)),
        ]
    })
}

/// What recipes speak of.
struct Names {
    thread: Var,
    turn: Var,
    input: Buffer,
    named: Option<Var>,
}

fn build(recipe: &Recipe, names: &Names) -> Expr {
    let go = |r: &Recipe| build(r, names);
    match recipe {
        Recipe::Thread => names.named.as_ref().unwrap_or(&names.thread).expr(),
        Recipe::Turn => names.turn.expr(),
        Recipe::Input(by) => {
            let at = names.thread.expr() + Expr::int((*by).into());
            names.input.at(vec![at.floormod(Expr::int(THREADS as i32))])
        }
        Recipe::Constant(value) => Expr::int((*value).into()),
        Recipe::Binary(op, a, b) => {
            let b = go(b);
            // No division by zero: the divisor is odd.
            let divides = matches!(op, BinaryOp::FloorDiv | BinaryOp::TruncMod);
            let b = if divides { Expr::binary(BinaryOp::BitOr, b, Expr::int(1)) } else { b };
            Expr::binary(*op, go(a), b)
        }
        Recipe::Choose(lazy, c, a, b) => {
            let (c, a, b) = (go(c).lt(Expr::int(5)), go(a), go(b));
            if *lazy { Expr::if_then_else(c, a, b) } else { Expr::select(c, a, b) }
        }
        Recipe::Through(to, a) => go(a).cast(*to).cast(DType::I32),
        Recipe::Abs(a) => Expr::call1(Intrinsic::Abs, go(a)),
        Recipe::Named(value, body) => {
            let var = Var::new("v", DType::I32);
            let inner = Names {
                thread: names.thread.clone(),
                turn: names.turn.clone(),
                input: names.input.clone(),
                named: Some(var.clone()),
            };
            Expr::let_in(var, go(value), build(body, &inner))
        }
    }
}

fn check(recipe: &Recipe, warp: u32) {
    let array =
        |name: &str, n: usize| Buffer::new(name, DType::I32, vec![Expr::int(n as i32)], MemScope::Global);
    let (input, output) = (array("A", THREADS), array("B", THREADS * TURNS));
    let thread = Var::new("tx", DType::I32);
    let turn = Var::new("k", DType::I32);
    let names = Names { thread: thread.clone(), turn: turn.clone(), input: input.clone(), named: None };
    let value = build(recipe, &names);
    let at = turn.expr() * Expr::int(THREADS as i32) + thread.expr();
    let store = |value: Expr| Stmt::store(&output, vec![at.clone()], value);
    // Under a branch that some lanes take, and as it is in the others.
    let body = Stmt::If {
        cond: (&thread.expr() + &turn.expr()).floormod(Expr::int(3)).equal(Expr::int(0)),
        then: Box::new(store(value.clone() - Expr::int(1))),
        otherwise: Some(Box::new(store(value.clone()))),
    };
    let looped = Stmt::range(turn.clone(), Expr::int(TURNS as i32), body);
    let launch = Stmt::LaunchThread {
        tag: ThreadTag::ThreadX,
        var: thread.clone(),
        extent: Expr::int(THREADS as i32),
        body: Box::new(looped),
    };
    let params = [&input, &output].map(|b| Param::Buffer { handle: Var::handle(&b.name), buffer: b.clone() });
    let kernel = Kernel {
        name: "random".to_owned(),
        params: params.into(),
        attrs: BTreeMap::new(),
        form: Form::Flat,
        body: launch,
    };
    let checked = verify(kernel).unwrap_or_else(|faults| panic!("{}", faults.listing));
    let values: Vec<i32> = (0..THREADS as i32).map(|i| i * i * 7919 % 211 - 100).collect();
    let a: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut b = vec![0; 4 * THREADS * TURNS];
    let info = |n: usize| ArrayInfo { dtype: DType::I32, shape: vec![n as i64], strides: vec![1] };
    let mut args = [
        SimArg::Array(SimArray::read(&a, info(THREADS))),
        SimArg::Array(SimArray::output(&mut b, info(THREADS * TURNS))),
    ];
    let report = run(&checked, &mut args, &Options { warp, warp_orders: 3, ..Options::default() }).unwrap();
    assert!(report.is_clean(), "{}", report.listing);
    for (i, found) in b.chunks_exact(4).enumerate() {
        let (k, tx) = (i / THREADS, i % THREADS);
        let mut memory = |_: &Buffer, at: &[i128]| -> Result<Value, EvalError> {
            Ok(Value::Int(values[at[0] as usize].into()))
        };
        let mut env = Env::with_memory(&mut memory);
        env.set(&thread, Value::Int(tx as i128));
        env.set(&turn, Value::Int(k as i128));
        let want = eval_expr(&value, &mut env).unwrap().as_int().unwrap();
        let want = if (tx + k) % 3 == 0 { DType::I32.wrap_int(want - 1) } else { want };
        let found = i32::from_le_bytes(found.try_into().unwrap());
        assert_eq!(i128::from(found), want, "thread {tx}, turn {k}:\n{}", report.listing);
    }
}

#[test]
fn random_expressions_agree_with_the_plain_evaluator() {
    let config = Config { cases: 100, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[3; 32]));
    let warps = prop::sample::select(vec![32, 64]);
    runner
        .run(&(recipes(), warps), |(recipe, warp)| {
            check(&recipe, warp);
            Ok(())
        })
        .unwrap();
}
