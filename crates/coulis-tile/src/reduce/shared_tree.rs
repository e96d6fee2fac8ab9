//! `shared_tree`: groups of any size and shape fold in shared memory, the number of states shrinking at each step.
//!
//! Every thread writes its state, then at each step the first slots of a group take in the others: half of
//! them where the members of a group are neighbours, an eighth where they are not. In the second case slots
//! are in the order of the threads, members of different groups side by side, so that the threads of a warp
//! meet in no bank, and as few steps as may be wait for each other. Steps whose slots belong to one warp,
//! where warps hold whole groups, are separated by warp barriers, all others by barriers of the block; every
//! thread passes every barrier. All read their group's first slot.
//!
//! Source: the shared path of seed 003's reference, which relies on lockstep within a warp where this has barriers.

use coulis_ir::{Buffer, DType, Element, Expr, Stmt, SyncKind, Var};

use crate::block::{constant, scaled};
use crate::facts::Facts;
use crate::need::{ANY_ORDER, SEVERAL, SHARED_STATES, SPREAD, THREADS, WHOLE_BLOCK};
use crate::reduce::own_element::OwnElement;
use crate::reduce::shuffle::is_long;
use crate::reduce::state::{State, store_all};
use crate::reduce::{element, groups_of, shared_states};
use crate::rounding::Steps;
use crate::variant::{Emitted, Numerics, Refusal, Variant};

/// The variant.
pub const VARIANT: Variant = Variant {
    name: "shared_tree",
    aliases: &[],
    doc: "groups of any size fold in shared memory, fewer at each step",
    priority: 10,
    needs: &[&THREADS, &SPREAD, &WHOLE_BLOCK, &SEVERAL, &ANY_ORDER, &SHARED_STATES],
    numerics: Numerics {
        flushes_where_allowed: false,
        order: "a tree",
        longest_chain: "`ceil(log2(members))`; 7 of each step where members are no neighbours",
    },
    steps,
    inputs: &[
        ("group size", "`ceil(log2(size))` steps, each between barriers"),
        ("members that are no neighbours", "slots in the order of the threads, and `ceil(log8(size))` steps"),
        ("place of a group", "groups within warps wait at warp barriers only"),
        ("`accum=True`", "old values are combined last"),
    ],
    emit,
};

/// Slots that one takes in at a step, itself among them, where the members of a group are not neighbours.
const AT_ONCE: u32 = 8;

/// Bytes of a state up to which sets of slots are taken in by a loop: a thread that has several outputs holds
/// the states of all of them meanwhile, and the loop's own registers and those of six statistics are more
/// than there are.
const MOST_IN_A_LOOP: u64 = 56;

/// The slots that are left after a step.
fn left(live: u32, are_neighbours: bool) -> u32 {
    if are_neighbours { live.next_power_of_two() / 2 } else { live.div_ceil(AT_ONCE) }
}

fn steps(facts: &Facts) -> Result<Steps, String> {
    let groups = facts.groups.as_ref().map_err(Clone::clone)?;
    let (mut live, mut longest) = (groups.size(), 0);
    while live > 1 {
        let left = left(live, groups.is_consecutive());
        longest += u64::from(live.div_ceil(left) - 1);
        live = left;
    }
    Ok(Steps { longest, elements: groups.size().into() })
}

fn emit(facts: &Facts) -> Result<Emitted, Refusal> {
    let groups = groups_of(facts)?;
    let (warp, n_members) = (facts.target.warp, groups.size());
    let own = OwnElement::new(facts, groups);
    let state = &own.state;
    let (member, group) = (groups.member(facts.block), groups.group(facts.block));
    let slots = shared_states("red_shared", facts.reducer, groups.count() * n_members);
    // From the slot of a member to that of the next, and the slot of the first.
    let are_neighbours = groups.is_consecutive();
    let (pitch, first) = match are_neighbours {
        true => (1, if group.is_int(0) { group } else { group * constant(n_members) }),
        false => (groups.count(), group),
    };
    let slot = match (&first, scaled(member.clone(), pitch)) {
        (first, member) if first.is_int(0) => member,
        (first, member) => first.clone() + member,
    };
    let at = |index: &Expr| -> Vec<Element> { slots.iter().map(|b: &Buffer| element(b, index)).collect() };
    let read = |index: &Expr| -> Vec<Expr> { slots.iter().map(|b| b.at([index.clone()])).collect() };

    // What warps hold whole groups need not wait for other warps; in a group of whole warps, only the tail may.
    let n_threads = facts.block.n_threads();
    let by_warps = groups.is_within_warps(warp, n_threads);
    let by_first_warp = are_neighbours && n_members.is_multiple_of(warp);
    let barrier = |live: u32| {
        let warp_is_enough = by_warps || (by_first_warp && live <= warp);
        Stmt::Sync(if warp_is_enough { SyncKind::Warp } else { SyncKind::Cta })
    };

    let mut body = own.begin();
    body.push(store_all(&at(&slot), state.values()));
    body.push(barrier(n_members));
    let mut live = n_members;
    while live > 1 {
        let left = left(live, are_neighbours);
        let other = |number: u32| slot.clone() + constant(number * left * pitch);
        if are_neighbours {
            let merge = state.merge_at(&at(&slot), &read(&slot), &read(&other(1)));
            body.push(Stmt::if_(member.clone().lt(constant(live - left)), merge));
        } else {
            let n_sets = live.div_ceil(left);
            // The last set may be of fewer slots than the first.
            let n_whole = live / left;
            let mut step = Vec::new();
            let fits = State::bytes(facts.reducer) <= MOST_IN_A_LOOP;
            if n_whole > 2 && fits && is_long(facts.reducer) {
                let number = Var::new("set", DType::I32);
                let from = slot.clone() + scaled(number.expr() + constant(1), left * pitch);
                step.push(Stmt::rolled(number, constant(n_whole - 1), state.merge(&read(&from))));
            } else {
                step.extend((1..n_whole).map(|number| state.merge(&read(&other(number)))));
            }
            for number in n_whole..n_sets {
                let is_there = member.clone().lt(constant(live - number * left));
                step.push(Stmt::if_(is_there, state.merge(&read(&other(number)))));
            }
            step.push(store_all(&at(&slot), state.values()));
            body.push(Stmt::if_(member.clone().lt(constant(left)), Stmt::seq(step)));
        }
        live = left;
        // The next step is of slots and threads below `live`; the last slot is read by the whole group.
        body.push(barrier(if live > 1 { live } else { n_members }));
    }
    body.push(store_all(&state.places(), read(&first)));
    body.extend(own.end());
    Ok(Emitted { registers: own.declared, shared: slots, body: Stmt::seq(body) })
}
