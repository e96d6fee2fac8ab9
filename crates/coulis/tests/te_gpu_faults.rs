//! Faults of the reference on threads, C3 to C14 and G1 to G9 of docs/sources.md: the right answer in the
//! simulator, or the refusal.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/everywhere.rs"]
mod everywhere;

use std::slice::from_ref;

use ThreadTag::{BlockX, ThreadX, ThreadY};
use coulis::te::{
    Expr, Schedule, Split, build_nest, comm_reducer, compute, compute_tuple, max, reduce_axis, sum,
};
use coulis::{DType, Owner};
use coulis_ir::verify::verify_for;
use coulis_ir::{Form, MemScope, Stmt, SyncKind, Target, ThreadTag};
use coulis_schedule::{GridFinish, thread_index};
use everywhere::{
    Tolerance, argmax_of, c, count, f, gpu_text, input, leaf, n, number, run_everywhere, run_everywhere_with,
    schedule,
};

/// `B[i] = sum of A[i, k]`, where `k` is not 3 if that is asked for.
fn rows(columns: Expr, condition: bool) -> Schedule {
    let rows = n("n");
    let a = input(&[rows.clone(), columns.clone()], DType::F32, "A");
    let k = reduce_axis(columns, "k");
    let b = compute(from_ref(&rows), "B", |i| {
        let all = sum(a.at((&i[0], &k)), from_ref(&k))?;
        if condition { all.where_(k.expr().not_equal(c(3))) } else { Ok(all) }
    })
    .unwrap();
    schedule(&[b], &[a])
}

/// Rows on blocks and `threadIdx.y`, `lanes` parts of a row on `threadIdx.x`.
fn on_threads(s: &mut Schedule, per_block: i64, lanes: i64) {
    let (i, k) = (leaf(s, "B", 0), leaf(s, "B", 1));
    let (outer, inner) = s.split("B", &i, Split::Factor(per_block)).unwrap();
    s.bind("B", &outer, BlockX).unwrap();
    s.bind("B", &inner, ThreadY).unwrap();
    let (_, lane) = s.split("B", &k, Split::Factor(lanes)).unwrap();
    s.bind("B", &lane, ThreadX).unwrap();
}

const SIZES: &[&[(&str, i64)]] =
    &[&[("n", 5), ("m", 37)], &[("n", 1), ("m", 1)], &[("n", 4), ("m", 16)], &[("n", 2), ("m", 0)]];

#[test]
fn te_fault_c1_tuples_by_threads_combine_all_components_before_they_store_one() {
    for value in [0, 1] {
        for lanes in [16, 20, 64] {
            let (rows, columns) = (n("n"), n("m"));
            let a = input(&[rows.clone(), columns.clone()], DType::F32, "A");
            let both = argmax_of(&a, value, "B");
            let mut s = schedule(&both, &[a]);
            on_threads(&mut s, 4, lanes);
            run_everywhere(&s, SIZES);
        }
    }
}

/// The first place of the largest, by a reducer that keeps the left of equal values, or where `last`, the
/// last place by one that keeps the right: places are inputs, of which no order is known.
fn argmax_by_order(columns: &Expr, last: bool) -> Schedule {
    let rows = n("n");
    let shape = [rows.clone(), columns.clone()];
    let (places, a) = (input(&shape, DType::I32, "P"), input(&shape, DType::F32, "A"));
    let argmax = comm_reducer(
        move |x, y| {
            let keep = if last { x[1].clone().gt(y[1].clone()) } else { x[1].clone().ge(y[1].clone()) };
            (0..2).map(|i| Expr::select(keep.clone(), x[i].clone(), y[i].clone())).collect()
        },
        |types| vec![Expr::int(-1), Expr::float(f64::NEG_INFINITY, types[1])],
        "argmax",
    );
    let k = reduce_axis(columns.clone(), "k");
    let both = compute_tuple(from_ref(&rows), "B", |i| {
        argmax.reduce(vec![places.at((&i[0], &k)), a.at((&i[0], &k))], from_ref(&k))
    })
    .unwrap();
    schedule(&both, &[places, a])
}

#[test]
fn te_fault_c12_ties_are_decided_by_the_program_and_not_by_the_schedule() {
    for last in [false, true] {
        let made = || argmax_by_order(&n("m"), last);
        // Places are all different, and values few.
        let fill = |arg: usize, at: usize, dtype| {
            number(if arg == 0 { at as i128 } else { at as i128 * 7 % 5 }, dtype)
        };
        let check = |s: &Schedule| run_everywhere_with(s, SIZES, &fill, Tolerance::Exact);
        check(&made());
        for outer in [false, true] {
            let mut s = made();
            let k = leaf(&s, "B", 1);
            let (o, i) = s.split("B", &k, Split::Factor(16)).unwrap();
            if outer {
                s.reorder("B", &[i.clone(), o.clone()]).unwrap();
                check(&s);
            }
            let mut s = made();
            let k = leaf(&s, "B", 1);
            let (o, i) = s.split("B", &k, Split::Factor(16)).unwrap();
            let factored = s.rfactor("B", if outer { &o } else { &i }).unwrap();
            assert_eq!(
                s.stage(factored).unwrap().outputs().len(),
                2,
                "what the program does not know of is not shown"
            );
            check(&s);
        }
        let mut s = made();
        on_threads(&mut s, 4, 16);
        check(&s);
        // Threads that one iteration has are no others to fold with.
        let mut s = argmax_by_order(&c(7), last);
        let k = leaf(&s, "B", 1);
        let (o, i) = s.split("B", &k, Split::Factor(7)).unwrap();
        let row = leaf(&s, "B", 0);
        s.bind("B", &row, BlockX).unwrap();
        s.bind("B", &o, ThreadX).unwrap();
        s.reorder("B", &[i, o]).unwrap();
        run_everywhere_with(&s, &[&[("n", 5)]], &fill, Tolerance::Exact);
        // As users of tensor expressions write it.
        let mut s = made();
        let k = leaf(&s, "B", 1);
        let (_, inner) = s.split("B", &k, Split::Factor(16)).unwrap();
        let factored = s.rfactor("B", &inner).unwrap();
        let row = leaf(&s, "B", 0);
        let (block, inner) = s.split("B", &row, Split::Factor(4)).unwrap();
        s.bind("B", &block, BlockX).unwrap();
        s.bind("B", &inner, ThreadY).unwrap();
        let lane = leaf(&s, "B", 2);
        s.bind("B", &lane, ThreadX).unwrap();
        s.compute_at(factored, "B", &lane).unwrap();
        check(&s);
        for finish in [GridFinish::SecondKernel, GridFinish::LastBlock] {
            let mut s = argmax_by_order(&c(50), last);
            let k = leaf(&s, "B", 1);
            let (o, i) = s.split("B", &k, Split::Factor(16)).unwrap();
            s.bind("B", &o, BlockX).unwrap();
            s.bind("B", &i, ThreadX).unwrap();
            s.grid_finish("B", finish).unwrap();
            run_everywhere_with(&s, &[&[("n", 5)]], &fill, Tolerance::Exact);
        }
    }
}

#[test]
fn te_fault_c12_an_order_that_cannot_be_kept_is_refused() {
    let (rows, k) = (n("n"), reduce_axis(50, "k"));
    let a = input(&[rows.clone(), c(50)], DType::F32, "A");
    // Each field has its own way with equal values, so that the state of two may be neither.
    let odd = comm_reducer(
        |x, y| {
            let (left, right) = (x[1].clone().ge(y[1].clone()), x[1].clone().gt(y[1].clone()));
            vec![
                Expr::select(left, x[0].clone(), y[0].clone()),
                Expr::select(right, x[1].clone(), y[1].clone()),
            ]
        },
        |types| vec![Expr::int(-1), Expr::float(f64::NEG_INFINITY, types[1])],
        "odd",
    );
    let both =
        compute_tuple(from_ref(&rows), "B", |i| odd.reduce(vec![k.expr(), a.at((&i[0], &k))], from_ref(&k)))
            .unwrap();
    let mut s = schedule(&both, &[a]);
    let k = leaf(&s, "B", 1);
    let (o, i) = s.split("B", &k, Split::Factor(16)).unwrap();
    let want = |primitive: &str| {
        format!(
            "{primitive} of `B` changes the order of the fold, and its reducer `odd` does not claim to be \
             associative and commutative"
        )
    };
    assert_eq!(s.rfactor("B", &i).unwrap_err().to_string(), want("rfactor"));
    run_everywhere(&s, &[&[("n", 3)]]);
    s.reorder("B", &[i.clone(), o]).unwrap();
    assert_eq!(build_nest(&s, s.program().args(), "main").unwrap_err().to_string(), want("reorder"));
    s.bind("B", &i, ThreadX).unwrap();
    assert_eq!(build_nest(&s, s.program().args(), "main").unwrap_err().to_string(), want("bind"));
}

#[test]
fn te_fault_c3_a_condition_guards_what_threads_fold_and_not_who_stores() {
    // The whole reduction on threads, and with a serial part.
    let mut whole = rows(c(11), true);
    let (i, k) = (leaf(&whole, "B", 0), leaf(&whole, "B", 1));
    whole.bind("B", &i, BlockX).unwrap();
    whole.bind("B", &k, ThreadX).unwrap();
    run_everywhere(&whole, &[&[("n", 3)], &[("n", 1)]]);
    let mut mixed = rows(n("m"), true);
    on_threads(&mut mixed, 4, 8);
    run_everywhere(&mixed, SIZES);
}

#[test]
fn te_fault_c4_both_halves_of_a_split_on_threads_are_guarded() {
    for condition in [false, true] {
        let mut s = rows(c(50), condition);
        let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
        let (outer, inner) = s.split("B", &k, Split::Factor(16)).unwrap();
        s.bind("B", &i, BlockX).unwrap();
        s.bind("B", &outer, ThreadY).unwrap();
        s.bind("B", &inner, ThreadX).unwrap();
        run_everywhere(&s, &[&[("n", 3)]]);
    }
}

#[test]
fn te_fault_c5_rows_past_the_last_are_not_stored() {
    let mut s = rows(n("m"), false);
    on_threads(&mut s, 32, 16);
    s.set_store_predicate("B", thread_index(ThreadX).expr().equal(c(0))).unwrap();
    // 100 rows in blocks of 32: bytes behind the output are looked at.
    run_everywhere(&s, &[&[("n", 100), ("m", 20)], &[("n", 1), ("m", 3)]]);
}

/// A stage that is attached to threads without a row stores nothing there, so that nothing may be read of it.
#[test]
fn a_part_that_only_threads_with_a_row_have_is_read_by_these_alone() {
    let mut s = rows(c(12), false);
    let k = leaf(&s, "B", 1);
    s.rfactor("B", &k).unwrap();
    let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    s.compute_at("B_rf", "B", &k).unwrap();
    let (outer, inner) = s.split("B", &i, Split::Factor(8)).unwrap();
    s.bind("B", &outer, BlockX).unwrap();
    s.bind("B", &inner, ThreadY).unwrap();
    s.bind("B", &k, ThreadTag::ThreadZ).unwrap();
    run_everywhere(&s, &[&[("n", 3)], &[("n", 8)], &[("n", 17)]]);
}

/// The same of a copy of what is read, in memory of a thread and in memory of the block that its threads fill together.
#[test]
fn a_copy_that_only_threads_with_a_row_make_is_read_by_these_alone() {
    for scope in [MemScope::Local, MemScope::Shared] {
        let mut s = rows(c(12), false);
        let a = s.program().args()[0].clone();
        let copy = s.cache_read(&a, scope, &["B".into()]).unwrap();
        let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
        let (outer, inner) = s.split("B", &i, Split::Factor(8)).unwrap();
        s.bind("B", &outer, BlockX).unwrap();
        s.bind("B", &inner, ThreadY).unwrap();
        s.bind("B", &k, ThreadX).unwrap();
        if scope == MemScope::Local {
            s.compute_at(copy, "B", &k).unwrap();
        } else {
            s.compute_at(copy, "B", &outer).unwrap();
            let column = s.stage(copy).unwrap().leaves()[1].clone();
            s.bind(copy, &column, ThreadX).unwrap();
        }
        run_everywhere(&s, &[&[("n", 3)], &[("n", 8)], &[("n", 17)]]);
    }
}

#[test]
fn te_fault_c6_two_axes_of_a_stage_on_one_index_are_refused() {
    let mut s = rows(n("m"), false);
    let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    s.bind("B", &i, ThreadX).unwrap();
    let error = s.bind("B", &k, ThreadX).unwrap_err().to_string();
    assert!(error.contains("threadIdx.x") && error.contains("`k`") && error.contains("`i`"), "{error}");
}

#[test]
fn te_fault_c14_a_reduction_into_a_cache_of_any_scope_reads_each_lanes_own() {
    for scope in [MemScope::Local, MemScope::Shared] {
        let mut s = rows(n("m"), false);
        let cached = s.cache_write("B", scope).unwrap();
        let name = s.stage_name(cached);
        let i = leaf(&s, "B", 0);
        s.bind("B", &i, BlockX).unwrap();
        s.compute_at(cached, "B", &i).unwrap();
        let k = leaf(&s, &name, 1);
        let (_, lane) = s.split(cached, &k, Split::Factor(16)).unwrap();
        s.bind(cached, &lane, ThreadX).unwrap();
        run_everywhere(&s, SIZES);
    }
}

#[test]
fn te_fault_g1_and_te_fault_g2_masks_name_the_lanes_of_the_group_and_nobody_is_asked_who_is_active() {
    for lanes in [2, 8, 16, 32] {
        let mut s = rows(n("m"), false);
        on_threads(&mut s, 8, lanes);
        let text = gpu_text(&s);
        assert!(text.contains("tvm_warp_shuffle_down(mask[0]"), "{text}");
        assert_eq!(count(&text, "activemask"), 0, "{text}");
        run_everywhere(&s, SIZES);
    }
}

#[test]
fn te_fault_g3_steps_of_a_warp_in_shared_memory_are_ordered_by_barriers() {
    // bool and 16-bit integers go through shared memory or a wider carrier.
    for dtype in [DType::I16, DType::U8, DType::F16, DType::BF16, DType::F64] {
        let rows = n("n");
        let a = input(&[rows.clone(), c(26)], dtype, "A");
        let k = reduce_axis(26, "k");
        let b = compute(from_ref(&rows), "B", |i| max(a.at((&i[0], &k)), from_ref(&k))).unwrap();
        let mut s = schedule(&[b], &[a]);
        let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
        let (outer, inner) = s.split("B", &i, Split::Factor(16)).unwrap();
        s.bind("B", &outer, BlockX).unwrap();
        s.bind("B", &inner, ThreadY).unwrap();
        s.bind("B", &k, ThreadX).unwrap();
        // The simulator reports a race between lanes that no barrier orders.
        run_everywhere(&s, &[&[("n", 20)], &[("n", 3)]]);
    }
}

#[test]
fn te_fault_g4_no_rows_write_nothing() {
    let mut s = rows(n("m"), false);
    on_threads(&mut s, 4, 16);
    run_everywhere(&s, &[&[("n", 0), ("m", 7)], &[("n", 0), ("m", 0)]]);
}

#[test]
fn te_fault_g5_and_te_fault_g6_groups_of_any_length_beside_each_other() {
    for (per_block, lanes) in [(2, 96), (3, 64), (4, 11), (5, 33), (7, 3), (1, 1000)] {
        let mut s = rows(n("m"), false);
        on_threads(&mut s, per_block, lanes);
        let below = |_: usize, at: usize, dtype: DType| number(-1 - (at % 5) as i128, dtype);
        run_everywhere_with(&s, &[&[("n", 7), ("m", 1003)]], &below, Tolerance::Exact);
    }
}

#[test]
fn te_fault_g7_blocks_that_no_machine_has_are_refused_as_the_users() {
    // 2048 threads.
    let mut s = rows(n("m"), false);
    let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    let (outer, inner) = s.split("B", &i, Split::Factor(64)).unwrap();
    s.bind("B", &outer, BlockX).unwrap();
    s.bind("B", &inner, ThreadY).unwrap();
    let (_, lane) = s.split("B", &k, Split::Factor(32)).unwrap();
    s.bind("B", &lane, ThreadX).unwrap();
    let message = refusal(&s);
    assert!(message.contains("1024") && message.contains("2048"), "{message}");
    // More shared memory than a block may have.
    let shape = [n("n"), c(60_000)];
    let a = input(&shape, DType::F32, "A");
    let b = compute(&shape, "B", |i| a.at(i) + f(1.0)).unwrap();
    let d = compute(&shape, "C", |i| b.at(i) * f(2.0)).unwrap();
    let mut s = schedule(&[d], &[a]);
    let row = leaf(&s, "C", 0);
    s.bind("C", &row, BlockX).unwrap();
    s.set_scope("B", MemScope::Shared).unwrap();
    s.compute_at("B", "C", &row).unwrap();
    let message = refusal(&s);
    assert!(message.contains("240000") && message.contains("shared memory"), "{message}");
    // A number of threads that only a call knows.
    let mut s = rows(n("m"), false);
    let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    s.bind("B", &i, BlockX).unwrap();
    s.bind("B", &k, ThreadX).unwrap();
    let message = refusal(&s);
    assert!(message.contains("`k`") || message.contains("threadIdx.x"), "{message}");
    // A barrier that half of the threads reach, written by hand.
    let plain = rows(c(4), false);
    let mut kernel = build_nest(&plain, plain.program().args(), "main").unwrap();
    let tx = coulis::te::Var::new("tx", DType::I32);
    let half = Stmt::if_(tx.expr().lt(c(32)), Stmt::Sync(SyncKind::Cta));
    kernel.body = Stmt::LaunchThread { tag: ThreadX, var: tx, extent: c(64), body: Box::new(half) };
    kernel.form = Form::Flat;
    let faults = verify_for(kernel, &Target::simulated(32)).unwrap_err();
    assert!(faults.to_string().contains("V21: cta barrier under a condition"), "{faults}");
}

/// Why a schedule is no kernel of a GPU; the user can change it.
fn refusal(s: &Schedule) -> String {
    let target = Target::simulated(32);
    let error = coulis::compile_schedule(s, s.program().args(), "main", &target).unwrap_err();
    assert_ne!(error.owner, Owner::Bug, "{error}");
    error.to_string()
}

#[test]
fn te_fault_g8_what_a_block_needs_once_is_stored_by_one_thread() {
    let (rows, columns) = (n("n"), c(40));
    let a = input(&[rows.clone(), columns.clone()], DType::F32, "A");
    let k = reduce_axis(40, "k");
    let m = compute(from_ref(&rows), "M", |i| max(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    let d = compute(&[rows, columns], "D", |i| a.at(i) - m.at([&i[0]])).unwrap();
    let mut s = schedule(&[d], &[a]);
    let (row, column) = (leaf(&s, "D", 0), leaf(&s, "D", 1));
    s.bind("D", &row, BlockX).unwrap();
    let (_, lane) = s.split("D", &column, Split::Factor(16)).unwrap();
    s.bind("D", &lane, ThreadX).unwrap();
    s.set_scope("M", MemScope::Shared).unwrap();
    s.compute_at("M", "D", &row).unwrap();
    // All threads storing to one cell is what the simulator and the verifier report.
    run_everywhere(&s, &[&[("n", 5)], &[("n", 1)]]);
}

#[test]
fn te_fault_g9_one_thread_of_a_group_stores() {
    let mut s = rows(n("m"), false);
    on_threads(&mut s, 4, 16);
    let text = gpu_text(&s);
    let store = text
        .lines()
        .position(|l| l.trim_start().starts_with("B_2[") || l.trim_start().starts_with("B_1["))
        .unwrap();
    let before: Vec<&str> = text.lines().take(store).collect();
    assert!(before.iter().rev().take(3).any(|l| l.contains("threadIdx_x == 0")), "{text}");
    run_everywhere(&s, SIZES);
}

#[test]
fn te_fault_u5_work_that_no_thread_does_is_refused_as_the_users() {
    let message = refusal(&rows(n("m"), false));
    assert!(message.contains("stands outside every launch; bind an axis"), "{message}");
}

/// `C[i, j] = A[i, j] + A[j', i]` of a square tile, whose elements come from shared memory of that many bytes.
fn tile_in_shared_memory(side: i32) -> Schedule {
    let a = input(&[c(side), c(side)], DType::F32, "A");
    let b = compute(&[c(side), c(side)], "B", |i| a.at((&i[0], &i[1])) + a.at((&i[1], &i[0]))).unwrap();
    let mut s = schedule(from_ref(&b), from_ref(&a));
    let cache = s.cache_read(&a, MemScope::Shared, &["B".into()]).unwrap();
    let (i, j) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    let one = s.fuse("B", &[]).unwrap();
    s.bind("B", &one, BlockX).unwrap();
    let (_, lane) = s.split("B", &j, Split::Factor(32)).unwrap();
    s.bind("B", &lane, ThreadX).unwrap();
    let _ = i;
    s.compute_at(cache, "B", &one).unwrap();
    let last = s.stage(cache).unwrap().leaves()[1].clone();
    let (_, lane) = s.split(cache, &last, Split::Factor(32)).unwrap();
    s.bind(cache, &lane, ThreadX).unwrap();
    s
}

#[test]
fn shared_memory_beyond_what_a_text_declares_is_asked_for_at_launch() {
    let declared = tile_in_shared_memory(110);
    assert!(gpu_text(&declared).contains("\"shared\")"), "{}", gpu_text(&declared));
    run_everywhere(&declared, &[&[]]);
    // 64 KiB.
    let asked = tile_in_shared_memory(128);
    assert!(gpu_text(&asked).contains("\"shared.dyn\")"), "{}", gpu_text(&asked));
    run_everywhere(&asked, &[&[]]);
    // 256 KiB are more than there is.
    let beyond = tile_in_shared_memory(256);
    let target = Target::cuda("sm_90a").unwrap();
    let error = coulis::compile_schedule(&beyond, beyond.program().args(), "main", &target).unwrap_err();
    assert_eq!(error.owner, Owner::User);
    let text = error.to_string();
    assert!(text.contains("a block may ask for 232448 bytes of shared memory at launch on sm_90a"), "{text}");
}

#[test]
fn states_of_a_block_may_take_more_shared_memory_than_a_text_declares() {
    // 1024 threads with 8 states of 8 bytes, whose groups lie apart, fold through 64 KiB.
    let a = input(&[c(16), c(64)], DType::F64, "A");
    let eight = comm_reducer(
        |x, y| x.iter().zip(y).map(|(x, y)| x.clone() + y.clone()).collect(),
        |types| types.iter().map(|t| Expr::constant(0, *t)).collect(),
        "eight_sums",
    );
    let k = reduce_axis(64, "k");
    let sums = compute_tuple(&[c(16)], "B", |i| {
        let x = a.at((&i[0], &k));
        let of = |power: i64| x.clone() * Expr::constant(power.into(), DType::F64);
        eight.reduce((1..9).map(of).collect(), from_ref(&k))
    })
    .unwrap();
    let mut s = schedule(&sums, from_ref(&a));
    let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    s.bind("B", &i, ThreadX).unwrap();
    s.bind("B", &k, ThreadY).unwrap();
    assert!(gpu_text(&s).contains("\"shared.dyn\")"), "{}", gpu_text(&s));
    run_everywhere(&s, &[&[]]);
}

#[test]
fn a_block_of_one_warp_folds_at_the_scope_of_the_warp() {
    for (lanes, scope) in [(8, "warp"), (32, "warp"), (33, "cta")] {
        let mut s = rows(n("m"), false);
        on_threads(&mut s, 1, lanes);
        let nest = everywhere::nest_text(&s);
        assert!(nest.contains(&format!("Tx.{scope}.reduce(")), "{nest}");
        run_everywhere(&s, SIZES);
    }
}

#[test]
fn a_fold_that_blocks_of_two_dimensions_share_is_done_by_one_of_their_threads() {
    let (a, w) = (input(&[c(4), c(5)], DType::F32, "A"), input(&[c(4), c(8), c(16)], DType::F32, "W"));
    let q = reduce_axis(5, "q");
    let p = compute(&[c(4)], "P", |i| sum(a.at((&i[0], &q)), from_ref(&q))).unwrap();
    let r = compute(&[c(4), c(8), c(16)], "R", |i| w.at(i) * p.at([&i[0]])).unwrap();
    let mut s = schedule(&[r], &[a, w]);
    for (at, tag) in [BlockX, ThreadY, ThreadX].into_iter().enumerate() {
        let axis = leaf(&s, "R", at);
        s.bind("R", &axis, tag).unwrap();
    }
    let i = leaf(&s, "R", 0);
    s.compute_at("P", "R", &i).unwrap();
    run_everywhere(&s, &[&[]]);
    let text = gpu_text(&s);
    assert_eq!(count(&text, "T.cuda.cta_sync()"), 1, "{text}");
}
