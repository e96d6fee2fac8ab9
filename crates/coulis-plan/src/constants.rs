//! What of the dimensions of a problem is written into a kernel, and which strides a kernel may count on with that.

use std::ops::{Deref, DerefMut};

use crate::problem::{Dim, Role};

/// Strides of at most so much either way are constants: elements that lie so near to each other are read together.
pub const NEAR: u64 = 4;

/// What of the dimensions is written into a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Constants {
    /// Whether the extent is, by dimension.
    pub extents: Vec<bool>,
    /// Whether all strides are. Those that follow from what else is known are in any case.
    pub strides: bool,
}

impl Constants {
    /// The stride of an array along dimension `d` where the kernel may count on it: each where strides are constants, and else a
    /// few elements either way, or that of an array without gaps around the next dimension, whose extent is a constant. A row
    /// of 5 neighbours is followed by the next at 5.
    pub fn stride(&self, dims: &[Dim], array: usize, d: usize) -> Option<i64> {
        let stride = dims[d].strides[array];
        if self.strides || stride.unsigned_abs() <= NEAR {
            return Some(stride);
        }
        let next = dims.get(d + 1).filter(|_| self.extents.get(d + 1) == Some(&true))?;
        let inner = self.stride(dims, array, d + 1)?;
        (inner.checked_mul(next.extent) == Some(stride)).then_some(stride)
    }

    /// The stride of the statistics along the kept dimension `d` where the kernel may count on it: they have no gaps, so it follows
    /// from the extents of the dimensions that are nearer to each other in them, where these are constants.
    pub fn result_stride(&self, dims: &[Dim], d: usize) -> Option<i64> {
        let of = |dim: &Dim| match dim.role {
            Role::Kept { out_stride } => out_stride,
            Role::Reduced { .. } => 0,
        };
        let stride = of(&dims[d]);
        let mut nearer = dims.iter().zip(&self.extents).filter(|(dim, _)| (1..stride).contains(&of(dim)));
        nearer.all(|(_, is_constant)| *is_constant).then_some(stride)
    }
}

impl Deref for Constants {
    type Target = [bool];

    fn deref(&self) -> &[bool] {
        &self.extents
    }
}

impl DerefMut for Constants {
    fn deref_mut(&mut self) -> &mut [bool] {
        &mut self.extents
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stride_is_fixed_by_the_constant_row_below_it() {
        let dim = |extent, strides: [i64; 2]| Dim {
            extent,
            strides: strides.to_vec(),
            role: Role::Reduced { position_stride: 1 },
        };
        let dims = [dim(9, [400, 400]), dim(100, [4, 8]), dim(4, [1, 1])];
        let of = |extents: [bool; 3], strides: bool, array| {
            let constants = Constants { extents: extents.to_vec(), strides };
            [0, 1, 2].map(|d| constants.stride(&dims, array, d))
        };
        let fixed = |extents, array| of(extents, false, array);
        assert_eq!(fixed([false, false, true], 0), [None, Some(4), Some(1)]);
        assert_eq!(fixed([false, false, true], 1), [None, None, Some(1)], "rows with gaps");
        assert_eq!(fixed([false, false, false], 0), [None, Some(4), Some(1)], "near");
        assert_eq!(fixed([false, false, false], 1), [None, None, Some(1)]);
        assert_eq!(fixed([false, true, true], 0), [Some(400), Some(4), Some(1)]);
        assert_eq!(of([false; 3], true, 1), [Some(400), Some(8), Some(1)], "all that there are");
    }
    #[test]
    fn a_stride_of_results_is_fixed_by_the_kept_extents_below_it() {
        let dim = |extent, role| Dim { extent, strides: vec![1], role };
        let kept = |extent, out_stride| dim(extent, Role::Kept { out_stride });
        let dims = [kept(9, 35), kept(5, 1), dim(3, Role::Reduced { position_stride: 1 }), kept(7, 5)];
        let of = |extents: [bool; 4], d| {
            Constants { extents: extents.to_vec(), strides: false }.result_stride(&dims, d)
        };
        assert_eq!([0, 1, 3].map(|d| of([false, true, false, true], d)), [Some(35), Some(1), Some(5)]);
        assert_eq!([0, 1, 3].map(|d| of([true, true, true, false], d)), [None, Some(1), Some(5)]);
        assert_eq!([0, 1, 3].map(|d| of([true, false, true, true], d)), [None, Some(1), None]);
    }
}
