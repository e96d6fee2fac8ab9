//! `gpu_columns`: the innermost dimension is kept, so neighbouring threads fold neighbouring outputs.
//!
//! A block covers a strip of outputs; a thread takes as many neighbours as one access holds, and no more than its registers
//! have room for states. Several threads share them: they fold different rows of the reduced dimensions, and then their
//! partial states. Few strips are split into chunks of the rows, as many as blocks run at once, whose partial states that
//! block of a strip folds which ends last, or, where they are many, a second launch. Where the rows are pieces that lie apart, chunks are
//! pieces or parts of one. Columns of a few elements are a thread's from several strips, so that it has enough to ask for.
//!
//! Rows that are no whole number of accesses are walked several as one, which is: each place of an access then has columns
//! of its own in every turn, and the second launch also folds the rows that were joined. Measured: `bench/results/h100-experiments.md`.

use coulis_ir::{Attr, MemScope, ThreadTag};
use coulis_schedule::{GridFinish, Schedule, ScheduleError, Split, StageId};
use coulis_tensor::IterVar;

use super::access::WORD_BYTES;
use super::gpu_finish::{Finish, fold_chunks_beside, fold_side_by_side};
use super::gpu_rows::{LARGE_STATE, LAST_BLOCK_BYTES, LAST_BLOCKS, gathering_of_byte, has_clusters};
use super::gpu_steps::{as_one, split_fold};
use super::joined::{LARGE, LIGHT_STATE, MOST_BESIDE, Row, split_joined};
use super::steps::{same_axis, stage_of};
use super::waves::{
    are_better_wide, balanced, blocks_by, cut_pieces, filled, held, is_close, registers, resident,
    whole_turns,
};
use super::{
    Chunks, Decline, Facts, LastFold, Machine, Run, Sketch, Strategy, Tile, calls_functions, ceil_div,
    floor_pow2, state_bytes,
};
use crate::program::{Spec, Statement};
use crate::room::word_bytes;

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
/// The index of a block that counts the outer indices that it takes together.
pub(super) const OUTER: ThreadTag = ThreadTag::ThreadZ;
/// Bytes of states that are many for a block to leave. Blocks of large arrays that are whole rows, walked as one, then are as
/// large as they may be: they are few, and each reads one piece of memory, which begins where lines of it do.
const LEFT_STATES: i64 = 192;
/// Bytes of a sector, the least that memory gives.
pub const SECTOR_BYTES: i64 = 32;
/// Bytes of neighbouring results that a thread stores, at most, where results are as many bytes as elements; and where those of an
/// output are more than a sector.
const STORED: i64 = 16;
/// See [`STORED`].
const STORED_OF_MANY: i64 = 8;
/// Bytes that each thread has asked for before it folds them.
const IN_FLIGHT: i64 = 64;
/// Most accesses that each thread has in flight.
const MOST_ACCESSES: i64 = 8;
/// Fewest turns of a chunk.
const FEWEST: i64 = 16;
/// The same where rows are walked as one by accesses that are not the widest, which its fewer states leave room for.
const IN_FLIGHT_OF_JOINED: i64 = 128;
/// Most elements of them.
const MOST_ELEMENTS: i64 = 32;
/// Longest run of a quick step, all of which is in flight.
const LONGEST_RUN: i64 = 8;
/// The same of wide elements where memory is swift.
const LONGEST_OF_SWIFT: i64 = 16;
/// The same of narrow elements with large states or several fields, whose threads have few neighbours each, in short accesses, and
/// much to do with each of them and at the end of a run; and of elements of one byte with light states of several fields, which the end of a run costs the most.
const LONGEST_OF_WORK: i64 = 16;
/// Fields of a run that are several.
const MANY_FIELDS: usize = 4;
/// Runs of a thread that are enough for longer ones.
const MANY_RUNS: i64 = 4;
/// Bytes of states that one thread keeps: the compiler holds them up to twice, the total and the run.
pub const THREAD_STATE: i64 = 96;
/// The same of a run that is all that a thread of the largest blocks folds.
const THREAD_RUN: i64 = 64;
/// Threads of a multiprocessor that ask for as much memory as it can take; more make more partial states.
const BUSY_THREADS: i64 = 1024;
/// The same of elements of one byte in runs of more than [`LONGEST_RUN`], all of which is in flight.
const BUSY_OF_LONG: i64 = 512;
/// The same where rows are walked as one, and the second launch would have many partial states to read or there is much to read
/// first. Elements of one byte are more work for threads than for memory, unless blocks are whole rows.
const BUSY_OF_JOINED: i64 = 640;
/// The same of short accesses, of which a run has less in flight.
const BUSY_OF_SHORT: i64 = 768;
/// The same of elements that are a word of registers each, which take the least of them.
const BUSY_OF_WORDS: i64 = 512;
/// Bytes of partial states that are many.
const MANY_PARTS: i64 = 512 << 10;
/// Most bytes of partial states of an output that one block of a second launch reads in little time.
const STATES_READ_SOON: i64 = 32 << 10;
/// Most bytes of partial states that the last block of a strip folds sooner than a second launch would.
const LAST_STATES: i64 = 16 << 10;
/// Bytes of partial states that a thread of it reads at once.
const LAST_BYTES: i64 = 64;
/// Strips of columns of one thread each from which on blocks have as many threads as others.
const MANY_STRIPS: i64 = 1 << 15;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let Some(row) = Row::kept(facts) else {
        return Err(Decline::new("a kept innermost dimension", "a reduced one, or none"));
    };
    if !facts.spec.problem.dims.iter().any(super::super::problem::Dim::is_reduced) {
        return Err(Decline::new("a reduced dimension", "none"));
    }
    Ok(sketch(facts, &row))
}

/// What is done with columns of such rows.
pub fn sketch(facts: &Facts, of: &Row) -> Sketch {
    let problem = &facts.spec.problem;
    let Row { extent, beside, .. } = *of;
    let constant = facts.constants(false);
    let state = state_bytes(&facts.spec.reducer);
    // Two of narrow elements even where their states are large: single ones would be small pieces of what memory gives.
    let narrow = if facts.spec.inputs[0].bytes() < 4 { 2 } else { 1 };
    let of_states = floor_pow2(THREAD_STATE / word_bytes(&facts.spec.reducer.identity)).max(narrow);
    let stored = if beside > 1 { i64::MAX } else { stored_side_by_side(facts) };
    let most_lanes = if facts.room.has_outputs() { of_states.min(stored) } else { 1 };
    let alone = of.word_lanes(facts, &constant).min(most_lanes);
    let (lanes, joined) = of.joined(facts, &constant, most_lanes).unwrap_or((alone, 1));
    let are_parts = joined > 1 || beside > 1;
    let (row, rows) = (extent.saturating_mul(joined), problem.reduce_len / beside / joined);
    let words = ceil_div(row, lanes);
    let n_outer = problem.n_outputs / (extent / beside).max(1);
    let n_multiprocessors = i64::from(facts.target.n_multiprocessors());
    let [one, two] = [1, 2].map(|warps| strip(words, warps * i64::from(facts.target.warp)));
    // Strips of narrow elements are more work for threads than for memory.
    let begin_within = extent * facts.spec.inputs[0].bytes() as i64 % SECTOR_BYTES != 0;
    let may_widen = begin_within && n_outer == 1 && !facts.is_narrow();
    let at_once = n_multiprocessors * resident(facts.target, BLOCK, lanes * state, BUSY_THREADS);
    let is_wide = may_widen && are_better_wide(ceil_div(words, one), ceil_div(words, two), at_once);
    let side_by_side = if is_wide { two } else { one };
    let access = lanes * facts.spec.inputs[0].bytes() as i64;
    let in_flight = if joined > 1 && access < i64::from(facts.target.vector_bytes) {
        (IN_FLIGHT_OF_JOINED / access).clamp(1, (MOST_ELEMENTS / lanes).max(MOST_ACCESSES))
    } else {
        (IN_FLIGHT / access).clamp(1, MOST_ACCESSES)
    };
    // Threads that share an output, each with rows to ask for while it folds others.
    let is_large = facts.input_bytes() >= LARGE;
    let is_narrow = joined == 1 && access < i64::from(facts.target.vector_bytes);
    let at_least = if is_large && is_narrow { 2 * in_flight } else { in_flight };
    // A thread of the largest has registers for so many states and no more.
    let has_room = lanes * state <= THREAD_STATE;
    let quick = facts.spec.reducer.quick.as_ref();
    let run_bytes = quick.map_or(0, |quick| word_bytes(&quick.identity));
    let leaves_many = joined > 1 && words == side_by_side && row.saturating_mul(state) >= LEFT_STATES;
    let block =
        if leaves_many && has_room && is_large { i64::from(facts.target.block.threads) } else { BLOCK };
    let threads = floor_pow2((rows / at_least).clamp(1, (block / side_by_side).max(1)));
    let bytes = facts.spec.inputs[0].bytes();
    // Threads enough, each with a column that is one run.
    let is_short = rows <= LONGEST_OF_WORK && n_outer.saturating_mul(words) >= facts.target.n_threads.into();
    let threads = if is_short { 1 } else { threads };
    // Columns of a few words in each of many panels: the less of what is folded of one is brought together.
    let threads = match joined {
        1 => facts.gathering_threads(threads, 1, rows.saturating_mul(bytes as i64), gathering_of_byte(facts)),
        _ => threads,
    };
    let mut reduced = problem.dims.iter().rev().filter(|dim| dim.is_reduced()).skip(usize::from(beside > 1));
    let innermost = reduced.next().map_or(1, |dim| dim.extent / joined).max(1);
    let threads = if are_parts { threads } else { dividing(innermost, rows, threads) };
    // Blocks of so little begin no sooner than others end: fewer of them have more threads.
    let n_strips = n_outer.saturating_mul(ceil_div(words, side_by_side));
    let stored = facts.spec.result_bytes();
    let is_crowd = threads == 1 && stored <= STORED && words >= BLOCK && n_strips >= MANY_STRIPS;
    let side_by_side = if is_crowd { BLOCK.max(side_by_side) } else { side_by_side };
    let turns = ceil_div(rows, threads);
    let is_work = narrow > 1 && state >= LARGE_STATE;
    let has_runs = facts.short_run(1, floor_pow2(turns.clamp(1, LONGEST_RUN))) > 1;
    let has_several = quick.is_some_and(|quick| quick.identity.len() > 1);
    let is_byte = bytes == 1 && state <= LIGHT_STATE && has_runs && has_several;
    let has_fields = narrow > 1 && quick.is_some_and(|quick| quick.identity.len() >= MANY_FIELDS);
    let longest = match has_fields && turns >= MANY_RUNS * LONGEST_OF_WORK {
        _ if is_work => LONGEST_OF_WORK,
        true => (IN_FLIGHT / access).clamp(LONGEST_RUN, LONGEST_OF_WORK),
        false if is_byte => LONGEST_OF_WORK,
        false if narrow == 1 => facts.by_memory(LONGEST_OF_SWIFT, LONGEST_RUN),
        false => LONGEST_RUN,
    };
    // Elements that are always walked again stay in registers, narrow ones widened, and threads of the largest blocks have few.
    let is_kept = narrow > 1 && facts.always_rewalks();
    let is_long = lanes * longest > MOST_ELEMENTS;
    let longest = if block > BLOCK && is_kept && is_long { longest / 2 } else { longest };
    let (run, unroll) = if is_short {
        (facts.even_run(turns), turns)
    } else {
        let run = facts.short_run(1, floor_pow2(turns.clamp(1, longest)));
        (run, if run > 1 { run } else { floor_pow2(turns.clamp(1, in_flight)) })
    };
    let tile = lanes * side_by_side;
    // Few threads for the outputs of one outer index: a block takes several.
    let together = side_by_side * threads;
    let most = n_outer.min(OUTER.max_extent().unwrap_or(i64::MAX)).max(1);
    let outer = if joined == 1 && words <= side_by_side { (BLOCK / together).clamp(1, most) } else { 1 };
    let n_blocks = ceil_div(n_outer, outer) * ceil_div(row, tile);
    // Registers are those of whole warps.
    let warp = i64::from(facts.target.warp);
    let of_block = ceil_div(together * outer, warp) * warp;
    // Parts so that all blocks run at once: they are alike, and the second launch has the less to read.
    let busy = if is_byte && run > LONGEST_RUN { BUSY_OF_LONG } else { BUSY_THREADS };
    let resident = resident(facts.target, of_block, lanes * state, busy);
    let mut at_once = n_multiprocessors * resident;
    let parts = (at_once / n_blocks.max(1)).saturating_mul(row).saturating_mul(state);
    let has_many_parts = parts > MANY_PARTS && (bytes > 1 || n_blocks == 1);
    let is_late = facts.has_swift_memory() && calls_functions(&facts.spec.reducer.combine);
    if joined > 1 && !is_late && (has_many_parts || is_large && bytes > 1) {
        let busy = match bytes as i64 {
            WORD_BYTES if is_large => BUSY_OF_WORDS,
            _ if narrow > 1 && run > 1 && run * access <= IN_FLIGHT => BUSY_OF_SHORT,
            _ => BUSY_OF_JOINED,
        };
        at_once = n_multiprocessors * (busy / together.max(1)).clamp(1, resident);
    }
    // Blocks that have more work than memory has bytes for them wait for the last of their wave.
    let wanted = match n_blocks > at_once && (is_work && is_large || resident == 1) {
        true => balanced(n_blocks, at_once),
        false => filled(n_blocks, at_once, n_multiprocessors * resident),
    };
    let fewest = FEWEST.max(run);
    let wanted = if facts.parallel() { wanted.clamp(1, (turns / fewest).max(1)) } else { 1 };
    let in_turn = row <= MOST_BESIDE * tile && n_outer == 1;
    // Rows in pieces that lie apart: of chunks that are pieces or parts of them no thread has a row fewer than others but at their
    // end, where others would be under a condition that is another in each piece. The last step of a chunk, which is not whole, is
    // dear where there is much to do with each element.
    let (pieces, of_piece) = (rows / innermost, ceil_div(innermost, threads));
    let whole = |turns, parts| whole_turns(turns, parts, unroll).filter(|_| has_several);
    let may_cut = !are_parts && !in_turn;
    let cut = cut_pieces((pieces, of_piece), wanted, fewest, &whole).filter(|_| may_cut);
    let cuts_inner = cut.is_some();
    let shares_all =
        joined == 1 && !cuts_inner && threads > 1 && innermost % threads != 0 && (bytes == 1 || pieces > 1);
    let (chunks, chunk_turns) = cut.unwrap_or_else(|| {
        let all = if shares_all { turns } else { pieces * of_piece };
        (wanted, whole(all, wanted).filter(|_| may_cut).unwrap_or(0))
    });
    // Strips that are alike leave each block what it alone reads; where rows are joined, an output is in one strip only if
    // there is but one.
    let are_apart = if joined == 1 { beside == 1 && row % tile == 0 } else { beside == 1 && row == tile };
    let handed = chunks.saturating_mul(tile).saturating_mul(state);
    let is_short = facts.input_bytes() <= LAST_BLOCK_BYTES && handed <= LAST_STATES;
    // Blocks of one launch that do another's have as many threads in both: a row for each of those that share an output.
    let are_alike = threads <= innermost;
    let in_last = chunks > 1 && outer == 1 && are_apart && is_short && are_alike;
    let is_close = is_close(facts.target, of_block, lanes * state, BUSY_THREADS);
    let has_guards = run == 1 && row % tile != 0;
    // Left to the compiler, what is read of one array is folded before more of another is asked for.
    let reads_several = run == 1 && facts.spec.inputs.len() > 1;
    let is_dear = bytes == 1 || (is_close || has_guards) && !facts.is_narrow() || reads_several;
    let held = if are_parts || chunks > 1 && is_dear {
        resident
    } else if chunks == 1 && run > 1 && is_large && !facts.is_narrow() {
        // What a run walks again stays in registers, and so does what is compared and then kept with its position. Guards take more, and
        // of blocks of many threads one fewer is much.
        let reads_again = facts.always_rewalks() || !facts.spec.reducer.ignores_position();
        let words = if reads_again { run * lanes * bytes as i64 / WORD_BYTES } else { 0 };
        let most = blocks_by(facts.target, of_block, registers(lanes * state) + words);
        let is_tight = of_block >= BLOCK && row % tile != 0;
        held(n_blocks, n_multiprocessors, if is_tight { resident.min(most) } else { resident }, most)
    } else {
        0
    };
    // Few outputs of many partial states are more than a block of each reads in time.
    let of_output = chunks.saturating_mul(joined * beside).saturating_mul(state);
    let are_few = of_output > STATES_READ_SOON
        && problem.n_outputs.saturating_mul(LAST_BLOCKS) <= 2 * n_multiprocessors;
    let last_blocks = if beside > 1 && are_few && has_clusters(facts) { LAST_BLOCKS } else { 1 };
    // All that a thread reads of short columns is less than is to be under way: it has columns of several strips.
    let is_whole = chunks == 1 && !are_parts;
    let asked = rows.saturating_mul(access).max(1);
    let strips = if is_whole && threads == 1 && outer == 1 && is_large && n_blocks >= at_once {
        floor_pow2((IN_FLIGHT / asked).clamp(1, MOST_ACCESSES))
    } else {
        1
    };
    let is_all = run == 1 && facts.is_one_run(turns) && (block == BLOCK || lanes * run_bytes <= THREAD_RUN);
    let plain = facts.plain();
    Sketch {
        last: LastFold { threads: if in_last { together } else { 0 }, blocks: last_blocks, ..plain.last },
        tile: Tile { together: strips, ..Tile::of(tile) },
        lanes,
        unroll,
        run: Run { is_all, ..Run::of(run) },
        threads,
        rows: outer,
        chunks: Chunks {
            turns: chunk_turns,
            // Reads are to be many under way, between which no condition stands.
            shares_all,
            // Blocks that are whole rows, or nearly, then read one piece of memory together, from end to end.
            in_turn,
            cuts_inner,
            ..Chunks::of(chunks)
        },
        joined,
        beside,
        // What is left over at the end of joined rows would take registers from the loop, what takes bytes out of words would be done
        // before all of them have come, and wide elements of states that leave no room would take the few registers of a block. With
        // few registers and much to do, or with guards, a thread has fewer words under way.
        resident: held,
        constant,
        ..plain
    }
}

/// Threads that share an output of so many `rows`, about as many as are wanted: where these are several pieces of `innermost`
/// rows, as many as leave no thread a row fewer in each, of which every read would be one under a condition.
fn dividing(innermost: i64, rows: i64, wanted: i64) -> i64 {
    if wanted == 1 || innermost >= rows || innermost % wanted == 0 {
        return wanted;
    }
    let most = (2 * wanted).min(innermost / FEWEST);
    (wanted / 2..=most).rev().find(|threads| *threads > 1 && innermost % threads == 0).unwrap_or(wanted)
}

/// Whether the results of an output are as many bytes as its elements.
fn stores_much(spec: &Spec) -> bool {
    spec.result_bytes() >= spec.problem.reduce_len.saturating_mul(spec.inputs[0].bytes() as i64)
}

/// Results that a thread stores beside each other, at most: where those of an output are as many bytes as its elements, memory is
/// asked for as many pieces of a sector as a thread has neighbours.
fn stored_side_by_side(facts: &Facts) -> i64 {
    if !stores_much(facts.spec) {
        return i64::MAX;
    }
    let most = if facts.spec.result_bytes() > SECTOR_BYTES { STORED_OF_MANY } else { STORED };
    (most / facts.spec.widest_result_bytes()).max(1)
}

/// Accesses of a row that stand side by side in a block: a warp of them where rows are whole warps, or else the row cut into
/// strips that are alike.
pub fn strip(words: i64, warp: i64) -> i64 {
    if words % warp == 0 { warp } else { ceil_div(words, ceil_div(words, 2 * warp)) }
}

/// The sketch as primitives.
pub fn schedule(
    s: &mut Schedule,
    stmt: &Statement,
    spec: &Spec,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let are_parts = sketch.joined > 1 || sketch.beside > 1;
    let is_whole = sketch.chunks.n == 1 && !are_parts;
    let (folded, fold) = match are_parts {
        true => split_joined(s, state, n_kept, sketch)?,
        false => (Vec::new(), split_fold(s, state, n_kept, 0, 1, sketch)?),
    };
    let mine = s.rfactor_at(fold.stage, &fold.thread, fold.n_kept as i64)?;
    let turn = same_axis(s, mine, &fold.turn)?;
    let in_last = sketch.last.threads > 0 && sketch.rows == 1 && !is_whole;
    let (root, n_root) = if is_whole { (output, n_kept) } else { (fold.stage, fold.n_kept) };
    let Sketch { tile: Tile { width: tile, together, .. }, lanes, rows, .. } = *sketch;
    let strips = Strips { tile, lanes, together, rows, in_last, are_parts: !is_whole };
    let (column, neighbour) = bind_strips(s, root, n_root, &strips)?;
    // Many results leave as whole words, of few it is no matter where they begin.
    let leaves_words = is_whole && sketch.threads == 1;
    neighbour
        .iter()
        .try_for_each(|lane| if leaves_words { s.vectorize(root, lane) } else { s.unroll(root, lane) })?;
    if sketch.threads > 1 {
        let shared = s.stage(fold.stage)?.reduce_axes()[0].clone();
        s.bind(fold.stage, &shared, ThreadTag::ThreadY)?;
        let own = s.stage(mine)?.leaves()[fold.n_kept].clone();
        s.bind(mine, &own, ThreadTag::ThreadY)?;
    } else {
        s.from_first(fold.stage)?;
    }
    if is_whole {
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
    let mut walk = turn.clone();
    if sketch.unroll > 1 {
        let (steps, few) = s.split(mine, &turn, Split::Factor(sketch.unroll))?;
        s.unroll(mine, &few)?;
        if sketch.run.steps > 1 {
            s.in_runs(mine, &few)?;
        }
        walk = steps;
    }
    if sketch.run.is_all {
        s.in_runs(mine, &walk)?;
    }
    if sketch.resident > 0 {
        s.pragma(mine, &walk, coulis_ir::remark::RESIDENT, Attr::Int(sketch.resident))?;
    }
    if sketch.lanes > 1 {
        s.vectorize(mine, &lane)?;
    }
    if is_whole {
        return Ok(());
    }
    if in_last {
        let part = fold_in_last_block(s, state, output, n_kept, spec, sketch)?;
        return fold_side_by_side(s, (state, part), &folded, (1, false), sketch);
    }
    fold_chunks_beside(s, (fold.stage, state), output, n_kept, &folded, (Finish::of(spec, sketch), sketch))
}

/// The block of each strip that ends last folds the partial states of its chunks, by all its threads: those side by side take
/// neighbouring outputs, those above each other share the chunks; the loop over the partial states of one thread.
fn fold_in_last_block(
    s: &mut Schedule,
    state: StageId,
    output: StageId,
    n_kept: usize,
    spec: &Spec,
    sketch: &Sketch,
) -> Result<IterVar, ScheduleError> {
    let (tile, words) = (sketch.tile.width / sketch.joined, sketch.tile.width / sketch.lanes);
    let lanes = tile / words;
    let chunk = s.stage(state)?.reduce_axes()[0].clone();
    let (turn, thread) = s.split(state, &chunk, Split::Factor(sketch.threads))?;
    let strips = Strips { tile, lanes, together: 1, rows: 1, in_last: true, are_parts: false };
    let (column, neighbour) = bind_strips(s, output, n_kept, &strips)?;
    neighbour.iter().try_for_each(|lane| s.unroll(output, lane))?;
    s.set_scope(state, MemScope::Local)?;
    s.compute_at(state, output, &column)?;
    if lanes > 1 {
        let lane = s.stage(state)?.leaves()[n_kept - 1].clone();
        s.unroll(state, &lane)?;
    }
    let mut last = turn.clone();
    if sketch.threads > 1 {
        s.bind(state, &thread, ThreadTag::ThreadY)?;
        last = thread;
    }
    let states = state_bytes(&spec.reducer) * sketch.joined * lanes;
    let at_once = (LAST_BYTES / states.max(1)).min(ceil_div(sketch.chunks.n, sketch.threads));
    if at_once > 1 {
        let (_, few) = s.split(state, &turn, Split::Factor(floor_pow2(at_once)))?;
        s.unroll(state, &few)?;
        if sketch.threads == 1 {
            last = few;
        }
    }
    s.grid_finish(output, GridFinish::LastBlock)?;
    Ok(last)
}

/// How the last kept loop of a stage is cut into strips.
pub struct Strips {
    /// Outputs of one.
    pub tile: i64,
    /// Those of a thread.
    pub lanes: i64,
    /// Strips of a block, of which each thread has its outputs of one after another.
    pub together: i64,
    /// Outer indices of a block.
    pub rows: i64,
    /// Whether the last block of each strip folds the parts, so that strips have an index of blocks of their own.
    pub in_last: bool,
    /// Whether the outermost loop is over chunks.
    pub are_parts: bool,
}

/// Binds strips of the last kept loop to blocks, several outer indices together where that is asked for, and their outputs
/// to threads, each of which may have neighbours; the loop over threads, and that over neighbours.
pub fn bind_strips(
    s: &mut Schedule,
    stage: StageId,
    n_kept: usize,
    strips: &Strips,
) -> Result<(IterVar, Option<IterVar>), ScheduleError> {
    let kept: Vec<IterVar> = s.stage(stage)?.leaves()[..n_kept].to_vec();
    let (mut strip, mut column) = s.split(stage, &kept[n_kept - 1], Split::Factor(strips.tile))?;
    if strips.together > 1 {
        let each;
        (strip, each) = s.split(stage, &strip, Split::Factor(strips.together))?;
        s.unroll(stage, &each)?;
    }
    let mut neighbour = None;
    if strips.lanes > 1 {
        let (thread, lane) = s.split(stage, &column, Split::Factor(strips.lanes))?;
        (column, neighbour) = (thread, Some(lane));
    }
    let mut outer = kept[..n_kept - 1].to_vec();
    if strips.rows > 1 {
        let all = as_one(s, stage, &outer)?;
        let (block, row) = s.split(stage, &all, Split::Factor(strips.rows))?;
        s.reorder(stage, &[block.clone(), strip.clone(), row.clone()])?;
        s.bind(stage, &row, OUTER)?;
        outer = vec![block];
    }
    let mut of_strips = ThreadTag::BlockX;
    if strips.in_last {
        of_strips = ThreadTag::BlockY;
        if strips.are_parts {
            s.bind(stage, &outer.remove(0), ThreadTag::BlockX)?;
        }
    }
    outer.push(strip);
    let block = as_one(s, stage, &outer)?;
    s.bind(stage, &block, of_strips)?;
    s.bind(stage, &column, ThreadTag::ThreadX)?;
    Ok((column, neighbour))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_cut_until_little_of_their_time_is_waiting() {
        // As many blocks as run at once, or many times as many, are left whole.
        for (blocks, at_once, parts) in
            [(528, 528, 1), (512, 396, 2), (529, 528, 8), (5000, 528, 1), (330, 396, 1), (270, 396, 4)]
        {
            assert_eq!(balanced(blocks, at_once), parts, "{blocks} of {at_once}");
        }
    }

    #[test]
    fn blocks_of_one_launch_are_held_so_that_few_are_waited_for() {
        for (blocks, least, most, found) in [
            // All of them run at once.
            (625, 4, 5, 5),
            (500, 4, 5, 4),
            (100, 4, 5, 1),
            // In three waves that are nearly full, and in two of fewer blocks.
            (1875, 4, 5, 5),
            (1024, 4, 5, 4),
            // The second wave would be short by either.
            (750, 4, 5, 0),
        ] {
            assert_eq!(held(blocks, 132, least, most), found, "{blocks}");
        }
    }

    #[test]
    fn few_blocks_are_cut_into_as_many_as_run_at_once_or_a_few_more() {
        for (blocks, at_once, most, parts) in [
            (1, 264, 528, 264),
            (16, 264, 528, 16),
            (141, 264, 528, 2),
            // Three quarters are busy, and no more than there is room for are cut.
            (200, 264, 528, 1),
            (141, 264, 264, 1),
            (300, 264, 528, 0),
        ] {
            assert_eq!(filled(blocks, at_once, most), parts, "{blocks} of {at_once}");
        }
    }
}
