//! `interleaved`: a few outputs side by side in memory, folded over many steps, as colour channels are.
//!
//! Vectors run along the reduced dimension at the stride of the outputs; each of the few outputs has its own vector.

use coulis_schedule::{Schedule, ScheduleError, Split};

use super::steps::{Parts, fold_by_vectors, place, site, stage_of};
use super::{Decline, Facts, Machine, SHORT, Sketch, Strategy, floor_pow2};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "interleaved",
    machine: Machine::Loops,
    keeps_order: false,
    summary: "vectors along the reduced dimension at the stride of a few outputs side by side",
    propose,
    schedule,
};

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let Some((extent, _, false)) = facts.inner() else {
        return Err(Decline::new("a kept innermost dimension", "a reduced one, or none"));
    };
    if extent > SHORT {
        return Err(Decline::new("at most 32 outputs side by side", extent));
    }
    let Some((steps, _, true)) = facts.dim_from_end(1) else {
        return Err(Decline::new("a reduced dimension next to the innermost", "a kept one, or none"));
    };
    let lanes = facts.lanes().min(floor_pow2(steps));
    if lanes < 4 {
        return Err(Decline::new("at least 4 steps along the reduced dimension", steps));
    }
    let outer = facts.spec.problem.n_outputs / extent.max(1);
    let n_reduced = facts.spec.problem.dims.iter().filter(|d| d.is_reduced()).count();
    let chunks = if n_reduced == 1 { facts.chunks(outer, steps / lanes) } else { 1 };
    let mut sketch = Sketch { lanes, chunks, ..facts.plain() };
    if let Some(last) = sketch.constant.last_mut() {
        *last = true;
    }
    Ok(sketch)
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let reduce = s.stage(state)?.reduce_axes().to_vec();
    let (block, lane) = s.split(state, &reduce[reduce.len() - 1], Split::Factor(sketch.lanes))?;
    let mut folded = state;
    let mut n_outer = n_kept - 1;
    if sketch.chunks > 1 {
        let (chunk, _) = s.split(state, &block, Split::Nparts(sketch.chunks))?;
        folded = s.rfactor(state, &chunk)?;
        n_outer += 1;
    }
    // The new stages' data loops: the outer ones, then the few outputs, then the lanes.
    let made = fold_few_by_vectors(s, folded, &lane, n_outer, sketch)?;
    let outer_is_long = sketch.outer_is_long && sketch.chunks == 1;
    let root = if sketch.chunks > 1 { folded } else { output };
    let at = site(s, root, n_outer, sketch.parallel && n_outer > 0, outer_is_long)?;
    for stage in made {
        place(s, stage, at.as_ref())?;
    }
    let of_output = if sketch.chunks > 1 { site(s, output, n_kept - 1, false, false)? } else { at };
    place(s, state, of_output.as_ref())
}

/// As [`fold_by_vectors`], with the lanes behind the last kept dimension, which is short and unrolled.
fn fold_few_by_vectors(
    s: &mut Schedule,
    stage: coulis_schedule::StageId,
    lane: &coulis_tensor::IterVar,
    n_outer: usize,
    sketch: &Sketch,
) -> Result<Vec<coulis_schedule::StageId>, ScheduleError> {
    let parts = Parts { lane, side: None, page: None, rows: None };
    let made = fold_by_vectors(s, stage, &parts, n_outer + 1, sketch)?;
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
