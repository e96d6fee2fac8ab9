//! What is known of reads before a kernel is made: whether what is kept is all computed, and what is outside its tensor.

mod common;

use std::slice::from_ref;

use common::refusal;
use coulis_ir::{DType, Expr, MemScope};
use coulis_schedule::{Schedule, ScheduleError, build_nest};
use coulis_tensor::{Tensor, compute, compute_axes, placeholder, reduce_axis, sum, var};

/// What comes of keeping `B`, of that shape, attached at the loop of `C[i] = f(B, i)`, of `rows` rows.
fn kept(shape: &[i32], rows: Expr, read: impl Fn(&Tensor, &Expr) -> Expr) -> Result<(), ScheduleError> {
    let shape: Vec<Expr> = shape.iter().map(|n| Expr::int(*n)).collect();
    let a = placeholder(&shape, DType::F32, "A").expect("a tensor");
    let b = compute(&shape, "B", |i| a.at(i) + Expr::float(1.0, DType::F32)).expect("a tensor");
    let c = compute(from_ref(&rows), "C", |i| read(&b, &i[0].expr())).expect("a tensor");
    let mut s = Schedule::new(from_ref(&c), &[a.clone(), c.clone()]).expect("a schedule");
    s.compute_at(&b, &c, &c.op().axes()[0]).expect("attached");
    build_nest(&s, &[a, b, c], "main").map(|_| ())
}

#[test]
fn a_computed_tensor_that_is_kept_is_covered_by_what_each_iteration_reads() {
    let rows = || Expr::int(4);
    let n = |v: i32| Expr::int(v);
    kept(&[4], rows(), |b, i| b.at([i])).expect("each");
    kept(&[4], rows(), |b, i| b.at([&(n(3) - i.clone())])).expect("backwards");
    kept(&[2, 1], rows(), |b, i| b.at([&i.clone().floordiv(n(2)), &n(0)])).expect("each twice");
    kept(&[3], rows(), |b, i| b.at([&i.clone().floormod(n(3))])).expect("around");
    kept(&[8], rows(), |b, i| b.at([&(i.clone() * n(2))]) + b.at([&(i.clone() * n(2) + n(1))]))
        .expect("pairs");
    let refused = [
        kept(&[4, 4], rows(), |b, i| b.at([i, i])),
        kept(&[4, 4], rows(), |b, i| b.at([i, &(n(3) - i.clone())])),
        kept(&[7], rows(), |b, i| b.at([&(i.clone() * n(2))])),
        kept(&[10], rows(), |b, i| b.at([&(i.clone() * i.clone())])),
        kept(&[4], n(3), |b, i| b.at([&(i.clone() * i.clone()).floormod(n(4))])),
        kept(&[4], rows(), |b, i| b.at([&(i.clone() * n(3)).min(n(3))])),
        kept(&[8], rows(), |b, i| b.at([&(i.clone() * n(6)).floormod(n(8))])),
        // No row, and nothing is computed.
        kept(&[1], var("rows").expr(), |b, _| b.at([&n(0)])),
    ];
    for refused in refused {
        let message = refusal(refused);
        assert!(
            message.contains("compute_at: `B` is an argument and computed at `i` of `C`, where not all"),
            "{message}"
        );
    }
}

/// What comes of `C[i] = f(A, i)` for `rows` rows, where `A` is of that shape.
fn reading(shape: &[Expr], rows: &Expr, read: impl Fn(&Tensor, &Expr) -> Expr) -> Result<(), ScheduleError> {
    let a = placeholder(shape, DType::F32, "A").expect("a tensor");
    let c = compute(from_ref(rows), "C", |i| read(&a, &i[0].expr())).expect("a tensor");
    let s = Schedule::new(from_ref(&c), &[a, c.clone()]).expect("a schedule");
    build_nest(&s, s.program().args(), "main").map(|_| ())
}

#[test]
fn an_index_outside_its_dimension_is_refused_where_it_stays_in_the_memory() {
    let int = |v: i32| Expr::int(v);
    let (n, m) = (var("n").expr(), var("m").expr());
    let wide = [int(6), int(50)];
    let refused = |result, want: &str| assert_eq!(refusal(result), want);
    refused(
        reading(&wide, &int(5), |a, i| a.at([i, &int(50)])),
        "`C` reads `A` at `50` in dimension 1, which is 50 there; legal are 0 to 49",
    );
    refused(
        reading(&wide, &int(6), |a, i| a.at([i, &(i.clone() - int(1))])),
        "`C` reads `A` at `i - 1` in dimension 1, which is -1 to 4 there; legal are 0 to 49",
    );
    refused(
        reading(&wide, &int(7), |a, i| a.at([i, &int(0)])),
        "`C` reads `A` at `i` in dimension 0, which is 0 to 6 there; legal are 0 to 5",
    );
    refused(
        reading(&wide, &int(6), |a, i| a.at([i, &(int(48) + i.clone().floordiv(int(2)))])),
        "`C` reads `A` at `48 + i // 2` in dimension 1, which is 48 to 50 there; legal are 0 to 49",
    );
    refused(
        reading(&[n.clone(), m.clone()], &n, |a, i| a.at([i, &m])),
        "`C` reads `A` at `m` in dimension 1, which is m there; legal are 0 to m - 1",
    );
    refused(
        reading(from_ref(&n), &n, |a, i| a.at([&(i.clone() + int(1))])),
        "`C` reads `A` at `i + 1` in dimension 0, which is 1 to n there; legal are 0 to n - 1",
    );
    // What is inside, what is not known to be outside, and what no point reads.
    let last = |a: &Tensor, i: &Expr| a.at([i, &int(49)]);
    let guarded = |a: &Tensor, i: &Expr| {
        let there = i.clone().lt(int(6));
        Expr::if_then_else(there, a.at([i, &int(0)]), Expr::float(0.0, DType::F32))
    };
    reading(&wide, &int(6), last).expect("the last of a row");
    reading(&wide, &int(9), guarded).expect("only rows that are there");
    reading(&wide, &int(0), |a, i| a.at([i, &int(50)])).expect("no row");
    reading(&[n.clone(), m], &n, |a, i| a.at([i, &(i.clone() + int(1))]))
        .expect("there may be as many columns");
}

#[test]
fn a_fold_reads_outside_its_tensor_only_where_its_condition_lets_it() {
    let a = placeholder(&[Expr::int(4)], DType::F32, "A").expect("a tensor");
    let folded = |guarded: bool| {
        let k = reduce_axis(5, "k");
        let b = compute(&[], "B", |_| {
            let all = sum(a.at([&k]), from_ref(&k))?;
            if guarded { all.where_(k.expr().lt(Expr::int(4))) } else { Ok(all) }
        });
        let b = b.expect("a tensor");
        let s = Schedule::new(from_ref(&b), &[a.clone(), b.clone()]).expect("a schedule");
        build_nest(&s, s.program().args(), "main")
    };
    folded(true).expect("what takes part is there");
    let want = "`B` reads `A` at `k` in dimension 0, which is 0 to 4 there; legal are 0 to 3";
    assert_eq!(refusal(folded(false)), want);
}

#[test]
fn arguments_are_computed_in_full_and_by_one_thread() {
    let n = var("n").expr();
    let a = placeholder(from_ref(&n), DType::F32, "A").expect("a tensor");
    let two = Expr::float(2.0, DType::F32);
    let b = compute(from_ref(&n), "B", |i| a.at(i) * two.clone()).expect("a tensor");
    let c = compute_axes(&[n - Expr::int(1)], &["r"], "C", |i| b.at([&i[0]]) + two).expect("a tensor");
    let args = [a, b.clone(), c.clone()];
    let mut s = Schedule::new(from_ref(&c), &args).expect("a schedule");
    let r = c.op().axes()[0].clone();
    s.compute_at(&b, &c, &r).expect("attached");
    let message = refusal(build_nest(&s, &args, "main"));
    assert_eq!(
        message,
        "compute_at: `B` is an argument and computed at `r` of `C`, where not all of it is computed; compute it at \
         the root"
    );
    s.parallel(&c, &r).expect("parallel");
    let message = refusal(build_nest(&s, &args, "main"));
    assert_eq!(
        message,
        "compute_at: `B` is an argument and computed at `r` of `C`, where parallel iterations may compute one element \
         twice; compute it at the root"
    );
    let want = "compute_inline: `B` is an argument and is to be stored";
    assert_eq!(refusal(s.compute_inline(&b)), want);
}

#[test]
fn a_computed_tensor_that_is_kept_is_stored_as_the_caller_holds_it() {
    let rows = Expr::int(4);
    let a = placeholder(&[rows.clone(), rows.clone()], DType::F32, "A").expect("a tensor");
    let two = Expr::float(2.0, DType::F32);
    let extents = [rows.clone(), rows];
    let b = compute(&extents, "B", |i| a.at([&i[0], &i[1]]) * two.clone()).expect("a tensor");
    let c = compute(&extents, "C", |i| b.at([&i[0], &i[1]]) + two.clone()).expect("a tensor");
    // The schedule is not told that `B` will be kept.
    let made = || Schedule::new(from_ref(&c), &[a.clone(), c.clone()]).expect("a schedule");
    let kept = [a.clone(), b.clone(), c.clone()];
    let mut s = made();
    s.compute_inline(&b).expect("inlined");
    let want = "compute_inline: `B` is an argument and is to be stored";
    assert_eq!(refusal(build_nest(&s, &kept, "main")), want);
    let mut s = made();
    s.join(&b, &b.op().axes()[0], &b.op().axes()[1]).expect("joined");
    let want = "join: `B` is an argument and the caller lays it out";
    assert_eq!(refusal(build_nest(&s, &kept, "main")), want);
    let mut s = made();
    s.set_scope(&b, MemScope::Shared).expect("a scope");
    let want = "set_scope: `B` is an argument and lives in global memory";
    assert_eq!(refusal(build_nest(&s, &kept, "main")), want);
    let mut s = made();
    s.storage_align(&b, &b.op().axes()[0], 32, 1).expect("aligned");
    let want = "storage_align: `B` is an argument and the caller lays it out";
    assert_eq!(refusal(build_nest(&s, &kept, "main")), want);
    let mut s = made();
    s.compute_at(&b, &c, &c.op().axes()[0]).expect("attached");
    s.double_buffer(&b).expect("doubled");
    let want = "double_buffer: `B` is an argument and the caller gives its memory";
    assert_eq!(refusal(build_nest(&s, &kept, "main")), want);
}
