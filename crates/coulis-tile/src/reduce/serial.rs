//! `serial`: every thread writes its state to shared memory, and the first thread of each group folds all of its group.
//!
//! The last resort: slow, and the easiest to be sure of. It folds in the order of the reduced axes, also by
//! reducers that claim less than both laws.

use coulis_ir::{Buffer, DType, Element, Expr, Stmt, SyncKind, Var};

use crate::block::constant;
use crate::facts::Facts;
use crate::need::{OLD_VALUE, SHARED_STATES, SPREAD, THREADS, WHOLE_BLOCK};
use crate::reduce::own_element::OwnElement;
use crate::reduce::state::store_all;
use crate::reduce::{element, groups_of, shared_states};
use crate::rounding::Steps;
use crate::variant::{Emitted, Numerics, Refusal, Variant};

/// The variant.
pub const VARIANT: Variant = Variant {
    name: "serial",
    aliases: &[],
    doc: "one thread of each group folds what all wrote to shared memory",
    priority: 0,
    needs: &[&THREADS, &SPREAD, &WHOLE_BLOCK, &OLD_VALUE, &SHARED_STATES],
    numerics: Numerics {
        flushes_where_allowed: false,
        order: "ascending positions",
        longest_chain: "`members - 1`",
    },
    steps,
    inputs: &[
        ("group size", "the first thread of a group makes as many steps"),
        ("`accum=True`", "old values are combined last"),
    ],
    emit,
};

fn steps(facts: &Facts) -> Result<Steps, String> {
    facts.groups.as_ref().map(|groups| Steps::chain(groups.size().into())).map_err(Clone::clone)
}

fn emit(facts: &Facts) -> Result<Emitted, Refusal> {
    let groups = groups_of(facts)?;
    let n_members = groups.size();
    let own = OwnElement::new(facts, groups);
    let state = &own.state;
    let (member, group) = (groups.member(facts.block), groups.group(facts.block));
    let slots = shared_states("red_shared", facts.reducer, groups.count() * n_members);
    let first = if group.is_int(0) { group } else { group * constant(n_members) };
    let at = |index: &Expr| -> Vec<Element> { slots.iter().map(|b: &Buffer| element(b, index)).collect() };
    let read = |index: &Expr| -> Vec<Expr> { slots.iter().map(|b| b.at([index.clone()])).collect() };

    let step = Var::size("member", DType::I32);
    let next = first.clone() + (step.expr() + constant(1));
    let fold = state.merge(&read(&next));
    let fold = Stmt::range(step, constant(n_members - 1), fold);
    let leads = member.clone().equal(constant(0));
    let mut body = own.begin();
    body.push(store_all(&at(&(first.clone() + member)), state.values()));
    body.push(Stmt::Sync(SyncKind::Cta));
    body.push(Stmt::if_(leads, Stmt::seq([fold, store_all(&at(&first), state.values())])));
    body.push(Stmt::Sync(SyncKind::Cta));
    body.push(store_all(&state.places(), read(&first)));
    body.extend(own.end());
    Ok(Emitted { registers: own.declared, shared: slots, body: Stmt::seq(body) })
}
