//! `columns`: the innermost dimension is kept, so neighbours in memory belong to different outputs.
//!
//! A tile of outputs is folded at once: its states stay in the nearest cache while the reduced dimensions are walked
//! in the order of memory. Few tiles are split into chunks of the outermost reduced dimension. Where rows are no whole vectors and each
//! thread has pieces of memory of its own, the last tile of a row begins in the one before it.

use coulis_ir::{Attr, MemScope};
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::IterVar;

use super::access::WORD_BYTES;
use super::map_steps::root;
use super::rows::{BUSY_OPERATIONS, ENOUGH_OPERATIONS};
use super::steps::{ask_ahead, hint, place, stage_of, stream_results};
use super::{
    Ahead, CACHE_LINE_BYTES, Chunks, Decline, Facts, Machine, PAGE_BYTES, PARALLEL_BYTES, Pages, Run, Sketch,
    Strategy, Tile, ceil_div, floor_pow2, gcd, state_bytes,
};
use crate::problem::Dim;
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "columns",
    machine: Machine::Loops,
    keeps_order: false,
    summary: "vectors along the innermost kept dimension; the states of a tile of outputs stay in cache",
    propose,
    schedule,
};

/// Narrower rows leave most of a vector empty.
pub(super) const NARROWEST: i64 = 8;
/// Bytes of the states of one tile of an input in the caches: half of a first-level cache.
const TILE_BYTES: i64 = 16 << 10;
/// The same of an input in memory, where what counts is that long pieces of a row are read: they come from the second
/// cache while the memory is waited for.
const TILE_BYTES_IN_MEMORY: i64 = 64 << 10;
/// The same where memory is read front to back: an eighth of a second cache.
const TILE_BYTES_FRONT_TO_BACK: i64 = 128 << 10;
/// Elements of a tile in which threads fold partial states.
const LAST_TILE: i64 = 1 << 10;
/// Bytes of a tile that a map reads again: half of a second cache.
const MAPPED_BYTES: i64 = 512 << 10;
/// Bytes of a piece of memory whose tiles overlap, at most, and pieces of each thread, at least.
const OVERLAPPED_BYTES: i64 = 256 << 10;
const OVERLAPPED_PIECES: i64 = 8;
/// Bytes of a row of such a tile, at least: fewer lines at a time leave memory waiting.
const NARROWEST_MAPPED: i64 = 256;
/// Bytes that a part of a fold reads for each byte of its states, at least.
const READS_A_STATE: i64 = 256;
/// Fewer rows than these are folded one a visit: of quick steps, more of a piece of memory that is short, which is read front to back
/// before hints would matter.
const FEWEST_ROWS: i64 = 3;
const FEWEST_OF_A_PIECE: i64 = 64;
const PIECE_BYTES: i64 = 4 * PAGE_BYTES;
/// Rows that a visit of a state of one component folds, and steps of the longest run of a quick step. More rows than a
/// cache has ways would push each other out of it where their length is a power of two.
const ROWS_A_VISIT: i64 = 8;
/// The same of runs over rows of an input in memory that are shorter than a page, where the ends of runs are what a visit
/// costs.
const ROWS_OF_A_RUN: i64 = 16;
/// Tiles up to this many vectors are written out one by one.
const UNROLLED: i64 = 4;
/// The same of runs where memory is read front to back: visits of more lines ask for them a few at a time, in a loop.
const UNROLLED_OF_RUNS: i64 = 2;
/// How far ahead of the walk along the rows memory is asked for, in each of them.
const AHEAD_BYTES: i64 = 512;
/// The same where memory is read front to back, in all rows of a visit together; of states without runs, which a visit may keep
/// in registers, fewer rows are visited then.
const AHEAD_OF_ROWS_BYTES: i64 = 8 << 10;
const ROWS_FRONT_TO_BACK: i64 = 4;
/// The same into the first cache, where each row of a visit asks a line further ahead than the one before it: about as many lines as
/// are on their way at once, in all rows together.
const NEAR_LINES: i64 = 64;
/// Bytes that a visit with runs reads there for each byte of the states that it reads and writes; more where these are wider than
/// what runs keep.
const BYTES_A_STATE: i64 = 2;
const BYTES_A_WIDE_STATE: i64 = 4;
/// Bytes of the states of tiles that are folded together: most of a first-level cache. Fewer tiles than these have states that are
/// more to bring there than pieces of memory that follow each other save.
const TOGETHER_BYTES: i64 = 32 << 10;
const FEWEST_TOGETHER: i64 = 8;
/// The part of its width by which a tile may be wider than fits, where the number of tiles is smaller by it.
const A_LITTLE: i64 = 16;
/// Rows of at most so many tiles whose states registers hold are walked one by one, tile after tile.
const TILES_IN_REGISTERS: i64 = 2;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let Some((extent, step, false)) = facts.inner() else {
        return Err(Decline::new("a kept innermost dimension", "a reduced one, or none"));
    };
    if extent < NARROWEST {
        return Err(Decline::new(format!("at least {NARROWEST} outputs side by side"), extent));
    }
    let reducer = &facts.spec.reducer;
    let width = facts.spec.inputs[0].bytes() as i64;
    let short = facts.runs(ROWS_A_VISIT);
    let is_quick = short.operations <= BUSY_OPERATIONS;
    let piece = |dim: &Dim| dim.extent.saturating_mul(dim.strides[0].saturating_abs()).saturating_mul(width);
    let fewest =
        |dim: &Dim| if is_quick && piece(dim) <= PIECE_BYTES { FEWEST_OF_A_PIECE } else { FEWEST_ROWS };
    let rows = facts.innermost_reduced().filter(|(_, dim)| dim.extent >= fewest(dim));
    let is_narrow = facts.is_in_memory() && extent * width <= PAGE_BYTES / 2;
    let front_to_back = facts.reads_front_to_back();
    let bytes_a_state = if short.are_narrower { BYTES_A_WIDE_STATE } else { BYTES_A_STATE };
    // Where one page at a time is as fast, rows that lie pages apart are still more streams that hardware follows by itself, if the first
    // cache has no room for what visits could ask for, and steps are not what takes the time.
    let has_runs = rows.is_some() && short.steps > 1;
    let by_pages = front_to_back && !facts.asks_near() && has_runs && short.operations <= ENOUGH_OPERATIONS;
    let longest = match front_to_back && facts.is_in_memory() {
        _ if is_narrow && by_pages && is_quick => ROWS_A_VISIT,
        _ if is_narrow => ROWS_OF_A_RUN,
        true => ROWS_A_VISIT.min(floor_pow2(bytes_a_state * state_bytes(reducer) / width)),
        false => ROWS_A_VISIT,
    };
    let runs = facts.runs(if rows.is_some() { longest } else { 1 });
    let lanes = runs.lanes.min(floor_pow2(extent));
    let mapped = mapped_tile(facts, extent, lanes);
    let overlapped = overlapped_tile(facts, extent, lanes);
    let (mut tile, chunks) = match overlapped.or(mapped) {
        Some(tile) => (tile, 1),
        None => tiles(facts, extent, lanes),
    };
    // Half of the registers hold states.
    let held = floor_pow2(i64::from(facts.target.register_bytes) / 2 / runs.state_bytes.max(1));
    let in_registers = front_to_back
        && is_narrow
        && rows.is_some()
        && runs.steps == 1
        && mapped.or(overlapped).is_none()
        && tile > UNROLLED * lanes
        && (tile <= held || tile % held == 0 && tile <= TILES_IN_REGISTERS * held);
    if in_registers {
        tile = tile.min(held);
    }
    // Several rows a visit: a state is read and written once for all of them.
    let unroll = match rows {
        Some(_) if in_registers => 1,
        Some(_) if runs.steps > 1 => runs.steps,
        Some(_) if reducer.fields.len() == 1 && facts.is_in_memory() && front_to_back && !is_narrow => {
            ROWS_FRONT_TO_BACK
        }
        Some(_) if reducer.fields.len() == 1 => ROWS_A_VISIT,
        Some(_) => facts.unroll(lanes),
        None => 1,
    };
    let apart = match rows {
        Some((_, dim))
            if facts.is_in_memory()
                && tile >= extent
                && (by_pages || !front_to_back)
                && !reducer.step_needs_ascending =>
        {
            let row_bytes = dim.strides[0].saturating_abs().saturating_mul(width);
            let of_a_page = PAGE_BYTES / row_bytes.clamp(1, PAGE_BYTES);
            let visits = dim.extent / (unroll * chunks);
            // Streams that end before their page does are none that hardware follows.
            if by_pages && visits < of_a_page { 1 } else { floor_pow2(of_a_page.min(visits)) }
        }
        Some(_) | None => 1,
    };
    // Rows that lie pages apart are in one set of the first cache: what a visit leaves of their lines is gone when the next one comes.
    // Of 32-bit elements that costs less than whole lines of their states, which registers do not hold.
    let line = CACHE_LINE_BYTES / width;
    let leaves_some =
        apart > 1 && 2 * lanes == line && i64::from(facts.target.vector_bytes) < CACHE_LINE_BYTES;
    let is_better_whole = leaves_some
        && width < WORD_BYTES
        && 2 * line * runs.state_bytes <= i64::from(facts.target.register_bytes)
        && tile % line == 0
        && tile / line > UNROLLED;
    let lanes = if is_better_whole { line } else { lanes };
    // Along the vectors of a row, or along the rows where a row has only a few.
    let written_out = match runs.steps > ROWS_A_VISIT {
        _ if in_registers => held / lanes,
        true if front_to_back => UNROLLED_OF_RUNS,
        _ => UNROLLED,
    };
    let is_loop = tile / lanes > written_out;
    let along =
        if is_loop { lanes * step.saturating_abs() } else { tile.max(if in_registers { extent } else { 1 }) };
    // Short visits ask for the next one, others for what follows in their rows.
    let asks_visits = unroll > ROWS_A_VISIT || front_to_back && is_narrow && is_loop && unroll > 1;
    let visit_bytes = unroll.saturating_mul(extent).saturating_mul(width);
    let ahead_bytes = match front_to_back && is_loop {
        _ if in_registers => facts.ahead_front_to_back(),
        true if facts.asks_near() => near_bytes(unroll),
        true => AHEAD_OF_ROWS_BYTES / unroll.max(ROWS_FRONT_TO_BACK),
        false => AHEAD_BYTES,
    };
    let plain = facts.plain();
    let by_visits = |rows: i64| Ahead { rows, ..plain.ahead };
    let ahead = match facts.ahead(ahead_bytes, along.saturating_mul(width)) {
        0 => plain.ahead,
        _ if asks_visits && front_to_back && is_loop => {
            by_visits(ceil_div(facts.ahead_front_to_back(), visit_bytes))
        }
        _ if asks_visits && front_to_back => by_visits(ceil_div(PAGE_BYTES, visit_bytes)),
        _ if asks_visits => by_visits(1),
        steps => Ahead { steps, ..plain.ahead },
    };
    let is_alone = mapped.is_none() && chunks == 1 && tile >= extent && !in_registers;
    let walks_on = is_narrow && front_to_back || is_row_of_tiles(facts.spec);
    let together = if is_alone && walks_on { tiles_together(facts, tile) } else { None };
    let mut sketch = Sketch {
        lanes,
        unroll,
        pages: Pages { apart, ..Pages::ONE },
        ahead,
        run: Run::of(runs.steps),
        tile: Tile {
            width: tile,
            together: together.map_or(1, |(_, tiles)| tiles),
            written_out,
            overlaps: overlapped.is_some(),
        },
        chunks: Chunks::of(chunks),
        ..plain
    };
    sketch = sketch.with_map_inside(mapped.is_some());
    // Tiles that make up a row exactly have no guard if the kernel knows the row's length.
    if let Some(last) = sketch.constant.last_mut() {
        *last = sketch.tile.overlaps || extent <= tile || extent % tile == 0;
    }
    if let Some((around, _)) = together {
        sketch.constant[around] = true;
    }
    // So do visits that make up the rows: each run then has the same number of steps, which nothing has to count.
    if let Some((at, dim)) = rows.filter(|_| runs.steps > 1) {
        let is_cut = facts.spec.n_reduced() == 1;
        let visits = unroll * apart * if is_cut { chunks } else { 1 };
        sketch.constant[at] = dim.extent % visits == 0;
    }
    Ok(sketch)
}

/// How far ahead the first row of a visit asks for memory, in bytes.
fn near_bytes(rows: i64) -> i64 {
    let rows = rows.max(ROWS_FRONT_TO_BACK);
    (NEAR_LINES / rows - rows / 2).max(1) * CACHE_LINE_BYTES
}

/// Elements of a tile of which the last one begins in the one before it, as wide as makes the fewest elements in all: of rows that are no
/// whole vectors, where each thread has pieces of memory of its own, of which a second cache holds one until its tiles have all
/// been read. A single element behind whole vectors is as quick by itself.
pub(super) fn overlapped_tile(facts: &Facts, extent: i64, lanes: i64) -> Option<i64> {
    let problem = &facts.spec.problem;
    let width = facts.spec.inputs[0].bytes() as i64;
    let threads = if facts.parallel() { i64::from(facts.target.n_threads) } else { 1 };
    let pieces = problem.n_outputs / extent.max(1);
    let are_many = threads == 1 || pieces >= OVERLAPPED_PIECES * threads;
    let is_near = problem.reduce_len.saturating_mul(extent).saturating_mul(width) <= OVERLAPPED_BYTES;
    if extent % lanes <= 1 || extent < lanes || lanes < 2 || pieces < 2 || !are_many || !is_near {
        return None;
    }
    let widths = (1..=extent / lanes).map(|vectors| vectors * lanes);
    widths.min_by_key(|tile| (ceil_div(extent, *tile) * tile, -tile))
}

/// Elements of a tile whose rows stay in the second cache until a map reads them again; `None` where there is no map, and where
/// such tiles are too narrow or too few.
pub(super) fn mapped_tile(facts: &Facts, extent: i64, lanes: i64) -> Option<i64> {
    facts.spec.map.as_ref().filter(|_| facts.has_rows())?;
    let width = facts.spec.inputs[0].bytes() as i64;
    let column = facts.spec.problem.reduce_len.saturating_mul(width).max(1);
    let whole = ceil_div(extent, lanes) * lanes;
    let tile = (MAPPED_BYTES / column / lanes * lanes).min(whole);
    let n_tiles = facts.spec.problem.n_outputs / extent.max(1) * ceil_div(extent, tile.max(1));
    let are_many = !facts.parallel() || n_tiles >= i64::from(facts.target.n_threads);
    (tile >= lanes && tile * width >= NARROWEST_MAPPED.min(whole * width) && are_many).then_some(tile)
}

/// Elements of a tile, and the parts that the reduced elements are folded in. Tiles are as wide as fits, but for being
/// as many as keep all threads busy; where they would get narrow for that, the fold is split instead. Narrow is every tile that
/// could be wider where memory is read front to back: threads then read whole rows of their own.
fn tiles(facts: &Facts, extent: i64, lanes: i64) -> (i64, i64) {
    let problem = &facts.spec.problem;
    let width = facts.spec.inputs[0].bytes() as i64;
    let whole = ceil_div(extent, lanes) * lanes;
    let budget = tile_bytes(facts).max(i64::from(facts.target.vector_bytes));
    let widest = (budget / state_bytes(&facts.spec.reducer).max(1)).max(lanes).min(whole) / lanes * lanes;
    // As few tiles as there may be, all about as wide: a little wider, sooner than a last one of a few outputs.
    let least = ceil_div(extent, widest + widest / A_LITTLE);
    let of_least = ceil_div(ceil_div(extent, least), lanes) * lanes;
    if !facts.parallel() {
        return (of_least, 1);
    }
    let outer = problem.n_outputs / extent.max(1);
    let threads = i64::from(facts.target.n_threads);
    let is_even = |n: i64| outer.saturating_mul(n) % threads == 0 || outer.saturating_mul(n) >= 8 * threads;
    if let Some(n) = (least..least + threads).find(|n| is_even(*n)) {
        let tile = ceil_div(ceil_div(extent, n), lanes) * lanes;
        let narrowest = match facts.is_in_memory() {
            true if facts.reads_front_to_back() && n > least => widest,
            true => PAGE_BYTES / width,
            false => 4 * lanes,
        };
        if tile >= narrowest.min(widest) && is_even(ceil_div(extent, tile)) {
            return (tile, 1);
        }
    }
    let outermost = problem.dims.iter().find(|d| d.is_reduced()).map_or(1, |d| d.extent);
    (of_least, fewer_chunks(facts, facts.chunks(outer * least, outermost)))
}

/// Bytes of the states that are folded together.
fn tile_bytes(facts: &Facts) -> i64 {
    match facts.is_in_memory() {
        true if facts.reads_front_to_back() => TILE_BYTES_FRONT_TO_BACK,
        true => TILE_BYTES_IN_MEMORY,
        false => TILE_BYTES,
    }
}

/// Fewer parts of a fold where each reads little beside its states, which it writes, asks and hands on; a quarter at least.
fn fewer_chunks(facts: &Facts, chunks: i64) -> i64 {
    let states = facts.spec.problem.n_outputs.saturating_mul(state_bytes(&facts.spec.reducer));
    let reads_enough = |parts: &i64| facts.input_bytes() / parts >= states.saturating_mul(READS_A_STATE);
    let fewer = [1, 2, 4].map(|by| (chunks / by).max(1));
    fewer.into_iter().find(reads_enough).unwrap_or(fewer[2])
}

/// The kept dimension around a tile, and how many tiles along it are folded together, where a dimension around that is reduced: each
/// tile by itself then reads one piece of memory after another that lies far from it. As many as make up that dimension exactly, whose
/// states fit, and that keep all threads busy; `None` for fewer than pay.
fn tiles_together(facts: &Facts, tile: i64) -> Option<(usize, i64)> {
    let problem = &facts.spec.problem;
    let (_, around) = problem.dims.split_last()?;
    let at = around.iter().rposition(|dim| !dim.is_reduced())?;
    if !around[..at].iter().any(|dim| dim.is_reduced()) || facts.spec.reducer.step_needs_ascending {
        return None;
    }
    let n_tiles = problem.n_outputs / problem.dims.last()?.extent.max(1);
    let threads = if facts.parallel() { i64::from(facts.target.n_threads) } else { 1 };
    let states = tile * state_bytes(&facts.spec.reducer);
    let extent = around[at].extent;
    if is_row_of_tiles(facts.spec) {
        // The tiles of a row are as one that is as long.
        let is_even = |tiles: i64| (n_tiles / tiles) % threads == 0 || n_tiles / tiles >= 8 * threads;
        let most = (tile_bytes(facts) / states.max(1)).min(extent);
        let tiles = (2..=most).rev().find(|tiles| extent % tiles == 0 && is_even(*tiles));
        return tiles.map(|tiles| (at, tiles));
    }
    let most = (TOGETHER_BYTES / states.max(1)).min(n_tiles / (8 * threads).max(1));
    let tiles = gcd(floor_pow2(most), extent);
    (tiles >= FEWEST_TOGETHER).then_some((at, tiles))
}

/// Whether the dimension around the innermost one is kept too.
fn is_row_of_tiles(spec: &Spec) -> bool {
    spec.problem.dims.iter().rev().nth(1).is_some_and(|dim| !dim.is_reduced())
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    if sketch.chunks.n == 1 {
        let root = root(s, stmt, sketch)?;
        let mut at = tile_loops(s, root, n_kept, sketch)?;
        if sketch.whole.parallel {
            at = spread_tiles(s, root, n_kept, at, sketch)?;
        }
        let walk = fold_tile(s, state, n_kept, spec, sketch, sketch.unroll, None)?;
        ask_along(s, state, &walk, sketch)?;
        s.set_scope(state, MemScope::Local)?;
        s.compute_at(state, root, &at)?;
        stream_results(s, root, sketch)?;
        if root == output {
            return Ok(());
        }
        let last = s.stage(output)?.leaves()[n_kept - 1].clone();
        let (_, lane) = s.split(output, &last, Split::Factor(sketch.lanes))?;
        s.vectorize(output, &lane)?;
        return place(s, output, Some(&super::steps::Site { stage: root, at }));
    }
    let outermost = s.stage(state)?.reduce_axes()[0].clone();
    let (chunk, rest) = s.split(state, &outermost, Split::Nparts(sketch.chunks.n))?;
    let partial = s.rfactor(state, &chunk)?;
    let cached = s.cache_write(partial, MemScope::Local)?;
    let mut at = tile_loops(s, partial, n_kept + 1, sketch)?;
    if sketch.whole.parallel {
        at = spread(s, partial, n_kept + 1, &at)?;
    }
    let outermost = s.stage(cached)?.leaves().iter().find(|axis| axis.name() == rest.name()).cloned();
    let walk = fold_tile(s, cached, n_kept + 1, spec, sketch, sketch.unroll, outermost.as_ref())?;
    ask_along(s, cached, &walk, sketch)?;
    s.compute_at(cached, partial, &at)?;
    fold_parts(s, (state, output), spec, sketch)
}

/// Has the states of parts be folded with vectors too, and by all threads where they are many.
pub(super) fn fold_parts(
    s: &mut Schedule,
    (state, output): (StageId, StageId),
    spec: &Spec,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let partial_bytes = sketch.chunks.n * spec.problem.n_outputs * state_bytes(&spec.reducer);
    let spreads = sketch.whole.parallel && partial_bytes >= PARALLEL_BYTES;
    let mut last = sketch.clone();
    if spreads {
        last.tile.width = last.tile.width.min(LAST_TILE.max(sketch.lanes));
    }
    let mut at = tile_loops(s, output, n_kept, &last)?;
    if spreads {
        at = spread(s, output, n_kept, &at)?;
    }
    fold_tile(s, state, n_kept, spec, &last, 1, None)?;
    place(s, state, Some(&super::steps::Site { stage: output, at }))
}

/// Splits the last kept loop of an element-wise stage into tiles and vectors, which go inside all other loops; the tile loop.
pub(super) fn tile_loops(
    s: &mut Schedule,
    stage: StageId,
    n_kept: usize,
    sketch: &Sketch,
) -> Result<IterVar, ScheduleError> {
    let last = s.stage(stage)?.leaves()[n_kept - 1].clone();
    let Tile { width, overlaps, .. } = sketch.tile;
    let by = if overlaps { Split::Overlap(width) } else { Split::Factor(width) };
    let (tile, within) = s.split(stage, &last, by)?;
    let (vector, lane) = s.split(stage, &within, Split::Factor(sketch.lanes))?;
    // A map's loops over the elements of a column stand behind those over columns.
    let mut order = s.stage(stage)?.leaves()[n_kept + 2..].to_vec();
    if !order.is_empty() {
        order.extend([vector, lane.clone()]);
        s.reorder(stage, &order)?;
    }
    if sketch.tile.together > 1 {
        let around = s.stage(stage)?.leaves()[n_kept - 2].clone();
        let (_, each) = s.split(stage, &around, Split::Factor(sketch.tile.together))?;
        s.reorder(stage, &[tile.clone(), each])?;
    }
    s.vectorize(stage, &lane)?;
    Ok(tile)
}

/// Spreads all loops down to the tile loop over threads; the loop that they are one of.
pub(super) fn spread(
    s: &mut Schedule,
    stage: StageId,
    n_kept: usize,
    tile: &IterVar,
) -> Result<IterVar, ScheduleError> {
    let loops = s.stage(stage)?.leaves()[..n_kept].to_vec();
    let fused = if loops.len() > 1 { s.fuse(stage, &loops)? } else { tile.clone() };
    s.parallel(stage, &fused)?;
    Ok(fused)
}

/// As [`spread`]; tiles that overlap, which no two threads may store, are a loop of each thread. Result: the loop over tiles or the one
/// that it is part of.
pub(super) fn spread_tiles(
    s: &mut Schedule,
    stage: StageId,
    n_kept: usize,
    tile: IterVar,
    sketch: &Sketch,
) -> Result<IterVar, ScheduleError> {
    match s.stage(stage)?.leaves()[..n_kept - 1].last().cloned().filter(|_| sketch.tile.overlaps) {
        Some(outer) => spread(s, stage, n_kept - 1, &outer).map(|_| tile),
        None => spread(s, stage, n_kept, &tile),
    }
}

/// Has the walk over a tile ask for memory ahead: of the next visit, along the loop over its vectors, or along the rows where that is
/// written out.
fn ask_along(s: &mut Schedule, stage: StageId, walk: &Walk, sketch: &Sketch) -> Result<(), ScheduleError> {
    if let Some(visit) = walk.visit.as_ref().filter(|_| sketch.ahead.rows > 0) {
        return s.pragma(stage, visit, hint(sketch), Attr::Int(sketch.ahead.rows));
    }
    if sketch.ahead.steps > 0 && sketch.tile.width / sketch.lanes > sketch.tile.written_out {
        s.pragma(stage, &walk.vector, hint(sketch), Attr::Int(sketch.ahead.steps))
    } else {
        ask_ahead(s, stage, hint(sketch), sketch.ahead.steps)
    }
}

/// The loops of a tile that ask for memory.
pub(super) struct Walk {
    /// Over visits of a few rows, where they are visited so.
    pub(super) visit: Option<IterVar>,
    /// Over the vectors of the tile.
    pub(super) vector: IterVar,
}

/// Folds a tile: the reduced loops outside, the vectors of the tile inside, `rows_a_visit` rows for each. `outermost`: which of the reduced
/// loops is the outermost in memory, where that may not be the first.
pub(super) fn fold_tile(
    s: &mut Schedule,
    stage: StageId,
    n_kept: usize,
    spec: &Spec,
    sketch: &Sketch,
    rows_a_visit: i64,
    outermost: Option<&IterVar>,
) -> Result<Walk, ScheduleError> {
    let leaves = s.stage(stage)?.leaves().to_vec();
    let (kept, reduce) = leaves.split_at(n_kept);
    let mut reduce = reduce.to_vec();
    if let Some(at) = reduce.iter().position(|axis| Some(axis) == outermost) {
        reduce[..=at].rotate_right(1);
    }
    let (vector, lane) = s.split(stage, &kept[n_kept - 1], Split::Factor(sketch.lanes))?;
    let mut order = kept[..n_kept - 1].to_vec();
    let around = if sketch.tile.together > 1 { order.pop() } else { None };
    let (mut few, mut visits) = (None, None);
    if let Some(rows) = reduce.pop_if(|_| rows_a_visit > 1) {
        let (visit, mut row) = s.split(stage, &rows, Split::Factor(rows_a_visit * sketch.pages.apart))?;
        reduce.push(visit.clone());
        visits = Some(visit);
        if sketch.pages.apart > 1 {
            let (side, within) = s.split(stage, &row, Split::Factor(sketch.pages.apart))?;
            reduce.push(within);
            row = side;
        }
        few = Some(row);
    }
    // The tiles of a row inside the loop over rows; others around a tile's rows.
    let n_within = if is_row_of_tiles(spec) { 0 } else { 1 + usize::from(sketch.pages.apart > 1) };
    let at = reduce.len().saturating_sub(n_within);
    reduce.splice(at..at, around);
    order.extend(reduce);
    order.push(vector.clone());
    order.extend(few.clone());
    order.push(lane.clone());
    s.reorder(stage, &order)?;
    s.vectorize(stage, &lane)?;
    if let Some(row) = few {
        s.unroll(stage, &row)?;
        if sketch.run.steps > 1 {
            s.in_runs(stage, &row)?;
        }
    }
    if sketch.tile.width / sketch.lanes <= sketch.tile.written_out {
        s.unroll(stage, &vector)?;
    }
    Ok(Walk { visit: visits, vector })
}

#[cfg(test)]
mod tests {
    use coulis_ir::DType;
    use coulis_ir::args::ArrayInfo;
    use coulis_reducers::ReducerRequest;

    use crate::order::ResultForm;
    use crate::plan::{choose, schedule};
    use crate::problem::Problem;
    use crate::program::{OutputSpec, Spec};
    use crate::strategy::tests::cpu;

    /// The strategy and trace of a fold of `float32` over the first dimensions, between which there are gaps.
    fn planned(op: &str, shape: &[i64], strides: &[i64], n_reduced: i64) -> (&'static str, String) {
        let input = ArrayInfo { dtype: DType::F32, shape: shape.to_vec(), strides: strides.to_vec() };
        let axes: Vec<i64> = (0..n_reduced).collect();
        let problem =
            Problem::new(std::slice::from_ref(&input), None, Some(&axes), ResultForm::default(), true);
        let request = ReducerRequest::new(&[DType::F32]).with_length(1 << 20);
        let reducer = coulis_reducers::find(op).unwrap().build(&request).unwrap();
        let outputs = vec![OutputSpec::plain(reducer.results[0].dtype)];
        let spec = Spec::new(problem.unwrap(), vec![DType::F32], false, reducer, outputs, None);
        let choice = choose(&spec, &cpu(64, 1)).unwrap();
        let made = schedule(&spec, choice.strategy, &choice.sketch).unwrap();
        (choice.strategy.name, made.schedule.trace().to_string())
    }

    #[test]
    fn parts_of_several_dimensions_are_walked_as_they_lie_in_memory() {
        for op in ["sum", "var", "argmax"] {
            let (strategy, trace) = planned(op, &[119, 18, 880], &[40_000, 1000, 1], 2);
            let order = ".reorder(k0_outer_c, k0_inner, k1_outer, i0_c_outer, k1_inner, ";
            assert!(strategy == "columns" && trace.contains(order), "{op} by {strategy}: {trace}");
            let (strategy, trace) = planned(op, &[400_000, 5, 16], &[120, 20, 1], 3);
            let order = ".reorder(k0_outer, k0_inner, k1, k2_outer, k2_inner)";
            assert!(strategy == "rows" && trace.contains(order), "{op} by {strategy}: {trace}");
        }
    }
}
