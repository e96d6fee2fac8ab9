//! `gpu_rows`: the folded elements lie next to each other, and blocks of threads fold them.
//!
//! The threads of a row stand side by side on its elements, each on as many neighbours as one access holds, so that a warp
//! reads whole sectors; several accesses of a thread are in flight, and where the reducer has a quick step for what they
//! bring, they are one run of it. The row's threads then fold their partial states together. Short rows share a block.
//! Pieces that lie apart are dealt evenly (`gpu_even`) where that can be had and pays.
//! Few long rows are split into chunks whose partial states a second launch folds, or, where the input is not large, that
//! block of a row that ends last. Large inputs of few long rows are swept: each block folds one piece, in the order of memory, all of
//! which it asks for at once; where many pieces leave more than one block folds in time, a cluster folds it. Long rows that begin anywhere are read by whole accesses from their first boundaries
//! (`peel`), and the threads fold the ends with their words (`zip`). Measured: `bench/results`.

use coulis_ir::{MemScope, NanPolicy, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, StageId};
use coulis_tensor::IterVar;

use super::gpu_even::{dealt_evenly, split_pieces};
use super::gpu_finish::{bind_chunks, fold_chunks, fold_chunks_in_last_block};
use super::gpu_steps::{
    Fold, bind_rows, fold_by_threads, pass_caches, place_rows, split_fold, widest_access,
};
use super::gpu_sweep::sweep;
use super::map_steps::{map_row_by_threads, root};
use super::steps::stage_of;
use super::waves::{cut_pieces, whole_steps, whole_turns};
use super::{
    Chunks, Decline, Facts, LastFold, Machine, Run, Sketch, Strategy, WholeCall, ceil_div, floor_pow2,
    state_bytes,
};
use crate::constants::NEAR;
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
pub const BLOCK: i64 = 256;
/// The same where states are large: a block of so many registers leaves little room for another beside it.
pub const BLOCK_OF_LARGE: i64 = 128;
/// The same where few rows are split.
const BLOCK_OF_SPLIT: i64 = 512;
/// The same of long rows: the fewer of them a multiprocessor reads at a time, the closer it reads in the order of memory.
pub const BLOCK_OF_LONG: i64 = 512;
/// The same where memory is swift, as threads bring their states together while it waits.
const BLOCK_OF_LONG_AND_SWIFT: i64 = 256;
/// The same where states are small.
const BLOCK_OF_LONG_AND_SMALL: i64 = 1024;
/// Most bytes of a small state.
const SMALL_STATE: i64 = 8;
/// Bytes of a row from which on it is long.
const LONG_ROW_BYTES: i64 = 36 << 10;
/// Fewest times that the machine holds as many blocks as there are long rows.
pub const FEWEST_WAVES: i64 = 4;
/// Bytes of a long row for each of its threads, at least.
const THREAD_BYTES_OF_LONG: i64 = 32;
/// Bytes of a state from which on it is large.
pub const LARGE_STATE: i64 = 56;
/// Bytes of a row for each of its threads where states are large, as folding those of the threads together takes long, of
/// elements of one byte; of wider ones, with less to do for a byte, as many times fewer as they are wider, up to [`WIDEST`].
const THREAD_BYTES_OF_LARGE: i64 = 1024;
/// See [`THREAD_BYTES_OF_LARGE`].
const WIDEST: i64 = 4;
/// Times as many of narrow elements where memory is swift.
const SWIFT_OF_LARGE: i64 = 4;
/// Times as many threads a multiprocessor holds as it has registers for where states are large.
pub const CROWD_OF_LARGE: i64 = 2;
/// Part of the threads that a multiprocessor holds for which it has registers where, besides, a thread asks for all words of a step
/// before it folds any: seven blocks of 128 threads, of 72 registers each, in the place of sixteen.
const AT_ONCE_WITH_WORDS: (i64, i64) = (7, 16);
/// Accesses that each thread has in flight.
const IN_FLIGHT: i64 = 4;
/// Most elements of a run that is walked a second time.
const MOST_KEPT: i64 = 32;
/// Accesses that a thread asks for before it folds any, where states are not small and each of several runs ends in a branch.
const ASKED_FIRST: i64 = 8;
/// Bytes of a row for each of its threads, at least; fewer where there are not enough rows for all threads of the machine,
/// and where accesses are of one element.
const THREAD_BYTES: i64 = 256;
/// See [`THREAD_BYTES`].
const THREAD_BYTES_OF_FEW: i64 = 64;
/// The same where states are small.
const THREAD_BYTES_OF_SMALL: i64 = 64;
/// Bytes of a row, at most, that one thread folds by itself where no access takes several of its elements.
const BYTES_OF_ONE: i64 = 32;
/// Fewest turns of a chunk.
const FEWEST: i64 = IN_FLIGHT;
/// Bytes of partial states for each block that a multiprocessor holds, where rows are split: so many blocks follow it, and
/// so much the second launch reads.
pub const WAVE_BYTES: i64 = 16;

/// Bytes of accesses that are so many that rows are read from their first boundaries instead: fewer than these.
const NARROW_ACCESS: i64 = 4;
/// The same of narrow elements where memory is swift.
const NARROW_OF_SWIFT: i64 = 8;
/// Fewest bytes of such rows.
const PEELED_BYTES: i64 = 1 << 9;
/// Bytes below which a row is to fill so much of the accesses of its turns.
const SHORT_BYTES: i64 = 1 << 10;
/// See [`SHORT_BYTES`].
const FILLED: (i64, i64) = (4, 5);
/// Work that the threads of a row that is not long may take to bring their states together for each of its bytes, of elements of one
/// byte and other narrow ones, which are more work themselves, and of others.
const GATHERING: [i64; 3] = [6, 6, 17];
/// The same where memory is swift.
const GATHERING_OF_SWIFT: [i64; 3] = [2, 4, 12];
/// Fewest threads of a row for that: by fewer, a warp would read pieces of what memory gives.
const FEWEST_TOGETHER: i64 = 2;
/// The same of elements of one byte where memory is swift, of rows of so many accesses and more.
const FEWEST_OF_BYTES: i64 = 4;
/// See [`FEWEST_OF_BYTES`].
const WORDS_OF_FEW: i64 = 16;
/// Bytes of a piece, at most, that chunks of rows in pieces take in turn.
const PIECE_BYTES: i64 = 64 << 10;

/// Most bytes of partial states of an output that one block folds in a second launch.
pub const STATES_OF_BLOCK: i64 = 128 << 10;
/// Partial states of an output that it folds, at most, where they are not small.
const PARTS_OF_BLOCK: i64 = 4 << 10;
/// Blocks of a cluster that fold more of them.
pub const LAST_BLOCKS: i64 = 8;

/// Bytes of input up to which an array is folded in one launch: where there are more, the launch counts for nothing.
pub const LAST_BLOCK_BYTES: i64 = 32 << 20;
/// Most bytes of partial states that one warp of the last block folds sooner than a second launch would.
const LAST_BLOCK_STATES: i64 = 4 << 10;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let Some((extent, _, true)) = facts.inner() else {
        return Err(Decline::new("a reduced innermost dimension", "a kept one, or none"));
    };
    if is_of_one(facts) {
        return Err(Decline::new("rows of more than a few elements that are read one by one", extent));
    }
    let as_they_begin = || {
        let sketch = sketch(facts, extent, Walk::AsRowsBegin);
        match has_short_pieces(facts) {
            true => dealt_evenly(facts, (facts.spec.n_pieces(), ceil_div(extent, sketch.lanes)), sketch),
            false => sketch,
        }
    };
    Ok(peeled(facts, extent).unwrap_or_else(as_they_begin))
}

/// Whether rows are better each one thread's: many of a few elements that are read one by one, near each other.
fn is_of_one(facts: &Facts) -> bool {
    let Spec { problem, inputs, map, .. } = facts.spec;
    let near = || {
        problem.dims.iter().filter(|dim| dim.is_reduced()).all(|dim| dim.strides[0].unsigned_abs() <= NEAR)
    };
    let are_many = problem.n_outputs >= i64::from(facts.target.n_threads);
    let bytes = problem.reduce_len.saturating_mul(inputs[0].bytes() as i64);
    let is_short = bytes <= BYTES_OF_ONE && map.is_none() && facts.spec.n_reduced() == 1;
    is_short && are_many && near() && facts.word_lanes(&facts.constants(true)) == 1
}

/// What is done with rows of `extent` elements that are read from their first boundaries; `None` where they are better read
/// otherwise.
pub fn peeled(facts: &Facts, extent: i64) -> Option<Sketch> {
    let peeled = gains_by_peeling(facts, extent).then(|| sketch(facts, extent, Walk::FromBoundaries))?;
    let words = extent / peeled.lanes;
    let in_turns = ceil_div(words, peeled.threads) * peeled.threads;
    let row_bytes = extent.saturating_mul(facts.spec.inputs[0].bytes() as i64);
    if row_bytes < SHORT_BYTES && FILLED.1 * words < FILLED.0 * in_turns {
        return None;
    }
    Some(peeled)
}

/// From where on accesses of a row are made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walk {
    /// From its begin, as wide as that allows in every row.
    AsRowsBegin,
    /// From its first boundary of the widest accesses; see [`Sketch::peeled`].
    FromBoundaries,
}

/// Whether rows are better read from their first boundaries than from their begins: long ones of one array, whose accesses
/// would be narrow and many.
fn gains_by_peeling(facts: &Facts, extent: i64) -> bool {
    let spec = facts.spec;
    let dims = &spec.problem.dims;
    let [dtype] = spec.inputs[..] else { return false };
    let bytes = dtype.bytes() as i64;
    let constant = facts.constants(true);
    let narrow =
        if facts.is_narrow() { facts.by_memory(NARROW_OF_SWIFT, NARROW_ACCESS) } else { NARROW_ACCESS };
    let is_row = facts.spec.n_reduced() == 1 && dims[dims.len() - 1].strides[0] == 1;
    is_row
        && may_peel(facts)
        && facts.word_lanes(&constant) < widest_access(facts)
        && facts.word_lanes(&constant) * bytes < narrow
        && extent.saturating_mul(bytes) >= PEELED_BYTES
}

/// Whether what is before the first boundary of a row and behind its last may be folded apart (`peel`): the elements of one array,
/// all of which take part, in any order.
pub fn may_peel(facts: &Facts) -> bool {
    let Spec { inputs, map, mask, reducer, .. } = facts.spec;
    let is_plain = map.is_none() && !mask && reducer.nan == NanPolicy::Propagate;
    inputs.len() == 1 && is_plain && reducer.claims.any_order() && facts.reads_elements()
}

/// Work that bringing states together may take for each byte of elements; see [`GATHERING`].
pub fn gathering_of_byte(facts: &Facts) -> i64 {
    let widest = facts.spec.widest_bytes();
    let width = [1, 2].iter().filter(|bytes| widest > **bytes).count();
    facts.by_memory(GATHERING_OF_SWIFT, GATHERING)[width]
}

/// Whether states are small, so that threads have little to do beside reading.
pub fn has_small_state(facts: &Facts) -> bool {
    let reducer = &facts.spec.reducer;
    state_bytes(reducer) <= SMALL_STATE && reducer.fields.len() == 1
}

/// Whether threads have so much in registers that few blocks are on a multiprocessor: large states, or what runs are walked again
/// for beside states that are not small.
pub fn is_crowded(facts: &Facts) -> bool {
    let state = state_bytes(&facts.spec.reducer);
    state >= LARGE_STATE || (facts.may_rewalk() && state >= LARGE_STATE / 2)
}

/// Whether a cluster may fold the parts of an output.
pub fn has_clusters(facts: &Facts) -> bool {
    i64::from(facts.target.cluster_blocks) >= LAST_BLOCKS
}

/// Whether the words of rows leave the caches before others, so many `rows` a block. What is read under a condition, the last of
/// several rows, is read once more where a run is walked again, which the first cache is for.
pub fn passes_caches(facts: &Facts, rows: i64) -> bool {
    let is_read_again = facts.may_rewalk() && rows > 1;
    facts.streams() && facts.spec.map.is_none() && !is_read_again
}

fn sketch(facts: &Facts, extent: i64, walk: Walk) -> Sketch {
    let problem = &facts.spec.problem;
    let warp = i64::from(facts.target.warp);
    let (lanes, words) = match walk {
        Walk::AsRowsBegin => {
            let lanes = facts.word_lanes(&facts.constants(true));
            (lanes, ceil_div(extent, lanes))
        }
        Walk::FromBoundaries => {
            let lanes = widest_access(facts);
            (lanes, (extent - lanes + 1) / lanes)
        }
    };
    let row_bytes = extent.saturating_mul(facts.spec.inputs[0].bytes() as i64);
    let are_many =
        problem.n_outputs.saturating_mul(row_bytes) / THREAD_BYTES >= i64::from(facts.target.n_threads);
    let state = state_bytes(&facts.spec.reducer);
    let is_large = state >= LARGE_STATE;
    let n_threads = i64::from(facts.target.n_threads);
    let is_split = problem.n_outputs.saturating_mul(2) < n_threads / BLOCK;
    let is_small = has_small_state(facts);
    let of_long = match is_small {
        true => BLOCK_OF_LONG_AND_SMALL,
        false => facts.by_memory(BLOCK_OF_LONG_AND_SWIFT, BLOCK_OF_LONG),
    };
    let is_long = row_bytes >= LONG_ROW_BYTES
        && problem.n_outputs.saturating_mul(of_long) >= FEWEST_WAVES.saturating_mul(n_threads);
    // Elements of one byte are more work, and the ends of their rows longer.
    let is_peeled_byte = walk == Walk::FromBoundaries && facts.spec.inputs[0].bytes() == 1;
    let (block, of_many) = match (is_large, is_split) {
        (true, _) => {
            let bytes = facts.spec.inputs[0].bytes() as i64;
            let are_more = problem.n_outputs.saturating_mul(warp) >= n_threads / CROWD_OF_LARGE;
            let times = if facts.is_narrow() && are_more { facts.by_memory(SWIFT_OF_LARGE, 1) } else { 1 };
            (BLOCK_OF_LARGE, times * THREAD_BYTES_OF_LARGE / bytes.min(WIDEST))
        }
        (false, true) => (BLOCK_OF_SPLIT, THREAD_BYTES),
        (false, false) if is_long => (of_long, THREAD_BYTES_OF_LONG),
        (false, false) if is_small => (BLOCK, THREAD_BYTES_OF_SMALL * if is_peeled_byte { 2 } else { 1 }),
        (false, false) => (BLOCK, THREAD_BYTES),
    };
    // A row of a warp's length and more has whole warps; each of its threads some bytes to fold.
    let threads = match words {
        0.. if words < warp => floor_pow2(words),
        _ if are_many && (lanes > 1 || is_long) => floor_pow2(row_bytes / of_many).clamp(warp, block),
        _ => floor_pow2(row_bytes / THREAD_BYTES_OF_FEW).clamp(warp, block),
    };
    let outer = facts.spec.n_pieces();
    // Blocks that all run at once leave none to wait for, where a row has a warp then.
    let at_once = |running: i64| {
        let of_each = running / problem.n_outputs.max(1);
        let threads = if is_large && of_each >= warp { threads.min(floor_pow2(of_each)) } else { threads };
        if is_split || is_long || facts.spec.map.is_some() {
            return threads;
        }
        let output_bytes = outer.saturating_mul(row_bytes);
        let fewest = if facts.has_swift_memory() && facts.spec.inputs[0].bytes() == 1 {
            // Rows that are walked once are better read by several threads than folded by few.
            if words >= WORDS_OF_FEW && !facts.may_rewalk() { FEWEST_OF_BYTES } else { 1 }
        } else {
            FEWEST_TOGETHER
        };
        facts.gathering_threads(threads, fewest, output_bytes, gathering_of_byte(facts))
    };
    let (part, of) = AT_ONCE_WITH_WORDS;
    let (threads, with_words) = (at_once(n_threads / CROWD_OF_LARGE), at_once(n_threads * part / of));
    let turns_of = |threads: i64| outer.saturating_mul(ceil_div(words, threads));
    let rows_of = |threads: i64| (block.min(BLOCK) / threads).max(1);
    let turns = turns_of(threads);
    let is_kept = facts.may_rewalk();
    let in_flight = match lanes > 1 {
        true if is_kept => IN_FLIGHT.min((MOST_KEPT / lanes).max(1)),
        true => IN_FLIGHT,
        false => 4 * IN_FLIGHT,
    };
    let sweep = sweep(facts, (words, outer), lanes, in_flight).filter(|_| walk == Walk::AsRowsBegin);
    let swept = sweep.is_some();
    let rows = rows_of(threads);
    let n_blocks = ceil_div(problem.n_outputs, rows);
    let waves = (WAVE_BYTES / state.max(1)).clamp(1, 8);
    let chunks = facts.block_chunks(n_blocks, turns, FEWEST, waves);
    let is_crowd = is_crowded(facts);
    let are_too_many = is_crowd && chunks * n_blocks * block > n_threads / CROWD_OF_LARGE;
    let chunks = if are_too_many && chunks % 2 == 0 { chunks / 2 } else { chunks };
    let is_much = lanes > 1 && is_kept && state >= LARGE_STATE / 2;
    let asks = is_much && chunks == 1 && !swept && walk == Walk::AsRowsBegin;
    // The words that are asked for take registers too, with which fewer blocks run at once, or not all of them do.
    let threads = if asks { with_words } else { threads };
    let (turns, rows) = (turns_of(threads), rows_of(threads));
    let unroll = floor_pow2(turns.clamp(1, if asks { ASKED_FIRST } else { in_flight }));
    let chunks = if chunks > 1 { whole_steps(turns, chunks, unroll, is_crowd) } else { chunks };
    // Pieces that are long are cut apart: blocks of no two of them.
    let is_apart = has_short_pieces(facts);
    let may_cut = rows == 1 && !swept && !is_apart && walk == Walk::AsRowsBegin;
    let whole = |turns, parts| whole_turns(turns, parts, unroll);
    let of_piece = ceil_div(words, threads);
    let cut = cut_pieces((outer, of_piece), chunks, FEWEST * unroll, &whole).filter(|_| may_cut);
    let cuts_inner = cut.is_some();
    let (chunks, chunk_turns) = cut.unwrap_or((chunks, 0));
    let (threads, unroll, rows, chunks) =
        sweep.map_or((threads, unroll, rows, chunks), |sweep| (sweep.threads, sweep.unroll, 1, sweep.chunks));
    // One warp folds few parts before a second launch has begun.
    let is_one = problem.n_outputs == 1;
    let are_too_many = chunks * state > STATES_OF_BLOCK || (chunks > PARTS_OF_BLOCK && !is_small);
    let last_blocks = if swept && are_too_many && has_clusters(facts) { LAST_BLOCKS } else { 1 };
    let is_short = (is_one || chunks > 1) && rows == 1 && facts.input_bytes() <= LAST_BLOCK_BYTES;
    let last_threads = if is_short { warp } else { 0 };
    // Without a row of its own for each block, kernels that know the number of rows need no guard; and a block can only be
    // the last of a known number.
    // A launch of its own for a map finds the row of each element by its place.
    let is_inside = chunks == 1 && facts.has_rows();
    let constant = facts.constants(rows == 1 && !is_short && (facts.spec.map.is_none() || is_inside));
    let run = facts.short_run(lanes, if swept { unroll.min(in_flight) } else { unroll });
    // What a step asks for is in one piece, or all of some: else it depends on the step how much of which.
    let are_whole = of_piece % unroll == 0 || (unroll % of_piece == 0 && facts.spec.n_reduced() == 2);
    let asks_first = asks && unroll * lanes > run && (facts.spec.n_reduced() == 1 || are_whole);
    // Rows in pieces that lie apart: blocks that take the pieces in turn read memory together, from end to end.
    let in_turn = chunks > 1 && last_threads == 0 && is_apart && !swept;
    let plain = facts.plain().with_map_inside(is_inside);
    let streams = walk == Walk::AsRowsBegin && passes_caches(facts, rows);
    let peeled = walk == Walk::FromBoundaries;
    Sketch {
        lanes,
        unroll,
        run: Run { asks_first, ..Run::of(run) },
        threads,
        rows,
        chunks: Chunks { turns: chunk_turns, cuts_inner, in_turn, swept, ..Chunks::of(chunks) },
        peeled,
        last: LastFold { threads: last_threads, blocks: last_blocks, ..plain.last },
        whole: WholeCall { streams, ..plain.whole },
        constant,
        ..plain
    }
}

/// Whether what an output folds lies in pieces of which a block takes several.
fn has_short_pieces(facts: &Facts) -> bool {
    let bytes = facts.spec.inputs[0].bytes() as i64;
    facts.spec.n_reduced() > 1
        && facts.inner().is_some_and(|(extent, ..)| extent.saturating_mul(bytes) <= PIECE_BYTES)
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let (words, ends) = if sketch.peeled {
        let row = s.stage(state)?.reduce_axes()[0].clone();
        let (words, ends) = s.peel(state, &row, sketch.lanes)?;
        (words, Some(ends))
    } else {
        (state, None)
    };
    let of_block = ends.filter(|_| sketch.chunks.n == 1).map(|ends| (ends, state));
    let split = match sketch.chunks.of_pieces {
        true => split_pieces(s, words, n_kept, sketch.lanes, sketch)?,
        false => split_fold(s, words, n_kept, n_kept, sketch.lanes, sketch)?,
    };
    let fold = Fold { ends: of_block, ..split };
    let mine = fold_by_threads(s, &fold, ThreadTag::ThreadX, &stmt.inputs, sketch)?;
    pass_caches(s, mine, sketch)?;
    if sketch.chunks.n == 1 && spec.map.is_none() {
        place_rows(s, state, output, n_kept, sketch.rows)?;
        // The last rows again cost less than a guard at each access.
        return if sketch.rows > 1 { s.clamp(state) } else { Ok(()) };
    }
    if sketch.map.inside {
        let row = place_rows(s, state, root(s, stmt, sketch)?, n_kept, sketch.rows)?;
        return map_row_by_threads(s, stmt, &row, sketch);
    }
    if sketch.chunks.n == 1 {
        return place_rows(s, state, output, n_kept, sketch.rows).map(drop);
    }
    let parts = sketch.chunks.n * state_bytes(&spec.reducer);
    if sketch.last.threads > 0 && sketch.rows == 1 && parts <= LAST_BLOCK_STATES {
        let of_parts = bind_chunks(s, fold.stage, n_kept, spec.problem.n_outputs)?;
        let row = fold_chunks_in_last_block(s, (fold.stage, words), output, n_kept, of_parts, sketch)?;
        return place_ends(s, (state, ends), output, &row);
    }
    if sketch.chunks.in_turn || sketch.chunks.swept && spec.problem.dims.len() > n_kept + 1 {
        // Blocks side by side are those of one piece after another.
        let mut order = s.stage(fold.stage)?.leaves()[..fold.n_kept].to_vec();
        order.rotate_right(1);
        s.reorder(fold.stage, &order)?;
        bind_rows(s, fold.stage, fold.n_kept, sketch.rows)?;
    } else if sketch.rows == 1
        && ThreadTag::BlockY.max_extent().is_none_or(|most| spec.problem.n_outputs <= most)
    {
        // Chunks are an index of their own, by which it is seen where accesses need no guards.
        bind_chunks(s, fold.stage, n_kept, spec.problem.n_outputs)?;
    } else {
        bind_rows(s, fold.stage, fold.n_kept, sketch.rows)?;
    }
    let row = fold_chunks(s, (fold.stage, words), output, n_kept, spec, sketch)?;
    place_ends(s, (state, ends), output, &row)
}

/// What `peel` left at the ends of a row that is folded in chunks is folded where these are brought together, by each thread.
fn place_ends(
    s: &mut Schedule,
    (state, ends): (StageId, Option<StageId>),
    output: StageId,
    row: &IterVar,
) -> Result<(), ScheduleError> {
    let Some(ends) = ends else { return Ok(()) };
    for stage in [state, ends] {
        s.set_scope(stage, MemScope::Local)?;
        s.compute_at(stage, output, row)?;
    }
    let axes = s.stage(ends)?.reduce_axes().to_vec();
    axes.iter().try_for_each(|axis| s.unroll(ends, axis))
}
