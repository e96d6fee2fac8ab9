//! Scenarios T-B1, T-B5, T-B7, T-B8 and T-C15: how much of a stage is computed where threads are bound, in the simulator.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/everywhere.rs"]
mod everywhere;

use std::slice::from_ref;

use ThreadTag::{BlockX, BlockY, ThreadX, ThreadY};
use coulis::te::{Expr, Schedule, Split, Tensor, compute, reduce_axis, sum};
use coulis::{CompileOptions, DType, DeviceChoice, Owner, TargetChoice};
use coulis_ir::{Attr, MemScope, ThreadTag};
use everywhere::{
    Tolerance, c, chain, count, f, gpu_text, input, leaf, n, number, realized, run_as_scheduled,
    run_everywhere, schedule,
};

#[test]
fn te_b1_shared_memory_holds_what_all_threads_of_the_block_read() {
    let mut s = chain(&[n("m"), n("l")]);
    let (x, y) = (leaf(&s, "C", 0), leaf(&s, "C", 1));
    let (xo, xi) = s.split("C", &x, Split::Factor(32)).unwrap();
    let (xi0, xi1) = s.split("C", &xi, Split::Nparts(16)).unwrap();
    let (yo, yi) = s.split("C", &y, Split::Factor(16)).unwrap();
    s.reorder("C", &[xo.clone(), xi0.clone(), yo.clone(), xi1, yi]).unwrap();
    s.bind("C", &xo, BlockX).unwrap();
    s.bind("C", &xi0, ThreadX).unwrap();
    s.set_scope("B", MemScope::Shared).unwrap();
    s.compute_at("B", "C", &yo).unwrap();
    assert_eq!(realized(&s, "B"), ["32", "16"]);
    // The threads share the work: each loads rows of its own.
    let i = leaf(&s, "B", 0);
    let (_, lane) = s.split("B", &i, Split::Factor(16)).unwrap();
    s.bind("B", &lane, ThreadX).unwrap();
    run_everywhere(&s, &[&[("m", 40), ("l", 20)], &[("m", 1), ("l", 1)], &[("m", 32), ("l", 16)]]);
}

#[test]
fn te_b5_a_row_of_lanes_keeps_what_its_lanes_read() {
    let mut s = chain(&[n("m"), n("l")]);
    let (x, y) = (leaf(&s, "C", 0), leaf(&s, "C", 1));
    let (xo, xi) = s.split("C", &x, Split::Factor(32)).unwrap();
    let (xi0, xi1) = s.split("C", &xi, Split::Factor(16)).unwrap();
    s.bind("C", &xo, BlockX).unwrap();
    s.bind("C", &xi1, ThreadX).unwrap();
    s.bind("C", &xi0, ThreadY).unwrap();
    s.compute_at("B", "C", &y).unwrap();
    let error = s.clone().set_scope("B", MemScope::Warp).unwrap_err();
    assert!(error.to_string().contains("warp memory are not supported; legal are `global`"), "{error}");
    // In registers each lane keeps its own.
    s.set_scope("B", MemScope::Local).unwrap();
    assert_eq!(realized(&s, "B"), ["1", "1"]);
    run_everywhere(&s, &[&[("m", 40), ("l", 3)], &[("m", 1), ("l", 1)]]);
}

#[test]
fn te_b7_shared_and_local_stages_at_one_thread() {
    let m = n("m");
    let a = input(from_ref(&m), DType::F32, "A");
    let a1 = compute(from_ref(&m), "A1", |i| a.at(i) + f(0.0)).unwrap();
    let a2 = compute(from_ref(&m), "A2", |i| a1.at(i) + f(2.0)).unwrap();
    let a3 = compute(from_ref(&m), "A3", |i| a2.at(i) + f(3.0)).unwrap();
    let mut s = schedule(&[a3], &[a]);
    s.set_scope("A1", MemScope::Shared).unwrap();
    s.set_scope("A2", MemScope::Local).unwrap();
    let i = leaf(&s, "A3", 0);
    let (bx, tx) = s.split("A3", &i, Split::Factor(32)).unwrap();
    s.bind("A3", &bx, BlockX).unwrap();
    s.bind("A3", &tx, ThreadX).unwrap();
    s.compute_at("A2", "A3", &tx).unwrap();
    s.compute_at("A1", "A3", &tx).unwrap();
    let i = leaf(&s, "A1", 0);
    let (_, lane) = s.split("A1", &i, Split::Factor(32)).unwrap();
    s.bind("A1", &lane, ThreadX).unwrap();
    assert_eq!((realized(&s, "A1"), realized(&s, "A2")), (vec!["32".into()], vec!["1".into()]));
    run_everywhere(&s, &[&[("m", 70)], &[("m", 1)], &[("m", 64)]]);
}

#[test]
fn a_loop_of_one_thread_around_a_stage_does_not_hold_the_index_of_another_stage() {
    let a = input(&[c(4), c(6)], DType::F32, "A");
    let doubled = compute(&[c(4), c(6)], "D", |i| a.at(i) + a.at(i)).unwrap();
    let k = reduce_axis(6, "k");
    let part = compute(&[c(4)], "P", |i| sum(doubled.at((&i[0], &k)), from_ref(&k))).unwrap();
    let l = reduce_axis(4, "l");
    let whole = compute(&[c(1)], "W", |_| sum(part.at((&l,)), from_ref(&l))).unwrap();
    let mut s = schedule(&[whole], &[a]);
    let one = leaf(&s, "W", 0);
    s.bind("W", &one, ThreadX).unwrap();
    s.compute_at("P", "W", &one).unwrap();
    s.set_scope("P", MemScope::Shared).unwrap();
    let row = leaf(&s, "P", 0);
    s.bind("P", &row, ThreadX).unwrap();
    s.compute_at("D", "P", &row).unwrap();
    s.set_scope("D", MemScope::Shared).unwrap();
    assert_eq!(realized(&s, "D"), ["4", "6"]);
    run_everywhere(&s, &[&[]]);
}

#[test]
fn what_one_thread_does_not_ask_for_a_block_loads_for_the_others() {
    // Each thread reads three elements from its own on, and the last blocks have threads with no element.
    for (length, threads, scope) in [
        (5, 2, MemScope::Shared),
        (7, 4, MemScope::Shared),
        (8, 4, MemScope::Shared),
        (5, 2, MemScope::Local),
    ] {
        let a = input(&[c(length + 2)], DType::F32, "A");
        let k = reduce_axis(3, "k");
        let b = compute(&[c(length)], "B", |i| sum(a.at((i[0].expr() + k.expr(),)), from_ref(&k))).unwrap();
        let mut s = schedule(&[b], from_ref(&a));
        let i = leaf(&s, "B", 0);
        let (blocks, own) = s.split("B", &i, Split::Factor(threads)).unwrap();
        s.bind("B", &blocks, BlockX).unwrap();
        s.bind("B", &own, ThreadX).unwrap();
        let slab = s.cache_read(&a, scope, &["B".into()]).unwrap();
        s.compute_at(slab, "B", &own).unwrap();
        if scope == MemScope::Shared {
            let element = s.stage(slab).unwrap().leaves()[0].clone();
            let (lane, _) = s.split(slab, &element, Split::Nparts(threads)).unwrap();
            s.bind(slab, &lane, ThreadX).unwrap();
        }
        run_everywhere(&s, &[&[]]);
    }
    // The threads' own sums are computed ahead of the loop over threads.
    let a = input(&[c(3)], DType::F32, "A");
    let k = reduce_axis(3, "k");
    let b = compute(&[c(1)], "B", |i| sum(a.at((i[0].expr() + k.expr(),)), from_ref(&k))).unwrap();
    let mut s = schedule(&[b], from_ref(&a));
    let total = s.cache_write("B", MemScope::Local).unwrap();
    let i = leaf(&s, "B", 0);
    let (blocks, rest) = s.split("B", &i, Split::Factor(4)).unwrap();
    let (own, _) = s.split("B", &rest, Split::Nparts(2)).unwrap();
    s.bind("B", &blocks, BlockX).unwrap();
    s.bind("B", &own, ThreadX).unwrap();
    s.compute_at(total, "B", &blocks).unwrap();
    let slab = s.cache_read(&a, MemScope::Shared, &[total.into()]).unwrap();
    let place = s.stage(total).unwrap().leaves()[0].clone();
    s.compute_at(slab, total, &place).unwrap();
    let element = s.stage(slab).unwrap().leaves()[0].clone();
    let (_, lane) = s.split(slab, &element, Split::Nparts(2)).unwrap();
    s.bind(slab, &lane, ThreadX).unwrap();
    run_everywhere(&s, &[&[]]);
}

#[test]
fn partial_sums_by_the_threads_of_one_row_are_read_by_those_of_all() {
    for (rows, step, factor) in [(1000, 4, 32), (7, 3, 32), (8, 4, 16), (5, 8, 8)] {
        for is_inner in [true, false] {
            let a = input(&[c(rows), c(100)], DType::F32, "A");
            let k = reduce_axis(100, "k");
            let b = compute(&[c(rows)], "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
            let mut s = schedule(&[b], &[a]);
            let (ko, ki) = s.split("B", &k, Split::Factor(factor)).unwrap();
            let part = s.rfactor("B", if is_inner { &ki } else { &ko }).unwrap();
            let i = leaf(&s, "B", 0);
            let (blocks, threads) = s.split("B", &i, Split::Factor(step)).unwrap();
            s.bind("B", &blocks, BlockX).unwrap();
            s.bind("B", &threads, ThreadY).unwrap();
            s.compute_at(part, "B", &threads).unwrap();
            s.set_scope(part, MemScope::Shared).unwrap();
            let own = s.stage(part).unwrap().leaves()[0].clone();
            s.bind(part, &own, ThreadX).unwrap();
            run_everywhere(&s, &[&[]]);
            assert!(gpu_text(&s).contains("if threadIdx_y == 0"), "{}", gpu_text(&s));
        }
    }
}

/// A product of two square matrices by blocks of `block`, `threads` by `threads` threads, a register tile of the
/// result, and shared tiles of the operands at each step of `step` columns.
fn product(size: i32, block: i64, threads: i64, step: i64) -> Schedule {
    let shape = [c(size), c(size)];
    let (a, b) = (input(&shape, DType::F32, "A"), input(&shape, DType::F32, "B"));
    let k = reduce_axis(size, "k");
    let t = compute(&shape, "C", |i| sum(a.at((&k, &i[0])) * b.at((&k, &i[1])), from_ref(&k))).unwrap();
    let mut s = schedule(&[t], &[a.clone(), b.clone()]);
    let cl = s.cache_write("C", MemScope::Local).unwrap();
    let name = s.stage_name(cl);
    let (y, x) = (leaf(&s, "C", 0), leaf(&s, "C", 1));
    let (by, yi) = s.split("C", &y, Split::Factor(block)).unwrap();
    let (bx, xi) = s.split("C", &x, Split::Factor(block)).unwrap();
    let (ty, yi) = s.split("C", &yi, Split::Nparts(threads)).unwrap();
    let (tx, xi) = s.split("C", &xi, Split::Nparts(threads)).unwrap();
    s.reorder("C", &[by.clone(), bx.clone(), ty.clone(), tx.clone(), yi, xi]).unwrap();
    for (axis, tag) in [(&by, BlockY), (&bx, BlockX), (&ty, ThreadY), (&tx, ThreadX)] {
        s.bind("C", axis, tag).unwrap();
    }
    s.compute_at(cl, "C", &tx).unwrap();
    let (yc, xc, k) = (leaf(&s, &name, 0), leaf(&s, &name, 1), leaf(&s, &name, 2));
    let (ko, ki) = s.split(cl, &k, Split::Factor(step)).unwrap();
    s.reorder(cl, &[ko.clone(), ki, yc, xc]).unwrap();
    for tensor in [&a, &b] {
        let tile = s.cache_read(tensor, MemScope::Shared, &[cl.into()]).unwrap();
        s.compute_at(tile, cl, &ko).unwrap();
        let tile = s.stage_name(tile);
        let (r, l) = (leaf(&s, &tile, 0), leaf(&s, &tile, 1));
        let (_, r) = s.split(tile.as_str(), &r, Split::Factor(threads)).unwrap();
        let (_, l) = s.split(tile.as_str(), &l, Split::Factor(threads)).unwrap();
        s.bind(tile.as_str(), &r, ThreadY).unwrap();
        s.bind(tile.as_str(), &l, ThreadX).unwrap();
    }
    s
}

#[test]
fn te_b8_tiles_of_a_matrix_product() {
    let s = product(1024, 64, 8, 8);
    assert_eq!(realized(&s, "A.shared"), ["8", "64"]);
    assert_eq!(realized(&s, "B.shared"), ["8", "64"]);
    assert_eq!(realized(&s, "C.local"), ["8", "8"]);
    assert!(count(&gpu_text(&s), "T.cuda.cta_sync()") >= 2, "{}", gpu_text(&s));
    run_everywhere(&product(32, 16, 4, 4), &[&[]]);
    // Rows and columns that end inside a block, and a step that ends inside the sum.
    run_everywhere(&product(21, 8, 4, 4), &[&[]]);
}

#[test]
fn te_c15_a_stage_on_the_threads_of_its_consumer_needs_no_guard() {
    for (scope, kept) in [(MemScope::Local, "1"), (MemScope::Shared, "97")] {
        let mut s = chain(&[c(4), c(97)]);
        let (row, column) = (leaf(&s, "C", 0), leaf(&s, "C", 1));
        s.bind("C", &row, BlockX).unwrap();
        s.bind("C", &column, ThreadX).unwrap();
        s.set_scope("B", scope).unwrap();
        if scope == MemScope::Local {
            s.compute_at("B", "C", &column).unwrap();
        } else {
            s.compute_at("B", "C", &row).unwrap();
            let own = leaf(&s, "B", 1);
            s.bind("B", &own, ThreadX).unwrap();
        }
        assert_eq!(realized(&s, "B").last().unwrap(), kept);
        assert_eq!(count(&gpu_text(&s), "if "), 0, "{}", gpu_text(&s));
        run_everywhere(&s, &[&[]]);
    }
}

/// Sums of 4096 ones in float16, where ones stop adding up at 2048; the reduce loop outside of a data loop.
fn ones(rows: Expr) -> Schedule {
    let shape = [c(2), rows, c(4096)];
    let a = input(&shape, DType::F16, "A");
    let k = reduce_axis(4096, "k");
    let b = compute(&shape[..2], "B", |i| sum(a.at((&i[0], &i[1], &k)), from_ref(&k))).unwrap();
    let mut s = schedule(&[b], &[a]);
    let (j, i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1), leaf(&s, "B", 2));
    s.reorder("B", &[j.clone(), k, i]).unwrap();
    s.bind("B", &j, BlockX).unwrap();
    s
}

#[test]
fn sums_of_float16_by_threads_inside_the_reduce_loop_are_rounded_once() {
    let mut s = ones(n("n"));
    let i = leaf(&s, "B", 2);
    let (_, lane) = s.split("B", &i, Split::Factor(4)).unwrap();
    s.bind("B", &lane, ThreadX).unwrap();
    let fill = |_: usize, _: usize, dtype: DType| number(1, dtype);
    let refused = coulis::te::build_nest(&s, s.program().args(), "main").unwrap_err().to_string();
    assert!(refused.starts_with("`B` is folded in float32 and its result rounded once"), "{refused}");
    assert!(refused.contains("no constant extent"), "{refused}");

    let mut s = ones(c(6));
    let i = leaf(&s, "B", 2);
    s.bind("B", &i, ThreadX).unwrap();
    run_as_scheduled(&s, &[&[]], &fill, Tolerance::Exact);
    let mut s = ones(c(6));
    let i = leaf(&s, "B", 2);
    let (_, lane) = s.split("B", &i, Split::Factor(4)).unwrap();
    s.bind("B", &lane, ThreadX).unwrap();
    run_as_scheduled(&s, &[&[]], &fill, Tolerance::Exact);
}

#[test]
fn an_argument_that_a_block_computes_is_handed_to_its_threads_behind_a_barrier() {
    let a = input(&[c(8)], DType::F32, "A");
    let kept = |outputs: &[Tensor], b: &Tensor| {
        let args: Vec<Tensor> = [&a, b].into_iter().chain(outputs).cloned().collect();
        Schedule::new(outputs, &args).unwrap()
    };
    let n_barriers = |s: &Schedule| count(&gpu_text(s), "T.cuda.cta_sync()");
    // One thread makes what all of them read.
    let b = compute(&[c(8)], "B", |i| a.at([&i[0]]) + f(1.0)).unwrap();
    let d = compute(&[c(8), c(64)], "C", |i| b.at([&i[0]]) * f(2.0)).unwrap();
    let mut s = kept(&[d], &b);
    let (i, j) = (leaf(&s, "C", 0), leaf(&s, "C", 1));
    s.bind("C", &j, ThreadX).unwrap();
    s.compute_at("B", "C", &i).unwrap();
    assert_eq!(n_barriers(&s), 1, "{}", gpu_text(&s));
    run_everywhere(&s, &[&[]]);
    // All of it in each turn, which no thread may begin before the others have read it.
    for is_spread in [false, true] {
        let k = reduce_axis(8, "k");
        let d = compute(&[c(4)], "C", |i| {
            let turned = b.at([&(c(7) - k.expr())]);
            sum(turned * i[0].expr().cast(DType::F32), from_ref(&k))
        });
        let mut s = kept(&[d.unwrap()], &b);
        let (i, k, made) = (leaf(&s, "C", 0), leaf(&s, "C", 1), leaf(&s, "B", 0));
        s.bind("C", &k, ThreadX).unwrap();
        s.compute_at("B", "C", &i).unwrap();
        if is_spread {
            s.bind("B", &made, ThreadX).unwrap();
        }
        assert!(n_barriers(&s) >= 2, "{}", gpu_text(&s));
        run_everywhere(&s, &[&[]]);
    }
    // What threads fold together.
    let a = input(&[c(8), c(64)], DType::F32, "A");
    let k = reduce_axis(64, "k");
    let b = compute(&[c(8)], "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    let d = compute(&[c(8), c(64)], "C", |i| b.at([&i[0]]) - i[1].expr().cast(DType::F32)).unwrap();
    let mut s = Schedule::new(from_ref(&d), &[a, b, d.clone()]).unwrap();
    let (i, j, k) = (leaf(&s, "C", 0), leaf(&s, "C", 1), leaf(&s, "B", 1));
    s.bind("C", &j, ThreadX).unwrap();
    s.compute_at("B", "C", &i).unwrap();
    s.bind("B", &k, ThreadX).unwrap();
    run_everywhere(&s, &[&[]]);
}

#[test]
fn a_loop_whose_copies_are_waited_for_has_its_barrier_in_front() {
    let a = input(&[c(8), c(64)], DType::F32, "A");
    let k = reduce_axis(64, "k");
    let b = compute(&[c(8)], "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    let mut s = schedule(&[b], from_ref(&a));
    let i = leaf(&s, "B", 0);
    let (outer, inner) = s.split("B", &i, Split::Factor(2)).unwrap();
    s.bind("B", &outer, BlockX).unwrap();
    let copy = s.cache_read(&a, MemScope::Shared, &["B".into()]).unwrap();
    s.compute_at(copy, "B", &inner).unwrap();
    let along = s.stage(copy).unwrap().leaves()[1].clone();
    let (outer, inner) = s.split(copy, &along, Split::Factor(32)).unwrap();
    s.bind(copy, &inner, ThreadX).unwrap();
    s.pragma(copy, &outer, "async_copy", Attr::Int(1)).unwrap();
    run_everywhere(&s, &[&[]]);
}

/// Rows whose sum is over threads, in a loop with a pragma of that value.
fn folded_under_a_pragma(threads: i32, value: i64) -> (Schedule, Vec<Tensor>) {
    let a = input(&[c(4), c(threads)], DType::F32, "A");
    let k = reduce_axis(threads, "k");
    let b = compute(&[c(4)], "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    let mut s = schedule(from_ref(&b), from_ref(&a));
    s.bind("B", &leaf(&s, "B", 1), ThreadX).unwrap();
    s.pragma("B", &leaf(&s, "B", 0), "async_copy", Attr::Int(value)).unwrap();
    (s, vec![a, b])
}

#[test]
fn threads_that_wait_in_a_loop_of_asynchronous_copies_are_refused_by_stage_loop_and_pragma() {
    let target = TargetChoice::Cuda { arch: Some("sm_90a".to_owned()) };
    let wanted = "pragma async_copy of `i` of `B`: a barrier stands where words are copied asynchronously, which are \
                  there when that statement ends; take it off, or mark a loop without that";
    // More threads than a warp has meet at a barrier.
    let (s, args) = folded_under_a_pragma(64, 1);
    let sim =
        CompileOptions { device: DeviceChoice::Sim { warp: 32, orders: 1 }, ..CompileOptions::default() };
    for error in [
        coulis::text::listing(&s, &args, "main").unwrap_err(),
        coulis::text::device_source(&s, &args, "main", &target).unwrap_err(),
        coulis::te::build_with(&s, &args, "main", &sim).err().unwrap(),
    ] {
        assert_eq!((error.owner, error.code, error.message.as_str()), (Owner::User, "schedule", wanted));
    }
    for (threads, value) in [(64, 0), (32, 1)] {
        let (s, args) = folded_under_a_pragma(threads, value);
        coulis::text::device_source(&s, &args, "main", &target).unwrap();
    }
}
