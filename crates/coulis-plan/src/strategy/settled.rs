//! Folds of long rows that end early: those of reducers that know states which nothing changes any more.
//!
//! Each thread asks before every few pages that it reads. Threads do not hear of each other, so the one result of a long array is
//! folded in rounds, each by all threads, and is asked between them. What is found among the first elements ends it before there
//! are any threads.

use coulis_ir::{DType, Expr};
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::IterVar;

use super::steps::same_axis;
use super::{Facts, Sketch, ceil_div, floor_pow2};
use crate::program::Spec;

/// Bytes that are folded before a state is asked, which takes as long as some hundred of them.
const ASK_BYTES: i64 = 8 << 10;
/// Folds that would ask fewer times do not ask.
const FEWEST_ASKS: i64 = 4;
/// Bytes of the first elements of a row after which flags are asked: whether any holds is often known there. To ask costs rows that fit in
/// the caches a tenth, other states settle seldom, and positions are folded in runs, which first elements would cut. Measured:
/// `bench/results`.
const FIRST_OF_ROW: i64 = 256;
/// Bytes of a row that is asked so.
const ASKED_ROW: i64 = 4 << 10;
/// Bytes of a round, beside which a launch of threads costs little, and most rounds.
const ROUND_BYTES: i64 = 8 << 20;
const MOST_ROUNDS: i64 = 64;
/// Bytes of the first elements, which one thread folds before the rounds: a hundredth of one.
const FIRST_BYTES: i64 = 64 << 10;

impl Facts<'_> {
    /// Blocks of `block_bytes` bytes after each of which a fold of `bytes` bytes asks whether its state is settled: so many that
    /// to ask costs little beside them. 0 where no state is known to be, and where little would be left to pass over.
    pub fn asks_every(&self, block_bytes: i64, bytes: i64) -> i64 {
        let block_bytes = block_bytes.max(1);
        let every = self.blocks_asked(block_bytes);
        if self.may_settle() && bytes / (every * block_bytes) >= FEWEST_ASKS { every } else { 0 }
    }

    /// Blocks of so many bytes that are folded before a state is asked again.
    pub fn blocks_asked(&self, block_bytes: i64) -> i64 {
        ceil_div(ASK_BYTES, block_bytes)
    }

    /// Elements of a row of `bytes` bytes after which it is asked for the first time, in whole steps of `step` bytes; 0 is none.
    pub fn asked_first(&self, bytes: i64, step: i64) -> i64 {
        let width = self.spec.inputs[0].bytes() as i64;
        let is_flag = self.spec.reducer.results.iter().all(|result| result.dtype == DType::Bool);
        let is_asked = self.may_settle() && is_flag && bytes >= ASKED_ROW && step <= FIRST_OF_ROW;
        if is_asked { FIRST_OF_ROW / step * step / width } else { 0 }
    }

    /// Rounds of a fold in chunks; 1 where no state is known to be settled, and where there are several outputs, of which one
    /// would keep the others waiting.
    pub fn rounds(&self) -> i64 {
        let is_one = self.may_settle() && self.spec.problem.n_outputs == 1;
        if is_one { floor_pow2(self.input_bytes() / ROUND_BYTES).min(MOST_ROUNDS) } else { 1 }
    }

    /// Whether folds may end early, on targets whose vectors are registers. Elements that may end a call with an error are all
    /// looked at.
    pub fn may_settle(&self) -> bool {
        let reducer = &self.spec.reducer;
        reducer.settled.is_some()
            && self.target.vectors_are_registers
            && !reducer.lift.body.iter().any(Expr::divides)
    }
}

/// Has the stage that reads elements pass over its blocks once its state is settled, where the sketch says so. `block`: its loop
/// over them, by its name.
pub fn ask_settled(
    s: &mut Schedule,
    stage: StageId,
    block: Option<&IterVar>,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    let Some(block) = block.filter(|_| sketch.early_exit.every > 0) else { return Ok(()) };
    let mut block = same_axis(s, stage, block)?;
    if sketch.early_exit.every > 1 {
        block = s.split(stage, &block, Split::Factor(sketch.early_exit.every))?.0;
    }
    s.until_settled(stage, &block)
}

/// Has the first elements of each row, of which `block` counts blocks of so many, folded by a stage of their own, from which the stage that
/// reads elements goes on unless that is settled: the new stage.
pub fn first_of_row(
    s: &mut Schedule,
    stage: StageId,
    block: &IterVar,
    of_block: i64,
    sketch: &Sketch,
) -> Result<Option<StageId>, ScheduleError> {
    if sketch.early_exit.first == 0 {
        return Ok(None);
    }
    let block = same_axis(s, stage, block)?;
    s.begin(stage, &block, sketch.early_exit.first / of_block).map(Some)
}

/// Has the first elements of a fold in rounds, along its only loop, folded by one thread: the stage to be scheduled as the fold of a
/// whole row, and how.
pub fn first_of_rounds(
    s: &mut Schedule,
    state: StageId,
    spec: &Spec,
    sketch: &Sketch,
) -> Result<Option<(StageId, Sketch)>, ScheduleError> {
    let [elements] = s.stage(state)?.reduce_axes() else { return Ok(None) };
    if sketch.early_exit.rounds == 1 {
        return Ok(None);
    }
    let length = FIRST_BYTES / spec.inputs[0].bytes() as i64;
    let head = s.begin(state, &elements.clone(), length)?;
    let mut of_head = sketch.clone();
    (of_head.chunks.n, of_head.early_exit.rounds, of_head.whole.parallel) = (1, 1, false);
    Ok(Some((head, of_head)))
}

/// Folds the chunks whose partial states `state` brings together in rounds, as long as that is not settled.
pub fn fold_in_rounds(
    s: &mut Schedule,
    state: StageId,
    partial: StageId,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    if sketch.early_exit.rounds == 1 {
        return Ok(());
    }
    let chunk = s.stage(state)?.reduce_axes()[0].clone();
    let (round, _) = s.split(state, &chunk, Split::Factor(sketch.chunks.n))?;
    s.until_settled(state, &round)?;
    s.compute_at(partial, state, &round)
}
