//! `rows`: the folded elements lie next to each other (or at one stride), and there are many of them.
//!
//! Vectors run along the innermost reduced dimension, several side by side so that additions overlap. Few outputs
//! are split into chunks whose partial states are folded by a second nest.
//!
//! The end of a row, where its lanes are folded and its results finished, is a chain of operations that wait for each
//! other, and takes as long as a few kilobytes. Rows that are not long end eight at a time, one in each lane. Two of them, or
//! a few of the same output, are walked side by side.

use std::iter::successors;

use coulis_ir::Attr;
use coulis_ir::remark::{PREFETCH_BYTES, PREFETCH_L2};
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::{IterKind, IterVar};

use super::map_steps::{map_row, root};
use super::settled::{first_of_rounds, fold_in_rounds};
use super::steps::{
    END_LANES, Made, Parts, SHORTEST_RUN, Site, fold_by_vectors, fold_head_and_rest, place, place_rows,
    same_axis, site, stage_of,
};
use super::{
    Ahead, Chunks, Decline, EarlyExit, Facts, Machine, PAGE_BYTES, Pages, Run, Runs, Sketch, Strategy,
    ceil_div, floor_pow2, work,
};
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
/// Steps of more vector operations keep the machine busy by themselves: one state then does, and none have to be
/// brought together at the end of each row.
pub(super) const ENOUGH_OPERATIONS: i64 = 12;
/// States side by side where steps are that many: of runs that are walked again, whose first walk is a chain of few.
const BESIDE: i64 = 2;
/// As many vector operations take as long as one of them waits for another.
pub(super) const BUSY_OPERATIONS: i64 = 6;
/// Combinations of states of more bytes of operations a field are chains of them, which lanes wait for one after another.
const OF_A_CHAIN: usize = 16;
/// Longest run of a quick step, and of one that walks front to back, which rows are cut into.
const LONGEST_RUN: i64 = 256;
const LONGEST_FRONT_TO_BACK: i64 = 128;
/// Runs of a row from which on it does not matter what the last one lacks.
const LONG_ENOUGH: i64 = 8;
/// Steps of a row, of all vectors side by side and a chain, from which on its rest takes no part of the time that matters.
const MANY_STEPS: i64 = 256;
/// Bytes of a block of pages, which are read side by side where the machine reads these faster than one.
const BLOCK_BYTES: i64 = 4 * PAGE_BYTES;
/// Rows of fewer blocks, and a rest, are walked front to back.
const FEWEST_BLOCKS: i64 = 4;
/// How far ahead memory is asked for where rows lie apart and one ends before a block does.
const ROWS_AHEAD_BYTES: i64 = 2 * PAGE_BYTES;
/// Longest rows of vectors of [`END_LANES`] that end together, in steps: those whose end takes as long as they, and of steps
/// that keep the machine busy.
const STEPS: i64 = 32;
const STEPS_OF_WORK: i64 = 64;
/// Rows that end together, of so many bytes at most, and those of them that are walked side by side.
const ROWS_THAT_END: i64 = 8;
const LONGEST_THAT_END: i64 = 64 << 10;
const ROWS_BESIDE: i64 = 2;
/// Inputs of at most so many caches of a thread are, as a rule, in one that threads share.
const NEAR_CACHES: i64 = 16;
/// Steps of a run that each of several rows of one output has at least, where they are walked side by side; and runs of a
/// row whose states are.
const SHORTEST_OF_A_ROW: i64 = 4;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    sketch(facts, i64::MAX)
}

/// What is decided where at most so many vectors are folded side by side.
pub fn sketch(facts: &Facts, most_beside: i64) -> Result<Sketch, Decline> {
    let Some((extent, stride, true)) = facts.inner() else {
        return Err(Decline::new("a reduced innermost dimension", "a kept one, or none"));
    };
    if extent < SHORTEST {
        return Err(Decline::new(format!("at least {SHORTEST} elements in the innermost dimension"), extent));
    }
    let width = facts.spec.inputs[0].bytes() as i64;
    let n_reduced = facts.spec.n_reduced();
    let most_pages = i64::from(facts.target.pages);
    let is_walk = |lanes: i64| stride == 1 && facts.is_in_memory() && lanes * width <= PAGE_BYTES;
    let pages_of = |lanes: i64| if is_walk(lanes) { block_pages(extent * width, most_pages) } else { 1 };
    let runs = facts.runs(LONGEST_RUN);
    let is_alone = facts.unroll_of(runs.lanes, runs.state_bytes) == 1 && pages_of(runs.lanes) == 1;
    let narrower = facts.of_one_register(&runs, facts.target.vector_bytes.into()).filter(|narrower| {
        let is_headed = facts.spec.problem.dims.len() > 1
            && n_reduced == 1
            && facts.chunks(facts.spec.problem.n_outputs, extent) == 1
            && head(facts, extent, narrower, (narrower.lanes, 1))
                .is_some_and(|head| head.chains > runs.chains);
        is_alone && (is_headed || even_chains(extent, narrower) > even_chains(extent, &runs))
    });
    let by_chains = narrower.is_some();
    let runs = narrower.unwrap_or(runs);
    let lanes = runs.lanes.min(floor_pow2(extent));
    let beside = facts.unroll_of(lanes, runs.state_bytes);
    // Chains of one vector leave fewer lanes to close than as many vectors of one chain, where there are more of them.
    let is_chained = by_chains || pages_of(runs.lanes) == 1 && even_chains(extent, &runs) > beside;
    let beside = if is_chained { 1 } else { beside };
    let mut unroll = beside.min(most_beside);
    while unroll > 1 && lanes * unroll > extent {
        unroll /= 2;
    }
    if runs.operations > ENOUGH_OPERATIONS {
        let has_runs = extent / (lanes * BESIDE * runs.steps) >= SHORTEST_OF_A_ROW;
        unroll = if runs.steps > 1 && facts.always_rewalks() && has_runs { unroll.min(BESIDE) } else { 1 };
    }
    let held = unroll;
    // A row of one run for each vector is folded in fewer runs, as long as no step waits for the one before it.
    let is_short = |unroll: i64| runs.steps > 1 && extent / (lanes * unroll) <= runs.steps;
    while unroll > 1 && is_short(unroll / 2) && runs.operations * (unroll / 2) >= BUSY_OPERATIONS {
        unroll /= 2;
    }
    let mut n_pages = pages_of(runs.lanes);
    let of_combine = lanes * work(&facts.spec.reducer.combine) as i64 / i64::from(facts.target.vector_bytes);
    let is_work = of_combine >= BUSY_OPERATIONS;
    let most_steps = if runs.operations > ENOUGH_OPERATIONS { STEPS_OF_WORK } else { STEPS };
    // Where no more lanes than remain are folded before, it is the end alone that rows together make quicker.
    let ends =
        lanes > END_LANES || lanes == END_LANES && is_work && (by_chains || extent / lanes <= most_steps);
    let rows = if stride == 1 && ends { rows_that_end(facts, is_work) } else { 1 };
    let (mut joined, mut of_one) = (1, 1);
    let is_chain = work(&facts.spec.reducer.combine) > OF_A_CHAIN * facts.spec.reducer.arity();
    let waits_within = is_chain && runs.operations > ENOUGH_OPERATIONS;
    let is_near = facts.input_bytes() <= NEAR_CACHES * facts.target.cache_bytes as i64;
    let waits_between =
        is_near && held > 1 && runs.operations <= BUSY_OPERATIONS && of_combine > runs.operations;
    // Rows are walked side by side by the stage below the one that leaves a few lanes of each.
    let can_join = rows > 1 && lanes > END_LANES;
    if can_join && (waits_within || waits_between) {
        // As many rows as registers hold, in place of parts of one whose states are brought together at its end.
        (joined, unroll, n_pages) = (held.max(ROWS_BESIDE), 1, 1);
    } else if can_join && n_pages < most_pages && runs.operations <= ENOUGH_OPERATIONS && unroll > 1 {
        // Two rows front to back, in place of two parts of one.
        (joined, unroll, n_pages) = (ROWS_BESIDE, 1, 1);
    } else if rows == 1 && is_walk(runs.lanes) && n_pages < most_pages {
        let beside = most_pages / n_pages;
        let has_runs = runs.steps == 1 || runs.steps >= SHORTEST_OF_A_ROW * beside;
        if has_runs && extent / (lanes * unroll) >= SHORTEST_OF_A_ROW {
            of_one = rows_of_one(facts, beside);
            joined = of_one;
        }
    }
    // Elements have to reach a state in order where its step needs that.
    let in_order = facts.spec.reducer.step_needs_ascending;
    let by_pages = n_pages > 1 && n_pages % unroll == 0 && (n_pages == unroll || !in_order);
    let apart = if by_pages { n_pages * PAGE_BYTES / (unroll * width) } else { lanes };
    let pages = if by_pages { n_pages / unroll } else { 1 };
    let steps = if by_pages { apart / lanes } else { (extent / (lanes * unroll)).min(LONGEST_FRONT_TO_BACK) };
    // Chains are for vectors that are alone, of rows that have no more of a rest by them.
    let chains = if unroll == 1 && !by_pages { even_chains(extent, &runs) } else { 1 };
    let mut run = (runs.steps * chains).min(floor_pow2(steps) * of_one);
    let quick = facts.spec.reducer.quick.as_ref();
    if quick.is_some_and(|q| q.spoilt.is_some()) && extent / (lanes * unroll) < LONG_ENOUGH * runs.steps {
        // Runs of elements that are as wide save little, and what they leave at the end of a short row is walked without them.
        while run > 1 && of_one == 1 && extent % (lanes * unroll * run) >= lanes * unroll {
            run /= 2;
        }
    }
    let chains = (run / runs.steps).max(1);
    // Of several rows side by side what lies that far behind them is asked for, and not what the next of them reads at once.
    let of_rows = joined * extent * width;
    let distance = match joined > 1 && rows > 1 {
        _ if by_pages => n_pages * PAGE_BYTES,
        true => ceil_div(facts.ahead_by_bytes(ROWS_AHEAD_BYTES), of_rows) * of_rows,
        false => facts.ahead_front_to_back(),
    };
    let problem = &facts.spec.problem;
    let by_rows = stride == 1 && n_reduced > 1 && extent * width <= BLOCK_BYTES;
    let plain = facts.plain();
    let ahead = match stride {
        1 if by_rows => Ahead { rows: facts.ahead(ROWS_AHEAD_BYTES, of_one * extent * width), ..plain.ahead },
        1 if joined > 1 && rows > 1 => Ahead { bytes: facts.ahead_of_walk(distance, 1), ..plain.ahead },
        1 => {
            let step = if by_pages { lanes } else { lanes * unroll * chains };
            Ahead { steps: facts.ahead_of_walk(distance, step * width), ..plain.ahead }
        }
        _ => plain.ahead,
    };
    let outermost = problem.dims.iter().find(|d| d.is_reduced()).map_or(1, |d| d.extent);
    let block = if by_pages { apart * unroll } else { apart * unroll * (run / of_one).max(1) };
    // Where the outermost of several reduced dimensions is too short to be cut, the innermost is.
    let of_outermost =
        if n_reduced > 1 { facts.chunks_of_outermost(problem.n_outputs, outermost) } else { 1 };
    let cuts_inner = of_outermost == 1;
    let chunks =
        if cuts_inner { facts.chunks_of_blocks(problem.n_outputs, extent / block) } else { of_outermost };
    // Rows of several outputs that are walked side by side have no loop of their own over blocks.
    let is_alone = rows == 1 || joined == 1;
    let rounds = if chunks > 1 && cuts_inner { facts.rounds() } else { 1 };
    let in_part = if cuts_inner { extent / (chunks * rounds) } else { extent };
    let asks_every = if is_alone { facts.asks_every(block * width, in_part * width) } else { 0 };
    let mut sketch = Sketch {
        lanes,
        unroll,
        pages: Pages { apart, of_each: pages },
        by_halves: is_chain,
        ahead,
        run: Run { chains, ..Run::of(run) },
        early_exit: EarlyExit { every: asks_every, rounds, ..EarlyExit::NONE },
        chunks: Chunks { cuts_inner, ..Chunks::of(chunks) },
        rows,
        joined,
        ..plain.with_map_inside(chunks == 1 && facts.has_rows())
    };
    let step = lanes * unroll * width;
    if is_alone && chunks == 1 && n_reduced == 1 && problem.n_outputs > 1 && !by_pages && of_one == 1 {
        sketch.early_exit.first = facts.asked_first(extent * width, step);
    }
    let is_cut = chunks == 1 && n_reduced == 1 && !by_pages && of_one == 1 && asks_every == 0;
    if is_cut
        && problem.dims.len() > 1
        && let Some(head) = head(facts, extent, &runs, (lanes, unroll))
    {
        let length = if head.length < extent { head.length } else { 0 };
        sketch.head.length = length;
        (sketch.run.steps, sketch.run.chains) = (head.run, head.chains);
        // What stands behind the head is no small part of such a row, and is asked for as the head is.
        let bytes = if stride == 1 { facts.ahead_of_walk(facts.ahead_by_bytes(distance), 1) } else { 0 };
        (sketch.ahead.steps, sketch.ahead.bytes) = (0, bytes);
        if length == 0 {
            sketch.early_exit.first = 0;
        }
        if let Some(last) = sketch.constant.last_mut() {
            *last = true;
        }
    }
    if sketch.early_exit.first > 0 && sketch.early_exit.every == 0 {
        sketch.early_exit.every = facts.blocks_asked(step);
    }
    // Blocks and runs that make up a row exactly have no rest if the kernel knows the row's length, and nothing counts their steps.
    // Lengths of a dimension that stands alone differ from call to call more than those of rows.
    let in_runs = run > 1 && problem.dims.len() > 1;
    if let Some(last) = sketch.constant.last_mut() {
        *last |= (by_pages || in_runs) && extent % block == 0;
    }
    if let Some(kept) = last_kept(facts).filter(|_| rows > 1) {
        sketch.constant[kept] = true;
    }
    if let Some(around) = around_rows(facts).filter(|_| of_one > 1) {
        sketch.constant[around] = true;
    }
    Ok(sketch)
}

/// The most chains by whose runs a row of so many elements has no more of a rest than by runs of one, or one that takes no part of
/// the time that matters.
fn even_chains(extent: i64, runs: &Runs) -> i64 {
    let step = runs.lanes * runs.steps;
    let is_even =
        |chains: &i64| extent % (step * chains) == extent % step || extent / step >= LONG_ENOUGH * chains;
    successors(Some(runs.chains), |chains| Some(chains / 2)).find(|n| *n <= 1 || is_even(n)).unwrap_or(1)
}

/// What of a row is folded in whole runs, by vectors side by side, where there is a rest.
struct Head {
    /// Elements, from the first of the row.
    length: i64,
    /// Steps of a run, of all its chains; 1 is no runs.
    run: i64,
    /// Chains of a run.
    chains: i64,
}

/// What of a row of so many elements is folded in whole runs, as many lanes wide and side by side as said; `None` where runs are as
/// long as can be, and where the row is so long that the rest does not matter.
fn head(facts: &Facts, extent: i64, runs: &Runs, (lanes, unroll): (i64, i64)) -> Option<Head> {
    let steps = extent / (lanes * unroll);
    let chains = if unroll == 1 { runs.chains } else { 1 };
    let longest = (runs.steps * chains).min(LONGEST_FRONT_TO_BACK);
    let are_registers = facts.target.vectors_are_registers;
    if facts.spec.mask
        || !are_registers
        || extent % (lanes * unroll * longest) == 0
        || steps >= MANY_STEPS * chains
    {
        return None;
    }
    // What is behind the last run is one of a chain.
    let even = |n_runs: i64| steps / n_runs / chains * chains;
    let leaves_one = |run: &i64| *run >= chains * SHORTEST_RUN && steps % run <= runs.steps;
    let of_chains =
        (ceil_div(steps, longest).max(1)..=steps).map(even).find(leaves_one).filter(|_| chains > 1);
    let (run, chains) = match of_chains {
        Some(run) => (run, chains),
        None => (steps / ceil_div(steps, runs.steps.min(longest)).max(1), 1),
    };
    let run = if run < SHORTEST_RUN { 1 } else { run };
    let length = steps / run * run * lanes * unroll;
    (length > 0).then_some(Head { length, run, chains })
}

/// Rows whose ends are folded together: of outputs side by side that are not long, where blocks of so many keep all threads
/// busy; else 1. Such a kernel is for one number of rows, and where that is no multiple of a block, the last block begins among
/// the rows of the one before it; where ends are little work, it is worth neither.
fn rows_that_end(facts: &Facts, is_work: bool) -> i64 {
    let problem = &facts.spec.problem;
    let width = facts.spec.inputs[0].bytes() as i64;
    let n_blocks = problem.n_outputs / ROWS_THAT_END;
    let are_many = n_blocks >= if facts.parallel() { 8 * i64::from(facts.target.n_threads) } else { 1 };
    let n_rows = last_kept(facts).map_or(1, |at| problem.dims[at].extent);
    let is_whole = n_rows % ROWS_THAT_END == 0 || is_work && n_rows > ROWS_THAT_END;
    let is_long = problem.reduce_len.saturating_mul(width) > LONGEST_THAT_END;
    let ends =
        are_many && is_whole && !is_long && facts.spec.map.is_none() && facts.target.vectors_are_registers;
    if ends { ROWS_THAT_END } else { 1 }
}

/// Rows of one output that are walked side by side, `wanted` of them where these make up all along the reduced dimension
/// around a row.
fn rows_of_one(facts: &Facts, wanted: i64) -> i64 {
    let problem = &facts.spec.problem;
    let in_order = facts.spec.reducer.step_needs_ascending;
    let is_whole = facts.chunks(problem.n_outputs, problem.reduce_len) == 1;
    match around_rows(facts) {
        Some(at) if !in_order && is_whole && problem.dims[at].extent % wanted == 0 => wanted,
        Some(_) | None => 1,
    }
}

/// The kept dimension nearest to the innermost one.
fn last_kept(facts: &Facts) -> Option<usize> {
    facts.spec.problem.dims.iter().rposition(|d| !d.is_reduced())
}

/// The reduced dimension next to the innermost one.
fn around_rows(facts: &Facts) -> Option<usize> {
    let (_, outer) = facts.spec.problem.dims.split_last()?;
    outer.iter().rposition(|d| d.is_reduced())
}

/// Pages of the blocks of a row of so many bytes, at most `most`; 1 where it is walked front to back.
fn block_pages(bytes: i64, most: i64) -> i64 {
    let whole = |pages: &i64| bytes % (pages * PAGE_BYTES) == 0;
    if bytes >= FEWEST_BLOCKS * most * PAGE_BYTES {
        return most;
    }
    [most, (most / 2).max(1)].into_iter().find(whole).unwrap_or(1)
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    if sketch.chunks.n == 1 {
        let made = fold_whole(s, state, spec, sketch)?;
        let root = root(s, stmt, sketch)?;
        let site = place_whole(s, (state, root), &made, n_kept, sketch)?;
        return map_row(s, stmt, site.as_ref(), sketch);
    }
    if let Some((first, sketch)) = first_of_rounds(s, state, spec, sketch)? {
        let made = fold_whole(s, first, spec, &sketch)?;
        place_whole(s, (first, output), &made, 0, &sketch)?;
    }
    let reduce = s.stage(state)?.reduce_axes().to_vec();
    // An outermost dimension is cut into chunks before the innermost is split in their stage: a stage
    // of partial results keeps the loops of the dimension that it is factored along, and no others.
    let cut_outermost = !sketch.chunks.cuts_inner;
    let (fold, outermost) = match cut_outermost {
        true => chunked(s, state, &reduce[0], sketch).map(|(fold, rest)| (fold, Some(rest)))?,
        false => (state, None),
    };
    let cut = cut_row(s, fold, &reduce, sketch)?;
    let (mut within, mut partial) = (cut.block.clone(), fold);
    if !cut_outermost {
        (partial, within) = chunked(s, state, &cut.block, sketch)?;
    }
    let parts = Parts { block: Some(&within), outermost: outermost.as_ref(), ..cut.parts() };
    let made = fold_by_vectors(s, partial, &parts, n_kept + 1, sketch)?;
    ask_rows_ahead(s, &made, &cut.block, sketch)?;
    let at = site(s, partial, n_kept + 1, sketch.whole.parallel, false)?;
    for stage in made.stages {
        place(s, stage, at.as_ref())?;
    }
    fold_in_rounds(s, state, partial, sketch)?;
    let kept = site(s, output, n_kept, false, false)?;
    place(s, state, kept.as_ref())
}

/// Splits the fold of whole rows of `state` into stages that fold vectors, to be placed where a row is folded.
pub fn fold_whole(
    s: &mut Schedule,
    state: StageId,
    spec: &Spec,
    sketch: &Sketch,
) -> Result<Made, ScheduleError> {
    let reduce = s.stage(state)?.reduce_axes().to_vec();
    if sketch.head.length > 0 {
        return fold_head_and_rest(s, state, &reduce[0], spec, sketch);
    }
    let cut = cut_row(s, state, &reduce, sketch)?;
    let made = fold_by_vectors(s, state, &cut.parts(), spec.n_kept(), sketch)?;
    ask_rows_ahead(s, &made, &cut.block, sketch)?;
    Ok(made)
}

/// The loops that a row is split into.
struct Cut {
    block: IterVar,
    side: Option<IterVar>,
    page: Option<IterVar>,
    lane: IterVar,
    rows: Option<(IterVar, i64)>,
}

impl Cut {
    fn parts(&self) -> Parts<'_> {
        Parts {
            lane: &self.lane,
            block: Some(&self.block),
            side: self.side.as_ref(),
            page: self.page.as_ref(),
            rows: self.rows.as_ref().map(|(rows, n)| (rows, *n)),
            outermost: None,
        }
    }
}

/// Splits the innermost of the loops that `fold` reduces into blocks, vectors and lanes.
fn cut_row(
    s: &mut Schedule,
    fold: StageId,
    reduce: &[IterVar],
    sketch: &Sketch,
) -> Result<Cut, ScheduleError> {
    let inner = &same_axis(s, fold, &reduce[reduce.len() - 1])?;
    let by_pages = sketch.pages.apart > sketch.lanes;
    let mut page = None;
    let step = sketch.pages.apart * sketch.unroll;
    // Each of the rows of one output that are walked side by side has its part of a run.
    let of_one = if sketch.rows == 1 { sketch.joined } else { 1 };
    let run = (sketch.run.steps / of_one).max(1);
    let (block, mut rest) = s.split(fold, inner, Split::Factor(if by_pages { step } else { step * run }))?;
    if run > 1 && !by_pages {
        rest = s.split(fold, &rest, Split::Factor(step))?.1;
    }
    let (side, rest) = if sketch.unroll > 1 {
        let (side, rest) = s.split(fold, &rest, Split::Factor(sketch.pages.apart))?;
        (Some(side), rest)
    } else {
        (None, rest)
    };
    let lane = if by_pages {
        let mut rest = rest;
        if sketch.pages.of_each > 1 {
            let (outer, within) = s.split(fold, &rest, Split::Nparts(sketch.pages.of_each))?;
            (page, rest) = (Some(outer), within);
        }
        let (vector, lane) = s.split(fold, &rest, Split::Factor(sketch.lanes))?;
        if run > 1 {
            s.split(fold, &vector, Split::Factor(run / sketch.pages.of_each))?;
        }
        lane
    } else {
        rest
    };
    let rows = reduce.iter().rev().nth(1).filter(|_| of_one > 1).map(|rows| (rows.clone(), of_one));
    Ok(Cut { block, side, page, lane, rows })
}

/// Places the fold of whole rows of `state` in the loop of `root` over outputs, its first `n_kept`, or over blocks of those that end
/// together; that loop.
pub fn place_whole(
    s: &mut Schedule,
    (state, root): (StageId, StageId),
    made: &Made,
    n_kept: usize,
    sketch: &Sketch,
) -> Result<Option<Site>, ScheduleError> {
    if sketch.rows > 1 {
        let row = s.stage(root)?.leaves()[n_kept - 1].clone();
        let (_, lane) = s.split(root, &row, Split::Factor(sketch.rows))?;
        s.vectorize(root, &lane)?;
    }
    let site = site(s, root, n_kept, sketch.whole.parallel, sketch.whole.outer_is_long)?;
    if sketch.rows > 1 {
        let of_row = place_rows(s, state, made, n_kept, sketch, site.as_ref())?;
        ask_behind(s, Some(&of_row), sketch)?;
        return Ok(site);
    }
    ask_behind(s, site.as_ref(), sketch)?;
    for &stage in made.stages.iter().chain([&state]) {
        place(s, stage, site.as_ref())?;
    }
    Ok(site)
}

/// Has the loop over rows ask for what lies behind what it reads, where the sketch says how far.
fn ask_behind(s: &mut Schedule, rows: Option<&Site>, sketch: &Sketch) -> Result<(), ScheduleError> {
    match rows.filter(|_| sketch.ahead.bytes > 0) {
        Some(rows) => s.pragma(rows.stage, &rows.at, PREFETCH_BYTES, Attr::Int(sketch.ahead.bytes)),
        None => Ok(()),
    }
}

/// Has the loop around `block`, over the rows of one output, ask for the memory of rows to come.
fn ask_rows_ahead(
    s: &mut Schedule,
    made: &Made,
    block: &IterVar,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    if sketch.ahead.rows == 0 {
        return Ok(());
    }
    let stage = made.reads;
    let block = same_axis(s, stage, block)?;
    let leaves = s.stage(stage)?.leaves();
    let rows = leaves.iter().position(|leaf| *leaf == block).and_then(|at| leaves[..at].last());
    match rows.filter(|leaf| leaf.kind() == IterKind::Reduce).cloned() {
        Some(rows) => s.pragma(stage, &rows, PREFETCH_L2, Attr::Int(sketch.ahead.rows)),
        None => Ok(()),
    }
}

/// Cuts a reduce loop into chunks; the stage of their partial states, and what is left of the loop in it.
fn chunked(
    s: &mut Schedule,
    state: StageId,
    axis: &IterVar,
    sketch: &Sketch,
) -> Result<(StageId, IterVar), ScheduleError> {
    let (chunk, within) = s.split(state, axis, Split::Nparts(sketch.chunks.n * sketch.early_exit.rounds))?;
    Ok((s.rfactor(state, &chunk)?, within))
}
