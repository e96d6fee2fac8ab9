//! Random expressions against the model, scalar and vector, at every level.

mod common;

use common::{Lane, check_lanes, interesting};
use coulis_ir::{BinaryOp, DType, Expr, Intrinsic};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// A recipe for an expression over two inputs of one type.
#[derive(Clone, Debug)]
enum Recipe {
    Input(usize),
    Constant(i8),
    Binary(BinaryOp, Box<Recipe>, Box<Recipe>),
    Choose(BinaryOp, Box<Recipe>, Box<Recipe>),
    Through(DType, Box<Recipe>),
    Call(Intrinsic, Box<Recipe>),
}

fn recipes() -> impl Strategy<Value = Recipe> {
    let leaf = prop_oneof![(0..2usize).prop_map(Recipe::Input), any::<i8>().prop_map(Recipe::Constant)];
    let arithmetic =
        prop::sample::select(vec![BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Min, BinaryOp::Max]);
    let order = prop::sample::select(vec![BinaryOp::Lt, BinaryOp::Ge, BinaryOp::Eq, BinaryOp::Ne]);
    let types = prop::sample::select(DType::ALL.to_vec());
    let calls = prop::sample::select(vec![Intrinsic::Abs, Intrinsic::Floor, Intrinsic::Nearbyint]);
    leaf.prop_recursive(5, 24, 2, move |inner| {
        let pair = || (inner.clone().prop_map(Box::new), inner.clone().prop_map(Box::new));
        prop_oneof![
            (arithmetic.clone(), pair()).prop_map(|(op, (a, b))| Recipe::Binary(op, a, b)),
            (order.clone(), pair()).prop_map(|(op, (a, b))| Recipe::Choose(op, a, b)),
            (types.clone(), inner.clone()).prop_map(|(to, a)| Recipe::Through(to, Box::new(a))),
            (calls.clone(), inner.clone()).prop_map(|(f, a)| Recipe::Call(f, Box::new(a))),
        ]
    })
}

fn build(recipe: &Recipe, dtype: DType, inputs: &[Expr]) -> Expr {
    let lanes = inputs[0].lanes();
    let go = |r: &Recipe| build(r, dtype, inputs);
    match recipe {
        Recipe::Input(which) => inputs[*which].clone(),
        Recipe::Constant(value) => Expr::constant((*value).into(), dtype).broadcast_to(lanes),
        Recipe::Binary(op, a, b) => Expr::binary(*op, go(a), go(b)),
        Recipe::Choose(op, a, b) => {
            let (a, b) = (go(a), go(b));
            Expr::select(Expr::binary(*op, a.clone(), b.clone()), b, a)
        }
        Recipe::Through(to, a) => go(a).cast(*to).cast(dtype),
        Recipe::Call(f, a) if dtype.is_float() => Expr::call1(*f, go(a)),
        Recipe::Call(_, a) => Expr::call1(Intrinsic::Abs, go(a)),
    }
}

#[test]
fn random_expressions_agree_with_the_model_at_every_level() {
    let config = Config { cases: 150, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]));
    let computes = |d: &DType| !matches!(d, DType::Bool | DType::F8E4M3 | DType::F8E5M2);
    let types = prop::sample::select(DType::ALL.into_iter().filter(computes).collect::<Vec<_>>());
    runner
        .run(&(recipes(), types), |(recipe, dtype)| {
            let a: Vec<Lane> = interesting(dtype).into_iter().cycle().take(37).collect();
            let mut b = a.clone();
            b.rotate_left(11);
            check_lanes("random", dtype, &[(dtype, a), (dtype, b)], &|x| build(&recipe, dtype, x));
            Ok(())
        })
        .unwrap();
}
