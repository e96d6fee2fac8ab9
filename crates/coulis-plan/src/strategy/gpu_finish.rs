//! Steps that fold the partial states of chunks, for machines with threads.

use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::{GridFinish, Schedule, ScheduleError, Split, StageId};
use coulis_tensor::IterVar;

use super::gpu_steps::{bind_rows, fused, place_rows};
use super::{Sketch, ceil_div, floor_pow2, state_bytes};
use crate::program::Spec;

/// Threads of a block.
const BLOCK: i64 = 256;
/// Rows that are joined, or neighbours, of which a thread of the second launch folds all, at most; of more it folds so many.
const FINISH_JOINED: (i64, i64) = (8, 4);
/// Threads of a block of it where some share the rows that are joined.
const FINISH_BLOCK: i64 = 512;
/// Threads that the second launch has in all, about, where there are parts for so many.
const FINISH_THREADS: i64 = 1 << 17;
/// Threads of the second launch that share an output, at most.
const FINISH_MOST: i64 = 256;
/// Outputs side by side in the second launch, at least and at most: the least access of memory holds four components of
/// 8 bytes.
const FINISH_WIDTH: (i64, i64) = (4, 32);
/// Bytes of partial states that a thread of the second launch reads at once.
const FINISH_BYTES: i64 = 128;
/// Threads of a block that folds what all others found, which wait for it.
const LARGEST_BLOCK: i64 = 1024;

/// Bytes of partial states that a thread of it reads at once, where there are several for each.
const BYTES_OF_CHUNKS: i64 = 64;

/// The least power of two from `n` on.
fn ceil_pow2(n: i64) -> i64 {
    let below = floor_pow2(n);
    if below < n { 2 * below } else { below }
}

/// A launch that folds the partial states of chunks: the threads of a block side by side on the chunks, as many outputs a
/// block as fit; the loop of one output.
pub fn fold_chunks(
    s: &mut Schedule,
    (parts, state): (StageId, StageId),
    output: StageId,
    n_kept: usize,
    spec: &Spec,
    sketch: &Sketch,
) -> Result<IterVar, ScheduleError> {
    let mut chunk = s.stage(state)?.reduce_axes()[0].clone();
    let of_block = ceil_div(sketch.chunks, sketch.last_blocks);
    // The threads of an output are all of a block, or lie within a warp.
    let threads = ceil_pow2(of_block).min(LARGEST_BLOCK);
    let turns = ceil_div(of_block, threads);
    if sketch.last_blocks > 1 || sketch.swept && turns > 1 {
        let row = place_rows(s, state, output, n_kept, 1)?;
        if sketch.last_blocks > 1 {
            let (block, rest) = s.split(state, &chunk, Split::Nparts(sketch.last_blocks))?;
            s.bind(state, &block, ThreadTag::ClusterX)?;
            chunk = rest;
        }
        let at_once = floor_pow2((BYTES_OF_CHUNKS / state_bytes(&spec.reducer).max(1)).min(turns));
        fold_parts(s, parts, state, &chunk, threads, at_once)?;
        return Ok(row);
    }
    if threads != sketch.chunks {
        chunk = s.split(state, &chunk, Split::Factor(threads))?.1;
    }
    let row = place_rows(s, state, output, n_kept, (BLOCK / threads).max(1))?;
    s.bind(state, &chunk, ThreadTag::ThreadX)?;
    Ok(row)
}

/// Partial states that a thread of the last block reads at once.
const AT_ONCE_OF_LAST: i64 = 16;
/// Bytes of them, where they have several components.
const BYTES_OF_LAST: i64 = 128;

/// Binds chunks of outputs to blocks, those of one output to an index of their own where there are several outputs; the index
/// of outputs. The chunk is the loop after the kept ones.
pub fn bind_chunks(
    s: &mut Schedule,
    stage: StageId,
    n_kept: usize,
    n_outputs: i64,
) -> Result<ThreadTag, ScheduleError> {
    if n_outputs == 1 {
        bind_rows(s, stage, n_kept + 1, 1)?;
        return Ok(ThreadTag::BlockX);
    }
    let chunk = s.stage(stage)?.leaves()[n_kept].clone();
    let rows = fused(s, stage, n_kept)?;
    s.bind(stage, &chunk, ThreadTag::BlockX)?;
    s.bind(stage, &rows, ThreadTag::BlockY)?;
    Ok(ThreadTag::BlockY)
}

/// The block of each output that ends last folds the partial states of its chunks: one warp of it, whose threads read all that
/// they fold before they do. Outputs are blocks along `of_parts`. The loop of one output.
pub fn fold_chunks_in_last_block(
    s: &mut Schedule,
    (parts, state): (StageId, StageId),
    output: StageId,
    n_kept: usize,
    of_parts: ThreadTag,
    sketch: &Sketch,
) -> Result<IterVar, ScheduleError> {
    let chunk = s.stage(state)?.reduce_axes()[0].clone();
    let outputs = s.stage(parts)?.outputs();
    let bytes: i64 = outputs.iter().map(|o| o.dtype.bytes() as i64).sum();
    let at_once = if outputs.len() > 1 { (BYTES_OF_LAST / bytes).max(1) } else { AT_ONCE_OF_LAST };
    let at_once = floor_pow2(at_once.min(ceil_div(sketch.chunks, sketch.last_threads)));
    let row = fused(s, output, n_kept)?;
    s.bind(output, &row, of_parts)?;
    s.set_scope(state, MemScope::Local)?;
    s.compute_at(state, output, &row)?;
    fold_parts(s, parts, state, &chunk, sketch.last_threads, at_once)?;
    s.grid_finish(output, GridFinish::LastBlock)?;
    Ok(row)
}

/// So many threads share the partial states `parts` of the loop `chunk`, and each reads so many of them at once.
fn fold_parts(
    s: &mut Schedule,
    parts: StageId,
    state: StageId,
    chunk: &IterVar,
    threads: i64,
    at_once: i64,
) -> Result<(), ScheduleError> {
    let outputs = s.stage(parts)?.outputs().to_vec();
    // A combination may ask for one component only where another says so, which would be one read after another: then a thread
    // reads all of several neighbours before it combines them.
    let reads_first = outputs.len() > 1;
    let (turn, thread) = if reads_first {
        let (thread, turn) = s.split(state, chunk, Split::Nparts(threads))?;
        (turn, thread)
    } else {
        s.split(state, chunk, Split::Factor(threads))?
    };
    s.bind(state, &thread, ThreadTag::ThreadX)?;
    let (turn, few) = s.split(state, &turn, Split::Factor(at_once))?;
    s.unroll(state, &few)?;
    for part in outputs.iter().filter(|_| reads_first) {
        let own = s.cache_read(part, MemScope::Local, &[state.into()])?;
        s.compute_at(own, state, &turn)?;
        if let Some(axis) = s.stage(own)?.leaves().last().cloned() {
            s.unroll(own, &axis)?;
        }
    }
    Ok(())
}

/// How the partial states of chunks are folded where neighbouring outputs lie next to each other in each chunk.
#[derive(Clone, Copy, Debug)]
pub struct Finish {
    /// Outputs side by side in a block.
    pub width: i64,
    /// Threads above each other that share an output.
    pub threads: i64,
    /// Threads behind each other that share the rows which are joined.
    pub apart: i64,
    /// Blocks of a cluster that share an output.
    pub blocks: i64,
    /// Partial states that each of them reads at once.
    pub at_once: i64,
}

/// A launch that folds the partial states of chunks, as `finish` says; the loop over the partial states of one thread.
pub fn fold_chunks_beside(
    s: &mut Schedule,
    state: StageId,
    output: StageId,
    n_kept: usize,
    finish: Finish,
) -> Result<IterVar, ScheduleError> {
    let all = fused(s, output, n_kept)?;
    let (block, beside) = s.split(output, &all, Split::Factor(finish.width))?;
    s.bind(output, &block, ThreadTag::BlockX)?;
    s.bind(output, &beside, ThreadTag::ThreadX)?;
    s.set_scope(state, MemScope::Local)?;
    s.compute_at(state, output, &beside)?;
    let mut turn = s.stage(state)?.reduce_axes()[0].clone();
    if finish.blocks > 1 {
        let (block, rest) = s.split(state, &turn, Split::Nparts(finish.blocks))?;
        s.bind(state, &block, ThreadTag::ClusterX)?;
        turn = rest;
    }
    let mut last = turn.clone();
    if finish.threads > 1 {
        let (outer, thread) = s.split(state, &turn, Split::Factor(finish.threads))?;
        s.bind(state, &thread, ThreadTag::ThreadY)?;
        (turn, last) = (outer, thread);
    }
    if finish.at_once > 1 {
        let (_, few) = s.split(state, &turn, Split::Factor(finish.at_once))?;
        s.unroll(state, &few)?;
        if finish.threads == 1 {
            last = few;
        }
    }
    Ok(last)
}

impl Finish {
    /// That of columns.
    pub fn of(spec: &Spec, sketch: &Sketch) -> Finish {
        let n_outputs = spec.problem.n_outputs.max(1);
        let most = (FINISH_THREADS / n_outputs).clamp(1, FINISH_MOST);
        let of_block = ceil_div(sketch.chunks, sketch.last_blocks);
        let threads = floor_pow2(most.min(of_block));
        let (own, each) = FINISH_JOINED;
        // Neighbours are side by side in memory as outputs are.
        let least = if sketch.beside >= FINISH_WIDTH.0 { 1 } else { FINISH_WIDTH.0 };
        let room = FINISH_BLOCK / (threads * least);
        let beside = sketch.joined.max(sketch.beside);
        let apart = if beside > own { floor_pow2((beside / each).min(room).max(1)) } else { 1 };
        let block = if apart > 1 { FINISH_BLOCK } else { BLOCK };
        let width = (block / (threads * apart)).clamp(least, FINISH_WIDTH.1.min(n_outputs.max(least)));
        let states = state_bytes(&spec.reducer) * sketch.joined * sketch.beside / apart;
        let at_once = (FINISH_BYTES / states.max(1)).clamp(1, 8).min(ceil_div(of_block, threads));
        Finish { width, threads, apart, blocks: sketch.last_blocks, at_once: floor_pow2(at_once) }
    }
}
