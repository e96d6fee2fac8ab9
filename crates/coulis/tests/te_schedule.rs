//! Scenarios T-C1 to T-C19: what primitives make of the loops. Those that only refuse are in `coulis-schedule`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/everywhere.rs"]
mod everywhere;

use std::slice::from_ref;

use coulis::te::{
    Expr, MemScope, Schedule, Split, Tensor, Var, build, comm_reducer, compute, compute_axes, compute_tuple,
    reduce_axis, sum,
};
use coulis::{DType, Owner};
use coulis_ir::{Attr, LoopKind};
use coulis_tensor::Body;
use everywhere::{
    argmax_of, c, count, f, flat_text, input, leaf, leaves, n, nest_text, realized, run_everywhere, schedule,
};

/// `B[i, j] = A[i, j] + 1` with axes `x` and `y`.
fn elementwise() -> (Schedule, Tensor) {
    let (m, l) = (n("m"), n("l"));
    let a = input(&[m.clone(), l.clone()], DType::F32, "A");
    let b = compute_axes(&[m, l], &["x", "y"], "B", |i| a.at(i) + f(1.0)).unwrap();
    (schedule(from_ref(&b), &[a]), b)
}

const TWO: &[&[(&str, i64)]] = &[&[("m", 13), ("l", 9)], &[("m", 1), ("l", 1)], &[("m", 16), ("l", 8)]];

#[test]
fn te_c1_split_tile_and_fuse_give_these_loops() {
    let (mut s, _) = elementwise();
    let (x, y) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    s.split("B", &x, Split::Factor(10)).unwrap();
    assert_eq!(leaves(&s, "B"), ["x_outer", "x_inner", "y"]);
    run_everywhere(&s, TWO);
    let inner = leaf(&s, "B", 1);
    s.fuse("B", &[inner, y]).unwrap();
    assert_eq!(leaves(&s, "B"), ["x_outer", "x_inner_y_fused"]);
    run_everywhere(&s, TWO);
    let (mut s, _) = elementwise();
    let (x, y) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    let [xo, yo, ..] = s.tile("B", &x, &y, 10, 5).unwrap();
    assert_eq!(leaves(&s, "B"), ["x_outer", "y_outer", "x_inner", "y_inner"]);
    run_everywhere(&s, TWO);
    s.fuse("B", &[xo, yo]).unwrap();
    assert_eq!(leaves(&s, "B"), ["x_outer_y_outer_fused", "x_inner", "y_inner"]);
    run_everywhere(&s, TWO);
}

#[test]
fn te_c2_reorder_gives_the_order_that_is_asked_for() {
    let (mut s, _) = elementwise();
    let x = leaf(&s, "B", 0);
    let (xo, xi) = s.split("B", &x, Split::Factor(10)).unwrap();
    let (xi1, xi2) = s.split("B", &xi, Split::Factor(10)).unwrap();
    s.reorder("B", &[xi2.clone(), xi1.clone(), xo.clone()]).unwrap();
    let order: Vec<String> = [&xi2, &xi1, &xo].iter().map(|a| a.name().to_owned()).collect();
    assert_eq!(leaves(&s, "B")[..3], order);
    run_everywhere(&s, TWO);
    let error = s.reorder("B", &[xi2.clone(), xi2]).unwrap_err().to_string();
    assert!(error.ends_with("twice; each axis stands once"), "{error}");
}

#[test]
fn te_c4_no_loops_fused_are_one_loop_of_one_iteration() {
    let a = input(&[], DType::F32, "A");
    let b = compute(&[], "B", |_| a.at(()) + f(1.0)).unwrap();
    let mut s = schedule(&[b], &[a]);
    assert!(leaves(&s, "B").is_empty());
    let one = s.fuse("B", &[]).unwrap();
    assert_eq!(s.stage("B").unwrap().leaves(), [one]);
    run_everywhere(&s, &[&[]]);
}

#[test]
fn te_c5_a_data_axis_is_vectorized_and_a_reduce_axis_is_not() {
    let (m, l) = (n("m"), n("l"));
    let a = input(&[m.clone(), l.clone()], DType::F32, "A");
    let k = reduce_axis(l, "k");
    let b = compute(from_ref(&m), "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    let mut s = schedule(&[b], &[a]);
    let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    let (_, lane) = s.split("B", &i, Split::Factor(4)).unwrap();
    s.vectorize("B", &lane).unwrap();
    assert_eq!(s.stage("B").unwrap().kind_of(&lane), LoopKind::Vectorized);
    let error = s.vectorize("B", &k).unwrap_err().to_string();
    assert!(error.starts_with("vectorize takes a data axis of `B`, and `k` is a reduce axis"), "{error}");
    run_everywhere(&s, TWO);
}

#[test]
fn te_c6_a_pragma_is_kept_and_that_of_vectorize_vectorizes() {
    let (mut s, _) = elementwise();
    let (x, y) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    let (xo, xi) = s.split("B", &x, Split::Factor(10)).unwrap();
    let (_, yi) = s.split("B", &y, Split::Factor(4)).unwrap();
    s.pragma("B", &xo, "debug_skip_region", Attr::Int(1)).unwrap();
    s.pragma("B", &yi, "vectorize", Attr::Int(1)).unwrap();
    assert_eq!(s.stage("B").unwrap().kind_of(&yi), LoopKind::Vectorized);
    assert_eq!(s.stage("B").unwrap().kind_of(&xi), LoopKind::Serial);
    assert!(nest_text(&s).contains("\"pragma_debug_skip_region\""), "{}", nest_text(&s));
    run_everywhere(&s, TWO);
}

/// `B[i] = sum over k1, k2 of A[i, k1, k2]`.
fn two_reduce_axes() -> Schedule {
    let m = n("n");
    let a = input(&[m.clone(), m.clone(), m.clone()], DType::F32, "A");
    let (k1, k2) = (reduce_axis(m.clone(), "k1"), reduce_axis(m.clone(), "k2"));
    let b = compute(&[m], "B", |i| sum(a.at((&i[0], &k1, &k2)), &[k1.clone(), k2.clone()])).unwrap();
    schedule(&[b], &[a])
}

fn axis_names(s: &Schedule, stage: &str) -> Vec<String> {
    let Body::Reduce(r) = s.stage(stage).unwrap().body() else { panic!("`{stage}` is no reduction") };
    r.axes.iter().map(|a| a.name().to_owned()).collect()
}

#[test]
fn te_c7_factoring_makes_a_dimension_of_a_loop() {
    let sizes: &[&[(&str, i64)]] = &[&[("n", 6)], &[("n", 1)], &[("n", 9)]];
    let mut s = two_reduce_axes();
    let k1 = leaf(&s, "B", 1);
    s.rfactor("B", &k1).unwrap();
    assert_eq!(realized(&s, "B.rf"), ["n", "n"]);
    assert_eq!(axis_names(&s, "B_rf"), ["k2"]);
    assert_eq!(axis_names(&s, "B").len(), 1);
    run_everywhere(&s, sizes);
    for (position, shape) in [(0, ["4", "n"]), (1, ["n", "4"]), (-1, ["n", "4"]), (-2, ["4", "n"])] {
        let mut s = two_reduce_axes();
        let k1 = leaf(&s, "B", 1);
        let (_, ki) = s.split("B", &k1, Split::Factor(4)).unwrap();
        let i = leaf(&s, "B", 0);
        s.split("B", &i, Split::Factor(8)).unwrap();
        s.rfactor_at("B", &ki, position).unwrap();
        assert_eq!(realized(&s, "B.rf"), shape, "at {position}");
        assert_eq!(axis_names(&s, "B_rf"), ["k2", "k1_outer"]);
        let stage = s.stage("B").unwrap();
        let (_, extent) = stage.reduce_axes()[0].dom().unwrap();
        assert!(extent.is_int(4));
        run_everywhere(&s, sizes);
    }
}

/// `B = A * 2`, `C = B + 1`.
fn chain(shape: &[Expr]) -> Schedule {
    let a = input(shape, DType::F32, "A");
    let b = compute(shape, "B", |i| a.at(i) * f(2.0)).unwrap();
    let d = compute(shape, "C", |i| b.at(i) + f(1.0)).unwrap();
    schedule(&[d], &[a])
}

#[test]
fn te_c8_a_stage_follows_the_loop_that_holds_it() {
    let shape = [c(10), c(10)];
    let mut s = chain(&shape);
    let j = leaf(&s, "C", 1);
    s.compute_at("B", "C", &j).unwrap();
    let (_, inner) = s.split("C", &j, Split::Factor(2)).unwrap();
    assert_eq!(realized(&s, "B"), ["1", "1"], "inside `{}`:\n{}", inner.name(), nest_text(&s));
    run_everywhere(&s, &[&[]]);
    let mut s = chain(&shape);
    let (i, j) = (leaf(&s, "C", 0), leaf(&s, "C", 1));
    s.compute_at("B", "C", &j).unwrap();
    match s.fuse("C", &[i, j]) {
        Ok(_) => run_everywhere(&s, &[&[]]),
        Err(error) => assert!(error.to_string().contains("is computed at axes of `C`"), "{error}"),
    }
}

#[test]
fn te_c10_copies_lower_with_and_without_splits_and_constant_ones_without_guards() {
    let (m, l) = (n("m"), n("l"));
    let a = input(&[m.clone(), l.clone()], DType::F32, "A");
    let copy = compute(&[m.clone(), l.clone()], "B", |i| a.at(i)).unwrap();
    run_everywhere(&schedule(&[copy], from_ref(&a)), TWO);
    let mut s = chain(&[m.clone(), l]);
    let i = leaf(&s, "C", 0);
    let (outer, _) = s.split("C", &i, Split::Factor(8)).unwrap();
    s.pragma("C", &outer, "auto_unroll_max_step", Attr::Int(10)).unwrap();
    run_everywhere(&s, TWO);
    s.compute_at("B", "C", &outer).unwrap();
    run_everywhere(&s, TWO);
    let mut s = chain(&[c(128)]);
    let i = leaf(&s, "C", 0);
    let (outer, _) = s.split("C", &i, Split::Factor(8)).unwrap();
    s.compute_at("B", "C", &outer).unwrap();
    assert_eq!(realized(&s, "B"), ["8"]);
    assert_eq!(count(&nest_text(&s), "if "), 0, "{}", nest_text(&s));
    run_everywhere(&s, &[&[]]);
}

#[test]
fn a_fold_of_partial_states_that_know_their_places_is_cut() {
    let b = input(&[n("m"), c(15)], DType::I32, "B");
    let left = comm_reducer(
        |x, y| {
            let keep = x[1].clone().ge(y[1].clone());
            (0..2).map(|i| Expr::select(keep.clone(), x[i].clone(), y[i].clone())).collect()
        },
        |_| vec![Expr::int(-1), Expr::int(i32::MIN)],
        "left",
    );
    let k = reduce_axis(c(15), "k");
    let of_row = |i: &[Var]| left.reduce(vec![k.expr(), b.at((&i[0], &k))], from_ref(&k));
    let both = compute_tuple(&[n("m")], "T", of_row).unwrap();
    for length in [1, 2] {
        let mut s = schedule(&both, from_ref(&b));
        let k = leaf(&s, "T", 1);
        let (_, inner) = s.split("T", &k, Split::Factor(3)).unwrap();
        s.rfactor("T", &inner).unwrap();
        let last = leaf(&s, "T", 1);
        s.cut("T", &last, length).unwrap();
        run_everywhere(&s, &[&[("m", 4)], &[("m", 1)]]);
    }
}

#[test]
fn a_fold_goes_on_from_its_first_elements() {
    let (rows, length) = (n("n"), n("m"));
    let a = input(&[rows.clone(), length.clone()], DType::I32, "A");
    let start = input(from_ref(&rows), DType::I32, "start");
    let k = reduce_axis(length, "k");
    let from_start = |i: &[Var]| {
        let fold = sum(a.at((&i[0], &k)), from_ref(&k))?;
        fold.init(vec![start.at(i)])
    };
    let begun = compute(from_ref(&rows), "B", from_start).unwrap();
    let sizes: [&[(&str, i64)]; 4] =
        [&[("n", 3), ("m", 7)], &[("n", 2), ("m", 4)], &[("n", 1), ("m", 2)], &[("n", 2), ("m", 1)]];
    for is_split in [false, true] {
        let mut s = schedule(from_ref(&begun), &[a.clone(), start.clone()]);
        let k = leaf(&s, "B", 1);
        let head = s.begin("B", &k, 4).unwrap();
        if is_split {
            let k = leaf(&s, "B", 1);
            let (outer, _) = s.split("B", &k, Split::Factor(2)).unwrap();
            s.rfactor("B", &outer).unwrap();
            let row = leaf(&s, "B", 0);
            s.compute_at(head, "B", &row).unwrap();
        }
        run_everywhere(&s, &sizes);
    }
    // A number of elements that differs from row to row, of which the second has three.
    let b = input(&[c(5), c(9)], DType::F32, "A");
    let of_row = |i: &[Var]| {
        let k = reduce_axis(i[0].expr() + c(2), "k");
        sum(b.at((&i[0], &k)), from_ref(&k))
    };
    let t = compute(&[c(5)], "C", of_row).unwrap();
    let mut s = schedule(from_ref(&t), from_ref(&b));
    let k = leaf(&s, "C", 1);
    s.begin("C", &k, 3).unwrap();
    run_everywhere(&s, &[&[]]);
}

#[test]
fn sizes_of_what_is_computed_in_a_loop_follow_its_variable() {
    let triangle = |rows: i32| {
        let a = input(&[c(rows), c(9)], DType::F32, "A");
        let b = compute(&[c(rows), c(9)], "B", |i| a.at(i) + f(1.0)).unwrap();
        let of_row = |i: &[Var]| {
            let k = reduce_axis(i[0].expr() + c(3), "k");
            sum(b.at((&i[0], &k)), from_ref(&k))
        };
        let t = compute(&[c(rows)], "C", of_row).unwrap();
        let mut s = schedule(from_ref(&t), from_ref(&a));
        let row = leaf(&s, "C", 0);
        s.compute_at("B", "C", &row).unwrap();
        (s, row)
    };
    // A loop of one step, one that is written out, and parts of one.
    run_everywhere(&triangle(1).0, &[&[]]);
    let (mut s, row) = triangle(4);
    s.unroll("C", &row).unwrap();
    run_everywhere(&s, &[&[]]);
    let (mut s, row) = triangle(5);
    s.split("C", &row, Split::Factor(5)).unwrap();
    run_everywhere(&s, &[&[]]);
}

#[test]
fn te_c11_producers_are_inlined_into_a_tuple_reduction() {
    let m = n("m");
    let shape = [m.clone(), c(7)];
    let a = input(&shape, DType::F32, "A");
    let b = compute(&shape, "B", |i| a.at(i) + f(1.0)).unwrap();
    let d = compute(&shape, "D", |i| b.at(i) * f(2.0)).unwrap();
    let both = argmax_of(&d, 1, "T");
    let mut s = schedule(&both, &[a]);
    s.compute_inline("B").unwrap();
    s.compute_inline("D").unwrap();
    let text = nest_text(&s);
    assert_eq!(count(&text, "T.allocate"), 0, "{text}");
    assert_eq!(count(&text, "for k in"), 1, "one fold for both components:\n{text}");
    run_everywhere(&s, &[&[("m", 4)], &[("m", 1)]]);
}

#[test]
fn te_c12_caches_of_inputs_outputs_and_intermediates() {
    let (m, l) = (n("m"), n("l"));
    let shape = [m.clone(), l.clone()];
    let (a, b) = (input(&shape, DType::F32, "A"), input(&shape, DType::F32, "B"));
    let t = compute(&shape, "C", |i| a.at(i) * b.at(i)).unwrap();
    let mut s = schedule(from_ref(&t), &[a.clone(), b.clone()]);
    s.cache_read(&a, MemScope::Global, &["C".into()]).unwrap();
    s.cache_write("C", MemScope::Global).unwrap();
    run_everywhere(&s, TWO);
    // An intermediate, cached for one of its readers.
    let t = compute(&shape, "C", |i| a.at(i) * b.at(i)).unwrap();
    let d = compute(&shape, "D", |i| t.at(i) + f(1.0)).unwrap();
    let e = compute(&shape, "E", |i| t.at(i) + d.at(i)).unwrap();
    let mut s = schedule(&[e], &[a, b]);
    let written = s.cache_write("C", MemScope::Global).unwrap();
    let name = s.stage(written).unwrap().name().to_owned();
    let read = s.cache_read(&t, MemScope::Global, &["D".into()]).unwrap();
    assert_ne!(s.stage(read).unwrap().name(), name);
    run_everywhere(&s, TWO);
}

#[test]
fn te_c13_a_cached_layout_follows_the_loops() {
    let (m, l) = (n("m"), n("l"));
    let shape = [m.clone() * c(4), l.clone()];
    let a = input(&[m.clone() * c(4), l.clone()], DType::F32, "A");
    let sized = input(&[m.clone(), l.clone()], DType::F32, "M");
    let t = compute(&shape, "C", |i| a.at(i) * f(2.0)).unwrap();
    let args = [a, sized, t.clone()];
    let sizes: &[&[(&str, i64)]] = &[&[("m", 3), ("l", 5)], &[("m", 1), ("l", 1)]];
    let mut s = Schedule::new(from_ref(&t), &args).unwrap();
    let (i, j) = (leaf(&s, "C", 0), leaf(&s, "C", 1));
    s.reorder("C", &[j.clone(), i.clone()]).unwrap();
    s.cache_write("C", MemScope::Global).unwrap();
    let shape = realized(&s, "C.global");
    assert_eq!(shape[0], "l", "{shape:?}");
    run_everywhere(&s, sizes);
    let mut s = Schedule::new(from_ref(&t), &args).unwrap();
    let (outer, inner) = s.split("C", &j, Split::Factor(4)).unwrap();
    s.reorder("C", &[outer, i, inner]).unwrap();
    s.cache_write("C", MemScope::Global).unwrap();
    let shape = realized(&s, "C.global");
    assert_eq!((shape.len(), shape[2].as_str()), (3, "4"), "{shape:?}");
    run_everywhere(&s, sizes);
    // A tuple is cached whole.
    let b = input(&[m.clone(), c(6)], DType::F32, "B");
    let both = argmax_of(&b, 1, "T");
    let mut s = schedule(&both, &[b]);
    s.cache_write("T", MemScope::Global).unwrap();
    let text = nest_text(&s);
    assert_eq!(count(&text, "T.allocate"), 2, "{text}");
    run_everywhere(&s, &[&[("m", 5)]]);
}

#[test]
fn te_c14_a_tuple_consumer_of_an_inlined_producer_with_caches() {
    let m = n("m");
    let shape = [m.clone(), c(6)];
    let a = input(&shape, DType::F32, "A");
    let b = compute(&shape, "B", |i| a.at(i) + f(1.0)).unwrap();
    let both = compute_tuple(&shape, "T", |i| vec![b.at(i) * f(2.0), b.at(i) * f(3.0)]).unwrap();
    let d = compute(&shape, "D", |i| both[0].at(i) + both[1].at(i)).unwrap();
    let mut s = schedule(from_ref(&d), from_ref(&a));
    let cached = s.cache_read(&a, MemScope::Global, &["B".into()]).unwrap();
    s.compute_inline("B").unwrap();
    s.cache_write("T", MemScope::Local).unwrap();
    let row = leaf(&s, "D", 0);
    s.compute_at("T", "D", &row).unwrap();
    let text = nest_text(&s);
    assert!(!text.contains("B = T.allocate"), "{text}");
    assert!(s.stage(cached).is_ok());
    run_everywhere(&s, &[&[("m", 5)], &[("m", 1)]]);
}

#[test]
fn te_c16_the_trace_records_the_primitives_and_replays() {
    let (m, l, k) = (n("m"), n("l"), n("k"));
    let a = input(&[m.clone(), k.clone()], DType::F32, "A");
    let b = input(&[k.clone(), l.clone()], DType::F32, "B");
    let r = reduce_axis(k, "k");
    let t = compute(&[m, l], "C", |i| sum(a.at((&i[0], &r)) * b.at((&r, &i[1])), from_ref(&r))).unwrap();
    let mut s = schedule(&[t], &[a, b]);
    let (x, y, k) = (leaf(&s, "C", 0), leaf(&s, "C", 1), leaf(&s, "C", 2));
    let [xo, yo, xi, yi] = s.tile("C", &x, &y, 8, 4).unwrap();
    let (ko, ki) = s.split("C", &k, Split::Factor(4)).unwrap();
    s.reorder("C", &[xo.clone(), yo, ko, xi, ki, yi.clone()]).unwrap();
    s.vectorize("C", &yi).unwrap();
    s.parallel("C", &xo).unwrap();
    let names: Vec<&str> = s.trace().steps().iter().map(|step| step.primitive.as_str()).collect();
    assert_eq!(names, ["tile", "split", "reorder", "vectorize", "parallel"]);
    let again = Schedule::replay(s.program(), s.trace().steps()).unwrap();
    assert_eq!(nest_text(&again), nest_text(&s));
    // Tile is split, split and reorder.
    let (tiled, _) = elementwise();
    let parts = |by_tile: bool| {
        let mut s = tiled.clone();
        let (x, y) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
        if by_tile {
            s.tile("B", &x, &y, 8, 4).unwrap();
        } else {
            let (xo, xi) = s.split("B", &x, Split::Factor(8)).unwrap();
            let (yo, yi) = s.split("B", &y, Split::Factor(4)).unwrap();
            s.reorder("B", &[xo, yo, xi, yi]).unwrap();
        }
        nest_text(&s)
    };
    assert_eq!(parts(true), parts(false));
    run_everywhere(&s, &[&[("m", 13), ("l", 9), ("k", 7)], &[("m", 8), ("l", 8), ("k", 4)]]);
}

#[test]
fn te_c18_an_uneven_split_of_a_constant_has_one_guard() {
    let a = input(&[c(16)], DType::F32, "A");
    let b = input(&[c(16)], DType::F32, "B");
    let t = compute(&[c(16)], "C", |i| a.at(i) + b.at(i)).unwrap();
    let mut s = schedule(&[t], &[a, b]);
    let i = leaf(&s, "C", 0);
    s.split("C", &i, Split::Factor(5)).unwrap();
    assert_eq!(count(&nest_text(&s), "if T.likely"), 1, "{}", nest_text(&s));
    let simple = coulis::te::listing(&s, s.program().args(), "main").unwrap();
    assert_eq!(count(&simple, "if T.likely"), 1, "{simple}");
    run_everywhere(&s, &[&[]]);
}

#[test]
fn te_c19_a_shape_may_be_a_quotient_of_sizes() {
    let (m, x) = (n("n"), n("x"));
    let a = input(from_ref(&m), DType::F32, "A");
    let parts = input(from_ref(&x), DType::F32, "X");
    let shape = m.floordiv(x);
    let t = compute(from_ref(&shape), "B", |i| a.at(i) + parts.at([0])).unwrap();
    let s = schedule(&[t], &[a, parts]);
    assert!(!flat_text(&s).is_empty());
    run_everywhere(&s, &[&[("n", 10), ("x", 3)], &[("n", 4), ("x", 4)], &[("n", 2), ("x", 4)]]);
}

/// `T1 = T0 * T0 + T0`, `T2 = T1 * T1 + T1`, …, of which all but the last are computed where they are read.
fn inlined_chain(stages: usize) -> Schedule {
    let length = n("n");
    let a = input(from_ref(&length), DType::F32, "A");
    let mut tensors = vec![a.clone()];
    for stage in 1..=stages {
        let before = tensors[stage - 1].clone();
        let t =
            compute(from_ref(&length), &format!("T{stage}"), |i| before.at(i) * before.at(i) + before.at(i));
        tensors.push(t.unwrap());
    }
    let mut s = schedule(&[tensors[stages].clone()], &[a]);
    for stage in 1..stages {
        s.compute_inline(format!("T{stage}").as_str()).unwrap();
    }
    s
}

#[test]
fn a_chain_of_inlined_stages_is_written_out_as_far_as_it_is_legal() {
    let s = inlined_chain(9);
    let f = build(&s, s.program().args(), "main").unwrap();
    assert_eq!(f.parameters().len(), 2);
    for (stages, operations, more) in
        [(10, "177146", 4), (12, "1594322", 6), (60, "18446744073709551615", 54)]
    {
        let s = inlined_chain(stages);
        let error = build(&s, s.program().args(), "main").err().unwrap();
        assert_eq!(error.owner, Owner::User);
        let want = format!(
            "an element of `T{stages}` takes {operations} operations with `T1`, `T2`, `T3`, `T4`, `T5` and {more} more \
             inlined, and legal are at most 100000; compute a part of them in a stage with loops of its own"
        );
        assert_eq!(error.message, want);
    }
    let a = input(&[c(4)], DType::F32, "A");
    let long = compute(&[c(4)], "B", |i| (0..40).fold(a.at(i), |e, _| e.clone() * e.clone() + e)).unwrap();
    let error =
        coulis::te::build_nest(&schedule(from_ref(&long), from_ref(&a)), &[a, long], "main").unwrap_err();
    let want = "an element of `B` takes 18446744073709551615 operations, and legal are at most 100000; compute a part \
                of them in a stage with loops of its own";
    assert_eq!(error.to_string(), want);
}
