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

use super::gpu_steps::{
    as_one, copy_piece, dense_rows_of, fold_own_row, runs_of_row, slab_access, widest_access,
};
use super::kept::{readers_of, refs};
use super::map_steps::Keep;
use super::steps::stage_of;
use super::{Decline, Facts, Machine, Run, Sketch, Strategy, Tile, floor_pow2, gcd};
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
/// Bytes of a row without gaps, at most, that begins anywhere.
const ODD_BYTES: i64 = 128;
/// Bytes of accesses of which a row had better be for threads side by side.
const WIDE_ACCESS: i64 = 16;
/// Rows of a block, each of a thread, at most and at least.
const BLOCK: i64 = 256;
/// See [`BLOCK`].
const SMALLEST_BLOCK: i64 = 64;
/// Bytes of the slab of a block, about.
const SLAB_BYTES: i64 = 28 << 10;

/// Threads of a block along the rows that are neighbours in memory, where results that are neighbours are of others.
const ACROSS: i64 = 32;
/// Bytes of results that are neighbours which such a block stores.
const PIECE_BYTES: i64 = 128;

/// Bytes of rows of each of its threads, about, so that enough is in flight.
const THREAD_BYTES: i64 = 32;

/// How results lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Results {
    /// Rows one after another without gaps, in the order of the rows of elements.
    Rows,
    /// Rows one after another without gaps, of neighbours along that kept dimension, counted among those, which is not the innermost.
    Turned(usize),
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
    let widest = widest_access(facts);
    let is_short = row.extent.saturating_mul(facts.spec.inputs[0].bytes() as i64) <= ODD_BYTES;
    let is_odd = slab_access(facts) < widest && row.extent % widest != 0 && is_short;
    if dense_rows_of(facts, 0..spec.n_read()).is_ok() && results == Results::Rows && !is_odd {
        return Err(Decline::new(
            "rows that begin anywhere, or results that lie otherwise than the elements",
            "others",
        ));
    }
    if spec.outputs.iter().any(|output| output.beta != 0.0) {
        return Err(Decline::new("results that are only written", "some that are read"));
    }
    if row.extent > LONGEST {
        return Err(Decline::new("fewer elements in a row", row.extent));
    }
    let bytes = spec.widest_bytes();
    let constant = facts.constants(false);
    if facts.inner().is_some_and(|(_, _, is_reduced)| is_reduced) {
        let strides = row.strides[..spec.n_read()].iter();
        let reach =
            strides.map(|stride| stride.saturating_abs()).max().unwrap_or(1).saturating_mul(row.extent);
        if reach.saturating_mul(bytes) > REACH_BYTES {
            return Err(Decline::new("rows whose elements are near each other", reach));
        }
        let access = facts.word_lanes(&constant) * bytes;
        if access >= WIDE_ACCESS && results != Results::Columns {
            return Err(Decline::new("rows that are no whole accesses", access));
        }
    } else if row.extent < SHORTEST && results == Results::Rows {
        return Err(Decline::new("more elements in a row of a transposed array", row.extent));
    }
    if !facts.room.has_state() {
        return Err(Decline::new("a state in registers", "more"));
    }
    let written = spec.result_bytes();
    let piece = row.extent * written;
    let kept = || spec.problem.dims.iter().filter(|dim| !dim.is_reduced());
    let (block, tile, unroll) = match results {
        Results::Rows => (floor_pow2(SLAB_BYTES / piece).clamp(SMALLEST_BLOCK, BLOCK).min(rows.extent), 1, 1),
        Results::Turned(next) => {
            let neighbours = kept().nth(next).map_or(1, |dim| dim.extent);
            let tile = floor_pow2((PIECE_BYTES / piece).clamp(2, BLOCK / ACROSS).min(neighbours));
            let of_thread = floor_pow2((THREAD_BYTES / piece).min(neighbours / tile));
            (ACROSS, tile * of_thread, of_thread)
        }
        Results::Columns => ((BLOCK / 2).min(rows.extent), 1, 1),
    };
    let n_multiprocessors = i64::from(facts.target.n_multiprocessors());
    if spec.problem.n_outputs < n_multiprocessors * block * tile
        || block * tile < SMALLEST_BLOCK
        || rows.extent < block
    {
        return Err(Decline::new("rows for a block on each multiprocessor", spec.problem.n_outputs));
    }
    // Each row of a slab begins where the ones before it end, so that accesses are as wide as the first one of each piece allows.
    let widest = (i64::from(facts.target.vector_bytes) / written).max(1);
    let result = spec.n_read() + spec.map.as_ref().map_or(0, |map| map.beside.len());
    let lanes = match results {
        Results::Rows => {
            let panels = if spec.n_kept() > 1 { rows.extent * row.extent } else { 0 };
            gcd(gcd(widest, block * row.extent), panels)
        }
        Results::Turned(_) | Results::Columns => {
            let others = kept().map(|dim| dim.strides[result]).filter(|stride| *stride != row.extent);
            others.fold(gcd(widest, tile * row.extent), gcd)
        }
    };
    let run = runs_of_row(facts, row.extent, 1);
    let plain = facts.plain().with_map_kept(Keep::Registers);
    let (run, tile) = (Run::of(run), Tile::of(tile));
    Ok(Sketch { lanes, run, unroll, threads: 1, rows: block, tile, constant, ..plain })
}

/// The innermost of the kept dimensions, the reduced one, and how the results of a map lie, if in one of these ways; `None` where
/// several are reduced, or none, or there is no map.
fn rows_of(spec: &Spec) -> Option<(&Dim, &Dim, Results)> {
    let map = spec.map.as_ref()?;
    let result = spec.n_read() + map.beside.len();
    let (kept, reduced): (Vec<&Dim>, Vec<&Dim>) = spec.problem.dims.iter().partition(|dim| !dim.is_reduced());
    let ([.., rows], [row]) = (&kept[..], &reduced[..]) else { return None };
    let mut elements = 1i64;
    let is_next = |dim: &&Dim| {
        let stride = elements;
        elements = elements.saturating_mul(dim.extent);
        dim.strides[result] == stride
    };
    if kept.iter().chain(&reduced).rev().all(is_next) {
        return Some((rows, row, Results::Rows));
    }
    let next = kept.iter().position(|dim| dim.strides[result] == row.extent && row.strides[result] == 1);
    let results = match next {
        Some(next) if next + 1 < kept.len() => Results::Turned(next),
        _ if rows.strides[result] == 1 && rows.strides[0] != 1 => Results::Columns,
        _ => return None,
    };
    Some((rows, row, results))
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let (Some(map), Some((.., results))) = (&stmt.map, rows_of(spec)) else { return Ok(()) };
    let n_kept = spec.n_kept();
    let (state, finished, map) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?, stage_of(s, map)?);
    let slab = match results {
        Results::Rows | Results::Turned(_) => Some(s.cache_write(map, MemScope::Shared)?),
        Results::Columns => None,
    };
    let mut outer: Vec<IterVar> = s.stage(map)?.leaves().to_vec();
    let (element, near) = (outer.remove(n_kept), outer.remove(n_kept - 1));
    let (strip, mut row) = s.split(map, &near, Split::Factor(sketch.rows))?;
    outer.push(strip);
    let mut piece = vec![row.clone(), element];
    let mut threads = vec![(ThreadTag::ThreadX, sketch.rows)];
    if let Results::Turned(next) = results {
        let (tile, within) = s.split(map, &outer[next], Split::Factor(sketch.tile.width))?;
        outer[next] = tile;
        piece.insert(1, within);
        threads.push((ThreadTag::ThreadY, sketch.tile.width / sketch.unroll));
        s.reorder(map, &[&outer[..], &piece[..]].concat())?;
    }
    let block = as_one(s, map, &outer)?;
    s.bind(map, &block, ThreadTag::BlockX)?;
    if let Some(slab) = slab {
        s.compute_at(slab, map, &block)?;
        copy_piece(s, map, &piece, sketch.lanes, &threads)?;
        row = s.stage(slab)?.leaves()[n_kept - 1].clone();
        if let Results::Turned(next) = results {
            let other = s.stage(slab)?.leaves()[next].clone();
            let (turn, thread) = s.split(slab, &other, Split::Nparts(sketch.unroll))?;
            s.unroll(slab, &turn)?;
            s.bind(slab, &thread, ThreadTag::ThreadY)?;
        }
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
        let readers = readers_of(s, input, [state, mapped])?;
        if readers.len() > 1 {
            let own = s.cache_read(input, MemScope::Local, &refs(&readers))?;
            s.compute_at(own, mapped, &row)?;
            let elements = s.stage(own)?.leaves().to_vec();
            elements.iter().try_for_each(|axis| s.unroll(own, axis))?;
        }
    }
    Ok(())
}
