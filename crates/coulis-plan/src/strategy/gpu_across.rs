//! `gpu_across`: many results of few elements each, that are neighbours along one dimension where elements are along another.
//!
//! Statistics of permuted arrays over a short dimension are a transposition: whichever way threads stand side by side, what they
//! read or what they store is an access of its own for each. So a block takes as many results as a warp has threads along the
//! one dimension, and whole lines of elements along the other: its warps store neighbours, and the words that they read of a
//! line are read by the others from the first cache. Measured: `bench/results`.

use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split};
use coulis_tensor::IterVar;

use super::gpu_columns::THREAD_STATE;
use super::map_steps::{ACROSS, ALONG};
use super::steps::stage_of;
use super::{Decline, Facts, Machine, Sketch, Strategy, floor_pow2, state_bytes};
use crate::problem::Role;
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "gpu_across",
    machine: Machine::Threads,
    keeps_order: false,
    summary: "blocks of threads along neighbouring results and, across them, along words of elements that are neighbours",
    propose,
    schedule,
};

/// Elements of a result, at most, that are written out one by one.
const WRITTEN_OUT: i64 = 16;
/// The part of the bytes that are read from which on those that are stored matter.
const STORED: i64 = 8;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let spec = facts.spec;
    let problem = &spec.problem;
    let Some((extent, _, false)) = facts.inner() else {
        return Err(Decline::new("a kept innermost dimension", "a reduced one, or none"));
    };
    let Some((_, results)) = results(spec) else {
        return Err(Decline::new("results that are neighbours along another dimension", "others"));
    };
    let stored = spec.result_bytes();
    let read = problem.reduce_len.saturating_mul(spec.inputs[0].bytes() as i64);
    if stored.saturating_mul(STORED) < read || spec.map.is_some() || !facts.room.has_state() {
        return Err(Decline::new("results that are many for their elements", problem.reduce_len));
    }
    if results < ACROSS || extent < ALONG {
        return Err(Decline::new("threads along both dimensions", results.min(extent)));
    }
    let constant = facts.constants(false);
    let of_states = floor_pow2(THREAD_STATE / state_bytes(&spec.reducer).max(1));
    let lanes = facts.word_lanes(&constant).min(of_states).min(floor_pow2(extent / ALONG));
    Ok(Sketch { lanes, threads: ALONG, rows: ACROSS, constant, ..facts.plain() })
}

/// The kept dimension, counted among those, along which results are neighbours, and its extent; `None` where that is the innermost.
fn results(spec: &Spec) -> Option<(usize, i64)> {
    let kept: Vec<_> = spec.problem.dims.iter().filter(|dim| !dim.is_reduced()).collect();
    let at = kept.iter().position(|dim| matches!(dim.role, Role::Kept { out_stride: 1 }))?;
    (at + 1 < kept.len()).then(|| (at, kept[at].extent))
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let mut loops: Vec<IterVar> = s.stage(output)?.leaves().to_vec();
    let (Some(inner), Some((across, _))) = (loops.pop(), results(spec)) else { return Ok(()) };
    let results = loops.remove(across);
    let (strip, result) = s.split(output, &results, Split::Factor(sketch.rows))?;
    let (block, within) = s.split(output, &inner, Split::Factor(sketch.threads * sketch.lanes))?;
    let (word, lane) = s.split(output, &within, Split::Factor(sketch.lanes))?;
    loops.extend([strip, block]);
    s.reorder(output, &[&loops[..], &[word.clone(), result.clone(), lane.clone()]].concat())?;
    let all = s.fuse(output, &loops)?;
    s.bind(output, &all, ThreadTag::BlockX)?;
    s.bind(output, &word, ThreadTag::ThreadY)?;
    s.bind(output, &result, ThreadTag::ThreadX)?;
    s.unroll(output, &lane)?;
    s.set_scope(state, MemScope::Local)?;
    s.compute_at(state, output, &result)?;
    let stage = s.stage(state)?;
    let reduced = stage.reduce_axes().to_vec();
    let Some(own) = stage.leaves()[..stage.leaves().len() - reduced.len()].last().cloned() else {
        return Ok(());
    };
    s.reorder(state, &[&reduced[..], std::slice::from_ref(&own)].concat())?;
    let n: Option<i64> = reduced.iter().map(IterVar::length).product();
    if n.is_some_and(|n| n <= WRITTEN_OUT) {
        for axis in &reduced {
            s.unroll(state, axis)?;
        }
    }
    if sketch.lanes > 1 { s.vectorize(state, &own) } else { Ok(()) }
}
