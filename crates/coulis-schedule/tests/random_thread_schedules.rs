//! Random schedules on threads compute what the program says, or are refused with a reason.
//!
//! As the random schedules of one thread, with loops bound, memory in any scope, and reductions over threads and
//! blocks. Kernels run on threads in lockstep, where two stores to one element at once fail, and in the simulator.

mod common;

use std::slice::from_ref;

use common::random::{Numbers, chain, check_if_built, leaf_at, stage_at};
use coulis_ir::{DType, Expr, MemScope, ThreadTag};
use coulis_schedule::{GridFinish, Schedule, ScheduleError, Split, Stage, StageId};
use coulis_tensor::{IterVar, compute, placeholder, reduce_axis, sum, var};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Sums over two reduce axes of constant extent, with a start value.
fn planes() -> Schedule {
    let n = var("n").expr();
    let (d, e) = (Expr::int(6), Expr::int(5));
    let a = placeholder(&[n.clone(), d.clone(), e.clone()], DType::I32, "A").expect("a tensor");
    let (x, y) = (reduce_axis(d, "x"), reduce_axis(e, "y"));
    let b = compute(from_ref(&n), "B", |i| {
        sum(a.at((&i[0], &x, &y)), &[x.clone(), y.clone()])?.init(vec![Expr::int(100)])
    })
    .expect("a tensor");
    Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule")
}

/// Reads four numbers as a step and tries it.
fn try_step(s: &mut Schedule, [what, on, x, y]: Numbers) -> Result<(), ScheduleError> {
    let stage: StageId = stage_at(s, on).id();
    let (Some(a), Some(b)) = (leaf_at(stage_at(s, on), x), leaf_at(stage_at(s, on), y)) else {
        return Ok(());
    };
    match what % 16 {
        0..3 => s.split(stage, &a, Split::Factor(i64::from(y % 4) + 1)).map(|_| ()),
        3 => s.reorder(stage, &[a, b]),
        4 => s.rfactor(stage, &a).map(|_| ()),
        5..8 => {
            let parent = stage_at(s, x);
            let Some(axis) = leaf_at(parent, y) else { return Ok(()) };
            let parent = parent.id();
            s.compute_at(stage, parent, &axis)
        }
        8 => s.compute_inline(stage),
        9 => s.set_scope(stage, MemScope::ALL[usize::from(y) % 5]),
        10 => s.grid_finish(stage, GridFinish::ALL[usize::from(y) % 2]),
        11 => s.cache_write(stage, [MemScope::Local, MemScope::Shared][usize::from(y) % 2]).map(|_| ()),
        12 => s.double_buffer(stage),
        13 => s.bind(stage, &a, ThreadTag::ALL[usize::from(y) % 10]),
        _ => {
            let (_, inner) = s.split(stage, &a, Split::Factor(i64::from(y % 4) + 1))?;
            s.bind(stage, &inner, ThreadTag::ALL[6 + usize::from(y / 4) % 4])
        }
    }
}

/// Binds what is left so that there is a kernel: the first data loop of every root stage without a bound loop.
fn bind_the_rest(s: &mut Schedule) {
    let unbound = |stage: &Stage| {
        let at_root = *stage.attach() == coulis_schedule::Attach::Root;
        at_root && stage.leaves().iter().all(|l| stage.thread_of(l).is_none())
    };
    let rest: Vec<(StageId, IterVar)> = s
        .stages()
        .iter()
        .filter(|stage| unbound(stage))
        .filter_map(|stage| Some((stage.id(), stage.leaves().first()?.clone())))
        .collect();
    for (stage, axis) in rest {
        let _refused = s.bind(stage, &axis, ThreadTag::BlockX);
    }
}

/// Reasons for which a schedule may be refused only when its nest is built.
fn legal_late(error: &ScheduleError) -> bool {
    matches!(
        error,
        ScheduleError::Thread(_)
            | ScheduleError::NonConstantExtent { .. }
            | ScheduleError::OutsideConsumers { .. }
            | ScheduleError::ReadOutsideAttach { .. }
            | ScheduleError::HoldsStages { .. }
            | ScheduleError::Unsupported { .. }
    )
}

fn run(mut s: Schedule, steps: Vec<Numbers>) {
    for step in steps {
        let _refused = try_step(&mut s, step);
    }
    bind_the_rest(&mut s);
    check_if_built(&s, legal_late, &[&[("n", 3), ("m", 5)], &[("n", 1), ("m", 0)], &[("n", 6), ("m", 1)]]);
}

fn steps() -> impl Strategy<Value = Vec<Numbers>> {
    proptest::collection::vec(any::<Numbers>(), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 30,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(11),
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_chain_of_stages_on_threads(steps in steps()) {
        run(chain("r"), steps);
    }

    #[test]
    fn two_reduce_axes_on_threads(steps in steps()) {
        run(planes(), steps);
    }
}
