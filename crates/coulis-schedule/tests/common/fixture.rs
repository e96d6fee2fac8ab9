//! A small schedule, and how calls on it are refused.

use std::slice::from_ref;

use coulis_ir::{DType, Expr};
use coulis_reducers::{ReducerRequest, find};
use coulis_schedule::{Schedule, ScheduleError};
use coulis_tensor::{
    IterVar, Tensor, compute, compute_axes, compute_tuple, placeholder, reduce, reduce_axis, sum, var,
};

use super::{check, refusal};

/// A schedule of two stages, with their tensors and axes.
pub struct Fixture {
    pub s: Schedule,
    pub b: Tensor,
    pub c: Tensor,
    pub i: IterVar,
    pub k: IterVar,
}

/// `B[i] = sum of A[i, k]`, `C[i] = B[i] + 1`; the output is `C`.
pub fn fixture() -> Fixture {
    let (n, m) = (var("n").expr(), var("m").expr());
    let a = placeholder(&[n.clone(), m.clone()], DType::F32, "A").expect("a tensor");
    let k = reduce_axis(m, "k");
    let b = compute(from_ref(&n), "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).expect("a tensor");
    let one = Expr::float(1.0, DType::F32);
    let c = compute_axes(from_ref(&n), &["r"], "C", |i| b.at([&i[0]]) + one).expect("a tensor");
    let s = Schedule::new(from_ref(&c), &[a, c.clone()]).expect("a schedule");
    let i = b.op().axes()[0].clone();
    Fixture { s, b, c, i, k }
}

/// A call that is refused with that message, and leaves the schedule as it was.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(
    s: &mut Schedule,
    call: impl FnOnce(&mut Schedule) -> Result<T, ScheduleError>,
    want: &str,
) {
    let before = s.trace().clone();
    assert_eq!(refusal(call(s)), want);
    assert_eq!(*s.trace(), before, "a refused step is not recorded");
    check(s, &[&[("n", 3), ("m", 5)]]);
}

/// The states of a reducer of the catalogue over rows of `A`, all of them arguments: the schedule, `A`, the states and the row's axis.
pub fn states_of_rows(op: &str, dtype: DType, [n, m]: [Expr; 2]) -> (Schedule, Tensor, Vec<Tensor>, IterVar) {
    let a = placeholder(&[n.clone(), m.clone()], dtype, "A").expect("a tensor");
    let k = reduce_axis(m, "k");
    let reducer = find(op).expect("in the catalogue").build(&ReducerRequest::new(&[dtype])).expect("built");
    let states = compute_tuple(from_ref(&n), "S", |i| reduce(&reducer, &[a.at((&i[0], &k))], from_ref(&k)));
    let states = states.expect("tensors");
    let args = [from_ref(&a), &states[..]].concat();
    (Schedule::new(&states, &args).expect("a schedule"), a, states, k)
}
