//! Scenarios T-B1 to T-P8: how much of a producer is computed where, which guards are left, and what passes do with
//! them. Those of single passes are in `coulis-lower`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/everywhere.rs"]
mod everywhere;

use std::slice::from_ref;

use coulis::DType;
use coulis::te::{Expr, MemScope, Schedule, Split, Tensor, compute, max, reduce_axis, sum};
use coulis_ir::eval::Value;
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::for_each_stmt;
use coulis_ir::{Stmt, ThreadTag};
use everywhere::{
    Tolerance, c, chain, count, f, flat_text, input, leaf, n, nest, nest_text, realized, run_as_scheduled,
    run_everywhere, run_everywhere_with, schedule, small,
};

#[test]
fn te_b1_a_producer_is_computed_as_far_as_the_inner_loops_reach() {
    let (m, l) = (n("m"), n("l"));
    let sizes: &[&[(&str, i64)]] = &[&[("m", 13), ("l", 9)], &[("m", 1), ("l", 1)], &[("m", 16), ("l", 16)]];
    let mut s = chain(&[m.clone(), l.clone()]);
    let i = leaf(&s, "C", 0);
    let (outer, _) = s.split("C", &i, Split::Factor(8)).unwrap();
    s.compute_at("B", "C", &outer).unwrap();
    assert_eq!(realized(&s, "B"), ["8", "l"]);
    run_everywhere(&s, sizes);
    let mut s = chain(&[m, l]);
    let (i, j) = (leaf(&s, "C", 0), leaf(&s, "C", 1));
    let [_, yo, ..] = s.tile("C", &i, &j, 8, 8).unwrap();
    s.compute_at("B", "C", &yo).unwrap();
    assert_eq!(realized(&s, "B"), ["8", "8"]);
    run_everywhere(&s, sizes);
}

#[test]
fn te_b2_a_factor_above_the_extent_gives_a_loop_of_the_extent() {
    for by in [Split::Factor(32), Split::Nparts(32)] {
        let mut s = chain(&[c(8)]);
        let i = leaf(&s, "C", 0);
        s.split("C", &i, by.clone()).unwrap();
        let text = nest_text(&s);
        assert_eq!((count(&text, "range(32)"), count(&text, "if ")), (0, 0), "{by:?}:\n{text}");
        assert!(text.contains("range(8)"), "{text}");
        run_everywhere(&s, &[&[]]);
    }
}

#[test]
fn te_b3_extents_that_the_factor_divides_need_no_guard() {
    let (m, l) = (n("m"), n("l"));
    let shape = [m.clone() * c(8), l.clone() * c(32)];
    let sized = input(&[m, l], DType::F32, "S");
    let a = input(&shape, DType::F32, "A");
    let b = compute(&shape, "B", |i| a.at(i) + f(1.0)).unwrap();
    let args = [a, sized, b.clone()];
    let sizes: &[&[(&str, i64)]] = &[&[("m", 2), ("l", 1)], &[("m", 1), ("l", 2)]];
    let mut s = Schedule::new(from_ref(&b), &args).unwrap();
    let (i, j) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    s.tile("B", &i, &j, 8, 32).unwrap();
    let text = nest_text(&s);
    assert_eq!(count(&text, "if "), 0, "{text}");
    assert!(text.contains("T.grid(m, l, 8, 32)"), "{text}");
    run_everywhere(&s, sizes);
}

#[test]
fn te_b4_a_fused_loop_that_is_cut_covers_the_rows_that_it_meets() {
    let (m, l) = (n("m"), n("l"));
    let sizes: &[&[(&str, i64)]] = &[&[("m", 6), ("l", 7)], &[("m", 1), ("l", 1)], &[("m", 5), ("l", 12)]];
    for by in [5, 12, 32] {
        let mut s = chain(&[m.clone(), l.clone()]);
        let (i, j) = (leaf(&s, "C", 0), leaf(&s, "C", 1));
        let fused = s.fuse("C", &[i, j]).unwrap();
        let (outer, _) = s.split("C", &fused, Split::Factor(by)).unwrap();
        s.compute_at("B", "C", &outer).unwrap();
        run_everywhere(&s, sizes);
    }
    // Aligned rows: 3 parts of a row of 9 are one row and three columns.
    let mut s = chain(&[m, c(9)]);
    let (i, j) = (leaf(&s, "C", 0), leaf(&s, "C", 1));
    let fused = s.fuse("C", &[i, j]).unwrap();
    let (outer, _) = s.split("C", &fused, Split::Factor(3)).unwrap();
    s.compute_at("B", "C", &outer).unwrap();
    run_everywhere(&s, &[&[("m", 4)], &[("m", 1)]]);
    let shape = realized(&s, "B");
    assert_eq!(shape[0], "1", "{shape:?}\n{}", nest_text(&s));
}

#[test]
fn te_b6_a_factored_row_sum_under_a_condition_has_these_extents() {
    let m = n("m");
    let a = input(from_ref(&m), DType::F32, "A");
    let k = reduce_axis(m, "k");
    let b = compute(&[c(1)], "B", |_| sum(a.at([&k]), from_ref(&k))?.where_(k.expr().gt(c(1)))).unwrap();
    let mut s = schedule(&[b], &[a]);
    let k = leaf(&s, "B", 1);
    let (outer, _) = s.split("B", &k, Split::Nparts(4)).unwrap();
    s.rfactor("B", &outer).unwrap();
    assert_eq!(realized(&s, "B.rf"), ["4", "1"]);
    run_everywhere(&s, &[&[("m", 10)], &[("m", 1)], &[("m", 3)], &[("m", 0)], &[("m", 16)]]);
}

#[test]
fn te_b9_hard_indices_and_blocks_with_a_tail_are_covered_closely() {
    // A window that moves by 2 with a padding of 1 reads two places at most.
    let a = input(&[c(30)], DType::F32, "A");
    let b = compute(&[c(30)], "B", |i| a.at(i) + f(1.0)).unwrap();
    let d = compute(&[c(20)], "C", |i| {
        let half = i[0].expr().floordiv(c(2));
        b.at([half.clone() + i[0].expr().floormod(c(2))]) + b.at([half])
    })
    .unwrap();
    let mut s = schedule(&[d], &[a]);
    let i = leaf(&s, "C", 0);
    s.compute_at("B", "C", &i).unwrap();
    let mut analyzer = Analyzer::new();
    let mut most = None;
    for_each_stmt(&nest(&s).body, &mut |stmt| match stmt {
        Stmt::For { var, min, extent, .. } => analyzer.bind(var, min, extent),
        Stmt::Allocate { buffer, .. } => most = analyzer.const_bounds(&buffer.shape[0]).1,
        _ => {}
    });
    assert_eq!(most, Some(2), "{}", nest_text(&s));
    run_everywhere(&s, &[&[]]);
    // Channels in blocks of 4, of which the last has 3.
    let a = input(&[c(11), c(5)], DType::F32, "A");
    let b = compute(&[c(3), c(4), c(5)], "B", |i| {
        let channel = i[0].expr() * c(4) + i[1].expr();
        Expr::if_then_else(channel.clone().lt(c(11)), a.at((channel, &i[2])), f(0.0))
    })
    .unwrap();
    let d = compute(&[c(11), c(5)], "C", |i| {
        b.at((i[0].expr().floordiv(c(4)), i[0].expr().floormod(c(4)), &i[1])) * f(2.0)
    })
    .unwrap();
    let mut s = schedule(&[d], &[a]);
    let i = leaf(&s, "C", 0);
    let (outer, _) = s.split("C", &i, Split::Factor(4)).unwrap();
    s.compute_at("B", "C", &outer).unwrap();
    assert_eq!(realized(&s, "B"), ["1", "4", "5"]);
    run_everywhere(&s, &[&[]]);
}

#[test]
fn te_p2_unrolled_and_twice_split_constants_keep_their_values() {
    let a = input(&[c(130)], DType::F32, "A");
    let b = compute(&[c(130)], "B", |i| a.at(i).max(f(1.0))).unwrap();
    let mut s = schedule(&[b], &[a]);
    let i = leaf(&s, "B", 0);
    let (outer, inner) = s.split("B", &i, Split::Factor(16)).unwrap();
    s.split("B", &inner, Split::Factor(8)).unwrap();
    s.unroll("B", &outer).unwrap();
    run_everywhere(&s, &[&[]]);
    let text = flat_text(&s);
    assert_eq!(
        (count(&text, "T.max("), count(&text, "if ")),
        (9, 0),
        "the last part ends where the elements do:\n{text}"
    );
    let mut s = chain(&[c(48)]);
    let i = leaf(&s, "B", 0);
    s.split("B", &i, Split::Factor(10)).unwrap();
    let i = leaf(&s, "C", 0);
    s.split("C", &i, Split::Factor(32)).unwrap();
    run_everywhere(&s, &[&[]]);
}

#[test]
fn te_p3_a_factored_sum_of_68_runs_in_full_parts_and_one_tail() {
    let a = input(&[c(1), c(68)], DType::F32, "A");
    let k = reduce_axis(68, "k");
    let b = compute(&[c(1)], "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    let mut s = schedule(&[b], &[a]);
    let k = leaf(&s, "B", 1);
    let (outer, _) = s.split("B", &k, Split::Factor(16)).unwrap();
    let whole = flat_text(&s);
    s.rfactor("B", &outer).unwrap();
    assert_eq!(realized(&s, "B.rf"), ["5", "1"]);
    let text = flat_text(&s);
    assert_ne!(text, whole);
    run_everywhere(&s, &[&[]]);
}

/// A convolution of `size` by `size` with a window of 3 by 3 over 2 channels.
fn convolution(size: i32) -> (Tensor, Tensor, Tensor) {
    let a = input(&[c(2), c(size + 2), c(size + 2)], DType::F32, "A");
    let w = input(&[c(2), c(3), c(3)], DType::F32, "W");
    let axes = [reduce_axis(2, "rc"), reduce_axis(3, "ry"), reduce_axis(3, "rx")];
    let b = compute(&[c(size), c(size)], "B", |i| {
        let read = a.at((&axes[0], i[0].expr() + axes[1].expr(), i[1].expr() + axes[2].expr()));
        sum(read * w.at((&axes[0], &axes[1], &axes[2])), &axes)
    })
    .unwrap();
    (a, w, b)
}

#[test]
fn te_p4_tiles_of_a_convolution_and_of_a_pooling_are_free_of_guards_inside() {
    let (a, w, b) = convolution(18);
    let mut s = schedule(&[b], &[a, w]);
    let (y, x) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    s.tile("B", &y, &x, 4, 4).unwrap();
    run_everywhere(&s, &[&[]]);
    let text = flat_text(&s);
    let first = text.find("for ry").or_else(|| text.find("for rc")).unwrap();
    let loops = &text[..first];
    assert_eq!(count(loops, "if "), 0, "the first nest is that of whole tiles:\n{text}");
    // A pooling of 3 with a padding of 1 in front.
    let m = n("m");
    let a = input(from_ref(&m), DType::F32, "A");
    let k = reduce_axis(3, "k");
    let p = compute(from_ref(&m), "P", |i| {
        let at = i[0].expr() + k.expr() - c(1);
        let inside = at.clone().ge(c(0)).and(at.clone().lt(m.clone())).likely();
        max(Expr::if_then_else(inside, a.at([at]), f(f64::NEG_INFINITY)), from_ref(&k))
    })
    .unwrap();
    let mut s = schedule(&[p], &[a]);
    let i = leaf(&s, "P", 0);
    s.split("P", &i, Split::Factor(8)).unwrap();
    run_everywhere(&s, &[&[("m", 20)], &[("m", 1)], &[("m", 8)], &[("m", 2)]]);
}

#[test]
fn te_p5_ragged_sums_take_their_extent_from_data() {
    let (m, l) = (n("m"), n("l"));
    let starts = input(&[m.clone() + c(1)], DType::I32, "W");
    let a = input(from_ref(&l), DType::F32, "A");
    let sized = input(from_ref(&m), DType::F32, "S");
    let build = || {
        let b = compute(from_ref(&m), "B", |i| {
            let (from, to) = (starts.at([&i[0]]), starts.at([i[0].expr() + c(1)]));
            let k = reduce_axis(to - from.clone(), "k");
            sum(a.at([from + k.expr()]), from_ref(&k))
        })
        .unwrap();
        let args = [starts.clone(), a.clone(), sized.clone(), b.clone()];
        Schedule::new(from_ref(&b), &args).unwrap()
    };
    // Rows of 0, 1, 2, ... elements.
    let fill = |arg: usize, at: usize, dtype: DType| {
        let triangle = (at * at.saturating_sub(1) / 2) as i128;
        if arg == 0 { Value::Int(triangle) } else { small(arg, at, dtype) }
    };
    let sizes: &[&[(&str, i64)]] = &[&[("m", 5), ("l", 12)], &[("m", 1), ("l", 1)]];
    let s = build();
    assert_eq!(count(&flat_text(&s), "if "), 0, "{}", flat_text(&s));
    run_everywhere_with(&s, sizes, &fill, Tolerance::Exact);
    let mut s = build();
    let k = leaf(&s, "B", 1);
    s.split("B", &k, Split::Factor(2)).unwrap();
    run_everywhere_with(&s, sizes, &fill, Tolerance::Exact);
}

#[test]
fn te_p7_a_row_guard_leaves_the_loops_that_do_not_decide_it() {
    let (m, l) = (n("n"), n("m"));
    let a = input(&[m.clone(), l.clone()], DType::F32, "A");
    let k = reduce_axis(l, "k");
    let b = compute(&[m], "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    let mut s = schedule(&[b], &[a]);
    let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    s.split("B", &k, Split::Factor(16)).unwrap();
    s.split("B", &i, Split::Factor(32)).unwrap();
    let text = coulis::te::listing(&s, s.program().args(), "main").unwrap();
    let row = text.rfind("if T.likely(i_outer * 32 + i_inner < n)").unwrap();
    assert!(row < text.find("for k_outer").unwrap(), "{text}");
    run_everywhere(&s, &[&[("n", 33), ("m", 17)], &[("n", 32), ("m", 16)]]);
}

#[test]
fn te_p8_names_of_common_parts_are_the_same_each_time() {
    let lowered = || {
        let (m, l) = (n("m"), n("l"));
        let mut s = chain(&[m, l]);
        let (i, j) = (leaf(&s, "C", 0), leaf(&s, "C", 1));
        s.split("C", &j, Split::Factor(4)).unwrap();
        s.split("C", &i, Split::Factor(8)).unwrap();
        flat_text(&s)
    };
    let first = lowered();
    assert!(first.contains("cse_var_1"), "{first}");
    for _ in 0..2 {
        assert_eq!(lowered(), first);
    }
}

/// Sums of `n` rows of `m`, the two loops fused into one.
fn fused_with_its_fold(dtype: DType, reduce_first: bool) -> (Schedule, coulis::te::IterVar) {
    let (rows, columns) = (n("n"), n("m"));
    let a = input(&[rows.clone(), columns.clone()], dtype, "A");
    let k = reduce_axis(columns, "k");
    let b = compute(from_ref(&rows), "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    let mut s = schedule(&[b], &[a]);
    let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    let pair = if reduce_first { [k, i] } else { [i, k] };
    s.reorder("B", &pair).unwrap();
    let fused = s.fuse("B", &pair).unwrap();
    (s, fused)
}

#[test]
fn results_of_an_empty_fold_are_stored_where_a_data_axis_is_fused_with_it() {
    let sizes: &[&[(&str, i64)]] = &[&[("n", 5), ("m", 0)], &[("n", 0), ("m", 3)], &[("n", 3), ("m", 7)]];
    // The state is the result itself, and one of its own that is wider.
    for (dtype, reduce_first) in [(DType::I64, true), (DType::F16, false)] {
        run_everywhere(&fused_with_its_fold(dtype, reduce_first).0, sizes);
        let (mut s, fused) = fused_with_its_fold(dtype, reduce_first);
        s.split("B", &fused, Split::Factor(4)).unwrap();
        run_everywhere(&s, sizes);
    }
}

/// What an index tensor says.
type Index = dyn Fn(Expr) -> Expr;

/// `D[k] = P[index(col[k])]` of `P = X * 2`, cut by 4, `P` computed in the inner loop; the index tensor is read or computed.
fn gathered(index: &Index, is_computed: bool) -> Schedule {
    let z = n("z");
    let (x, col) = (input(&[c(7)], DType::F32, "X"), input(from_ref(&z), DType::I32, "col"));
    let p = compute(&[c(7)], "P", |i| x.at(i) * f(2.0)).unwrap();
    let ix = compute(from_ref(&z), "Ix", |i| col.at(i) + c(0)).unwrap();
    let place = |k: &[coulis::te::Var]| index(if is_computed { ix.at(k) } else { col.at(k) });
    let d = compute(from_ref(&z), "D", |k| p.at([place(k)])).unwrap();
    let mut s = schedule(&[d], &[x, col]);
    let k = leaf(&s, "D", 0);
    let (_, inner) = s.split("D", &k, Split::Factor(4)).unwrap();
    s.compute_at("P", "D", &inner).unwrap();
    s
}

const COLUMNS: &[&[(&str, i64)]] = &[&[("z", 10)], &[("z", 1)], &[("z", 8)]];

fn columns(_: usize, at: usize, dtype: DType) -> Value {
    if dtype == DType::I32 { Value::Int(at as i128 * 3 % 7) } else { Value::Float(at as f64) }
}

#[test]
fn a_region_that_an_index_array_says_is_computed_where_that_array_has_an_element() {
    let indices: [(&Index, &[&str]); 4] = [
        (&|at| at, &["7"]),
        (&|at| at.floormod(c(7)), &["1"]),
        (&|at| at.floordiv(c(2)), &["1"]),
        (&|at| at.max(c(0)).min(c(6)), &["7"]),
    ];
    for (index, region) in indices {
        for is_computed in [false, true] {
            let s = gathered(index, is_computed);
            assert_eq!(realized(&s, "P"), region);
            run_everywhere_with(&s, COLUMNS, &columns, Tolerance::Exact);
        }
    }
}

#[test]
fn a_region_of_reads_that_other_elements_say_is_the_whole_tensor() {
    let z = n("z");
    let (x, col) = (input(&[c(7)], DType::F32, "X"), input(from_ref(&z), DType::I32, "col"));
    let p = compute(&[c(7)], "P", |i| x.at(i) * f(2.0)).unwrap();
    let d = compute(from_ref(&z), "D", |k| {
        let before = p.at([col.at([k[0].expr() - c(1)]).floordiv(c(2))]);
        Expr::if_then_else(k[0].expr().ge(c(1)), before, f(0.0)) + p.at([c(3)])
    })
    .unwrap();
    let mut s = schedule(&[d], &[x, col]);
    let k = leaf(&s, "D", 0);
    s.compute_at("P", "D", &k).unwrap();
    assert_eq!(realized(&s, "P"), ["7"]);
    run_everywhere_with(&s, COLUMNS, &columns, Tolerance::Exact);
}

#[test]
fn a_region_of_rows_that_end_where_memory_says_is_computed_for_rows_that_are_there() {
    let (rows, z) = (n("n"), n("z"));
    let ends = input(&[rows.clone() + c(1)], DType::I32, "ends");
    let v = input(from_ref(&z), DType::F32, "V");
    let p = compute(&[z], "P", |k| v.at(k) * f(2.0)).unwrap();
    let y = compute(&[rows], "Y", |i| {
        let (first, last) = (ends.at(i), ends.at([i[0].expr() + c(1)]));
        let k = coulis::te::reduce_axis_of(first.clone(), last - first, "k");
        sum(p.at([&k]), from_ref(&k))
    })
    .unwrap();
    let mut s = schedule(&[y], &[ends, v]);
    let i = leaf(&s, "Y", 0);
    let (_, inner) = s.split("Y", &i, Split::Factor(2)).unwrap();
    s.compute_at("P", "Y", &inner).unwrap();
    let fill = |_: usize, at: usize, dtype: DType| match dtype {
        DType::I32 => Value::Int((at * (at + 1) / 2) as i128),
        _ => Value::Float(at as f64),
    };
    for sizes in [[("n", 3), ("z", 6)], [("n", 1), ("z", 1)], [("n", 4), ("z", 10)]] {
        run_as_scheduled(&s, &[&sizes], &fill, Tolerance::Exact);
    }
}

#[test]
fn a_factored_fold_by_an_index_array_computes_its_producer_where_that_array_has_an_element() {
    let z = n("z");
    let (x, col) = (input(&[c(7)], DType::F32, "X"), input(from_ref(&z), DType::I32, "col"));
    let p = compute(&[c(7)], "P", |i| x.at(i) * f(2.0)).unwrap();
    let k = reduce_axis(z, "k");
    let y = compute(&[c(1)], "Y", |_| sum(p.at([col.at([&k])]), from_ref(&k))).unwrap();
    let mut s = schedule(&[y], &[x, col]);
    let k = leaf(&s, "Y", 1);
    let (_, inner) = s.split("Y", &k, Split::Nparts(4)).unwrap();
    s.rfactor("Y", &inner).unwrap();
    let outer = leaf(&s, "Y_rf", 1);
    s.compute_at("P", "Y_rf", &outer).unwrap();
    run_everywhere_with(&s, COLUMNS, &columns, Tolerance::Exact);
}

#[test]
fn vectors_beside_an_edge_read_what_no_lane_takes() {
    let rows = n("n");
    let a = input(&[rows.clone(), c(8)], DType::F32, "A");
    let p = compute(&[rows.clone(), c(8)], "P", |i| a.at(i) * f(2.0)).unwrap();
    for axis in [0, 1] {
        // An element and the one before it along the axis, which the first has none of.
        let d = compute(&[rows.clone(), c(8)], "D", |i| {
            let mut before = [i[0].expr(), i[1].expr()];
            before[axis] = before[axis].clone() - c(1);
            Expr::if_then_else(i[axis].expr().ge(c(1)), p.at(before), f(0.0)) + p.at(i)
        })
        .unwrap();
        let mut s = schedule(&[d], from_ref(&a));
        let (i, j) = (leaf(&s, "D", 0), leaf(&s, "D", 1));
        let (outer, lane) = s.split("D", &j, Split::Factor(4)).unwrap();
        s.vectorize("D", &lane).unwrap();
        s.compute_at("P", "D", &outer).unwrap();
        let sizes: &[&[(&str, i64)]] = &[&[("n", 1)], &[("n", 5)]];
        run_as_scheduled(&s, sizes, &small, Tolerance::Exact);
        for scope in [MemScope::Local, MemScope::Shared] {
            let mut s = s.clone();
            s.bind("D", &i, ThreadTag::BlockX).unwrap();
            s.set_scope("P", scope).unwrap();
            run_as_scheduled(&s, sizes, &small, Tolerance::Exact);
        }
    }
}

#[test]
fn neighbours_that_end_at_both_edges_are_a_constant_number_in_the_memory_of_a_block() {
    let rows = n("n");
    let a = input(&[rows.clone(), c(4)], DType::F32, "A");
    let p = compute(&[rows.clone(), c(4)], "P", |i| a.at(i) * f(2.0)).unwrap();
    type Index<'a> = &'a dyn Fn(Expr) -> Expr;
    let before: Index = &|i| (i - c(1)).max(c(0));
    let after: Index = &|i| (i + c(1)).min(rows.clone() - c(1));
    let own: Index = &|i| i;
    for (reads, of_one, of_two) in
        [([before, own], "2", "3"), ([own, after], "2", "3"), ([before, after], "3", "4")]
    {
        let d = compute(&[rows.clone(), c(4)], "D", |i| {
            let [x, y] = reads.map(|read| p.at([read(i[0].expr()), i[1].expr()]));
            x - y
        })
        .unwrap();
        let plain = schedule(&[d], from_ref(&a));
        for (scope, factor) in [(MemScope::Local, 1), (MemScope::Shared, 1), (MemScope::Shared, 2)] {
            let mut s = plain.clone();
            let i = leaf(&s, "D", 0);
            let (outer, _) = s.split("D", &i, Split::Factor(factor)).unwrap();
            s.bind("D", &outer, ThreadTag::BlockX).unwrap();
            s.compute_at("P", "D", &outer).unwrap();
            s.set_scope("P", scope).unwrap();
            assert_eq!(realized(&s, "P"), [if factor == 1 { of_one } else { of_two }, "4"]);
            run_as_scheduled(&s, &[&[("n", 1)], &[("n", 2)], &[("n", 5)]], &small, Tolerance::Exact);
        }
    }
}
