//! `gpu_outputs`: one thread folds each output by itself. Right for every problem.

use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split};
use coulis_tensor::IterVar;

use super::steps::stage_of;
use super::{Decline, Facts, Machine, Sketch, Strategy};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "gpu_outputs",
    machine: Machine::Threads,
    keeps_order: false,
    summary: "one thread folds each output, one element after another; accepts everything",
    propose,
    schedule,
};

/// Threads of a block.
const BLOCK: i64 = 128;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    Ok(Sketch { threads: BLOCK, ..facts.plain() })
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let kept: Vec<IterVar> = s.stage(output)?.leaves()[..spec.n_kept()].to_vec();
    let all = match &kept[..] {
        [only] => only.clone(),
        loops => s.fuse(output, loops)?,
    };
    let (block, thread) = s.split(output, &all, Split::Factor(sketch.threads))?;
    s.bind(output, &block, ThreadTag::BlockX)?;
    s.bind(output, &thread, ThreadTag::ThreadX)?;
    s.set_scope(state, MemScope::Local)?;
    s.compute_at(state, output, &thread)
}
