//! `gpu_odd_rows`: rows without gaps that begin where no wide access may, folded out of shared memory.
//!
//! Rows whose length is no multiple of an access could be read only element by element. As many of them as are together a
//! whole number of accesses begin where one may, so a block copies the slab of its rows to shared memory as one piece of
//! memory, by the widest accesses. Then the threads of each row stand side by side on its elements there, where neighbours
//! meet no bank twice, and fold their partial states together. Rows of a few elements are for `gpu_short_rows`, rows whose
//! slab is too large for shared memory, and longer ones of narrow elements, for `gpu_rows`. Measured: `bench/results`.

use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split};

use super::gpu_rows::{LARGE_STATE, has_small_state, peeled};
use super::gpu_steps::{
    apart_by_banks, copy_slab, dense_rows, fold_by_threads, rows_by_banks, slab_access, split_fold,
    widest_access,
};
use super::steps::stage_of;
use super::{Decline, Facts, Machine, Run, Sketch, Strategy, ceil_div, floor_pow2, state_bytes};
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
/// Work that the threads of a row may take to bring their states together for each of its bytes, of elements of up to 2 bytes,
/// which are more work themselves, of 4, and of more.
const GATHERING: [i64; 3] = [3, 7, 10];
/// The same where memory is swift and states are large.
const GATHERING_OF_SWIFT: [i64; 3] = [3, 5, 7];
/// The same where memory is swift and elements are of one byte.
const GATHERING_OF_SWIFT_BYTES: i64 = 1;
/// Fewest threads of a row for that.
const FEWEST_TOGETHER: i64 = 2;
/// Threads of a block, where slabs may be long enough for that, that hide from each other what each waits for; and where
/// states are large.
const BUSY: i64 = 256;
/// See [`BUSY`].
const BUSY_OF_LARGE: i64 = 128;
/// Most bytes of a slab of such states, of which a multiprocessor holds several so.
const MOST_BYTES_OF_LARGE: i64 = 24 << 10;
/// What is folded in turns that end as close to the row's as others, at most.
const CLOSE: (i64, i64) = (11, 10);
/// Fewest of them where elements are narrow, so that a thread seldom waits.
const BUSY_OF_NARROW: i64 = 128;
/// Bytes that a block copies, about, and at most.
const SLAB_BYTES: i64 = 16 << 10;
/// See [`SLAB_BYTES`].
const MOST_BYTES: i64 = 40 << 10;
/// Most bytes of a row that could be read from its first boundary.
const MOST_BYTES_OF_WORK: i64 = MOST_BYTES / 16;
/// Fewest blocks: with less than a few for each part of the machine, long rows are better split.
const FEWEST_BLOCKS: i64 = 128;
/// Bytes of an element from which on slabs of states that are not large are copied through registers: they go through the first-level
/// cache then.
const WIDE: usize = 4;
/// Elements that each thread of a row folds side by side.
const IN_FLIGHT: i64 = 16;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let spec = facts.spec;
    let (extent, bytes) = dense_rows(facts)?;
    let lanes = widest_access(facts);
    let together = lanes / facts.word_lanes(&facts.constants(false)).min(lanes);
    if together == 1 {
        return Err(Decline::new("rows that begin where no wide access may", "others"));
    }
    // Where threads have much to do, those of a row that begins anywhere have more for its ends than for reading its elements one
    // by one, unless they meet in banks.
    let is_peeled = peeled(facts, extent).is_some();
    let better = "rows that are better not read from their first boundaries";
    if is_peeled && (has_small_state(facts) || bytes > MOST_BYTES_OF_WORK) {
        return Err(Decline::new(better, extent));
    }
    let rows = floor_pow2(SLAB_BYTES / bytes).clamp(together, BLOCK);
    if rows * bytes > MOST_BYTES {
        return Err(Decline::new(
            format!("at most {} KiB of rows that are whole accesses together", MOST_BYTES >> 10),
            rows * bytes,
        ));
    }
    let n_rows = spec.problem.n_outputs;
    let is_large = state_bytes(&spec.reducer) >= LARGE_STATE;
    let (block, busy) = if is_large { (BLOCK_OF_LARGE, BUSY_OF_LARGE) } else { (BLOCK, BUSY) };
    let widest = spec.widest_bytes();
    let is_narrow = facts.is_narrow();
    // What few threads of a row save counts for more than blocks side by side where memory is swift.
    let counts = is_large && facts.has_swift_memory();
    let room = if is_large && !is_narrow && !counts { MOST_BYTES_OF_LARGE } else { MOST_BYTES };
    let most_rows = floor_pow2(room / bytes);
    let most = (block / rows).clamp(1, floor_pow2(extent / FEWEST));
    let fewest = if is_narrow { BUSY_OF_NARROW } else { busy } / most_rows;
    let per_byte = (if counts { GATHERING_OF_SWIFT } else { GATHERING })
        [[2, 4].iter().filter(|bytes| widest > **bytes).count()];
    let per_byte = if widest == 1 { facts.by_memory(GATHERING_OF_SWIFT_BYTES, per_byte) } else { per_byte };
    let gathered = facts.gathering_threads(most, fewest.max(FEWEST_TOGETHER), bytes, per_byte);
    let unroll = |threads: i64| floor_pow2(ceil_div(extent, threads)).min(IN_FLIGHT);
    let folded = |threads: i64| {
        let turn = threads * unroll(threads);
        ceil_div(extent, turn) * turn
    };
    // Fewer threads of a row leave a block room for more rows, unless these meet in banks where fewer do not.
    let met_of =
        |rows: i64, threads: i64| apart_by_banks((rows, threads), (extent, widest)).map_or(1, |(_, met)| met);
    let rows_of = |threads: i64| {
        let more = rows.max(most_rows.min(busy / threads));
        let are_enough = n_rows >= FEWEST_BLOCKS * more;
        let is_small = rows * threads < BUSY_OF_NARROW;
        if are_enough && (is_small || met_of(more, threads) <= met_of(rows, threads)) { more } else { rows }
    };
    let met = |threads: i64| met_of(rows_of(threads), threads);
    let threads = if widest == 1 {
        // Elements of one byte are more work for threads than for memory: then fewer threads whose turns end closer to that of the
        // row, and of those that do the ones that meet in the fewest banks.
        let fewer = || {
            [gathered, gathered / 2, gathered / 4].into_iter().filter(|n| *n >= fewest.max(most / 4).max(1))
        };
        let least = fewer().map(folded).min().unwrap_or(extent);
        let close = fewer().filter(|n| CLOSE.1 * folded(*n) <= CLOSE.0 * least);
        close.min_by_key(|n| met(*n)).unwrap_or(gathered)
    } else {
        gathered
    };
    if is_peeled && met(threads) > 1 {
        return Err(Decline::new(better, extent));
    }
    let rows = rows_of(threads);
    if n_rows < FEWEST_BLOCKS * rows {
        return Err(Decline::new(format!("rows for {FEWEST_BLOCKS} blocks"), n_rows));
    }
    let unroll = unroll(threads);
    let run = Run::of(facts.short_run(1, unroll));
    let lanes = slab_access(facts);
    let constant = facts.constants(false);
    Ok(Sketch { lanes, unroll, run, threads, rows, constant, ..facts.plain() })
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
    // The last rows again cost threads with much to do less than a guard at each access.
    if spec.reducer.fields.len() > 1 {
        s.clamp(state)?;
    }
    let read = s.stage(mine)?.reads();
    for input in stmt.inputs.iter().filter(|input| read.contains(input.buffer())) {
        let copy = s.cache_read(input, MemScope::Shared, &[mine.into()])?;
        s.compute_at(copy, output, &slab)?;
        let threads = [(ThreadTag::ThreadX, sketch.threads), (ThreadTag::ThreadY, sketch.rows)];
        let is_async = input.dtype().bytes() < WIDE || state_bytes(&spec.reducer) >= LARGE_STATE;
        copy_slab(s, copy, extent, sketch.lanes, &threads, is_async)?;
    }
    Ok(())
}
