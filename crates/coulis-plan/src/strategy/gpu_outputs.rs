//! `gpu_outputs`: one thread folds each output by itself. Right for every problem, and for states of any size: those that
//! registers do not hold are in memory, and a second launch finishes them.

use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split};

use super::gpu_steps::fused;
use super::map_steps::root;
use super::steps::stage_of;
use super::{Decline, Facts, Machine, Sketch, Strategy};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "gpu_outputs",
    machine: Machine::Threads,
    keeps_order: false,
    summary: "one thread folds each output, or a few of one element, one element after another; accepts everything",
    propose,
    schedule,
};

/// Threads of a block.
const BLOCK: i64 = 128;
/// Outputs of a thread where each is made of one element, so that it asks for several at once.
const OF_ONE: i64 = 8;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let problem = &facts.spec.problem;
    let are_many = problem.n_outputs / OF_ONE >= i64::from(facts.target.n_threads);
    let unroll = if problem.reduce_len == 1 && are_many { OF_ONE } else { 1 };
    // A map of an element by itself needs no launch of its own.
    let is_own =
        problem.reduce_len == 1 && problem.dims.len() == facts.spec.n_kept() && facts.across().is_none();
    let sketch = Sketch { threads: BLOCK, unroll, ..facts.plain() };
    let inside = is_own && !sketch.last.in_memory && !problem.dims.is_empty();
    Ok(sketch.with_map_inside(inside))
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let (state, output) = (stage_of(s, &stmt.state)?, root(s, stmt, sketch)?);
    let finished = stage_of(s, &stmt.output)?;
    if sketch.last.in_memory {
        for stage in [state, output] {
            let all = fused(s, stage, spec.n_kept())?;
            let (block, thread) = s.split(stage, &all, Split::Factor(sketch.threads))?;
            s.bind(stage, &block, ThreadTag::BlockX)?;
            s.bind(stage, &thread, ThreadTag::ThreadX)?;
        }
        return Ok(());
    }
    let all = fused(s, output, spec.n_kept())?;
    let (block, within) = s.split(output, &all, Split::Factor(sketch.threads * sketch.unroll))?;
    s.bind(output, &block, ThreadTag::BlockX)?;
    let inner = [state].into_iter().chain((finished != output).then_some(finished)).collect::<Vec<_>>();
    for stage in &inner {
        s.set_scope(*stage, MemScope::Local)?;
    }
    if sketch.unroll == 1 {
        s.bind(output, &within, ThreadTag::ThreadX)?;
        return inner.iter().rev().try_for_each(|stage| s.compute_at(*stage, output, &within));
    }
    // Neighbouring threads have neighbouring outputs at each turn.
    let (turn, thread) = s.split(output, &within, Split::Factor(sketch.threads))?;
    s.reorder(output, &[thread.clone(), turn.clone()])?;
    s.bind(output, &thread, ThreadTag::ThreadX)?;
    s.unroll(output, &turn)?;
    inner.iter().rev().try_for_each(|stage| s.compute_at(*stage, output, &turn))
}
