//! `rows_apart`: an output is folded over rows that lie apart, with those of other outputs between them, as the channels of a batch of
//! images are.
//!
//! Output by output, memory would be read in pieces of one row. So a thread takes some neighbouring outputs together and goes
//! through memory front to back: each row is folded as it lies there, as `short_rows` or `rows` has it, and its state is folded into
//! that of its output, which waits in a cache.

use coulis_ir::MemScope;
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};

use super::columns::{fold_parts, spread, tile_loops};
use super::steps::{Site, same_axis, stage_of};
use super::{
    Chunks, Decline, Facts, Machine, SHORT, Sketch, Strategy, Tile, WholeCall, ceil_div, rows, short_rows,
    state_bytes,
};
use crate::problem::{Dim, Problem, Role};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "rows_apart",
    machine: Machine::Loops,
    keeps_order: false,
    summary: "rows of several outputs in the order of memory, where those of one lie apart; their states are folded as columns are",
    propose,
    schedule,
};

/// How rows are folded whose states are folded into those of outputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OfRows {
    /// Whether as `short_rows` does it, and not `rows`.
    pub are_short: bool,
    /// What is decided of it.
    pub sketch: Sketch,
}

/// Fewest lanes of vectors of states.
const FEWEST_LANES: i64 = 4;
/// Rows of more bytes are long pieces of memory by themselves.
const LONGEST_BYTES: i64 = 64 << 10;
/// Bytes of the states of outputs that are folded together: most of a first-level cache.
const TOGETHER_BYTES: i64 = 32 << 10;
/// Bytes that the rows of these have together, at least, where others follow in memory: fewer are no longer pieces than single rows are.
const FEWEST_BYTES: i64 = 16 << 10;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let problem = &facts.spec.problem;
    let (Some((extent, 1, true)), Some((n_beside, _, false))) = (facts.inner(), facts.dim_from_end(1)) else {
        return Err(Decline::new("rows of neighbours, with those of other outputs behind them", "others"));
    };
    let outermost = &problem.dims[0];
    let n_reduced = facts.spec.n_reduced();
    if !outermost.is_reduced() || n_reduced != 2 {
        return Err(Decline::new(
            "one outermost dimension that is reduced too",
            format!("{n_reduced} of all"),
        ));
    }
    if facts.spec.map.is_some() || !facts.target.vectors_are_registers {
        return Err(Decline::new("vectors that are registers, and no map", "others"));
    }
    if !facts.is_in_memory() {
        return Err(Decline::new("elements in memory", format!("{} bytes", facts.input_bytes())));
    }
    let lanes = facts.lanes();
    if n_beside < lanes {
        return Err(Decline::new("as many outputs side by side as lanes", n_beside));
    }
    // Vectors of states are made up of neighbours, all of them.
    let lanes = lanes.min(n_beside & -n_beside);
    if lanes < FEWEST_LANES {
        return Err(Decline::new(
            format!("a number of outputs side by side that {FEWEST_LANES} divides"),
            n_beside,
        ));
    }
    let row_bytes = extent.saturating_mul(facts.spec.inputs[0].bytes() as i64);
    if row_bytes > LONGEST_BYTES {
        return Err(Decline::new(
            "rows that are no long pieces of memory by themselves",
            format!("{row_bytes} bytes"),
        ));
    }
    let Some((tile, chunks)) = tiles(facts, (n_beside, lanes), outermost.extent, row_bytes) else {
        return Err(Decline::new(
            "long pieces of memory for all threads",
            format!("{n_beside} rows of {row_bytes} bytes"),
        ));
    };
    let spec = rows_of(facts.spec, 1);
    let rows_facts = Facts { spec: &spec, target: facts.target, room: facts.room };
    let (are_short, mut sketch) = match short_rows::propose(&rows_facts) {
        Ok(sketch) => (true, sketch),
        Err(declined) if extent <= SHORT => return Err(declined),
        Err(_) => (false, rows::sketch(&rows_facts, i64::MAX)?),
    };
    sketch.whole = WholeCall::SMALL;
    sketch.early_exit.every = 0;
    let mut constant = sketch.constant.clone();
    let beside = constant.len() - 2;
    constant[0] |= chunks > 1;
    constant[beside] = true;
    let of_rows = Some(Box::new(OfRows { are_short, sketch }));
    let (tile, chunks) = (Tile::of(tile), Chunks::of(chunks));
    Ok(Sketch { lanes, tile, chunks, of_rows, constant, ..facts.plain() })
}

/// Neighbouring outputs that are folded together, and the parts that these are folded in. As many have states that fit, or fewer if each
/// thread then has as many as others; where these would be too few, parts of the outermost dimension are folded. Tiles and parts are of
/// equal length: in others not all elements take part, and what only counts them would not be known.
fn tiles(facts: &Facts, (n_beside, lanes): (i64, i64), n_along: i64, row_bytes: i64) -> Option<(i64, i64)> {
    let outer = facts.spec.problem.n_outputs / n_beside;
    let threads = if facts.parallel() { i64::from(facts.target.n_threads) } else { 1 };
    let is_even = |n: i64| n % threads == 0 || n >= 8 * threads;
    let most = (TOGETHER_BYTES / state_bytes(&facts.spec.reducer).max(1)).max(lanes);
    let dims = &facts.spec.problem.dims;
    let stride = |dim: &Dim| dim.strides.first().copied();
    let of_all = dims.iter().rev().nth(1).and_then(stride).map(|of_row| of_row * n_beside);
    // All neighbours are one piece of memory with those of the next step.
    let is_one_piece = dims.first().and_then(stride) == of_all;
    let are_long =
        |tile: &i64| *tile == n_beside && is_one_piece || tile.saturating_mul(row_bytes) >= FEWEST_BYTES;
    let equal = |n: i64| (n_beside % (n * lanes) == 0).then_some(n_beside / n).filter(are_long);
    let least = ceil_div(n_beside, most);
    let mut of_threads = (least..least + threads).filter(|n| is_even(outer * n));
    if let Some(tile) = of_threads.find_map(equal) {
        return Some((tile, 1));
    }
    let tile = (least..=8 * least).find_map(equal)?;
    let parts = facts.chunks_of_outermost(1, n_along);
    let n_tiles = outer * (n_beside / tile);
    let of =
        |is_equal: bool| (2..=parts).rev().find(|n| (n_along % n == 0 || !is_equal) && is_even(n * n_tiles));
    Some((tile, of(true).or_else(|| of(false))?))
}

/// Its rows as a problem of their own, of which there is an output each; those of an output are in so many parts.
fn rows_of(spec: &Spec, chunks: i64) -> Spec {
    let problem = &spec.problem;
    let mut dims = Vec::new();
    for (at, dim) in problem.dims.iter().enumerate() {
        if at > 0 {
            dims.push(dim.clone());
            continue;
        }
        let kept = |extent: i64, times: i64| Dim {
            extent,
            strides: dim.strides.iter().map(|stride| stride * times).collect(),
            role: Role::Kept { out_stride: 0 },
        };
        let within = ceil_div(dim.extent, chunks);
        if chunks > 1 {
            dims.push(kept(chunks, within));
        }
        dims.push(kept(within, 1));
    }
    let reduce_len = dims.last().map_or(1, |dim| dim.extent);
    let n_outputs = dims.iter().filter(|dim| !dim.is_reduced()).map(|dim| dim.extent).product();
    Spec { problem: Problem { dims, n_outputs, reduce_len, ..problem.clone() }, ..spec.clone() }
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let Some(of_rows) = &sketch.of_rows else { return Ok(()) };
    let n_kept = spec.n_kept();
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let mut along = s.stage(state)?.reduce_axes()[0].clone();
    let mut folded = state;
    if sketch.chunks.n > 1 {
        let (chunk, within) = s.split(state, &along, Split::Nparts(sketch.chunks.n))?;
        folded = s.rfactor(state, &chunk)?;
        along = same_axis(s, folded, &within)?;
    }
    let n_outer = n_kept + usize::from(sketch.chunks.n > 1);
    let row = s.rfactor_at(folded, &along, (n_outer - n_kept) as i64)?;
    let parts = folded;
    if sketch.chunks.n > 1 {
        folded = s.cache_write(parts, MemScope::Local)?;
    }
    let root = if sketch.chunks.n > 1 { parts } else { output };
    let mut at = tile_loops(s, root, n_outer, sketch)?;
    if sketch.whole.parallel {
        at = spread(s, root, n_outer, &at)?;
    }
    rows_inside(s, folded, n_outer)?;
    let rows_spec = rows_of(spec, sketch.chunks.n);
    let OfRows { are_short, sketch: of_row } = &**of_rows;
    if *are_short {
        short_rows::fold_short(s, (row, folded), &rows_spec, of_row)?;
    } else {
        let made = rows::fold_whole(s, row, &rows_spec, of_row)?;
        rows::place_whole(s, (row, folded), &made, n_outer + 1, of_row)?;
    }
    let site = Site { stage: root, at };
    s.set_scope(folded, MemScope::Local)?;
    s.compute_at(folded, site.stage, &site.at)?;
    if sketch.chunks.n > 1 { fold_parts(s, (state, output), spec, sketch) } else { Ok(()) }
}

/// Orders the loops of a stage that folds states of rows such that the one over neighbouring outputs, the last of the first `n_outer`,
/// is in all others.
fn rows_inside(s: &mut Schedule, stage: StageId, n_outer: usize) -> Result<(), ScheduleError> {
    let mut order = s.stage(stage)?.leaves().to_vec();
    let beside = order.remove(n_outer - 1);
    order.push(beside);
    s.reorder(stage, &order)
}
