//! Steps that the strategies for machines with threads share.

use std::collections::HashSet;
use std::ops::Range;

use coulis_ir::remark::ASYNC_COPY;
use coulis_ir::{Attr, Expr, MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::{IterKind, IterVar, Tensor};

use super::kept::own_words;
use super::steps::same_axis;
use super::{Decline, Facts, Sketch, ceil_div, gcd};
use crate::program::Spec;

/// A fold that threads are to share.
pub struct Fold {
    /// The stage that folds.
    pub stage: StageId,
    /// Its data loops.
    pub n_kept: usize,
    /// Its reduce loop over the steps of all threads together, the threads of a step, and the neighbours that one of them
    /// takes, where these are several.
    pub turn: IterVar,
    /// See `turn`.
    pub thread: IterVar,
    /// See `turn`.
    pub lane: Option<IterVar>,
    /// What `peel` left at the ends, and the stage that combines it with the fold: the threads fold it too, and their states
    /// together at once.
    pub ends: Option<(StageId, StageId)>,
}

/// Splits the innermost reduce loop of a state among threads, each of which takes `lanes` neighbours at a time; what is
/// left of it is one loop of turns with the reduce loops around it. Where several chunks are asked for the turns are cut
/// into chunks, whose partial states become a stage with the chunk as dimension `at`.
pub fn split_fold(
    s: &mut Schedule,
    state: StageId,
    n_kept: usize,
    at: usize,
    lanes: i64,
    sketch: &Sketch,
) -> Result<Fold, ScheduleError> {
    let reduce = s.stage(state)?.reduce_axes().to_vec();
    let (outer, innermost) = reduce.split_at(reduce.len() - 1);
    let mut words = innermost[0].clone();
    let mut lane = None;
    if lanes > 1 {
        let (word, within) = s.split(state, &words, Split::Factor(lanes))?;
        (words, lane) = (word, Some(within));
    }
    if sketch.chunks.shares_all && !outer.is_empty() {
        words = s.fuse(state, &outer.iter().chain([&words]).cloned().collect::<Vec<_>>())?;
    }
    // What the threads of a block share stays together, so turns are cut into chunks, not elements.
    let (mut turn, thread) = s.split(state, &words, Split::Factor(sketch.threads))?;
    let with_outer = |s: &mut Schedule, turn: &IterVar| {
        let turns: Vec<IterVar> = outer.iter().chain([turn]).cloned().collect();
        s.fuse(state, &turns)
    };
    if !sketch.chunks.shares_all && !sketch.chunks.cuts_inner && !outer.is_empty() {
        turn = with_outer(s, &turn)?;
    }
    if sketch.chunks.n == 1 {
        return Ok(Fold { stage: state, n_kept, turn, thread, lane, ends: None });
    }
    let (mut chunk, turn) = split_turns(s, state, &turn, sketch)?;
    if sketch.chunks.cuts_inner {
        chunk = with_outer(s, &chunk)?;
    }
    let stage = s.rfactor_at(state, &chunk, at as i64)?;
    let lane = lane.map(|lane| same_axis(s, stage, &lane)).transpose()?;
    let (turn, thread) = (same_axis(s, stage, &turn)?, same_axis(s, stage, &thread)?);
    Ok(Fold { stage, n_kept: n_kept + 1, turn, thread, lane, ends: None })
}

/// Cuts turns into chunks: the chunk, and the turns of one. They lie together, or every so many of them are one
/// chunk's.
pub fn split_turns(
    s: &mut Schedule,
    state: StageId,
    turns: &IterVar,
    sketch: &Sketch,
) -> Result<(IterVar, IterVar), ScheduleError> {
    if sketch.chunks.in_turn {
        return s.split(state, turns, Split::Factor(sketch.chunks.n)).map(|(turn, chunk)| (chunk, turn));
    }
    let by = match sketch.chunks.turns {
        0 => Split::Nparts(sketch.chunks.n),
        turns => Split::Factor(turns),
    };
    s.split(state, turns, by)
}

/// Cuts the pieces that a state folds into chunks, where the sketch has several; the stage that folds those of one chunk, its loops
/// over them, and that over what is in a piece.
pub fn chunks_of_pieces(
    s: &mut Schedule,
    state: StageId,
    at: usize,
    sketch: &Sketch,
) -> Result<(StageId, Vec<IterVar>, IterVar), ScheduleError> {
    let axes = s.stage(state)?.reduce_axes().to_vec();
    let (outer, inner) = axes.split_at(axes.len() - 1);
    if sketch.chunks.n == 1 {
        return Ok((state, outer.to_vec(), inner[0].clone()));
    }
    let all = as_one(s, state, outer)?;
    let (chunk, of_chunk) = split_turns(s, state, &all, sketch)?;
    let whole = s.rfactor_at(state, &chunk, at as i64)?;
    Ok((whole, vec![same_axis(s, whole, &of_chunk)?], same_axis(s, whole, &inner[0])?))
}

/// Each thread of `tag` folds its steps, several at a time, then the threads fold their states together. Where a step
/// takes several neighbours, these are read by one access of each of the `inputs`.
pub fn fold_by_threads(
    s: &mut Schedule,
    fold: &Fold,
    tag: ThreadTag,
    inputs: &[Tensor],
    sketch: &Sketch,
) -> Result<StageId, ScheduleError> {
    let mine = s.rfactor_at(fold.stage, &fold.thread, fold.n_kept as i64)?;
    let turn = same_axis(s, mine, &fold.turn)?;
    let lane = fold.lane.as_ref().map(|lane| same_axis(s, mine, lane)).transpose()?;
    let order: Vec<IterVar> = [&turn].into_iter().chain(&lane).cloned().collect();
    s.reorder(mine, &order)?;
    // A run is some steps of all lanes, or the lanes of one step.
    let steps = sketch.run.steps / sketch.lanes;
    let mut step = turn.clone();
    let mut loop_step = turn.clone();
    if sketch.unroll > 1 {
        (loop_step, step) = s.split(mine, &turn, Split::Factor(sketch.unroll))?;
        if 1 < steps && steps < sketch.unroll {
            let (runs, few) = s.split(mine, &step, Split::Factor(steps))?;
            s.unroll(mine, &runs)?;
            step = few;
        }
        s.unroll(mine, &step)?;
    }
    if let Some(lane) = &lane {
        s.unroll(mine, lane)?;
    }
    if sketch.run.steps > 1 {
        s.in_runs(mine, lane.as_ref().filter(|_| steps == 1).unwrap_or(&step))?;
    }
    let (together, own_end) = match fold.ends {
        None => (fold.stage, None),
        Some((ends, whole)) => {
            let n_data = s.stage(ends)?.leaves().len() - s.stage(ends)?.reduce_axes().len();
            let axes = s.stage(ends)?.leaves()[n_data..].to_vec();
            let end = as_one(s, ends, &axes)?;
            let (_, thread) = s.split(ends, &end, Split::Factor(sketch.threads))?;
            // A loop over threads has as many steps as these are, whatever there is at the ends.
            s.bind(ends, &thread, tag)?;
            let own = s.rfactor_at(ends, &thread, fold.n_kept as i64)?;
            s.zip(whole, fold.stage, ends)?;
            (whole, Some(own))
        }
    };
    let thread = s.stage(together)?.reduce_axes()[0].clone();
    if sketch.threads > 1 {
        s.bind(together, &thread, tag)?;
    }
    for stage in own_end.into_iter().chain([mine]) {
        s.set_scope(stage, MemScope::Local)?;
        s.compute_at(stage, together, &thread)?;
    }
    if lane.is_none() {
        return Ok(mine);
    }
    // A count under a mask reads the mask alone. One element for a whole row is no word.
    let read = s.stage(mine)?.reads();
    let is_word = |input: &&Tensor| {
        let strides = &input.buffer().strides;
        read.contains(input.buffer()) && strides.last().and_then(Expr::as_int) != Some(0)
    };
    for input in inputs.iter().filter(is_word) {
        if sketch.run.asks_first {
            let words = own_words(s, input, &[mine], input.shape().len() - 1, sketch)?;
            s.compute_at(words, mine, &loop_step)?;
            let leaves = s.stage(words)?.leaves().to_vec();
            if let [.., turn, _, lane] = &leaves[..] {
                s.vectorize(words, lane)?;
                s.unroll(words, turn)?;
            }
            continue;
        }
        let word = s.cache_read(input, MemScope::Local, &[mine.into()])?;
        s.compute_at(word, mine, &step)?;
        if let Some(axis) = s.stage(word)?.leaves().last().cloned() {
            s.vectorize(word, &axis)?;
        }
    }
    Ok(mine)
}

/// Has the words of a stage that folds elements leave the caches before others, where the sketch says so.
pub fn pass_caches(s: &mut Schedule, stage: StageId, sketch: &Sketch) -> Result<(), ScheduleError> {
    let is_reduced = |axis: &&IterVar| axis.kind() == IterKind::Reduce;
    let first = s.stage(stage)?.leaves().iter().find(is_reduced).cloned();
    match first.filter(|_| sketch.whole.streams) {
        Some(axis) => s.pragma(stage, &axis, coulis_ir::remark::STREAM, Attr::Int(1)),
        None => Ok(()),
    }
}

/// The first `n` loops of a stage as one.
pub fn fused(s: &mut Schedule, stage: StageId, n: usize) -> Result<IterVar, ScheduleError> {
    let loops: Vec<IterVar> = s.stage(stage)?.leaves()[..n].to_vec();
    as_one(s, stage, &loops)
}

/// Loops as one; a single one is left as it is.
pub fn as_one(s: &mut Schedule, stage: StageId, loops: &[IterVar]) -> Result<IterVar, ScheduleError> {
    match loops {
        [only] => Ok(only.clone()),
        several => s.fuse(stage, several),
    }
}

/// Binds the first `n_kept` loops of a stage, fused, to blocks of `rows` rows; the loop of one row.
pub fn bind_rows(
    s: &mut Schedule,
    stage: StageId,
    n_kept: usize,
    rows: i64,
) -> Result<IterVar, ScheduleError> {
    let all = fused(s, stage, n_kept)?;
    if rows == 1 {
        s.bind(stage, &all, ThreadTag::BlockX)?;
        return Ok(all);
    }
    let (block, row) = s.split(stage, &all, Split::Factor(rows))?;
    s.bind(stage, &block, ThreadTag::BlockX)?;
    s.bind(stage, &row, ThreadTag::ThreadY)?;
    Ok(row)
}

/// Binds the rows of `output` and computes `state` inside each, in registers; the loop of one row.
pub fn place_rows(
    s: &mut Schedule,
    state: StageId,
    output: StageId,
    n_kept: usize,
    rows: i64,
) -> Result<IterVar, ScheduleError> {
    let row = bind_rows(s, output, n_kept, rows)?;
    s.set_scope(state, MemScope::Local)?;
    s.compute_at(state, output, &row)?;
    Ok(row)
}

/// Most bytes of a row of a slab that is copied by accesses of less than [`BANK_BYTES`].
const BYTES_OF_NARROW_ACCESSES: i64 = 32;

/// Elements of a row, and its bytes in all inputs, where each input is rows one after another without gaps, which are only
/// reduced: a block may copy a slab of them as one piece of memory.
pub fn dense_rows(facts: &Facts) -> Result<(i64, i64), Decline> {
    let (extent, bytes) = dense_rows_of(facts, 0..facts.spec.n_read())?;
    if facts.spec.map.is_some() {
        return Err(Decline::new("no map of the elements", "one"));
    }
    let narrowest = facts.spec.narrowest_bytes();
    let access = slab_access(facts) * narrowest;
    if access < BANK_BYTES && slab_access(facts) < widest_access(facts) && bytes > BYTES_OF_NARROW_ACCESSES {
        return Err(Decline::new("short rows where slabs begin where no access of four bytes may", bytes));
    }
    Ok((extent, bytes))
}

/// The same where a map may read the elements again, of these arrays of the problem.
pub fn dense_rows_of(facts: &Facts, mut arrays: Range<usize>) -> Result<(i64, i64), Decline> {
    let Some((extent, _, true)) = facts.inner() else {
        return Err(Decline::new("a reduced innermost dimension", "a kept one, or none"));
    };
    let dims = &facts.spec.problem.dims;
    let is_dense = |array: usize| dims[0].strides[array] == dims[1].extent && dims[1].strides[array] == 1;
    if dims.len() != 2 || dims[0].is_reduced() || !arrays.all(is_dense) {
        return Err(Decline::new("rows one after another without gaps", "others"));
    }
    Ok((extent, extent * (facts.spec.element_bytes() + i64::from(facts.spec.mask))))
}

/// Runs in which one thread folds a row of `extent` elements, which it takes by so many neighbours: all of it, or pieces that
/// are as long as each other but for the last.
pub fn runs_of_row(facts: &Facts, extent: i64, neighbours: i64) -> i64 {
    let words = ceil_div(extent, neighbours);
    let pieces = ceil_div(words, (facts.longest_run() / neighbours).max(1));
    facts.run_of(ceil_div(words, pieces) * neighbours)
}

/// One thread folds a row of `extent` elements by so many neighbours at a time, in runs where the sketch has them, all of it
/// written out; the loop over what it takes at a time, and the neighbours, where these are several.
pub fn fold_own_row(
    s: &mut Schedule,
    state: StageId,
    (extent, neighbours): (i64, i64),
    sketch: &Sketch,
) -> Result<(IterVar, Option<IterVar>), ScheduleError> {
    let mut word = s.stage(state)?.reduce_axes()[0].clone();
    let mut lane = None;
    if neighbours > 1 {
        let (words, within) = s.split(state, &word, Split::Factor(neighbours))?;
        s.unroll(state, &within)?;
        (word, lane) = (words, Some(within));
    }
    if 1 < sketch.run.steps && sketch.run.steps < extent {
        let (runs, few) = s.split(state, &word, Split::Factor(sketch.run.steps / neighbours))?;
        s.unroll(state, &runs)?;
        word = few;
    }
    s.unroll(state, &word)?;
    if sketch.run.steps > 1 {
        s.in_runs(state, &word)?;
    }
    Ok((word, lane))
}

/// Elements that an access of a slab takes, which begins where that of the first row may.
pub fn slab_access(facts: &Facts) -> i64 {
    (0..facts.spec.n_read()).fold(widest_access(facts), |lanes, array| gcd(lanes, facts.spec.offset(array)))
}

/// Elements that the widest access of the widest input takes.
pub fn widest_access(facts: &Facts) -> i64 {
    (i64::from(facts.target.vector_bytes) / facts.spec.widest_bytes()).max(1)
}

/// Most accesses of a thread that are written out one after another.
const MOST_COPIES: i64 = 16;

/// All threads of a block, given innermost index first, copy rows of `extent` elements to shared memory as one piece, each
/// the widest access at a time; `is_async` past their registers, where rows lie one after another.
pub fn copy_slab(
    s: &mut Schedule,
    copy: StageId,
    extent: i64,
    lanes: i64,
    threads: &[(ThreadTag, i64)],
    is_async: bool,
) -> Result<(), ScheduleError> {
    let axes: Vec<IterVar> = s.stage(copy)?.leaves().to_vec();
    let words = extent / lanes;
    if lanes > 1 && words > 1 && words.count_ones() == 1 && extent % lanes == 0 {
        // Rows of many whole words would begin in few banks, so they are set apart by an odd number of words.
        s.storage_align(copy, &axes[0], 2 * lanes, lanes)?;
        let (words, lane) = s.split(copy, &axes[1], Split::Factor(lanes))?;
        s.vectorize(copy, &lane)?;
        let word = s.fuse(copy, &[axes[0].clone(), words])?;
        return by_all_threads(s, copy, word, threads).map(drop);
    }
    let turns = copy_piece(s, copy, &axes, lanes, threads)?;
    if is_async { s.pragma(copy, &turns, ASYNC_COPY, Attr::Int(1)) } else { Ok(()) }
}

/// All threads of a block, given innermost index first, run loops over one piece of memory, each an access of so many elements
/// at a time; the outermost of its own loops.
pub fn copy_piece(
    s: &mut Schedule,
    copy: StageId,
    loops: &[IterVar],
    lanes: i64,
    threads: &[(ThreadTag, i64)],
) -> Result<IterVar, ScheduleError> {
    let mut word = s.fuse(copy, loops)?;
    if lanes > 1 {
        let (words, lane) = s.split(copy, &word, Split::Factor(lanes))?;
        s.vectorize(copy, &lane)?;
        word = words;
    }
    by_all_threads(s, copy, word, threads)
}

/// Deals the words of a copy to all threads of a block, given innermost index first; the loop over turns.
fn by_all_threads(
    s: &mut Schedule,
    copy: StageId,
    mut word: IterVar,
    threads: &[(ThreadTag, i64)],
) -> Result<IterVar, ScheduleError> {
    for (tag, n) in threads.iter().filter(|(_, n)| *n > 1) {
        let (turn, thread) = s.split(copy, &word, Split::Factor(*n))?;
        s.bind(copy, &thread, *tag)?;
        word = turn;
    }
    // More turns than are written out are a loop of as many at a time.
    let (turns, few) = s.split(copy, &word, Split::Factor(MOST_COPIES))?;
    s.unroll(copy, &few)?;
    Ok(turns)
}

/// Threads that access shared memory together.
const SIDE_BY_SIDE: i64 = 32;
/// Banks of shared memory.
const N_BANKS: i64 = 32;
/// Bytes of a word of a bank.
const BANK_BYTES: i64 = 4;

/// The loop over the rows of a slab in shared memory, each of `extent` elements and of so many threads side by side, in the
/// order in which the rows that are read together meet the fewest banks twice: as they lie, or as far apart as they can.
pub fn rows_by_banks(
    s: &mut Schedule,
    stage: StageId,
    row: IterVar,
    extent: i64,
    spec: &Spec,
    sketch: &Sketch,
) -> Result<IterVar, ScheduleError> {
    let bytes = spec.widest_bytes();
    let Some((apart, _)) =
        apart_by_banks((sketch.rows, sketch.threads), (extent, bytes)).filter(|(n, _)| *n > 1)
    else {
        return Ok(row);
    };
    let (far, near) = s.split(stage, &row, Split::Factor(apart))?;
    s.reorder(stage, &[near.clone(), far.clone()])?;
    s.fuse(stage, &[near, far])
}

/// How far apart so many rows of a slab, of so many threads each, are that are read together, in which the fewest words of a bank
/// are wanted at once, and how many these are; `None` where a row has all threads that access memory together, or these
/// have all rows. A row is so many elements of so many bytes.
pub fn apart_by_banks((rows, threads): (i64, i64), (extent, bytes): (i64, i64)) -> Option<(i64, usize)> {
    let together = (SIDE_BY_SIDE / threads).min(rows);
    if together <= 1 || together == rows {
        return None;
    }
    let met = |apart: i64| (apart, most_in_a_bank(apart * extent * bytes, together, threads, bytes));
    [met(1), met(rows / together)].into_iter().min_by_key(|(_, met)| *met)
}

/// Words that threads want at once of the bank of which they want most, where `rows` of them, `stride` bytes apart, are each
/// read by so many threads side by side, an element of so many bytes each.
fn most_in_a_bank(stride: i64, rows: i64, threads: i64, bytes: i64) -> usize {
    let words = (0..rows).flat_map(|row| (0..threads).map(move |t| (row * stride + t * bytes) / BANK_BYTES));
    let mut of_banks = vec![HashSet::new(); N_BANKS as usize];
    words.for_each(|word| {
        of_banks[(word % N_BANKS) as usize].insert(word);
    });
    of_banks.iter().map(HashSet::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::most_in_a_bank;

    #[test]
    fn rows_of_a_slab_meet_in_banks_where_they_are_nearly_whole_turns_of_them() {
        // Eight rows of 129 elements of 2 bytes, four threads each: rows begin in the same banks as they lie, and in others four
        // apart.
        assert_eq!(most_in_a_bank(129 * 2, 8, 4, 2), 5);
        assert_eq!(most_in_a_bank(4 * 129 * 2, 8, 4, 2), 1);
        assert_eq!(most_in_a_bank(128, 4, 8, 4), 4);
        assert_eq!(most_in_a_bank(132, 4, 8, 4), 4);
        assert_eq!(most_in_a_bank(160, 4, 8, 4), 1);
        // Threads that read one word read it together.
        assert_eq!(most_in_a_bank(0, 8, 4, 1), 1);
    }
}
