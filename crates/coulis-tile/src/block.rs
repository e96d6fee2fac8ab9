//! The block of threads that a call is in, and its threads as numbers.

use coulis_ir::{DType, Expr, ThreadTag, Var};

/// One hardware index of the threads of a block.
#[derive(Clone, Debug)]
pub struct ThreadIndex {
    /// Which: `threadIdx.x`, `.y` or `.z`.
    pub tag: ThreadTag,
    /// Its variable.
    pub var: Var,
    /// Number of values, at least 1.
    pub extent: u32,
}

/// The threads of a block, and the expressions that tell them apart.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The indices with their weights in the linear number, x first.
    dims: Vec<(ThreadIndex, u32)>,
    n_threads: u32,
}

impl Block {
    /// The block of these indices, each tag at most once. The linear number counts x fastest, then y, then z.
    pub fn new(mut indices: Vec<ThreadIndex>) -> Block {
        indices.sort_by_key(|index| index.tag);
        let mut n_threads = 1;
        let mut dims = Vec::with_capacity(indices.len());
        for index in indices {
            let weight = n_threads;
            n_threads *= index.extent;
            dims.push((index, weight));
        }
        Block { dims, n_threads }
    }

    /// Threads of the block.
    pub fn n_threads(&self) -> u32 {
        self.n_threads
    }

    /// The indices with their weights in the number of a thread, x first.
    pub fn indices(&self) -> impl Iterator<Item = (&ThreadIndex, u32)> {
        self.dims.iter().map(|(index, weight)| (index, *weight))
    }

    /// The number of the calling thread, `int32`, 0 to `n_threads - 1`.
    pub fn linear(&self) -> Expr {
        let terms = self.dims.iter().rev().filter(|(index, _)| index.extent > 1);
        terms
            .map(|(index, weight)| scaled(as_int(&index.var), *weight))
            .reduce(|a, b| a + b)
            .unwrap_or_else(zero)
    }

    /// The digit `linear // stride % extent` of the calling thread's number, `int32`: a bare index where one has this
    /// stride and extent.
    pub fn digit(&self, extent: u32, stride: u32) -> Expr {
        if extent == 1 {
            return zero();
        }
        let index = self.dims.iter().find(|(index, weight)| *weight == stride && index.extent == extent);
        if let Some((index, _)) = index {
            return as_int(&index.var);
        }
        let quotient = match stride {
            1 => self.linear(),
            _ => self.linear().floordiv(constant(stride)),
        };
        if stride * extent == self.n_threads { quotient } else { quotient.floormod(constant(extent)) }
    }
}

/// `expr * factor`, without a factor of 1.
pub(crate) fn scaled(expr: Expr, factor: u32) -> Expr {
    if factor == 1 || expr.is_int(0) { expr } else { expr * constant(factor) }
}

/// An `int32` constant.
pub(crate) fn constant(value: u32) -> Expr {
    Expr::int_of(i128::from(value), DType::I32)
}

fn zero() -> Expr {
    Expr::int(0)
}

fn as_int(var: &Var) -> Expr {
    var.expr().cast(DType::I32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use coulis_ir::print::print_expr;

    fn block(extents: [u32; 3]) -> Block {
        let tags = [ThreadTag::ThreadX, ThreadTag::ThreadY, ThreadTag::ThreadZ];
        let index = |(tag, extent): (ThreadTag, u32)| {
            let name = tag.name().replace("threadIdx.", "t");
            ThreadIndex { tag, var: Var::new(&name, DType::I32), extent }
        };
        Block::new(tags.into_iter().zip(extents).map(index).rev().collect())
    }

    #[test]
    fn threads_are_numbered_x_fastest() {
        assert_eq!(print_expr(&block([16, 32, 1]).linear()), "ty * 16 + tx");
        assert_eq!(print_expr(&block([4, 2, 3]).linear()), "tz * 8 + ty * 4 + tx");
        assert_eq!(print_expr(&block([1, 1, 1]).linear()), "0");
    }

    #[test]
    fn a_digit_is_a_bare_index_where_there_is_one() {
        let block = block([16, 32, 1]);
        assert_eq!(print_expr(&block.digit(32, 16)), "ty");
        assert_eq!(print_expr(&block.digit(16, 1)), "tx");
        assert_eq!(print_expr(&block.digit(4, 16)), "(ty * 16 + tx) // 16 % 4");
        assert_eq!(print_expr(&block.digit(8, 64)), "(ty * 16 + tx) // 64");
        assert_eq!(print_expr(&block.digit(1, 8)), "0");
    }
}
