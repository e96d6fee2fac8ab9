//! Steps for arrays that are put in order before they are read: stages of their own, whose loops end in those of neighbours in memory.

use coulis_ir::{MemScope, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::IterVar;

use super::gpu_steps::copy_piece;
use super::map_steps::{Across, MOST_OF_THREAD, PIECE_BYTES, SIDE_BY_SIDE, Shares, nest_across};
use super::steps::{has_rest, stage_of};
use super::{Facts, Machine, Sketch, floor_pow2};
use crate::in_order::{InOrder, near_of};
use crate::program::Statement;

/// Elements of a tile along either dimension.
const TILE: i64 = 64;
/// Blocks of elements for each thread that runs loops, at least.
const FEWEST_BLOCKS: i64 = 4;
/// Threads of a block along a tile, and above each other.
const ALONG: i64 = 64;
const ABOVE: i64 = 8;

impl Facts<'_> {
    /// The sketch with how each array that is put in order is copied, along dimensions of known extents: where threads run loops, those of
    /// neighbours, and else all, as which tile is a block's is found by division.
    pub fn with_copies(&self, mut sketch: Sketch) -> Sketch {
        for array in 0..self.spec.n_read() {
            let Some(moves) = self.spec.problem.dims_in_order(array) else { continue };
            let loops = self.spec.problem.loops_in_order(array, &moves);
            let near = moves.get(near_of(&loops));
            let is_known = |d: &&usize| {
                Machine::of(self.target) == Machine::Threads || Some(*d) == near || Some(*d) == moves.last()
            };
            moves.iter().filter(is_known).for_each(|&d| sketch.constant[d] = true);
            sketch.copies.push(self.copy_of(array, &loops));
        }
        sketch
    }

    /// Of loops of these extents and strides.
    fn copy_of(&self, array: usize, loops: &[(i64, i64)]) -> Across {
        let bytes = self.spec.dtype_read(array).bytes() as i64;
        let most = (i64::from(self.target.vector_bytes) / bytes).max(1);
        let (near, (last, beside)) = (near_of(loops), loops.split_last().unwrap_or((&(1, 1), &[])));
        let lanes = match Machine::of(self.target) {
            Machine::Loops => most.min(floor_pow2(last.0)),
            Machine::Threads if loops.get(near).is_none_or(|(_, stride)| *stride != 1) => 1,
            Machine::Threads => {
                let pitch =
                    |(at, (extent, stride)): (usize, &(i64, i64))| if at == near { *extent } else { *stride };
                loops.iter().enumerate().map(pitch).fold(most, super::gcd)
            }
        };
        let each = match Machine::of(self.target) {
            Machine::Loops => PIECE_BYTES / bytes,
            Machine::Threads => {
                (i64::from(self.target.vector_bytes) / (lanes * bytes)).clamp(1, MOST_OF_THREAD)
            }
        };
        let blocks = beside.iter().fold(1i64, |n, (extent, _)| n.saturating_mul(*extent)) / SIDE_BY_SIDE;
        let are_enough = blocks >= FEWEST_BLOCKS * i64::from(self.target.n_threads);
        let shares = if are_enough { Shares::Blocks } else { Shares::Strips };
        Across { lanes, each, shares, overlaps: has_rest(last.0, lanes), parallel: self.parallel() }
    }
}

/// The nests of the copies.
pub fn copy_in_order(
    s: &mut Schedule,
    stmt: &Statement,
    sketch: &Sketch,
    machine: Machine,
) -> Result<(), ScheduleError> {
    for (copied, across) in stmt.in_order.iter().zip(&sketch.copies) {
        let stage = stage_of(s, &copied.copy)?;
        let mut loops = s.stage(stage)?.leaves().to_vec();
        for part in copied.parts.iter().filter(|part| part.every > 1) {
            let Some(whole) = loops.pop() else { return Ok(()) };
            let (outer, inner) = s.split(stage, &whole, Split::Factor(part.every))?;
            loops.extend([outer, inner]);
        }
        let near = loops.remove(copied.near);
        // What a tile of one dimension that is several reads is all between its first element and its last.
        if machine == Machine::Threads && across.lanes == 1 && copied.parts.is_empty() {
            copy_by_tiles(s, copied, stage, loops, near)?;
            continue;
        }
        let results = loops.len().saturating_sub(1);
        loops.push(near);
        nest_across(s, stage, loops, results, *across, machine)?;
    }
    Ok(())
}

/// Threads of a block copy a tile to memory of the block in the order of one array, and from it in that of the other.
fn copy_by_tiles(
    s: &mut Schedule,
    copied: &InOrder,
    stage: StageId,
    mut loops: Vec<IterVar>,
    near: IterVar,
) -> Result<(), ScheduleError> {
    let Some(results) = loops.pop() else { return Ok(()) };
    let (strip, result) = s.split(stage, &results, Split::Factor(TILE))?;
    let (block, element) = s.split(stage, &near, Split::Factor(TILE))?;
    loops.extend([strip, block]);
    s.reorder(stage, &[&loops[..], &[element.clone(), result.clone()]].concat())?;
    let tile = s.fuse(stage, &loops)?;
    s.bind(stage, &tile, ThreadTag::BlockX)?;
    let threads = [(ThreadTag::ThreadX, ALONG), (ThreadTag::ThreadY, ABOVE)];
    copy_piece(s, stage, &[element, result], 1, &threads)?;
    let shared = s.cache_read(&copied.given, MemScope::Shared, &[stage.into()])?;
    s.compute_at(shared, stage, &tile)?;
    let mut own = s.stage(shared)?.leaves().to_vec();
    let rows = copied.near_given.min(copied.last_given);
    if rows + 2 == own.len() {
        // Elements that threads side by side write are then in different banks.
        s.storage_align(shared, &own[rows].clone(), TILE, 1)?;
    }
    let near = own.remove(copied.near_given);
    let results = own.remove(copied.last_given - usize::from(copied.near_given < copied.last_given));
    let tile = [results, near];
    s.reorder(shared, &[&own[..], &tile].concat())?;
    copy_piece(s, shared, &tile, 1, &threads)?;
    Ok(())
}
