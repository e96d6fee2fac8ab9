//! `gpu_kept_columns`: columns that a map reads again stay on the chip between their fold and their map.
//!
//! A block has a strip of columns from top to bottom: neighbouring threads have neighbouring columns, as many as one access holds,
//! and those above each other share the rows. Each reads its words once, all of them at the start, into registers, where the fold
//! and the map find them. The states of a column are then many, in threads that are no neighbours: each leaves those of its columns in
//! memory of the block, and all of them fold them, a column by as many threads as there are for it.
//!
//! Strips are wide, as memory gives wide pieces sooner than narrow ones; where columns are long they are narrower, and then several
//! blocks, a cluster, have a part of a strip each. Longer ones are `gpu_columns`', which reads them twice. Measured: `bench/results`.

use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::IterVar;

use super::cluster::{PARTS, cluster_sizes, fold_in_cluster};
use super::gpu_columns::{OUTER, Strips, THREAD_STATE, bind_strips};
use super::gpu_steps::{Fold, split_fold, widest_access};
use super::kept::{in_registers, readers_of};
use super::map_steps::Keep;
use super::steps::stage_of;
use super::{Chunks, Decline, Facts, Machine, Run, Sketch, Strategy, Tile, ceil_div, floor_pow2};
use crate::program::{Spec, Statement};
use crate::room::word_bytes;

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "gpu_kept_columns",
    machine: Machine::Threads,
    keeps_order: false,
    summary: "columns that a map reads again are read once, into registers of the blocks that have strips of them",
    propose,
    schedule,
};

/// Most columns of a thread.
const MOST_LANES: i64 = 4;
/// Bytes of registers in which a thread keeps what it read.
const KEPT_BYTES: i64 = 256;
/// Elements of an access that are few.
const FEW_LANES: i64 = 2;
/// Columns side by side, at least, of which those that are read twice are read in whole words.
const FEWEST_BESIDE: i64 = 64;
/// Most rows that are read by such accesses where wider ones would be possible: more of them are as fast read twice, without so much in registers.
const MOST_OF_WORDS: i64 = 512;
/// Bytes of a strip's rows, and most threads of a block that has such a strip, the most wanted first.
const STRIPS: [(i64, i64); 5] = [(1024, 128), (512, 128), (256, 512), (128, 512), (64, 512)];
/// The same of strips that a cluster has.
const STRIPS_OF_CLUSTERS: [(i64, i64); 2] = [(128, 256), (128, 512)];
/// How many times as many words side by side as threads that run at once are enough for a thread each.
const MANY_WORDS: i64 = 4;
/// Fewest threads of a block, where there is work for them.
const BLOCK: i64 = 128;

/// How columns are dealt to blocks and threads.
#[derive(Clone, Copy)]
struct Dealt {
    /// Words side by side, which are threads.
    words: i64,
    /// Threads above each other.
    threads: i64,
    /// Blocks above each other.
    parts: i64,
}

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let wanted = "a map after columns: a kept innermost dimension";
    let spec = facts.spec;
    facts.map_of_rows(wanted)?;
    let Some((extent, _, false)) = facts.inner() else {
        return Err(Decline::new(wanted, "a reduced one"));
    };
    if !facts.room.has_outputs() {
        return Err(Decline::new("room for states of several columns in a thread", "less"));
    }
    let constant = facts.constants(false);
    let narrow = if facts.is_narrow() { 2 } else { 1 };
    let of_states = floor_pow2(THREAD_STATE / word_bytes(&spec.reducer.identity)).max(narrow);
    let lanes = facts.word_lanes(&constant).min(of_states).min(MOST_LANES);
    let Some((_, innermost)) = facts.innermost_reduced() else {
        return Err(Decline::new("a reduced dimension", "none"));
    };
    let (rows, outer) = (innermost.extent, spec.n_pieces());
    let n_outer = spec.problem.n_outputs / extent.max(1);
    let aligned = facts.word_lanes(&constant);
    let are_pieces = aligned <= FEW_LANES && widest_access(facts) > FEW_LANES && extent > FEWEST_BESIDE;
    if are_pieces && outer.saturating_mul(rows) > MOST_OF_WORDS {
        return Err(Decline::new(
            format!("accesses of several elements, or at most {MOST_OF_WORDS} rows"),
            outer.saturating_mul(rows),
        ));
    }
    let Some(dealt) = deal(facts, (n_outer, outer, rows, ceil_div(extent, lanes)), lanes) else {
        let wanted = "columns that fit into the registers of a block, or of a cluster of them";
        return Err(Decline::new(wanted, format!("{} rows", outer.saturating_mul(rows))));
    };
    let Dealt { words, threads, parts } = dealt;
    let turns = ceil_div(ceil_div(rows, threads), parts) * outer;
    let most = n_outer.min(OUTER.max_extent().unwrap_or(n_outer)).max(1);
    let together = if parts == 1 { (BLOCK / (words * threads)).clamp(1, most) } else { 1 };
    let (chunks, tile, run) = (Chunks::of(parts), Tile::of(words * lanes), Run::of(facts.even_run(turns)));
    let sketch = Sketch { chunks, lanes, threads, constant, ..facts.plain().with_map_kept(Keep::Registers) };
    Ok(Sketch { tile, unroll: turns, run, rows: together, ..sketch })
}

/// How so many columns, `words` of so many lanes in each of `n_outer` panels, are dealt, of which each has `outer` times `rows`
/// elements: by the widest strips of which there is one for each multiprocessor, or else by the narrowest. `None` where no strip fits, or one
/// of a cluster would leave multiprocessors idle.
fn deal(facts: &Facts, (n_outer, outer, rows, words): (i64, i64, i64, i64), lanes: i64) -> Option<Dealt> {
    let turns = KEPT_BYTES / facts.register_bytes_of_element() / lanes / outer;
    if turns == 0 {
        return None;
    }
    let n_multiprocessors = i64::from(facts.target.n_multiprocessors());
    let of_strip = |(strip, most): (i64, i64), parts: i64| {
        let side_by_side = (strip / (lanes * facts.spec.element_bytes())).max(1);
        // As many strips, all alike.
        let n_strips = ceil_div(words, side_by_side);
        let words = ceil_div(words, n_strips);
        // Narrow strips of few panels have more threads; of many, a block takes several.
        let are_many = n_outer.saturating_mul(words) >= MANY_WORDS * i64::from(facts.target.n_threads);
        let of_narrow = if are_many { 1 } else { ceil_div(BLOCK, words).min(rows / lanes / 2) };
        let fewest = ceil_div(ceil_div(rows, parts), turns).max(of_narrow);
        // So many that those of a column are as many for each of the columns of a word, and no more than there are rows.
        let threads =
            if fewest > lanes { (ceil_div(fewest, lanes) * lanes).min(rows) } else { fewest.max(1) };
        let has_blocks = n_outer.saturating_mul(n_strips).saturating_mul(parts) >= n_multiprocessors;
        (words * threads <= most).then_some((Dealt { words, threads, parts }, has_blocks))
    };
    let alone: Vec<(Dealt, bool)> = STRIPS.iter().filter_map(|strip| of_strip(*strip, 1)).collect();
    if let Some((found, _)) = alone.iter().find(|(_, has_blocks)| *has_blocks).or(alone.last()) {
        return Some(*found);
    }
    // Narrow elements that are parts of strips were no faster than columns that are read twice.
    let may_be_parts = outer == 1 && !facts.is_narrow();
    let parts = || cluster_sizes(facts).filter(|_| may_be_parts);
    let mut several = STRIPS_OF_CLUSTERS.iter().flat_map(|strip| parts().map(move |parts| (*strip, parts)));
    // Nor were few of them.
    let found = several.find_map(|(strip, parts)| of_strip(strip, parts));
    found.filter(|(_, has_blocks)| *has_blocks).map(|(found, _)| found)
}

impl Sketch {
    /// Threads above each other that fold the states of one column together, where those that share a strip deal its columns among
    /// each other for that; `None` where each has what it folded, for all lanes of its words.
    fn dealt(&self) -> Option<i64> {
        let several = self.threads / self.lanes;
        let are_whole = self.lanes > 1 && self.threads % self.lanes == 0 && several > 1;
        let fit = ThreadTag::ThreadZ.max_extent().is_none_or(|most| several <= most);
        (are_whole && fit && self.rows == 1).then_some(several)
    }
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let Some(map) = &stmt.map else { return Ok(()) };
    let n_kept = spec.n_kept();
    let (state, finished, map) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?, stage_of(s, map)?);
    let fold = split_fold(s, state, n_kept, 0, 1, sketch)?;
    // Threads first: their states are then side by side in memory as their columns are.
    let mine = s.rfactor_at(fold.stage, &fold.thread, 0)?;
    let (tile, lanes, rows) = (sketch.tile.width, sketch.lanes, sketch.rows);
    let strips = Strips { tile, lanes, together: 1, rows, in_last: false, are_parts: false };
    let (column, neighbour) = bind_strips(s, map, n_kept, &strips)?;
    map_own_words(s, map, n_kept, neighbour, sketch)?;
    s.compute_at(finished, map, &column)?;
    let folds = match sketch.dealt() {
        Some(dealt) => fold_dealt_columns(s, [state, finished, mine], (map, &column), &fold, dealt, sketch)?,
        None => fold_own_columns(s, [state, finished, mine], (map, &column), &fold, n_kept, sketch)?,
    };
    if sketch.chunks.n > 1 {
        fold_in_cluster(s, (fold.stage, state))?;
    }
    fold_own_words(s, folds, fold.n_kept + 1, sketch)?;
    let dealt = spec.problem.dims.iter().rposition(|dim| dim.is_reduced()).unwrap_or(0);
    for input in &stmt.inputs {
        let readers = readers_of(s, input, [folds, map])?;
        if readers.len() > 1 {
            in_registers(s, input, &readers, (map, &column), dealt, spec, sketch)?;
        }
    }
    Ok(())
}

/// Threads above each other fold the states of their own columns together, one lane after another.
fn fold_own_columns(
    s: &mut Schedule,
    [state, finished, mine]: [StageId; 3],
    (map, column): (StageId, &IterVar),
    fold: &Fold,
    n_kept: usize,
    sketch: &Sketch,
) -> Result<StageId, ScheduleError> {
    s.compute_at(state, map, column)?;
    for stage in [finished, state] {
        s.set_scope(stage, MemScope::Local)?;
        if sketch.lanes > 1 {
            let lane = s.stage(stage)?.leaves()[n_kept - 1].clone();
            s.unroll(stage, &lane)?;
        }
    }
    if sketch.threads > 1 {
        let shared = s.stage(fold.stage)?.reduce_axes()[0].clone();
        s.bind(fold.stage, &shared, ThreadTag::ThreadY)?;
        let own = s.stage(mine)?.leaves()[0].clone();
        s.bind(mine, &own, ThreadTag::ThreadY)?;
    } else {
        s.from_first(fold.stage)?;
    }
    s.set_scope(mine, MemScope::Local)?;
    s.compute_at(mine, map, column)?;
    Ok(mine)
}

/// Threads leave the states of their columns in memory of the block, where those of one column are then folded by some of them; the
/// stage of what each folds by itself.
fn fold_dealt_columns(
    s: &mut Schedule,
    [state, finished, mine]: [StageId; 3],
    (map, column): (StageId, &IterVar),
    fold: &Fold,
    dealt: i64,
    sketch: &Sketch,
) -> Result<StageId, ScheduleError> {
    let (tile, lanes) = (sketch.tile.width, sketch.lanes);
    s.set_scope(finished, MemScope::Shared)?;
    let loops = s.stage(finished)?.leaves().to_vec();
    let (words, lane) = s.split(finished, &loops[loops.len() - 1], Split::Factor(lanes))?;
    let (_, word) = s.split(finished, &words, Split::Factor(tile / lanes))?;
    s.bind(finished, &word, ThreadTag::ThreadX)?;
    s.bind(finished, &lane, ThreadTag::ThreadY)?;
    s.set_scope(state, MemScope::Local)?;
    s.compute_at(state, finished, &lane)?;
    let shared = s.stage(fold.stage)?.reduce_axes()[0].clone();
    let (turn, thread) = s.split(fold.stage, &shared, Split::Factor(dealt))?;
    s.unroll(fold.stage, &turn)?;
    s.bind(fold.stage, &thread, ThreadTag::ThreadZ)?;
    let own = s.cache_write(mine, MemScope::Local)?;
    s.set_scope(mine, MemScope::Shared)?;
    s.compute_at(mine, map, column)?;
    let loops = s.stage(mine)?.leaves().to_vec();
    bind_dealt(s, mine, &loops[0], dealt)?;
    let (words, lane) = s.split(mine, &loops[loops.len() - 1], Split::Factor(lanes))?;
    let (_, word) = s.split(mine, &words, Split::Factor(tile / lanes))?;
    s.bind(mine, &word, ThreadTag::ThreadX)?;
    s.vectorize(mine, &lane)?;
    s.compute_at(own, mine, &word)?;
    Ok(own)
}

/// Binds the loop over all threads that share a strip to two indices.
fn bind_dealt(s: &mut Schedule, stage: StageId, threads: &IterVar, dealt: i64) -> Result<(), ScheduleError> {
    let (far, near) = s.split(stage, threads, Split::Factor(dealt))?;
    s.bind(stage, &far, ThreadTag::ThreadY)?;
    s.bind(stage, &near, ThreadTag::ThreadZ)
}

/// Threads fold their own words, runs of them where the sketch has such.
pub fn fold_own_words(
    s: &mut Schedule,
    mine: StageId,
    n_kept: usize,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    let lane = s.stage(mine)?.leaves()[n_kept - 1].clone();
    let Some(mut step) = s.stage(mine)?.reduce_axes().last().cloned() else { return Ok(()) };
    s.reorder(mine, &[step.clone(), lane.clone()])?;
    if sketch.unroll > 1 {
        step = s.split(mine, &step, Split::Factor(sketch.unroll))?.1;
        if 1 < sketch.run.steps && sketch.run.steps < sketch.unroll {
            let (runs, few) = s.split(mine, &step, Split::Factor(sketch.run.steps))?;
            s.unroll(mine, &runs)?;
            step = few;
        }
        s.unroll(mine, &step)?;
    }
    if sketch.run.steps > 1 {
        s.in_runs(mine, &step)?;
    }
    if sketch.lanes > 1 { s.vectorize(mine, &lane) } else { Ok(()) }
}

/// Threads map the words that they folded.
fn map_own_words(
    s: &mut Schedule,
    map: StageId,
    n_kept: usize,
    neighbour: Option<IterVar>,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    let reduced = s.stage(map)?.axes()[n_kept..].to_vec();
    let Some((inner, outer)) = reduced.split_last() else { return Ok(()) };
    let (mut turn, thread) = s.split(map, inner, Split::Factor(sketch.threads))?;
    match sketch.dealt() {
        Some(dealt) => bind_dealt(s, map, &thread, dealt)?,
        None if sketch.threads > 1 => s.bind(map, &thread, ThreadTag::ThreadY)?,
        None => {}
    }
    if sketch.chunks.n > 1 {
        let part;
        (part, turn) = s.split(map, &turn, Split::Nparts(sketch.chunks.n))?;
        s.bind(map, &part, PARTS)?;
    }
    outer.iter().chain([&turn]).try_for_each(|axis| s.unroll(map, axis))?;
    let Some(mut lane) = neighbour else { return Ok(()) };
    let mut inside: Vec<IterVar> =
        s.stage(map)?.leaves().iter().skip_while(|leaf| **leaf != lane).skip(1).cloned().collect();
    inside.push(lane.clone());
    s.reorder(map, &inside)?;
    if sketch.map.lanes < sketch.lanes {
        let (few, one) = s.split(map, &lane, Split::Factor(sketch.map.lanes))?;
        s.unroll(map, &few)?;
        lane = one;
    }
    if sketch.map.lanes > 1 { s.vectorize(map, &lane) } else { s.unroll(map, &lane) }
}
