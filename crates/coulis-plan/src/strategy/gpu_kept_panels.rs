//! `gpu_kept_panels`: columns that a map reads again, in panels that the memory of a block holds, or that of a cluster of them.
//!
//! The channels of small images are such columns: an image is one piece of memory, but its rows are no whole number of accesses, so
//! that threads that have columns would read and write single elements. A block copies its panel as one piece of memory, by the
//! widest accesses, past its registers. Its threads fold columns there, neighbours beside each other, those above each other every
//! so many rows; what each has folded is left in memory of the block, where a thread a column brings it together. Then they map the panel
//! as one piece again, whose accesses go on from one row to the next.
//!
//! Panels that are too large are strips of columns, copied row by row, where rows are whole accesses, or blocks of a cluster have
//! parts of the rows each, or both.
//!
//! Reduced neighbours of each output, as the channels of a group behind the pixels of an image, are columns that threads above and beside
//! each other fold, and then their states together. Nothing else keeps them on the chip, so that what is for registers otherwise is
//! copied too. Measured: `bench/results`.

use coulis_ir::remark::ASYNC_COPY;
use coulis_ir::{Attr, MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::{IterVar, Tensor};

use super::access::MEMORY_LINE_BYTES;
use super::cluster::{PARTS, cluster_sizes, fold_in_cluster};
use super::gpu_columns::SECTOR_BYTES;
use super::gpu_kept_columns::fold_own_words;
use super::gpu_steps::{as_one, copy_piece, slab_access, split_fold, widest_access};
use super::kept::{readers_of, refs};
use super::map_steps::Keep;
use super::steps::{same_axis, stage_of};
use super::{Chunks, Decline, Facts, Machine, Run, Sketch, Strategy, Tile, ceil_div, even_turns, gcd};
use crate::problem::Dim;
use crate::program::{Spec, Statement};
use crate::room::word_bytes;

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "gpu_kept_panels",
    machine: Machine::Threads,
    keeps_order: false,
    summary: "a block copies a panel of columns that a map reads again to shared memory as one piece, and maps it as one",
    propose,
    schedule,
};

/// Panels that a multiprocessor's memory holds, so that others are copied while one is folded: by themselves, and with the states of
/// their columns. Whole ones, or the parts of one.
const WHOLE: [i64; 2] = [3, 2];
/// The same of strips.
const STRIPS: [i64; 2] = [3, 3];
/// The same where nothing else fits.
const LARGE: [i64; 2] = [2, 2];
/// Bytes of a panel at least: threads have little to do for each copy of less.
const FEWEST_BYTES: i64 = 8 << 10;
/// Bytes of a row of a strip at least: of columns with large states, and of others.
const STRIP_BYTES: (i64, i64) = (128, 192);
/// The longest columns, of large states and of others, that registers hold as well as a cluster does where each row is lines of memory.
const MOST_OF_LINES: (i64, i64) = (640, 768);
/// Columns from which on a row has many, and the longest of them that registers hold as well where elements are narrow.
const MANY: i64 = 256;
/// See [`MANY`].
const MOST_OF_MANY: i64 = 320;
/// Bytes of an access at least: of fewer, threads would have as many as those that keep columns in registers. Of four bytes and more, two
/// elements at least pass the registers by.
const ACCESS_BYTES: i64 = 4;
/// Bytes of a panel for each thread of its block, about, and most threads.
const THREAD_BYTES: i64 = 160;
/// See [`THREAD_BYTES`].
const MOST_THREADS: i64 = 512;
/// Shortest columns whose rows are whole accesses, and bytes of states from which on shorter ones of narrow elements are copied too:
/// registers hold others, with as few threads as that takes.
const LONG: i64 = 128;
/// See [`LONG`].
const LARGE_COLUMN_STATE: i64 = 32;
/// Part of the threads that are enough if each has as many rows then.
const EVEN: (i64, i64) = (3, 4);
/// Most blocks of a cluster: those of more wait for each other longer than memory takes.
const MOST_PARTS: i64 = 4;
/// The same where columns are folded with their neighbours, which otherwise are read twice.
const MOST_PARTS_OF_GROUPS: i64 = 8;
/// States of a column that blocks of a cluster bring together, of which its elements in one of them have the bytes, where these are not
/// narrow and states are large: with fewer, threads that keep columns in registers are as quick.
const STATES_OF_PART: i64 = 9;
/// Elements of a column that a thread folds in turns that are written out.
const IN_FLIGHT: i64 = 32;
/// States of a column beside those of its threads where blocks fold them together: one that a block gives, one that others read, and
/// one that comes back.
const OF_CLUSTER: i64 = 3;
/// Bytes of shared memory that each block takes beside its own. Source: CUDA C++ Programming Guide, shared memory of 9.0.
const OWN_BYTES: i64 = 1 << 10;

/// Panels of an array.
struct Panels<'a> {
    /// Dimensions around them.
    outer: &'a [Dim],
    /// Number of them.
    count: i64,
    /// Rows of each.
    rows: i64,
    /// Columns of each.
    columns: i64,
    /// Neighbours of a row that are folded with each other; 1 is none.
    beside: i64,
}

/// What a block has of an array.
struct Dealt {
    /// Columns.
    tile: i64,
    /// Parts of the rows, each of a block of a cluster.
    parts: i64,
    /// Threads above each other.
    threads: i64,
}

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let wanted = "a map after columns, or groups of neighbouring ones, that are reduced along one dimension";
    let spec = facts.spec;
    facts.map_of_rows(wanted)?;
    let panels = panels_of(facts, wanted)?;
    if spec.outputs.iter().any(|output| output.beta != 0.0) {
        return Err(Decline::new("results that take no part", "some that do"));
    }
    if !facts.room.has_others() {
        return Err(Decline::new("room for a state of another thread", "less"));
    }
    let Panels { count, rows, columns, beside, .. } = panels;
    let is_work = facts.is_narrow() && word_bytes(&spec.reducer.identity) >= LARGE_COLUMN_STATE;
    if rows < LONG && !is_work && beside == 1 && columns % widest_access(facts) == 0 {
        return Err(Decline::new(
            format!("at least {LONG} rows, or those that are no whole number of accesses"),
            rows,
        ));
    }
    let Some(Dealt { tile, parts: chunks, threads }) = deal(facts, &panels) else {
        let wanted = "panels for each multiprocessor, which holds two in a cluster of blocks at most";
        return Err(Decline::new(wanted, format!("{count} of {rows} rows of {columns} columns")));
    };
    let unroll = even_turns(ceil_div(rows / chunks, threads), IN_FLIGHT);
    let (lanes, run, constant) = (panels.access(facts), facts.even_run(unroll), facts.constants(false));
    let plain = facts.plain().with_map_kept(Keep::Shared);
    let (chunks, tile, run) = (Chunks::of(chunks), Tile::of(tile), Run::of(run));
    Ok(Sketch { chunks, lanes, tile, threads, beside, unroll, run, constant, ..plain })
}

/// The panels of an array whose columns, or groups of neighbouring ones, are reduced along one dimension.
fn panels_of<'a>(facts: &Facts<'a>, wanted: &'static str) -> Result<Panels<'a>, Decline> {
    let spec = facts.spec;
    let (outer, down, across, neighbours) = match &spec.problem.dims[..] {
        [outer @ .., down, across, inner] if inner.is_reduced() => (outer, down, across, Some(inner)),
        [outer @ .., down, across] => (outer, down, across, None),
        _ => return Err(Decline::new(wanted, "one dimension")),
    };
    if across.is_reduced() || !down.is_reduced() || outer.iter().any(|dim| dim.is_reduced()) {
        return Err(Decline::new(wanted, "others"));
    }
    let beside = neighbours.map_or(1, |dim| dim.extent);
    let columns = across.extent.saturating_mul(beside);
    let result = spec.n_read() + spec.map.as_ref().map_or(0, |map| map.beside.len());
    let is_dense = |array: usize| {
        let of_neighbours = neighbours.is_none_or(|dim| dim.strides[array] == 1);
        of_neighbours && across.strides[array] == beside && down.strides[array] == columns
    };
    if !(0..spec.n_read()).chain([result]).all(is_dense) {
        return Err(Decline::new("panels of columns that are one piece of memory", "others"));
    }
    let count = spec.problem.n_outputs / across.extent.max(1);
    Ok(Panels { outer, count, rows: down.extent, columns, beside })
}

impl Panels<'_> {
    /// Elements of an access of a panel, which begins where the widest that all arrays allow may.
    fn access(&self, facts: &Facts) -> i64 {
        let strides = self.outer.iter().flat_map(|dim| &dim.strides[..facts.spec.n_read()]);
        strides.fold(slab_access(facts), |lanes, stride| gcd(lanes, *stride))
    }
}

/// What a block has of panels: one of them, or else as wide a strip of its columns as fits, or else a part of its rows, by as few blocks
/// as hold it, or else a part of as wide a strip. There is a block for each multiprocessor.
fn deal(facts: &Facts, panels: &Panels) -> Option<Dealt> {
    let &Panels { count, rows, columns, beside, .. } = panels;
    let spec = facts.spec;
    let bytes = spec.element_bytes() + i64::from(spec.mask);
    let narrowest = spec.narrowest_bytes();
    let state = word_bytes(&spec.reducer.identity);
    let results = spec.reducer.results.iter().map(|field| field.dtype.bytes() as i64).sum::<i64>();
    let shared_bytes = i64::from(facts.target.block.shared_dyn_bytes);
    let most_threads = MOST_THREADS.min(i64::from(facts.target.block.threads));
    let n_multiprocessors = i64::from(facts.target.n_multiprocessors());
    let warp = i64::from(facts.target.warp);
    let held = |tile: i64, parts: i64, [alone, together]: [i64; 2]| {
        let of_part = rows / parts;
        let n_blocks = count.saturating_mul(ceil_div(columns, tile)).saturating_mul(parts);
        let panel = of_part.saturating_mul(tile).saturating_mul(bytes);
        if tile > most_threads
            || n_blocks < n_multiprocessors
            || !(FEWEST_BYTES..=shared_bytes / alone).contains(&panel)
        {
            return None;
        }
        let most = ((panel / THREAD_BYTES).min(most_threads) / tile).clamp(1, of_part);
        // As many rows for each, where that leaves most of them: those of a cluster's block end where the next one's begin.
        let is_even = |threads: i64| of_part % threads == 0;
        let are_even = parts > 1 || (ceil_div(most * EVEN.0, EVEN.1)..=most).any(is_even);
        let above = || (1..=most).rev().filter(|threads| !are_even || is_even(*threads));
        let of_cluster = if parts > 1 { OF_CLUSTER } else { 0 };
        let all = |threads: i64| {
            let left = if beside > 1 { ceil_div(threads, warp) + of_cluster } else { threads + of_cluster };
            panel + (left * state + results) * tile + OWN_BYTES
        };
        let fits = |threads: &i64| together * all(*threads) <= shared_bytes + OWN_BYTES;
        // Those of a group are whole warps where that is possible: their states are brought together by shuffles.
        let are_warps = |threads: &i64| {
            let are_whole = is_even(*threads) && threads * beside % warp == 0;
            beside > 1 && are_whole && threads * tile <= most_threads && fits(threads)
        };
        let warps = (1..=most).rev().chain(most + 1..=2 * most).find(are_warps);
        let threads = warps.or_else(|| above().find(fits))?;
        Some(Dealt { tile, parts, threads })
    };
    let access = panels.access(facts);
    if access * narrowest < ACCESS_BYTES {
        return None;
    }
    let are_large = state >= LARGE_COLUMN_STATE;
    let are_groups = beside > 1;
    let fewest = ceil_div(if are_large { STRIP_BYTES.0 } else { STRIP_BYTES.1 }, narrowest);
    let is_strip = |tile: &i64| {
        let is_whole = tile % access == 0 && tile % beside == 0 && columns % tile == 0;
        is_whole && tile * narrowest % SECTOR_BYTES == 0
    };
    let strips = || (fewest..columns.min(most_threads + 1)).rev().filter(is_strip);
    // Registers hold narrow columns as well where rows are whole lines or long, and of small states strips of others, or all if rows are lines.
    let most_of_lines = if are_large { MOST_OF_LINES.0 } else { MOST_OF_LINES.1 };
    let are_lines = columns * narrowest % MEMORY_LINE_BYTES == 0;
    let are_many = !are_groups && columns > MANY && rows <= MOST_OF_MANY;
    let is_of_lines = !are_groups && are_lines && rows <= most_of_lines;
    let is_for_registers = facts.is_narrow() && (are_many || is_of_lines);
    let is_small = !are_groups && !facts.is_narrow() && !are_large;
    let most_parts = if are_groups { MOST_PARTS_OF_GROUPS } else { MOST_PARTS };
    let parts = || {
        let is_worth =
            |of_part: i64| facts.is_narrow() || !are_large || of_part * bytes >= STATES_OF_PART * state;
        let sizes =
            cluster_sizes(facts).filter(|parts| !is_for_registers && (2..=most_parts).contains(parts));
        sizes.filter(move |parts| rows % parts == 0 && is_worth(rows / parts))
    };
    let rooms: &[[i64; 2]] = if is_small {
        &[]
    } else if facts.is_narrow() {
        &[LARGE]
    } else {
        &[STRIPS, LARGE]
    };
    let are_pieces = |parts: &i64| rows / parts * columns % access == 0;
    let whole_parts = |room| parts().filter(are_pieces).find_map(|parts| held(columns, parts, room));
    held(columns, 1, WHOLE)
        .or_else(|| strips().find_map(|tile| held(tile, 1, STRIPS)))
        .or_else(|| whole_parts(WHOLE))
        .or_else(|| held(columns, 1, LARGE).filter(|_| !are_many))
        .or_else(|| whole_parts(LARGE).filter(|_| !is_small || !are_lines))
        .or_else(|| {
            let of_strips = |room: &[i64; 2], parts: i64| strips().find_map(|tile| held(tile, parts, *room));
            rooms.iter().find_map(|room| parts().find_map(|parts| of_strips(room, parts)))
        })
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let Some(map) = &stmt.map else { return Ok(()) };
    let n_kept = spec.n_kept();
    let (state, finished, map) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?, stage_of(s, map)?);
    let Sketch { lanes, beside, .. } = *sketch;
    let (tile, chunks) = (sketch.tile.width, sketch.chunks.n);
    let threads = if beside > 1 {
        [(ThreadTag::ThreadX, beside * sketch.threads), (ThreadTag::ThreadY, tile / beside)]
    } else {
        [(ThreadTag::ThreadX, tile), (ThreadTag::ThreadY, sketch.threads)]
    };

    let mut loops = s.stage(map)?.leaves().to_vec();
    let (strip, column) = s.split(map, &loops[n_kept - 1], Split::Factor(tile / beside))?;
    let outer: Vec<IterVar> = loops[..n_kept - 1].iter().chain([&strip]).cloned().collect();
    let panel = as_one(s, map, &outer)?;
    s.bind(map, &panel, ThreadTag::BlockX)?;
    let mut elements = loops.split_off(n_kept);
    elements.insert(1, column);
    s.reorder(map, &elements)?;
    if chunks > 1 {
        let (part, row) = s.split(map, &elements[0], Split::Nparts(chunks))?;
        s.bind(map, &part, PARTS)?;
        elements[0] = row;
    }
    let written = spec.widest_result_bytes();
    let width = lanes * spec.widest_bytes();
    copy_piece(s, map, &elements, (width / written).clamp(1, lanes), &threads)?;

    s.set_scope(finished, MemScope::Shared)?;
    s.compute_at(finished, map, &panel)?;
    s.set_scope(state, MemScope::Local)?;
    let own = if beside > 1 {
        fold_groups(s, [state, finished], n_kept, sketch)?
    } else {
        fold_columns(s, [state, finished], (map, &panel), n_kept, sketch)?
    };
    for input in &stmt.inputs {
        let readers = readers_of(s, input, [own, map])?;
        if !readers.is_empty() {
            copy_panel(s, input, &readers, (map, &panel), &threads, sketch)?;
        }
    }
    Ok(())
}

/// Threads above each other leave what they fold of a column in memory of the block, where one of them brings it together; the stage of
/// what each folds.
fn fold_columns(
    s: &mut Schedule,
    [state, finished]: [StageId; 2],
    (map, panel): (StageId, &IterVar),
    n_kept: usize,
    sketch: &Sketch,
) -> Result<StageId, ScheduleError> {
    let by_columns = Sketch { lanes: 1, ..sketch.clone() };
    let fold = split_fold(s, state, n_kept, 0, 1, &by_columns)?;
    let mine = s.rfactor_at(fold.stage, &fold.thread, 0)?;
    let column = bind_columns(s, finished, n_kept - 1, sketch.tile.width)?;
    s.compute_at(state, finished, &column)?;
    if sketch.chunks.n > 1 {
        fold_in_cluster(s, (fold.stage, state))?;
    }
    let above = s.stage(fold.stage)?.reduce_axes()[0].clone();
    s.unroll(fold.stage, &above)?;
    s.from_first(fold.stage)?;

    let own = s.cache_write(mine, MemScope::Local)?;
    s.set_scope(mine, MemScope::Shared)?;
    s.compute_at(mine, map, panel)?;
    let above = s.stage(mine)?.leaves()[0].clone();
    s.bind(mine, &above, ThreadTag::ThreadY)?;
    let column = bind_columns(s, mine, fold.n_kept, sketch.tile.width)?;
    s.compute_at(own, mine, &column)?;
    fold_own_words(s, own, fold.n_kept + 1, &by_columns)?;
    Ok(own)
}

/// Threads above each other and beside each other fold a group, and then their states together; the stage of what each folds.
fn fold_groups(
    s: &mut Schedule,
    [state, finished]: [StageId; 2],
    n_kept: usize,
    sketch: &Sketch,
) -> Result<StageId, ScheduleError> {
    let (mut whole, mut n_data) = (state, n_kept);
    let reduce = s.stage(state)?.reduce_axes().to_vec();
    let (mut row, mut column) = (reduce[0].clone(), reduce[1].clone());
    if sketch.chunks.n > 1 {
        let (chunk, of_chunk) = s.split(state, &row, Split::Nparts(sketch.chunks.n))?;
        whole = s.rfactor_at(state, &chunk, 0)?;
        (row, column) = (same_axis(s, whole, &of_chunk)?, same_axis(s, whole, &column)?);
        n_data += 1;
    }
    let (turn, above) = s.split(whole, &row, Split::Factor(sketch.threads))?;
    s.reorder(whole, &[turn, above.clone(), column.clone()])?;
    let thread = s.fuse(whole, &[above, column])?;
    let mine = s.rfactor_at(whole, &thread, n_data as i64)?;

    let groups = s.stage(finished)?.leaves()[n_kept - 1].clone();
    let (_, group) = s.split(finished, &groups, Split::Factor(sketch.tile.width / sketch.beside))?;
    s.bind(finished, &group, ThreadTag::ThreadY)?;
    s.compute_at(state, finished, &group)?;
    if sketch.chunks.n > 1 {
        fold_in_cluster(s, (whole, state))?;
    }
    let thread = s.stage(whole)?.reduce_axes()[0].clone();
    s.bind(whole, &thread, ThreadTag::ThreadX)?;
    s.set_scope(mine, MemScope::Local)?;
    s.compute_at(mine, whole, &thread)?;
    fold_own_words(s, mine, n_data + 1, &Sketch { lanes: 1, ..sketch.clone() })?;
    Ok(mine)
}

/// Binds the columns of a panel, loop `at` of a stage, to threads side by side; the loop over them.
fn bind_columns(s: &mut Schedule, stage: StageId, at: usize, tile: i64) -> Result<IterVar, ScheduleError> {
    let columns = s.stage(stage)?.leaves()[at].clone();
    let (_, column) = s.split(stage, &columns, Split::Factor(tile))?;
    s.bind(stage, &column, ThreadTag::ThreadX)?;
    Ok(column)
}

/// Copies the panel of an array to memory of the block, past the threads' registers.
fn copy_panel(
    s: &mut Schedule,
    input: &Tensor,
    readers: &[StageId],
    (map, panel): (StageId, &IterVar),
    threads: &[(ThreadTag, i64)],
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    let copy = s.cache_read(input, MemScope::Shared, &refs(readers))?;
    s.compute_at(copy, map, panel)?;
    let loops = s.stage(copy)?.leaves().to_vec();
    let n_inner = if sketch.beside > 1 { 3 } else { 2 };
    let turns = copy_piece(s, copy, &loops[loops.len() - n_inner..], sketch.lanes, threads)?;
    s.pragma(copy, &turns, ASYNC_COPY, Attr::Int(1))
}
