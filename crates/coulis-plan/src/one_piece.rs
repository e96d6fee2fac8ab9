//! Rows that are one piece of memory in the elements, and not in what stands beside them.

use coulis_ir::DType;

use crate::problem::{Dim, Problem};

/// Elements of a row from which on it is long, where rows that are one piece begin anywhere in an access; measured on an H200.
const LONG: i64 = 1 << 17;
/// The same where they begin where accesses do, and of elements of one byte.
const LONG_ALIGNED: i64 = 1 << 12;
/// The same where several outputs fold such pieces.
const LONG_OF_SEVERAL: i64 = 1 << 11;
/// Bytes of the widest access that a thread makes.
const ACCESS_BYTES: i64 = 16;

/// One dimension of an array to which the innermost dimension of a problem is several: it is at
/// `(index / every) % extent` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// Steps of the problem's dimension for one of this.
    pub every: i64,
    /// Elements, before they begin anew.
    pub extent: i64,
    /// Elements of memory for a step.
    pub stride: i64,
}

impl Problem {
    /// The problem with the reduced dimensions at its end as one, where they are one piece of memory in the first array and not in
    /// another (a mask of rows, a factor of each column): accesses of several neighbours then go on from row to row, and what the
    /// other array has is found by quotient and remainder. Only where that was measured to pay: rows that by themselves have no accesses
    /// as wide, and short ones beside one element for each row (of the mask, the last array, where there are several outputs). For machines
    /// with threads, and folds in any order.
    #[must_use]
    pub fn in_one_piece(mut self, inputs: &[DType], mask: bool) -> Problem {
        let chains = |array: usize, pair: &[Dim]| {
            pair[0].strides[array] == pair[1].strides[array].wrapping_mul(pair[1].extent)
        };
        let (Some(inner), n_arrays) = (self.dims.last(), self.parts.len()) else { return self };
        if !inner.is_reduced() || inner.strides[0] != 1 || self.has_copies() {
            return self;
        }
        let is_one = |pair: &&[Dim]| pair[0].is_reduced() && chains(0, pair);
        let first = self.dims.len() - 1 - self.dims.windows(2).rev().take_while(is_one).count();
        let piece = &self.dims[first..];
        let is_piece = |array: usize| piece.windows(2).all(|pair| chains(array, pair));
        let bytes = inputs.iter().map(|dtype| dtype.bytes() as i64).max().unwrap_or(1);
        let is_cut = inner.extent % (ACCESS_BYTES / bytes).max(1) != 0;
        let mut apart = (0..n_arrays).filter(|array| !is_piece(*array));
        let pays = if apart.any(|array| inner.strides[array] != 0) {
            is_cut
        } else {
            // What is one element for a whole row costs a long row nothing.
            let long = match is_cut {
                true if first > 0 => LONG_OF_SEVERAL,
                true if bytes > 1 => LONG,
                _ => LONG_ALIGNED,
            };
            let is_masked = mask && inner.strides[inputs.len()] == 0;
            (is_cut || is_masked || first == 0) && inner.extent < long
        };
        let extent = piece.iter().try_fold(1i64, |n, dim| n.checked_mul(dim.extent));
        let (Some(extent @ 1..), true) = (extent, pays && piece.len() > 1) else { return self };
        let (role, mut strides) = (inner.role, Vec::with_capacity(n_arrays));
        for array in 0..n_arrays {
            strides.push(if is_piece(array) { inner.strides[array] } else { 0 });
            if !is_piece(array) {
                self.parts[array] = parts(piece, array);
            }
        }
        self.dims.truncate(first);
        self.dims.push(Dim { extent, strides, role });
        self
    }
}

/// What dimensions that are one are to an array: neighbours that chain in it as one, and without those that it does not move along.
pub(crate) fn parts(piece: &[Dim], array: usize) -> Vec<Part> {
    let (mut every, mut parts) = (1, Vec::<Part>::new());
    for dim in piece.iter().rev() {
        let stride = dim.strides[array];
        match parts.last_mut() {
            Some(Part { every: from, extent, stride: least })
                if *from * *extent == every && stride == least.wrapping_mul(*extent) =>
            {
                *extent *= dim.extent;
            }
            _ if stride != 0 => parts.push(Part { every, extent: dim.extent, stride }),
            _ => {}
        }
        every *= dim.extent;
    }
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use coulis_ir::args::{ArrayInfo, compact_strides};

    use super::*;
    use crate::order::ResultForm;

    fn array(shape: &[i64], strides: &[i64]) -> ArrayInfo {
        ArrayInfo { dtype: DType::F32, shape: shape.to_vec(), strides: strides.to_vec() }
    }

    #[track_caller]
    fn check_problem(problem: &Problem, want: &[(char, i64, i64)]) {
        let of = |d: &Dim| (if d.is_reduced() { 'r' } else { 'k' }, d.extent, d.strides[0]);
        assert_eq!(problem.dims.iter().map(of).collect::<Vec<_>>(), want);
    }

    #[test]
    fn rows_in_one_piece_are_one_where_another_array_is_not() {
        let of = |shape: &[i64], other: &[i64], axes: &[i64]| {
            let all: Vec<i64> = (0..shape.len() as i64).collect();
            let strides: Vec<i64> = (0..shape.len())
                .map(|d| if other[d] == 1 { 0 } else { other[d + 1..].iter().product() })
                .collect();
            let inputs = [array(shape, &compact_strides(shape)), array(shape, &strides)];
            let axes = if axes.is_empty() { &all } else { axes };
            Problem::new(&inputs, None, Some(axes), ResultForm::default(), false)
                .unwrap()
                .in_one_piece(&[DType::F32, DType::F32], false)
        };
        let parts = |problem: &Problem| {
            let part = |part: &Part| (part.every, part.extent, part.stride);
            problem.parts.iter().map(|parts| parts.iter().map(part).collect()).collect::<Vec<Vec<_>>>()
        };
        // A factor of each column, of each row, of each element of some dimensions.
        let columns = of(&[9, 33], &[1, 33], &[]);
        check_problem(&columns, &[('r', 297, 1)]);
        assert_eq!((columns.dims[0].strides[1], parts(&columns)), (0, vec![vec![], vec![(1, 33, 1)]]));
        assert_eq!(parts(&of(&[9, 33], &[9, 1], &[]))[1], [(33, 9, 1)]);
        assert_eq!(parts(&of(&[2, 3, 5, 7], &[2, 1, 5, 7], &[]))[1], [(105, 2, 35), (1, 35, 1)]);
        let kept = of(&[6, 5, 33], &[1, 5, 1], &[1, 2]);
        check_problem(&kept, &[('k', 6, 165), ('r', 165, 1)]);
        assert_eq!(parts(&kept)[1], [(33, 5, 1)]);
        // Rows of whole accesses, long rows of one factor each, and what is in one piece with the elements stay as they are.
        check_problem(&of(&[9, 32], &[1, 32], &[]), &[('r', 9, 32), ('r', 32, 1)]);
        check_problem(&of(&[9, 32], &[9, 1], &[]), &[('r', 288, 1)]);
        check_problem(&of(&[9, 4096], &[9, 1], &[]), &[('r', 9, 4096), ('r', 4096, 1)]);
        check_problem(&of(&[9, LONG + 1], &[9, 1], &[]), &[('r', 9, LONG + 1), ('r', LONG + 1, 1)]);
        // Rows of nothing have no remainders.
        let nothing = [array(&[5, 0], &[0, 1]), array(&[5, 0], &[1, 0])];
        let problem = Problem::new(&nothing, None, None, ResultForm::default(), false).unwrap();
        let stated = problem.dims.clone();
        assert_eq!(problem.in_one_piece(&[DType::F32], true).dims, stated);
        let whole = of(&[9, 33], &[9, 33], &[]);
        assert_eq!((whole.dims.len(), parts(&whole)), (1, vec![vec![], vec![]]));
    }
}
