//! `columns`: the innermost dimension is kept, so neighbours in memory belong to different outputs.
//!
//! A tile of outputs is folded at once: its states stay in the nearest cache while the reduced dimensions are walked
//! in the order of memory. Few tiles are split into chunks of the outermost reduced dimension.

use coulis_ir::MemScope;
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::IterVar;

use super::steps::{ask_ahead, place, stage_of};
use super::{Decline, Facts, Machine, Sketch, Strategy, ceil_div, floor_pow2, state_bytes};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "columns",
    machine: Machine::Loops,
    keeps_order: false,
    summary: "vectors along the innermost kept dimension; the states of a tile of outputs stay in cache",
    propose,
    schedule,
};

/// Narrower rows leave most of a vector empty.
const NARROWEST: i64 = 8;
/// Bytes of the states of one tile: half of a first-level cache.
const TILE_BYTES: i64 = 16 << 10;
/// Fewer rows than this are folded one a visit.
const FEWEST_ROWS: i64 = 64;
/// Tiles up to this many vectors are written out one by one.
const UNROLLED: i64 = 4;

/// Longest run of a quick step.
const LONGEST_RUN: i64 = 16;
/// How far ahead rows are asked for.
const AHEAD_BYTES: i64 = 4 << 10;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let Some((extent, _, false)) = facts.inner() else {
        return Err(Decline::new("a kept innermost dimension", "a reduced one, or none"));
    };
    if extent < NARROWEST {
        return Err(Decline::new("at least 8 outputs side by side", extent));
    }
    let problem = &facts.spec.problem;
    let rows = facts.dim_from_end(1).filter(|(rows, _, reduced)| *reduced && *rows >= FEWEST_ROWS);
    let runs = facts.runs(if rows.is_some() { LONGEST_RUN } else { 1 });
    let lanes = runs.lanes.min(floor_pow2(extent));
    let whole = ceil_div(extent, lanes) * lanes;
    let threads = 4 * i64::from(facts.target.n_threads);
    let fits = (TILE_BYTES.max(i64::from(facts.target.vector_bytes))
        / state_bytes(&facts.spec.reducer).max(1))
    .max(lanes);
    let wanted = if facts.parallel() { (extent / threads).max(32 * lanes) } else { whole };
    let tile = fits.min(wanted).min(whole) / lanes * lanes;
    let outer = problem.n_outputs / extent.max(1);
    let n_tiles = outer * ceil_div(extent, tile);
    let outermost = problem.dims.iter().find(|d| d.is_reduced()).map_or(1, |d| d.extent);
    let chunks = facts.chunks(n_tiles, outermost);
    // Several rows a visit: a state is read and written once for all of them.
    let unroll = match rows {
        Some(_) if runs.steps > 1 => runs.steps,
        Some(_) => facts.unroll(lanes),
        None => 1,
    };
    let ahead = facts.ahead(AHEAD_BYTES, unroll * tile * facts.spec.inputs[0].bytes() as i64);
    let mut sketch = Sketch { lanes, unroll, ahead, run: runs.steps, tile, chunks, ..facts.plain() };
    // A tile that holds a whole row has no guard if the kernel knows the row's length.
    if let Some(last) = sketch.constant.last_mut() {
        *last = extent <= tile;
    }
    Ok(sketch)
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    if sketch.chunks == 1 {
        let tile = tile_loops(s, output, n_kept, sketch)?;
        if sketch.parallel {
            spread(s, output, n_kept, &tile)?;
        }
        let at = tile_site(s, output, n_kept)?;
        fold_tile(s, state, n_kept, sketch, sketch.unroll)?;
        ask_ahead(s, state, sketch.ahead)?;
        s.set_scope(state, MemScope::Local)?;
        return s.compute_at(state, output, &at);
    }
    let outermost = s.stage(state)?.reduce_axes()[0].clone();
    let (chunk, _) = s.split(state, &outermost, Split::Nparts(sketch.chunks))?;
    let partial = s.rfactor(state, &chunk)?;
    let cached = s.cache_write(partial, MemScope::Local)?;
    let tile = tile_loops(s, partial, n_kept + 1, sketch)?;
    if sketch.parallel {
        spread(s, partial, n_kept + 1, &tile)?;
    }
    let at = tile_site(s, partial, n_kept + 1)?;
    fold_tile(s, cached, n_kept + 1, sketch, sketch.unroll)?;
    ask_ahead(s, cached, sketch.ahead)?;
    s.compute_at(cached, partial, &at)?;
    // The partial states are folded with vectors too.
    tile_loops(s, output, n_kept, sketch)?;
    let at = tile_site(s, output, n_kept)?;
    fold_tile(s, state, n_kept, sketch, 1)?;
    place(s, state, Some(&super::steps::Site { stage: output, at }))
}

/// Splits the last kept loop of an element-wise stage into tiles and vectors; the tile loop.
fn tile_loops(
    s: &mut Schedule,
    stage: StageId,
    n_kept: usize,
    sketch: &Sketch,
) -> Result<IterVar, ScheduleError> {
    let last = s.stage(stage)?.leaves()[n_kept - 1].clone();
    let (tile, within) = s.split(stage, &last, Split::Factor(sketch.tile))?;
    let (_, lane) = s.split(stage, &within, Split::Factor(sketch.lanes))?;
    s.vectorize(stage, &lane)?;
    Ok(tile)
}

/// Spreads all loops down to the tile loop over threads.
fn spread(s: &mut Schedule, stage: StageId, n_kept: usize, tile: &IterVar) -> Result<(), ScheduleError> {
    let loops = s.stage(stage)?.leaves()[..n_kept].to_vec();
    let fused = if loops.len() > 1 { s.fuse(stage, &loops)? } else { tile.clone() };
    s.parallel(stage, &fused)
}

/// The loop over tiles, or over all outer loops fused: the first loop before the vector loops.
fn tile_site(s: &Schedule, stage: StageId, n_kept: usize) -> Result<IterVar, ScheduleError> {
    let leaves = s.stage(stage)?.leaves();
    let n_outer = leaves.len() - 2;
    Ok(leaves[n_outer.min(n_kept) - 1].clone())
}

/// Folds a tile: the reduced loops outside, the vectors of the tile inside, `rows_a_visit` rows for each.
fn fold_tile(
    s: &mut Schedule,
    stage: StageId,
    n_kept: usize,
    sketch: &Sketch,
    rows_a_visit: i64,
) -> Result<(), ScheduleError> {
    let leaves = s.stage(stage)?.leaves().to_vec();
    let (kept, reduce) = leaves.split_at(n_kept);
    let (vector, lane) = s.split(stage, &kept[n_kept - 1], Split::Factor(sketch.lanes))?;
    let mut order = kept[..n_kept - 1].to_vec();
    let mut few = None;
    if let Some((rows, outer)) = reduce.split_last().filter(|_| rows_a_visit > 1) {
        let (visit, row) = s.split(stage, rows, Split::Factor(rows_a_visit))?;
        order.extend(outer.iter().cloned());
        order.push(visit);
        few = Some(row);
    } else {
        order.extend(reduce.iter().cloned());
    }
    order.push(vector.clone());
    order.extend(few.clone());
    order.push(lane.clone());
    s.reorder(stage, &order)?;
    s.vectorize(stage, &lane)?;
    if let Some(row) = few {
        if sketch.run > 1 {
            s.in_runs(stage, &row)?;
        } else {
            s.unroll(stage, &row)?;
        }
    }
    if sketch.tile / sketch.lanes <= UNROLLED {
        s.unroll(stage, &vector)?;
    }
    Ok(())
}
