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

/// Bytes that are read together: a line of a CPU's cache, and two of the pieces in which a GPU reads memory.
const LINE_BYTES: u64 = 64;
/// Lines that loops read side by side, and neighbours that lie in each, at least: of fewer, lines stay near until all of them is read.
const FEWEST_LINES: i64 = 32;
const FEWEST_NEIGHBOURS: i64 = 8;
/// Bytes of an array that is put in order, at least: what a near cache holds is read as it lies.
const FEWEST_BYTES: u64 = 1 << 16;
/// The same of elements of so many bytes where threads run loops: measured on Zen 3, 4 to 8 MB of them take up to three times as long to
/// copy as to read across, and from 16 MB on less.
const FEWEST_WIDE_BYTES: u64 = 1 << 24;
const WIDE: u64 = 4;

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
    /// The loops over the array's own dimensions: which of them has neighbours in memory.
    pub near: usize,
}

impl Problem {
    /// The problem with inputs of these types, and a mask behind them, in the order of the first input, where they lie so that it pays;
    /// the innermost dimensions are one where they are one piece of memory then. `positions`: see [`Problem::new`]; `by_loops`: for
    /// machines without blocks of threads.
    #[must_use]
    pub fn in_order(mut self, inputs: &[DType], mask: bool, positions: bool, by_loops: bool) -> Problem {
        for (array, dtype) in inputs.iter().chain(mask.then_some(&DType::Bool)).enumerate().skip(1) {
            let bytes = dtype.bytes() as u64;
            let fewest = if by_loops && bytes >= WIDE { FEWEST_WIDE_BYTES } else { FEWEST_BYTES };
            if self.bytes_along(array, bytes) < fewest || !self.lies_across(array, bytes) {
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
