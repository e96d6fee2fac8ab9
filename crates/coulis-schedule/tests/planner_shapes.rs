//! The schedules that a planner of reductions makes: lanes, unrolling, chunks for threads, column tiles.

mod common;

use std::slice::from_ref;

use common::check;
use common::fixture::states_of_rows;
use coulis_ir::{DType, Expr, MemScope};
use coulis_reducers::{ReducerRequest, find, product};
use coulis_schedule::{Schedule, Split};
use coulis_tensor::{IterVar, Tensor, compute, compute_tuple, placeholder, reduce, reduce_axis, sum, var_of};

fn size(name: &str) -> Expr {
    var_of(name, DType::I64).expr()
}

const SIZES: &[&[(&str, i64)]] = &[
    &[("n", 1), ("m", 1)],
    &[("n", 3), ("m", 7)],
    &[("n", 2), ("m", 32)],
    &[("n", 5), ("m", 75)],
    &[("n", 0), ("m", 4)],
    &[("n", 2), ("m", 0)],
];

struct Rows {
    outputs: Vec<Tensor>,
    state: Tensor,
    s: Schedule,
}

/// Mean and maximum of rows: a tuple of state fields, then a finish of two outputs of different types.
fn rows() -> Rows {
    let (n, m) = (size("n"), size("m"));
    let a = placeholder(&[n.clone(), m.clone()], DType::F32, "A").expect("a tensor");
    let k = reduce_axis(m.clone(), "k");
    let parts: Vec<(&str, _)> = ["sum", "max"]
        .into_iter()
        .map(|name| {
            let reducer = find(name).expect("in the catalogue").build(&ReducerRequest::new(&[DType::F32]));
            (name, reducer.expect("takes float32"))
        })
        .collect();
    let fused = product(&parts).expect("a product").reducer;
    let state = compute_tuple(from_ref(&n), "S", |i| reduce(&fused, &[a.at((&i[0], &k))], from_ref(&k)))
        .expect("tensors");
    let outputs = compute_tuple(from_ref(&n), "O", |i| {
        let fields: Vec<Expr> = state.iter().map(|s| s.at([&i[0]])).collect();
        let results = fused.finish(&fields);
        vec![results[0].clone().cast(DType::F64), results[1].clone().cast(DType::F32)]
    })
    .expect("tensors");
    let args: Vec<Tensor> = [a].into_iter().chain(outputs.iter().cloned()).collect();
    let s = Schedule::new(&outputs, &args).expect("a schedule");
    Rows { outputs, state: state[0].clone(), s }
}

fn axis(axes: &[IterVar], n: usize) -> IterVar {
    axes[n].clone()
}

#[test]
fn rows_as_they_are() {
    check(&rows().s, SIZES);
}

#[test]
fn rows_with_lanes_and_unrolling_in_the_row_loop() {
    let Rows { outputs, state, mut s } = rows();
    let o = &outputs[0];
    let k = axis(s.stage(&state).expect("a stage").reduce_axes(), 0);
    let (_, block) = s.split(&state, &k, Split::Factor(16)).expect("k splits");
    let partial = s.rfactor(&state, &block).expect("the block factors");
    let (u, i, ko) = {
        let stage = s.stage(partial).expect("a stage");
        (axis(stage.axes(), 0), axis(stage.axes(), 1), axis(stage.reduce_axes(), 0))
    };
    let (u, lane) = s.split(partial, &u, Split::Factor(8)).expect("the block splits");
    s.reorder(partial, &[i, ko, u.clone(), lane.clone()]).expect("an order");
    s.vectorize(partial, &lane).expect("lanes");
    s.unroll(partial, &u).expect("unrolled");
    let row = axis(s.stage(o).expect("a stage").axes(), 0);
    s.parallel(o, &row).expect("parallel rows");
    s.compute_at(&state, o, &row).expect("attached");
    s.set_scope(&state, MemScope::Local).expect("local");
    let state_row = axis(s.stage(&state).expect("a stage").axes(), 0);
    s.compute_at(partial, &state, &state_row).expect("attached");
    s.set_scope(partial, MemScope::Local).expect("local");
    check(&s, SIZES);
    let text = common::body(&s);
    assert!(text.contains("T.vectorized(T.int64(8))") && text.contains("T.unroll(T.int64(2))"), "{text}");
    assert_eq!(
        s.trace().to_string(),
        "k_outer, k_inner = s[S].split(k, factor=16)\n\
         S_rf = s.rfactor(S, k_inner)\n\
         k_inner_outer, k_inner_inner = s[S_rf].split(k_inner, factor=8)\n\
         s[S_rf].reorder(i, k_outer, k_inner_outer, k_inner_inner)\n\
         s[S_rf].vectorize(k_inner_inner)\n\
         s[S_rf].unroll(k_inner_outer)\n\
         s[O].parallel(i)\n\
         s[S].compute_at(s[O], i)\n\
         s[S].set_scope(\"local\")\n\
         s[S_rf].compute_at(s[S], ax0)\n\
         s[S_rf].set_scope(\"local\")\n"
    );
}

#[test]
fn factoring_twice_keeps_both_levels() {
    let Rows { outputs, state, mut s } = rows();
    let k = axis(s.stage(&state).expect("a stage").reduce_axes(), 0);
    let (_, block) = s.split(&state, &k, Split::Factor(8)).expect("k splits");
    let (u, _) = s.split(&state, &block, Split::Factor(4)).expect("the block splits");
    let first = s.rfactor(&state, &u).expect("u factors");
    let lane = axis(s.stage(first).expect("a stage").reduce_axes(), 1);
    let second = s.rfactor(first, &lane).expect("the lane factors");
    assert_eq!(s.stage(second).expect("a stage").name(), "S.rf.rf");
    check(&s, SIZES);
    let row = axis(s.stage(&outputs[0]).expect("a stage").axes(), 0);
    s.compute_at(&state, &outputs[0], &row).expect("attached");
    let at = axis(s.stage(&state).expect("a stage").leaves(), 0);
    s.compute_at(first, &state, &at).expect("attached");
    let at = axis(s.stage(first).expect("a stage").leaves(), 0);
    s.compute_at(second, first, &at).expect("attached");
    check(&s, SIZES);
}

#[test]
fn one_long_row_in_chunks_for_threads() {
    let m = size("m");
    let a = placeholder(from_ref(&m), DType::F64, "A").expect("a tensor");
    let k = reduce_axis(m.clone(), "k");
    let b = compute(&[], "B", |_| sum(a.at([&k]), from_ref(&k))).expect("a tensor");
    let mut s = Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule");
    let (chunk, rest) = s.split(&b, &k, Split::Nparts(4)).expect("chunks");
    let (_, _) = s.split(&b, &rest, Split::Factor(8)).expect("lanes");
    let partial = s.rfactor(&b, &chunk).expect("chunks factor");
    let lane = axis(s.stage(partial).expect("a stage").reduce_axes(), 1);
    let lanes = s.rfactor(partial, &lane).expect("lanes factor");
    let thread = axis(s.stage(partial).expect("a stage").axes(), 0);
    s.parallel(partial, &thread).expect("parallel chunks");
    s.compute_at(lanes, partial, &thread).expect("attached");
    s.set_scope(lanes, MemScope::Local).expect("local");
    let (lane, ko) = {
        let stage = s.stage(lanes).expect("a stage");
        (axis(stage.axes(), 0), axis(stage.reduce_axes(), 0))
    };
    s.reorder(lanes, &[ko, lane.clone()]).expect("an order");
    s.vectorize(lanes, &lane).expect("lanes");
    check(&s, &[&[("m", 0)], &[("m", 1)], &[("m", 31)], &[("m", 64)], &[("m", 65)], &[("m", 100)]]);
}

#[test]
fn columns_in_vector_tiles() {
    let (n, m) = (size("n"), size("m"));
    let a = placeholder(&[m.clone(), n.clone()], DType::F32, "A").expect("a tensor");
    let k = reduce_axis(m, "k");
    let state = compute(from_ref(&n), "S", |j| sum(a.at((&k, &j[0])).cast(DType::F64), from_ref(&k)))
        .expect("a tensor");
    let o = compute(from_ref(&n), "O", |j| state.at([&j[0]]).cast(DType::F32)).expect("a tensor");
    let mut s = Schedule::new(from_ref(&o), &[a, o.clone()]).expect("a schedule");
    let j = axis(s.stage(&o).expect("a stage").axes(), 0);
    let (tile, lane) = s.split(&o, &j, Split::Factor(8)).expect("tiles");
    s.vectorize(&o, &lane).expect("lanes");
    s.parallel(&o, &tile).expect("parallel tiles");
    s.compute_at(&state, &o, &tile).expect("attached");
    s.set_scope(&state, MemScope::Local).expect("local");
    let j = axis(s.stage(&state).expect("a stage").axes(), 0);
    s.reorder(&state, &[k, j.clone()]).expect("an order");
    s.vectorize(&state, &j).expect("lanes");
    check(&s, &[&[("n", 1), ("m", 3)], &[("n", 8), ("m", 2)], &[("n", 19), ("m", 5)], &[("n", 4), ("m", 0)]]);
}

#[test]
fn short_runs_folded_into_a_total() {
    let Rows { outputs, state, mut s } = rows();
    let k = axis(s.stage(&state).expect("a stage").reduce_axes(), 0);
    let (_, lane) = s.split(&state, &k, Split::Factor(8)).expect("k splits");
    let total = s.rfactor(&state, &lane).expect("lanes factor");
    let blocks = axis(s.stage(total).expect("a stage").reduce_axes(), 0);
    let (run, _) = s.split(total, &blocks, Split::Factor(3)).expect("runs of 3 blocks");
    let runs = s.rfactor(total, &run).expect("runs factor");
    let (lane, i, run) = {
        let stage = s.stage(total).expect("a stage");
        (axis(stage.axes(), 0), axis(stage.axes(), 1), axis(stage.reduce_axes(), 0))
    };
    s.reorder(total, &[i, run.clone(), lane.clone()]).expect("an order");
    s.vectorize(total, &lane).expect("lanes");
    s.compute_at(runs, total, &run).expect("attached in the loop over runs");
    s.set_scope(runs, MemScope::Local).expect("local");
    let (lane, step) = {
        let stage = s.stage(runs).expect("a stage");
        (axis(stage.axes(), 1), axis(stage.reduce_axes(), 0))
    };
    s.reorder(runs, &[step, lane.clone()]).expect("an order");
    s.vectorize(runs, &lane).expect("lanes");
    let row = axis(s.stage(&outputs[0]).expect("a stage").axes(), 0);
    s.compute_at(&state, &outputs[0], &row).expect("attached");
    s.compute_at(total, &outputs[0], &row).expect("attached");
    check(&s, SIZES);
    let text = common::body(&s);
    assert!(text.contains("S_rf_rf_v0 = T.allocate([T.int64(1), T.int64(8), T.int64(1)]"), "{text}");
}

#[test]
fn parts_of_positions_list_their_loops_in_ascending_order() {
    for (op, listed) in [("sum", ["l", "k_inner"]), ("argmax", ["k_inner", "l"])] {
        let (n, dtype) = (size("n"), DType::F16);
        let a = placeholder(&[n.clone(), Expr::int(12), Expr::int(8)], dtype, "A").expect("a tensor");
        let (k, l) = (reduce_axis(Expr::int(12), "k"), reduce_axis(Expr::int(8), "l"));
        let reducer =
            find(op).expect("in the catalogue").build(&ReducerRequest::new(&[dtype])).expect("built");
        let state = compute_tuple(from_ref(&n), "S", |i| {
            reduce(&reducer, &[a.at((&i[0], &k, &l))], &[k.clone(), l.clone()])
        });
        let state = state.expect("tensors");
        let args: Vec<Tensor> = [a].into_iter().chain(state.iter().cloned()).collect();
        let mut s = Schedule::new(&state, &args).expect("a schedule");
        let (outer, _) = s.split(&state[0], &k, Split::Factor(4)).expect("k splits");
        let parts = s.rfactor(&state[0], &outer).expect("parts");
        let axes = s.stage(parts).expect("a stage").reduce_axes().to_vec();
        let names: Vec<&str> = axes.iter().map(IterVar::name).collect();
        assert_eq!(names, listed, "{op}");
        if op == "argmax" {
            // The loops as listed, and the other way round, where values alone would give a later one of equal elements.
            s.in_runs(parts, &axes[1]).expect("a run");
            check(&s, &[&[("n", 3)], &[("n", 1)]]);
            s.reorder(parts, &[axes[1].clone(), axes[0].clone()]).expect("loops change places");
            check(&s, &[&[("n", 3)]]);
        }
    }
}

/// What a count of elements is before a run, where runs have as many each, is known by the loops around it;
/// where the last one is shorter it is read.
#[test]
fn counts_of_whole_runs_are_told_by_the_loops_around_them() {
    for (len, is_told) in [(12, true), (11, false)] {
        let (n, m, dtype) = (size("n"), size("m"), DType::F16);
        let of = Expr::int;
        let a = placeholder(&[n.clone(), m.clone(), of(len), of(8)], dtype, "A").expect("a tensor");
        let (k, l) = (reduce_axis(m, "k"), reduce_axis(of(len), "l"));
        let reducer =
            find("var").expect("in the catalogue").build(&ReducerRequest::new(&[dtype])).expect("built");
        let state = compute_tuple(&[n, of(8)], "S", |i| {
            reduce(&reducer, &[a.at((&i[0], &k, &l, &i[1]))], &[k.clone(), l.clone()])
        });
        let state = state.expect("tensors");
        let args: Vec<Tensor> = [a].into_iter().chain(state.iter().cloned()).collect();
        let mut s = Schedule::new(&state, &args).expect("a schedule");
        let (outer, inner) = s.split(&state[0], &l, Split::Factor(4)).expect("l splits");
        let column = axis(s.stage(&state[0]).expect("a stage").axes(), 1);
        s.reorder(&state[0], &[k, column, outer, inner.clone()]).expect("an order");
        s.in_runs(&state[0], &inner).expect("a run");
        check(&s, &[&[("n", 2), ("m", 3)], &[("n", 1), ("m", 1)], &[("n", 2), ("m", 0)]]);
        let text = common::body(&s);
        let count = text.lines().rfind(|line| line.contains("S_v0[") && line.contains(" = "));
        let is_read = count.is_some_and(|line| line.matches("S_v0[").count() > 1);
        assert_eq!(is_read, !is_told, "{text}");
    }
}

/// Runs of two chains: their sums are kept apart and added where the run ends, and what a step leaves be is kept once.
#[test]
fn chains_of_runs_are_closed_together() {
    for (op, apart, once) in [("sum", &[""][..], &[][..]), ("var", &["_v2", "_v3"][..], &["_v1"][..])] {
        for (dtype, unrolls) in [(DType::F16, true), (DType::BF16, true), (DType::BF16, false)] {
            let (n, m) = (size("n"), size("m"));
            let a = placeholder(&[n.clone(), m.clone()], dtype, "A").expect("a tensor");
            let k = reduce_axis(m, "k");
            let request = ReducerRequest::new(&[dtype]).with_runs_given_up();
            let reducer = find(op).expect("in the catalogue").build(&request).expect("built");
            let state =
                compute_tuple(from_ref(&n), "S", |i| reduce(&reducer, &[a.at((&i[0], &k))], from_ref(&k)));
            let state = state.expect("tensors");
            let args: Vec<Tensor> = [a].into_iter().chain(state.iter().cloned()).collect();
            let mut s = Schedule::new(&state, &args).expect("a schedule");
            let (_, block) = s.split(&state[0], &k, Split::Factor(64)).expect("k splits");
            let (steps, lane) = s.split(&state[0], &block, Split::Factor(4)).expect("blocks split");
            let parts = s.rfactor(&state[0], &lane).expect("parts");
            let leaves = s.stage(parts).expect("a stage").leaves().to_vec();
            let steps = leaves.iter().find(|l| l.name() == steps.name()).expect("the steps").clone();
            let (step, chain) = s.split(parts, &steps, Split::Factor(2)).expect("steps split");
            if unrolls {
                s.unroll(parts, &chain).expect("written out");
            }
            s.in_runs_of_chains(parts, &step, Some(&chain)).expect("runs of chains");
            check(&s, &[&[("n", 3), ("m", 64 * 3)], &[("n", 2), ("m", 64 + 37)], &[("n", 1), ("m", 3)]]);
            let text = common::body(&s);
            let shape = |field: &str| {
                let name = format!("S_rf{field}_run = T.allocate(");
                text.lines()
                    .find_map(|line| line.trim().strip_prefix(&name)?.split(']').next().map(str::to_owned))
            };
            let is_apart =
                |field: &&str| shape(field).is_some_and(|shape| shape.starts_with("[T.int64(2), "));
            let is_once = |field: &&str| shape(field).is_some_and(|shape| !shape.contains(','));
            assert!(apart.iter().all(is_apart) && once.iter().all(is_once), "{op} of {dtype}\n{text}");
        }
    }
}

/// Runs of chains of what does not add up, and of more of them than a reducer keeps its bound with.
#[test]
fn runs_of_chains_that_a_reducer_does_not_have() {
    let cases = [
        ("argmax", 2, "for chains a loop over what does not add up"),
        ("var", 4, ""),
        ("var", 8, "128 steps, where the longest run is 64"),
        ("sum", 4, ""),
        ("sum", 8, "128 steps, where the longest run is 64"),
    ];
    for (op, chains, why) in cases {
        let n = size("n");
        let a = placeholder(&[n.clone(), Expr::int(128)], DType::F16, "A").expect("a tensor");
        let k = reduce_axis(Expr::int(128), "k");
        let request = ReducerRequest::new(&[DType::F16]);
        let reducer = find(op).expect("a reducer").build(&request).expect("built");
        let d = compute_tuple(from_ref(&n), "D", |i| reduce(&reducer, &[a.at((&i[0], &k))], from_ref(&k)));
        let d = d.expect("tensors");
        let args: Vec<_> = [a].into_iter().chain(d.iter().cloned()).collect();
        let mut s = Schedule::new(&d, &args).expect("a schedule");
        let (_, steps) = s.split(&d[0], &k, Split::Factor(16 * chains)).expect("k splits");
        let (step, chain) = s.split(&d[0], &steps, Split::Factor(chains)).expect("steps split");
        match s.in_runs_of_chains(&d[0], &step, Some(&chain)) {
            Ok(()) => assert_eq!(why, "", "{op}"),
            Err(found) => assert!(
                !why.is_empty() && found.to_string().ends_with(&format!("got {why}")),
                "{op}: {found}"
            ),
        }
    }
}

/// Runs without threads count positions by steps in a type as wide as the elements, as far as that holds the steps.
#[test]
fn runs_count_positions_in_the_type_of_the_elements() {
    for (dtype, steps, counter) in
        [(DType::I8, 16, "int8"), (DType::I8, 256, "int64"), (DType::I16, 256, "int16")]
    {
        for op in ["argmax", "argmin_last", "maxloc"] {
            let (mut s, _, state, k) = states_of_rows(op, dtype, [size("n"), size("m")]);
            let (_, block) = s.split(&state[0], &k, Split::Factor(4 * steps)).expect("k splits");
            let (step, lane) = s.split(&state[0], &block, Split::Factor(4)).expect("blocks split");
            let parts = s.rfactor(&state[0], &lane).expect("parts");
            let step =
                s.stage(parts).expect("a stage").leaves().iter().find(|l| l.name() == step.name()).cloned();
            s.in_runs(parts, &step.expect("the steps")).expect("a run");
            check(&s, &[&[("n", 3), ("m", 4 * steps + 5)], &[("n", 1), ("m", 3)]]);
            let text = common::body(&s);
            let run = text.lines().find(|line| line.contains("_v1_run = T.allocate"));
            assert!(run.is_some_and(|line| line.contains(&format!("\"{counter}\""))), "{op} {dtype}\n{text}");
        }
    }
}
