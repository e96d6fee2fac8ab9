//! Scenarios T-G1 to T-G17: reductions on threads, in the simulator with warps of 32 and of 64 lanes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/everywhere.rs"]
mod everywhere;

use std::slice::from_ref;

use ThreadTag::{BlockX, BlockY, ThreadX, ThreadY, ThreadZ};
use coulis::DType;
use coulis::te::{
    Expr, Intrinsic, IterVar, Reduction, Schedule, Split, TensorError, all, any, comm_reducer, compute,
    compute_tuple, max, min, prod, reduce_axis, sum,
};
use coulis_ir::eval::Value;
use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::thread_index;
use everywhere::{
    Tolerance, argmax_of, c, count, f, gpu_text, input, leaf, n, number, run_everywhere, run_everywhere_with,
    schedule, small,
};

type Fold = fn(Expr, &[IterVar]) -> Result<Reduction, TensorError>;

/// `B[i] = fold of A[i, k]`.
fn rows(shape: [Expr; 2], dtype: DType, fold: Fold) -> Schedule {
    let a = input(&shape, dtype, "A");
    let k = reduce_axis(shape[1].clone(), "k");
    let b = compute(&shape[..1], "B", |i| fold(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    schedule(&[b], &[a])
}

/// Splits a loop and binds both parts.
fn bind_both(s: &mut Schedule, stage: &str, axis: &IterVar, by: Split, outer: ThreadTag, inner: ThreadTag) {
    let (o, i) = s.split(stage, axis, by).unwrap();
    s.bind(stage, &o, outer).unwrap();
    s.bind(stage, &i, inner).unwrap();
}

/// Whole numbers below 0.
fn negative(_: usize, at: usize, dtype: DType) -> Value {
    number(-1 - i128::from(at as u64 % 9), dtype)
}

#[test]
fn te_g1_reductions_of_chosen_rows_on_blocks() {
    for fold in [sum as Fold, max, min] {
        let (rows, columns) = (n("n"), n("m"));
        let a = input(&[rows.clone(), columns.clone()], DType::F32, "A");
        let r = compute(from_ref(&rows), "R", |i| Expr::select(i[0].expr().gt(c(1)), c(1), c(0))).unwrap();
        let k = reduce_axis(columns, "k");
        let b = compute(from_ref(&rows), "B", |i| {
            fold(a.at((&i[0], &k)), from_ref(&k))?.where_(r.at(i).equal(c(1)))
        })
        .unwrap();
        let mut s = schedule(&[b], &[a]);
        s.compute_inline("R").unwrap();
        let i = leaf(&s, "B", 0);
        bind_both(&mut s, "B", &i, Split::Factor(1), BlockX, ThreadX);
        run_everywhere(&s, &[&[("n", 28), ("m", 129)], &[("n", 1), ("m", 1)]]);
    }
}

#[test]
fn te_g2_maxima_by_32_threads_a_row_and_4_rows_a_block() {
    for (r, k) in [(32, 256), (10, 20), (10, 37), (1, 1)] {
        let mut s = rows([c(r), c(k)], DType::F32, max);
        let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
        let (outer, _) = s.split("B", &k, Split::Nparts(32)).unwrap();
        s.bind("B", &outer, ThreadX).unwrap();
        bind_both(&mut s, "B", &i, Split::Factor(4), BlockX, ThreadY);
        run_everywhere(&s, &[&[]]);
        run_everywhere_with(&s, &[&[]], &negative, Tolerance::Exact);
    }
}

#[test]
fn te_g3_sums_and_products_together_by_the_lanes_of_a_warp() {
    let a = input(&[c(16), c(256)], DType::F64, "A");
    let pair = comm_reducer(
        |x, y| vec![x[0].clone() + y[0].clone(), x[1].clone() * y[1].clone()],
        |types| vec![Expr::constant(0, types[0]), Expr::constant(1, types[1])],
        "sum_prod",
    );
    let k = reduce_axis(256, "k");
    let both = compute_tuple(&[c(16)], "T", |i| {
        let x = a.at((&i[0], &k));
        pair.reduce(vec![x.clone(), x], from_ref(&k))
    })
    .unwrap();
    let mut s = schedule(&both, &[a]);
    let (i, k) = (leaf(&s, "T", 0), leaf(&s, "T", 1));
    let (outer, _) = s.split("T", &k, Split::Nparts(32)).unwrap();
    s.bind("T", &outer, ThreadX).unwrap();
    bind_both(&mut s, "T", &i, Split::Factor(2), BlockX, ThreadY);
    let signs = |_: usize, at: usize, dtype: DType| number(if at.is_multiple_of(7) { -1 } else { 1 }, dtype);
    run_everywhere_with(&s, &[&[]], &signs, Tolerance::Exact);
}

#[test]
fn te_g4_parts_of_a_row_beside_the_number_of_threads() {
    for threads in [16, 32, 64] {
        let mut s = rows([c(3), n("K")], DType::F32, sum);
        let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
        let (outer, _) = s.split("B", &k, Split::Nparts(threads)).unwrap();
        s.bind("B", &outer, ThreadX).unwrap();
        s.bind("B", &i, BlockX).unwrap();
        run_everywhere(&s, &[&[("K", threads - 1)], &[("K", threads)], &[("K", threads + 1)], &[("K", 1)]]);
    }
}

#[test]
fn te_g5_a_reduce_loop_outside_of_rows_on_blocks() {
    let mut s = rows([c(96), c(32)], DType::F32, sum);
    let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    s.reorder("B", &[k, i.clone()]).unwrap();
    let (outer, _) = s.split("B", &i, Split::Factor(32)).unwrap();
    s.bind("B", &outer, BlockX).unwrap();
    run_everywhere(&s, &[&[]]);
}

/// The library's schedule of a reduction: reduce loops become one, `threads` of its parts go to `threadIdx.x` through
/// a factored stage, and rows to blocks and `threadIdx.y`.
fn library_schedule(s: &mut Schedule, stage: &str, threads: i64, rows: i64) {
    let n_data = s.stage(stage).unwrap().axes().len();
    let reduce: Vec<IterVar> = s.stage(stage).unwrap().leaves()[n_data..].to_vec();
    let fused = if reduce.len() > 1 { s.fuse(stage, &reduce).unwrap() } else { reduce[0].clone() };
    let (_, inner) = s.split(stage, &fused, Split::Factor(threads)).unwrap();
    let factored = s.rfactor(stage, &inner).unwrap();
    let data: Vec<IterVar> = s.stage(stage).unwrap().leaves()[..n_data].to_vec();
    match data.len() {
        0 => {}
        1 => bind_both(s, stage, &data[0], Split::Factor(rows), BlockX, ThreadY),
        _ => {
            let fused = s.fuse(stage, &data).unwrap();
            bind_both(s, stage, &fused, Split::Factor(rows), BlockX, ThreadY);
        }
    }
    let last = s.stage(stage).unwrap().leaves().last().unwrap().clone();
    s.bind(stage, &last, ThreadX).unwrap();
    s.compute_at(factored, stage, &last).unwrap();
}

/// Binds all loops of a stage to blocks and threads.
fn bind_elementwise(s: &mut Schedule, stage: &str, threads: i64) {
    let leaves = s.stage(stage).unwrap().leaves().to_vec();
    let fused = if leaves.len() == 1 { leaves[0].clone() } else { s.fuse(stage, &leaves).unwrap() };
    bind_both(s, stage, &fused, Split::Factor(threads), BlockX, ThreadX);
}

#[test]
fn te_g6_elementwise_stages_and_the_sum_of_all() {
    for dtype in [DType::F32, DType::F16] {
        let a = input(&[c(32), c(32)], dtype, "A");
        let b = compute(&[c(32), c(32)], "B", |i| a.at(i) + Expr::constant(1, dtype)).unwrap();
        let d = compute(&[c(32), c(32)], "D", |i| Expr::call1(Intrinsic::Abs, b.at(i))).unwrap();
        let (x, y) = (reduce_axis(32, "x"), reduce_axis(32, "y"));
        let e = compute(&[], "E", |_| sum(d.at((&x, &y)), &[x.clone(), y.clone()])).unwrap();
        let mut s = schedule(&[e], &[a]);
        s.compute_inline("B").unwrap();
        s.compute_inline("D").unwrap();
        library_schedule(&mut s, "E", 32, 1);
        // Few enough to be exact in float16.
        let fill = |_: usize, at: usize, dtype: DType| number(i128::from(at.is_multiple_of(3)) - 1, dtype);
        run_everywhere_with(&s, &[&[]], &fill, Tolerance::Exact);
    }
}

#[test]
fn te_g7_one_dimension_of_the_block_folds_for_the_other_two() {
    let lengths = [2, 4, 8, 12, 16, 32, 48, 64, 100, 128, 201, 256, 512, 1024];
    let rows: [(Fold, [(i32, i32); 2]); 2] = [(sum, [(1, 1), (3, 2)]), (max, [(1, 3), (4, 4)])];
    for (fold, rows) in rows {
        for (d1, d2) in rows {
            for d3 in lengths.into_iter().filter(|d3| d1 * d2 * d3 <= 1024) {
                let a = input(&[c(d1), c(d2), c(d3)], DType::F32, "A");
                let k = reduce_axis(d3, "k");
                let b =
                    compute(&[c(d1), c(d2)], "B", |i| fold(a.at((&i[0], &i[1], &k)), from_ref(&k))).unwrap();
                let mut s = schedule(&[b], &[a]);
                for (at, tag) in [(0, ThreadZ), (1, ThreadY), (2, ThreadX)] {
                    let axis = leaf(&s, "B", at);
                    s.bind("B", &axis, tag).unwrap();
                }
                run_everywhere_with(&s, &[&[]], &negative, Tolerance::Exact);
            }
        }
    }
}

/// Rows on `threadIdx.y`, all of `k` on `threadIdx.x`, with serial parts of `serial` elements.
fn on_lanes(rows: i32, lanes: i32, serial: i32) -> Schedule {
    let a = input(&[c(rows), c(lanes * serial)], DType::F32, "A");
    let k = reduce_axis(lanes * serial, "k");
    let b = compute(&[c(rows)], "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    let mut s = schedule(&[b], &[a]);
    let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    if rows > 1 {
        s.bind("B", &i, ThreadY).unwrap();
    } else {
        s.bind("B", &i, BlockX).unwrap();
    }
    let inner = if serial > 1 { s.split("B", &k, Split::Factor(i64::from(lanes))).unwrap().1 } else { k };
    s.bind("B", &inner, ThreadX).unwrap();
    s
}

#[test]
fn te_g8_32_lanes_fold_by_5_shuffles_and_a_broadcast() {
    for serial in [1, 4] {
        let s = on_lanes(1, 32, serial);
        let text = gpu_text(&s);
        for offset in [16, 8, 4, 2, 1] {
            let shuffle = format!("T.tvm_warp_shuffle_down(mask[0], red_buf0[0], {offset}, 32, 32)");
            assert_eq!(count(&text, &shuffle), 1, "{text}");
        }
        assert_eq!(count(&text, "tvm_warp_activemask"), 0, "{text}");
        assert_eq!(count(&text, "cta_sync"), 0, "{text}");
        run_everywhere(&s, &[&[]]);
    }
}

#[test]
fn te_g9_groups_of_lanes_name_their_own_lanes() {
    let whole = gpu_text(&on_lanes(32, 32, 1));
    let parts = gpu_text(&on_lanes(32, 8, 1));
    assert_eq!(count(&whole, "<<"), 0, "a group of a whole warp needs no shift:\n{whole}");
    assert!(parts.contains("mask[0] = ") && !parts.contains("activemask"), "{parts}");
    for (groups, lanes) in [(32, 32), (32, 8), (8, 32), (5, 8), (3, 16)] {
        run_everywhere(&on_lanes(groups, lanes, 1), &[&[]]);
    }
}

#[test]
fn te_g10_groups_of_several_warps() {
    for (groups, lanes) in [(1, 128), (1, 1024), (4, 128), (2, 512), (3, 96), (2, 160)] {
        for serial in [1, 3] {
            run_everywhere(&on_lanes(groups, lanes, serial), &[&[]]);
        }
    }
    // With a predicate and rows that end inside a block.
    let mut s = rows([n("n"), n("m")], DType::F32, sum);
    let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    bind_both(&mut s, "B", &i, Split::Factor(2), BlockX, ThreadY);
    let (_, inner) = s.split("B", &k, Split::Factor(512)).unwrap();
    s.bind("B", &inner, ThreadX).unwrap();
    s.set_store_predicate("B", thread_index(ThreadX).expr().equal(c(0))).unwrap();
    run_everywhere(&s, &[&[("n", 3), ("m", 700)], &[("n", 1), ("m", 1)], &[("n", 4), ("m", 512)]]);
}

#[test]
fn te_g11_the_librarys_reductions_with_its_schedule() {
    let shapes: [(&[i32], &[usize]); 5] = [
        (&[32], &[0]),
        (&[12, 8, 6], &[0, 1, 2]),
        (&[12, 8, 6], &[1]),
        (&[3, 4, 5, 2], &[0, 2]),
        (&[1, 67], &[1]),
    ];
    for (shape, axes) in shapes {
        let folds: [(DType, Fold); 6] = [
            (DType::F32, sum),
            (DType::F64, prod),
            (DType::F32, min),
            (DType::I32, max),
            (DType::Bool, all),
            (DType::Bool, any),
        ];
        for (dtype, fold) in folds {
            let extents: Vec<Expr> = shape.iter().map(|e| c(*e)).collect();
            let a = input(&extents, dtype, "A");
            let folded: Vec<IterVar> =
                axes.iter().map(|at| reduce_axis(shape[*at], &format!("k{at}"))).collect();
            let kept: Vec<Expr> =
                (0..shape.len()).filter(|at| !axes.contains(at)).map(|at| c(shape[at])).collect();
            let b = compute(&kept, "B", |i| {
                let mut next = i.iter();
                let place: Vec<Expr> = (0..shape.len())
                    .map(|at| match axes.iter().position(|axis| *axis == at) {
                        Some(j) => folded[j].expr(),
                        None => next.next().unwrap().expr(),
                    })
                    .collect();
                fold(a.at(place), &folded)
            })
            .unwrap();
            let mut s = schedule(&[b], &[a]);
            library_schedule(&mut s, "B", if kept.is_empty() { 128 } else { 32 }, 4);
            let signs =
                |_: usize, at: usize, dtype: DType| number(if at.is_multiple_of(7) { -1 } else { 1 }, dtype);
            run_everywhere_with(&s, &[&[]], &signs, Tolerance::Exact);
        }
    }
}

/// The softmax of a matrix along its second axis, or its logarithm.
fn softmax(rows: i32, columns: i32, dtype: DType, logarithm: bool) -> Schedule {
    let shape = [c(rows), c(columns)];
    let a = input(&shape, dtype, "A");
    let (k, l) = (reduce_axis(columns, "k"), reduce_axis(columns, "l"));
    let m = compute(&shape[..1], "M", |i| max(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    let e = compute(&shape, "E", |i| Expr::call1(Intrinsic::Exp, a.at(i) - m.at([&i[0]]))).unwrap();
    let t = compute(&shape[..1], "S", |i| sum(e.at((&i[0], &l)), from_ref(&l))).unwrap();
    let d = compute(&shape, "D", |i| {
        if logarithm {
            a.at(i) - m.at([&i[0]]) - Expr::call1(Intrinsic::Log, t.at([&i[0]]))
        } else {
            e.at(i) / t.at([&i[0]])
        }
    })
    .unwrap();
    let mut s = schedule(&[d], &[a]);
    if logarithm {
        s.compute_inline("E").unwrap();
    } else {
        bind_elementwise(&mut s, "E", 64);
    }
    library_schedule(&mut s, "M", 32, 2);
    library_schedule(&mut s, "S", 32, 2);
    bind_elementwise(&mut s, "D", 64);
    s
}

#[test]
fn te_g12_softmax_and_its_logarithm_along_each_axis() {
    // Other axes of other ranks are rows and columns of these.
    for (rows, columns) in [(32, 10), (3, 4), (16, 56), (1, 32), (32, 1)] {
        for logarithm in [false, true] {
            let s = softmax(rows, columns, DType::F32, logarithm);
            run_everywhere_with(&s, &[&[]], &small, Tolerance::Relative(1e-5));
        }
    }
    let s = softmax(5, 40, DType::F64, false);
    run_everywhere_with(&s, &[&[]], &small, Tolerance::Relative(1e-12));
}

#[test]
fn te_g13_each_thread_reads_its_own_part_of_a_cache_without_a_shuffle() {
    let shape = [c(32), c(32)];
    let a = input(&shape, DType::F32, "A");
    let k = reduce_axis(32, "k");
    let b = compute(&shape[..1], "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    let d = compute(&shape[..1], "D", |i| b.at(i) + f(1.0)).unwrap();
    let mut s = schedule(&[d], &[a]);
    let i = leaf(&s, "D", 0);
    s.bind("D", &i, ThreadX).unwrap();
    s.compute_at("B", "D", &i).unwrap();
    s.set_scope("B", MemScope::Local).unwrap();
    assert_eq!(count(&gpu_text(&s), "shuffle"), 0, "{}", gpu_text(&s));
    run_everywhere(&s, &[&[]]);
}

/// The schedule of seed 003's kernel, with or without its predicate.
fn tutorial(predicate: bool) -> Schedule {
    let mut s = rows([n("n"), n("m")], DType::F32, sum);
    let k = leaf(&s, "B", 1);
    let (_, inner) = s.split("B", &k, Split::Factor(16)).unwrap();
    s.rfactor("B", &inner).unwrap();
    let i = leaf(&s, "B", 0);
    bind_both(&mut s, "B", &i, Split::Factor(32), BlockX, ThreadY);
    let k = leaf(&s, "B", 2);
    s.bind("B", &k, ThreadX).unwrap();
    s.compute_at("B_rf", "B", &k).unwrap();
    if predicate {
        s.set_store_predicate("B", thread_index(ThreadX).expr().equal(c(0))).unwrap();
    }
    s
}

const TUTORIAL: &[&[(&str, i64)]] = &[
    &[("n", 128), ("m", 128)],
    &[("n", 100), ("m", 100)],
    &[("n", 1), ("m", 1)],
    &[("n", 50), ("m", 37)],
    &[("n", 3), ("m", 0)],
];

#[test]
fn te_g14_the_tutorials_kernel() {
    run_everywhere(&tutorial(true), TUTORIAL);
}

#[test]
fn te_c17_the_tutorials_schedule_without_its_predicate() {
    let s = tutorial(false);
    assert!(gpu_text(&s).contains("if threadIdx_x == 0"), "one thread stores:\n{}", gpu_text(&s));
    run_everywhere(&s, TUTORIAL);
}

#[test]
fn te_g15_tuples_as_inputs_results_and_attached_producers() {
    // A tuple of elementwise results, whose first is folded to the place of its largest.
    let m = n("m");
    let shape = [m.clone(), c(33)];
    let (a, b) = (input(&shape, DType::I32, "A"), input(&shape, DType::I32, "B"));
    let both = compute_tuple(&shape, "T", |i| vec![a.at(i) + b.at(i), a.at(i) * b.at(i)]).unwrap();
    let r = argmax_of(&both[0], 1, "R");
    let d = compute(from_ref(&m), "D", |i| r[0].at(i) + r[1].at(i)).unwrap();
    for attached in [false, true] {
        let mut s = schedule(from_ref(&d), &[a.clone(), b.clone()]);
        let row = leaf(&s, "D", 0);
        bind_both(&mut s, "D", &row, Split::Factor(4), BlockX, ThreadY);
        let inner = leaf(&s, "D", 1);
        if attached {
            s.compute_at("R", "D", &inner).unwrap();
            let axis = leaf(&s, "R", 1);
            s.compute_at("T", "R", &axis).unwrap();
        } else {
            let (i, k) = (leaf(&s, "R", 0), leaf(&s, "R", 1));
            bind_both(&mut s, "R", &i, Split::Factor(2), BlockX, ThreadY);
            let (_, lane) = s.split("R", &k, Split::Factor(16)).unwrap();
            s.bind("R", &lane, ThreadX).unwrap();
            bind_elementwise(&mut s, "T", 64);
        }
        run_everywhere(&s, &[&[("m", 9)], &[("m", 1)]]);
    }
}

#[test]
fn te_g16_a_maximum_of_negative_numbers_by_11_threads_a_row() {
    let mut s = rows([c(7), c(11)], DType::F32, max);
    let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    bind_both(&mut s, "B", &i, Split::Factor(4), BlockX, ThreadY);
    s.bind("B", &k, ThreadX).unwrap();
    run_everywhere_with(&s, &[&[]], &negative, Tolerance::Exact);
}

#[test]
fn te_g17_groups_of_26_threads_in_shared_memory() {
    let a = input(&[c(3), c(16), c(26)], DType::F32, "A");
    let k = reduce_axis(26, "k");
    let b = compute(&[c(3), c(16)], "B", |i| sum(a.at((&i[0], &i[1], &k)), from_ref(&k))).unwrap();
    let mut s = schedule(&[b], &[a]);
    for (at, tag) in [(0, BlockY), (1, ThreadY), (2, ThreadX)] {
        let axis = leaf(&s, "B", at);
        s.bind("B", &axis, tag).unwrap();
    }
    run_everywhere(&s, &[&[]]);
}

#[test]
fn rows_past_the_end_are_folded_again_and_not_stored() {
    for (r, k) in [(37, 40), (1, 5), (32, 64)] {
        let mut s = rows([c(r), c(k)], DType::F32, sum);
        let total = s.cache_write("B", MemScope::Local).unwrap();
        let i = leaf(&s, "B", 0);
        let (blocks, threads) = s.split("B", &i, Split::Factor(16)).unwrap();
        s.bind("B", &blocks, BlockX).unwrap();
        s.bind("B", &threads, ThreadX).unwrap();
        s.compute_at(total, "B", &threads).unwrap();
        let guarded = gpu_text(&s);
        s.clamp(total).unwrap();
        run_everywhere(&s, &[&[]]);
        let clamped = gpu_text(&s);
        assert_eq!(clamped == guarded, r % 16 == 0, "{r} rows");
        assert_eq!(clamped.matches("T.min(").count() > 0, r % 16 != 0 && r > 1, "{clamped}");
    }
}

#[test]
fn rows_past_the_end_of_a_slab_in_shared_memory_are_folded_again() {
    for r in [37, 32, 16] {
        let a = input(&[c(r), c(5)], DType::F32, "A");
        let k = reduce_axis(5, "k");
        let b = compute(&[c(r)], "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
        let mut s = schedule(&[b], from_ref(&a));
        let total = s.cache_write("B", MemScope::Local).unwrap();
        let i = leaf(&s, "B", 0);
        let (blocks, threads) = s.split("B", &i, Split::Factor(16)).unwrap();
        s.bind("B", &blocks, BlockX).unwrap();
        s.bind("B", &threads, ThreadX).unwrap();
        s.compute_at(total, "B", &threads).unwrap();
        s.clamp(total).unwrap();
        let slab = s.cache_read(&a, MemScope::Shared, &[total.into()]).unwrap();
        s.compute_at(slab, "B", &blocks).unwrap();
        let row = s.stage(slab).unwrap().leaves()[0].clone();
        s.bind(slab, &row, ThreadX).unwrap();
        run_everywhere(&s, &[&[]]);
        // The slab has as many rows as without.
        let text = gpu_text(&s);
        assert_eq!(text.contains("T.min("), r % 16 != 0, "{text}");
        assert!(text.contains("T.allocate([16, 5]") || text.contains("T.allocate([80]"), "{text}");
    }
}

#[test]
fn a_constant_that_is_no_number_is_used_as_often_as_one_likes() {
    let a = input(&[c(32)], DType::F32, "A");
    let endless = Expr::float(f64::INFINITY, DType::F32);
    let nothing = &endless - &endless;
    let b = compute(&[c(32)], "B", |i| {
        let x = a.at((&i[0],));
        Expr::if_then_else(x.clone().gt(f(2.0)), nothing.clone(), &x * &nothing)
    })
    .unwrap();
    let mut s = schedule(&[b], &[a]);
    let i = leaf(&s, "B", 0);
    s.bind("B", &i, ThreadX).unwrap();
    assert!(!gpu_text(&s).contains("cse_var"), "{}", gpu_text(&s));
    run_everywhere(&s, &[]);
}
