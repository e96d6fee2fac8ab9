//! Pieces that lie apart, dealt so that no access of theirs is under a condition.
//!
//! Where the accesses of a piece are no whole number of turns of the threads of its output, its last turn is one that some threads
//! do not take; which that is depends on the piece, so that every read waits for a condition, and runs end. Images are often of such
//! sizes: 56 x 56, 28 x 28. As many threads as divide the accesses have only whole turns, and chunks of whole pieces, taken in
//! turn, only whole pieces. Measured: `bench/results/h200.md`.

use coulis_schedule::{Schedule, ScheduleError, Split, StageId};

use super::gpu_rows::LARGE_STATE;
use super::gpu_steps::{Fold, as_one, chunks_of_pieces};
use super::waves::{chunks_of, resident};
use super::{Chunks, Facts, LastFold, Run, Sketch, floor_pow2, state_bytes};

/// Threads of an output, at least and at most: fewer read short pieces of what memory gives, more leave much to bring together.
const THREADS: (i64, i64) = (48, 256);
/// Threads of a block, about.
const BLOCK: i64 = 128;
/// Chunks of an output that make up blocks which all run at once, at least.
const FEWEST_CHUNKS: i64 = 4;
/// Those of many outputs, whose blocks are several times as many as run at once.
const CHUNKS_OF_MANY: i64 = 8;
/// Accesses that each thread has in flight, at most.
const IN_FLIGHT: i64 = 4;
/// Pieces of a chunk, at least.
const FEWEST_PIECES: i64 = 2;

/// How the pieces of an output are dealt.
pub struct Deal {
    /// Threads that share the accesses of a piece evenly.
    threads: i64,
    /// Outputs of a block.
    rows: i64,
    /// Chunks of an output.
    chunks: i64,
}

impl Deal {
    /// That of so many short pieces, each of so many accesses; `None` where no number of threads divides these, blocks would be
    /// fewer than run at once, or memory is not so swift that threads are waited for.
    pub fn of(facts: &Facts, (pieces, words): (i64, i64)) -> Option<Deal> {
        let (least, most) = THREADS;
        let divides = |threads: &i64| words % threads == 0 && facts.has_swift_memory();
        let threads = (least..=most.min(words)).rev().find(divides)?;
        let rows = floor_pow2((BLOCK / threads).max(1));
        let n_outputs = facts.spec.problem.n_outputs.max(1);
        let n_multiprocessors = i64::from(facts.target.n_multiprocessors());
        let busy = i64::from(facts.target.multiprocessor.threads);
        let of_each = resident(facts.target, threads * rows, state_bytes(&facts.spec.reducer), busy);
        let at_once = floor_pow2((n_multiprocessors * of_each * rows / n_outputs).max(1));
        let wanted = if at_once >= FEWEST_CHUNKS { at_once } else { CHUNKS_OF_MANY };
        let chunks = chunks_of(pieces, wanted.min(pieces / FEWEST_PIECES).max(1));
        (n_outputs.saturating_mul(chunks) >= 2 * n_multiprocessors * rows).then_some(Deal {
            threads,
            rows,
            chunks,
        })
    }
}

/// Whether threads have so much to do beside reading that guards cost time: where they have little, blocks that sweep memory are as
/// fast.
fn has_work(facts: &Facts) -> bool {
    state_bytes(&facts.spec.reducer) >= LARGE_STATE / 2
}

/// The sketch of an output of so many short pieces, each of so many accesses, with these dealt evenly; the same where they are
/// already, or cannot be.
pub fn dealt_evenly(facts: &Facts, (pieces, words): (i64, i64), sketch: Sketch) -> Sketch {
    let is_swept = sketch.chunks.swept && !has_work(facts);
    if is_swept || sketch.last.threads > 0 || facts.spec.map.is_some() || words % sketch.threads == 0 {
        return sketch;
    }
    let Some(Deal { threads, rows, chunks }) = Deal::of(facts, (pieces, words)) else { return sketch };
    let turns = pieces / chunks * (words / threads);
    let unroll = sketch.unroll.min(IN_FLIGHT).min(floor_pow2(turns.max(1)));
    let run = facts.short_run(sketch.lanes, unroll);
    let constant = facts.constants(rows == 1);
    let chunks = Chunks { n: chunks, swept: false, in_turn: chunks > 1, of_pieces: true, ..sketch.chunks };
    let last = LastFold { blocks: 1, ..sketch.last };
    let run = Run { steps: run, ..sketch.run };
    Sketch { threads, rows, chunks, last, unroll, run, constant, ..sketch }
}

/// Splits the fold of a state among threads, each of which takes `lanes` neighbours at a time, and all of one piece before the next;
/// partial states of chunks, where there are several, have the chunk as dimension `n_kept`.
pub fn split_pieces(
    s: &mut Schedule,
    state: StageId,
    n_kept: usize,
    lanes: i64,
    sketch: &Sketch,
) -> Result<Fold, ScheduleError> {
    let (stage, mut pieces, mut words) = chunks_of_pieces(s, state, n_kept, sketch)?;
    let mut lane = None;
    if lanes > 1 {
        let (word, within) = s.split(stage, &words, Split::Factor(lanes))?;
        (words, lane) = (word, Some(within));
    }
    let (turn, thread) = s.split(stage, &words, Split::Factor(sketch.threads))?;
    pieces.push(turn);
    s.reorder(stage, &pieces.iter().chain([&thread]).chain(&lane).cloned().collect::<Vec<_>>())?;
    let turn = as_one(s, stage, &pieces)?;
    Ok(Fold { stage, n_kept: n_kept + usize::from(sketch.chunks.n > 1), turn, thread, lane, ends: None })
}
