//! Folds that end where their state is settled: lanes, rows of their own, rounds, and what is refused.

mod common;

use std::slice::from_ref;

use common::fixture::{Fixture, fixture, refused, states_of_rows};
use common::{body, check, refusal};
use coulis_ir::{DType, Expr};
use coulis_reducers::{ReducerRequest, find};
use coulis_schedule::{Schedule, Split, StageId};
use coulis_tensor::{IterVar, Tensor, compute, compute_tuple, placeholder, reduce, reduce_axis, var_of};

/// The states of a reducer over rows of `A`, `n` of `m` elements.
fn states(op: &str, dtype: DType) -> (Schedule, Tensor, IterVar) {
    let extents = ["n", "m"].map(|name| var_of(name, DType::I64).expr());
    let (s, _, states, k) = states_of_rows(op, dtype, extents);
    (s, states[0].clone(), k)
}

const SIZES: &[&[(&str, i64)]] = &[
    &[("n", 1), ("m", 1)],
    &[("n", 3), ("m", 7)],
    &[("n", 5), ("m", 75)],
    &[("n", 2), ("m", 160)],
    &[("n", 0), ("m", 4)],
    &[("n", 2), ("m", 0)],
];

fn axis(s: &Schedule, stage: StageId, name: &str) -> IterVar {
    let leaves = s.stage(stage).expect("a stage").leaves();
    leaves.iter().find(|leaf| leaf.name() == name).cloned().expect("a loop of that name")
}

const KINDS: [(&str, DType); 6] = [
    ("any", DType::I8),
    ("all", DType::Bool),
    ("max", DType::Bool),
    ("any", DType::F32),
    ("argmax", DType::Bool),
    ("minloc", DType::Bool),
];

#[test]
fn a_row_of_one_state_is_asked_by_itself() {
    for (op, dtype) in KINDS {
        let (mut s, state, k) = states(op, dtype);
        let (outer, _) = s.split(&state, &k, Split::Factor(8)).expect("k splits");
        s.until_settled(&state, &outer).expect("a fold that settles");
        check(&s, SIZES);
        let text = body(&s);
        assert!(
            text.contains("for k_outer in") && text.contains("if not ") && !text.contains("asked"),
            "{text}"
        );
    }
}

#[test]
fn of_lanes_and_vectors_side_by_side_one_does_for_all() {
    for (op, dtype) in KINDS {
        let (mut s, state, k) = states(op, dtype);
        let (_, rest) = s.split(&state, &k, Split::Factor(16)).expect("k splits");
        let (side, lane) = s.split(&state, &rest, Split::Factor(8)).expect("blocks split");
        let vector = s.rfactor_at(&state, &lane, 1).expect("lanes");
        let side = axis(&s, vector, side.name());
        let many = s.rfactor_at(vector, &side, 1).expect("vectors");
        let leaves = s.stage(many).expect("a stage").leaves().to_vec();
        let [row, side, lane, block] = <[IterVar; 4]>::try_from(leaves).expect("four loops");
        s.reorder(many, &[row, block.clone(), side.clone(), lane.clone()]).expect("an order");
        s.vectorize(many, &lane).expect("vectors");
        s.unroll(many, &side).expect("written out");
        s.until_settled(many, &block).expect("a fold that settles");
        check(&s, SIZES);
        let text = body(&s);
        assert!(text.contains("asked = T.allocate([T.int64(8)]"), "{text}");
    }
}

#[test]
fn chunks_are_folded_in_rounds_until_their_state_is_settled() {
    for (op, dtype) in KINDS {
        let (mut s, state, k) = states(op, dtype);
        let (chunk, _) = s.split(&state, &k, Split::Nparts(6)).expect("k splits");
        let partial = s.rfactor(&state, &chunk).expect("partial states");
        let id = s.stage(&state).expect("a stage").id();
        let chunk = s.stage(id).expect("a stage").reduce_axes()[0].clone();
        let (round, _) = s.split(&state, &chunk, Split::Factor(2)).expect("rounds");
        s.until_settled(&state, &round).expect("a fold that settles");
        s.compute_at(partial, &state, &round).expect("in each round");
        check(&s, SIZES);
        let text = body(&s);
        let (asked, folded) = (text.find("if not "), text.find("S_rf"));
        assert!(asked.is_some() && asked < folded, "the partial states are made where that is asked\n{text}");
    }
}

#[test]
fn positions_settle_nothing_that_may_be_before_them() {
    let refused = |by: &dyn Fn(&mut Schedule, &Tensor, &IterVar) -> (StageId, IterVar)| {
        let (mut s, state, k) = states("argmax", DType::Bool);
        let (stage, block) = by(&mut s, &state, &k);
        let found = refusal(s.until_settled(stage, &block));
        let (mut any, state, k) = states("any", DType::Bool);
        let (stage, block) = by(&mut any, &state, &k);
        any.until_settled(stage, &block).expect("elements in any order do");
        check(&any, SIZES);
        found
    };
    let inner_first = |s: &mut Schedule, state: &Tensor, k: &IterVar| {
        let (outer, inner) = s.split(state, k, Split::Factor(8)).expect("k splits");
        s.reorder(state, &[inner.clone(), outer]).expect("an order");
        (s.stage(state).expect("a stage").id(), inner)
    };
    let want = "until_settled of `S`: axis is to be a reduce loop each of whose iterations has the elements behind those of \
                the one before, got `k_inner`";
    assert_eq!(refused(&inner_first), want);
    let chunks_inside = |s: &mut Schedule, state: &Tensor, k: &IterVar| {
        let (chunk, _) = s.split(state, k, Split::Nparts(4)).expect("k splits");
        let parts = s.rfactor_at(state, &chunk, 1).expect("chunks");
        let leaves = s.stage(parts).expect("a stage").leaves().to_vec();
        let [row, chunk, within] = <[IterVar; 3]>::try_from(leaves).expect("three loops");
        s.reorder(parts, &[row, within.clone(), chunk]).expect("an order");
        (parts, within)
    };
    let want = "until_settled of `S.rf`: axis is to be a reduce loop in which all states are partial states of one result, as \
                rfactor makes them, got the loop `k_outer` in it";
    assert_eq!(refused(&chunks_inside), want);
    let states_of_lanes = |s: &mut Schedule, state: &Tensor, k: &IterVar| {
        let (_, lane) = s.split(state, k, Split::Factor(8)).expect("k splits");
        s.rfactor_at(state, &lane, 1).expect("lanes");
        let stage = s.stage(state).expect("a stage");
        (stage.id(), stage.reduce_axes()[0].clone())
    };
    let want = "until_settled takes a reducer that knows settled states, and `S` is one that knows none";
    let (mut s, state, k) = states("argmax", DType::Bool);
    let (stage, lane) = states_of_lanes(&mut s, &state, &k);
    assert_eq!(refusal(s.until_settled(stage, &lane)), want);
}

#[test]
fn states_of_other_rows_do_not_do_for_each_other() {
    let (mut s, state, k) = states("any", DType::I8);
    let row = state.op().axes()[0].clone();
    let (block, within) = s.split(&state, &k, Split::Factor(8)).expect("k splits");
    s.reorder(&state, &[block.clone(), row.clone(), within.clone()]).expect("rows inside");
    let want = "until_settled of `S`: axis is to be a reduce loop in which all states are partial states of one \
                result, as rfactor makes them, got the loop `i` in it";
    assert_eq!(refusal(s.until_settled(&state, &block)), want);
    // Rows that go inside later are all folded to their ends.
    s.reorder(&state, &[row.clone(), block.clone(), within.clone()]).expect("rows outside");
    s.until_settled(&state, &block).expect("a fold that settles");
    s.reorder(&state, &[block, row, within]).expect("rows inside");
    check(&s, SIZES);
    assert!(!body(&s).contains("if not "), "{}", body(&s));
}

#[test]
fn results_that_are_made_in_the_loop_are_all_made() {
    for keeps in [true, false] {
        let [n, m] = ["n", "m"].map(|name| var_of(name, DType::I64).expr());
        let a = placeholder(&[n.clone(), m.clone()], DType::I8, "A").expect("a tensor");
        let shape = [n.clone(), m.clone()];
        let x =
            compute(&shape, "X", |i| a.at((&i[0], &i[1])) + Expr::int_of(1, DType::I8)).expect("a tensor");
        let k = reduce_axis(m, "k");
        let reducer = find("any").expect("in the catalogue").build(&ReducerRequest::new(&[DType::I8]));
        let reducer = reducer.expect("built");
        let state =
            compute_tuple(from_ref(&n), "S", |i| reduce(&reducer, &[x.at((&i[0], &k))], from_ref(&k)));
        let state = state.expect("tensors").remove(0);
        let args = if keeps { vec![a, x.clone(), state.clone()] } else { vec![a, state.clone()] };
        let mut s = Schedule::new(from_ref(&state), &args).expect("a schedule");
        let (block, _) = s.split(&state, &k, Split::Factor(8)).expect("k splits");
        s.compute_at(&x, &state, &block).expect("in the loop");
        s.until_settled(&state, &block).expect("a fold that settles");
        check(&s, SIZES);
        assert_eq!(body(&s).contains("if not "), !keeps, "{}", body(&s));
    }
}

#[test]
fn what_does_not_settle_is_refused() {
    let Fixture { mut s, b, c, k, .. } = fixture();
    let r = c.op().axes()[0].clone();
    refused(&mut s, |s| s.until_settled(&c, &r), "until_settled takes a reduction, and `C` is no reduction");
    let want = "until_settled takes a reducer that knows settled states, and `B` is one that knows none";
    refused(&mut s, |s| s.until_settled(&b, &k), want);
    let (mut s, state, k) = states("any", DType::I8);
    let row = state.op().axes()[0].clone();
    let want = "until_settled takes a reduce axis of `S`, and `i` is a data axis; legal are `k`";
    assert_eq!(refusal(s.until_settled(&state, &row)), want);
    let (_, inner) = s.split(&state, &k, Split::Factor(4)).expect("k splits");
    s.unroll(&state, &inner).expect("written out");
    let want = "until_settled: `k_inner` of `S` is unrolled already; do this before, or to another axis";
    assert_eq!(refusal(s.until_settled(&state, &inner)), want);
}
