//! `gpu_odd_rows`: rows without gaps that begin where no wide access may, folded out of shared memory.
//!
//! Rows whose length is no multiple of an access could be read only element by element. As many of them as are together a
//! whole number of accesses begin where one may, so a block copies the slab of its rows to shared memory as one piece of
//! memory, by the widest accesses. Then the threads of each row stand side by side on its elements there, where neighbours
//! meet no bank twice, and fold their partial states together. Rows of a few elements are for `gpu_short_rows`, rows whose
//! slab is too large for shared memory, and longer ones of narrow elements, for `gpu_rows`. Measured: `bench/results`.

use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split};

use super::gpu_rows::{LARGE_STATE, peeled};
use super::gpu_steps::{copy_slab, dense_rows, fold_by_threads, rows_by_banks, split_fold, widest_access};
use super::steps::stage_of;
use super::{Decline, Facts, Machine, Sketch, Strategy, ceil_div, floor_pow2, state_bytes};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "gpu_odd_rows",
    machine: Machine::Threads,
    keeps_order: false,
    summary: "a block copies rows that begin anywhere to shared memory as one piece; threads side by side fold each there",
    propose,
    schedule,
};

/// Threads of a block, and of one whose states are large.
const BLOCK: i64 = 512;
/// See [`BLOCK`].
const BLOCK_OF_LARGE: i64 = 128;
/// Fewest elements of a row for each of its threads.
const FEWEST: i64 = 4;
/// Bytes that a block copies, about, and at most.
const SLAB_BYTES: i64 = 16 << 10;
/// See [`SLAB_BYTES`].
const MOST_BYTES: i64 = 40 << 10;
/// Fewest blocks: with less than a few for each part of the machine, long rows are better split.
const FEWEST_BLOCKS: i64 = 128;
/// Elements that each thread of a row folds side by side.
const IN_FLIGHT: i64 = 16;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let (extent, bytes) = dense_rows(facts)?;
    let lanes = widest_access(facts);
    let together = lanes / facts.word_lanes(&facts.constant_extents(false)).min(lanes);
    if together == 1 {
        return Err(Decline::new("rows that begin where no wide access may", "others"));
    }
    if peeled(facts, extent).is_some() {
        return Err(Decline::new("rows that are better not read from their first boundaries", extent));
    }
    let rows = floor_pow2(SLAB_BYTES / bytes).clamp(together, BLOCK);
    if rows * bytes > MOST_BYTES {
        return Err(Decline::new("at most 40 KiB of rows that are whole accesses together", rows * bytes));
    }
    let n_rows = facts.spec.problem.n_outputs;
    if n_rows < FEWEST_BLOCKS * rows {
        return Err(Decline::new("rows for 128 blocks", n_rows));
    }
    let is_large = state_bytes(&facts.spec.reducer) >= LARGE_STATE;
    let block = if is_large { BLOCK_OF_LARGE } else { BLOCK };
    let most = (block / rows).clamp(1, floor_pow2(extent / FEWEST));
    let unroll = |threads: i64| floor_pow2(ceil_div(extent, threads)).min(IN_FLIGHT);
    // Elements of one byte are more work for threads than for memory: then fewer threads, if their turns end closer to that of
    // the row.
    let folded = |threads: i64| {
        let turn = threads * unroll(threads);
        ceil_div(extent, turn) * turn
    };
    let is_work = facts.spec.inputs.iter().all(|d| d.bytes() == 1);
    let fewer = [most, most / 2, most / 4].into_iter().take(if is_work { 3 } else { 1 });
    let threads = fewer.filter(|threads| *threads >= 1).min_by_key(|threads| folded(*threads)).unwrap_or(1);
    let unroll = unroll(threads);
    let run = facts.short_run(1, unroll);
    Ok(Sketch { lanes, unroll, run, threads, rows, constant: vec![true; 2], ..facts.plain() })
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    // What is folded lies in shared memory, where a thread takes one element at a time.
    let by_elements = Sketch { lanes: 1, ..sketch.clone() };
    let fold = split_fold(s, state, 1, 1, 1, &by_elements)?;
    let mine = fold_by_threads(s, &fold, ThreadTag::ThreadX, &stmt.inputs, &by_elements)?;
    let extent = spec.problem.dims[1].extent;
    let rows = s.stage(output)?.leaves()[0].clone();
    let (slab, row) = s.split(output, &rows, Split::Factor(sketch.rows))?;
    s.bind(output, &slab, ThreadTag::BlockX)?;
    let row = rows_by_banks(s, output, row, extent, spec, sketch)?;
    s.bind(output, &row, ThreadTag::ThreadY)?;
    s.set_scope(state, MemScope::Local)?;
    s.compute_at(state, output, &row)?;
    let read = s.stage(mine)?.reads();
    for input in stmt.inputs.iter().filter(|input| read.contains(input.buffer())) {
        let copy = s.cache_read(input, MemScope::Shared, &[mine.into()])?;
        s.compute_at(copy, output, &slab)?;
        let threads = [(ThreadTag::ThreadX, sketch.threads), (ThreadTag::ThreadY, sketch.rows)];
        copy_slab(s, copy, extent, sketch.lanes, &threads)?;
    }
    Ok(())
}
