//! Arrays that lie in memory in another order than the first input, and are put into its order before they are read.
//!
//! Loops run in the order of the first input. A mask or a second input that lies in another one, column-major beside row-major, would
//! be read a line of memory for each element, and each line as often as it has elements. A copy in the order of the loops reads and
//! writes it once more, by tiles.

use coulis_ir::{DType, Expr, Var};
use coulis_tensor::{Tensor, TensorError};

use crate::elements::Elements;
use crate::one_piece::{Part, parts};
use crate::problem::{Dim, Problem, merge};
use crate::program::constant;
use crate::strategy::CACHE_LINE_BYTES;

/// Bytes that are read together; a GPU reads memory in halves of them.
const LINE_BYTES: u64 = CACHE_LINE_BYTES as u64;
/// Lines that loops read side by side, and neighbours that lie in each, at least: fewer lines stay near until all of each is read.
const FEWEST_LINES: i64 = 32;
const FEWEST_NEIGHBOURS: i64 = 8;
/// Bytes of an array that is put in order, at least: what a near cache holds is read as it lies.
const FEWEST_BYTES: u64 = 1 << 16;
/// The same of elements of so many bytes where threads run loops: measured on Zen 3, 4 to 8 MB of them take up to three times as long to
/// copy as to read across, and from 16 MB on less.
const FEWEST_WIDE_BYTES: u64 = 1 << 24;
const WIDE: u64 = 4;
/// The same, at most: what is larger is read as it lies, as files may be larger than memory.
const MOST_BYTES: u64 = 2 << 30;

/// A copy of an array in the order of the loops.
pub struct InOrder {
    /// What is copied. Its dimensions are all of the problem's, of which the innermost may be several.
    pub given: Tensor,
    /// Of its dimensions, that along which elements are neighbours in memory.
    pub near_given: usize,
    /// Of its dimensions, that along which they are neighbours in the copy.
    pub last_given: usize,
    /// The copy. Its dimensions are those of the problem along which the array moves, in their order.
    pub copy: Tensor,
    /// What the innermost of them is to the array, where it is several dimensions.
    pub parts: Vec<Part>,
    /// Which of the loops over the array's own dimensions has neighbours in memory.
    pub near: usize,
}

impl Problem {
    /// The problem with inputs of these types, and a mask behind them, in the order of the first input, where they lie so that it pays;
    /// the innermost dimensions are one where they are one piece of memory then. `is_read`: which inputs are, as of others there is no
    /// copy; `positions`: see [`Problem::new`]; `by_loops`: for machines without blocks of threads. Of no elements nothing is put in
    /// order: what lies along the other dimensions is not read.
    #[must_use]
    pub fn in_order(
        mut self,
        inputs: &[DType],
        is_read: impl Fn(usize) -> bool,
        mask: bool,
        positions: bool,
        by_loops: bool,
    ) -> Problem {
        if self.dims.iter().any(|dim| dim.extent == 0) {
            return self;
        }
        for (array, dtype) in inputs.iter().chain(mask.then_some(&DType::Bool)).enumerate().skip(1) {
            let bytes = dtype.bytes() as u64;
            let fewest = if by_loops && bytes >= WIDE { FEWEST_WIDE_BYTES } else { FEWEST_BYTES };
            let size = self.bytes_along(array, bytes);
            let is_across = (fewest..=MOST_BYTES).contains(&size) && self.lies_across(array, bytes);
            if !is_across || array < inputs.len() && !is_read(array) {
                continue;
            }
            self.given[array] = self.dims.iter().map(|dim| dim.strides[array]).collect();
            let mut behind = 1;
            for dim in self.dims.iter_mut().rev().filter(|dim| dim.strides[array] != 0) {
                dim.strides[array] = behind;
                behind *= dim.extent;
            }
        }
        if self.has_copies() {
            self.join_end(positions);
        }
        self
    }

    /// Whether an array is put in order.
    pub fn has_copies(&self) -> bool {
        self.given.iter().any(|strides| !strides.is_empty())
    }

    /// Bytes of the elements of an array.
    fn bytes_along(&self, array: usize, bytes: u64) -> u64 {
        let moves = self.dims.iter().filter(|dim| dim.strides[array] != 0);
        moves.fold(bytes, |size, dim| size.saturating_mul(dim.extent.unsigned_abs()))
    }

    /// Whether neighbours in the order of the loops lie in lines of their own, in which there are others for later steps of them.
    fn lies_across(&self, array: usize, bytes: u64) -> bool {
        let step = |dim: &&Dim| dim.strides[array].unsigned_abs();
        let moves = || self.dims.iter().filter(|dim| dim.strides[array] != 0);
        let (Some(inner), Some(near)) = (moves().next_back(), moves().min_by_key(step)) else { return false };
        let is_apart = step(&inner).saturating_mul(bytes) >= LINE_BYTES && inner.extent >= FEWEST_LINES;
        let shares_lines =
            step(&near).saturating_mul(2 * bytes) <= LINE_BYTES && near.extent >= FEWEST_NEIGHBOURS;
        is_apart && shares_lines
    }

    /// Makes one of the innermost dimensions that follow on each other in every array as the loops read it.
    fn join_end(&mut self, positions: bool) {
        let given = self.given_dims();
        while let [.., outer, inner] = &self.dims[..]
            && let Some(one) = merge(outer, inner, positions)
        {
            self.dims.truncate(self.dims.len() - 2);
            self.dims.push(one);
        }
        let last = self.dims.len() - 1;
        if given.len() == self.dims.len() {
            return;
        }
        for (array, strides) in self.given.iter_mut().enumerate().filter(|(_, strides)| !strides.is_empty()) {
            self.parts[array] = parts(&given[last..], array);
            strides.truncate(last);
            strides.push(0);
        }
    }

    /// The dimensions, with the strides that arrays have in memory as they are given.
    pub fn given_dims(&self) -> Vec<Dim> {
        let mut dims = self.dims.clone();
        for (array, strides) in self.given.iter().enumerate() {
            dims.iter_mut().zip(strides).for_each(|(dim, stride)| dim.strides[array] = *stride);
        }
        dims
    }

    /// The dimensions along which an array moves where it is put in order; `None` where it is read as it lies.
    pub fn dims_in_order(&self, array: usize) -> Option<Vec<usize>> {
        let strides = &self.given[array];
        let moves = |d: &usize| strides[*d] != 0 || d + 1 == strides.len() && !self.parts[array].is_empty();
        (!strides.is_empty()).then(|| (0..strides.len()).filter(moves).collect())
    }

    /// The dimensions of the array as it is given that these loops are over.
    fn given_places(&self, array: usize, moves: &[usize]) -> Vec<usize> {
        let n_parts = self.parts[array].len();
        let whole = moves.len() - usize::from(n_parts > 0);
        let first = self.dims.len() - usize::from(n_parts > 0);
        moves[..whole].iter().copied().chain(first..first + n_parts).collect()
    }

    /// Extents and strides in memory of the loops over these dimensions of an array that is put in order, of which the innermost may be
    /// several.
    pub fn loops_in_order(&self, array: usize, moves: &[usize]) -> Vec<(i64, i64)> {
        let parts = &self.parts[array];
        let whole = moves.len() - usize::from(!parts.is_empty());
        let own = moves[..whole].iter().map(|&d| (self.dims[d].extent, self.given[array][d]));
        own.chain(parts.iter().map(|part| (part.extent, part.stride))).collect()
    }
}

/// Which of such loops has neighbours in memory.
pub fn near_of(loops: &[(i64, i64)]) -> usize {
    (0..loops.len()).min_by_key(|&at| loops[at].1.unsigned_abs()).unwrap_or(0)
}

/// The arrays of a call as a fold reads them.
pub(crate) struct Read {
    /// Those that are given, or their copies.
    pub tensors: Vec<Tensor>,
    /// The dimensions of each.
    pub of: Vec<Vec<usize>>,
    /// What the innermost dimension is to each, where it is several.
    pub parts: Vec<Vec<Part>>,
    /// The copies.
    pub in_order: Vec<InOrder>,
}

impl Read {
    /// Of what is given, with the extents and names of the problem's dimensions.
    pub fn of(given: &[Tensor], problem: &Problem, dims: (&[Expr], &[String])) -> Result<Read, TensorError> {
        let all: Vec<usize> = (0..problem.dims.len()).collect();
        let mut read = Read { tensors: Vec::new(), of: Vec::new(), parts: Vec::new(), in_order: Vec::new() };
        for (array, tensor) in given.iter().enumerate() {
            let parts = &problem.parts[array];
            let Some(moves) = problem.dims_in_order(array) else {
                read.tensors.push(tensor.clone());
                read.of.push(all.clone());
                read.parts.push(parts.clone());
                continue;
            };
            let copy = copy_of(tensor, parts, &moves, dims)?;
            let near = near_of(&problem.loops_in_order(array, &moves));
            let dims = problem.given_places(array, &moves);
            let (near_given, last_given) = (dims[near], dims[dims.len() - 1]);
            read.tensors.push(copy.clone());
            read.of.push(moves);
            read.parts.push(Vec::new());
            read.in_order.push(InOrder {
                given: tensor.clone(),
                near_given,
                last_given,
                copy,
                parts: parts.clone(),
                near,
            });
        }
        Ok(read)
    }
}

/// The copy of an array along the dimensions along which it moves.
fn copy_of(
    given: &Tensor,
    parts: &[Part],
    moves: &[usize],
    (extents, names): (&[Expr], &[String]),
) -> Result<Tensor, TensorError> {
    let own: Vec<Expr> = moves.iter().map(|&d| extents[d].clone()).collect();
    let axes: Vec<&str> = moves.iter().map(|&d| names[d].as_str()).collect();
    let elements = Elements {
        tensors: std::slice::from_ref(given),
        offsets: &[0],
        mask: None,
        of: &[(0..extents.len()).collect()],
        parts: &[parts.to_vec()],
    };
    let name = format!("{}.in_order", given.name());
    let copies = coulis_tensor::compute_tuple_axes(&own, &axes, &name, |vars| {
        let mut at = vec![constant(0); extents.len()];
        moves.iter().zip(vars).for_each(|(&d, var)| at[d] = Var::expr(var));
        elements.at(&at)
    })?;
    Ok(copies[0].clone())
}

#[cfg(test)]
mod tests {
    use coulis_ir::args::{ArrayInfo, compact_strides, strides_in};

    use super::*;
    use crate::order::ResultForm;

    /// A mask beside row-major `float32`, with the axes in this order in memory, of extent 1 along some of them.
    fn problem(shape: &[i64], order: &[usize], still: &[usize], axes: &[i64], by_loops: bool) -> Problem {
        let array =
            |dtype, shape: &[i64], strides: Vec<i64>| ArrayInfo { dtype, shape: shape.to_vec(), strides };
        let mut of_mask = shape.to_vec();
        still.iter().for_each(|&axis| of_mask[axis] = 1);
        let x = array(DType::F32, shape, compact_strides(shape));
        let mask = array(DType::Bool, &of_mask, strides_in(&of_mask, order));
        let inputs = std::slice::from_ref(&x);
        let problem = Problem::new(inputs, Some(&mask), Some(axes), ResultForm::default(), false).unwrap();
        problem.in_order(&[DType::F32], |_| true, true, false, by_loops)
    }

    fn strides(problem: &Problem) -> Vec<(i64, i64)> {
        problem.dims.iter().map(|dim| (dim.extent, dim.strides[1])).collect()
    }

    #[test]
    fn what_lies_across_the_loops_is_put_in_their_order() {
        let rows = problem(&[512, 1000], &[1, 0], &[], &[1], true);
        assert_eq!((strides(&rows), &rows.given[1]), (vec![(512, 1000), (1000, 1)], &vec![1, 512]));
        assert_eq!(rows.dims_in_order(1), Some(vec![0, 1]));
        assert_eq!(rows.loops_in_order(1, &[0, 1]), [(512, 1), (1000, 512)]);
        // Of some dimensions, once for all others.
        let few = problem(&[9, 512, 1000], &[0, 2, 1], &[0], &[2], true);
        assert_eq!(few.dims_in_order(1), Some(vec![1, 2]));
        assert_eq!(strides(&few), [(9, 0), (512, 1000), (1000, 1)]);
    }

    #[test]
    fn the_copy_of_an_array_is_one_piece_where_the_first_is() {
        let whole = problem(&[512, 1000], &[1, 0], &[], &[0, 1], true);
        assert_eq!(strides(&whole), [(512_000, 1)]);
        assert_eq!(whole.dims_in_order(1), Some(vec![0]));
        assert_eq!(whole.loops_in_order(1, &[0]), [(512, 1), (1000, 512)]);
        assert_eq!(near_of(&whole.loops_in_order(1, &[0])), 0);
    }

    #[test]
    fn what_is_near_or_too_much_is_read_as_it_lies() {
        let is_read = |shape: &[i64], order: &[usize]| !problem(shape, order, &[], &[1], true).has_copies();
        assert!(is_read(&[512, 1000], &[0, 1]), "the same order");
        assert!(is_read(&[128, 256], &[1, 0]), "few bytes");
        assert!(is_read(&[4, 100_000], &[1, 0]), "a line holds all steps of it");
        assert!(is_read(&[100_000, 16], &[1, 0]), "few lines side by side");
        assert!(is_read(&[1 << 16, (1 << 15) + 1], &[1, 0]), "more than two gigabytes");
        assert!(!problem(&[0, 512, 1000], &[0, 2, 1], &[0], &[0], true).has_copies(), "no elements");
        assert!(!is_read(&[1 << 16, 1 << 15], &[1, 0]));
    }

    #[test]
    fn few_wide_elements_are_read_as_they_lie_by_loops() {
        let copied = |n: i64, by_loops: bool| {
            let of = |strides: &[i64]| ArrayInfo {
                dtype: DType::F32,
                shape: vec![n, 1024],
                strides: strides.to_vec(),
            };
            let problem =
                Problem::new(&[of(&[1024, 1]), of(&[1, n])], None, Some(&[1]), ResultForm::default(), false);
            problem.unwrap().in_order(&[DType::F32; 2], |_| true, false, false, by_loops).has_copies()
        };
        assert_eq!([copied(4095, true), copied(4096, true), copied(64, false)], [false, true, true]);
    }
}
