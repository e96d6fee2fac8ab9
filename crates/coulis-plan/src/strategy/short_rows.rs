//! `short_rows`: a few neighbouring elements a row, and very many rows.
//!
//! Vectors run along the rows, one row a lane, and the few elements of a row are written out one by one. No lane is
//! ever folded with another. Where that is less work, the elements of a row are first folded to a short vector, as they
//! lie in memory, and the lanes of as many short vectors as there are rows are folded one row a lane. What is behind the last
//! whole vector of a row is cut off, and folded as the end of a vector that begins before it, or one row a lane as well where that is
//! less work.
//!
//! The elements of longer rows are brought into lanes in tiles, as neighbours in memory are loaded together, and the few behind the
//! last tile one by one: states of many fields are less work so than folded along a row.

use coulis_ir::Attr;
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::IterVar;

use super::steps::{
    SHORTEST_RUN, Site, cut_vectors, fold_loops, fold_states, place, same_axis, stage_of, stream_results,
};
use super::{
    Decline, Facts, Machine, PAGE_BYTES, Pages, RowHead, Run, Runs, SHORT, Sketch, Strategy, Tile,
    calls_functions, ceil_div, even_turns, floor_pow2, state_bytes, work,
};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "short_rows",
    machine: Machine::Loops,
    keeps_order: false,
    summary: "one row a lane; the few elements of a row are written out one by one, in tiles, or folded to a short vector first",
    propose,
    schedule,
};

/// Longest row that is folded to a short vector. Of longer ones there are several vectors side by side.
const SHORT_BY_VECTORS: i64 = 255;
/// Longest row that is brought into lanes in tiles where runs are of bytes.
const SHORT_OF_BYTES: i64 = 640;
/// Longest row that is folded in runs of one row a lane, where bringing lanes together calls functions.
const SHORT_IN_RUNS: i64 = 96;
/// Most short vectors of a row that are folded to one: of more, which would wait for each other too long, every other goes to a second.
const LONGEST_CHAIN: i64 = 24;
/// Rows of at most so many short vectors are written out one after another, as they are too short for a loop.
const UNROLLED_VECTORS: i64 = 2;
/// Vector operations of a row that are written out, at most; more are a loop, whose text compilers are done with sooner.
const MOST_OPERATIONS: i64 = 160;
/// Operations that bring one element of several rows side by side into lanes. Those of a tile take one, and one for each byte, as
/// wide elements are fewer in a load; those behind tiles, which go one by one, half as many as there are lanes.
const OF_A_LANE: i64 = 7;
/// Elements of a row that are brought into lanes by loads of neighbours, as those of longer rows are where they make up all of each.
const TILE: i64 = 8;
/// Rows of fewer blocks are few.
const FEW_BLOCKS: i64 = 16;
/// Halves of vectors in a row, at most, that are taken for whole ones: of elements that are widened, and of others. Of more the steps
/// are most of the work. Measured, as the next ones, on Zen 4.
const MOST_HALVES: i64 = 8;
const MOST_HALVES_AS_WIDE: i64 = 3;
/// Steps of a run of halves, at most.
const MOST_HALVES_IN_RUNS: i64 = 16;
/// Bytes of an element of a run of floats.
const RUN_BYTES: i64 = 4;
/// Bytes that one instruction reads and widens floats from.
const WIDENED_BYTES: i64 = 16;
/// Elements of so many bytes fill whole vectors as fast as halves.
const LONG_BYTES: i64 = 8;
/// Operations of a vector's end beside its choices and the combination with others.
const OF_AN_END: i64 = 7;
/// Operations that do the same for a lane of a field of a short vector.
const OF_A_FIELD: i64 = 6;
/// Those that fold it with its neighbour.
const OF_A_PAIR: i64 = 3;
/// Bytes of vectors of which one instruction takes any lanes of two.
const ANY_OF_TWO_BYTES: u32 = 64;
/// Bytes of such lanes.
const ANY_OF_TWO_LANES: [usize; 2] = [4, 8];

/// What it would do, or the need that is not met.
pub fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let Some((extent, _, true)) = facts.inner() else {
        return Err(Decline::new("a reduced innermost dimension", "a kept one, or none"));
    };
    let is_dear = calls_functions(&facts.spec.reducer.combine);
    let tiled = if is_dear { 0 } else { tiled_length(facts, extent) };
    let whole = whole_runs(facts, extent, if is_dear { SHORT_IN_RUNS } else { SHORT }, tiled);
    let head = if is_dear && whole.is_some() { None } else { head(facts, extent, tiled) };
    let whole = whole.filter(|_| head.is_none());
    if extent > SHORT && head.is_none() && whole.is_none() && tiled == 0 {
        return Err(Decline::new(
            format!(
                "at most {SHORT} elements in the innermost dimension, or {} neighbours that fold to short vectors or come in tiles",
                longest_in_tiles(facts)
            ),
            extent,
        ));
    }
    let rows = facts.dim_from_end(1);
    // Where there are fewer rows than a run has lanes, a vector of states is enough.
    let fitting = |runs: Runs| runs.lanes.min(facts.lanes().max(floor_pow2(rows.map_or(1, |rows| rows.0))));
    let of_pairs = head.as_ref().filter(|_| folds_pairs(facts)).map(|head| head.short);
    let lanes = of_pairs.unwrap_or_else(|| whole.map_or_else(|| facts.lanes(), fitting));
    let lanes = rows.map_or(lanes, |(rows, ..)| in_whole_blocks(rows, lanes));
    match rows {
        Some((rows, _, false)) if rows >= lanes => {}
        Some((rows, _, false)) => {
            return Err(Decline::new("as many rows as lanes", format!("{rows} rows, {lanes} lanes")));
        }
        Some((_, _, true)) | None => {
            return Err(Decline::new("rows next to the innermost dimension", "none"));
        }
    }
    let ahead = facts
        .ahead_of_walk(facts.ahead_front_to_back(), lanes * extent * facts.spec.inputs[0].bytes() as i64);
    let apart = page_blocks(facts, lanes * extent);
    let pages = Pages { apart, of_each: if apart > 1 { facts.target.pages.into() } else { 1 } };
    let run = whole.map_or(1, |runs| run_of(extent, runs.steps, tiled));
    let mut sketch = Sketch { lanes, pages, run: Run::of(run), ..facts.plain() };
    sketch.ahead.steps = ahead;
    if tiled < extent && head.is_none() {
        sketch.head.length = tiled;
    }
    if let Some(head) = head {
        let is_tiny = head.length <= UNROLLED_VECTORS * head.short;
        sketch = Sketch {
            head: RowHead {
                length: head.length,
                lanes: head.lanes,
                overlaps: overlaps(facts, extent - head.length, head.lanes),
                in_pairs: of_pairs.is_some() && lanes % head.short == 0,
            },
            tile: Tile { written_out: written_out(facts, &head), ..Tile::of(head.short) },
            run: Run::of(head.run),
            unroll: if is_tiny { lanes } else { 1 },
            ..sketch
        };
    }
    let n_dims = sketch.constant.len();
    sketch.constant[n_dims - 1] = true;
    sketch.constant[n_dims - 2] = pages.of_each > 1;
    Ok(sketch)
}

/// What is folded by vectors along a row.
struct Head {
    /// Elements, from the first of the row.
    length: i64,
    /// Those of a vector.
    lanes: i64,
    /// Lanes of the vector that they are folded to.
    short: i64,
    /// Vectors of a run; 1 is no runs.
    run: i64,
}

/// Lanes of blocks, at most so many, that make up a few rows: a rest would be as much work as several blocks.
fn in_whole_blocks(rows: i64, lanes: i64) -> i64 {
    let fewer = rows & -rows;
    if rows < FEW_BLOCKS * lanes && rows % lanes != 0 && fewer >= TILE { fewer } else { lanes }
}

/// Elements of rows of so many neighbours, too many to be written out, that may be brought into lanes tile by tile; 0 if none.
fn tiled_length(facts: &Facts, extent: i64) -> i64 {
    let is_row = facts.spec.problem.reduce_len == extent && matches!(facts.inner(), Some((_, 1, _)));
    let is_long = SHORT < extent && extent <= longest_in_tiles(facts);
    if is_long && is_row && facts.target.vectors_are_registers { extent / TILE * TILE } else { 0 }
}

/// Whether elements are integers, which lanes take as they are, and states have several fields, which are most of the work where vectors
/// along a row end.
fn has_integer_states(facts: &Facts) -> bool {
    !facts.spec.inputs[0].is_float() && facts.spec.reducer.fields.len() > 1
}

/// The longest row that is brought into lanes in tiles: longer where positions, which a second walk finds where a run does not tell them,
/// are bytes in runs.
fn longest_in_tiles(facts: &Facts) -> i64 {
    let runs = facts.runs(SHORT_BY_VECTORS);
    let are_bytes = runs.are_narrower && runs.lanes == i64::from(facts.target.vector_bytes);
    if facts.may_rewalk() && are_bytes && has_integer_states(facts) {
        SHORT_OF_BYTES
    } else {
        SHORT_BY_VECTORS
    }
}

/// Steps of a run of at most so many; of whole tiles, where that many elements of rows are folded by these.
fn run_of(extent: i64, most: i64, tiled: i64) -> i64 {
    let n_tiles = tiled / TILE;
    let of_tiles = (1..=n_tiles).rev().find(|n| n_tiles % n == 0 && n * TILE <= most);
    of_tiles.map_or_else(|| even_turns(extent, most), |n| n * TILE)
}

/// What is folded by vectors along a row; `None` where that is more work than one row a lane, or where vectors are no registers.
/// Where the machine works on vectors half by half, a whole one only has more lanes to fold with each other, and halves are taken for
/// states of one field, if they are few, and for runs.
fn head(facts: &Facts, extent: i64, tiled: i64) -> Option<Head> {
    let vector = i64::from(facts.target.vector_bytes);
    let whole = head_of(facts, extent, tiled, vector);
    let element = facts.spec.inputs[0];
    let bytes = element.bytes() as i64;
    if !facts.target.halves_vectors || bytes >= LONG_BYTES {
        return whole;
    }
    let Some(half) = head_of(facts, extent, tiled, vector / 2) else { return whole };
    let is_widened = state_bytes(&facts.spec.reducer) > bytes;
    let most = if is_widened { MOST_HALVES } else { MOST_HALVES_AS_WIDE };
    let is_few = extent <= most * half.short;
    let is_read_at_once = |lanes: i64| lanes * bytes >= WIDENED_BYTES;
    let is_less = if half.run > 1 {
        let (in_halves, is_long) = (half.lanes * RUN_BYTES < vector, half.run > MOST_HALVES_IN_RUNS);
        element.is_float()
            && is_read_at_once(if in_halves { half.lanes } else { half.short })
            && !(in_halves && is_long)
    } else {
        let is_one_field = facts.spec.reducer.fields.len() == 1;
        is_one_field && is_few && (is_read_at_once(half.short) || whole.is_some() && element.is_int())
    };
    if is_less { Some(half) } else { whole }
}

/// The same by vectors of so many bytes.
fn head_of(facts: &Facts, extent: i64, tiled: i64, vector: i64) -> Option<Head> {
    let reducer = &facts.spec.reducer;
    let widest = reducer.fields.iter().map(|f| f.dtype.bytes() as i64).max().unwrap_or(1);
    // Rows that are too long to be written out one by one hold two vectors.
    let short = if extent > SHORT { (vector / widest).min(floor_pow2(extent / 2)) } else { vector / widest };
    let in_pairs = folds_pairs(facts);
    let is_dense = matches!(facts.inner(), Some((_, 1, _)));
    let fits = is_dense && facts.target.vectors_are_registers && short >= 4 && extent <= SHORT_BY_VECTORS;
    if !fits || extent < if in_pairs { short } else { 2 * short } {
        return None;
    }
    let lanes = if extent / short > LONGEST_CHAIN { 2 * short } else { short };
    let head = head_in_runs(facts, extent, short, vector).unwrap_or(Head {
        length: extent / lanes * lanes,
        lanes,
        short,
        run: 1,
    });
    let bytes = facts.spec.inputs[0].bytes() as i64;
    let one_by_one = OF_A_LANE.max(if tiled > 0 { vector / bytes / 2 } else { 0 });
    let merges = (work(&reducer.combine) as i64) * facts.lanes() / vector;
    // Lanes that are folded in pairs are not folded once more.
    let steps = if in_pairs { merges } else { 0 };
    let apart = tiled * (1 + bytes) + (extent - tiled) * one_by_one + extent * steps;
    let of_a_field = if in_pairs { OF_A_PAIR } else { OF_A_FIELD };
    let of_fields = short * (merges + of_a_field * reducer.fields.len() as i64);
    let folded = of_fields + (extent - head.length) * (OF_A_LANE + steps);
    // Runs of narrow states fold more rows side by side than a vector of their own states has lanes, with one operation a step; along a
    // row they end in several such vectors.
    let runs = facts.runs(tiled.max(SHORT));
    let along = if tiled > 0 && runs.steps > 1 && has_integer_states(facts) {
        let combine = work(&reducer.combine) as i64;
        let more = if head.run > 1 {
            runs.lanes * (head.lanes / short - 1) * (combine * short / vector)
        } else {
            (extent * combine * runs.lanes / vector - extent * runs.operations).max(0)
        };
        folded * (runs.lanes / facts.lanes()).max(1) + more
    } else {
        folded
    };
    (along < apart || extent > SHORT && tiled == 0).then_some(head)
}

/// Whether lanes are folded two neighbours at a time: half as many operations as those that bring them side by side, where one takes
/// every other lane of two vectors. States whose steps are less work than to bring two of them together are folded step by step.
fn folds_pairs(facts: &Facts) -> bool {
    let reducer = &facts.spec.reducer;
    let are_moved = reducer.fields.iter().all(|f| ANY_OF_TWO_LANES.contains(&f.dtype.bytes()));
    let takes_any = facts.target.vector_bytes == ANY_OF_TWO_BYTES && !facts.target.halves_vectors;
    takes_any && are_moved && reducer.step.is_none()
}

/// Whether so many elements behind what is folded by vectors are less work as the end of one more of them than with one row a lane:
/// a vector costs its state's end and a choice a field.
fn overlaps(facts: &Facts, rest: i64, lanes: i64) -> bool {
    let reducer = &facts.spec.reducer;
    let vector = i64::from(facts.target.vector_bytes);
    let combine = ceil_div(work(&reducer.combine) as i64 * lanes, vector);
    let n_whole = rest / lanes;
    let n_combined = n_whole + (rest % lanes).min(1);
    let of_end = ceil_div(state_bytes(reducer) * lanes, vector);
    let is_row = facts.spec.problem.reduce_len == facts.inner().map_or(0, |(extent, ..)| extent);
    is_row && !facts.spec.mask && n_combined * combine + of_end + OF_AN_END < rest * OF_A_LANE
}

/// Runs that fold rows to vectors of lanes of their own state, which are folded to the short vector then; `None` where there are none,
/// and where each row is to be asked whether that spoilt it, which costs more than runs save.
fn head_in_runs(facts: &Facts, extent: i64, short: i64, vector: i64) -> Option<Head> {
    if is_asked(facts) {
        return None;
    }
    let runs = facts.runs(SHORT_BY_VECTORS);
    // Halves gain where elements are widened to those of runs.
    let is_widened = (facts.spec.inputs[0].bytes() as i64) < RUN_BYTES;
    let register = if is_widened { vector } else { facts.target.vector_bytes.into() };
    let n_runs = |runs: &Runs| ceil_div(extent / runs.lanes, runs.steps).max(1);
    let narrower = facts
        .of_one_register(&runs, register)
        .filter(|of_one| of_one.lanes >= short && n_runs(of_one) == n_runs(&runs));
    let runs = narrower.unwrap_or(runs);
    let (lanes, longest, n_runs) = (runs.lanes, runs.steps, n_runs(&runs));
    let run = extent / lanes / n_runs;
    let length = n_runs * run * lanes;
    (longest > 1 && lanes >= short && run >= SHORTEST_RUN).then_some(Head { length, lanes, short, run })
}

/// Vectors of a row, or of a run, where these are few enough to be written out; else 0.
fn written_out(facts: &Facts, head: &Head) -> i64 {
    let runs = facts.runs(head.run);
    let steps = if head.run > 1 { head.run } else { head.length / head.lanes };
    let operations = steps * runs.operations * head.lanes / runs.lanes;
    if operations <= MOST_OPERATIONS { steps } else { 0 }
}

/// How a row that is the whole of an output is folded in runs in each lane; `None` where each is to be asked whether its runs spoilt it.
fn whole_runs(facts: &Facts, extent: i64, longest: i64, tiled: i64) -> Option<Runs> {
    let runs = facts.runs(tiled.max(SHORT));
    let is_whole = facts.spec.problem.reduce_len == extent;
    let is_short = extent <= longest || tiled > 0 && runs.steps >= TILE;
    (runs.steps > 1 && is_short && is_whole && !is_asked(facts)).then_some(runs)
}

/// Whether each row is to be asked whether its runs spoilt it.
fn is_asked(facts: &Facts) -> bool {
    facts.spec.reducer.quick.as_ref().is_some_and(|quick| quick.spoilt.is_some())
}

/// Blocks of so many elements in a page, where rows in memory are read in blocks from several pages in turn; else 1. That is
/// where whole such pages make up all rows: the rest would be most of the kernel.
fn page_blocks(facts: &Facts, block: i64) -> i64 {
    let (Some((extent, 1, _)), Some((rows, stride, _))) = (facts.inner(), facts.dim_from_end(1)) else {
        return 1;
    };
    let bytes = block * facts.spec.inputs[0].bytes() as i64;
    let is_walk = stride == extent && facts.ahead(PAGE_BYTES, bytes) > 0 && PAGE_BYTES % bytes == 0;
    let pages = i64::from(facts.target.pages);
    let is_whole = rows * extent * bytes % (pages * PAGE_BYTES * block) == 0;
    if is_walk && !facts.reads_front_to_back() && is_whole { PAGE_BYTES / bytes } else { 1 }
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    fold_short(s, (state, output), spec, sketch)
}

/// Folds rows to `state`, in blocks of the last of the first kept loops of `output`.
pub fn fold_short(
    s: &mut Schedule,
    (state, output): (StageId, StageId),
    spec: &Spec,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let rows = s.stage(output)?.leaves()[n_kept - 1].clone();
    // The elements of an output are those of one row, which is written out.
    let is_row = s.stage(state)?.reduce_axes().len() == 1;
    let (block, lane) = s.split(output, &rows, Split::Factor(sketch.lanes))?;
    s.vectorize(output, &lane)?;
    let mut block = block;
    let mut ahead = sketch.ahead.steps;
    if sketch.pages.of_each > 1 {
        let Pages { apart, of_each } = sketch.pages;
        let (_, within) = s.split(output, &block, Split::Factor(of_each * apart))?;
        let (page, within) = s.split(output, &within, Split::Factor(apart))?;
        s.reorder(output, &[within, page.clone(), lane.clone()])?;
        // The same place in the next pages.
        (block, ahead) = (page, of_each);
    }
    if sketch.whole.parallel {
        let outermost = s.stage(output)?.leaves()[0].clone();
        s.parallel(output, &outermost)?;
    }
    if ahead > 0 {
        s.pragma(output, &block, coulis_ir::remark::PREFETCH, Attr::Int(ahead))?;
    }
    stream_results(s, output, sketch)?;
    let at = Site { stage: output, at: block };
    let Some(elements) = s.stage(state)?.reduce_axes().last().cloned() else { return Ok(()) };
    let rows = Rows { n_kept, is_row, at };
    let length = spec.problem.dims.last().map_or(0, |dim| dim.extent);
    if sketch.head.length == 0 {
        return rows.fold_apart(s, state, sketch.run.steps);
    }
    if sketch.head.length == length || sketch.head.overlaps {
        return rows.fold_by_vectors(s, state, spec, sketch);
    }
    let (head, tail) = s.cut(state, &elements, sketch.head.length)?;
    if sketch.head.lanes == 1 {
        rows.fold_apart(s, head, sketch.run.steps)?;
    } else {
        rows.fold_by_vectors(s, head, spec, sketch)?;
    }
    rows.fold_apart(s, tail, 1)?;
    rows.side_by_side(s, state)
}

/// The rows of a block.
struct Rows {
    n_kept: usize,
    /// Whether a row is the whole of an output.
    is_row: bool,
    /// The loop over blocks.
    at: Site,
}

impl Rows {
    /// Has a stage fold elements as they lie in memory to a short vector of each row, and those with one row a lane.
    fn fold_by_vectors(
        &self,
        s: &mut Schedule,
        stage: StageId,
        spec: &Spec,
        sketch: &Sketch,
    ) -> Result<(), ScheduleError> {
        let n_kept = self.n_kept;
        let Some(elements) = s.stage(stage)?.reduce_axes().last().cloned() else { return Ok(()) };
        let (long, reads, rest, mut steps);
        if sketch.head.overlaps {
            let parts = cut_vectors(s, stage, &elements, (sketch.head.lanes, n_kept), spec, sketch)?;
            (long, reads, rest, steps) = (parts.vector, parts.head, parts.rest, parts.steps);
        } else {
            let (of_stage, lane) = s.split(stage, &elements, Split::Factor(sketch.head.lanes))?;
            long = s.rfactor_at(stage, &lane, n_kept as i64)?;
            (reads, rest, steps) = (long, Vec::new(), same_axis(s, long, &of_stage)?);
        }
        fold_loops(s, reads, n_kept)?;
        let in_runs = sketch.run.steps > 1;
        if in_runs && sketch.run.steps * sketch.head.lanes < sketch.head.length {
            steps = s.split(reads, &steps, Split::Factor(sketch.run.steps))?.1;
        }
        let is_written_out = steps.length().is_none_or(|n| n <= sketch.tile.written_out);
        if is_written_out {
            s.unroll(reads, &steps)?;
        }
        if in_runs {
            s.in_runs(reads, &steps)?;
        } else if self.is_row && is_written_out {
            s.from_first(reads)?;
        }
        let mut vector = long;
        if sketch.head.lanes > sketch.tile.width {
            let axis = s.stage(stage)?.reduce_axes()[0].clone();
            let (_, lane) = s.split(stage, &axis, Split::Factor(sketch.tile.width))?;
            vector = s.rfactor_at(stage, &lane, n_kept as i64)?;
            fold_loops(s, vector, n_kept)?;
            fold_states(s, vector)?;
        }
        let row = s.stage(vector)?.leaves()[n_kept - 1].clone();
        if sketch.unroll > 1 {
            s.unroll(vector, &row)?;
        }
        place(s, vector, Some(&self.at))?;
        let of_row = Site { stage: vector, at: row };
        for part in [long, reads].into_iter().chain(rest).filter(|part| *part != vector) {
            place(s, part, Some(&of_row))?;
        }
        if sketch.head.in_pairs {
            self.fold_pairs(s, stage, sketch.tile.width)?;
        }
        self.fold_apart(s, stage, 1)
    }

    /// Has the short vectors of so many lanes, of as many rows or more, that a stage folds be folded two neighbours at a time, to vectors
    /// of two lanes a row.
    fn fold_pairs(&self, s: &mut Schedule, stage: StageId, lanes: i64) -> Result<(), ScheduleError> {
        let mut left = lanes;
        while left > 2 {
            let axis = s.stage(stage)?.reduce_axes()[0].clone();
            let (pair, _) = s.split(stage, &axis, Split::Factor(2))?;
            let pairs = s.rfactor_at(stage, &pair, self.n_kept as i64)?;
            let leaves = s.stage(pairs)?.leaves().to_vec();
            let [row, pair, side] = &leaves[self.n_kept - 1..] else { return Ok(()) };
            let of_rows = s.fuse(pairs, &[row.clone(), pair.clone()])?;
            let (vector, lane) = s.split(pairs, &of_rows, Split::Factor(lanes))?;
            s.reorder(pairs, &[vector.clone(), side.clone(), lane.clone()])?;
            s.vectorize(pairs, &lane)?;
            s.unroll(pairs, &vector)?;
            s.unroll(pairs, side)?;
            if self.is_row {
                s.from_first(pairs)?;
            }
            place(s, pairs, Some(&self.at))?;
            left /= 2;
        }
        Ok(())
    }

    /// Has a stage fold with one row a lane, in runs of so many steps; 1 is no runs.
    fn fold_apart(&self, s: &mut Schedule, stage: StageId, run: i64) -> Result<(), ScheduleError> {
        let mut inner = s.stage(stage)?.leaves()[self.n_kept..].last().cloned();
        let mut length = inner.as_ref().and_then(IterVar::length).unwrap_or(1);
        if let Some(steps) = inner.as_ref().filter(|_| 1 < run && run < length) {
            inner = Some(s.split(stage, steps, Split::Factor(run))?.1);
            length = run;
        }
        let mut steps = inner.clone();
        if let Some(long) = inner.as_ref().filter(|_| length > SHORT) {
            let tile = if length % (2 * TILE) == 0 { 2 * TILE } else { TILE };
            let (tiles, within) = s.split(stage, long, Split::Factor(tile))?;
            (steps, inner) = (Some(tiles), Some(within));
        }
        self.side_by_side(s, stage)?;
        if let Some(inner) = &inner {
            s.unroll(stage, inner)?;
        }
        match &steps {
            Some(steps) if run > 1 => s.in_runs(stage, steps),
            _ if self.is_row && steps == inner => s.from_first(stage),
            _ => Ok(()),
        }
    }

    /// Places a stage at the block, with the loop over its rows in all others and one row a lane.
    fn side_by_side(&self, s: &mut Schedule, stage: StageId) -> Result<(), ScheduleError> {
        place(s, stage, Some(&self.at))?;
        let leaves = s.stage(stage)?.leaves().to_vec();
        let (kept, reduce) = leaves.split_at(self.n_kept);
        let Some((row, outer)) = kept.split_last() else { return Ok(()) };
        let order: Vec<IterVar> = outer.iter().chain(reduce).chain([row]).cloned().collect();
        s.reorder(stage, &order)?;
        s.vectorize(stage, row)
    }
}

#[cfg(test)]
mod tests {
    use coulis_ir::DType;
    use coulis_reducers::ReducerRequest;

    use crate::strategy::near_rows::tests::cpu;
    use crate::strategy::tests::planned_for;

    #[test]
    fn positions_in_rows_of_narrow_integers_come_into_lanes_by_tiles() {
        let tiled = |op: &str, dtype: DType, extent: i64| {
            let request = ReducerRequest::new(&[dtype]).with_length(extent);
            let (_, sketch, strategy) = planned_for(&request, op, &[100_000, extent], &[1], &cpu());
            strategy.name == "short_rows" && (sketch.head.length == 0 || sketch.head.lanes == 1)
        };
        for extent in [64, 100, 128, 255, 300, 640] {
            assert!(tiled("argmax", DType::U8, extent) && tiled("argmin", DType::Bool, extent), "{extent}");
        }
        assert!(!tiled("argmax", DType::U8, 641), "long");
        assert!(
            tiled("argmax", DType::I16, 64) && !tiled("argmax", DType::I16, 128),
            "half as many rows a vector"
        );
        assert!(!tiled("sum", DType::U8, 100) && !tiled("var", DType::U8, 300), "nothing to be found");
        assert!(!tiled("var", DType::F16, 128), "floats, which are widened");
    }
}
