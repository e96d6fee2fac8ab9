//! Random schedules: a case is a list of numbers that is read as steps; whatever is refused is skipped.

use std::slice::from_ref;

use coulis_ir::{BinaryOp, DType, Expr};
use coulis_schedule::{Schedule, ScheduleError, Stage, build_nest};
use coulis_tensor::{
    IterVar, Tensor, comm_reducer, compute, compute_axes, compute_tuple, placeholder, reduce_axis, sum, var,
};

use super::{Sizes, check};

/// Four numbers that are read as a step.
pub type Numbers = [u8; 4];

/// `T[i, j]` doubled, summed over `j` where `j` is not 2, and a consumer of the sum and of its neighbour, along `axis`.
pub fn chain(axis: &str) -> Schedule {
    let (n, m) = (var("n").expr(), var("m").expr());
    let a = placeholder(&[n.clone(), m.clone()], DType::I32, "A").expect("a tensor");
    let t = compute(&[n.clone(), m.clone()], "T", |i| a.at(i) + a.at(i)).expect("a tensor");
    let k = reduce_axis(m, "k");
    let b = compute(from_ref(&n), "B", |i| {
        sum(t.at((&i[0], &k)), from_ref(&k))?.where_(k.expr().not_equal(Expr::int(2)))
    })
    .expect("a tensor");
    let last = n.clone() - Expr::int(1);
    let c = compute_axes(from_ref(&n), &[axis], "C", |i| {
        let next = (i[0].expr() + Expr::int(1)).min(last);
        b.at([&i[0]]) * Expr::int(3) + b.at([next])
    })
    .expect("a tensor");
    Schedule::new(from_ref(&c), &[a, c.clone()]).expect("a schedule")
}

/// Value and position of the largest element of each row of `a`, value first.
pub fn argmax_of(a: &Tensor) -> Vec<Tensor> {
    let reducer = comm_reducer(
        |l, r| {
            let first = Expr::binary(BinaryOp::Lt, l[1].clone(), r[1].clone());
            let tie = l[0].clone().equal(r[0].clone()).and(first);
            let keep = l[0].clone().gt(r[0].clone()).or(tie);
            (0..2).map(|f| Expr::select(keep.clone(), l[f].clone(), r[f].clone())).collect()
        },
        |types| vec![Expr::float(f64::NEG_INFINITY, types[0]), Expr::int(i32::MAX)],
        "argmax",
    );
    let k = reduce_axis(a.shape()[1].clone(), "k");
    compute_tuple(&a.shape()[..1], "M", |i| reducer.reduce(vec![a.at((&i[0], &k)), k.expr()], from_ref(&k)))
        .expect("tensors")
}

/// The stage that a number means.
pub fn stage_at(s: &Schedule, n: u8) -> &Stage {
    &s.stages()[usize::from(n) % s.stages().len()]
}

/// The loop that a number means.
pub fn leaf_at(stage: &Stage, n: u8) -> Option<IterVar> {
    let leaves = stage.leaves();
    (!leaves.is_empty()).then(|| leaves[usize::from(n) % leaves.len()].clone())
}

/// What is left of the steps builds, or is refused for a reason that shows only then, replays from its trace, and computes
/// what the program says.
pub fn check_if_built(s: &Schedule, legal_late: fn(&ScheduleError) -> bool, sizes: &[Sizes]) {
    match build_nest(s, s.program().args(), "main") {
        Ok(_) => check(s, sizes),
        Err(error) => assert!(
            legal_late(&error),
            "{error}
{}",
            s.trace()
        ),
    }
}
