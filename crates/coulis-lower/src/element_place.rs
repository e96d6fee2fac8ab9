//! Whether a place in the memory of a parameter is that of one of its elements, by its strides.
//!
//! The size of the memory says nothing of that where a stride is a variable, and where strides leave gaps. What each stride
//! is multiplied by is an index, which has to be within its extent.

use coulis_ir::expr::{Expr, Var};
use coulis_ir::simplify::{Analyzer, Linear};
use coulis_ir::{Buffer, DType};

use crate::affine::split;

/// A dimension that is walked by a constant number of elements, or several without gaps between them.
struct Constant {
    stride: i128,
    extent: Expr,
}

/// Whether the place is that of an element of a parameter with strides. `is_within`: whether an index is at least 0 and below an
/// extent.
///
/// Strides that are variables are those of one dimension each. Of constant ones the largest takes the parts of the place
/// that are multiples of it first; dimensions without gaps between them may also have one index together. A place that is
/// written otherwise is not recognized.
pub fn is_element(
    param: &Buffer,
    place: &Expr,
    known: &Analyzer,
    is_within: &dyn Fn(&Expr, &Expr) -> bool,
) -> bool {
    let mut rest = place.clone();
    let mut constants: Vec<Constant> = Vec::new();
    let mut variables: Vec<&Var> = Vec::new();
    for (extent, stride) in param.shape.iter().zip(&param.strides) {
        match (stride.as_var(), stride.as_int()) {
            (Some(stride), _) if !variables.contains(&stride) => {
                variables.push(stride);
                match split(&rest, stride) {
                    Some(index) if is_within(&index.coeff, extent) => rest = index.rest,
                    _ => return false,
                }
            }
            // Whatever the index is, it must only exist.
            (None, Some(0)) if is_within(&Expr::int_of(0, extent.dtype()), extent) => {}
            (None, Some(stride)) if stride != 0 => {
                if !extent.is_int(1) {
                    constants.push(Constant { stride, extent: extent.clone() });
                }
            }
            _ => return false,
        }
    }
    let Some(sum) = known.linear(&rest) else { return false };
    let are_within = |dims: Vec<Constant>| {
        indices(dims, &sum).is_some_and(|found| {
            found.iter().all(|(index, extent)| is_within(&known.simplify(index), extent))
        })
    };
    let together = joined(&constants);
    let has_joined = together.len() < constants.len();
    are_within(constants) || has_joined && are_within(together)
}

/// The index in each dimension of the element at a place, with the extent; `None` where a part is a multiple of no stride.
fn indices(mut dims: Vec<Constant>, place: &Linear) -> Option<Vec<(Expr, Expr)>> {
    dims.sort_by_key(|dims| -dims.stride.abs());
    let (mut terms, mut constant) = (place.terms.clone(), place.constant);
    let mut found = Vec::new();
    for Constant { stride, extent } in dims {
        let int = |n: i128| Expr::int_of(n, DType::I64);
        let (of_this, others) = terms.into_iter().partition(|(_, coeff)| coeff % stride == 0);
        terms = others;
        let steps: Vec<(Expr, i128)> = of_this;
        let index = steps.into_iter().fold(int(constant / stride), |index, (term, coeff)| {
            index + term.cast(DType::I64) * int(coeff / stride)
        });
        constant %= stride;
        found.push((index, extent));
    }
    (terms.is_empty() && constant == 0).then_some(found)
}

/// The dimensions with neighbours as one where no gap is between them.
fn joined(dims: &[Constant]) -> Vec<Constant> {
    let mut together: Vec<Constant> = Vec::new();
    for Constant { stride, extent } in dims {
        let mut extent = extent.clone();
        if let Some(n) = extent.as_int()
            && let Some(outer) = together.pop_if(|outer| outer.stride == n * stride)
        {
            extent = outer.extent.cast(DType::I64) * Expr::int_of(n, DType::I64);
        }
        together.push(Constant { stride: *stride, extent });
    }
    together
}

#[cfg(test)]
mod tests {
    use coulis_ir::MemScope;

    use super::*;

    /// Whether `i * by_i + j * by_j + more` is an element of n rows of 8, for each row and each column.
    #[track_caller]
    fn check(strides: [i128; 2], (by_i, by_j, more): (i128, i128, i128), wanted: bool) {
        let int = |n: i128| Expr::int_of(n, DType::I64);
        let n = Var::size("n", DType::I64).expr();
        let param = Buffer::new("a", DType::F32, vec![n.clone(), int(8)], MemScope::Global)
            .derive(|b| b.strides = strides.map(int).to_vec());
        let [i, j] = ["i", "j"].map(|name| Var::new(name, DType::I64));
        let mut known = Analyzer::new();
        known.bind(&i, &int(0), &n);
        known.bind(&j, &int(0), &int(8));
        let is_within = |index: &Expr, extent: &Expr| {
            known.can_prove(&index.clone().ge(int(0)))
                && known.can_prove(&index.clone().lt(extent.clone().cast(DType::I64)))
        };
        let place = i.expr() * int(by_i) + j.expr() * int(by_j) + int(more);
        assert_eq!(is_element(&param, &place, &known, &is_within), wanted, "{strides:?}");
    }

    #[test]
    fn dimensions_without_gaps_between_them_are_one() {
        check([8, 1], (8, 1, 0), true);
        check([16, 2], (16, 2, 0), true);
        check([8, 1], (8, 1, 1), false);
        check([16, 2], (16, 2, 1), false);
        check([8, 1], (0, 1, 0), true);
        check([8, 1], (0, 1, 8), false);
    }

    #[test]
    fn elements_lie_between_gaps_and_at_negative_strides() {
        check([20, 2], (20, 2, 0), true);
        check([-8, -1], (-8, -1, 0), true);
        check([-20, 1], (-20, 1, 0), true);
        check([20, -2], (20, -2, 0), true);
        check([1, 100], (1, 100, 0), true);
        check([-20, 1], (20, 1, 0), false);
        check([20, -2], (20, 2, 0), false);
        check([20, 2], (20, 2, 2), false);
        check([20, 2], (20, 1, 0), false);
        check([20, 2], (10, 2, 0), false);
    }

    #[test]
    fn a_column_that_is_counted_from_its_end_is_an_element() {
        check([20, 1], (20, -1, 7), true);
        check([20, 1], (20, -1, 8), false);
        check([20, 0], (20, 0, 0), true);
        check([20, 0], (20, 1, 0), false);
    }
}
