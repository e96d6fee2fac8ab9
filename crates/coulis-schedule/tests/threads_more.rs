//! Scenarios of the reference on threads: attached stages, bounds, types and shapes of thread blocks.

mod common;

use std::slice::from_ref;

use ThreadTag::{BlockX, BlockY, ThreadX, ThreadY, ThreadZ};
use common::{body, check};
use coulis_ir::{DType, Expr, MemScope, ThreadTag};
use coulis_schedule::{GridFinish, Schedule, Split};
use coulis_tensor::{
    Tensor, compute, compute_axes, max, placeholder, reduce_axis, reduce_axis_of, sum, var, var_of,
};

fn split_bound(s: &mut Schedule, t: &Tensor, factor: i64, outer: ThreadTag, inner: ThreadTag) {
    let axis = t.op().axes()[0].clone();
    let (o, i) = s.split(t, &axis, Split::Factor(factor)).expect("splits");
    s.bind(t, &o, outer).expect("outer bound");
    s.bind(t, &i, inner).expect("inner bound");
}

#[test]
fn a_reduction_over_blocks_may_have_one_row_or_one_block() {
    for finish in GridFinish::ALL {
        for (rows, columns, factor) in [(1, 40, 7), (3, 40, 40), (3, 40, 64), (1, 1, 4), (2, 40, 7)] {
            let [n, m] = [rows, columns].map(Expr::int);
            let a = placeholder(&[n.clone(), m.clone()], DType::I32, "A").expect("a tensor");
            let k = reduce_axis(m, "k");
            let b = compute(&[n], "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).expect("a tensor");
            let mut s = Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule");
            let (outer, _) = s.split(&b, &k, Split::Factor(factor)).expect("splits");
            s.bind(&b, &outer, BlockX).expect("bound");
            s.bind(&b, &b.op().axes()[0].clone(), BlockY).expect("bound");
            s.grid_finish(&b, finish).expect("finished");
            check(&s, &[&[]]);
        }
    }
}

#[test]
fn a_split_range_may_depend_on_an_axis_of_one_value() {
    for rows in [1, 3] {
        for split in [Split::Nparts(2), Split::Factor(2)] {
            let a = placeholder(&[Expr::int(rows), Expr::int(4)], DType::I32, "A").expect("a tensor");
            let mut over = None;
            let b = compute(&[Expr::int(rows)], "B", |i| {
                let k = reduce_axis(i[0].expr() + Expr::int(1), "k");
                over = Some(k.clone());
                sum(a.at((&i[0], &k)), from_ref(&k))
            })
            .expect("a tensor");
            let mut s = Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule");
            s.split(&b, &over.expect("an axis"), split).expect("splits");
            check(&s, &[&[]]);
        }
    }
}

#[test]
fn te_c15_a_stage_on_the_threads_of_its_consumer_needs_no_guard() {
    for scope in [MemScope::Local, MemScope::Shared] {
        let n = Expr::int(64);
        let a = placeholder(from_ref(&n), DType::I32, "A").expect("a tensor");
        let b = compute(from_ref(&n), "B", |i| a.at(i) + Expr::int(1)).expect("a tensor");
        let c = compute_axes(&[n], &["r"], "C", |i| b.at([&i[0]]) * Expr::int(2)).expect("a tensor");
        let mut s = Schedule::new(from_ref(&c), &[a, c.clone()]).expect("a schedule");
        let (o, i) = s.split(&c, &c.op().axes()[0].clone(), Split::Factor(16)).expect("splits");
        s.bind(&c, &o, BlockX).expect("bound");
        s.bind(&c, &i, ThreadX).expect("bound");
        s.set_scope(&b, scope).expect("scope");
        if scope == MemScope::Shared {
            s.bind(&b, &b.op().axes()[0].clone(), ThreadX).expect("bound");
        }
        s.compute_at(&b, &c, &i).expect("attached");
        let text = body(&s);
        assert!(!text.contains("if "), "{text}");
        let extent = if scope == MemScope::Local { 1 } else { 16 };
        assert!(text.contains(&format!("T.allocate([{extent}], \"int32\", \"{}\")", scope.name())), "{text}");
        check(&s, &[&[]]);
    }
}

#[test]
fn te_b7_shared_covers_the_block_and_local_the_thread() {
    let (n, m) = (Expr::int(64), Expr::int(5));
    let a = placeholder(&[n.clone(), m.clone()], DType::I32, "A").expect("a tensor");
    let b = compute(&[n.clone(), m.clone()], "B", |i| a.at(i) + Expr::int(1)).expect("a tensor");
    let c = compute(&[n.clone(), m.clone()], "C", |i| b.at(i) * Expr::int(3)).expect("a tensor");
    let d = compute(&[n, m], "D", |i| c.at(i) - Expr::int(2)).expect("a tensor");
    let mut s = Schedule::new(from_ref(&d), &[a, d.clone()]).expect("a schedule");
    let (o, i) = s.split(&d, &d.op().axes()[0].clone(), Split::Factor(32)).expect("splits");
    s.bind(&d, &o, BlockX).expect("bound");
    s.bind(&d, &i, ThreadX).expect("bound");
    s.set_scope(&b, MemScope::Shared).expect("shared");
    s.compute_at(&b, &d, &i).expect("attached");
    s.compute_at(&c, &d, &i).expect("attached");
    s.bind(&b, &b.op().axes()[0].clone(), ThreadX).expect("bound");
    let text = body(&s);
    assert!(text.contains("T.allocate([32, 5], \"int32\", \"shared\")"), "{text}");
    assert!(text.contains("T.allocate([1, 5], \"int32\", \"local\")"), "{text}");
    check(&s, &[&[]]);
}

#[test]
fn te_g7_thread_blocks_of_many_shapes() {
    for (d1, d2, d3) in
        [(1, 1, 2), (2, 3, 8), (4, 1, 12), (1, 4, 32), (1, 2, 48), (2, 2, 100), (1, 1, 201), (3, 1, 256)]
    {
        let shape = [Expr::int(d1), Expr::int(d2), Expr::int(d3)];
        let a = placeholder(&shape, DType::I32, "A").expect("a tensor");
        let k = reduce_axis(d3, "k");
        let b = compute(&shape[..2], "B", |i| max(a.at((&i[0], &i[1], &k)) - Expr::int(9), from_ref(&k)))
            .expect("a tensor");
        let mut s = Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule");
        let axes = b.op().axes().to_vec();
        for (axis, tag) in [(&axes[0], ThreadZ), (&axes[1], ThreadY), (&k, ThreadX)] {
            s.bind(&b, axis, tag).expect("bound");
        }
        check(&s, &[&[]]);
    }
}

#[test]
fn te_g2_rows_whose_parts_do_not_divide() {
    for (n, m) in [(32, 256), (10, 20), (10, 37), (11, 11)] {
        let shape = [Expr::int(n), Expr::int(m)];
        let a = placeholder(&shape, DType::I32, "A").expect("a tensor");
        let k = reduce_axis(m, "k");
        let b = compute(&shape[..1], "B", |i| max(a.at((&i[0], &k)) - Expr::int(9), from_ref(&k)))
            .expect("a tensor");
        let mut s = Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule");
        let (o, i) = s.split(&b, &b.op().axes()[0].clone(), Split::Nparts(4)).expect("splits");
        s.bind(&b, &i, BlockX).expect("bound");
        s.bind(&b, &o, ThreadY).expect("bound");
        let (parts, _) = s.split(&b, &k, Split::Nparts(32)).expect("splits");
        s.bind(&b, &parts, ThreadX).expect("bound");
        check(&s, &[&[]]);
    }
}

#[test]
fn axes_of_64_bits_and_axes_that_do_not_begin_at_0() {
    let (n, m) = (var_of("n", DType::I64).expr(), var_of("m", DType::I64).expr());
    let a = placeholder(&[n.clone(), m.clone()], DType::I32, "A").expect("a tensor");
    let k = reduce_axis_of(Expr::int_of(1, DType::I64), m - Expr::int_of(1, DType::I64), "k");
    let b = compute(from_ref(&n), "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).expect("a tensor");
    let mut s = Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule");
    split_bound(&mut s, &b, 4, BlockX, ThreadY);
    let (_, inner) = s.split(&b, &k, Split::Factor(8)).expect("splits");
    s.bind(&b, &inner, ThreadX).expect("bound");
    check(&s, &[&[("n", 5), ("m", 9)], &[("n", 1), ("m", 30)]]);
}

#[test]
fn te_g15_a_producer_of_what_is_reduced_is_computed_where_it_is_read() {
    let (n, m) = (var("n").expr(), var("m").expr());
    let a = placeholder(&[n.clone(), m.clone()], DType::I32, "A").expect("a tensor");
    let t = compute(&[n.clone(), m.clone()], "T", |i| a.at(i) * a.at(i)).expect("a tensor");
    let k = reduce_axis(m, "k");
    let b = compute(from_ref(&n), "B", |i| sum(t.at((&i[0], &k)), from_ref(&k))).expect("a tensor");
    for local in [true, false] {
        let mut s = Schedule::new(from_ref(&b), &[a.clone(), b.clone()]).expect("a schedule");
        split_bound(&mut s, &b, 4, BlockX, ThreadY);
        let (outer, inner) = s.split(&b, &k, Split::Factor(8)).expect("splits");
        s.bind(&b, &inner, ThreadX).expect("bound");
        s.compute_at(&t, &b, &outer).expect("attached");
        if !local {
            s.set_scope(&t, MemScope::Shared).expect("shared");
            let axes = s.stage(&t).expect("a stage").axes().to_vec();
            s.bind(&t, &axes[0], ThreadY).expect("bound");
            s.bind(&t, &axes[1], ThreadX).expect("bound");
        }
        check(&s, &[&[("n", 5), ("m", 9)], &[("n", 1), ("m", 0)], &[("n", 4), ("m", 16)]]);
    }
}

#[test]
fn a_loop_of_several_rows_uses_its_registers_again() {
    let (n, m) = (var("n").expr(), var("m").expr());
    let a = placeholder(&[n.clone(), m.clone()], DType::I32, "A").expect("a tensor");
    let k = reduce_axis(m, "k");
    let b = compute(from_ref(&n), "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).expect("a tensor");
    let mut s = Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule");
    let (outer, _) = s.split(&b, &b.op().axes()[0].clone(), Split::Factor(3)).expect("splits");
    s.bind(&b, &outer, BlockX).expect("bound");
    let (_, inner) = s.split(&b, &k, Split::Factor(96)).expect("splits");
    s.bind(&b, &inner, ThreadX).expect("bound");
    check(&s, &[&[("n", 5), ("m", 9)], &[("n", 7), ("m", 200)]]);
}
