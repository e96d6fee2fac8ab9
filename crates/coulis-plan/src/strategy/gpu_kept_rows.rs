//! `gpu_kept_rows`: rows that a map reads again stay on the chip between their fold and their map.
//!
//! The threads of a row read it from memory once, all of it at the start, into registers of their own where it fits there,
//! else into memory that the block shares; the fold and the map read it from there. In registers each thread has the words
//! that it folds, so the copy is laid out as its loops run (`cache_write`), and all loops over it are written out. A row
//! that fits neither is another strategy's, which reads it twice. Measured: `bench/results`.

use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split, StageId, StageRef};
use coulis_tensor::{IterVar, Tensor};

use super::gpu_steps::{fold_by_threads, place_rows, split_fold};
use super::map_steps::Keep;
use super::steps::stage_of;
use super::{Decline, Facts, Machine, Sketch, Strategy, ceil_div, floor_pow2};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "gpu_kept_rows",
    machine: Machine::Threads,
    keeps_order: false,
    summary: "rows that a map reads again are read once, into registers or memory of the block",
    propose,
    schedule,
};

/// Threads of a block that short rows share.
const BLOCK: i64 = 256;
/// Elements of a row for each of its threads, where a warp and less folds it: few threads have little to bring together.
const FEW_ELEMENTS: i64 = 16;
/// Bytes that the threads of a row access side by side at least, where it has them.
const SIDE_BY_SIDE_BYTES: i64 = 64;
/// Most threads that keep a row in registers: more would fill a multiprocessor alone, which then waits for each row.
const MOST_IN_REGISTERS: i64 = 512;
/// Elements of fewer bytes are more work for threads than for memory: so few threads take a row as leave none without an element
/// of it for long.
pub const NARROW: usize = 4;
/// How many quarters of what registers hold of wider ones they hold of narrow ones, several of which are one access.
const QUARTERS_OF_NARROW: i64 = 7;
/// What it costs a thread to bring its state together with the others, in elements.
const FOLD_ELEMENTS: i64 = 8;
/// See [`SIDE_BY_SIDE_BYTES`]; of narrow rows.
const SIDE_BY_SIDE_OF_NARROW: i64 = 32;
/// A register holds so many bytes; narrower elements are as wide once they are converted.
const WORD_BYTES: i64 = 4;
/// Accesses that each thread has in flight where a row goes to memory of the block.
const IN_FLIGHT: i64 = 4;
/// Bytes of a block's memory that the fold of its threads' states may take.
const FOLD_BYTES: i64 = 2 << 10;
/// Longer rows are split over blocks where there are fewer of them than multiprocessors.
const SPLIT_BYTES: i64 = 32 << 10;
/// Threads that a multiprocessor holds.
const OF_MULTIPROCESSOR: i64 = 2048;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let wanted = "a map after each row, and a reduced innermost dimension";
    let spec = facts.spec;
    if spec.map.is_none() || !facts.has_rows() {
        return Err(Decline::new(wanted, "no map of rows"));
    }
    let Some((extent, _, true)) = facts.inner() else {
        return Err(Decline::new(wanted, "a kept innermost dimension"));
    };
    let problem = &spec.problem;
    let lanes = facts.word_lanes(&facts.constant_extents(true));
    let words = ceil_div(extent, lanes);
    let outer: i64 = problem.dims.iter().filter(|d| d.is_reduced()).rev().skip(1).map(|d| d.extent).product();
    let bytes = |of: &dyn Fn(i64) -> i64| -> i64 { spec.inputs.iter().map(|d| of(d.bytes() as i64)).sum() };
    let row_bytes = outer.saturating_mul(extent).saturating_mul(bytes(&|b| b));
    let n_multiprocessors = i64::from(facts.target.n_threads) / OF_MULTIPROCESSOR;
    if problem.n_outputs < n_multiprocessors && row_bytes > SPLIT_BYTES {
        let found = format!("{} rows of {row_bytes} bytes", problem.n_outputs);
        return Err(Decline::new("a row for each multiprocessor, or short ones", found));
    }
    let element_bytes = bytes(&|b| b.max(WORD_BYTES));
    let is_narrow = spec.inputs.iter().all(|d| d.bytes() < NARROW);
    let of_registers = i64::from(facts.target.register_bytes) / 8 / element_bytes;
    let most_elements =
        if is_narrow && lanes > 1 { of_registers * QUARTERS_OF_NARROW / 4 } else { of_registers };
    let elements = outer.saturating_mul(words).saturating_mul(lanes);
    let warp = i64::from(facts.target.warp);
    let of_words = |threads: i64| threads.min(floor_pow2(words));
    let turns = |threads: i64| outer.saturating_mul(ceil_div(words, threads));
    let kept = |threads: i64| turns(threads).saturating_mul(lanes);
    let in_registers = if is_narrow {
        let side_by_side = SIDE_BY_SIDE_OF_NARROW / (lanes * spec.inputs[0].bytes() as i64).max(1);
        let fewest = of_words(ceil_pow2(side_by_side));
        let several = (0..).map(|n| fewest << n).take_while(|t| *t <= of_words(MOST_IN_REGISTERS));
        let fitting = several.filter(|t| kept(*t) <= most_elements);
        let cost = |threads: &i64| threads * (kept(*threads) + FOLD_ELEMENTS);
        fitting.min_by_key(cost).unwrap_or_else(|| of_words(MOST_IN_REGISTERS))
    } else if elements <= warp * most_elements {
        // Neighbours of a row are to fill sectors together.
        let side_by_side = SIDE_BY_SIDE_BYTES / (lanes * spec.inputs[0].bytes() as i64);
        of_words(ceil_pow2(elements / FEW_ELEMENTS).max(side_by_side).clamp(1, warp))
    } else {
        of_words(ceil_pow2(ceil_div(elements, most_elements)).min(MOST_IN_REGISTERS))
    };
    let block_bytes = row_bytes.saturating_add(FOLD_BYTES);
    let shared_bytes = i64::from(facts.target.block.shared_dyn_bytes);
    let (keep, threads, unroll) = if kept(in_registers) <= most_elements {
        (Keep::Registers, in_registers, turns(in_registers))
    } else if block_bytes <= shared_bytes {
        // Blocks side by side on a multiprocessor, or one that has it for itself.
        let several = 2 * block_bytes <= shared_bytes;
        let most = floor_pow2(i64::from(facts.target.block.threads));
        let threads = of_words(if several { most / 2 } else { most });
        let in_flight = if lanes > 1 { IN_FLIGHT } else { 4 * IN_FLIGHT };
        (Keep::Shared, threads, floor_pow2(turns(threads).clamp(1, in_flight)))
    } else {
        return Err(Decline::new("rows that fit into the memory of a block", format!("{row_bytes} bytes")));
    };
    let rows = (BLOCK / threads).max(1);
    let constant = facts.constant_extents(rows == 1);
    let run = facts.short_run(lanes, floor_pow2(unroll));
    let plain = facts.plain().with_map_kept(keep);
    Ok(Sketch { lanes, unroll, run, threads, rows, constant, ..plain })
}

/// The power of two that is at least `n`.
fn ceil_pow2(n: i64) -> i64 {
    let floor = floor_pow2(n.max(1));
    if floor < n { 2 * floor } else { floor }
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let Some(map) = &stmt.map else { return Ok(()) };
    let n_kept = spec.n_kept();
    let (state, finished, map) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?, stage_of(s, map)?);
    let fold = split_fold(s, state, n_kept, n_kept, sketch.lanes, sketch)?;
    let mine = fold_by_threads(s, &fold, ThreadTag::ThreadX, &[], sketch)?;
    let row = place_rows(s, state, map, n_kept, sketch.rows)?;
    s.set_scope(finished, MemScope::Local)?;
    s.compute_at(finished, map, &row)?;
    map_by_words(s, map, n_kept, sketch)?;
    for input in &stmt.inputs {
        let mut readers = Vec::new();
        for stage in [mine, map] {
            if s.stage(stage)?.reads().contains(input.buffer()) {
                readers.push(stage);
            }
        }
        if readers.len() < 2 {
            continue;
        }
        match sketch.map.keep {
            Keep::Nothing => {}
            Keep::Registers => in_registers(s, input, &readers, (map, &row), spec, sketch)?,
            Keep::Shared => in_shared(s, input, &readers, (map, &row), mine, sketch)?,
        }
    }
    Ok(())
}

/// Threads map the words of the row that they folded.
fn map_by_words(s: &mut Schedule, map: StageId, n_kept: usize, sketch: &Sketch) -> Result<(), ScheduleError> {
    let leaves = s.stage(map)?.leaves().to_vec();
    let n_reduced = s.stage(map)?.axes().len() - n_kept;
    let reduced = leaves[leaves.len() - n_reduced..].to_vec();
    let Some((inner, outer)) = reduced.split_last() else { return Ok(()) };
    let mut words = inner.clone();
    if sketch.lanes > 1 {
        let (word, mut lane) = s.split(map, inner, Split::Factor(sketch.lanes))?;
        if sketch.map.lanes < sketch.lanes {
            let (few, one) = s.split(map, &lane, Split::Factor(sketch.map.lanes))?;
            s.unroll(map, &few)?;
            lane = one;
        }
        if sketch.map.lanes > 1 {
            s.vectorize(map, &lane)?;
        }
        words = word;
    }
    let turn = by_threads(s, map, &words, sketch)?;
    match sketch.map.keep {
        Keep::Nothing => Ok(()),
        Keep::Registers => outer.iter().chain([&turn]).try_for_each(|axis| s.unroll(map, axis)),
        Keep::Shared => few_at_once(s, map, &turn, sketch),
    }
}

/// Splits words among the threads of the row; the loop that is left.
fn by_threads(
    s: &mut Schedule,
    stage: StageId,
    words: &IterVar,
    sketch: &Sketch,
) -> Result<IterVar, ScheduleError> {
    let (turn, thread) = s.split(stage, words, Split::Factor(sketch.threads))?;
    if sketch.threads > 1 {
        s.bind(stage, &thread, ThreadTag::ThreadX)?;
    }
    Ok(turn)
}

/// Has a few turns at once in flight.
fn few_at_once(
    s: &mut Schedule,
    stage: StageId,
    turn: &IterVar,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    if sketch.unroll == 1 {
        return Ok(());
    }
    let (_, few) = s.split(stage, turn, Split::Factor(sketch.unroll))?;
    s.unroll(stage, &few)
}

/// A copy of the row in registers, each thread's own words.
fn in_registers(
    s: &mut Schedule,
    input: &Tensor,
    readers: &[StageId],
    (map, row): (StageId, &IterVar),
    spec: &Spec,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    let copy = s.cache_read(input, MemScope::Local, &refs(readers))?;
    let Some(mut words) = s.stage(copy)?.leaves().last().cloned() else { return Ok(()) };
    if sketch.lanes > 1 {
        words = s.split(copy, &words, Split::Factor(sketch.lanes))?.0;
    }
    s.split(copy, &words, Split::Factor(sketch.threads))?;
    let kept = s.cache_write(copy, MemScope::Local)?;
    s.compute_inline(copy)?;
    s.compute_at(kept, map, row)?;
    let leaves = s.stage(kept)?.leaves().to_vec();
    // The last dimension is there as turns, threads, and lanes.
    let n_dims = spec.problem.dims.len();
    if sketch.lanes > 1
        && let Some(lane) = leaves.last()
    {
        s.vectorize(kept, lane)?;
    }
    let reduced = (0..n_dims).filter(|&d| spec.problem.dims[d].is_reduced());
    reduced.map(|d| &leaves[d]).try_for_each(|axis| s.unroll(kept, axis))
}

fn refs(stages: &[StageId]) -> Vec<StageRef> {
    stages.iter().map(StageRef::from).collect()
}

/// A copy of the row in memory of the block.
fn in_shared(
    s: &mut Schedule,
    input: &Tensor,
    readers: &[StageId],
    (map, row): (StageId, &IterVar),
    mine: StageId,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    let kept = s.cache_read(input, MemScope::SharedDyn, &refs(readers))?;
    s.compute_at(kept, map, row)?;
    let Some(mut words) = s.stage(kept)?.leaves().last().cloned() else { return Ok(()) };
    if sketch.lanes > 1 {
        let (word, lane) = s.split(kept, &words, Split::Factor(sketch.lanes))?;
        s.vectorize(kept, &lane)?;
        words = word;
    }
    let turn = by_threads(s, kept, &words, sketch)?;
    few_at_once(s, kept, &turn, sketch)?;
    if sketch.lanes == 1 {
        return Ok(());
    }
    let loops = s.stage(mine)?.leaves().to_vec();
    let Some(step) = loops.len().checked_sub(2).map(|at| loops[at].clone()) else { return Ok(()) };
    let word = s.cache_read(kept, MemScope::Local, &[mine.into()])?;
    s.compute_at(word, mine, &step)?;
    match s.stage(word)?.leaves().last().cloned() {
        Some(axis) => s.vectorize(word, &axis),
        None => Ok(()),
    }
}
