//! `gpu_pieces`: what an output folds lies in pieces of neighbours, apart from each other, that begin anywhere.
//!
//! Sliced arrays, and channels of images of odd size, have no two pieces that lie one after another, and accesses that are as wide in
//! every piece are narrow. The accesses of all pieces are counted through, so that neighbouring threads make neighbouring
//! ones whatever a piece holds, and no thread is idle at its end. Where pieces are long, accesses begin at the first boundary
//! of each (`peel`), and the same threads fold what is left at the ends (`zip`). Few outputs are split into chunks of whole
//! pieces, whose partial states a second launch folds. Measured: `bench/results`.

use coulis_ir::ThreadTag;
use coulis_schedule::{Schedule, ScheduleError, Split};

use super::gpu_even::Deal;
use super::gpu_finish::fold_chunks;
use super::gpu_rows::{BLOCK, BLOCK_OF_LARGE, LARGE_STATE, LAST_BLOCK_BYTES, WAVE_BYTES, may_peel};
use super::gpu_steps::{Fold, bind_rows, chunks_of_pieces, fold_by_threads, place_rows, widest_access};
use super::steps::stage_of;
use super::waves::chunks_of;
use super::{Chunks, Decline, Facts, Machine, Run, Sketch, Strategy, ceil_div, floor_pow2, state_bytes};
use crate::constants::NEAR;
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "gpu_pieces",
    machine: Machine::Threads,
    keeps_order: false,
    summary: "threads side by side along all accesses of an output's pieces, which begin anywhere and lie apart",
    propose,
    schedule,
};

/// Bytes of an output for each of its threads, at least.
const THREAD_BYTES: i64 = 64;
/// Most threads of a block where there are fewer pieces than blocks that run at once.
const BLOCK_OF_FEW: i64 = 512;
/// The part of all threads of the machine that have a piece then, at least.
const FEWEST_RUNNING: (i64, i64) = (1, 4);
/// Accesses of several elements that each thread has in flight, and of one.
const IN_FLIGHT: [i64; 2] = [4, 8];
/// Accesses of a piece from which on they begin at its first boundary.
const FEWEST_WORDS: i64 = 8;
/// Bytes of a piece, at least, where what is beside it belongs to others.
const LEAST_BYTES: i64 = 16;
/// The part of a warp's accesses that are of a piece where none is idle that would matter.
const FULL: (i64, i64) = (7, 8);
/// Bytes of accesses that are as wide in every piece, at least, for threads that share them evenly.
const EVEN_ACCESS: i64 = 8;
/// Bytes of a piece that is long enough for threads of a block to fold it alone.
const LONG_BYTES: i64 = 64 << 10;
/// Bytes of a piece, at least, that chunks take in turn: what memory gives of shorter ones is of several.
const TURN_BYTES: i64 = 512;
/// Steps of a thread in a chunk, at least.
const FEWEST_STEPS: i64 = 4;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let spec = facts.spec;
    let dims = &spec.problem.dims;
    let strides = || dims.last().into_iter().flat_map(|dim| &dim.strides[..spec.n_read()]);
    let are_near = strides().all(|stride| stride.unsigned_abs() <= NEAR);
    let Some((extent, _, true)) = facts.inner().filter(|_| are_near) else {
        return Err(Decline::new("reduced neighbours", "others"));
    };
    let outer = spec.n_pieces();
    if spec.n_reduced() < 2 {
        return Err(Decline::new("pieces that lie apart", "one piece for each output"));
    }
    if spec.map.is_some() {
        return Err(Decline::new("no map of the elements", "one"));
    }
    let constant = facts.constants(false);
    let (as_they_begin, widest) = (facts.word_lanes(&constant), widest_access(facts));
    let bytes = spec.widest_bytes();
    let piece_bytes = extent.saturating_mul(bytes);
    let words = extent / as_they_begin;
    let peeled = may_peel(facts)
        && strides().all(|stride| *stride == 1)
        && as_they_begin < widest
        && extent >= FEWEST_WORDS * widest;
    let warp = i64::from(facts.target.warp);
    let is_full = FULL.1 * words >= FULL.0 * ceil_div(words, warp) * warp || piece_bytes >= LONG_BYTES;
    let is_wide = as_they_begin * bytes >= EVEN_ACCESS && facts.input_bytes() > LAST_BLOCK_BYTES;
    let is_long = facts.is_narrow() || words >= 2 * warp;
    let is_even = is_wide && is_long && Deal::of(facts, (outer, words)).is_some();
    if is_even {
        return Err(Decline::new("pieces whose accesses threads cannot share evenly", words));
    }
    if !peeled && is_full {
        return Err(Decline::new("pieces that begin anywhere, or end within a warp's accesses", "others"));
    }
    if piece_bytes < LEAST_BYTES && spec.n_kept() > 0 {
        return Err(Decline::new(
            format!("pieces of at least {LEAST_BYTES} bytes where several outputs have some"),
            piece_bytes,
        ));
    }
    let lanes = if peeled { widest } else { as_they_begin };
    let words = if peeled { (extent - lanes + 1) / lanes } else { words };
    let state = state_bytes(&spec.reducer);
    let block = if state >= LARGE_STATE { BLOCK_OF_LARGE } else { BLOCK };
    let n_outputs = spec.problem.n_outputs.max(1);
    let steps = |threads: i64| ceil_div(outer.saturating_mul(words), threads);
    let mut threads = floor_pow2(outer.saturating_mul(piece_bytes) / THREAD_BYTES)
        .min(floor_pow2(outer.saturating_mul(words)))
        .clamp(1, block);
    let rows = block / threads;
    let in_flight = if lanes > 1 { IN_FLIGHT[0] } else { IN_FLIGHT[1] };
    let unroll = floor_pow2(steps(threads).clamp(1, in_flight));
    let waves = (WAVE_BYTES / state.max(1)).clamp(1, 8);
    let wanted = facts.block_chunks(ceil_div(n_outputs, rows), steps(threads), FEWEST_STEPS * unroll, waves);
    let chunks = chunks_of(outer, wanted);
    if 2 * chunks < wanted {
        // A block of each piece, of as many more threads as there are fewer of them.
        threads = floor_pow2(threads * wanted / chunks).min(BLOCK_OF_FEW).max(threads);
        let running = n_outputs.saturating_mul(chunks).saturating_mul(threads);
        if FEWEST_RUNNING.0 * i64::from(facts.target.n_threads) > FEWEST_RUNNING.1 * running {
            return Err(Decline::new("pieces for all blocks", outer));
        }
    }
    let run = facts.short_run(lanes, unroll);
    let in_turn = chunks > 1 && piece_bytes >= TURN_BYTES;
    let chunks = Chunks { in_turn, ..Chunks::of(chunks) };
    Ok(Sketch { lanes, unroll, run: Run::of(run), threads, rows, chunks, peeled, constant, ..facts.plain() })
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let (whole, mut pieces, mut inner) = chunks_of_pieces(s, state, n_kept, sketch)?;
    let n_own = n_kept + usize::from(sketch.chunks.n > 1);
    let (mut words, mut ends) = (whole, None);
    if sketch.peeled {
        // Parts have their loops in the order of the whole.
        let of_piece = s.stage(whole)?.reduce_axes().iter().position(|axis| *axis == inner);
        let parts = s.peel(whole, &inner, sketch.lanes)?;
        for part in [parts.1, parts.0] {
            pieces = s.stage(part)?.reduce_axes().to_vec();
            inner = pieces.remove(of_piece.unwrap_or(0));
            s.reorder(part, &[&pieces[..], std::slice::from_ref(&inner)].concat())?;
        }
        (words, ends) = (parts.0, Some((parts.1, whole)));
    }
    let mut lane = None;
    if sketch.lanes > 1 {
        let (word, within) = s.split(words, &inner, Split::Factor(sketch.lanes))?;
        (inner, lane) = (word, Some(within));
    }
    pieces.push(inner);
    s.reorder(words, &pieces.iter().chain(&lane).cloned().collect::<Vec<_>>())?;
    let all = s.fuse(words, &pieces)?;
    let (turn, thread) = s.split(words, &all, Split::Factor(sketch.threads))?;
    let fold = Fold { stage: words, n_kept: n_own, turn, thread, lane, ends };
    fold_by_threads(s, &fold, ThreadTag::ThreadX, &stmt.inputs, sketch)?;
    if sketch.chunks.n == 1 {
        return place_rows(s, state, output, n_kept, sketch.rows).map(drop);
    }
    // Blocks side by side are those of one piece after another.
    let mut order = s.stage(whole)?.leaves()[..n_own].to_vec();
    order.rotate_right(1);
    s.reorder(whole, &order)?;
    bind_rows(s, whole, n_own, sketch.rows)?;
    fold_chunks(s, (whole, state), output, n_kept, spec, sketch).map(drop)
}
