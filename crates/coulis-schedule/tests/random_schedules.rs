//! Random schedules compute what the program says, or are refused with a reason.
//!
//! A case is a list of numbers that is read as steps; whatever is refused is skipped. What is left must build (or
//! be refused for one of the reasons that show only then), replay from its trace, and compute the same values.

mod common;

use std::slice::from_ref;

use common::random::{Numbers, argmax_of, chain, check_if_built, leaf_at, stage_at};
use coulis_ir::{DType, Expr, MemScope};
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::{Tensor, compute, placeholder, reduce_axis, sum, var};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// The position of the largest element of rows, with a constant number of columns, doubled.
fn argmax() -> Schedule {
    let n = var("n").expr();
    let a = placeholder(&[n.clone(), Expr::int(13)], DType::F32, "A").expect("a tensor");
    let both = argmax_of(&a);
    let o = compute(from_ref(&n), "O", |i| both[1].at(i) * Expr::int(2)).expect("a tensor");
    Schedule::new(from_ref(&o), &[a, o.clone()]).expect("a schedule")
}

/// A matrix product with a copy of each operand in between.
fn matmul() -> Schedule {
    let (n, m) = (var("n").expr(), var("m").expr());
    let four = Expr::int(4);
    let a = placeholder(&[n.clone(), m.clone()], DType::I32, "A").expect("a tensor");
    let b = placeholder(&[m.clone(), four.clone()], DType::I32, "B").expect("a tensor");
    let (k, h) = (reduce_axis(m, "k"), reduce_axis(2, "h"));
    let c: Tensor = compute(&[n, four], "C", |i| {
        sum(a.at((&i[0], &k)) * b.at((&k, &i[1])) + h.expr(), &[k.clone(), h.clone()])
    })
    .expect("a tensor");
    Schedule::new(from_ref(&c), &[a, b, c.clone()]).expect("a schedule")
}

/// Sums and products of narrow floats, which are folded in wider ones, and a consumer.
fn narrow() -> Schedule {
    let (n, m) = (var("n").expr(), var("m").expr());
    let a = placeholder(&[n.clone(), m.clone()], DType::F16, "A").expect("a tensor");
    let (k, h) = (reduce_axis(m, "k"), reduce_axis(3, "h"));
    let b = compute(&[n.clone(), Expr::int(4)], "B", |i| {
        sum(
            a.at((&i[0], &k)) + h.expr().cast(DType::F16) * i[1].expr().cast(DType::F16),
            &[k.clone(), h.clone()],
        )
    })
    .expect("a tensor");
    let c = compute(&[n, Expr::int(4)], "C", |i| b.at(i) + b.at(i)).expect("a tensor");
    Schedule::new(from_ref(&c), &[a, c.clone()]).expect("a schedule")
}

/// Reads four numbers as a step and tries it.
fn try_step(s: &mut Schedule, [what, on, x, y]: Numbers) -> Result<(), ScheduleError> {
    let stage: StageId = stage_at(s, on).id();
    let (Some(a), Some(b)) = (leaf_at(stage_at(s, on), x), leaf_at(stage_at(s, on), y)) else {
        return Ok(());
    };
    let small = i64::from(y % 5) + 1;
    match what % 18 {
        17 => s.split(stage, &a, Split::Overlap(small)).map(|_| ()),
        0 | 1 => s.split(stage, &a, Split::Factor(small)).map(|_| ()),
        2 => s.split(stage, &a, Split::Nparts(small)).map(|_| ()),
        3 => {
            let leaves = stage_at(s, on).leaves().to_vec();
            let at = usize::from(x) % leaves.len();
            let pair = &leaves[at..(at + 2).min(leaves.len())];
            s.fuse(stage, pair).map(|_| ())
        }
        4 => s.reorder(stage, &[a, b]),
        5 => s.tile(stage, &a, &b, small, 2).map(|_| ()),
        6 | 7 => s.rfactor_at(stage, &a, i64::from(y % 2)).map(|_| ()),
        8 | 9 => {
            let parent = stage_at(s, x);
            let Some(axis) = leaf_at(parent, y) else { return Ok(()) };
            let parent = parent.id();
            s.compute_at(stage, parent, &axis)
        }
        10 => s.compute_inline(stage),
        11 => s.parallel(stage, &a),
        12 => s.vectorize(stage, &a),
        13 => {
            let tensor = s.program().args()[usize::from(x) % s.program().args().len()].clone();
            s.cache_read(&tensor, MemScope::Local, &[stage.into()]).map(|_| ())
        }
        14 => s.cache_write(stage, MemScope::Local).map(|_| ()),
        15 => s.begin(stage, &a, small).map(|_| ()),
        _ => s.unroll(stage, &a),
    }
}

/// Reasons for which a schedule may be refused only when its nest is built.
fn legal_late(error: &ScheduleError) -> bool {
    matches!(
        error,
        ScheduleError::NonConstantExtent { .. }
            | ScheduleError::AttachInside { .. }
            | ScheduleError::OutsideConsumers { .. }
            | ScheduleError::ReadOutsideAttach { .. }
            | ScheduleError::HoldsStages { .. }
    )
}

fn run(mut s: Schedule, steps: Vec<Numbers>) {
    for step in steps {
        let _refused = try_step(&mut s, step);
    }
    check_if_built(&s, legal_late, &[&[("n", 3), ("m", 5)], &[("n", 1), ("m", 4)], &[("n", 6), ("m", 1)]]);
}

fn steps() -> impl Strategy<Value = Vec<Numbers>> {
    proptest::collection::vec(any::<Numbers>(), 1..9)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(7),
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_chain_of_stages(steps in steps()) {
        run(chain("i"), steps);
    }

    #[test]
    fn a_tuple_reduction(steps in steps()) {
        run(argmax(), steps);
    }

    #[test]
    fn a_reduction_of_narrow_floats(steps in steps()) {
        run(narrow(), steps);
    }

    #[test]
    fn a_reduction_over_two_axes(steps in steps()) {
        run(matmul(), steps);
    }
}
