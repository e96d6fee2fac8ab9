//! `warp_shuffle`: groups within one warp fold by shuffles at halving distances; lane 0 of a group sends its total back.
//!
//! The mask names the lanes of the calling thread's group and is made from its number, so that groups of one warp do not
//! wait for each other and no lane is named that does not come. Of small groups it names all lanes of the warp where whole
//! warps come: masks that differ within a warp are compared by an instruction that takes some ten cycles for each of them
//! (`MATCH.ANY` of `sm_90`). Where the group's size is no power of two, a lane combines what it received only if that came from
//! its own group.
//!
//! Source: seed 003, listing 6, whose mask shifts past the warp and is repaired here.

use coulis_ir::Stmt;

use crate::facts::Facts;
use crate::need::{ANY_ORDER, CONSECUTIVE, SEVERAL, SHUFFLES, SPREAD, THREADS, WHOLE_GROUPS, WITHIN_WARPS};
use crate::reduce::groups_of;
use crate::reduce::own_element::OwnElement;
use crate::reduce::redux_sync::Redux;
use crate::reduce::shuffle::{ShuffleTree, mask_dtype, mask_of, received};
use crate::reduce::state::{register, set, value};
use crate::rounding::Steps;
use crate::variant::{Emitted, Numerics, Refusal, Variant};

/// The variant.
pub const VARIANT: Variant = Variant {
    name: "warp_shuffle",
    aliases: &[],
    doc: "groups within one warp fold by shuffles",
    priority: 20,
    needs: &[&THREADS, &SPREAD, &WHOLE_GROUPS, &SEVERAL, &CONSECUTIVE, &WITHIN_WARPS, &ANY_ORDER, &SHUFFLES],
    numerics: Numerics {
        flushes_where_allowed: false,
        order: "a tree of halving distances",
        longest_chain: "`ceil(log2(members))`",
    },
    steps,
    inputs: &[
        (
            "group size",
            "one shuffle a halving, `ceil(log2(size))` in all; where the size is no power of two, lanes past the end \
             do not combine",
        ),
        ("width of a state", "one shuffle a field and step; types of 1 and 2 bytes travel in 4"),
        (
            "place in the warp",
            "the mask names the lanes of the own group only, or all lanes of a whole warp of more than two groups",
        ),
        ("`accum=True`", "old values are read before the fold and combined after it"),
    ],
    emit,
};

/// Groups of a warp whose masks are compared in little time.
const FEW_GROUPS: u32 = 2;

fn steps(facts: &Facts) -> Result<Steps, String> {
    facts.groups.as_ref().map(|groups| Steps::tree(groups.size().into())).map_err(Clone::clone)
}

fn emit(facts: &Facts) -> Result<Emitted, Refusal> {
    emit_by(facts, None)
}

/// The statements, those of groups of a whole warp by the instruction where there is one.
pub(crate) fn emit_by(facts: &Facts, redux: Option<Redux>) -> Result<Emitted, Refusal> {
    let groups = groups_of(facts)?;
    let warp = facts.target.warp;
    let own = OwnElement::new(facts, groups);
    let state = &own.state;
    let received = redux.map_or_else(|| received(facts.reducer), |redux| redux.received());
    let mask = register("mask", mask_dtype(warp));
    let first = groups.first_thread(facts.block);
    let first_lane = match facts.block.n_threads() <= warp {
        true => first.clone(),
        false => first.clone().floormod(crate::block::constant(warp)),
    };
    let whole_warp = groups.size() == warp;
    let are_many = redux.is_none() && groups.size() * FEW_GROUPS < warp;
    let are_whole = || {
        facts.block.n_threads().is_multiple_of(warp)
            && facts.active.split_by(|thread| thread / warp).is_none()
    };
    let bits = match whole_warp || are_many && are_whole() {
        true => mask_of(warp, &crate::block::constant(0), warp),
        false => mask_of(groups.size(), &first_lane, warp),
    };
    let tree = ShuffleTree {
        n_lanes: groups.size(),
        member: groups.member(facts.block),
        mask: value(&mask),
        warp,
        received: &received,
    };
    let mut body = own.begin();
    body.push(set(&mask, bits));
    match redux {
        Some(redux) => body.extend(redux.fold(&value(&mask), &state.registers, &received)),
        None => {
            body.extend(tree.fold(state));
            body.extend(tree.broadcast(state, &if whole_warp { crate::block::constant(0) } else { first }));
        }
    }
    body.extend(own.end());
    let registers = [mask].into_iter().chain(received.iter().rev().cloned()).chain(own.declared);
    Ok(Emitted { registers: registers.collect(), shared: Vec::new(), body: Stmt::seq(body) })
}
