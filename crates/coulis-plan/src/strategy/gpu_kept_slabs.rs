//! `gpu_kept_slabs`: short rows that a map reads again and that begin where no wide access may, out of shared memory and into it.
//!
//! Threads side by side on such rows would read and write pieces of accesses. So a block copies the slab of all its rows to
//! shared memory as one piece of memory, by the widest accesses; its threads fold each row there and write what the map gives to a
//! second slab, which leaves as one piece too. Rows of a few elements are each one thread's, whose neighbours meet no bank
//! twice; those of longer ones stand side by side. Rows that are whole accesses are for `gpu_kept_rows`, as are those whose
//! two slabs are too large. Measured: `bench/results`.

use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::IterVar;

use super::gpu_steps::{
    copy_piece, copy_slab, dense_rows_of, fold_by_threads, fold_own_row, rows_by_banks, runs_of_row,
    slab_access, split_fold, widest_access,
};
use super::kept::{readers_of, refs};
use super::map_steps::Keep;
use super::steps::stage_of;
use super::{Decline, Facts, Machine, Run, Sketch, Strategy, ceil_div, even_turns, floor_pow2, gcd, work};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "gpu_kept_slabs",
    machine: Machine::Threads,
    keeps_order: false,
    summary: "a block copies short rows that a map reads again to shared memory as one piece, and their results from there",
    propose,
    schedule,
};

/// Longest row, in elements: threads that keep theirs in registers are as quick where more sectors are whole.
const LONGEST: i64 = 128;
/// The same of narrow elements, of which a sector holds more; and where the map has functions such as `exp`, so that it is
/// threads that are waited for.
const LONGEST_OF_NARROW: (i64, i64) = (640, 176);
/// Work of a map that has such functions.
const WORK: usize = 64;
/// The same where slabs begin where the widest access may not.
const LONGEST_OF_NARROW_ACCESSES: i64 = 8;
/// Longest row of one thread.
const LONGEST_OF_ONE: i64 = 96;
/// Bytes of a row and its results of which a multiprocessor's memory holds too few for one thread each.
const LONG_BYTES: i64 = 360;
/// Threads of a block, at most and at least.
const BLOCK: i64 = 256;
/// See [`BLOCK`].
const SMALLEST_BLOCK: i64 = 64;
/// Bytes of the two slabs of a block, about; at most; and, where there are rows enough, at least.
const SLABS_BYTES: i64 = 28 << 10;
/// See [`SLABS_BYTES`].
const MOST_BYTES: i64 = 44 << 10;
/// See [`SLABS_BYTES`].
const FEWEST_BYTES: i64 = 12 << 10;
/// Most rows of a thread.
const MOST_ROWS: i64 = 8;
/// Elements of a longer row for each of its threads.
const THREAD_ELEMENTS: i64 = 8;
/// The same of narrow ones: what threads do to bring their states together is then more than what memory takes for a row.
const THREAD_ELEMENTS_OF_NARROW: i64 = 20;
/// Elements that a thread of a longer row folds side by side.
const IN_FLIGHT: i64 = 16;
/// Elements of a row that a thread maps side by side.
const MAPPED: i64 = 16;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let spec = facts.spec;
    let Some(map) = &spec.map else {
        return Err(Decline::new("a map after each row", "none"));
    };
    let result = spec.n_read() + map.beside.len();
    let (extent, read) = dense_rows_of(facts, 0..spec.n_read())?;
    dense_rows_of(facts, result..result + 1)?;
    let of_rows = |array: usize| spec.problem.dims[0].strides[array] != 0;
    if (spec.n_read()..result).any(of_rows) || spec.outputs.iter().any(|output| output.beta != 0.0) {
        return Err(Decline::new("no arrays of rows beside the input and the result", "some"));
    }
    let written = spec.result_bytes();
    let bytes = read + extent * written;
    let lanes = slab_access(facts);
    let widest = widest_access(facts);
    if extent % widest == 0 || (lanes < widest && extent > LONGEST_OF_NARROW_ACCESSES) {
        return Err(Decline::new(
            "rows that are no whole number of accesses, short ones where slabs begin anywhere",
            extent,
        ));
    }
    let is_narrow = facts.is_narrow();
    let (longest, thread_elements) = match is_narrow {
        true if work(&map.lambda) < WORK => (LONGEST_OF_NARROW.0, THREAD_ELEMENTS_OF_NARROW),
        true => (LONGEST_OF_NARROW.1, THREAD_ELEMENTS_OF_NARROW),
        false => (LONGEST, THREAD_ELEMENTS),
    };
    if extent > longest {
        return Err(Decline::new("fewer elements in a row", extent));
    }
    let n_rows = spec.problem.n_outputs;
    let n_multiprocessors = i64::from(facts.target.n_multiprocessors());
    let is_short = extent <= LONGEST_OF_ONE && bytes < LONG_BYTES;
    let (rows, threads) = if is_short {
        let rows = floor_pow2(SLABS_BYTES / bytes).clamp(SMALLEST_BLOCK, BLOCK);
        (rows.min(floor_pow2(n_rows / n_multiprocessors)), 1)
    } else {
        let threads = floor_pow2(extent / thread_elements).min(i64::from(facts.target.warp));
        let together = lanes.max(i64::from(facts.target.vector_bytes) / written.max(1));
        let rows = floor_pow2(SLABS_BYTES / bytes).min(BLOCK / threads);
        (rows.min(floor_pow2(n_rows / n_multiprocessors)).max(together), threads)
    };
    if (rows < SMALLEST_BLOCK && is_short) || n_rows < n_multiprocessors * rows {
        return Err(Decline::new("rows for a block on each multiprocessor", n_rows));
    }
    if rows * bytes > MOST_BYTES {
        return Err(Decline::new(
            format!("at most {} KiB of rows and results", MOST_BYTES >> 10),
            rows * bytes,
        ));
    }
    let (unroll, run) = if is_short {
        // As many rows a thread as make slabs worth their block, where that leaves each multiprocessor several.
        let all = i64::from(facts.target.n_threads);
        let unroll = floor_pow2((FEWEST_BYTES / (rows * bytes)).min(n_rows / all)).clamp(1, MOST_ROWS);
        (unroll, runs_of_row(facts, extent, gcd(extent, lanes)))
    } else {
        let unroll = even_turns(ceil_div(extent, threads), IN_FLIGHT);
        (unroll, facts.even_run(unroll))
    };
    let plain = facts.plain().with_map_kept(Keep::Shared);
    Ok(Sketch { lanes, unroll, run: Run::of(run), threads, rows, constant: facts.constants(false), ..plain })
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let Some(map) = &stmt.map else { return Ok(()) };
    let (state, finished, map) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?, stage_of(s, map)?);
    let extent = spec.problem.dims[1].extent;
    let threads = match sketch.threads {
        1 => vec![(ThreadTag::ThreadX, sketch.rows)],
        several => vec![(ThreadTag::ThreadX, several), (ThreadTag::ThreadY, sketch.rows)],
    };
    // What the map gives goes to a slab, and the map's own stage takes it from there.
    let mapped = s.cache_write(map, MemScope::Shared)?;
    let [row, element] = pair(s, map)?;
    let own_rows = if sketch.threads == 1 { sketch.unroll } else { 1 };
    let (slab, within) = s.split(map, &row, Split::Factor(sketch.rows * own_rows))?;
    s.bind(map, &slab, ThreadTag::BlockX)?;
    s.compute_at(mapped, map, &slab)?;
    let written = spec.widest_result_bytes();
    let width = sketch.lanes * spec.widest_bytes();
    copy_piece(s, map, &[within, element], (width / written).max(1), &threads)?;

    let [mut row, element] = pair(s, mapped)?;
    let mut reader = state;
    let mut own = None;
    if sketch.threads == 1 {
        let (turn, thread) = s.split(mapped, &row, Split::Factor(sketch.rows))?;
        s.reorder(mapped, &[thread.clone(), turn.clone()])?;
        s.bind(mapped, &thread, ThreadTag::ThreadX)?;
        row = turn;
        own = Some(fold_own_row(s, state, (extent, gcd(extent, sketch.lanes)), sketch)?);
        let (_, few) = s.split(mapped, &element, Split::Factor(MAPPED))?;
        s.unroll(mapped, &few)?;
    } else {
        row = rows_by_banks(s, mapped, row, extent, spec, sketch)?;
        s.bind(mapped, &row, ThreadTag::ThreadY)?;
        let by_elements = Sketch { lanes: 1, ..sketch.clone() };
        let fold = split_fold(s, state, 1, 1, 1, &by_elements)?;
        reader = fold_by_threads(s, &fold, ThreadTag::ThreadX, &[], &by_elements)?;
        let (turn, thread) = s.split(mapped, &element, Split::Factor(sketch.threads))?;
        s.bind(mapped, &thread, ThreadTag::ThreadX)?;
        let (_, few) = s.split(mapped, &turn, Split::Factor(sketch.unroll))?;
        s.unroll(mapped, &few)?;
    }
    for stage in [state, finished] {
        s.set_scope(stage, MemScope::Local)?;
        s.compute_at(stage, mapped, &row)?;
    }
    for input in &stmt.inputs {
        let readers = readers_of(s, input, [reader, mapped])?;
        if readers.is_empty() {
            continue;
        }
        let copy = s.cache_read(input, MemScope::Shared, &refs(&readers))?;
        s.compute_at(copy, map, &slab)?;
        if let Some((word, Some(_))) = &own
            && s.stage(state)?.reads().contains(&s.stage(copy)?.outputs()[0])
        {
            let copied = s.stage(copy)?.outputs()[0].clone();
            let own = s.cache_read(&copied, MemScope::Local, &[state.into()])?;
            s.compute_at(own, state, word)?;
            if let Some(axis) = s.stage(own)?.leaves().last().cloned() {
                s.vectorize(own, &axis)?;
            }
        }
        copy_slab(s, copy, extent, sketch.lanes, &threads, true)?;
    }
    Ok(())
}

/// The two loops of a stage over elements of rows.
fn pair(s: &Schedule, stage: StageId) -> Result<[IterVar; 2], ScheduleError> {
    let leaves = s.stage(stage)?.leaves();
    Ok([leaves[0].clone(), leaves[1].clone()])
}
