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
    emit,
};

/// Sources and destinations stand in shared memory.
const OPERANDS: Need = Need {
    name: "operands",
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
