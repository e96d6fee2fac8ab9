//! `rows`: the folded elements lie next to each other (or at one stride), and there are many of them.
//!
//! Vectors run along the innermost reduced dimension, several side by side so that additions overlap. Few outputs
//! are split into chunks whose partial states are folded by a second nest.

use coulis_schedule::{Schedule, ScheduleError, Split};

use super::steps::{fold_by_vectors, place, site, stage_of};
use super::{Decline, Facts, Machine, Sketch, Strategy, floor_pow2};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "rows",
    machine: Machine::Loops,
    keeps_order: false,
    summary: "vectors along the innermost reduced dimension, several side by side; few outputs are split into chunks",
    propose,
    schedule,
};

/// Rows shorter than this are folded one element after another.
const SHORTEST: i64 = 8;
/// Longest run of a quick step.
const LONGEST_RUN: i64 = 16;
/// Bytes of a page of memory. Above the caches, reading several pages side by side is a tenth faster than one.
const PAGE_BYTES: i64 = 4096;
/// Rows of fewer pages are walked front to back.
const FEWEST_PAGES: i64 = 16;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let Some((extent, stride, true)) = facts.inner() else {
        return Err(Decline::new("a reduced innermost dimension", "a kept one, or none"));
    };
    if extent < SHORTEST {
        return Err(Decline::new("at least 8 elements in the innermost dimension", extent));
    }
    let runs = facts.runs(LONGEST_RUN);
    let lanes = runs.lanes.min(floor_pow2(extent));
    let mut unroll = facts.unroll_of(lanes, runs.state_bytes);
    while unroll > 1 && lanes * unroll > extent {
        unroll /= 2;
    }
    let page = PAGE_BYTES / facts.spec.inputs[0].bytes() as i64;
    let in_memory = facts.input_bytes() > 2 * facts.target.cache_bytes as i64;
    let by_pages = unroll > 1 && stride == 1 && in_memory && lanes < page && extent >= FEWEST_PAGES * page;
    let apart = if by_pages { page } else { lanes };
    let run = runs.steps.min(floor_pow2(if by_pages { page / lanes } else { extent / (lanes * unroll) }));
    // Of pages, those of the next block; of a stream, a page.
    let width = facts.spec.inputs[0].bytes() as i64;
    let distance = if by_pages { unroll * PAGE_BYTES } else { PAGE_BYTES };
    let ahead = if stride == 1 {
        facts.ahead(distance, if by_pages { lanes } else { lanes * unroll } * width)
    } else {
        0
    };
    let problem = &facts.spec.problem;
    let n_reduced = problem.dims.iter().filter(|d| d.is_reduced()).count();
    let outermost = problem.dims.iter().find(|d| d.is_reduced()).map_or(1, |d| d.extent);
    let block = if by_pages { apart * unroll } else { apart * unroll * run };
    let len = if n_reduced > 1 { outermost } else { extent / block };
    let chunks = facts.chunks(problem.n_outputs, len);
    Ok(Sketch { lanes, unroll, apart, ahead, run, chunks, ..facts.plain() })
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let reduce = s.stage(state)?.reduce_axes().to_vec();
    let inner = &reduce[reduce.len() - 1];
    let by_pages = sketch.apart > sketch.lanes;
    let step = sketch.apart * sketch.unroll;
    let (block, mut rest) =
        s.split(state, inner, Split::Factor(if by_pages { step } else { step * sketch.run }))?;
    if sketch.run > 1 && !by_pages {
        rest = s.split(state, &rest, Split::Factor(step))?.1;
    }
    let (side, rest) = if sketch.unroll > 1 {
        let (side, rest) = s.split(state, &rest, Split::Factor(sketch.apart))?;
        (Some(side), rest)
    } else {
        (None, rest)
    };
    let lane = if by_pages {
        let (vector, lane) = s.split(state, &rest, Split::Factor(sketch.lanes))?;
        if sketch.run > 1 {
            s.split(state, &vector, Split::Factor(sketch.run))?;
        }
        lane
    } else {
        rest
    };
    if sketch.chunks == 1 {
        let made = fold_by_vectors(s, state, &lane, side.as_ref(), n_kept, sketch)?;
        let site = site(s, output, n_kept, sketch.parallel, sketch.outer_is_long)?;
        for stage in made.into_iter().chain([state]) {
            place(s, stage, site.as_ref())?;
        }
        return Ok(());
    }
    let whole = if reduce.len() > 1 { reduce[0].clone() } else { block };
    let (chunk, _) = s.split(state, &whole, Split::Nparts(sketch.chunks))?;
    let partial = s.rfactor(state, &chunk)?;
    let made = fold_by_vectors(s, partial, &lane, side.as_ref(), n_kept + 1, sketch)?;
    let at = site(s, partial, n_kept + 1, sketch.parallel, false)?;
    for stage in made {
        place(s, stage, at.as_ref())?;
    }
    let kept = site(s, output, n_kept, false, false)?;
    place(s, state, kept.as_ref())
}
