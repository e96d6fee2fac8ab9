//! How much a thread of a block takes on, so that what it keeps fits into its registers.
//!
//! Strategies decide as if registers were enough, which they are for the states of a few statistics. A plan of larger states is
//! built and asked what is live in a thread at one time, as the verifier asks of the kernel that it becomes (V26). Where that is
//! too much, strategies decide again with less room, step by step.

use coulis_ir::verify::{local_bytes, register_bytes};
use coulis_ir::{Expr, Target};

use crate::plan::{Choice, PlanError, schedule};
use crate::program::Spec;
use crate::strategy::Machine;

/// What a thread may keep; each is less than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// What strategies hold to be fastest.
    Ample,
    /// The state of one output at a time.
    OneOutput,
    /// No run of a quick step beside it.
    OneState,
    /// What a thread needs that brings its state together with no other's.
    Alone,
    /// No state: it is in memory.
    InMemory,
}

/// Bytes of the registers of a state or of a run, whose components are words at least.
pub fn word_bytes(identity: &[Expr]) -> i64 {
    identity.iter().map(|field| field.dtype().bytes().max(4) as i64).sum()
}

/// What a thread keeps at most in plans with ample room: so many times the bytes of its state, and so many beside them. Where
/// registers hold that, there is nothing to ask.
const MOST_KEPT: (i128, i128) = (8, 512);

impl Room {
    /// Every room, the largest first.
    pub const ALL: [Room; 5] = [Room::Ample, Room::OneOutput, Room::OneState, Room::Alone, Room::InMemory];

    /// Whether threads may have states of several outputs.
    pub fn has_outputs(self) -> bool {
        self < Room::OneOutput
    }

    /// Whether they may have runs.
    pub fn has_runs(self) -> bool {
        self < Room::OneState
    }

    /// Whether they may bring states together.
    pub fn has_others(self) -> bool {
        self < Room::Alone
    }

    /// Whether they may have states.
    pub fn has_state(self) -> bool {
        self < Room::InMemory
    }

    /// What a plan says of it; `None` where nothing is left out.
    pub fn remark(self) -> Option<&'static str> {
        match self {
            Room::Ample => None,
            Room::OneOutput => Some("one output at a time: registers of a thread hold no states of several"),
            Room::OneState => Some("no runs: registers of a thread hold none beside its state"),
            Room::Alone => Some("one thread for each output: registers hold no state of another thread"),
            Room::InMemory => {
                Some("states in memory, by a launch of their own: registers of a thread hold none")
            }
        }
    }
}

/// Whether what a thread of the plan keeps fits into its registers; on machines without blocks of threads nothing is asked.
pub fn fits(spec: &Spec, choice: &Choice, target: &Target) -> Result<bool, PlanError> {
    let most = register_bytes(target);
    let state = i128::from(word_bytes(&spec.reducer.identity));
    if Machine::of(target) == Machine::Loops || MOST_KEPT.0 * state + MOST_KEPT.1 <= most {
        return Ok(true);
    }
    let planned = schedule(spec, choice.strategy, &choice.sketch)?;
    let nest = coulis_schedule::build_nest(&planned.schedule, planned.statement.program.args(), "reduce")?;
    Ok(local_bytes(&nest.body, target) <= most)
}
