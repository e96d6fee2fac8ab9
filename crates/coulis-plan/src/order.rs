//! The order in which the elements of results lie in memory.

/// The order of results in memory, in which they lie without gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// The last axis innermost.
    #[default]
    RowMajor,
    /// As the first input lies: NumPy's order `K`. Results of a transposed view are stored as they are found, and not each a column
    /// apart from the one before.
    OfInput,
}

/// What becomes of a reduced shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResultForm {
    /// Whether reduced axes stay, with extent 1.
    pub keepdims: bool,
    /// Where the elements lie.
    pub order: Order,
}

impl Order {
    /// The axes of a result of this shape, along which the first input has these strides, from the outermost in memory to the
    /// innermost. Axes along which the input does not move, or of extent 1, stay where they are, and the others stand by the size
    /// of their steps.
    pub fn axes(self, shape: &[i64], strides: &[i64]) -> Vec<usize> {
        let mut axes: Vec<usize> = (0..shape.len()).collect();
        if self == Order::RowMajor {
            return axes;
        }
        let moves = |axis: &usize| shape[*axis] != 1 && strides[*axis] != 0;
        let mut sorted: Vec<usize> = axes.iter().copied().filter(moves).collect();
        sorted.sort_by_key(|&axis| std::cmp::Reverse(strides[axis].unsigned_abs()));
        let mut next = sorted.into_iter();
        for axis in axes.iter_mut().filter(|axis| moves(axis)) {
            *axis = next.next().unwrap_or(*axis);
        }
        axes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coulis_ir::args::{compact_strides, strides_in};

    #[track_caller]
    fn check(shape: &[i64], strides: &[i64], want: &[i64]) {
        assert_eq!(strides_in(shape, &Order::OfInput.axes(shape, strides)), want);
        let row_major = compact_strides(shape);
        assert_eq!(strides_in(shape, &Order::RowMajor.axes(shape, strides)), row_major);
    }

    #[test]
    fn results_lie_as_the_input_does() {
        check(&[2, 3, 4], &[12, 4, 1], &[12, 4, 1]);
        check(&[4, 2, 3], &[1, 12, 4], &[1, 12, 4]);
        // Gaps are closed, and axes that run backwards run forwards.
        check(&[4, 2, 3], &[2, -80, 9], &[1, 12, 4]);
    }

    #[test]
    fn axes_along_which_nothing_moves_stay() {
        check(&[3, 5, 2], &[1, 0, 3], &[1, 3, 15]);
        check(&[3, 1, 2], &[1, 77, 3], &[1, 3, 3]);
        check(&[0, 2], &[1, 1], &[2, 1]);
        // More than there is memory for is refused later, by its size.
        check(&[0, 1 << 40, 1 << 40], &[0, 0, 0], &[i64::MAX, 1 << 40, 1]);
    }
}
