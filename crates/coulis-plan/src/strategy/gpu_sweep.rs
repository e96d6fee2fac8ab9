//! Sweeps: how blocks fold a large input of few long rows in the order of memory, each a piece, all of whose accesses it asks for at
//! once or in few turns. Part of `gpu_rows`. Measured: `bench/results`.

use super::gpu_rows::{
    BLOCK_OF_LONG, CROWD_OF_LARGE, FEWEST_WAVES, LARGE_STATE, LAST_BLOCK_BYTES, STATES_OF_BLOCK,
    has_clusters, has_small_state, is_crowded, passes_caches,
};
use super::{Facts, MOST_CHUNKS, calls_functions, ceil_div, floor_pow2, state_bytes};

/// Most threads of a block of a sweep.
const BLOCK_OF_SWEEP: i64 = 1024;
/// The same where states are not small, or elements pass the caches.
const BLOCK_OF_STATES: i64 = 512;
/// The same where those are wide.
const BLOCK_OF_WIDE: i64 = 256;
/// Fewest bytes of a piece of a sweep that no other of its output follows.
const LEAST_PIECE: i64 = 4 << 10;
/// The same of others that do not pass the caches, for each byte of a state that is not small.
const PIECE_OF_STATE: i64 = 2 << 10;
/// The same where memory is swift, of states that are half as large as large ones.
const PIECE_OF_SWIFT: i64 = 16 << 10;
/// The same where memory is swift, of states of so many bytes and more whose elements pass the caches by wide accesses of several; of
/// somewhat smaller ones where all pieces are under way at once then.
const PIECE_OF_PASSING: i64 = 12 << 10;
/// See [`PIECE_OF_PASSING`].
const STATE_OF_PASSING: i64 = 40;
/// See [`PIECE_OF_PASSING`].
const SMALLER_STATE_OF_PASSING: i64 = 32;
/// The same of elements of one byte that may be walked again: by the end of the first runs of a thread most values have been seen, so
/// that the later ones are not walked again.
const PIECE_OF_BYTES: i64 = 64 << 10;
/// Runs of such elements that a thread asks for at once, and most bytes of states of which it does: of others so many are much code.
const STEPS_OF_BYTES: i64 = 4;
/// See [`STEPS_OF_BYTES`].
const STATE_OF_STEPS: i64 = 12;
/// Fewest bytes of pieces that a block takes one after another there, of states that are not small.
const LEAST_TOGETHER: i64 = 16 << 10;
/// Elements of an access below which they are wide.
const LEAST_LANES: i64 = 4;
/// Most bytes of partial states of an output that a cluster folds.
const STATES_OF_CLUSTER: i64 = 256 << 10;

/// How blocks sweep memory; see [`Chunks::swept`](super::Chunks::swept).
pub struct Sweep {
    /// Threads of a block.
    pub threads: i64,
    /// Accesses of a thread at once.
    pub unroll: i64,
    /// Pieces of an output.
    pub chunks: i64,
}

/// The sweep of a large input of few long rows, each so many accesses of `lanes` elements in `outer` pieces that lie apart, `at_once` of
/// which a thread may have in flight; `None` where rows are better blocks of their own, or split into as many parts as run at once.
pub fn sweep(facts: &Facts, (words, outer): (i64, i64), lanes: i64, at_once: i64) -> Option<Sweep> {
    let spec = facts.spec;
    let n_outputs = spec.problem.n_outputs;
    let n_threads = i64::from(facts.target.n_threads);
    let n_bytes = spec.inputs[0].bytes() as i64;
    let word_bytes = lanes * n_bytes;
    let state = state_bytes(&spec.reducer);
    let is_large = facts.input_bytes() > LAST_BLOCK_BYTES;
    let are_few = n_outputs.saturating_mul(BLOCK_OF_LONG) < FEWEST_WAVES * n_threads;
    let is_wide = word_bytes == i64::from(facts.target.vector_bytes);
    // What is read again, or folded with more than a few operations, is better folded by few blocks.
    let is_plain = spec.map.is_none() && spec.n_read() == 1 && !calls_functions(&spec.reducer.combine);
    let passes = passes_caches(facts, 1);
    let are_wide = lanes < LEAST_LANES;
    // Threads have much to do for narrow elements, before what their blocks found comes together.
    let is_work = facts.is_narrow() && (is_crowded(facts) || facts.may_rewalk() && n_bytes == 1);
    let gains = match (passes, has_small_state(facts)) {
        (true, _) => !are_wide || has_clusters(facts) && state < LARGE_STATE,
        (false, true) => !facts.streams(),
        (false, false) => !facts.streams() && has_clusters(facts) && !is_work,
    };
    if !(is_large && are_few && is_wide && is_plain && gains) {
        return None;
    }
    let are_seen = passes && n_bytes == 1 && facts.may_rewalk();
    let has_room = are_seen && state <= STATE_OF_STEPS;
    let steps = |turns: i64| if has_room { turns.min(STEPS_OF_BYTES * at_once) } else { at_once };
    let block = match (passes, has_small_state(facts)) {
        (true, _) if are_wide || are_seen => BLOCK_OF_WIDE,
        (false, true) => BLOCK_OF_SWEEP,
        _ => BLOCK_OF_STATES,
    };
    let warp = i64::from(facts.target.warp);
    if passes && state >= LARGE_STATE {
        // As many as run at once leave the fewest parts.
        let blocks = n_threads / CROWD_OF_LARGE / block / n_outputs.max(1);
        let turns = ceil_div(ceil_div(words, block), blocks.max(1));
        let whole = ceil_div(turns, at_once) * at_once;
        let chunks = ceil_div(ceil_div(words, block), whole);
        let fits = blocks > 1 && outer == 1 && ceil_div(ceil_div(words, block), chunks) == whole;
        return fits.then_some(Sweep { threads: block, unroll: at_once, chunks });
    }
    let is_alone = !has_clusters(facts) || (passes && !are_wide);
    let bytes = if is_alone { STATES_OF_BLOCK } else { STATES_OF_CLUSTER };
    let most = (bytes / state.max(1)).min(MOST_CHUNKS);
    let counts = facts.has_swift_memory() && state >= LARGE_STATE / 2;
    let of_state = if counts { PIECE_OF_SWIFT } else { PIECE_OF_STATE };
    let least = match passes || has_small_state(facts) {
        true if are_seen => PIECE_OF_BYTES,
        true => LEAST_PIECE,
        false => LEAST_PIECE.max(state * of_state),
    };
    if outer > most {
        return None;
    }
    if words < block * at_once {
        // A block folds a piece.
        if words * word_bytes < least {
            return None;
        }
        let are_pairs = words % (2 * warp) == 0;
        let threads = |unroll: i64| ceil_div(ceil_div(words, unroll), warp) * warp;
        let suits = |unroll: &i64| {
            threads(*unroll) <= block
                && ceil_div(words, threads(*unroll)) == *unroll
                && (are_pairs || *unroll == at_once)
        };
        let unroll = [2, at_once].into_iter().find(suits)?;
        let gains = facts.has_swift_memory() && !has_small_state(facts);
        let together = if gains { floor_pow2(LEAST_TOGETHER / (words * word_bytes)).max(1) } else { 1 };
        let chunks = if outer % together == 0 { outer / together } else { outer };
        return Some(Sweep { threads: threads(unroll), unroll, chunks });
    }
    let of_piece = |turns: i64| block * turns * word_bytes;
    let n_pieces = |turns: i64| outer.saturating_mul(ceil_div(words, block * turns));
    let turns_for = |least: i64| {
        let mut turns = at_once;
        while n_pieces(turns) > most || of_piece(turns) < least {
            turns *= 2;
        }
        turns
    };
    let of_long = turns_for(state * PIECE_OF_PASSING);
    let run_at_once = n_outputs.saturating_mul(n_pieces(of_long)) <= n_threads / block;
    let is_dear = state >= STATE_OF_PASSING || state >= SMALLER_STATE_OF_PASSING && run_at_once;
    let gains_by_length = passes && facts.has_swift_memory() && !are_wide && is_dear;
    let turns = if gains_by_length { of_long } else { turns_for(least) };
    // A few more pieces where they are alike then, and no thread looks whether there is more.
    let fewest = ceil_div(words, block * turns);
    let is_alike = |n: &i64| words % (n * turns * warp) == 0 && outer * n <= most;
    if let Some(n) = (fewest..=fewest + fewest / 4).find(is_alike) {
        return Some(Sweep { threads: words / (n * turns), unroll: steps(turns), chunks: outer * n });
    }
    let of_piece = ceil_div(words, block);
    let chunks = ceil_div(of_piece, turns);
    let are_whole = if outer == 1 { ceil_div(of_piece, chunks) == turns } else { of_piece % turns == 0 };
    are_whole.then_some(Sweep { threads: block, unroll: steps(turns), chunks: outer * chunks })
}
