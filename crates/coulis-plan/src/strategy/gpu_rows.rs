//! `gpu_rows`: the folded elements lie next to each other, and blocks of threads fold them.
//!
//! The threads of a row stand side by side on its elements, so that a warp reads whole sectors; each folds every
//! `threads`-th element, several loads in flight, and the row's threads fold their partial states together. Short rows
//! share a block. Few long rows are split into chunks whose partial states a second launch folds.

use coulis_ir::ThreadTag;
use coulis_schedule::{Schedule, ScheduleError};

use super::gpu_steps::{bind_rows, fold_by_threads, fold_chunks, place_rows, split_fold};
use super::steps::stage_of;
use super::{Decline, Facts, Machine, Sketch, Strategy, ceil_div, floor_pow2};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "gpu_rows",
    machine: Machine::Threads,
    keeps_order: false,
    summary: "threads side by side along the innermost reduced dimension; few rows are split over blocks",
    propose,
    schedule,
};

/// Threads of a block; a power of two, and the most that one row is folded by.
const BLOCK: i64 = 256;
/// Loads that each thread has in flight.
const IN_FLIGHT: i64 = 8;
/// Fewest elements that a chunk has for each thread.
const FEWEST: i64 = 4 * IN_FLIGHT;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let Some((extent, _, true)) = facts.inner() else {
        return Err(Decline::new("a reduced innermost dimension", "a kept one, or none"));
    };
    let problem = &facts.spec.problem;
    let warp = i64::from(facts.target.warp);
    // A thread of a short row folds a few elements; rows of a warp's length and more have whole warps.
    let threads = match extent {
        0..32 => floor_pow2(ceil_div(extent, 4)),
        _ => floor_pow2(ceil_div(extent, IN_FLIGHT)).clamp(warp.min(extent), BLOCK),
    };
    let unroll = floor_pow2((extent / threads).clamp(1, IN_FLIGHT));
    let rows = (BLOCK / threads).max(1);
    let n_blocks = ceil_div(problem.n_outputs, rows);
    let n_reduced = problem.dims.iter().filter(|d| d.is_reduced()).count();
    let outermost = problem.dims.iter().find(|d| d.is_reduced()).map_or(1, |d| d.extent);
    let len = if n_reduced > 1 { outermost } else { extent / (threads * FEWEST) };
    let chunks = facts.block_chunks(n_blocks, len);
    Ok(Sketch { unroll, threads, rows, chunks, ..facts.plain() })
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let fold = split_fold(s, state, n_kept, n_kept, sketch)?;
    fold_by_threads(s, &fold, ThreadTag::ThreadX, sketch)?;
    if sketch.chunks == 1 {
        return place_rows(s, state, output, n_kept, sketch.rows);
    }
    bind_rows(s, fold.stage, fold.n_kept, sketch.rows)?;
    fold_chunks(s, state, output, n_kept, sketch)
}
