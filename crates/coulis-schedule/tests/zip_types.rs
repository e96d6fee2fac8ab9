//! What zip refuses of folds of several types and numbers of fields.

mod common;

use std::slice::from_ref;

use common::fixture::refused;
use coulis_ir::{DType, Expr, Var};
use coulis_schedule::Schedule;
use coulis_tensor::{Tensor, comm_reducer, compute, compute_tuple, placeholder, reduce_axis, sum};

/// Sums of rows as int32 and as int16, the greatest of a row with its place, and a stage that reads two of them.
fn folds_of_rows(of_two: &dyn Fn(&[Tensor], &Var) -> Expr) -> Schedule {
    let a = placeholder(&[Expr::int(4), Expr::int(4)], DType::I32, "A").expect("a placeholder");
    let rows = [Expr::int(4)];
    let [k, l, p] = ["k", "l", "p"].map(|name| reduce_axis(4, name));
    let whole = compute(&rows, "W", |i| sum(a.at((&i[0], &k)), from_ref(&k))).expect("a tensor");
    let half =
        compute(&rows, "H", |i| sum(a.at((&i[0], &l)).cast(DType::I16), from_ref(&l))).expect("a tensor");
    let greatest = comm_reducer(
        |x, y| {
            let first = x[0].clone().lt(y[0].clone()).and(x[1].clone().equal(y[1].clone()));
            let keep = x[1].clone().gt(y[1].clone()).or(first);
            (0..2).map(|at| Expr::select(keep.clone(), x[at].clone(), y[at].clone())).collect()
        },
        |types| vec![Expr::int_of(i32::MAX.into(), types[0]), Expr::int_of(i32::MIN.into(), types[1])],
        "argmax",
    );
    let best =
        compute_tuple(&rows, "P", |i| greatest.reduce(vec![p.expr(), a.at((&i[0], &p))], from_ref(&p)))
            .expect("tensors");
    let folds = [whole, half, best[0].clone(), best[1].clone()];
    let b = compute(&rows, "B", |i| of_two(&folds, &i[0])).expect("a tensor");
    Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule")
}

#[test]
fn zip_takes_folds_of_one_type_and_as_many_fields() {
    let mut s = folds_of_rows(&|of, i| of[0].at([i]) + of[1].at([i]).cast(DType::I32));
    for stage in ["B", "W"] {
        refused(
            &mut s,
            |s| s.zip(stage, "W", "H"),
            "zip of `H`: second is to be a fold into results of the first's types, got int16",
        );
    }
    let mut s = folds_of_rows(&|of, i| of[0].at([i]) + of[2].at([i]) + of[3].at([i]));
    let best = s.stages().iter().find(|stage| stage.outputs().len() == 2).expect("the argmax").id();
    refused(
        &mut s,
        |s| s.zip("B", "W", best),
        "zip of `P`: second is to be a fold into results of the first's types, got int32, int32",
    );
    refused(
        &mut s,
        |s| s.zip("B", best, best),
        "zip of `B`: stage is to be one that combines the two as their reducer does, got another",
    );
}
