//! `short_rows`: a few neighbouring elements a row, and very many rows.
//!
//! Vectors run along the rows, one row a lane, and the few elements of a row are written out one by one. No lane is
//! ever folded with another. Where that is less work, the elements of a row are first folded to a short vector, as they
//! lie in memory, and the lanes of as many short vectors as there are rows are folded one row a lane.

use coulis_ir::Attr;
use coulis_schedule::{Schedule, ScheduleError, Split};

use super::steps::{Site, fold_loops, fold_states, place, same_axis, stage_of, stream_results};
use super::{Decline, Facts, Machine, PAGE_BYTES, Runs, SHORT, Sketch, Strategy, work};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "short_rows",
    machine: Machine::Loops,
    keeps_order: false,
    summary: "one row a lane; the few elements of a row are written out one by one, or folded to a short vector first",
    propose,
    schedule,
};

/// Longest row that is folded to a short vector.
const SHORT_BY_VECTORS: i64 = 64;
/// Rows of at most so many short vectors are written out one after another, as they are too short for a loop.
const UNROLLED_VECTORS: i64 = 2;
/// Shorter runs do not pay for their end.
const SHORTEST_RUN: i64 = 4;
/// Operations that bring one element of several rows side by side into lanes, and of elements that are converted as they
/// are read, which go one by one.
const OF_A_LANE: i64 = 7;
const OF_A_CONVERTED_LANE: i64 = 40;
/// Operations that do the same for a lane of a field of a short vector.
const OF_A_FIELD: i64 = 6;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let Some((extent, _, true)) = facts.inner() else {
        return Err(Decline::new("a reduced innermost dimension", "a kept one, or none"));
    };
    let short = short_vector(facts, extent);
    if extent > SHORT && short == 1 {
        return Err(Decline::new(
            "at most 32 elements in the innermost dimension, or 64 that fold to short vectors",
            extent,
        ));
    }
    let whole = if short == 1 { whole_run(facts, extent) } else { None };
    let lanes = whole.map_or_else(|| facts.lanes(), |runs| runs.lanes);
    match facts.dim_from_end(1) {
        Some((rows, _, false)) if rows >= lanes => {}
        Some((rows, _, false)) => {
            return Err(Decline::new("as many rows as lanes", format!("{rows} rows, {lanes} lanes")));
        }
        Some((_, _, true)) | None => {
            return Err(Decline::new("rows next to the innermost dimension", "none"));
        }
    }
    let ahead =
        facts.ahead(facts.ahead_front_to_back(), lanes * extent * facts.spec.inputs[0].bytes() as i64);
    let unroll = if extent <= UNROLLED_VECTORS * short { lanes } else { 1 };
    let apart = page_blocks(facts, lanes * extent);
    let pages = if apart > 1 { i64::from(facts.target.pages) } else { 1 };
    let run = if whole.is_some() { extent } else { short_run(facts, extent, short) };
    let mut sketch = Sketch { lanes, ahead, tile: short, unroll, apart, pages, run, ..facts.plain() };
    let n_dims = sketch.constant.len();
    sketch.constant[n_dims - 1] = true;
    sketch.constant[n_dims - 2] = pages > 1;
    Ok(sketch)
}

/// Steps of the run that folds a whole row to a vector of lanes of its own state, which is folded to the short vector then;
/// 1 where there is none, and where each row is to be asked whether that spoilt it, which costs more than the run saves.
fn short_run(facts: &Facts, extent: i64, short: i64) -> i64 {
    let quick = facts.spec.reducer.quick.as_ref();
    let widest = quick.and_then(|q| q.identity.iter().map(|e| e.dtype().bytes() as i64).max()).unwrap_or(1);
    let lanes = i64::from(facts.target.vector_bytes) / widest;
    let steps = extent / lanes;
    let is_asked = quick.is_some_and(|q| q.spoilt.is_some());
    let runs = short > 1 && lanes > short && extent % lanes == 0 && steps >= SHORTEST_RUN && !is_asked;
    if runs && facts.runs(steps).steps == steps { steps } else { 1 }
}

/// How a row that is the whole of an output, in one run in each lane, is folded; `None` where rows are too long for that, and where each
/// is to be asked whether its run spoilt it.
fn whole_run(facts: &Facts, extent: i64) -> Option<Runs> {
    let runs = facts.runs(SHORT);
    let is_asked = facts.spec.reducer.quick.as_ref().is_some_and(|q| q.spoilt.is_some());
    let is_whole = facts.spec.problem.reduce_len == extent;
    (runs.steps > 1 && extent <= runs.steps && is_whole && !is_asked).then_some(runs)
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

/// Lanes of the vector that a row is folded to before rows are brought side by side, 1 where that is more work or where
/// vectors are no registers.
fn short_vector(facts: &Facts, extent: i64) -> i64 {
    let reducer = &facts.spec.reducer;
    let widest = reducer.fields.iter().map(|f| f.dtype.bytes() as i64).max().unwrap_or(1);
    let vector = i64::from(facts.target.vector_bytes);
    let lanes = vector / widest;
    let is_dense = matches!(facts.inner(), Some((_, 1, _)));
    let fits = is_dense && vector <= 256 && lanes >= 4 && extent <= SHORT_BY_VECTORS;
    if !fits || extent < 2 * lanes || extent % lanes != 0 {
        return 1;
    }
    let input = facts.spec.inputs[0];
    let is_converted = input.is_float() && input.bytes() <= 2;
    let apart = extent * if is_converted { OF_A_CONVERTED_LANE } else { OF_A_LANE };
    let merges = (work(&reducer.combine) as i64) * facts.lanes() / vector;
    let together = lanes * (merges + OF_A_FIELD * reducer.fields.len() as i64);
    if together < apart { lanes } else { 1 }
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let rows = s.stage(output)?.leaves()[n_kept - 1].clone();
    // The elements of an output are those of one row, which is written out.
    let is_row = s.stage(state)?.reduce_axes().len() == 1;
    let (block, lane) = s.split(output, &rows, Split::Factor(sketch.lanes))?;
    s.vectorize(output, &lane)?;
    let mut block = block;
    let mut ahead = sketch.ahead;
    if sketch.pages > 1 {
        let (_, within) = s.split(output, &block, Split::Factor(sketch.pages * sketch.apart))?;
        let (page, within) = s.split(output, &within, Split::Factor(sketch.apart))?;
        s.reorder(output, &[within, page.clone(), lane.clone()])?;
        // The same place in the next pages.
        (block, ahead) = (page, sketch.pages);
    }
    if sketch.parallel {
        let outermost = s.stage(output)?.leaves()[0].clone();
        s.parallel(output, &outermost)?;
    }
    if ahead > 0 {
        s.pragma(output, &block, coulis_ir::remark::PREFETCH, Attr::Int(ahead))?;
    }
    stream_results(s, output, sketch)?;
    let at = Site { stage: output, at: block };
    if sketch.tile > 1 {
        let elements = s.stage(state)?.reduce_axes().to_vec();
        let Some(elements) = elements.last() else { return Ok(()) };
        let in_runs = sketch.run > 1;
        let by = if in_runs { Split::Nparts(sketch.run) } else { Split::Factor(sketch.tile) };
        let (steps, lane) = s.split(state, elements, by)?;
        let long = s.rfactor_at(state, &lane, n_kept as i64)?;
        fold_loops(s, long, n_kept)?;
        let steps = same_axis(s, long, &steps)?;
        s.unroll(long, &steps)?;
        let mut vector = long;
        if in_runs {
            s.in_runs(long, &steps)?;
            let axis = s.stage(state)?.reduce_axes()[0].clone();
            let (_, lane) = s.split(state, &axis, Split::Factor(sketch.tile))?;
            vector = s.rfactor_at(state, &lane, n_kept as i64)?;
            fold_loops(s, vector, n_kept)?;
            fold_states(s, vector)?;
        } else if is_row {
            s.from_first(long)?;
        }
        let row = s.stage(vector)?.leaves()[n_kept - 1].clone();
        if sketch.unroll > 1 {
            s.unroll(vector, &row)?;
        }
        place(s, vector, Some(&at))?;
        if in_runs {
            place(s, long, Some(&Site { stage: vector, at: row }))?;
        }
    }
    place(s, state, Some(&at))?;
    let leaves = s.stage(state)?.leaves().to_vec();
    let (kept, reduce) = leaves.split_at(n_kept);
    let mut order = kept[..n_kept - 1].to_vec();
    order.extend(reduce.iter().cloned());
    order.push(kept[n_kept - 1].clone());
    s.reorder(state, &order)?;
    s.vectorize(state, &kept[n_kept - 1])?;
    if let Some(inner) = reduce.last() {
        s.unroll(state, inner)?;
        if sketch.tile == 1 && sketch.run > 1 {
            return s.in_runs(state, inner);
        }
    }
    if is_row { s.from_first(state) } else { Ok(()) }
}
