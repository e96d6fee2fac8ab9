//! `gpu_columns`: the innermost dimension is kept, so neighbouring threads fold neighbouring outputs.
//!
//! A block covers a strip of outputs, and several of its threads share each of them: they fold different rows of the
//! reduced dimensions, and then their partial states. Few strips are split into chunks of the outermost reduced
//! dimension, whose partial states a second launch folds.

use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::IterVar;

use super::gpu_steps::{fold_by_threads, fold_chunks, split_fold};
use super::steps::stage_of;
use super::{Decline, Facts, Machine, Sketch, Strategy, ceil_div, floor_pow2};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "gpu_columns",
    machine: Machine::Threads,
    keeps_order: false,
    summary: "threads side by side along the innermost kept dimension; several share an output, few strips are split over blocks",
    propose,
    schedule,
};

/// Threads of a block.
const BLOCK: i64 = 256;
/// Loads that each thread has in flight.
const IN_FLIGHT: i64 = 8;
/// Fewest rows that a thread of a chunk folds.
const FEWEST: i64 = 4 * IN_FLIGHT;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let Some((extent, _, false)) = facts.inner() else {
        return Err(Decline::new("a kept innermost dimension", "a reduced one, or none"));
    };
    let problem = &facts.spec.problem;
    let Some(rows_at) = problem.dims.iter().rposition(super::super::problem::Dim::is_reduced) else {
        return Err(Decline::new("a reduced dimension", "none"));
    };
    let rows = problem.dims[rows_at].extent;
    let warp = i64::from(facts.target.warp);
    let strip = extent.min(warp);
    // Threads that share an output, each with several rows to fold.
    let threads = floor_pow2((rows / IN_FLIGHT).clamp(1, (BLOCK / strip).max(1)));
    let unroll = floor_pow2((rows / threads).clamp(1, IN_FLIGHT));
    let n_blocks = problem.n_outputs / extent.max(1) * ceil_div(extent, strip);
    let outermost = problem.dims.iter().find(|d| d.is_reduced()).map_or(1, |d| d.extent);
    let n_reduced = problem.dims.iter().filter(|d| d.is_reduced()).count();
    let len = if n_reduced > 1 { outermost } else { outermost / (threads * FEWEST) };
    let chunks = facts.block_chunks(n_blocks, len);
    Ok(Sketch { tile: strip, unroll, threads, chunks, ..facts.plain() })
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let fold = split_fold(s, state, n_kept, 0, sketch)?;
    fold_by_threads(s, &fold, ThreadTag::ThreadY, sketch)?;
    if sketch.chunks == 1 {
        let column = bind_strips(s, output, n_kept, sketch)?;
        s.set_scope(state, MemScope::Local)?;
        return s.compute_at(state, output, &column);
    }
    bind_strips(s, fold.stage, fold.n_kept, sketch)?;
    fold_chunks(s, state, output, n_kept, sketch)
}

/// Binds strips of the last kept loop to blocks and their outputs to threads; the loop of one output.
fn bind_strips(
    s: &mut Schedule,
    stage: StageId,
    n_kept: usize,
    sketch: &Sketch,
) -> Result<IterVar, ScheduleError> {
    let kept: Vec<IterVar> = s.stage(stage)?.leaves()[..n_kept].to_vec();
    let (strip, column) = s.split(stage, &kept[n_kept - 1], Split::Factor(sketch.tile))?;
    let mut outer = kept[..n_kept - 1].to_vec();
    outer.push(strip.clone());
    let block = if outer.len() > 1 { s.fuse(stage, &outer)? } else { strip };
    s.bind(stage, &block, ThreadTag::BlockX)?;
    s.bind(stage, &column, ThreadTag::ThreadX)?;
    Ok(column)
}
