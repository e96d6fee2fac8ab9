//! `warp_shuffle_two_stage`: groups of several whole warps fold by shuffles in each warp, and then over the warps.
//!
//! The first lane of each warp stages its state in shared memory; after a barrier the first lanes of the group's first
//! warp fold what was staged, one state a warp, and publish the total, which all read after a second barrier. The
//! mask of the second stage names just these lanes.
//!
//! Source: the two-stage form that followed seed 003's reference, whose second mask names lanes of another warp.

use coulis_ir::{Buffer, Element, Expr, Stmt, SyncKind};

use crate::block::constant;
use crate::facts::Facts;
use crate::need::{ANY_ORDER, CONSECUTIVE, SHUFFLES, SPREAD, THREADS, WHOLE_BLOCK, WHOLE_WARPS};
use crate::reduce::own_element::OwnElement;
use crate::reduce::shuffle::{ShuffleTree, mask_dtype, mask_of, received};
use crate::reduce::state::{register, set, store_all, value};
use crate::reduce::{element, groups_of, shared_states};
use crate::rounding::Steps;
use crate::variant::{Emitted, Numerics, Refusal, Variant};

/// The variant.
pub const VARIANT: Variant = Variant {
    name: "warp_shuffle_two_stage",
    aliases: &[],
    doc: "groups of several whole warps fold by shuffles in each warp, then over the warps",
    priority: 20,
    needs: &[&THREADS, &SPREAD, &WHOLE_BLOCK, &CONSECUTIVE, &WHOLE_WARPS, &ANY_ORDER, &SHUFFLES],
    numerics: Numerics {
        flushes_where_allowed: false,
        order: "a tree of halving distances, warps first",
        longest_chain: "`log2(warp) + ceil(log2(members / warp))`",
    },
    steps,
    inputs: &[
        (
            "group size",
            "as many staged states as the group has warps; the second tree has `ceil(log2(warps))` steps",
        ),
        ("number of groups", "each has slots of its own, and all share the two barriers"),
        ("`accum=True`", "old values are combined last"),
    ],
    emit,
};

fn steps(facts: &Facts) -> Result<Steps, String> {
    let (groups, warp) = (facts.groups.as_ref()?, u64::from(facts.target.warp));
    Ok(Steps::tree(u64::from(groups.size()) / warp).over(Steps::tree(warp)))
}

fn emit(facts: &Facts) -> Result<Emitted, Refusal> {
    let groups = groups_of(facts)?;
    let warp = facts.target.warp;
    let n_warps = groups.size() / warp;
    let own = OwnElement::new(facts, groups);
    let state = &own.state;
    let received = received(facts.reducer);
    let mask = register("mask", mask_dtype(warp));
    let (member, group) = (groups.member(facts.block), groups.group(facts.block));
    let (lane, own_warp) = (member.clone().floormod(constant(warp)), member.clone().floordiv(constant(warp)));
    let staging = shared_states("red_staging", facts.reducer, groups.count() * n_warps);
    let totals = shared_states("red_result", facts.reducer, groups.count());
    let first_slot = slot(group.clone(), n_warps);

    let tree = |n_lanes: u32, member: &Expr| ShuffleTree {
        n_lanes,
        member: member.clone(),
        mask: value(&mask),
        warp,
        received: &received,
    };
    let zero = constant(0);
    let at = |buffers: &[Buffer], index: &Expr| -> Vec<Element> {
        buffers.iter().map(|b| element(b, index)).collect()
    };
    let read = |buffers: &[Buffer], index: &Expr| -> Vec<Expr> {
        buffers.iter().map(|b| b.at([index.clone()])).collect()
    };

    let mut body = own.begin();
    body.push(set(&mask, mask_of(warp, &zero, warp)));
    body.extend(tree(warp, &lane).fold(state));
    let own_slot = first_slot.clone() + own_warp;
    body.push(Stmt::if_(lane.equal(zero.clone()), store_all(&at(&staging, &own_slot), state.values())));
    body.push(Stmt::Sync(SyncKind::Cta));
    let mut second = vec![store_all(&state.places(), read(&staging, &(first_slot + member.clone())))];
    second.push(set(&mask, mask_of(n_warps, &zero, warp)));
    second.extend(tree(n_warps, &member).fold(state));
    let publish = store_all(&at(&totals, &group), state.values());
    second.push(Stmt::if_(member.clone().equal(zero), publish));
    body.push(Stmt::if_(member.lt(constant(n_warps)), Stmt::seq(second)));
    body.push(Stmt::Sync(SyncKind::Cta));
    body.push(store_all(&state.places(), read(&totals, &group)));
    body.extend(own.end());
    let registers = [mask].into_iter().chain(received.iter().rev().cloned()).chain(own.declared);
    Ok(Emitted {
        registers: registers.collect(),
        shared: staging.into_iter().chain(totals).collect(),
        body: Stmt::seq(body),
    })
}

/// The first of the group's staged states.
fn slot(group: Expr, n_warps: u32) -> Expr {
    if group.is_int(0) { group } else { group * constant(n_warps) }
}
