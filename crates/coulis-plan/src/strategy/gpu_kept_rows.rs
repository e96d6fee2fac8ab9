//! `gpu_kept_rows`: rows that a map reads again stay on the chip between their fold and their map.
//!
//! The threads of a row read it from memory once, all of it at the start, into registers of their own where it fits there,
//! else into memory that the block shares; the fold and the map read it from there. In registers each thread has the words
//! that it folds, so the copy is laid out as its loops run (`cache_write`), and all loops over it are written out. A row
//! that would fill the memory of a multiprocessor alone, or does not fit there, lies in that of several blocks, a cluster,
//! each of which folds and maps a part of it, of narrow rows that begin anywhere from their first boundary on
//! (`from_boundary`). Where an element changes no fold, such a row, and one of wider elements, is filled up with it (`filled`). A
//! row that fits nowhere is another strategy's, which reads it twice. Measured: `bench/results`.

use std::ops::RangeInclusive;

use coulis_ir::{Attr, MemScope, NanPolicy, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::IterVar;

use super::cluster::{PARTS, cluster_sizes, fold_in_cluster};
use super::gpu_steps::{dense_rows_of, fold_by_threads, place_rows, split_fold, widest_access};
use super::kept::{in_registers, readers_of, refs};
use super::map_steps::Keep;
use super::steps::stage_of;
use super::{Chunks, Decline, Facts, Machine, Sketch, Strategy, ceil_div, floor_pow2, state_bytes};
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
/// How many quarters of what registers hold of wider ones they hold of narrow ones, several of which are one access.
const QUARTERS_OF_NARROW: i64 = 7;
/// How many quarters of what registers hold of one array they hold of several together.
const QUARTERS_OF_SEVERAL: i64 = 6;
/// Most elements of each of several arrays that as many threads as keep a row in registers have.
const OF_MOST_THREADS: i64 = 32;
/// What it costs a thread to bring its state together with the others, in elements.
const FOLD_ELEMENTS: i64 = 8;
/// See [`SIDE_BY_SIDE_BYTES`]; of narrow rows.
const SIDE_BY_SIDE_OF_NARROW: i64 = 32;
/// Accesses that each thread has in flight where a row goes to memory of the block.
const IN_FLIGHT: i64 = 4;
/// Bytes of a block's memory that the fold of its threads' states may take.
const FOLD_BYTES: i64 = 2 << 10;
/// Longer rows are another strategy's where these, or their parts, are fewer than multiprocessors.
const SPLIT_BYTES: i64 = 32 << 10;
/// The part of a multiprocessor's shared memory that one block may fill alone: where it takes more, too little of the first cache
/// is left for what is in flight. Narrow elements that are read one by one are work, which nothing would hide.
const ALONE: (i64, i64) = (5, 6);
/// Blocks of clusters that a multiprocessor is to hold, or else at least.
const BESIDE: [i64; 2] = [3, 2];
/// Most threads of a block that has a part of a row.
const PART: i64 = 448;
/// The same of a narrow row.
const PART_OF_NARROW: i64 = 288;
/// Turns that the last part of a row may lack: each that another part has stands under a condition of its own everywhere, so that
/// these run one after another.
const LACKING: i64 = 4;
/// Most threads of a block that takes a turn less, so that the last part lacks fewer.
const PART_OF_FEWER_TURNS: i64 = 640;
/// Accesses that a thread of a part takes of a row that is taken from its boundary; most threads of a block then, and fewest blocks of
/// a cluster.
const PART_TURNS: i64 = 2 * IN_FLIGHT;
/// See [`PART_TURNS`].
const PART_IN_WORDS: i64 = 512;
/// See [`PART_TURNS`].
const FEWEST_PARTS: i64 = 4;
/// Accesses of wide elements that a thread may have all at once.
const AT_ONCE: i64 = 5;
/// Bytes of elements whose rows are filled: others are as fast without, or were not tried.
const MEASURED_BYTES: RangeInclusive<usize> = 2..=4;
/// Bytes of narrow rows that begin anywhere from which on they are filled though a multiprocessor holds several as they lie, for which
/// their elements would be read one by one.
const FILLED_BESIDE: i64 = 56 << 10;
/// The filled copy of a row has so large a part of the row besides at most: a seventh.
const MOST_LACKING: i64 = 7;
/// Threads of blocks with filled parts of narrow rows that a multiprocessor is to hold together, for their registers.
const OF_NARROW_TOGETHER: i64 = 1600;
/// Bytes of such a part, at least, where more than [`FEWEST_PARTS`] blocks share a row.
const EIGHTH_OF_NARROW: i64 = 44 << 10;
/// Threads of a block with a part of words of one element.
const PART_OF_SINGLES: RangeInclusive<i64> = 256..=576;
/// The least and the most part of a multiprocessor's shared memory that such blocks take together: see [`ALONE`].
const TOGETHER: [(i64, i64); 2] = [(3, 5), ALONE];
/// Bytes of a state with which a thread does with so few registers that all threads of a multiprocessor have them.
const STATE_OF_ALL_THREADS: i64 = 12;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let wanted = "a map after each row, and a reduced innermost dimension";
    let spec = facts.spec;
    facts.lies_as_elements()?;
    if spec.map.is_none() || !facts.has_rows() {
        return Err(Decline::new(wanted, "no map of rows"));
    }
    let Some((extent, _, true)) = facts.inner() else {
        return Err(Decline::new(wanted, "a kept innermost dimension"));
    };
    let problem = &spec.problem;
    let lanes = facts.word_lanes(&facts.constants(true));
    let words = ceil_div(extent, lanes);
    let outer = spec.n_pieces();
    let row_bytes = outer.saturating_mul(extent).saturating_mul(spec.element_bytes());
    let n_multiprocessors = i64::from(facts.target.n_multiprocessors());
    let register_bytes = facts.register_bytes_of_element();
    let is_narrow = facts.is_narrow();
    let are_several = spec.inputs.len() > 1;
    let quarters = if are_several { QUARTERS_OF_SEVERAL } else { 4 };
    let of_registers = i64::from(facts.target.register_bytes) / 8 / register_bytes * quarters / 4;
    let most_elements =
        if is_narrow && lanes > 1 { of_registers * QUARTERS_OF_NARROW / 4 } else { of_registers };
    let elements = outer.saturating_mul(words).saturating_mul(lanes);
    let warp = i64::from(facts.target.warp);
    let of_words = |threads: i64| threads.min(floor_pow2(words));
    let turns = |threads: i64| outer.saturating_mul(ceil_div(words, threads));
    let kept = |threads: i64| turns(threads).saturating_mul(lanes);
    let fits = |threads: i64| {
        let are_most = are_several && threads == MOST_IN_REGISTERS;
        kept(threads) <= if are_most { OF_MOST_THREADS } else { most_elements }
    };
    let in_registers = if is_narrow {
        let side_by_side = SIDE_BY_SIDE_OF_NARROW / (lanes * spec.inputs[0].bytes() as i64).max(1);
        let fewest = of_words(ceil_pow2(side_by_side));
        let several = (0..).map(|n| fewest << n).take_while(|t| *t <= of_words(MOST_IN_REGISTERS));
        let fitting = several.filter(|t| fits(*t));
        let cost = |threads: &i64| threads * (kept(*threads) + FOLD_ELEMENTS);
        fitting.min_by_key(cost).unwrap_or_else(|| of_words(MOST_IN_REGISTERS))
    } else if elements <= warp * most_elements {
        // Neighbours of a row are to fill sectors together.
        let side_by_side = SIDE_BY_SIDE_BYTES / (lanes * spec.inputs[0].bytes() as i64);
        of_words(ceil_pow2(elements / FEW_ELEMENTS).max(side_by_side).clamp(1, warp))
    } else {
        of_words(ceil_pow2(ceil_div(elements, most_elements)).min(MOST_IN_REGISTERS))
    };
    let mut lanes = lanes;
    let mut peeled = false;
    let mut filled = None;
    let (keep, threads, unroll, chunks) = if fits(in_registers) {
        (Keep::Registers, in_registers, turns(in_registers), 1)
    } else {
        let shared_bytes = i64::from(facts.target.block.shared_dyn_bytes);
        let block_bytes = row_bytes.saturating_add(FOLD_BYTES);
        let in_flight = if lanes > 1 { IN_FLIGHT } else { 4 * IN_FLIGHT };
        let most = floor_pow2(i64::from(facts.target.block.threads));
        // Blocks side by side on a multiprocessor, blocks of a cluster, or one that has a multiprocessor for itself.
        let several = 2 * block_bytes <= shared_bytes;
        let is_work = is_narrow && lanes == 1;
        let fills = outer == 1 && (is_work || block_bytes > shared_bytes / ALONE.1 * ALONE.0);
        let has_parts = fills && !several;
        if has_parts || fills && row_bytes >= FILLED_BESIDE {
            filled = dealt_in_filled_rows(facts, extent);
        }
        let in_words = match &filled {
            Some(Dealt { lanes, parts, threads, .. }) => Some((*lanes, (*parts, *threads))),
            None if has_parts => dealt_from_boundaries(facts, extent),
            None => None,
        };
        if let Some((wider, _)) = in_words {
            (lanes, peeled) = (wider, true);
        }
        let as_they_lie = || {
            let word_bytes = lanes * spec.element_bytes();
            let are_single = lanes == 1 && !is_narrow && state_bytes(&spec.reducer) <= STATE_OF_ALL_THREADS;
            let with_room = || dealt_with_room(facts, words, in_flight, word_bytes);
            let most = if is_narrow { PART_OF_NARROW } else { PART };
            let most_of_fewer = if lanes > 1 { PART_OF_FEWER_TURNS } else { most };
            let several = || dealt(facts, words, in_flight, in_flight * word_bytes, [most, most_of_fewer]);
            // Narrow elements that a cluster would read one by one are sooner read twice in whole accesses.
            let are_alone = is_work && block_bytes > shared_bytes;
            are_single.then(with_room).flatten().or_else(several).filter(|_| !are_alone)
        };
        let dealt = match in_words {
            Some((_, dealt)) => Some(dealt),
            None if has_parts => as_they_lie(),
            None => None,
        };
        let (parts, threads) = match dealt {
            Some(dealt) => dealt,
            None if block_bytes <= shared_bytes => (1, of_words(if several { most / 2 } else { most })),
            None => {
                let wanted = "rows that fit into the memory of a block, or of a cluster of them";
                return Err(Decline::new(wanted, format!("{row_bytes} bytes")));
            }
        };
        let in_flight = if peeled { IN_FLIGHT } else { in_flight };
        let unroll = if parts > 1 { in_flight } else { floor_pow2(turns(threads).clamp(1, in_flight)) };
        (Keep::Shared, threads, unroll, parts)
    };
    if problem.n_outputs.saturating_mul(chunks) < n_multiprocessors && row_bytes > SPLIT_BYTES {
        let found = format!("{} rows of {row_bytes} bytes", problem.n_outputs);
        return Err(Decline::new("a row, or a part of one, for each multiprocessor, or short ones", found));
    }
    let rows = if chunks > 1 { 1 } else { (BLOCK / threads).max(1) };
    if keep == Keep::Shared && rows > 1 {
        // Pieces of several dimensions that are too short for a block: it would hold the rows of all of its threads, or idle.
        let wanted =
            "innermost dimensions of rows in memory of the block that are long enough for its threads";
        return Err(Decline::new(wanted, format!("{extent} elements")));
    }
    let constant = facts.constants(rows == 1);
    let plain = facts.plain().with_map_kept(keep);
    let mut sketch = Sketch { lanes, threads, rows, chunks: Chunks::of(chunks), peeled, constant, ..plain };
    (sketch.unroll, sketch.run.steps) = (unroll, facts.short_run(lanes, floor_pow2(unroll)));
    if let Some(Dealt { turns: (turns, at_once), resident, .. }) = filled {
        let steps = (1..=at_once).rev().find(|n| at_once % n == 0 && n * lanes <= facts.longest_run());
        (sketch.unroll, sketch.run.steps) = (at_once, steps.map_or(1, |steps| facts.run_of(steps * lanes)));
        sketch.resident = resident;
        sketch.map.filled = chunks * threads * turns * lanes;
    }
    Ok(sketch)
}

/// How a row is dealt to the blocks of a cluster where its copy is filled.
struct Dealt {
    /// Elements of an access.
    lanes: i64,
    parts: i64,
    threads: i64,
    /// Accesses of a thread, and how many of them are under way together.
    turns: (i64, i64),
    /// Blocks that a multiprocessor is to hold, for which registers are left; 0 is as many as come.
    resident: i64,
}

/// The same of rows that begin anywhere whose fold has an element that changes nothing: their copies are filled up with it to
/// the accesses of all threads, of which those blocks and threads are best that have the fewest more than a row has.
fn dealt_in_filled_rows(facts: &Facts, extent: i64) -> Option<Dealt> {
    let spec = facts.spec;
    let lanes = begins_anywhere(facts, extent)?;
    let is_measured = MEASURED_BYTES.contains(&spec.inputs[0].bytes());
    if !is_measured || spec.reducer.neutral.len() != 1 || spec.reducer.nan != NanPolicy::Propagate {
        return None;
    }
    let words = ceil_div(extent, lanes);
    let shared_bytes = i64::from(facts.target.block.shared_dyn_bytes);
    let warp = i64::from(facts.target.warp);
    let access = i64::from(facts.target.vector_bytes);
    let is_narrow = facts.is_narrow();
    let (most_threads, together, fewest_bytes) = if is_narrow {
        (PART_IN_WORDS, OF_NARROW_TOGETHER, EIGHTH_OF_NARROW)
    } else {
        (PART_OF_FEWER_TURNS, i64::from(facts.target.multiprocessor.threads), 0)
    };
    let of = |parts: i64, (turns, at_once): (i64, i64)| {
        let threads = ceil_div(ceil_div(words, parts * turns), warp) * warp;
        let bytes = threads * turns * access + FOLD_BYTES;
        let beside = (shared_bytes / bytes).min(together / threads);
        let lacking = parts * threads * turns - words;
        // Where all accesses of a thread are one step, the compiler finds registers itself, as long as the last part of a row lacks one
        // of them at most.
        let is_one_step = turns == at_once;
        let (fewest, most) =
            if is_one_step { (BESIDE[0], threads) } else { (BESIDE[1], words / MOST_LACKING) };
        let is_large = parts == FEWEST_PARTS || bytes >= fewest_bytes;
        let fits = threads <= most_threads && beside >= fewest && lacking <= most && is_large;
        let resident = if is_one_step { 0 } else { beside };
        fits.then_some((lacking, Dealt { lanes, parts, threads, turns: (turns, at_once), resident }))
    };
    // Narrow elements, which are converted, leave fewer registers for accesses.
    let in_one_step = (!is_narrow).then_some((AT_ONCE, AT_ONCE));
    let mut best: Option<(i64, Dealt)> = None;
    for turns in in_one_step.into_iter().chain([(PART_TURNS, IN_FLIGHT)]) {
        for parts in cluster_sizes(facts).skip_while(|parts| *parts < FEWEST_PARTS) {
            let found = of(parts, turns);
            if let Some(found) = found.filter(|(lacking, _)| best.as_ref().is_none_or(|b| *lacking < b.0)) {
                best = Some(found);
            }
        }
    }
    best.map(|(_, dealt)| dealt)
}

/// Elements of the widest access, where rows begin anywhere and are read by themselves, so that they may be copied from their
/// boundaries.
fn begins_anywhere(facts: &Facts, extent: i64) -> Option<i64> {
    let spec = facts.spec;
    let map = spec.map.as_ref()?;
    let lanes = widest_access(facts);
    let is_alone = spec.n_read() == 1 && spec.inputs.len() == 1 && map.beside.is_empty();
    let keeps_order = !spec.reducer.claims.any_order() || spec.reducer.step_needs_ascending;
    let writes_over = spec.outputs.iter().any(|output| output.beta != 0.0);
    if extent % lanes == 0 || spec.offset(0) % lanes != 0 || !is_alone || keeps_order || writes_over {
        return None;
    }
    dense_rows_of(facts, 0..2).ok()?;
    Some(lanes)
}

/// The same of narrow rows that begin anywhere, taken from their first boundaries of the widest accesses: elements of one of these,
/// blocks and threads. Copy and results are to have boundaries at the same elements. A thread has twice what it has in flight: what is
/// in flight with a row's last access is behind conditions, and the more threads have that, the less the last part has of it.
fn dealt_from_boundaries(facts: &Facts, extent: i64) -> Option<(i64, (i64, i64))> {
    let lanes = begins_anywhere(facts, extent).filter(|_| facts.is_narrow())?;
    let words = ceil_div(extent, lanes);
    let shared_bytes = i64::from(facts.target.block.shared_dyn_bytes);
    let warp = i64::from(facts.target.warp);
    let bytes = |threads: i64| threads * PART_TURNS * i64::from(facts.target.vector_bytes) + FOLD_BYTES;
    let is_dealt = |parts: i64, threads: i64| {
        let turns = ceil_div(ceil_div(words, threads), parts);
        turns == PART_TURNS && BESIDE[1] * bytes(threads) <= shared_bytes
    };
    let threads =
        |parts: i64| (1..=PART_IN_WORDS / warp).rev().map(|n| n * warp).find(|t| is_dealt(parts, *t));
    let mut several = cluster_sizes(facts).skip_while(|parts| *parts < FEWEST_PARTS);
    several.find_map(|parts| Some((lanes, (parts, threads(parts)?))))
}

/// By how many words the last part of a row is shorter than the others.
fn lacking(words: i64, parts: i64, threads: i64) -> i64 {
    ceil_div(ceil_div(words, threads), parts) * parts * threads - words
}

/// Blocks of the cluster that a row of so many words is dealt to, where each of them takes `in_flight` words at a time, of `step` bytes:
/// as few as let several be on a multiprocessor.
fn dealt(facts: &Facts, words: i64, in_flight: i64, step: i64, most_threads: [i64; 2]) -> Option<(i64, i64)> {
    let shared_bytes = i64::from(facts.target.block.shared_dyn_bytes);
    let warp = i64::from(facts.target.warp);
    let part_bytes = |parts: i64| {
        let threads = threads_of_part(words, parts, in_flight, most_threads, warp);
        let turns = ceil_div(ceil_div(words, threads), parts * in_flight);
        (turns * threads).saturating_mul(step).saturating_add(FOLD_BYTES)
    };
    let beside = |n: i64| cluster_sizes(facts).find(|parts| n * part_bytes(*parts) <= shared_bytes);
    let parts = BESIDE.into_iter().find_map(beside)?;
    Some((parts, threads_of_part(words, parts, in_flight, most_threads, warp)))
}

/// The same of words of one element: of such blocks a multiprocessor holds as many as there is memory and are threads for, and they
/// are to keep most bytes by most threads, yet to leave room in the first cache, where what is in flight is held a few bytes at a
/// time. Turns of a part all stand in one text, and where they are more than `in_flight` the first so many are without a condition.
fn dealt_with_room(facts: &Facts, words: i64, in_flight: i64, word_bytes: i64) -> Option<(i64, i64)> {
    let shared_bytes = i64::from(facts.target.block.shared_dyn_bytes);
    let most_threads = i64::from(facts.target.multiprocessor.threads);
    let [fewest, most] = TOGETHER.map(|(part, all)| shared_bytes / all * part);
    let warp = usize::try_from(facts.target.warp).ok()?;
    let mut best = None;
    for parts in cluster_sizes(facts) {
        for threads in PART_OF_SINGLES.step_by(warp) {
            let turns = ceil_div(ceil_div(words, threads), parts);
            let part_bytes = (turns * threads).saturating_mul(word_bytes).saturating_add(FOLD_BYTES);
            let beside = (shared_bytes / part_bytes).min(most_threads / threads);
            let kept = beside * part_bytes;
            let most_lacking = if turns > in_flight { turns - in_flight } else { turns - 1 };
            let is_full = lacking(words, parts, threads) <= LACKING.min(most_lacking) * threads;
            let is_short = turns <= in_flight + in_flight / 2;
            if beside < 2 || kept < fewest || most < kept || !is_full || !is_short {
                continue;
            }
            let found = kept * beside * threads;
            if best.is_none_or(|(most, _)| found > most) {
                best = Some((found, (parts, threads)));
            }
        }
    }
    best.map(|(_, dealt)| dealt)
}

/// Threads of a block that has one of so many parts of a row: whole warps, and where that is to be had as many as leave no turn of
/// `in_flight` words begun, for such a turn keeps all of its words, which are of the next block's part. Where the last part would lack
/// many turns, as many threads as take one turn less, if it lacks few of theirs. `most`: threads of a block, and those for a turn less.
fn threads_of_part(words: i64, parts: i64, in_flight: i64, [most, of_fewer]: [i64; 2], warp: i64) -> i64 {
    let pieces = ceil_div(words, parts * in_flight);
    let fewest = ceil_div(pieces, most);
    let of_turns = |turns: i64| ceil_div(ceil_div(pieces, turns), warp) * warp;
    let is_even = |threads: &i64| ceil_div(ceil_div(words, *threads), parts) % in_flight == 0;
    let is_full = |threads: &i64| lacking(words, parts, *threads) <= LACKING * threads;
    let even = (fewest..2 * fewest + 2).map(of_turns).find(is_even).unwrap_or_else(|| of_turns(fewest));
    let by_fewer = (fewest > 1 && !is_full(&even)).then(|| of_turns(fewest - 1));
    let fits = |threads: &i64| *threads <= of_fewer && is_even(threads) && is_full(threads);
    by_fewer.filter(fits).unwrap_or(even)
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
    let copied = match &stmt.inputs[..] {
        [input] if sketch.map.filled > 0 => {
            let readers = refs(&[state, map]);
            Some(s.filled(input, MemScope::SharedDyn, &readers, sketch.lanes, sketch.map.filled)?)
        }
        [input] if sketch.peeled => {
            Some(s.from_boundary(input, MemScope::SharedDyn, &refs(&[state, map]), sketch.lanes)?)
        }
        _ => None,
    };
    let fold = split_fold(s, state, n_kept, n_kept, sketch.lanes, sketch)?;
    let mine = fold_by_threads(s, &fold, ThreadTag::ThreadX, &[], sketch)?;
    let row = place_rows(s, state, map, n_kept, sketch.rows)?;
    if sketch.chunks.n > 1 {
        // Each block of a cluster folds its part, and then they fold these together.
        fold_in_cluster(s, (fold.stage, state))?;
    }
    s.set_scope(finished, MemScope::Local)?;
    s.compute_at(finished, map, &row)?;
    map_by_words(s, map, n_kept, sketch)?;
    if let Some(copied) = copied {
        return in_shared(s, copied, (map, &row), mine, sketch);
    }
    for input in &stmt.inputs {
        let readers = readers_of(s, input, [mine, map])?;
        if readers.len() < 2 {
            continue;
        }
        match sketch.map.keep {
            Keep::Nothing => {}
            Keep::Registers => {
                let innermost = spec.problem.dims.len() - 1;
                in_registers(s, input, &readers, (map, &row), innermost, spec, sketch)?;
            }
            Keep::Shared => {
                let kept = s.cache_read(input, MemScope::SharedDyn, &refs(&readers))?;
                in_shared(s, kept, (map, &row), mine, sketch)?;
            }
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
    let mut turn = by_threads(s, map, &words, sketch)?;
    if sketch.chunks.n > 1 {
        let part;
        (part, turn) = s.split(map, &turn, Split::Nparts(sketch.chunks.n))?;
        s.bind(map, &part, PARTS)?;
    }
    match sketch.map.keep {
        Keep::Nothing => Ok(()),
        Keep::Registers => outer.iter().chain([&turn]).try_for_each(|axis| s.unroll(map, axis)),
        Keep::Shared => few_at_once(s, map, &turn, sketch).map(|_| ()),
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

/// Has a few turns at once in flight; the loop over such.
fn few_at_once(
    s: &mut Schedule,
    stage: StageId,
    turn: &IterVar,
    sketch: &Sketch,
) -> Result<IterVar, ScheduleError> {
    if sketch.unroll == 1 {
        return Ok(turn.clone());
    }
    let (steps, few) = s.split(stage, turn, Split::Factor(sketch.unroll))?;
    s.unroll(stage, &few)?;
    Ok(steps)
}

/// A copy of the row in memory of the block.
fn in_shared(
    s: &mut Schedule,
    kept: StageId,
    (map, row): (StageId, &IterVar),
    mine: StageId,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    s.compute_at(kept, map, row)?;
    let Some(mut words) = s.stage(kept)?.leaves().last().cloned() else { return Ok(()) };
    if sketch.lanes > 1 {
        let (word, lane) = s.split(kept, &words, Split::Factor(sketch.lanes))?;
        s.vectorize(kept, &lane)?;
        words = word;
    }
    let turn = by_threads(s, kept, &words, sketch)?;
    let steps = few_at_once(s, kept, &turn, sketch)?;
    if sketch.resident > 0 {
        s.pragma(kept, &steps, coulis_ir::remark::RESIDENT, Attr::Int(sketch.resident))?;
    }
    if sketch.lanes == 1 {
        return Ok(());
    }
    // Where rows are filled up, what is at their ends would wait for all before it.
    if !sketch.peeled {
        s.pragma(kept, &steps, coulis_ir::remark::ASYNC_COPY, Attr::Int(1))?;
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
