//! How wide accesses may be: as many neighbours as every array has where each access of it begins.

use super::gpu_steps::widest_access;
use super::{Facts, floor_pow2, state_bytes};
use crate::constants::Constants;

/// Bytes of a word of registers; narrower elements take one each once they are converted.
pub const WORD_BYTES: i64 = 4;
/// Bytes of a line of a GPU's memory.
pub const MEMORY_LINE_BYTES: i64 = 128;
/// Columns whose statistics lie in a line or two of memory, at most.
const FEW_COLUMNS: i64 = 64;
/// Bytes of a state of a column from which on folding is more work than reading.
const WORK_STATE: i64 = 32;
/// Elements of rows of which a warp asks for several rows at once.
const LONG_ROW: i64 = 128;
/// Neighbours of an access, at most, whose statistics come from several lines.
const LANES_APART: i64 = 2;

impl Facts<'_> {
    /// Bytes of the registers that an element of every input takes, each a word at least.
    pub fn register_bytes_of_element(&self) -> i64 {
        self.spec.inputs.iter().map(|dtype| WORD_BYTES.max(dtype.bytes() as i64)).sum()
    }

    /// Neighbours along the innermost dimension that one access of every input takes, where `constant` is written
    /// into the kernel: a power of two, 1 where some input has none, or has rows that do not all begin
    /// where such an access may.
    pub fn word_lanes(&self, constant: &Constants) -> i64 {
        self.word_lanes_of(self.spec.n_read(), constant)
    }

    /// The same of the first `n_arrays` arrays of the problem.
    pub fn word_lanes_of(&self, n_arrays: usize, constant: &Constants) -> i64 {
        let extent = self.spec.problem.dims.last().map_or(1, |inner| inner.extent);
        self.word_lanes_in(n_arrays, constant, (1, extent))
    }

    /// The same where the last `n_inner` dimensions are one row of so many elements without gaps.
    pub fn word_lanes_in(
        &self,
        n_arrays: usize,
        constant: &Constants,
        (n_inner, extent): (usize, i64),
    ) -> i64 {
        let dims = &self.spec.problem.dims;
        let Some(inner) = dims.last() else { return 1 };
        let n_outer = dims.len() - n_inner;
        let mut lanes = widest_access(self).min(floor_pow2(extent)).max(1);
        // The last access of a row that others follow is in the row.
        while n_outer > 0 && extent % lanes != 0 {
            lanes /= 2;
        }
        // One element for the whole row is no access of neighbours. Where it is a mask's, threads with an element each leave out what
        // the whole row is of; of wide ones a warp asks for as much as memory gives at once, and large states are work enough.
        let are_neighbours = |array: &usize| inner.strides[*array] != 0 || inner.extent == 1;
        let mask = self.spec.inputs.len();
        let skips = self.spec.mask
            && inner.extent > 1
            && inner.strides[mask] == 0
            && self.spec.problem.parts[mask].is_empty();
        let is_long = !inner.is_reduced() || inner.extent > LONG_ROW;
        let is_work = !inner.is_reduced() && state_bytes(&self.spec.reducer) >= WORK_STATE;
        let is_wide = is_work || self.spec.inputs.iter().all(|dtype| dtype.bytes() as i64 >= WORD_BYTES);
        if skips && is_long && is_wide || !(0..n_arrays).any(|array| inner.strides[array] == 1) {
            return 1;
        }
        for array in (0..n_arrays).filter(are_neighbours) {
            if inner.strides[array] != 1 {
                return 1;
            }
            while self.spec.offset(array) % lanes != 0 {
                lanes /= 2;
            }
            for d in 0..n_outer {
                let Some(stride) = constant.stride(dims, array, d) else { return 1 };
                while stride % lanes != 0 {
                    lanes /= 2;
                }
            }
        }
        lanes
    }

    /// Neighbours that one access takes where elements and results of a map are each one piece of memory, so that a row goes on in the
    /// access that the one before ended in; 1 where they are not.
    pub fn lanes_of_piece(&self, constant: &Constants) -> i64 {
        let Some(map) = &self.spec.map else { return 1 };
        let dims = &self.spec.problem.dims;
        let arrays = || (0..self.spec.n_read()).chain([self.spec.n_read() + map.beside.len()]);
        let mut behind = 1;
        for (d, dim) in dims.iter().enumerate().rev() {
            if d > 0 && !constant.extents[d] || arrays().any(|array| dim.strides[array] != behind) {
                return 1;
            }
            behind = behind.saturating_mul(dim.extent);
        }
        // Statistics of columns come lane by lane: those of a few columns from one line or two, of more from as many as there are lanes
        // between those of neighbouring threads.
        let are_apart = dims
            .last()
            .is_some_and(|last| !last.is_reduced() && (last.extent > FEW_COLUMNS || dims.len() > 2));
        let most = if are_apart { LANES_APART } else { widest_access(self) };
        let mut lanes = most.min(floor_pow2(behind)).max(1);
        while arrays().any(|array| self.spec.offset(array) % lanes != 0) {
            lanes /= 2;
        }
        lanes
    }
}
