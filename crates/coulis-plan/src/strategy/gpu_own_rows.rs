//! `gpu_own_rows`: short rows that a map reads again, of which each thread reads one from where it lies, where results lie otherwise.
//!
//! Rows of a transposed array have their elements apart, and those of a slice have gaps between them: no slab of them is one
//! piece of memory, as `gpu_kept_slabs` needs. What neighbouring threads read is side by side or near all the same, so each
//! reads its own row, all of it at the start, and keeps it in registers. Where results are rows, threads that store their own would store
//! pieces of sectors, so what the map gives goes to a slab in shared memory, which leaves by the widest accesses; where they
//! are columns, neighbouring threads store neighbours. Measured: `bench/results`.

use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split};
use coulis_tensor::IterVar;

use super::gpu_steps::{as_one, copy_piece, dense_rows_of, fold_own_row, runs_of_row};
use super::kept::refs;
use super::map_steps::Keep;
use super::steps::stage_of;
use super::{Decline, Facts, Machine, Sketch, Strategy, floor_pow2, gcd};
use crate::problem::Dim;
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "gpu_own_rows",
    machine: Machine::Threads,
    keeps_order: false,
    summary: "a thread reads a short row that a map reads again from where it lies, and results, which lie otherwise, \
              leave as one piece or side by side",
    propose,
    schedule,
};

/// Longest row, in elements, and shortest of a transposed array: threads that have several neighbours of it are quicker.
const LONGEST: i64 = 128;
/// See [`LONGEST`].
const SHORTEST: i64 = 3;
/// Bytes from the first element of a row to its last, at most, where neighbouring threads do not read neighbours: all that the threads of a
/// multiprocessor read stays in its first cache.
const REACH_BYTES: i64 = 256;
/// Bytes of accesses of which a row had better be for threads side by side.
const WIDE_ACCESS: i64 = 16;
/// Rows of a block, each of a thread, at most and at least.
const BLOCK: i64 = 256;
/// See [`BLOCK`].
const SMALLEST_BLOCK: i64 = 64;
/// Bytes of the slab of a block, about.
const SLAB_BYTES: i64 = 28 << 10;
/// Threads that a multiprocessor holds, each of which is to have a block at least.
const OF_MULTIPROCESSOR: i64 = 2048;

/// How results lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Results {
    /// Rows one after another without gaps, in the order of the rows of elements.
    Rows,
    /// Neighbours are of neighbouring rows.
    Columns,
}

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let spec = facts.spec;
    let wanted =
        "kept dimensions, one that is reduced, and a map whose results are rows without gaps, or columns";
    let Some((rows, row, results)) = rows_of(spec) else {
        return Err(Decline::new(wanted, "others"));
    };
    if dense_rows_of(facts, 0..spec.n_read()).is_ok() && results == Results::Rows {
        return Err(Decline::new("results that lie otherwise than the elements", "others"));
    }
    if spec.outputs.iter().any(|output| output.beta != 0.0) {
        return Err(Decline::new("results that are only written", "some that are read"));
    }
    if row.extent > LONGEST {
        return Err(Decline::new("fewer elements in a row", row.extent));
    }
    let widest = spec.inputs.iter().map(|d| d.bytes() as i64).max().unwrap_or(1);
    let constant = facts.constants(false);
    if facts.inner().is_some_and(|(_, _, is_reduced)| is_reduced) {
        let strides = row.strides[..spec.n_read()].iter();
        let reach =
            strides.map(|stride| stride.saturating_abs()).max().unwrap_or(1).saturating_mul(row.extent);
        if reach.saturating_mul(widest) > REACH_BYTES {
            return Err(Decline::new("rows whose elements are near each other", reach));
        }
        let access = facts.word_lanes(&constant) * widest;
        if access >= WIDE_ACCESS && results == Results::Rows {
            return Err(Decline::new("rows that are no whole accesses", access));
        }
    } else if row.extent < SHORTEST {
        return Err(Decline::new("more elements in a row of a transposed array", row.extent));
    }
    if !facts.room.has_state() {
        return Err(Decline::new("a state in registers", "more"));
    }
    let written: i64 = spec.outputs.iter().map(|output| output.dtype.bytes() as i64).sum();
    let block = match results {
        Results::Rows => floor_pow2(SLAB_BYTES / (row.extent * written)).clamp(SMALLEST_BLOCK, BLOCK),
        Results::Columns => BLOCK / 2,
    };
    let block = block.min(rows.extent);
    let n_blocks = (i64::from(facts.target.n_threads) / OF_MULTIPROCESSOR).max(1);
    if spec.problem.n_outputs < n_blocks * block || block < SMALLEST_BLOCK {
        return Err(Decline::new("rows for a block on each multiprocessor", spec.problem.n_outputs));
    }
    // Each row of a slab begins where the ones before it end, so that accesses are as wide as the first row of each slab allows.
    let of_panels = if spec.n_kept() > 1 { rows.extent * row.extent } else { 0 };
    let lanes =
        gcd(gcd((i64::from(facts.target.vector_bytes) / written).max(1), block * row.extent), of_panels);
    let run = runs_of_row(facts, row.extent, 1);
    let plain = facts.plain().with_map_kept(Keep::Registers);
    Ok(Sketch { lanes, run, threads: 1, rows: block, constant, ..plain })
}

/// The innermost of the kept dimensions, the reduced one, and how the results of a map lie, if in one of these ways; `None` where
/// several are reduced, or none, or there is no map.
fn rows_of(spec: &Spec) -> Option<(&Dim, &Dim, Results)> {
    let map = spec.map.as_ref()?;
    let result = spec.n_read() + map.beside.len();
    let (kept, reduced): (Vec<&Dim>, Vec<&Dim>) = spec.problem.dims.iter().partition(|dim| !dim.is_reduced());
    let ([.., rows], [row]) = (&kept[..], &reduced[..]) else { return None };
    let mut elements = 1i64;
    let mut is_next = |dim: &&Dim| {
        let stride = elements;
        elements = elements.saturating_mul(dim.extent);
        dim.strides[result] == stride
    };
    if kept.iter().chain(&reduced).rev().all(|dim| is_next(dim)) {
        return Some((rows, row, Results::Rows));
    }
    (rows.strides[result] == 1 && rows.strides[0] != 1).then_some((rows, row, Results::Columns))
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let (Some(map), Some((.., results))) = (&stmt.map, rows_of(spec)) else { return Ok(()) };
    let n_kept = spec.n_kept();
    let (state, finished, map) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?, stage_of(s, map)?);
    let slab = match results {
        Results::Rows => Some(s.cache_write(map, MemScope::Shared)?),
        Results::Columns => None,
    };
    let leaves: Vec<IterVar> = s.stage(map)?.leaves().to_vec();
    let (strip, mut row) = s.split(map, &leaves[n_kept - 1], Split::Factor(sketch.rows))?;
    let block = as_one(s, map, &[&leaves[..n_kept - 1], &[strip]].concat())?;
    s.bind(map, &block, ThreadTag::BlockX)?;
    if let Some(slab) = slab {
        s.compute_at(slab, map, &block)?;
        let piece = [row, leaves[n_kept].clone()];
        copy_piece(s, map, &piece, sketch.lanes, &[(ThreadTag::ThreadX, sketch.rows)])?;
        row = s.stage(slab)?.leaves()[n_kept - 1].clone();
    }
    let mapped = slab.unwrap_or(map);
    s.bind(mapped, &row, ThreadTag::ThreadX)?;
    let element = s.stage(mapped)?.leaves().last().cloned();
    element.iter().try_for_each(|element| s.unroll(mapped, element))?;
    fold_own_row(s, state, (spec.problem.reduce_len, 1), sketch)?;
    for stage in [state, finished] {
        s.set_scope(stage, MemScope::Local)?;
        s.compute_at(stage, mapped, &row)?;
    }
    for input in &stmt.inputs {
        let mut readers = Vec::new();
        for stage in [state, mapped] {
            if s.stage(stage)?.reads().contains(input.buffer()) {
                readers.push(stage);
            }
        }
        if readers.len() > 1 {
            let own = s.cache_read(input, MemScope::Local, &refs(&readers))?;
            s.compute_at(own, mapped, &row)?;
            let elements = s.stage(own)?.leaves().to_vec();
            elements.iter().try_for_each(|axis| s.unroll(own, axis))?;
        }
    }
    Ok(())
}
