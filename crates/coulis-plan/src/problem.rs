//! What is to be reduced, freed of everything that does not matter to a loop nest.
//!
//! A request names axes of an array of any strides. A [`Problem`] is the same work as the fewest dimensions: extents
//! of 1 are gone, dimensions stand in the order of memory (largest stride first), and neighbours of one role whose
//! strides chain are one. Choosing a schedule before this step would make the choice depend on how the same data
//! happens to be shaped.

use coulis_ir::args::{ArrayInfo, strides_in};
use coulis_layout::counted;

use crate::constants::NEAR;
use crate::one_piece::Part;
use crate::order::{Order, ResultForm};

/// Fewer neighbours leave most of a vector empty.
const FEWEST_NEIGHBOURS: i64 = 8;

/// What a dimension is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// One output a step; the stride of the output, which has no gaps, along it.
    Kept {
        /// Elements of the output per step.
        out_stride: i64,
    },
    /// Folded; positions are row-major over the reduced axes taken ascending (contract N9).
    Reduced {
        /// Difference of the position per step.
        position_stride: i64,
    },
}

/// One dimension of a problem.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dim {
    /// Extent, at least 2 (or 0).
    pub extent: i64,
    /// Stride in elements of each array: the inputs, then the mask if there is one; where a map reads the elements again,
    /// the arrays that stand beside them and then its result.
    pub strides: Vec<i64>,
    /// What it is for.
    pub role: Role,
}

impl Dim {
    /// Whether it is folded.
    pub fn is_reduced(&self) -> bool {
        matches!(self.role, Role::Reduced { .. })
    }
}

/// A reduction in canonical dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Dimensions, outermost (largest stride of the first input) first, but for what vectors want innermost.
    pub dims: Vec<Dim>,
    /// Number of outputs: the product of kept extents.
    pub n_outputs: i64,
    /// Elements folded into each output: the product of reduced extents.
    pub reduce_len: i64,
    /// Extents of the result as the caller sees it.
    pub out_shape: Vec<i64>,
    /// The axes of the result, from the outermost in memory to the innermost.
    pub out_order: Vec<usize>,
    /// Reduced axes, ascending.
    pub axes: Vec<usize>,
    /// Where the loops begin: elements from the first one of each array, in the order of [`Dim::strides`].
    pub starts: Vec<i64>,
    /// What the innermost dimension is to each array to which it is no one dimension, outermost first; its stride is 0 there. Empty
    /// of others; see [`Problem::in_one_piece`].
    pub parts: Vec<Vec<Part>>,
    /// Strides in memory, by dimension, of each array that is put in order before it is read: those in `dims` are of its copy then. Empty
    /// of others; see [`Problem::in_order`].
    pub given: Vec<Vec<i64>>,
}

/// Why a reduction cannot be stated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProblemError {
    /// An axis outside the array.
    #[error("axis {axis} is out of range: the array has {}, legal axes are {lo} to {hi}", counted(rank, "dimension"), lo = -(*rank as i64), hi = *rank as i64 - 1)]
    AxisOutOfRange {
        /// The axis as given.
        axis: i64,
        /// Number of dimensions.
        rank: usize,
    },
    /// The array has no dimensions, so no axis is legal.
    #[error("axis {axis} is out of range: the array is a scalar and has no axes")]
    AxisOfScalar {
        /// The axis as given.
        axis: i64,
    },
    /// An axis given twice.
    #[error("axis {axis} is given twice (as {first} and {second})")]
    AxisRepeated {
        /// The axis, counted from 0.
        axis: usize,
        /// Its first spelling.
        first: i64,
        /// Its second spelling.
        second: i64,
    },
    /// An array that does not broadcast against the first input.
    #[error(
        "{what} of shape {found:?} does not broadcast to the input's shape {wanted:?}: from the last on, each extent is to \
         be 1 or the input's"
    )]
    Broadcast {
        /// Which array.
        what: &'static str,
        /// Its shape.
        found: Vec<i64>,
        /// The first input's shape.
        wanted: Vec<i64>,
    },
    /// More elements than an index can count.
    #[error("a shape of {shape:?} has more than 2^63 elements")]
    TooLarge {
        /// The shape.
        shape: Vec<i64>,
    },
    /// A negative extent.
    #[error("extent {extent} of axis {axis} is negative")]
    NegativeExtent {
        /// The axis.
        axis: usize,
        /// Its extent.
        extent: i64,
    },
}

/// Reads axes as a caller spells them: `None` is all, negative ones count from the end. Ascending on return.
pub fn resolve_axes(axes: Option<&[i64]>, rank: usize) -> Result<Vec<usize>, ProblemError> {
    let Some(axes) = axes else {
        return Ok((0..rank).collect());
    };
    let mut seen: Vec<(usize, i64)> = Vec::with_capacity(axes.len());
    for &axis in axes {
        if rank == 0 {
            return Err(ProblemError::AxisOfScalar { axis });
        }
        let resolved = if axis < 0 { axis + rank as i64 } else { axis };
        let resolved = usize::try_from(resolved)
            .ok()
            .filter(|&a| a < rank)
            .ok_or(ProblemError::AxisOutOfRange { axis, rank })?;
        if let Some(&(_, first)) = seen.iter().find(|(a, _)| *a == resolved) {
            return Err(ProblemError::AxisRepeated { axis: resolved, first, second: axis });
        }
        seen.push((resolved, axis));
    }
    let mut resolved: Vec<usize> = seen.into_iter().map(|(a, _)| a).collect();
    resolved.sort_unstable();
    Ok(resolved)
}

impl Problem {
    /// States the reduction of `inputs` (all broadcast to the first one's shape) over `axes`, masked by `mask`.
    ///
    /// `form` is that of the results. `positions`: whether some statistic asks where an element is, or needs elements in
    /// order; if so, dimensions merge only where positions chain too.
    pub fn new(
        inputs: &[ArrayInfo],
        mask: Option<&ArrayInfo>,
        axes: Option<&[i64]>,
        form: ResultForm,
        positions: bool,
    ) -> Result<Problem, ProblemError> {
        let shape = &inputs[0].shape;
        let strides = read_strides(shape, inputs, mask)?;
        stated(shape, strides, axes, form, positions)
    }

    /// As [`Problem::new`], for a map that reads the elements again: its result has the shape of the input and lies in `order`.
    /// `beside` are arrays that it reads as well, broadcast to that shape.
    pub fn of_map(
        inputs: &[ArrayInfo],
        mask: Option<&ArrayInfo>,
        beside: &[ArrayInfo],
        axes: Option<&[i64]>,
        order: Order,
        positions: bool,
    ) -> Result<Problem, ProblemError> {
        let shape = &inputs[0].shape;
        let mut strides = read_strides(shape, inputs, mask)?;
        for array in beside {
            let found = array.broadcast_strides(shape);
            let (what, wanted) = ("the array beside the elements", shape.clone());
            let refused = || ProblemError::Broadcast { what, found: array.shape.clone(), wanted };
            strides.push(found.ok_or_else(refused)?);
        }
        let out_order = order.axes(shape, &inputs[0].strides);
        strides.push(strides_in(shape, &out_order));
        let problem = stated(shape, strides, axes, ResultForm { keepdims: false, order }, positions)?;
        Ok(Problem { out_shape: shape.clone(), out_order, ..problem }.of_results(shape.iter().product()))
    }

    /// Strides of the result as the caller sees it, in elements.
    pub fn out_strides(&self) -> Vec<i64> {
        strides_in(&self.out_shape, &self.out_order)
    }
}

impl Problem {
    /// Whether loops that run every dimension forwards, outermost first, meet positions in ascending order.
    pub fn positions_ascend(&self) -> bool {
        let strides = self.dims.iter().filter_map(|d| match d.role {
            Role::Reduced { position_stride } => Some(position_stride),
            Role::Kept { .. } => None,
        });
        strides.is_sorted_by(|outer, inner| outer > inner)
    }

    /// The problem with another dimension innermost where the one that is there has no neighbours in memory or only a few: broadcast
    /// ones in the place of one that goes from line to line, or whose outputs lie further apart, and, `by_lanes`, in the place of
    /// a few neighbours (the colours of pixels that have more channels) the first around them that is longer, if all between are of
    /// their role. Threads of a block read the same lines together, and are better off in the order of memory. Only for folds in any
    /// order.
    #[must_use]
    pub fn for_vectors(mut self, by_lanes: bool) -> Problem {
        let dims = &mut self.dims;
        let is_long = |dim: &Dim| dim.extent >= FEWEST_NEIGHBOURS;
        let Some(inner) = dims.last() else { return self };
        let is_far = |outer: &Dim| match (outer.role, inner.role) {
            (Role::Kept { out_stride: outer }, Role::Kept { out_stride: inner }) => outer < inner,
            _ => false,
        };
        let is_broadcast = |dim: &&Dim| dim.strides[0] == 0 && is_long(dim);
        let n_broadcast = dims.iter().take_while(is_broadcast).count();
        if inner.strides[0].unsigned_abs() > NEAR || dims[..n_broadcast].iter().any(is_far) {
            dims.rotate_left(n_broadcast);
        } else if by_lanes && !is_long(inner) {
            let of_role = dims.iter().rev().take_while(|dim| dim.is_reduced() == inner.is_reduced());
            let longer = of_role.take_while(|dim| dim.strides[0] != 0).position(is_long);
            let first = dims.len() - 1 - longer.unwrap_or(0);
            dims[first..].rotate_left(1);
        }
        self
    }

    /// The problem, which has so many results. Without any nothing is to be run, so any kernel does: that of one element.
    fn of_results(mut self, n_results: i64) -> Problem {
        if n_results == 0 {
            self.dims.clear();
        }
        self
    }
}

/// Strides of the arrays that the fold reads, in the shape of the first.
fn read_strides(
    shape: &[i64],
    inputs: &[ArrayInfo],
    mask: Option<&ArrayInfo>,
) -> Result<Vec<Vec<i64>>, ProblemError> {
    let inputs = inputs
        .iter()
        .enumerate()
        .map(|(i, a)| (a, if i == 0 { "the first input" } else { "the second input" }));
    let arrays = inputs.chain(mask.map(|mask| (mask, "`where`")));
    let strides = |(array, what): (&ArrayInfo, &'static str)| {
        array.broadcast_strides(shape).ok_or_else(|| ProblemError::Broadcast {
            what,
            found: array.shape.clone(),
            wanted: shape.to_vec(),
        })
    };
    arrays.map(strides).collect()
}

/// The problem of arrays with these strides.
fn stated(
    shape: &[i64],
    strides: Vec<Vec<i64>>,
    axes: Option<&[i64]>,
    form: ResultForm,
    positions: bool,
) -> Result<Problem, ProblemError> {
    let rank = shape.len();
    let axes = resolve_axes(axes, rank)?;
    for (axis, &extent) in shape.iter().enumerate() {
        if extent < 0 {
            return Err(ProblemError::NegativeExtent { axis, extent });
        }
    }
    let too_large = || ProblemError::TooLarge { shape: shape.to_vec() };
    (0..rank).try_fold(1i64, |n, a| n.checked_mul(shape[a].max(1))).ok_or_else(too_large)?;
    let is_reduced = |axis: &usize| axes.binary_search(axis).is_ok();
    let out_axes: Vec<usize> = (0..rank).filter(|axis| form.keepdims || !is_reduced(axis)).collect();
    let out_shape: Vec<i64> =
        out_axes.iter().map(|axis| if is_reduced(axis) { 1 } else { shape[*axis] }).collect();
    let along: Vec<i64> = out_axes.iter().map(|&axis| strides[0][axis]).collect();
    let out_order = form.order.axes(&out_shape, &along);
    let out_strides = strides_in(&out_shape, &out_order);
    let mut dims = Vec::with_capacity(rank);
    let mut position_stride = 1;
    for axis in (0..rank).rev() {
        let extent = shape[axis];
        let role = match out_axes.binary_search(&axis) {
            Ok(at) if !is_reduced(&axis) => Role::Kept { out_stride: out_strides[at] },
            _ => Role::Reduced { position_stride },
        };
        if is_reduced(&axis) {
            position_stride *= extent.max(1);
        }
        dims.push(Dim { extent, strides: strides.iter().map(|s| s[axis]).collect(), role });
    }
    dims.reverse();
    let count = |reduced: bool| dims.iter().filter(|d| d.is_reduced() == reduced).map(|d| d.extent).product();
    let (n_outputs, reduce_len) = (count(false), count(true));
    let (mut starts, parts, given) =
        (vec![0; strides.len()], vec![Vec::new(); strides.len()], vec![Vec::new(); strides.len()]);
    if !positions {
        dims.iter_mut().filter(|dim| dim.is_reduced()).for_each(|dim| walk_forwards(dim, &mut starts));
    }
    let dims = canonical(dims, positions);
    let problem = Problem { dims, n_outputs, reduce_len, out_shape, out_order, axes, starts, parts, given };
    Ok(problem.of_results(n_outputs))
}

/// Turns a dimension along which the first array runs backwards, and moves where the arrays begin: forwards it may follow on its
/// neighbours.
fn walk_forwards(dim: &mut Dim, starts: &mut [i64]) {
    if dim.strides[0] >= 0 {
        return;
    }
    for (stride, start) in dim.strides.iter_mut().zip(starts) {
        *start = start.wrapping_add((dim.extent - 1).max(0).wrapping_mul(*stride));
        *stride = stride.wrapping_neg();
    }
}

/// Drops extents of 1, sorts by memory order, and merges neighbours that chain.
fn canonical(dims: Vec<Dim>, positions: bool) -> Vec<Dim> {
    let mut dims: Vec<Dim> = dims.into_iter().filter(|d| d.extent != 1).collect();
    // A broadcast dimension (stride 0) costs nothing to step along: it goes outermost of its equals, so a stable
    // sort by decreasing magnitude would put it innermost. Treat 0 as larger than all.
    let magnitude = |d: &Dim| d.strides[0].unsigned_abs().wrapping_sub(1);
    dims.sort_by_key(|d| std::cmp::Reverse(magnitude(d)));
    let mut merged: Vec<Dim> = Vec::with_capacity(dims.len());
    for dim in dims {
        if let Some(outer) = merged.last_mut()
            && let Some(one) = merge(outer, &dim, positions)
        {
            *outer = one;
        } else {
            merged.push(dim);
        }
    }
    merged
}

/// The two neighbours as one dimension, where every stride chains.
pub(crate) fn merge(outer: &Dim, inner: &Dim, positions: bool) -> Option<Dim> {
    let chains = |o: i64, i: i64| o == i.wrapping_mul(inner.extent);
    let strides_chain = outer.strides.iter().zip(&inner.strides).all(|(&o, &i)| chains(o, i));
    let roles_chain = match (outer.role, inner.role) {
        (Role::Kept { out_stride: o }, Role::Kept { out_stride: i }) => chains(o, i),
        (Role::Reduced { position_stride: o }, Role::Reduced { position_stride: i }) => {
            !positions || chains(o, i)
        }
        (Role::Kept { .. }, Role::Reduced { .. }) | (Role::Reduced { .. }, Role::Kept { .. }) => false,
    };
    (strides_chain && roles_chain).then(|| Dim {
        extent: outer.extent * inner.extent,
        strides: inner.strides.clone(),
        role: inner.role,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use coulis_ir::DType;
    use coulis_ir::args::compact_strides;
    use proptest::prelude::*;

    fn array(shape: &[i64], strides: &[i64]) -> ArrayInfo {
        ArrayInfo { dtype: DType::F32, shape: shape.to_vec(), strides: strides.to_vec() }
    }

    fn compact(shape: &[i64]) -> ArrayInfo {
        array(shape, &compact_strides(shape))
    }

    #[track_caller]
    fn check_dims(input: &ArrayInfo, axes: &[i64], want: &[(char, i64, i64)]) {
        let problem =
            Problem::new(std::slice::from_ref(input), None, Some(axes), ResultForm::default(), true).unwrap();
        check_problem(&problem, want);
    }

    #[track_caller]
    fn check_problem(problem: &Problem, want: &[(char, i64, i64)]) {
        let found: Vec<(char, i64, i64)> = problem
            .dims
            .iter()
            .map(|d| (if d.is_reduced() { 'r' } else { 'k' }, d.extent, d.strides[0]))
            .collect();
        assert_eq!(found, want);
    }

    #[test]
    fn neighbours_of_one_role_merge() {
        check_dims(&compact(&[600, 28, 28, 256]), &[1, 2, 3], &[('k', 600, 200_704), ('r', 200_704, 1)]);
        check_dims(&compact(&[600, 28, 28, 256]), &[0, 1, 2], &[('r', 470_400, 256), ('k', 256, 1)]);
        check_dims(&compact(&[4, 1, 5]), &[0, 1, 2], &[('r', 20, 1)]);
    }

    #[test]
    fn a_transposed_view_is_walked_in_the_order_of_memory() {
        check_dims(&array(&[3, 5], &[1, 3]), &[0], &[('k', 5, 3), ('r', 3, 1)]);
    }

    #[test]
    fn the_innermost_dimension_is_one_for_vectors() {
        let check = |input: &ArrayInfo, axes: &[i64], want: &[(char, i64, i64)]| {
            let problem =
                Problem::new(std::slice::from_ref(input), None, Some(axes), ResultForm::default(), true)
                    .unwrap();
            check_problem(&problem.for_vectors(true), want);
        };
        // A broadcast dimension in the place of one that goes from line to line, whichever of them is folded.
        for (axis, dims) in [(0, [('r', 9, 64), ('k', 8, 0)]), (1, [('k', 9, 64), ('r', 8, 0)])] {
            check(&array(&[9, 8], &[64, 0]), &[axis], &dims);
        }
        check(&array(&[9, 8], &[1, 0]), &[0], &[('k', 8, 0), ('r', 9, 1)]);
        check(&array(&[9, 7], &[64, 0]), &[0], &[('k', 7, 0), ('r', 9, 64)]);
        // Three colours of pixels of four channels: the pixels, where both are kept.
        let colours = array(&[5, 8, 3], &[32, 4, 1]);
        check(&colours, &[0], &[('r', 5, 32), ('k', 3, 1), ('k', 8, 4)]);
        check(&colours, &[0, 1], &[('r', 40, 4), ('k', 3, 1)]);
        check(
            &array(&[5, 8, 2, 3], &[90, 11, -5, 1]),
            &[0],
            &[('r', 5, 90), ('k', 2, -5), ('k', 3, 1), ('k', 8, 11)],
        );
        check(&array(&[8, 5, 3], &[40, 5, 1]), &[1], &[('k', 8, 40), ('r', 5, 5), ('k', 3, 1)]);
        check(&array(&[8, 5, 3], &[40, 5, 1]), &[0, 1, 2], &[('r', 5, 5), ('r', 3, 1), ('r', 8, 40)]);
        let kept =
            Problem::new(std::slice::from_ref(&colours), None, Some(&[0]), ResultForm::default(), true)
                .unwrap();
        check_problem(&kept.for_vectors(false), &[('r', 5, 32), ('k', 8, 4), ('k', 3, 1)]);
        // One whose outputs are neighbours.
        check(&array(&[9, 8, 16], &[8, 1, 0]), &[0], &[('r', 9, 8), ('k', 8, 1), ('k', 16, 0)]);
    }

    #[test]
    fn axes_are_checked() {
        let input = compact(&[2, 3]);
        let new = |axes: &[i64]| {
            Problem::new(std::slice::from_ref(&input), None, Some(axes), ResultForm::default(), false)
        };
        assert_eq!(new(&[2]).unwrap_err(), ProblemError::AxisOutOfRange { axis: 2, rank: 2 });
        assert_eq!(new(&[-3]).unwrap_err(), ProblemError::AxisOutOfRange { axis: -3, rank: 2 });
        assert_eq!(new(&[1, -1]).unwrap_err(), ProblemError::AxisRepeated { axis: 1, first: 1, second: -1 });
        assert_eq!(
            new(&[2]).unwrap_err().to_string(),
            "axis 2 is out of range: the array has 2 dimensions, legal axes are -2 to 1"
        );
        let of_one =
            Problem::new(&[compact(&[6])], None, Some(&[1]), ResultForm::default(), false).unwrap_err();
        assert_eq!(
            of_one.to_string(),
            "axis 1 is out of range: the array has 1 dimension, legal axes are -1 to 0"
        );
        assert!(new(&[-2, 1]).is_ok());
    }

    #[test]
    fn folded_dimensions_that_run_backwards_are_walked_from_their_end() {
        let inputs = [array(&[3, 4, 5], &[20, -5, -1]), array(&[3, 4, 5], &[20, 5, 1])];
        let of = |axes: &[i64], positions| {
            Problem::new(&inputs, None, Some(axes), ResultForm::default(), positions).unwrap()
        };
        let all = of(&[1, 2], false);
        check_problem(&all, &[('k', 3, 20), ('r', 20, 1)]);
        assert_eq!((all.starts, all.dims[1].strides.clone()), (vec![-19, 19], vec![1, -1]));
        check_problem(&of(&[2], false), &[('k', 3, 20), ('k', 4, -5), ('r', 5, 1)]);
        assert_eq!(of(&[1, 2], true).starts, [0, 0], "positions count from the first element");
    }

    /// Every (address, output, position) that a problem visits, sorted.
    fn visits(problem: &Problem) -> Vec<(i64, i64, i64)> {
        let mut all = vec![(0, 0, 0)];
        for dim in &problem.dims {
            all = all
                .into_iter()
                .flat_map(|(a, o, p)| {
                    (0..dim.extent).map(move |i| match dim.role {
                        Role::Kept { out_stride } => (a + i * dim.strides[0], o + i * out_stride, p),
                        Role::Reduced { position_stride } => {
                            (a + i * dim.strides[0], o, p + i * position_stride)
                        }
                    })
                })
                .collect();
        }
        all.sort_unstable();
        all
    }

    fn naive_visits(input: &ArrayInfo, reduced: &[bool]) -> Vec<(i64, i64, i64)> {
        let mut all = vec![(0, 0, 0)];
        let axes = input.shape.iter().zip(&input.strides).zip(reduced);
        for ((&extent, &stride), &is_reduced) in axes {
            all = all
                .into_iter()
                .flat_map(|(a, o, p)| {
                    (0..extent).map(move |i| {
                        let at = a + i * stride;
                        if is_reduced { (at, o, p * extent + i) } else { (at, o * extent + i, p) }
                    })
                })
                .collect();
        }
        all.sort_unstable();
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn canonical_dimensions_visit_the_same_elements(
            dims in prop::collection::vec((prop::sample::select(vec![1i64, 2, 3, 8]), prop::sample::select(vec![-2i64, -1, 0, 1, 2, 3, 6, 12]), any::<bool>()), 0..5)
        ) {
            let shape: Vec<i64> = dims.iter().map(|d| d.0).collect();
            let strides: Vec<i64> = dims.iter().map(|d| d.1).collect();
            let reduced: Vec<bool> = dims.iter().map(|d| d.2).collect();
            let axes: Vec<i64> = (0..dims.len() as i64).filter(|&a| reduced[a as usize]).collect();
            for input in [array(&shape, &strides), compact(&shape)] {
                let problem = Problem::new(std::slice::from_ref(&input), None, Some(&axes), ResultForm::default(), true).unwrap();
                prop_assert_eq!(visits(&problem), naive_visits(&input, &reduced));
                for by_lanes in [false, true] {
                    prop_assert_eq!(visits(&problem.clone().for_vectors(by_lanes)), naive_visits(&input, &reduced));
                }
            }
        }
    }
}
