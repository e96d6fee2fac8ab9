//! `alone`: groups of one thread, whose element is the total.
//!
//! A bound axis of extent 1 gives such calls; nothing crosses threads.

use coulis_ir::Stmt;

use crate::facts::Facts;
use crate::need::{ALONE, SPREAD, THREADS};
use crate::reduce::groups_of;
use crate::reduce::own_element::OwnElement;
use crate::rounding::Steps;
use crate::variant::{Emitted, Numerics, Refusal, Variant};

/// The variant.
pub const VARIANT: Variant = Variant {
    name: "alone",
    aliases: &[],
    doc: "a group of one thread has its total already",
    priority: 20,
    needs: &[&THREADS, &SPREAD, &ALONE],
    numerics: Numerics { flushes_where_allowed: false, order: "one element", longest_chain: "0" },
    steps,
    inputs: &[
        ("reducer", "an element is lifted and finished; nothing is combined"),
        ("`accum=True`", "the old value is combined with the one element"),
    ],
    emit,
};

fn steps(_: &Facts) -> Result<Steps, String> {
    Ok(Steps::chain(1))
}

fn emit(facts: &Facts) -> Result<Emitted, Refusal> {
    let groups = groups_of(facts)?;
    let own = OwnElement::new(facts, groups);
    let body = Stmt::seq([own.begin(), own.end()].concat());
    Ok(Emitted { registers: own.declared, shared: Vec::new(), body })
}
