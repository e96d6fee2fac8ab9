//! Steps that the strategies for machines with threads share.

use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::IterVar;

use super::Sketch;
use super::steps::same_axis;

/// Threads of a block that has nothing to fold together.
const BLOCK: i64 = 256;

/// A fold that threads are to share.
pub struct Fold {
    /// The stage that folds.
    pub stage: StageId,
    /// Its data loops.
    pub n_kept: usize,
    /// Its reduce loop along the innermost reduced dimension: steps of all threads together, and the threads of a step.
    pub turn: IterVar,
    /// See `turn`.
    pub thread: IterVar,
}

/// Splits the innermost reduce loop of a state among threads, and where several chunks are asked for the outermost one
/// into chunks, whose partial states become a stage with the chunk as dimension `at`.
pub fn split_fold(
    s: &mut Schedule,
    state: StageId,
    n_kept: usize,
    at: usize,
    sketch: &Sketch,
) -> Result<Fold, ScheduleError> {
    let reduce = s.stage(state)?.reduce_axes().to_vec();
    let innermost = &reduce[reduce.len() - 1];
    if sketch.chunks == 1 {
        let (turn, thread) = s.split(state, innermost, Split::Factor(sketch.threads))?;
        return Ok(Fold { stage: state, n_kept, turn, thread });
    }
    if reduce.len() > 1 {
        let (chunk, _) = s.split(state, &reduce[0], Split::Nparts(sketch.chunks))?;
        let stage = s.rfactor_at(state, &chunk, at as i64)?;
        let innermost = same_axis(s, stage, innermost)?;
        let (turn, thread) = s.split(stage, &innermost, Split::Factor(sketch.threads))?;
        return Ok(Fold { stage, n_kept: n_kept + 1, turn, thread });
    }
    // What the threads of a block share stays together, so turns are cut into chunks, not elements.
    let (turn, thread) = s.split(state, innermost, Split::Factor(sketch.threads))?;
    let (chunk, turn) = s.split(state, &turn, Split::Nparts(sketch.chunks))?;
    let stage = s.rfactor_at(state, &chunk, at as i64)?;
    let (turn, thread) = (same_axis(s, stage, &turn)?, same_axis(s, stage, &thread)?);
    Ok(Fold { stage, n_kept: n_kept + 1, turn, thread })
}

/// Each thread of `tag` folds its steps, several at a time, then the threads fold their states together.
pub fn fold_by_threads(
    s: &mut Schedule,
    fold: &Fold,
    tag: ThreadTag,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    let mine = s.rfactor_at(fold.stage, &fold.thread, fold.n_kept as i64)?;
    let turn = same_axis(s, mine, &fold.turn)?;
    let reduce = s.stage(mine)?.leaves()[fold.n_kept + 1..].to_vec();
    let mut order: Vec<IterVar> = reduce.into_iter().filter(|leaf| *leaf != turn).collect();
    order.push(turn.clone());
    s.reorder(mine, &order)?;
    if sketch.unroll > 1 {
        let (_, few) = s.split(mine, &turn, Split::Factor(sketch.unroll))?;
        s.unroll(mine, &few)?;
    }
    let thread = s.stage(fold.stage)?.reduce_axes()[0].clone();
    if sketch.threads > 1 {
        s.bind(fold.stage, &thread, tag)?;
    }
    s.set_scope(mine, MemScope::Local)?;
    s.compute_at(mine, fold.stage, &thread)
}

/// Binds the first `n_kept` loops of a stage, fused, to blocks of `rows` rows; the loop of one row.
pub fn bind_rows(
    s: &mut Schedule,
    stage: StageId,
    n_kept: usize,
    rows: i64,
) -> Result<IterVar, ScheduleError> {
    let kept: Vec<IterVar> = s.stage(stage)?.leaves()[..n_kept].to_vec();
    let all = match &kept[..] {
        [only] => only.clone(),
        loops => s.fuse(stage, loops)?,
    };
    if rows == 1 {
        s.bind(stage, &all, ThreadTag::BlockX)?;
        return Ok(all);
    }
    let (block, row) = s.split(stage, &all, Split::Factor(rows))?;
    s.bind(stage, &block, ThreadTag::BlockX)?;
    s.bind(stage, &row, ThreadTag::ThreadY)?;
    Ok(row)
}

/// Binds the rows of `output` and computes `state` inside each, in registers.
pub fn place_rows(
    s: &mut Schedule,
    state: StageId,
    output: StageId,
    n_kept: usize,
    rows: i64,
) -> Result<(), ScheduleError> {
    let row = bind_rows(s, output, n_kept, rows)?;
    s.set_scope(state, MemScope::Local)?;
    s.compute_at(state, output, &row)
}

/// A launch that folds the partial states of chunks: one thread a chunk, as many outputs a block as fit.
pub fn fold_chunks(
    s: &mut Schedule,
    state: StageId,
    output: StageId,
    n_kept: usize,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    place_rows(s, state, output, n_kept, (BLOCK / sketch.chunks).max(1))?;
    let chunk = s.stage(state)?.reduce_axes()[0].clone();
    s.bind(state, &chunk, ThreadTag::ThreadX)
}
