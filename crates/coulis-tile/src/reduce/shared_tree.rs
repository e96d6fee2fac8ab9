//! `shared_tree`: groups of any size and shape fold in shared memory, halving the number of states at each step.
//!
//! Every thread writes its state, then at each step the first half of a group's slots take in the second half. Steps
//! whose slots belong to one warp, where warps hold whole groups, are separated by warp barriers, all others by
//! barriers of the block; every thread passes every barrier. All read their group's first slot.
//!
//! Source: the shared path of seed 003's reference, which relies on lockstep within a warp where this has barriers.

use coulis_ir::{Buffer, Element, Expr, Stmt, SyncKind};

use crate::block::constant;
use crate::facts::Facts;
use crate::need::{SEVERAL, SHARED_STATES, SPREAD, THREADS, WHOLE_BLOCK};
use crate::reduce::state::{State, store_all};
use crate::reduce::{element, groups_of, shared_states};
use crate::rounding::Steps;
use crate::variant::{Emitted, Numerics, Refusal, Variant};

/// The variant.
pub const VARIANT: Variant = Variant {
    name: "shared_tree",
    aliases: &[],
    doc: "groups of any size fold in shared memory, halving at each step",
    priority: 10,
    needs: &[&THREADS, &SPREAD, &WHOLE_BLOCK, &SEVERAL, &SHARED_STATES],
    numerics: Numerics {
        flushes_where_allowed: false,
        order: "a tree of halving distances",
        longest_chain: "`ceil(log2(members))`",
    },
    steps,
    inputs: &[
        ("group size", "`ceil(log2(size))` steps, each between barriers"),
        ("place of a group", "groups within warps wait at warp barriers only"),
        ("`accum=True`", "old values are combined last"),
    ],
    emit,
};

fn steps(facts: &Facts) -> Result<Steps, String> {
    facts.groups.as_ref().map(|groups| Steps::tree(groups.size().into())).map_err(Clone::clone)
}

fn emit(facts: &Facts) -> Result<Emitted, Refusal> {
    let groups = groups_of(facts)?;
    let (warp, n_members) = (facts.target.warp, groups.size());
    let state = State::new(facts, groups);
    let (member, group) = (groups.member(facts.block), groups.group(facts.block));
    let slots = shared_states("red_shared", facts.reducer, groups.count() * n_members);
    let first = if group.is_int(0) { group } else { group * constant(n_members) };
    let own = if first.is_int(0) { member.clone() } else { first.clone() + member.clone() };
    let at = |index: &Expr| -> Vec<Element> { slots.iter().map(|b: &Buffer| element(b, index)).collect() };
    let read = |index: &Expr| -> Vec<Expr> { slots.iter().map(|b| b.at([index.clone()])).collect() };

    // What warps hold whole groups need not wait for other warps; in a group of whole warps, only the tail may.
    let n_threads = facts.block.n_threads();
    let by_warps = groups.is_within_warps(warp, n_threads);
    let by_first_warp = groups.is_consecutive() && n_members.is_multiple_of(warp);
    let barrier = |live: u32| {
        let warp_is_enough = by_warps || (by_first_warp && live <= warp);
        Stmt::Sync(if warp_is_enough { SyncKind::Warp } else { SyncKind::Cta })
    };

    let mut body = state.begin();
    body.push(store_all(&at(&own), state.values()));
    body.push(barrier(n_members));
    let mut distance = n_members.next_power_of_two() / 2;
    let mut live = n_members;
    while distance > 0 {
        let other = own.clone() + constant(distance);
        let merge = state.merge(&at(&own), &read(&own), &read(&other));
        body.push(Stmt::if_(member.clone().lt(constant(live - distance)), merge));
        live = distance;
        // The next step is of slots and threads below `live`; the last slot is read by the whole group.
        body.push(barrier(if live > 1 { live } else { n_members }));
        distance /= 2;
    }
    body.push(store_all(&state.places(), read(&first)));
    body.extend(state.end());
    Ok(Emitted { registers: state.declared, shared: slots, body: Stmt::seq(body) })
}
