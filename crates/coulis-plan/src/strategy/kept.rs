//! Steps of the strategies that keep on the chip what a map reads again.

use coulis_ir::MemScope;
use coulis_schedule::{Schedule, ScheduleError, Split, StageId, StageRef};
use coulis_tensor::{IterVar, Tensor};

use super::Sketch;
use crate::program::Spec;

/// A copy of what each thread reads, laid out as its loops run: of the dimension `dealt` the threads take elements in turn, where it
/// is the innermost one words, and of the innermost one each has words of several lanes where the sketch has lanes.
pub fn own_words(
    s: &mut Schedule,
    input: &Tensor,
    readers: &[StageId],
    dealt: usize,
    sketch: &Sketch,
) -> Result<StageId, ScheduleError> {
    let copy = s.cache_read(input, MemScope::Local, &refs(readers))?;
    let dims = s.stage(copy)?.leaves().to_vec();
    let is_word = sketch.lanes > 1;
    if let Some((last, outer)) = dims.split_last() {
        let words = if is_word { s.split(copy, last, Split::Factor(sketch.lanes))?.0 } else { last.clone() };
        s.split(copy, outer.get(dealt).unwrap_or(&words), Split::Factor(sketch.threads))?;
    }
    let kept = s.cache_write(copy, MemScope::Local)?;
    s.compute_inline(copy)?;
    Ok(kept)
}

/// A copy in registers of what a map at `site` reads again, each thread's own words as of [`own_words`], all loops over it written
/// out.
pub fn in_registers(
    s: &mut Schedule,
    input: &Tensor,
    readers: &[StageId],
    (map, site): (StageId, &IterVar),
    dealt: usize,
    spec: &Spec,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    let kept = own_words(s, input, readers, dealt, sketch)?;
    s.compute_at(kept, map, site)?;
    let leaves = s.stage(kept)?.leaves().to_vec();
    if sketch.lanes > 1
        && let Some(lane) = leaves.last()
    {
        s.vectorize(kept, lane)?;
    }
    // The dimension that is dealt is there as turns and threads.
    let n_dims = spec.problem.dims.len();
    let reduced = (0..n_dims).filter(|&d| spec.problem.dims[d].is_reduced());
    reduced.map(|d| &leaves[d + usize::from(d > dealt)]).try_for_each(|axis| s.unroll(kept, axis))
}

/// Those of these stages that read a tensor.
pub fn readers_of<const N: usize>(
    s: &Schedule,
    tensor: &Tensor,
    stages: [StageId; N],
) -> Result<Vec<StageId>, ScheduleError> {
    let mut readers = Vec::new();
    for stage in stages {
        if s.stage(stage)?.reads().contains(tensor.buffer()) {
            readers.push(stage);
        }
    }
    Ok(readers)
}

/// References to stages.
pub fn refs(stages: &[StageId]) -> Vec<StageRef> {
    stages.iter().map(StageRef::from).collect()
}
