//! Axes without points: extents of sizes that are 0 or less at a call are no iterations, whatever is done to their loops.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/everywhere.rs"]
mod everywhere;

use std::slice::from_ref;

use coulis::DType;
use coulis::te::{Expr, IterVar, Schedule, Split, compute, reduce_axis, reduce_axis_of, sum};
use coulis_ir::ThreadTag::{BlockX, ThreadX};
use everywhere::{Sizes, c, flat_text, input, leaf, n, run_everywhere, schedule};

/// Both axes of a reduction from 3 on empty, one of them, none.
const FROM_3: &[Sizes] = &[
    &[("n", 1), ("m", 1)],
    &[("n", 0), ("m", 2)],
    &[("n", 1), ("m", 5)],
    &[("n", 5), ("m", 1)],
    &[("n", 5), ("m", 7)],
];

/// The sum of what is behind the first three rows and columns.
fn corner() -> Schedule {
    let (rows, columns) = (n("n"), n("m"));
    let a = input(&[rows.clone(), columns.clone()], DType::I32, "A");
    let (k0, k1) = (reduce_axis_of(c(3), rows - c(3), "k0"), reduce_axis_of(c(3), columns - c(3), "k1"));
    let b = compute(&[c(2)], "B", |_| sum(a.at((&k0, &k1)), &[k0.clone(), k1.clone()])).unwrap();
    schedule(from_ref(&b), from_ref(&a))
}

#[test]
fn two_empty_loops_in_one_are_empty() {
    run_everywhere(&corner(), FROM_3);
    let mut s = corner();
    let (k0, k1) = (leaf(&s, "B", 1), leaf(&s, "B", 2));
    let fused = s.fuse("B", &[k0, k1]).unwrap();
    run_everywhere(&s, FROM_3);
    let (_, inner) = s.split("B", &fused, Split::Factor(4)).unwrap();
    run_everywhere(&s, FROM_3);
    s.rfactor("B", &inner).unwrap();
    run_everywhere(&s, FROM_3);
    let mut all = corner();
    let axes: Vec<_> = (0..3).map(|at| leaf(&all, "B", at)).collect();
    all.fuse("B", &axes).unwrap();
    run_everywhere(&all, FROM_3);
}

/// What a window of three by three leaves of an array, and the sum of it.
fn valid_window() -> Schedule {
    let (rows, columns) = (n("n"), n("m"));
    let a = input(&[rows.clone(), columns.clone()], DType::I32, "A");
    let left = [rows - c(2), columns - c(2)];
    let inner = compute(&left, "S", |i| {
        a.at([i[0].expr(), i[1].expr()]) + a.at([i[0].expr() + c(2), i[1].expr() + c(2)])
    })
    .unwrap();
    let (k0, k1) = (reduce_axis(left[0].clone(), "k0"), reduce_axis(left[1].clone(), "k1"));
    let b = compute(&[c(2)], "B", |_| sum(inner.at((&k0, &k1)), &[k0.clone(), k1.clone()])).unwrap();
    schedule(from_ref(&b), from_ref(&a))
}

#[test]
fn memory_of_less_than_no_elements_is_none() {
    const SIZES: &[Sizes] = &[
        &[("n", 1), ("m", 5)],
        &[("n", 5), ("m", 0)],
        &[("n", 1), ("m", 1)],
        &[("n", 2), ("m", 4)],
        &[("n", 4), ("m", 6)],
    ];
    run_everywhere(&valid_window(), SIZES);
    let mut fused = valid_window();
    let axes = [leaf(&fused, "S", 0), leaf(&fused, "S", 1)];
    fused.fuse("S", &axes).unwrap();
    run_everywhere(&fused, SIZES);
    let axes = [leaf(&fused, "B", 1), leaf(&fused, "B", 2)];
    fused.fuse("B", &axes).unwrap();
    run_everywhere(&fused, SIZES);
    let mut attached = valid_window();
    let i = leaf(&attached, "B", 0);
    attached.compute_at("S", "B", &i).unwrap();
    run_everywhere(&attached, SIZES);
    let mut parts = corner();
    let k = leaf(&parts, "B", 1);
    parts.rfactor("B", &k).unwrap();
    run_everywhere(&parts, FROM_3);
}

/// Sums of the rows of an array with that number of columns.
fn row_sums(columns: &Expr) -> Schedule {
    let a = input(&[c(8), columns.clone()], DType::I32, "A");
    let k = reduce_axis(columns.clone(), "k");
    let b = compute(&[c(8)], "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    schedule(from_ref(&b), from_ref(&a))
}

#[test]
fn a_split_by_a_size_that_is_less_than_1_leaves_no_point_out() {
    const SIZES: &[Sizes] = &[&[("n", 0)], &[("n", 1)], &[("n", 3)], &[("n", 8)], &[("n", 11)]];
    let size = n("n");
    for by in [size.clone(), size.clone() - c(3), size.clone() * c(2) - c(7)] {
        for (at, split) in [0, 1].into_iter().flat_map(|at| {
            [Split::FactorExpr(by.clone()), Split::NpartsExpr(by.clone())].map(|split| (at, split))
        }) {
            let mut s = row_sums(&size);
            let axis = leaf(&s, "B", at);
            let (outer, inner) = s.split("B", &axis, split.clone()).unwrap();
            run_everywhere(&s, SIZES);
            s.fuse("B", &[outer, inner.clone()]).unwrap();
            run_everywhere(&s, SIZES);
            if at == 1 {
                let mut s = row_sums(&size);
                let axis = leaf(&s, "B", at);
                let (_, inner) = s.split("B", &axis, split).unwrap();
                s.rfactor("B", &inner).unwrap();
                run_everywhere(&s, SIZES);
            }
        }
    }
}

#[test]
fn a_quotient_by_a_size_in_the_extent_of_attached_memory_ends() {
    let size = n("n");
    let a = input(from_ref(&size), DType::I32, "A");
    let before = compute(from_ref(&size), "S", |i| a.at(i) + c(1)).unwrap();
    let b = compute(from_ref(&size), "B", |i| {
        before.at(i) - before.at([(i[0].expr() + c(2)).floormod(size.clone())])
    })
    .unwrap();
    let mut s = schedule(from_ref(&b), from_ref(&a));
    let i = leaf(&s, "B", 0);
    s.compute_at("S", "B", &i).unwrap();
    assert!(flat_text(&s).contains("S"));
}

/// Sums over `[min(3 * i, 3), 3)`, which is empty but for the first row, of the rows behind the first.
fn rows_without_points(rows: &Expr) -> (Schedule, IterVar, IterVar) {
    let a = input(&[c(3)], DType::I32, "A");
    let b = compute(from_ref(rows), "B", |i| {
        let begin = (i[0].expr() * c(3)).min(c(3));
        let k = reduce_axis_of(begin.clone(), c(3) - begin, "k");
        sum(a.at([&k]), from_ref(&k))?.where_(i[0].expr().gt(c(0)))
    })
    .unwrap();
    let s = schedule(from_ref(&b), from_ref(&a));
    let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    (s, i, k)
}

#[test]
fn what_a_loop_without_points_would_read_is_not_outside() {
    for rows in [c(5), n("n")] {
        let sizes: Sizes = if rows.as_int().is_some() { &[] } else { &[("n", 5)] };
        let (mut s, i, k) = rows_without_points(&rows);
        run_everywhere(&s, &[sizes]);
        s.bind("B", &i, BlockX).unwrap();
        run_everywhere(&s, &[sizes]);
        let (_, inner) = s.split("B", &k, Split::Factor(2)).unwrap();
        run_everywhere(&s, &[sizes]);
        s.bind("B", &inner, ThreadX).unwrap();
        run_everywhere(&s, &[sizes]);
        let (mut s, i, _) = rows_without_points(&rows);
        let (outer, inner) = s.split("B", &i, Split::Factor(2)).unwrap();
        s.bind("B", &outer, BlockX).unwrap();
        s.bind("B", &inner, ThreadX).unwrap();
        run_everywhere(&s, &[sizes]);
    }
}
