//! `interleaved`: a few outputs side by side in memory, folded over many steps, as colour channels are; and up to some hundred of which
//! what is left behind whole vectors would be much work.
//!
//! As many steps as make whole vectors of neighbours in memory are one wide step: its elements go to states of their own, of
//! which each output has one a step, and these are folded at the end. Nothing is moved between lanes before. Where steps do not
//! follow each other in memory, vectors run along the reduced dimension at the stride of the outputs; each of the few
//! outputs has its own vector.

use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::{IterKind, IterVar};

use super::columns::{NARROWEST, mapped_tile, overlapped_tile};
use super::steps::{Parts, fold_by_vectors, fold_states, hint, place, same_axis, site, stage_of};
use super::{
    Chunks, Decline, Facts, Machine, NARROW, Run, SHORT, Sketch, Strategy, Tile, calls_functions, floor_pow2,
    state_bytes,
};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "interleaved",
    machine: Machine::Loops,
    keeps_order: false,
    summary: "vectors of neighbours over several steps of a few outputs side by side, or along the steps at their stride",
    propose,
    schedule,
};

/// Vectors of a wide step, at least, as each state waits for the one before it.
const FEWEST_VECTORS: i64 = 4;
/// Vectors of a wide step whose visits are written out one by one, at most; more are visited for each wide step.
const MOST_WRITTEN_OUT: i64 = 8;
/// Vector operations of a visit that are written out, at most: compilers take many seconds for several thousand.
const MOST_OPERATIONS: i64 = 1024;
/// Wide steps of a visit of a state, and of the longest run.
const STEPS_A_VISIT: i64 = 8;
/// Work of one of the shorter vectors of a rest, in halves of a vector; and where their elements are widened one by one, or functions called.
const OF_A_PIECE: i64 = 2;
const OF_A_DEAR_PIECE: i64 = 5;
/// Bytes of the states of a wide step, at most.
const WIDE_BYTES: i64 = 128 << 10;
/// Wide steps of a piece of memory, at least, where columns could take it: its states are folded at the end.
const WIDE_STEPS: i64 = 8;
/// Steps that are left of a wide one when outputs fold what they have of each.
const LAST_STEPS: i64 = 8;
/// Steps along the reduced dimension that are worth a vector.
const FEWEST_STEPS: i64 = 4;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let Some((extent, _, false)) = facts.inner() else {
        return Err(Decline::new("a kept innermost dimension", "a reduced one, or none"));
    };
    if extent > SHORT && !has_dear_rest(facts, extent) {
        return Err(Decline::new(
            format!("at most {SHORT} outputs side by side, or more whose rests are much work"),
            extent,
        ));
    }
    let Some((steps, _, true)) = facts.dim_from_end(1) else {
        return Err(Decline::new("a reduced dimension next to the innermost", "a kept one, or none"));
    };
    let is_narrow = extent < NARROWEST;
    let overlaps = |lanes: i64| overlapped_tile(facts, extent, lanes.min(floor_pow2(extent))).is_some();
    let wide = wide_step(facts, extent, steps)
        .filter(|wide| is_narrow || steps >= WIDE_STEPS * wide.rows && !overlaps(wide.lanes));
    // Columns take what makes up whole vectors, and maps.
    let is_whole = extent % facts.runs(STEPS_A_VISIT).lanes == 0;
    if !is_narrow
        && (is_whole
            || mapped_tile(facts, extent, facts.lanes().min(floor_pow2(extent))).is_some()
            || wide.is_none())
    {
        return Err(Decline::new(
            format!("fewer than {NARROWEST} outputs, or many steps that make up vectors only together"),
            extent,
        ));
    }
    let lanes = wide.as_ref().map_or_else(|| facts.lanes().min(floor_pow2(steps)), |wide| wide.lanes);
    if lanes < FEWEST_STEPS {
        return Err(Decline::new(
            format!("at least {FEWEST_STEPS} steps along the reduced dimension"),
            steps,
        ));
    }
    let outer = facts.spec.problem.n_outputs / extent.max(1);
    let n_reduced = facts.spec.n_reduced();
    let visit = wide.as_ref().map_or(lanes, |wide| wide.rows * wide.visit);
    let chunks = if n_reduced == 1 { facts.chunks(outer, steps / visit) } else { 1 };
    let mut sketch = Sketch { lanes, chunks: Chunks::of(chunks), ..facts.plain() };
    if let Some(wide) = wide {
        let bytes = wide.rows * wide.visit * extent * facts.spec.inputs[0].bytes() as i64;
        sketch.ahead.steps = facts.ahead(facts.ahead_front_to_back(), bytes);
        let n_vectors = wide.rows * extent / lanes;
        let written_out = if wide.is_written_out { n_vectors } else { 1 };
        let tile = Tile { written_out, ..Tile::of(wide.rows) };
        sketch = Sketch { tile, unroll: wide.visit, run: Run::of(wide.run), ..sketch };
    }
    if let Some(last) = sketch.constant.last_mut() {
        *last = true;
    }
    Ok(sketch)
}

/// Whether what a row has behind its whole vectors, in shorter ones, is more work than vectors of several rows are, whose states are
/// that many more and lie in a near cache.
fn has_dear_rest(facts: &Facts, extent: i64) -> bool {
    let runs = facts.runs(STEPS_A_VISIT);
    let (whole, rest) = (extent / runs.lanes, extent % runs.lanes);
    let is_dear = facts.spec.inputs[0].bytes() < NARROW || calls_functions(&facts.spec.reducer.combine);
    let of_a_piece = if is_dear { OF_A_DEAR_PIECE } else { OF_A_PIECE };
    // Single lanes are quick.
    let of_rest = i64::from((rest >> 1).count_ones()) * of_a_piece;
    OF_A_PIECE * whole + of_rest > OF_A_PIECE * extent / runs.lanes * 5 / 4 + OF_A_PIECE
}

/// A wide step.
struct WideStep {
    /// Steps that it is made of.
    rows: i64,
    /// Elements of a vector.
    lanes: i64,
    /// Wide steps of a visit of a state.
    visit: i64,
    /// Steps of its run.
    run: i64,
    /// Whether its vectors are written out one by one: those whose states registers hold, and those whose elements' positions
    /// matter, which are constants then.
    is_written_out: bool,
}

/// The wide step of `extent` outputs, where `steps` of these follow each other in memory and are as many as several visits take.
fn wide_step(facts: &Facts, extent: i64, steps: i64) -> Option<WideStep> {
    let dims = &facts.spec.problem.dims;
    let (few, along) = (dims.last()?, dims.get(dims.len().checked_sub(2)?)?);
    let is_dense = (0..facts.spec.n_read()).all(|at| few.strides[at] == 1 && along.strides[at] == extent);
    if !is_dense || !facts.target.vectors_are_registers {
        return None;
    }
    let knows_positions = !facts.spec.reducer.ignores_position();
    // Powers of two in the number of outputs need no further steps.
    let rows_of = |lanes: i64| {
        let mut rows = (lanes / (extent & extent.wrapping_neg())).max(1);
        while rows * extent < FEWEST_VECTORS * lanes {
            rows *= 2;
        }
        rows
    };
    let mut runs = facts.runs(STEPS_A_VISIT);
    let mut visit = if runs.steps > 1 { runs.steps } else { facts.unroll(runs.lanes) };
    let n_vectors = rows_of(runs.lanes) * extent / runs.lanes;
    let written_out = visit * if knows_positions { n_vectors } else { 1 };
    let is_much = runs.operations.saturating_mul(written_out) > MOST_OPERATIONS;
    if is_much || knows_positions && n_vectors > MOST_WRITTEN_OUT {
        (runs, visit) = (facts.runs(1), 1);
    }
    let (rows, lanes) = (rows_of(runs.lanes), runs.lanes);
    if rows * extent * state_bytes(&facts.spec.reducer) > WIDE_BYTES {
        return None;
    }
    let held = runs.steps == 1 && rows * extent * runs.state_bytes <= i64::from(facts.target.register_bytes);
    let wide = WideStep { rows, lanes, visit, run: runs.steps, is_written_out: held || knows_positions };
    (steps >= 2 * rows * visit).then_some(wide)
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let reduce = s.stage(state)?.reduce_axes().to_vec();
    let is_wide = sketch.tile.width > 1;
    let rows = if is_wide { sketch.tile.width } else { sketch.lanes };
    let (block, lane) = s.split(state, &reduce[reduce.len() - 1], Split::Factor(rows))?;
    let mut folded = state;
    let mut n_outer = n_kept - 1;
    if sketch.chunks.n > 1 {
        let (chunk, _) = s.split(state, &block, Split::Nparts(sketch.chunks.n))?;
        folded = s.rfactor(state, &chunk)?;
        n_outer += 1;
    }
    // The new stages' data loops: the outer ones, then the few outputs, then the lanes.
    let made = if is_wide {
        fold_wide_steps(s, folded, &lane, n_outer, sketch)?
    } else {
        fold_few_by_vectors(s, folded, &lane, n_outer, sketch)?
    };
    let outer_is_long = sketch.whole.outer_is_long && sketch.chunks.n == 1;
    let root = if sketch.chunks.n > 1 { folded } else { output };
    let at = site(s, root, n_outer, sketch.whole.parallel && n_outer > 0, outer_is_long)?;
    for stage in made {
        place(s, stage, at.as_ref())?;
    }
    let of_output = if sketch.chunks.n > 1 { site(s, output, n_kept - 1, false, false)? } else { at };
    place(s, state, of_output.as_ref())
}

/// Splits the fold of `stage` into stages that fold wide steps, vector by vector, and then the steps of these to a few; `stage`
/// itself is left to fold those. `step`: its loop over the steps of one. Result: the new stages.
fn fold_wide_steps(
    s: &mut Schedule,
    stage: StageId,
    step: &IterVar,
    n_outer: usize,
    sketch: &Sketch,
) -> Result<Vec<StageId>, ScheduleError> {
    let wide = s.rfactor_at(stage, &same_axis(s, stage, step)?, n_outer as i64)?;
    let is_reduced = |leaf: &&IterVar| leaf.kind() == IterKind::Reduce;
    let block = s.stage(wide)?.leaves().iter().rev().find(is_reduced).cloned();
    let Some(block) = block else { return Ok(vec![wide]) };
    let (visit, few) = if sketch.unroll > 1 {
        let (visit, few) = s.split(wide, &block, Split::Factor(sketch.unroll))?;
        (visit, Some(few))
    } else {
        (block, None)
    };
    let lane = wide_lane(s, wide, n_outer, sketch.lanes, sketch.tile.written_out > 1)?;
    if let Some(few) = few {
        // All wide steps of a visit are folded before the state of the next vector.
        let leaves = s.stage(wide)?.leaves();
        let mut order: Vec<IterVar> =
            leaves.iter().filter(|leaf| **leaf != few && **leaf != lane).cloned().collect();
        order.extend([few.clone(), lane]);
        s.reorder(wide, &order)?;
        s.unroll(wide, &few)?;
        if sketch.run.steps > 1 {
            s.in_runs(wide, &few)?;
        }
    }
    if sketch.ahead.steps > 0 {
        s.pragma(wide, &visit, hint(sketch), coulis_ir::Attr::Int(sketch.ahead.steps))?;
    }
    let mut made = vec![wide];
    let mut steps = sketch.tile.width;
    while steps > LAST_STEPS {
        steps = floor_pow2(steps / 4).max(LAST_STEPS);
        let axis = s.stage(stage)?.reduce_axes()[0].clone();
        let (_, inner) = s.split(stage, &axis, Split::Factor(steps))?;
        let fewer = s.rfactor_at(stage, &inner, n_outer as i64)?;
        wide_lane(s, fewer, n_outer, sketch.lanes.min(steps), false)?;
        made.push(fewer);
    }
    fold_states(s, stage)?;
    Ok(made)
}

/// Orders the loops of a stage of wide steps as outer, reduced, vectors, lanes, the last two of which are its steps and outputs; the
/// lanes' loop. `writes_out`: vectors are no loop.
fn wide_lane(
    s: &mut Schedule,
    stage: StageId,
    n_outer: usize,
    lanes: i64,
    writes_out: bool,
) -> Result<IterVar, ScheduleError> {
    let leaves = s.stage(stage)?.leaves().to_vec();
    let is_reduced = |leaf: &&IterVar| leaf.kind() == IterKind::Reduce;
    let reduced = leaves.iter().filter(is_reduced).cloned();
    let data: Vec<IterVar> = leaves.iter().filter(|leaf| !is_reduced(leaf)).cloned().collect();
    let (outer, wide) = data.split_at(n_outer);
    let order: Vec<IterVar> = outer.iter().cloned().chain(reduced).chain(wide.iter().cloned()).collect();
    s.reorder(stage, &order)?;
    let fused = s.fuse(stage, wide)?;
    let (vector, lane) = s.split(stage, &fused, Split::Factor(lanes))?;
    if writes_out {
        s.unroll(stage, &vector)?;
    }
    s.vectorize(stage, &lane)?;
    Ok(lane)
}

/// As [`fold_by_vectors`], with the lanes behind the last kept dimension, which is short and unrolled.
fn fold_few_by_vectors(
    s: &mut Schedule,
    stage: coulis_schedule::StageId,
    lane: &coulis_tensor::IterVar,
    n_outer: usize,
    sketch: &Sketch,
) -> Result<Vec<coulis_schedule::StageId>, ScheduleError> {
    let parts = Parts { lane, block: None, side: None, page: None, rows: None, outermost: None };
    let made = fold_by_vectors(s, stage, &parts, n_outer + 1, sketch)?.stages;
    for &stage in &made {
        let leaves = s.stage(stage)?.leaves().to_vec();
        let n_data = s.stage(stage)?.axes().len();
        let few = leaves[n_outer].clone();
        // Loops stand as outer, few, reduce, lane; the few outputs go inside the reduced loops.
        let n_reduce = leaves.len() - n_data;
        let mut order = leaves[..n_outer].to_vec();
        order.extend_from_slice(&leaves[n_outer + 1..n_outer + 1 + n_reduce]);
        order.push(few.clone());
        order.extend_from_slice(&leaves[n_outer + 1 + n_reduce..]);
        s.reorder(stage, &order)?;
        s.unroll(stage, &few)?;
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use crate::strategy::tests::{cpu, planned};

    #[test]
    fn few_outputs_are_folded_in_wide_steps_of_whole_vectors() {
        let of = |op: &str, shape: &[i64]| {
            let (_, sketch, strategy) = planned(op, shape, &[0], &cpu(64, 1));
            (strategy.name, sketch.lanes, sketch.tile.width, sketch.tile.written_out)
        };
        assert_eq!(of("sum", &[100_000, 7]), ("interleaved", 16, 16, 7), "states in registers");
        assert_eq!(of("sum", &[100_000, 6]).2, 16, "at least four vectors, 96 elements");
        assert_eq!(of("sum", &[100_000, 12]).2, 8);
        assert_eq!(of("var", &[100_000, 7]).3, 1, "a loop over vectors whose states registers do not hold");
        assert_eq!(of("argmax", &[100_000, 7]).3, 7, "positions in a step that are known");
        assert_eq!(of("sum", &[100_000, 32]).0, "columns", "whole vectors");
        assert_eq!(of("sum", &[40, 12]).0, "columns", "too few steps");
        assert_eq!(of("sum", &[40, 7]), ("interleaved", 16, 1, 0), "at their stride");
    }

    #[test]
    fn columns_that_are_no_whole_vectors_are_wide_steps_or_tiles_that_overlap() {
        let of = |op: &str, shape: &[i64], axis: i64| {
            let (_, sketch, strategy) = planned(op, shape, &[axis], &cpu(64, 1));
            (strategy.name, sketch.tile.width, sketch.tile.overlaps)
        };
        assert_eq!(of("sum", &[100_000, 47], 0), ("interleaved", 16, false), "15 of a vector");
        assert_eq!(of("sum", &[100_000, 65], 0), ("columns", 80, false), "a single one behind vectors");
        assert_eq!(
            of("sum", &[100_000, 1023], 0).0,
            "columns",
            "states that no near cache holds, a rest that is little"
        );
        assert_eq!(
            of("var", &[1000, 64, 47], 1),
            ("columns", 16, true),
            "three vectors, the least that three have"
        );
        assert_eq!(
            of("var", &[1000, 64, 127], 1),
            ("columns", 64, true),
            "the widest of those that are as few elements"
        );
        assert_eq!(of("var", &[1000, 64, 48], 1), ("columns", 48, false), "whole vectors");
        assert!(!of("var", &[1, 64, 47], 1).2, "one piece of memory");
        assert_eq!(of("var", &[1000, 4000, 47], 1).0, "interleaved", "pieces that no near cache holds");
    }
}
