//! `gpu_short_rows`: rows of a few elements without gaps, each folded by one thread out of shared memory.
//!
//! Threads side by side on the elements of such rows would read pieces of accesses, and rows whose length is no multiple of
//! an access do not even begin where one may. So a block copies the slab of all its rows to shared memory, as one piece of
//! memory by the widest accesses; then each thread folds rows of its own out of it, neighbouring threads neighbouring rows,
//! so that the results are stored side by side too. A row is read by the widest accesses that it is a whole number of: such
//! rows are an odd number of accesses apart, or are set apart so, and no two threads ask one bank. Measured: `bench/results`.

use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split};

use super::gpu_steps::{copy_slab, dense_rows, fold_own_row, runs_of_row, slab_access, widest_access};
use super::steps::stage_of;
use super::{Decline, Facts, Machine, Run, Sketch, Strategy, floor_pow2, gcd};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "gpu_short_rows",
    machine: Machine::Threads,
    keeps_order: false,
    summary: "a block copies many short rows to shared memory as one piece; then each thread folds rows of its own",
    propose,
    schedule,
};

/// Longest row, in elements.
const LONGEST: i64 = 64;
/// Bytes from which on a row has work for several threads, unless one reads it by the widest accesses.
const LONG_BYTES: i64 = 256;
/// Threads of a block, at most and at least.
const BLOCK: i64 = 256;
/// See [`BLOCK`].
const SMALLEST_BLOCK: i64 = 64;
/// Bytes that a block copies at least, where there are rows enough.
const SLAB_BYTES: i64 = 8 << 10;
/// Bytes that a block of more than the fewest threads copies at most.
const LARGE_SLAB_BYTES: i64 = 34 << 10;
/// Words from which on a row of a power of two of them has threads side by side in small arrays.
const MANY_WORDS: i64 = 8;
/// Fewest rows that are worth a slab.
const FEWEST_ROWS: i64 = 256;
/// Most rows of a thread.
const MOST_ROWS: i64 = 8;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let (extent, bytes) = dense_rows(facts)?;
    if extent > LONGEST {
        return Err(Decline::new(format!("at most {LONGEST} elements in a row"), extent));
    }
    let n_rows = facts.spec.problem.n_outputs;
    if n_rows < FEWEST_ROWS {
        return Err(Decline::new(format!("{FEWEST_ROWS} rows"), n_rows));
    }
    let lanes = widest_access(facts);
    if bytes >= LONG_BYTES && extent % lanes != 0 {
        return Err(Decline::new(
            format!("less than {LONG_BYTES} bytes in a row that is no whole number of accesses"),
            bytes,
        ));
    }
    let words = extent / lanes;
    if words >= MANY_WORDS && words.count_ones() == 1 && extent % lanes == 0 {
        // Such rows are whole accesses of threads side by side, which is quicker where each has but one.
        let accesses = n_rows.saturating_mul(words);
        if accesses <= i64::from(facts.target.n_threads) {
            return Err(Decline::new("more than an access for each thread of the machine", accesses));
        }
    }
    let rows = [BLOCK, BLOCK / 2].into_iter().find(|n| n * bytes <= LARGE_SLAB_BYTES);
    let all = i64::from(facts.target.n_threads) / BLOCK;
    let rows = rows.unwrap_or(SMALLEST_BLOCK).min(floor_pow2(n_rows * 8 / all)).max(SMALLEST_BLOCK);
    // As many rows a thread as make a slab, where that leaves a block for each that all multiprocessors hold.
    let unroll = floor_pow2((SLAB_BYTES / (rows * bytes)).min(n_rows / (rows * all))).clamp(1, MOST_ROWS);
    let lanes = slab_access(facts);
    let run = runs_of_row(facts, extent, gcd(extent, lanes));
    Ok(Sketch { lanes, unroll, rows, run: Run::of(run), constant: facts.constants(false), ..facts.plain() })
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let extent = spec.problem.dims[1].extent;
    let row = s.stage(output)?.leaves()[0].clone();
    let (slab, row) = s.split(output, &row, Split::Factor(sketch.rows * sketch.unroll))?;
    let (turn, thread) = s.split(output, &row, Split::Factor(sketch.rows))?;
    s.reorder(output, &[thread.clone(), turn.clone()])?;
    s.bind(output, &slab, ThreadTag::BlockX)?;
    s.bind(output, &thread, ThreadTag::ThreadX)?;
    s.unroll(output, &turn)?;
    s.set_scope(state, MemScope::Local)?;
    s.compute_at(state, output, &turn)?;
    // A row is a whole number of so many neighbours, of which a thread reads those of one word at a time.
    let (word, lane) = fold_own_row(s, state, (extent, gcd(extent, sketch.lanes)), sketch)?;
    let read = s.stage(state)?.reads();
    for input in stmt.inputs.iter().filter(|input| read.contains(input.buffer())) {
        let copy = s.cache_read(input, MemScope::Shared, &[state.into()])?;
        s.compute_at(copy, output, &slab)?;
        if lane.is_some() {
            let copied = s.stage(copy)?.outputs()[0].clone();
            let own = s.cache_read(&copied, MemScope::Local, &[state.into()])?;
            s.compute_at(own, state, &word)?;
            if let Some(axis) = s.stage(own)?.leaves().last().cloned() {
                s.vectorize(own, &axis)?;
            }
        }
        copy_slab(s, copy, extent, sketch.lanes, &[(ThreadTag::ThreadX, sketch.rows)], true)?;
    }
    Ok(())
}
