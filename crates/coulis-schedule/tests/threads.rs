//! Schedules on threads compute what the program says: who reduces together, what is shared, who stores.
//!
//! Kernels run as schedules make them, on threads in lockstep, and lowered in the simulator. The faults that
//! the reference has (docs/sources.md) are named where a test shows the right answer.

mod common;

use std::slice::from_ref;

use ThreadTag::{BlockX, BlockY, ThreadX, ThreadY, ThreadZ, VThread};
use common::random::argmax_of;
use common::{body, check, refusal};
use coulis_ir::{DType, Expr, MemScope, ThreadTag};
use coulis_schedule::{GridFinish, Schedule, Split, build_nest, thread_index};
use coulis_tensor::{
    IterVar, Tensor, compute, compute_axes, max, placeholder, reduce_axis, reduce_axis_of, sum, var,
};

struct Rows {
    s: Schedule,
    b: Tensor,
    i: IterVar,
    k: IterVar,
}

/// `B[i] = sum of A[i, k] where k is not 3`, with the columns `m` given.
fn rows_of(m: Expr, condition: bool, init: Option<i32>) -> Rows {
    let n = var("n").expr();
    let a = placeholder(&[n.clone(), m.clone()], DType::I32, "A").expect("a tensor");
    let k = reduce_axis(m, "k");
    let b = compute(from_ref(&n), "B", |i| {
        let mut r = sum(a.at((&i[0], &k)), from_ref(&k))?;
        if condition {
            r = r.where_(k.expr().not_equal(Expr::int(3)))?;
        }
        match init {
            Some(value) => r.init(vec![Expr::int(value)]),
            None => Ok(r),
        }
    })
    .expect("a tensor");
    let s = Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule");
    let (i, k) = (b.op().axes()[0].clone(), b.op().reduce_axes()[0].clone());
    Rows { s, b, i, k }
}

fn rows() -> Rows {
    rows_of(var("m").expr(), false, None)
}

const SIZES: &[common::Sizes] = &[
    &[("n", 1), ("m", 1)],
    &[("n", 5), ("m", 0)],
    &[("n", 33), ("m", 9)],
    &[("n", 8), ("m", 35)],
    &[("n", 0), ("m", 4)],
];

/// Splits and binds outer and inner.
fn bind_both(s: &mut Schedule, b: &Tensor, axis: &IterVar, factor: i64, outer: ThreadTag, inner: ThreadTag) {
    let (o, i) = s.split(b, axis, Split::Factor(factor)).expect("splits");
    s.bind(b, &o, outer).expect("outer bound");
    s.bind(b, &i, inner).expect("inner bound");
}

#[test]
fn rows_on_blocks_and_threads() {
    let Rows { mut s, b, i, .. } = rows();
    bind_both(&mut s, &b, &i, 4, BlockX, ThreadX);
    check(&s, SIZES);
}

#[test]
fn a_serial_part_on_each_thread_with_the_last_rows_guarded() {
    for condition in [false, true] {
        for init in [None, Some(7)] {
            let Rows { mut s, b, i, k } = rows_of(var("m").expr(), condition, init);
            bind_both(&mut s, &b, &i, 4, BlockX, ThreadY);
            let (_, inner) = s.split(&b, &k, Split::Factor(8)).expect("splits");
            s.bind(&b, &inner, ThreadX).expect("bound");
            check(&s, SIZES);
        }
    }
}

#[test]
fn te_fault_c4_both_halves_of_a_split_on_threads_are_guarded() {
    for condition in [false, true] {
        let Rows { mut s, b, i, k } = rows_of(Expr::int(50), condition, Some(2));
        bind_both(&mut s, &b, &k, 16, ThreadY, ThreadX);
        s.bind(&b, &i, BlockX).expect("bound");
        check(&s, &[&[("n", 3)], &[("n", 0)]]);
    }
}

#[test]
fn te_fault_c3_where_guards_the_operand_where_nothing_is_serial() {
    let Rows { mut s, b, i, k } = rows_of(Expr::int(11), true, None);
    s.bind(&b, &k, ThreadX).expect("bound");
    s.bind(&b, &i, BlockX).expect("bound");
    let text = body(&s);
    assert!(text.contains("if threadIdx_x != 3:\n    mine[0] = A"), "{text}");
    assert!(text.contains("if threadIdx_x == 0:\n    B["), "the store asks for no k\n{text}");
    check(&s, &[&[("n", 3)]]);
}

#[test]
fn te_fault_c5_and_te_fault_g9_one_thread_stores_under_the_row_guard() {
    let Rows { mut s, b, i, k } = rows();
    bind_both(&mut s, &b, &i, 4, BlockX, ThreadY);
    let (_, inner) = s.split(&b, &k, Split::Factor(8)).expect("splits");
    s.bind(&b, &inner, ThreadX).expect("bound");
    let text = body(&s);
    let store = "if threadIdx_x == 0 and blockIdx_x * 4 + threadIdx_y < n:\n    B[";
    assert!(text.contains(store), "{text}");
}

#[test]
fn several_bound_axes_of_several_reduce_axes() {
    let n = var("n").expr();
    let (d, e, f) = (Expr::int(3), Expr::int(2), Expr::int(21));
    let a = placeholder(&[n.clone(), d.clone(), e.clone(), f.clone()], DType::I32, "A").expect("a tensor");
    let (x, y, z) = (reduce_axis(d, "x"), reduce_axis(e, "y"), reduce_axis(f, "z"));
    let b = compute(from_ref(&n), "B", |i| {
        sum(a.at([i[0].expr(), x.expr(), y.expr(), z.expr()]), &[x.clone(), y.clone(), z.clone()])
    })
    .expect("a tensor");
    let mut s = Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule");
    s.bind(&b, &b.op().axes()[0].clone(), BlockX).expect("bound");
    s.bind(&b, &x, ThreadZ).expect("bound");
    s.bind(&b, &y, ThreadY).expect("bound");
    let (_, inner) = s.split(&b, &z, Split::Factor(4)).expect("splits");
    s.bind(&b, &inner, ThreadX).expect("bound");
    let text = body(&s);
    assert!(text.contains("TileLayout(S[(1, 3, 2, 4) : (24 @ tx, 8 @ tx, 4 @ tx, 1 @ tx)])"), "{text}");
    assert!(text.contains("axes=(1, 2, 3)"), "{text}");
    check(&s, &[&[("n", 4)]]);
}

/// Value and position of the largest element of rows, value first (fault C1).
fn argmax() -> (Schedule, Tensor, IterVar, IterVar) {
    let a = placeholder(&[var("n").expr(), var("m").expr()], DType::F32, "A").expect("a tensor");
    let both = argmax_of(&a);
    let s = Schedule::new(&both, &[a, both[0].clone(), both[1].clone()]).expect("a schedule");
    let (i, k) = (both[0].op().axes()[0].clone(), both[0].op().reduce_axes()[0].clone());
    (s, both[0].clone(), i, k)
}

#[test]
fn te_fault_c1_a_tuple_by_threads_with_and_without_a_serial_part() {
    for factor in [4, 8] {
        let (mut s, b, i, k) = argmax();
        s.bind(&b, &i, BlockX).expect("bound");
        let (_, inner) = s.split(&b, &k, Split::Factor(factor)).expect("splits");
        s.bind(&b, &inner, ThreadX).expect("bound");
        let text = body(&s);
        assert!(text.contains("Tx.warp.reduce((total0, total1), (red_buf0, red_buf1), "), "{text}");
        check(&s, SIZES);
    }
    for finish in GridFinish::ALL {
        let (mut s, b, _, k) = argmax();
        let (outer, inner) = s.split(&b, &k, Split::Factor(4)).expect("splits");
        s.bind(&b, &outer, BlockX).expect("bound");
        s.bind(&b, &inner, ThreadX).expect("bound");
        s.grid_finish(&b, finish).expect("finished");
        check(&s, SIZES);
    }
}

#[test]
fn a_factored_reduction_in_registers() {
    let Rows { mut s, b, k, .. } = rows();
    let (_, inner) = s.split(&b, &k, Split::Factor(4)).expect("splits");
    let partial = s.rfactor(&b, &inner).expect("factored");
    let (row, over) = {
        let stage = s.stage(&b).expect("a stage");
        (stage.axes()[0].clone(), stage.reduce_axes()[0].clone())
    };
    bind_both(&mut s, &b, &row, 8, BlockX, ThreadY);
    s.bind(&b, &over, ThreadX).expect("bound");
    s.compute_at(partial, &b, &over).expect("attached");
    let first = thread_index(ThreadX).expr().equal(Expr::int(0));
    s.set_store_predicate(&b, first).expect("a predicate");
    check(&s, SIZES);
}

#[test]
fn te_fault_c14_a_reduction_into_a_cache_of_any_scope() {
    for scope in [None, Some(MemScope::Local), Some(MemScope::Shared)] {
        let Rows { mut s, b, .. } = rows();
        let cache = s.cache_write(&b, scope.unwrap_or(MemScope::Shared)).expect("cached");
        let row = s.stage(&b).expect("a stage").axes()[0].clone();
        let (outer, inner) = s.split(&b, &row, Split::Factor(4)).expect("splits");
        s.bind(&b, &outer, BlockX).expect("bound");
        s.bind(&b, &inner, ThreadY).expect("bound");
        let (c, k) = {
            let stage = s.stage(cache).expect("a stage");
            (stage.axes()[0].clone(), stage.reduce_axes()[0].clone())
        };
        let (_, ki) = s.split(cache, &k, Split::Factor(8)).expect("splits");
        s.bind(cache, &ki, ThreadX).expect("bound");
        if scope == Some(MemScope::Shared) {
            s.bind(cache, &c, ThreadY).expect("bound");
        }
        s.compute_at(cache, &b, &outer).expect("attached");
        check(&s, SIZES);
    }
}

#[test]
fn te_fault_g8_what_a_block_needs_once_is_made_by_one_thread() {
    let Rows { mut s, b, .. } = rows();
    let cache = s.cache_write(&b, MemScope::Shared).expect("cached");
    let row = s.stage(&b).expect("a stage").axes()[0].clone();
    let (outer, inner) = s.split(&b, &row, Split::Factor(4)).expect("splits");
    s.bind(&b, &outer, BlockX).expect("bound");
    s.bind(&b, &inner, ThreadX).expect("bound");
    s.compute_at(cache, &b, &outer).expect("attached");
    let text = body(&s);
    assert!(text.contains("if threadIdx_x == 0:\n        B_shared["), "{text}");
    check(&s, SIZES);
}

/// A matrix product with copies of both operands.
fn matmul() -> (Schedule, Tensor, [Tensor; 2]) {
    let (n, m) = (var("n").expr(), var("m").expr());
    let a = placeholder(&[n.clone(), m.clone()], DType::I32, "A").expect("a tensor");
    let b = placeholder(&[m.clone(), Expr::int(7)], DType::I32, "B").expect("a tensor");
    let k = reduce_axis(m, "k");
    let c = compute(&[n, Expr::int(7)], "C", |i| sum(a.at((&i[0], &k)) * b.at((&k, &i[1])), from_ref(&k)))
        .expect("a tensor");
    let s = Schedule::new(from_ref(&c), &[a.clone(), b.clone(), c.clone()]).expect("a schedule");
    (s, c, [a, b])
}

#[test]
fn shared_and_local_caches_of_a_matrix_product() {
    for double in [false, true] {
        let (mut s, c, operands) = matmul();
        let local = s.cache_write(&c, MemScope::Local).expect("cached");
        let shared: Vec<_> = operands
            .iter()
            .map(|t| s.cache_read(t, MemScope::Shared, &[local.into()]).expect("cached"))
            .collect();
        let axes = s.stage(&c).expect("a stage").axes().to_vec();
        let (yo, yi) = s.split(&c, &axes[0], Split::Factor(4)).expect("splits");
        let (xo, xi) = s.split(&c, &axes[1], Split::Factor(4)).expect("splits");
        s.reorder(&c, &[yo.clone(), xo.clone(), yi.clone(), xi.clone()]).expect("reordered");
        for (axis, tag) in [(&yo, BlockY), (&xo, BlockX), (&yi, ThreadY), (&xi, ThreadX)] {
            s.bind(&c, axis, tag).expect("bound");
        }
        s.compute_at(local, &c, &xi).expect("attached");
        let k = s.stage(local).expect("a stage").reduce_axes()[0].clone();
        let (ko, ki) = s.split(local, &k, Split::Factor(3)).expect("splits");
        let c_axes = s.stage(local).expect("a stage").axes().to_vec();
        s.reorder(local, &[ko.clone(), ki, c_axes[0].clone(), c_axes[1].clone()]).expect("reordered");
        for copy in shared {
            s.compute_at(copy, local, &ko).expect("attached");
            let axes = s.stage(copy).expect("a stage").axes().to_vec();
            let fused = s.fuse(copy, &axes).expect("fused");
            let (rest, tx) = s.split(copy, &fused, Split::Factor(4)).expect("splits");
            let (_, ty) = s.split(copy, &rest, Split::Factor(4)).expect("splits");
            s.bind(copy, &ty, ThreadY).expect("bound");
            s.bind(copy, &tx, ThreadX).expect("bound");
            if double {
                s.double_buffer(copy).expect("doubled");
            }
        }
        let text = body(&s);
        assert_eq!(text.matches("\"double_buffer\"").count(), if double { 2 } else { 0 }, "{text}");
        check(&s, &[&[("n", 1), ("m", 1)], &[("n", 9), ("m", 7)], &[("n", 4), ("m", 6)]]);
    }
}

#[test]
fn virtual_threads_are_told_apart() {
    let Rows { mut s, b, i, .. } = rows();
    let (rest, vx) = s.split(&b, &i, Split::Nparts(2)).expect("splits");
    let (bx, tx) = s.split(&b, &vx, Split::Factor(4)).expect("splits");
    s.bind(&b, &rest, VThread).expect("bound");
    s.bind(&b, &bx, BlockX).expect("bound");
    s.bind(&b, &tx, ThreadX).expect("bound");
    let text = body(&s);
    assert!(text.contains("T.launch_thread(\"vthread\", 2)"), "{text}");
    check(&s, SIZES);
}

#[test]
fn a_reduce_loop_outside_of_bound_rows() {
    let Rows { mut s, b, i, k } = rows();
    s.reorder(&b, &[k, i.clone()]).expect("reordered");
    let (outer, inner) = s.split(&b, &i, Split::Factor(4)).expect("splits");
    s.bind(&b, &outer, BlockX).expect("bound");
    s.bind(&b, &inner, ThreadX).expect("bound");
    check(&s, SIZES);
}

#[test]
fn a_triangle_on_threads() {
    let n = var("n").expr();
    let a = placeholder(&[n.clone(), n.clone()], DType::I32, "A").expect("a tensor");
    let i = compute_axes(from_ref(&n), &["i"], "B", |i| {
        let k = reduce_axis(i[0].expr() + Expr::int(1), "k");
        sum(a.at((&i[0], &k)), from_ref(&k))
    })
    .expect("a tensor");
    let mut s = Schedule::new(from_ref(&i), &[a, i.clone()]).expect("a schedule");
    let (row, k) = (i.op().axes()[0].clone(), i.op().reduce_axes()[0].clone());
    let (_, inner) = s.split(&i, &k, Split::Factor(4)).expect("splits");
    s.bind(&i, &inner, ThreadX).expect("bound");
    let (outer, thread) = s.split(&i, &row, Split::Factor(3)).expect("splits");
    s.bind(&i, &outer, BlockX).expect("bound");
    s.bind(&i, &thread, ThreadY).expect("bound");
    check(&s, &[&[("n", 1)], &[("n", 10)]]);
}

#[test]
fn threads_that_fold_rows_of_no_elements_behind_the_last() {
    // Behind the last row the loop that each thread runs by itself has no step, and the store is to be left out all the same.
    let of_size: &[&[(&str, i64)]] = &[&[("n", 5)], &[("n", 1)]];
    for (size, sizes) in [(Expr::int(5), [&[][..]].as_slice()), (var("n").expr(), of_size)] {
        let a = placeholder(&[size.clone(), size.clone()], DType::I32, "A").expect("a tensor");
        let b = compute_axes(from_ref(&size), &["i"], "B", |i| {
            let k = reduce_axis_of(i[0].expr(), size.clone() - i[0].expr(), "k");
            sum(a.at((&i[0], &k)), from_ref(&k))
        })
        .expect("a tensor");
        let mut s = Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule");
        let (row, k) = (b.op().axes()[0].clone(), b.op().reduce_axes()[0].clone());
        s.split(&b, &row, Split::Factor(2)).expect("splits");
        let (outer, _) = s.split(&b, &k, Split::Nparts(2)).expect("splits");
        s.bind(&b, &outer, ThreadX).expect("bound");
        check(&s, sizes);
    }
}

#[test]
fn a_row_softmax_like_chain_in_one_launch() {
    let (n, m) = (var("n").expr(), Expr::int(13));
    let a = placeholder(&[n.clone(), m.clone()], DType::I32, "A").expect("a tensor");
    let (k, h) = (reduce_axis(m.clone(), "k"), reduce_axis(m.clone(), "h"));
    let top = compute(from_ref(&n), "top", |i| max(a.at((&i[0], &k)), from_ref(&k))).expect("a tensor");
    let total = compute(from_ref(&n), "total", |i| sum(a.at((&i[0], &h)) - top.at([&i[0]]), from_ref(&h)))
        .expect("a tensor");
    let out = compute(&[n, m], "out", |i| a.at(i) - top.at([&i[0]]) + total.at([&i[0]])).expect("a tensor");
    let mut s = Schedule::new(from_ref(&out), &[a, out.clone()]).expect("a schedule");
    let axes = out.op().axes().to_vec();
    s.bind(&out, &axes[0], BlockX).expect("bound");
    let (_, tx) = s.split(&out, &axes[1], Split::Factor(8)).expect("splits");
    s.bind(&out, &tx, ThreadX).expect("bound");
    for (stage, axis) in [(&total, &h), (&top, &k)] {
        let (_, inner) = s.split(stage, axis, Split::Factor(8)).expect("splits");
        s.bind(stage, &inner, ThreadX).expect("bound");
        s.compute_at(stage, &out, &axes[0]).expect("attached");
    }
    check(&s, &[&[("n", 3)]]);
    for stage in [&total, &top] {
        s.set_scope(stage, MemScope::Local).expect("local");
    }
    check(&s, &[&[("n", 3)]]);
}

#[test]
fn two_launches_with_global_memory_between() {
    let (n, m) = (var("n").expr(), var("m").expr());
    let a = placeholder(&[n.clone(), m.clone()], DType::I32, "A").expect("a tensor");
    let k = reduce_axis(m, "k");
    let b = compute(from_ref(&n), "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).expect("a tensor");
    let c = compute_axes(from_ref(&n), &["r"], "C", |i| b.at([&i[0]]) * Expr::int(2)).expect("a tensor");
    let mut s = Schedule::new(from_ref(&c), &[a, c.clone()]).expect("a schedule");
    for t in [&b, &c] {
        bind_both(&mut s, t, &t.op().axes()[0].clone(), 4, BlockX, ThreadX);
    }
    let text = body(&s);
    assert!(text.starts_with("B = T.allocate([n], \"int32\", \"global\")\nwith T.launch_thread("), "{text}");
    check(&s, SIZES);
}

/// Rows on `rows`, columns over blocks and threads.
fn over_blocks(finish: GridFinish, init: Option<i32>, rows: &[ThreadTag], threads: bool) -> Schedule {
    let Rows { mut s, b, i, k } = rows_of(var("m").expr(), init.is_some(), init);
    match rows {
        [one] => s.bind(&b, &i, *one).expect("bound"),
        [outer, inner] => bind_both(&mut s, &b, &i, 3, *outer, *inner),
        _ => {}
    }
    let (outer, inner) = s.split(&b, &k, Split::Factor(8)).expect("splits");
    s.bind(&b, &outer, BlockX).expect("bound");
    if threads {
        let (_, inner) = s.split(&b, &inner, Split::Factor(4)).expect("splits");
        s.bind(&b, &inner, ThreadX).expect("bound");
    }
    s.grid_finish(&b, finish).expect("finished");
    s
}

#[test]
fn te_fault_u6_a_reduction_over_blocks_either_way() {
    for finish in GridFinish::ALL {
        for init in [None, Some(5)] {
            for rows in [&[][..], &[BlockY], &[BlockY, ThreadY]] {
                for threads in [false, true] {
                    check(&over_blocks(finish, init, rows, threads), &SIZES[1..4]);
                }
            }
        }
    }
}

#[test]
fn a_launch_without_work_in_its_axes_still_is_one() {
    let a = placeholder(&[Expr::int(1)], DType::I32, "A").expect("a tensor");
    let b = compute(&[Expr::int(1)], "B", |i| a.at(i)).expect("a tensor");
    let mut s = Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule");
    s.bind(&b, &b.op().axes()[0].clone(), ThreadX).expect("bound");
    assert_eq!(body(&s), "threadIdx_x = T.launch_thread(\"threadIdx.x\", 1)\nB[0] = A[0]\n");
    check(&s, &[&[]]);
}

#[test]
fn a_rank_0_result_takes_a_singleton_or_its_reduce_axis() {
    for singleton in [false, true] {
        let m = var("m").expr();
        let a = placeholder(from_ref(&m), DType::I32, "A").expect("a tensor");
        let k = reduce_axis(m, "k");
        let b = compute(&[], "B", |_| sum(a.at([&k]), from_ref(&k))).expect("a tensor");
        let mut s = Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule");
        if singleton {
            let one = s.fuse(&b, &[]).expect("a singleton");
            s.bind(&b, &one, BlockX).expect("bound");
        } else {
            let (_, inner) = s.split(&b, &k, Split::Factor(16)).expect("splits");
            s.bind(&b, &inner, ThreadX).expect("bound");
        }
        check(&s, &[&[("m", 0)], &[("m", 37)]]);
    }
}

#[test]
fn a_predicate_on_a_serial_reduction_stands_inside_its_guards() {
    let Rows { mut s, b, i, k } = rows();
    bind_both(&mut s, &b, &i, 4, BlockX, ThreadX);
    s.set_store_predicate(&b, k.expr().ge(Expr::int(0))).expect("a predicate");
    check(&s, SIZES);
    s.split(&b, &k, Split::Factor(4)).expect("splits");
    check(&s, SIZES);
    let message = refusal(s.set_store_predicate(&b, var("q").expr().equal(Expr::int(0))));
    let want = "set_store_predicate of `B` takes a condition of its axes, thread indices and sizes, and this one uses `q`";
    assert_eq!(message, want);
    let third = thread_index(ThreadZ).expr().equal(Expr::int(0));
    s.set_store_predicate(&b, third).expect("named before it is bound");
    let message = refusal(build_nest(&s, s.program().args(), "main"));
    assert!(message.ends_with("uses `threadIdx.z`, to which no axis of the launch is bound"), "{message}");
}
