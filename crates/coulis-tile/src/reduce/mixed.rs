//! `mixed`: operands in different memories, which no variant for one memory takes.
//!
//! The threads of a scope fold tiles of global or shared memory into tiles of either, as `shared` does; one thread
//! also folds to and from its registers. What is read from global memory is read once, by neighbouring lanes at
//! neighbouring places where the tile's last axis is reduced. The barrier after the results is that of `shared`.

use coulis_ir::{ExecScope, MemScope};

use crate::call::Operand;
use crate::facts::Facts;
use crate::need::{Need, wanted};
use crate::reduce::cooperative;
use crate::reduce::walk::is_private;
use crate::variant::{Emitted, Refusal, Variant};

/// The variant.
pub const VARIANT: Variant = Variant {
    name: "mixed",
    aliases: &[],
    doc: "the threads of a scope fold tiles of global or shared memory, one thread also its registers",
    priority: 5,
    needs: &cooperative::needs(&OPERANDS),
    numerics: cooperative::NUMERICS,
    steps: cooperative::steps,
    inputs: &[
        (
            "memory",
            "global or shared to global or shared at any scope; registers of one thread at thread scope",
        ),
        ("length, outputs, axes, threads", "as for `shared`"),
        ("`accum=True`", "the old value is combined once, when the total is stored"),
    ],
    emit,
};

/// Every thread that takes part can address every operand, and not all of them are what `local` or `shared` takes.
const OPERANDS: Need = Need {
    name: "operands",
    doc: "Every thread that takes part can address every operand, and not all of them are what `local` or `shared` takes.",
    check: |facts| {
        let all = || facts.srcs.iter().chain(&facts.dsts);
        if all().all(Operand::is_shared) || all().all(is_private) {
            return wanted("operands in global memory or in different ones", "one memory");
        }
        for operand in facts.srcs.iter().chain(&facts.dsts) {
            let (name, memory) = (&operand.tile().name, operand.scope().name());
            if operand.is_spread {
                return wanted("tiles that a thread can address", format!("`{name}`, spread over threads"));
            }
            let is_own = matches!(operand.scope(), MemScope::Local | MemScope::Warp);
            if is_own && facts.scope != ExecScope::Thread {
                let found = format!("`{name}` in {memory} memory at {} scope", facts.scope.name());
                return wanted("tiles that all threads of the scope share", found);
            }
        }
        Ok(())
    },
};

fn emit(facts: &Facts) -> Result<Emitted, Refusal> {
    cooperative::emit(facts)
}
