//! Programs that the examples of the catalogue begin with: a primitive's entry names its own, and documentation and tests
//! apply its call to it.

use std::slice::from_ref;

use coulis_ir::{DType, Expr, Var};
use coulis_tensor::{Tensor, compute, placeholder, reduce_axis, sum, var};

use crate::error::ScheduleError;
use crate::schedule::Schedule;

/// Why making one cannot fail: nothing of it is the caller's.
pub(crate) const LEGAL: &str = "a legal program of the catalogue";

/// A size that the caller of the program gives.
pub(crate) fn size(name: &str) -> Expr {
    var(name).expr()
}

/// The schedule of `output`, which reads `input` in one stage or several.
pub(crate) fn scheduled(input: Tensor, output: Tensor) -> Schedule {
    Schedule::new(from_ref(&output), &[input, output.clone()]).expect(LEGAL)
}

/// The schedule after `steps`.
pub(crate) fn after(
    mut schedule: Schedule,
    steps: impl FnOnce(&mut Schedule) -> Result<(), ScheduleError>,
) -> Schedule {
    steps(&mut schedule).expect(LEGAL);
    schedule
}

/// `A`, of elements of type `float32`.
fn array(shape: &[Expr]) -> Tensor {
    placeholder(shape, DType::F32, "A").expect(LEGAL)
}

/// `value`, of type `float32`.
fn float(value: f64) -> Expr {
    Expr::float(value, DType::F32)
}

/// `B = A`.
pub(crate) fn copy(shape: &[Expr]) -> Schedule {
    let a = array(shape);
    let b = compute(shape, "B", |i| a.at(i)).expect(LEGAL);
    scheduled(a, b)
}

/// `B = A + 1`.
pub(crate) fn plus_one(shape: &[Expr]) -> Schedule {
    let a = array(shape);
    let b = compute(shape, "B", |i| a.at(i) + float(1.0)).expect(LEGAL);
    scheduled(a, b)
}

/// `B = A * 2`, then `C = B + 1`.
pub(crate) fn chain(shape: &[Expr]) -> Schedule {
    let a = array(shape);
    let b = compute(shape, "B", |i| a.at(i) * float(2.0)).expect(LEGAL);
    let c = compute(shape, "C", |i| b.at(i) + float(1.0)).expect(LEGAL);
    scheduled(a, c)
}

/// `A` and `B`, the sums of `A` over its last dimension `k`, of `columns` elements; the others are `rows`.
fn array_and_sums(rows: &[Expr], columns: Expr) -> (Tensor, Tensor) {
    let a = array(&[rows, from_ref(&columns)].concat());
    let k = reduce_axis(columns, "k");
    let element = |i: &[Var]| a.at(i.iter().chain([k.var()]).map(Var::expr).collect::<Vec<_>>());
    let b = compute(rows, "B", |i| sum(element(i), from_ref(&k))).expect(LEGAL);
    (a, b)
}

/// `B`, the sums of `A` over its last dimension `k`, of `columns` elements; the others are `rows`.
pub(crate) fn sums(rows: &[Expr], columns: Expr) -> Schedule {
    let (a, b) = array_and_sums(rows, columns);
    scheduled(a, b)
}

/// `B`, the sums of five rows of 13 elements, then `C`, the elements less the sum of their row.
pub(crate) fn less_their_sum() -> Schedule {
    let (rows, columns) = (Expr::int(5), Expr::int(13));
    let (a, b) = array_and_sums(from_ref(&rows), columns.clone());
    let c = compute(&[rows, columns], "C", |i| a.at(i) - b.at([&i[0]])).expect(LEGAL);
    scheduled(a, c)
}
