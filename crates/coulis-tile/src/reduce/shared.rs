//! `shared`: the threads of a scope fold tiles in shared memory.
//!
//! Neighbouring lanes fold an output together by shuffles, several warps through shared memory where there are fewer
//! outputs than warps; any number of threads and any length will do. After the call all threads of the scope have
//! passed a barrier, so that they see the results; before it the program synchronizes. At thread scope the one thread
//! folds by itself, and there is no barrier.
//!
//! Source: seed 000.

use crate::call::Operand;
use crate::facts::Facts;
use crate::need::{Need, wanted};
use crate::reduce::cooperative;
use crate::variant::{Emitted, Refusal, Variant};

/// The variant.
pub const VARIANT: Variant = Variant {
    name: "shared",
    aliases: &[],
    doc: "the threads of a scope fold tiles in shared memory, lanes by shuffles, warps through shared memory",
    priority: 10,
    needs: &cooperative::needs(&OPERANDS),
    numerics: cooperative::NUMERICS,
    steps: cooperative::steps,
    inputs: &[
        ("length", "`min(next power of two, warp)` lanes fold an output, hence `log2(lanes)` shuffles"),
        (
            "number of outputs",
            "fewer than the threads have room for: several warps share an output and meet in shared memory",
        ),
        (
            "axes",
            "where the last axis is kept, each lane has outputs of its own: no shuffles, no bank conflicts",
        ),
        (
            "scope",
            "cta, warpgroup and warp: a barrier of that scope after the results; thread: one thread, no barrier",
        ),
        ("threads", "any number; those beyond the largest whole set of lanes only pass the barrier"),
        ("alignment", "rows of at least 16 bytes a lane, aligned, are read as vectors of up to 16 bytes"),
        ("`accum=True`", "the old value is combined once, when the total is stored"),
    ],
    emit,
};

/// Sources and destinations are in shared memory.
const OPERANDS: Need = Need {
    name: "operands",
    doc: "Sources and destinations stand in shared memory.",
    check: |facts| match facts.srcs.iter().chain(&facts.dsts).find(|o: &&Operand| !o.is_shared()) {
        None => Ok(()),
        Some(other) => wanted(
            "tiles in shared memory",
            format!("`{}` in {} memory", other.tile().name, other.scope().name()),
        ),
    },
};

fn emit(facts: &Facts) -> Result<Emitted, Refusal> {
    cooperative::emit(facts)
}
