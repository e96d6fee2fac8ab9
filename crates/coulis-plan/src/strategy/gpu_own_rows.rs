//! `gpu_own_rows`: short rows that a map reads again, of which each thread reads one from where it lies, and whose results leave as one piece.
//!
//! Rows of a transposed array have their elements apart, and those of a slice have gaps between them: no slab of them is one piece of memory,
//! as `gpu_kept_slabs` needs. What neighbouring threads read is side by side or near all the same, so each reads its own row, all of it at
//! the start, and keeps it in registers. What the map gives lies otherwise than what was read: threads that store rows of their own would store
//! pieces of sectors, so they write it to a slab in shared memory, which leaves by the widest accesses. Measured: `bench/results`.

use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split};
use coulis_tensor::IterVar;

use super::gpu_steps::{as_one, copy_piece, fold_own_row, runs_of_row};
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
    summary: "a thread reads a short row that a map reads again from where it lies, and results leave the block as one piece",
    propose,
    schedule,
};

/// Longest row, in elements.
const LONGEST: i64 = 64;
/// Bytes of registers in which a thread keeps a row; longer ones are read again.
const KEPT_BYTES: i64 = 256;
/// A register holds so many bytes; narrower elements are as wide once they are converted.
const WORD_BYTES: i64 = 4;
/// Rows of a block, each of a thread, at most and at least.
const BLOCK: i64 = 256;
/// See [`BLOCK`].
const SMALLEST_BLOCK: i64 = 64;
/// Bytes of the slab of a block, about.
const SLAB_BYTES: i64 = 28 << 10;
/// Threads that a multiprocessor holds, each of which is to have a block at least.
const OF_MULTIPROCESSOR: i64 = 2048;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let spec = facts.spec;
    let Some(map) = &spec.map else {
        return Err(Decline::new("a map after each row", "none"));
    };
    let dims = &spec.problem.dims;
    let (kept, reduced): (Vec<&Dim>, Vec<&Dim>) = dims.iter().partition(|dim| !dim.is_reduced());
    let ([.., rows], [row]) = (&kept[..], &reduced[..]) else {
        return Err(Decline::new(
            "kept dimensions, and one that is reduced",
            format!("{} dimensions", dims.len()),
        ));
    };
    if row.extent > LONGEST {
        return Err(Decline::new("fewer elements in a row", row.extent));
    }
    let result = spec.n_read() + map.beside.len();
    if !is_dense(kept.iter().chain(&reduced), result) || spec.outputs.iter().any(|o| o.beta != 0.0) {
        return Err(Decline::new(
            "results of rows one after another without gaps, which are only written",
            "others",
        ));
    }
    let constant = facts.constants(false);
    if facts.word_lanes(&constant) > 1 && dims.last().is_some_and(Dim::is_reduced) {
        return Err(Decline::new("rows of which no access takes several elements", "others"));
    }
    if !facts.room.has_state() {
        return Err(Decline::new("a state in registers", "more"));
    }
    let written: i64 = spec.outputs.iter().map(|output| output.dtype.bytes() as i64).sum();
    let block = floor_pow2(SLAB_BYTES / (row.extent * written)).clamp(SMALLEST_BLOCK, BLOCK).min(rows.extent);
    let n_blocks = (i64::from(facts.target.n_threads) / OF_MULTIPROCESSOR).max(1);
    if spec.problem.n_outputs < n_blocks * block || rows.extent < SMALLEST_BLOCK {
        return Err(Decline::new("rows for a block on each multiprocessor", spec.problem.n_outputs));
    }
    let bytes: i64 = spec.inputs.iter().map(|d| (d.bytes() as i64).max(WORD_BYTES)).sum();
    let keep = if row.extent * bytes <= KEPT_BYTES { Keep::Registers } else { Keep::Nothing };
    // Each row of a slab begins where the ones before it end, so that accesses are as wide as the first row of each slab allows.
    let widest = (i64::from(facts.target.vector_bytes) / written).max(1);
    let lanes =
        gcd(gcd(widest, block * row.extent), if kept.len() > 1 { rows.extent * row.extent } else { 0 });
    let run = runs_of_row(facts, row.extent, 1);
    Ok(Sketch { lanes, run, threads: 1, rows: block, constant, ..facts.plain().with_map_kept(keep) })
}

/// Whether an array has the dimensions one in the other without gaps, given outermost first.
fn is_dense<'a>(dims: impl DoubleEndedIterator<Item = &'a &'a Dim>, array: usize) -> bool {
    let mut elements = 1i64;
    dims.rev().all(|dim| {
        let stride = elements;
        elements = elements.saturating_mul(dim.extent);
        dim.strides[array] == stride
    })
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let Some(map) = &stmt.map else { return Ok(()) };
    let n_kept = spec.n_kept();
    let (state, finished, map) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?, stage_of(s, map)?);
    let mapped = s.cache_write(map, MemScope::Shared)?;
    let leaves: Vec<IterVar> = s.stage(map)?.leaves().to_vec();
    let (slab, within) = s.split(map, &leaves[n_kept - 1], Split::Factor(sketch.rows))?;
    let block = as_one(s, map, &[&leaves[..n_kept - 1], &[slab]].concat())?;
    s.bind(map, &block, ThreadTag::BlockX)?;
    s.compute_at(mapped, map, &block)?;
    copy_piece(
        s,
        map,
        &[within, leaves[n_kept].clone()],
        sketch.lanes,
        &[(ThreadTag::ThreadX, sketch.rows)],
    )?;

    let leaves: Vec<IterVar> = s.stage(mapped)?.leaves().to_vec();
    let row = leaves[n_kept - 1].clone();
    s.bind(mapped, &row, ThreadTag::ThreadX)?;
    s.unroll(mapped, &leaves[n_kept])?;
    fold_own_row(s, state, (spec.problem.reduce_len, 1), sketch)?;
    for stage in [state, finished] {
        s.set_scope(stage, MemScope::Local)?;
        s.compute_at(stage, mapped, &row)?;
    }
    for input in stmt.inputs.iter().filter(|_| sketch.map.keep == Keep::Registers) {
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
