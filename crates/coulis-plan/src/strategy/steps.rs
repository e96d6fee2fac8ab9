//! Steps that several strategies take.

use coulis_ir::remark::{PREFETCH, PREFETCH_L2};
use coulis_ir::{Attr, LoopKind, MemScope};
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::{IterKind, IterVar};

use super::settled::{ask_settled, first_of_row};
use crate::program::Spec;
use crate::strategy::{Sketch, floor_pow2};

/// Up to this many lanes are folded into one result one after another; more go through shorter vectors first, since
/// each state waits for the one before it.
const SCALAR_FOLD: i64 = 8;
/// Vectors of more lanes are folded by eights, others by fours.
const LONG_VECTOR: i64 = 64;
/// Shorter runs do not pay for their end.
pub const SHORTEST_RUN: i64 = 4;
/// Lanes that are left of each of several rows whose ends are folded together.
pub const END_LANES: i64 = 8;

/// A loop of a stage, at which other stages are computed.
#[derive(Clone)]
pub struct Site {
    /// The stage.
    pub stage: StageId,
    /// The loop.
    pub at: IterVar,
}

/// The loop of `stage` inside which one output's state lives. `n_kept`: the stage's leading loops over kept
/// dimensions; without any there is no such loop. With `parallel` the work is spread over threads: over the outermost
/// loop where it has work for all (`outer_is_long`), else over all kept loops fused into one.
pub fn site(
    s: &mut Schedule,
    stage: StageId,
    n_kept: usize,
    parallel: bool,
    outer_is_long: bool,
) -> Result<Option<Site>, ScheduleError> {
    let kept: Vec<IterVar> = s.stage(stage)?.leaves()[..n_kept].to_vec();
    let Some(mut at) = kept.last().cloned() else { return Ok(None) };
    if parallel && (outer_is_long || kept.len() == 1) {
        s.parallel(stage, &kept[0])?;
    } else if parallel {
        at = s.fuse(stage, &kept)?;
        s.parallel(stage, &at)?;
    }
    Ok(Some(Site { stage, at }))
}

/// Puts a stage's result into registers, computed at `site` if there is one.
pub fn place(s: &mut Schedule, stage: StageId, site: Option<&Site>) -> Result<(), ScheduleError> {
    s.set_scope(stage, MemScope::Local)?;
    match site {
        Some(site) => s.compute_at(stage, site.stage, &site.at),
        None => Ok(()),
    }
}

/// The reduce loops of a stage that several strategies know by their part.
pub struct Parts<'a> {
    /// The loop over the lanes of a vector.
    pub lane: &'a IterVar,
    /// That over blocks of all of these, before whose iterations states may be asked whether they are settled.
    pub block: Option<&'a IterVar>,
    /// That over vectors side by side, each with a state of its own, where there are several.
    pub side: Option<&'a IterVar>,
    /// That over pages read side by side, whose elements go to one state, where there are several.
    pub page: Option<&'a IterVar>,
    /// That over rows of which several are read side by side in the same way, and how many.
    pub rows: Option<(&'a IterVar, i64)>,
    /// That which is the outermost of all in memory, where a stage may list it behind others.
    pub outermost: Option<&'a IterVar>,
}

/// What [`fold_by_vectors`] made of a stage.
pub struct Made {
    /// The stages, to be placed where the state lives.
    pub stages: Vec<StageId>,
    /// The one among them whose lanes the stage itself folds.
    pub short: StageId,
    /// The one that reads elements, or most of them.
    pub reads: StageId,
}

/// Splits the fold of `stage` over its loops of lanes (and sides) into stages that fold vectors. From the data up:
/// vectors side by side, one vector, shorter vectors where there are many lanes; `stage` itself is left to fold the last
/// few lanes. Their data loops follow the `n_kept` of `stage`.
pub fn fold_by_vectors(
    s: &mut Schedule,
    stage: StageId,
    parts: &Parts<'_>,
    n_kept: usize,
    sketch: &Sketch,
) -> Result<Made, ScheduleError> {
    let vector = s.rfactor_at(stage, &same_axis(s, stage, parts.lane)?, n_kept as i64)?;
    let mut made = shorten(s, stage, vector, n_kept, sketch)?;
    // Rows side by side are states side by side.
    let n_data = n_kept;
    let n_kept = n_kept - usize::from(sketch.rows > 1 && sketch.joined > 1);
    let Some(side) = parts.side else {
        made.stages.extend(fold_row(s, vector, parts, n_kept, sketch)?);
        return Ok(made);
    };
    let many = s.rfactor_at(vector, &same_axis(s, vector, side)?, n_data as i64)?;
    made.stages.push(many);
    made.reads = many;
    made.stages.extend(fold_row(s, many, parts, n_kept, sketch)?);
    fold_loops(s, vector, n_kept)?;
    fold_states(s, vector)?;
    Ok(made)
}

/// Has stages of shorter and shorter vectors fold the lanes of `vector`, where these are many, and `stage` the last few.
fn shorten(
    s: &mut Schedule,
    stage: StageId,
    vector: StageId,
    n_kept: usize,
    sketch: &Sketch,
) -> Result<Made, ScheduleError> {
    let mut stages = vec![vector];
    let mut lanes = sketch.lanes;
    // Rows that end together leave as many lanes of each as a vector across them has room for.
    let fewest = match sketch.rows {
        1 if sketch.by_halves => 2,
        1 => SCALAR_FOLD,
        _ => END_LANES,
    };
    let mut short = vector;
    while lanes > fewest {
        let shorter = match lanes {
            _ if sketch.rows > 1 => floor_pow2(lanes / 4).max(fewest),
            _ if sketch.by_halves => lanes / 2,
            _ if lanes > LONG_VECTOR => floor_pow2(lanes / 8),
            _ => floor_pow2(lanes / 4),
        };
        let axis = s.stage(stage)?.reduce_axes()[0].clone();
        let (_, inner) = s.split(stage, &axis, Split::Factor(shorter))?;
        short = s.rfactor_at(stage, &inner, n_kept as i64)?;
        fold_loops(s, short, n_kept)?;
        fold_states(s, short)?;
        stages.push(short);
        lanes = shorter;
    }
    fold_states(s, stage)?;
    Ok(Made { stages, short, reads: vector })
}

/// As [`fold_by_vectors`], of rows whose elements are a loop as it was made, of which the first `sketch.head.length` are folded in whole runs,
/// by vectors side by side, and those behind them as [`cut_vectors`] has it.
pub fn fold_head_and_rest(
    s: &mut Schedule,
    stage: StageId,
    elements: &IterVar,
    spec: &Spec,
    sketch: &Sketch,
) -> Result<Made, ScheduleError> {
    let (lanes, unroll, run) = (sketch.lanes, sketch.unroll, sketch.run.steps);
    let n_data = spec.n_kept();
    // Rows side by side are states side by side.
    let n_kept = n_data - usize::from(sketch.rows > 1 && sketch.joined > 1);
    let Vectors { vector, head, rest, steps, lane } =
        cut_vectors(s, stage, elements, (lanes, n_kept), spec, sketch)?;
    let mut made = shorten(s, stage, vector, n_data, sketch)?;
    made.stages.push(head);
    made.stages.extend(rest);
    let (mut steps, mut reads) = (steps, head);
    if unroll > 1 {
        let (outer, side) = s.split(head, &steps, Split::Factor(unroll))?;
        reads = s.rfactor_at(head, &side, n_data as i64)?;
        made.stages.push(reads);
        fold_loops(s, head, n_kept)?;
        fold_states(s, head)?;
        steps = same_axis(s, reads, &outer)?;
    }
    made.reads = reads;
    if sketch.early_exit.first > 0 {
        let parts =
            Parts { lane: &lane, block: Some(&steps), side: None, page: None, rows: None, outermost: None };
        made.stages.extend(fold_row(s, reads, &parts, n_kept, sketch)?);
        return Ok(made);
    }
    if run > 1 && run * unroll * lanes < sketch.head.length {
        s.split(reads, &steps, Split::Factor(run))?;
    }
    let parts = Parts { lane: &lane, block: None, side: None, page: None, rows: None, outermost: None };
    fold_elements(s, reads, &parts, n_kept, sketch)?;
    Ok(made)
}

/// As [`fold_elements`], with the first elements of a row in a stage of their own where the sketch says so: that stage.
fn fold_row(
    s: &mut Schedule,
    stage: StageId,
    parts: &Parts<'_>,
    n_kept: usize,
    sketch: &Sketch,
) -> Result<Option<StageId>, ScheduleError> {
    let first = match parts.block {
        Some(block) => first_of_row(s, stage, block, sketch.lanes * sketch.unroll, sketch)?,
        None => None,
    };
    if let Some(first) = first {
        let mut sketch = sketch.clone();
        (sketch.early_exit.every, sketch.ahead.steps, sketch.run.steps) = (0, 0, 1);
        fold_elements(s, first, parts, n_kept, &sketch)?;
    }
    fold_elements(s, stage, parts, n_kept, sketch)?;
    Ok(first)
}

/// What [`cut_vectors`] made of a row.
pub struct Vectors {
    /// The stage of a vector for each row, that is left to be folded.
    pub vector: StageId,
    /// The stage that folds whole runs to such a vector, to be scheduled.
    pub head: StageId,
    /// Those that fold what is behind these.
    pub rest: Vec<StageId>,
    /// The loop over vectors of the head.
    pub steps: IterVar,
    /// The loop over the lanes of a vector, by its name.
    pub lane: IterVar,
}

/// Has rows whose elements are a loop as it was made be folded to vectors of so many lanes: the first `sketch.head.length` by a stage that
/// is left to be scheduled, whole vectors behind them by themselves, and what is behind the last of these as the end of one more.
/// The first `n_kept` loops of the new stages stay outside the others.
pub fn cut_vectors(
    s: &mut Schedule,
    stage: StageId,
    elements: &IterVar,
    (lanes, n_kept): (i64, usize),
    spec: &Spec,
    sketch: &Sketch,
) -> Result<Vectors, ScheduleError> {
    let mut elements = elements.clone();
    let length = elements.length().unwrap_or(sketch.head.length);
    let has_end = length % lanes > 0;
    if has_end {
        s.overlap(stage, &elements, lanes)?;
        elements = s.stage(stage)?.reduce_axes().last().cloned().unwrap_or(elements);
    }
    let (steps, lane) = s.split(stage, &elements, Split::Factor(lanes))?;
    let vector = s.rfactor_at(stage, &lane, spec.n_kept() as i64)?;
    let steps = same_axis(s, vector, &steps)?;
    let (head, behind) = s.cut(vector, &steps, sketch.head.length / lanes)?;
    fold_loops(s, vector, n_kept)?;
    let (mut rest, mut whole) = (vec![behind], behind);
    let n_whole = length / lanes - sketch.head.length / lanes;
    if has_end && n_whole > 0 {
        let steps = same_axis(s, behind, &steps)?;
        let (first, last) = s.cut(behind, &steps, n_whole)?;
        fold_loops(s, behind, n_kept)?;
        fold_loops(s, last, n_kept)?;
        rest.extend([first, last]);
        whole = first;
    }
    fold_loops(s, whole, n_kept)?;
    if n_whole > 0 {
        let quick = spec.reducer.quick.as_ref().filter(|quick| quick.spoilt.is_none());
        let steps = same_axis(s, whole, &steps)?;
        let longest = quick.map_or(0, |quick| i64::from(quick.max_steps).min(sketch.run.steps));
        let are_few = n_whole < SHORTEST_RUN;
        if (SHORTEST_RUN..=longest).contains(&n_whole) {
            s.in_runs(whole, &steps)?;
        } else if are_few || sketch.ahead.steps.max(sketch.ahead.bytes) == 0 {
            s.from_first(whole)?;
        }
        // One vector under a condition is no loop any more.
        if are_few && s.stage(whole)?.leaves().contains(&steps) {
            s.unroll(whole, &steps)?;
        }
    }
    let steps = same_axis(s, head, &steps)?;
    Ok(Vectors { vector, head, rest, steps, lane })
}

/// Places what [`fold_by_vectors`] made of rows that end together at `site`, a loop over blocks of `sketch.rows` of them:
/// each row is folded to a short vector, and `state`, with the rows side by side, folds the lanes of these. The loop over rows
/// is what is returned.
pub fn place_rows(
    s: &mut Schedule,
    state: StageId,
    made: &Made,
    n_kept: usize,
    sketch: &Sketch,
    site: Option<&Site>,
) -> Result<Site, ScheduleError> {
    let short = made.short;
    place(s, short, site)?;
    // The last rows end again with the block before theirs, where they are no whole one.
    s.clamp(short)?;
    let mut at = s.stage(short)?.leaves()[n_kept - 1].clone();
    if sketch.joined > 1 {
        let (rows, row) = s.split(short, &at, Split::Factor(sketch.joined))?;
        s.unroll(short, &row)?;
        at = rows;
    }
    let of_row = Site { stage: short, at };
    for &stage in made.stages.iter().filter(|stage| **stage != short) {
        place(s, stage, Some(&of_row))?;
    }
    place(s, state, site)?;
    s.clamp(state)?;
    let leaves = s.stage(state)?.leaves().to_vec();
    let (kept, reduce) = leaves.split_at(n_kept);
    if let Some((row, outer)) = kept.split_last() {
        let order: Vec<IterVar> = outer.iter().chain(reduce).chain([row]).cloned().collect();
        s.reorder(state, &order)?;
        s.vectorize(state, row)?;
    }
    Ok(of_row)
}

/// Has a stage that folds a few states write its reduced loops out, starting from the first state.
pub fn fold_states(s: &mut Schedule, stage: StageId) -> Result<(), ScheduleError> {
    let reduced: Vec<IterVar> =
        s.stage(stage)?.leaves().iter().filter(|leaf| leaf.kind() == IterKind::Reduce).cloned().collect();
    reduced.iter().try_for_each(|axis| s.unroll(stage, axis))?;
    s.from_first(stage)
}

/// Orders the loops of a stage as kept, reduced, state, and makes vectors of the innermost state loop; one before it
/// is unrolled.
pub fn fold_loops(s: &mut Schedule, stage: StageId, n_kept: usize) -> Result<(), ScheduleError> {
    fold_loops_from(s, stage, n_kept, None)
}

/// As [`fold_loops`], with a loop, known by its name, outside the others that fold.
fn fold_loops_from(
    s: &mut Schedule,
    stage: StageId,
    n_kept: usize,
    outermost: Option<&IterVar>,
) -> Result<(), ScheduleError> {
    let view = s.stage(stage)?;
    let leaves = view.leaves().to_vec();
    let n_data = view.axes().len();
    let (kept, rest) = leaves.split_at(n_kept);
    let (state, reduce) = rest.split_at(n_data - n_kept);
    let mut reduce = reduce.to_vec();
    let is_outermost = |leaf: &IterVar| outermost.is_some_and(|axis| axis.name() == leaf.name());
    if let Some(at) = reduce.iter().position(is_outermost) {
        reduce[..=at].rotate_right(1);
    }
    let order: Vec<IterVar> = kept.iter().chain(&reduce).chain(state).cloned().collect();
    s.reorder(stage, &order)?;
    if let Some((lane, sides)) = state.split_last() {
        s.vectorize(stage, lane)?;
        for side in sides {
            s.unroll(stage, side)?;
        }
    }
    Ok(())
}

/// Orders the loops of the stage that reads elements, has it ask for memory ahead and fold runs. Loops over pages go
/// inside the other reduced loops, written out.
fn fold_elements(
    s: &mut Schedule,
    stage: StageId,
    parts: &Parts<'_>,
    n_kept: usize,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    fold_loops_from(s, stage, n_kept, parts.outermost)?;
    ask_settled(s, stage, parts.block, sketch)?;
    let mut pages = Vec::new();
    if let Some((rows, beside)) = parts.rows {
        // A stage that is factored along a dimension keeps no splits of others.
        let rows = same_axis(s, stage, rows)?;
        pages.push(s.split(stage, &rows, Split::Factor(beside))?.1);
    }
    if let Some(page) = parts.page {
        pages.push(same_axis(s, stage, page)?);
    }
    if !pages.is_empty() {
        let leaves = s.stage(stage)?.leaves();
        let others = leaves.iter().filter(|leaf| leaf.kind() == IterKind::Reduce && !pages.contains(leaf));
        let order: Vec<IterVar> = others.chain(&pages).cloned().collect();
        s.reorder(stage, &order)?;
        pages.iter().try_for_each(|page| s.unroll(stage, page))?;
    }
    let mut chains = None;
    if let Some(axis) = innermost_loop(s, stage)?.filter(|_| sketch.run.chains > 1 && sketch.run.steps > 1) {
        let chain = s.split(stage, &axis, Split::Factor(sketch.run.chains))?.1;
        s.unroll(stage, &chain)?;
        chains = Some(chain);
    }
    ask_ahead(s, stage, PREFETCH, sketch.ahead.steps)?;
    match innermost_loop(s, stage)?.filter(|_| sketch.run.steps > 1) {
        Some(axis) => s.in_runs_of_chains(stage, &axis, chains.as_ref()),
        None => Ok(()),
    }
}

/// The innermost folding loop that is not written out.
fn innermost_loop(s: &Schedule, stage: StageId) -> Result<Option<IterVar>, ScheduleError> {
    let view = s.stage(stage)?;
    let runs = |leaf: &&IterVar| leaf.kind() == IterKind::Reduce && view.kind_of(leaf) == LoopKind::Serial;
    Ok(view.leaves().iter().rev().find(runs).cloned())
}

/// The pragma by which columns ask for memory.
pub fn hint(sketch: &Sketch) -> &'static str {
    if sketch.ahead.near { PREFETCH } else { PREFETCH_L2 }
}

/// Has the innermost folding loop that is not written out ask for the memory of `ahead` iterations later, by that pragma; not
/// at all for 0. A few streams are asked for into the first-level cache. Of many, and of pieces of memory set apart, hardware follows
/// none, so that all lines would wait for the few that may be on their way there: they go into the second-level cache.
pub fn ask_ahead(s: &mut Schedule, stage: StageId, pragma: &str, ahead: i64) -> Result<(), ScheduleError> {
    match innermost_loop(s, stage)?.filter(|_| ahead > 0) {
        Some(axis) => s.pragma(stage, &axis, pragma, Attr::Int(ahead)),
        None => Ok(()),
    }
}

/// Has a stage of results store them past the caches, where the sketch says so: all within the loop around its vectors.
pub fn stream_results(s: &mut Schedule, stage: StageId, sketch: &Sketch) -> Result<(), ScheduleError> {
    let view = s.stage(stage)?;
    let is_loop = |leaf: &&IterVar| view.kind_of(leaf) == LoopKind::Serial;
    match view.leaves().iter().rev().find(is_loop).cloned().filter(|_| sketch.whole.streams) {
        Some(axis) => s.pragma(stage, &axis, coulis_ir::remark::STREAM, Attr::Int(1)),
        None => Ok(()),
    }
}

/// Whether a row of so many elements has some behind its last whole vector, and one of these.
pub fn has_rest(n: i64, lanes: i64) -> bool {
    n > lanes && n % lanes != 0
}

/// Splits a loop of an element-wise stage into vectors of so many lanes: the loop over vectors, and that over lanes. The last vector of a
/// row that is no whole number of them begins in the one before it, where the row's length is known.
pub fn split_vectors(
    s: &mut Schedule,
    stage: StageId,
    axis: &IterVar,
    lanes: i64,
) -> Result<(IterVar, IterVar), ScheduleError> {
    let by = if axis.length().is_some_and(|n| has_rest(n, lanes)) {
        Split::Overlap(lanes)
    } else {
        Split::Factor(lanes)
    };
    let (vector, lane) = s.split(stage, axis, by)?;
    s.vectorize(stage, &lane)?;
    Ok((vector, lane))
}

/// The stage that computes a tensor.
pub fn stage_of(s: &Schedule, tensor: &coulis_tensor::Tensor) -> Result<StageId, ScheduleError> {
    Ok(s.stage(tensor)?.id())
}

/// The loop of `stage` that stands for a loop of the stage that it was factored from; those have equal names.
pub fn same_axis(s: &Schedule, stage: StageId, axis: &IterVar) -> Result<IterVar, ScheduleError> {
    let found = s.stage(stage)?.leaves().iter().find(|leaf| leaf.name() == axis.name()).cloned();
    Ok(found.unwrap_or_else(|| axis.clone()))
}
