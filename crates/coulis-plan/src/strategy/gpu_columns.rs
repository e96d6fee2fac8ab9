//! `gpu_columns`: the innermost dimension is kept, so neighbouring threads fold neighbouring outputs.
//!
//! A block covers a strip of outputs; a thread takes as many neighbours as one access holds. Several threads share
//! them: they fold different rows of the reduced dimensions, and then their partial states. Few strips are split into
//! chunks of the rows, whose partial states a second launch folds.

use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::IterVar;

use super::gpu_steps::{fold_chunks_beside, fold_chunks_in_turn, split_fold};
use super::steps::{same_axis, stage_of};
use super::{Decline, Facts, Machine, Sketch, Strategy, ceil_div, floor_pow2, state_bytes};
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
/// Accesses that each thread has in flight.
const IN_FLIGHT: i64 = 4;
/// Fewest turns of a chunk.
const FEWEST: i64 = 4 * IN_FLIGHT;
/// Longest run of a quick step.
const LONGEST_RUN: i64 = 8;
/// How many blocks there are for each that a multiprocessor holds, where rows are split.
const WAVES: i64 = 1;
/// Bytes of states that one thread keeps. It holds them up to five times (the fold, its run, its partial result, and both sides
/// of the fold with its neighbours), which its 1020 bytes of registers have to take.
const THREAD_STATE: i64 = 192;
/// Up to so many strips, blocks are cut to as many as run at once.
const FEW_STRIPS: i64 = 8;
/// Registers of a multiprocessor.
const REGISTERS: i64 = 1 << 16;
/// Registers of a thread beside those of its states.
const OTHER_REGISTERS: i64 = 16;
/// From so many outputs on, one thread folds the chunks of each.
const MANY_OUTPUTS: i64 = 4096;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let Some((extent, _, false)) = facts.inner() else {
        return Err(Decline::new("a kept innermost dimension", "a reduced one, or none"));
    };
    let problem = &facts.spec.problem;
    if !problem.dims.iter().any(super::super::problem::Dim::is_reduced) {
        return Err(Decline::new("a reduced dimension", "none"));
    }
    let warp = i64::from(facts.target.warp);
    let constant = facts.constant_extents(false);
    let mut lanes = facts.word_lanes(&constant);
    while lanes > 1 && lanes * state_bytes(&facts.spec.reducer) > THREAD_STATE {
        lanes /= 2;
    }
    let side_by_side = ceil_div(extent, lanes).min(warp);
    let rows: i64 = problem.reduce_len;
    let in_flight = if lanes > 1 { IN_FLIGHT } else { 2 * IN_FLIGHT };
    // Threads that share an output, each with several rows to fold.
    let threads = floor_pow2((rows / in_flight).clamp(1, (BLOCK / side_by_side).max(1)));
    let turns = ceil_div(rows, threads);
    let run = facts.short_run(1, floor_pow2(turns.clamp(1, LONGEST_RUN)));
    let unroll = if run > 1 { run } else { floor_pow2(turns.clamp(1, in_flight)) };
    let tile = lanes * side_by_side;
    let n_blocks = problem.n_outputs / extent.max(1) * ceil_div(extent, tile);
    let fewest = FEWEST.max(run);
    let chunks = if n_blocks > FEW_STRIPS {
        facts.block_chunks(n_blocks, turns, fewest, WAVES)
    } else {
        // One block for each that runs at once: they are alike, and the second launch has the less to read.
        let at_once =
            i64::from(facts.target.n_threads) / 2048 * resident(lanes * state_bytes(&facts.spec.reducer));
        (at_once / n_blocks.max(1)).clamp(1, (turns / fewest).max(1))
    };
    Ok(Sketch { tile, lanes, unroll, run, threads, chunks, constant, ..facts.plain() })
}

/// Blocks that a multiprocessor holds, by the registers that their threads keep states in.
fn resident(states: i64) -> i64 {
    (REGISTERS / (BLOCK * (OTHER_REGISTERS + states / 4))).clamp(1, 8)
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let fold = split_fold(s, state, n_kept, 0, 1, sketch)?;
    let mine = s.rfactor_at(fold.stage, &fold.thread, fold.n_kept as i64)?;
    let turn = same_axis(s, mine, &fold.turn)?;
    let (root, n_root) = if sketch.chunks == 1 { (output, n_kept) } else { (fold.stage, fold.n_kept) };
    let column = bind_strips(s, root, n_root, sketch)?;
    if sketch.threads > 1 {
        let shared = s.stage(fold.stage)?.reduce_axes()[0].clone();
        s.bind(fold.stage, &shared, ThreadTag::ThreadY)?;
        let own = s.stage(mine)?.leaves()[fold.n_kept].clone();
        s.bind(mine, &own, ThreadTag::ThreadY)?;
    }
    if sketch.chunks == 1 {
        s.set_scope(state, MemScope::Local)?;
        s.compute_at(state, output, &column)?;
        if sketch.lanes > 1 {
            let lane = s.stage(state)?.leaves()[n_kept - 1].clone();
            s.unroll(state, &lane)?;
        }
    }
    s.set_scope(mine, MemScope::Local)?;
    s.compute_at(mine, root, &column)?;
    let lane = s.stage(mine)?.leaves()[fold.n_kept - 1].clone();
    s.reorder(mine, &[turn.clone(), lane.clone()])?;
    if sketch.unroll > 1 {
        let (_, few) = s.split(mine, &turn, Split::Factor(sketch.unroll))?;
        s.unroll(mine, &few)?;
        if sketch.run > 1 {
            s.in_runs(mine, &few)?;
        }
    }
    if sketch.lanes > 1 {
        s.vectorize(mine, &lane)?;
    }
    match sketch.chunks {
        1 => Ok(()),
        _ if spec.problem.n_outputs >= MANY_OUTPUTS => fold_chunks_in_turn(s, state, output, n_kept),
        _ => fold_chunks_beside(s, state, output, n_kept, sketch),
    }
}

/// Binds strips of the last kept loop to blocks and their outputs to threads, each of which has neighbours; the loop over
/// threads.
fn bind_strips(
    s: &mut Schedule,
    stage: StageId,
    n_kept: usize,
    sketch: &Sketch,
) -> Result<IterVar, ScheduleError> {
    let kept: Vec<IterVar> = s.stage(stage)?.leaves()[..n_kept].to_vec();
    let (strip, mut column) = s.split(stage, &kept[n_kept - 1], Split::Factor(sketch.tile))?;
    if sketch.lanes > 1 {
        let (thread, lane) = s.split(stage, &column, Split::Factor(sketch.lanes))?;
        s.unroll(stage, &lane)?;
        column = thread;
    }
    let mut outer = kept[..n_kept - 1].to_vec();
    outer.push(strip.clone());
    let block = if outer.len() > 1 { s.fuse(stage, &outer)? } else { strip };
    s.bind(stage, &block, ThreadTag::BlockX)?;
    s.bind(stage, &column, ThreadTag::ThreadX)?;
    Ok(column)
}
