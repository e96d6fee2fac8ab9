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
/// Bytes of them that a thread has registers for.
const FIRST_BYTES: i64 = 320;
/// Blocks of the second launch, at least, where there are outputs for so many.
const FINISH_BLOCKS: i64 = 128;
/// Most copies of a fold of what lies side by side.
const MOST_COPIES: i64 = 32;
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
    let of_block = ceil_div(sketch.chunks.n, sketch.last.blocks);
    // The threads of an output are all of a block, or lie within a warp.
    let threads = ceil_pow2(of_block).min(LARGEST_BLOCK);
    let turns = ceil_div(of_block, threads);
    if sketch.last.blocks > 1 || sketch.chunks.swept && turns > 1 {
        let row = place_rows(s, state, output, n_kept, 1)?;
        if sketch.last.blocks > 1 {
            let (block, rest) = s.split(state, &chunk, Split::Nparts(sketch.last.blocks))?;
            s.bind(state, &block, ThreadTag::ClusterX)?;
            chunk = rest;
        }
        let at_once = floor_pow2((BYTES_OF_CHUNKS / state_bytes(&spec.reducer).max(1)).min(turns));
        fold_parts(s, parts, state, &chunk, threads, at_once)?;
        return Ok(row);
    }
    if threads != sketch.chunks.n {
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
    let at_once = floor_pow2(at_once.min(ceil_div(sketch.chunks.n, sketch.last.threads)));
    let row = fused(s, output, n_kept)?;
    s.bind(output, &row, of_parts)?;
    s.set_scope(state, MemScope::Local)?;
    s.compute_at(state, output, &row)?;
    fold_parts(s, parts, state, &chunk, sketch.last.threads, at_once)?;
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
    let reads_first = s.stage(parts)?.outputs().len() > 1;
    let (turn, thread) = deal(s, state, chunk, threads, reads_first)?;
    s.bind(state, &thread, ThreadTag::ThreadX)?;
    let (turn, few) = s.split(state, &turn, Split::Factor(at_once))?;
    s.unroll(state, &few)?;
    if reads_first { read_parts(s, parts, state, (state, &turn)) } else { Ok(()) }
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
    /// Whether a thread reads these before it combines any: a combination may ask for one component only where another says so, which
    /// would be one read after another.
    pub reads_first: bool,
}

/// A launch that folds the partial states `parts` of chunks, as `finish` says, of which the stages `folded`, those of each in the
/// next one, fold what lies side by side.
pub fn fold_chunks_beside(
    s: &mut Schedule,
    (parts, state): (StageId, StageId),
    output: StageId,
    n_kept: usize,
    folded: &[StageId],
    (finish, sketch): (Finish, &Sketch),
) -> Result<(), ScheduleError> {
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
        let (outer, thread) = deal(s, state, &turn, finish.threads, finish.reads_first)?;
        s.bind(state, &thread, ThreadTag::ThreadY)?;
        (turn, last) = (outer, thread);
    }
    if finish.at_once > 1 || finish.reads_first {
        let (steps, few) = s.split(state, &turn, Split::Factor(finish.at_once))?;
        s.unroll(state, &few)?;
        turn = steps;
        if finish.threads == 1 || finish.reads_first {
            last = few;
        }
    }
    fold_side_by_side(s, (state, last), folded, (finish.apart, finish.reads_first), sketch)?;
    if !finish.reads_first {
        return Ok(());
    }
    read_parts(s, parts, folded.last().copied().unwrap_or(state), (state, &turn))
}

/// Each of the stages, which fold what lies side by side, in the loop of the one before over what it folds of it.
pub fn fold_side_by_side(
    s: &mut Schedule,
    (mut site, mut part): (StageId, IterVar),
    folded: &[StageId],
    (apart, are_neighbours): (i64, bool),
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    let most = sketch.joined.max(sketch.beside);
    let extents = [sketch.joined, sketch.beside].into_iter().filter(|extent| *extent > 1);
    for (stage, extent) in folded.iter().zip(extents) {
        let mut own = s.stage(*stage)?.reduce_axes()[0].clone();
        let mut each = extent;
        if apart > 1 && extent == most {
            let (few, thread) = deal(s, *stage, &own, apart, are_neighbours)?;
            s.bind(*stage, &thread, ThreadTag::ThreadZ)?;
            (own, each) = (few, ceil_div(extent, apart));
        }
        if each <= MOST_COPIES {
            s.unroll(*stage, &own)?;
        }
        s.set_scope(*stage, MemScope::Local)?;
        s.compute_at(*stage, site, &part)?;
        (site, part) = (*stage, own);
    }
    Ok(())
}

/// Deals partial states to threads, neighbours to each where it is to read several of them before it combines any; the loop of
/// one thread, and that over threads.
fn deal(
    s: &mut Schedule,
    stage: StageId,
    parts: &IterVar,
    threads: i64,
    are_neighbours: bool,
) -> Result<(IterVar, IterVar), ScheduleError> {
    if are_neighbours {
        return s.split(stage, parts, Split::Nparts(threads)).map(|(thread, turn)| (turn, thread));
    }
    s.split(stage, parts, Split::Factor(threads))
}

/// Has a thread read what `reader` takes of the partial states in a step of `at` before any is combined.
fn read_parts(
    s: &mut Schedule,
    parts: StageId,
    reader: StageId,
    (stage, at): (StageId, &IterVar),
) -> Result<(), ScheduleError> {
    for part in s.stage(parts)?.outputs().to_vec() {
        let own = s.cache_read(&part, MemScope::Local, &[reader.into()])?;
        s.compute_at(own, stage, at)?;
        let axes = s.stage(own)?.leaves().to_vec();
        axes.iter().filter(|axis| axis.length() != Some(1)).try_for_each(|axis| s.unroll(own, axis))?;
    }
    Ok(())
}

impl Finish {
    /// That of columns.
    pub fn of(spec: &Spec, sketch: &Sketch) -> Finish {
        let n_outputs = spec.problem.n_outputs.max(1);
        let most = (FINISH_THREADS / n_outputs).clamp(1, FINISH_MOST);
        let of_block = ceil_div(sketch.chunks.n, sketch.last.blocks);
        let (own, each) = FINISH_JOINED;
        // Neighbours are side by side in memory as outputs are.
        let least = if sketch.beside >= FINISH_WIDTH.0 { 1 } else { FINISH_WIDTH.0 };
        let beside = sketch.joined.max(sketch.beside);
        let apart =
            if beside > own { floor_pow2((beside / each).min(FINISH_BLOCK / least).max(1)) } else { 1 };
        let block = if apart > 1 { FINISH_BLOCK } else { BLOCK };
        let states = state_bytes(&spec.reducer) * sketch.joined * sketch.beside / apart;
        // What is joined lies a row apart, and is not one piece of registers.
        let reads_first = spec.reducer.fields.len() > 1 && sketch.joined == 1 && states <= FIRST_BYTES;
        let threads = floor_pow2(most.min(of_block).min((FINISH_BLOCK / (apart * least)).max(1)));
        let most = floor_pow2(n_outputs / FINISH_BLOCKS).clamp(least, FINISH_WIDTH.1);
        let width = (block / (threads * apart)).clamp(least, most);
        let at_once = (FINISH_BYTES / states.max(1)).clamp(1, 8).min(ceil_div(of_block, threads));
        let at_once = floor_pow2(at_once);
        Finish { width, threads, apart, blocks: sketch.last.blocks, at_once, reads_first }
    }
}
