//! Exact answers, independent of the reducers' lambdas: what tests and `--verify` compare with.
//!
//! Float sums are exact to the last bit (a superaccumulator); quotients, roots and variances are computed in twice
//! the precision of `float64` and rounded; exponentials are those of `float64`. Integers are computed in 128
//! bits and wrapped. Source: contract N12; U. Kulisch, "Computer Arithmetic and Validity", for the accumulator.

mod accumulator;
pub(crate) mod answer;
mod double;
pub(crate) mod mapped_row;
pub(crate) mod moments;
mod ulp;

use coulis_ir::eval::Value;
use coulis_ir::{ErrorBound, NanPolicy};

pub use accumulator::ExactSum;
pub use double::Double;
pub use mapped_row::{ExactMapFn, MappedRow};
pub use moments::{Extremum, Moments, Total};
pub use ulp::{rounding_error, ulp_distance};

use crate::entry::{Entry, ReducerRequest};

/// A row as a reducer's exact function sees it.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// What was asked.
    pub request: &'a ReducerRequest,
    /// The elements that take part, one value an input each.
    pub elements: Vec<Vec<Value>>,
    /// Their positions, ascending.
    pub positions: Vec<i64>,
    /// Number of elements left out because they are NaN.
    pub dropped: usize,
}

/// One exact result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exact {
    /// The result, before it is rounded to the output type.
    pub value: Value,
    /// What the error bound is relative to: the sum of the terms' magnitudes for sums.
    pub scale: f64,
    /// Whether the error bound holds for these elements; where it does not, nothing is promised.
    pub is_bounded: bool,
}

impl Exact {
    /// A result for which the error bound holds.
    pub fn new(value: Value, scale: f64) -> Exact {
        Exact { value, scale, is_bounded: true }
    }
}

/// Why a row has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The row has no elements and the reducer has no answer for that.
    #[error("the row is empty")]
    Empty,
    /// Every element is NaN, NaN is ignored, and a position is asked for.
    #[error("every element of the row is NaN, and NaN is ignored")]
    AllNan,
}

/// The exact results of a row.
pub type ExactFn = fn(&Case) -> Result<Vec<Exact>, Refused>;

/// The exact results of a row of elements, in order of position; each element has one value an input.
pub fn reference(entry: &Entry, request: &ReducerRequest, row: &[Vec<Value>]) -> Result<Vec<Exact>, Refused> {
    let row = row.iter().enumerate().map(|(i, e)| (i as i64, e.clone())).collect();
    reference_at(entry, request, row)
}

/// As [`reference`], of elements with their positions, ascending: what a mask leaves of a row.
pub fn reference_at(
    entry: &Entry,
    request: &ReducerRequest,
    row: Vec<(i64, Vec<Value>)>,
) -> Result<Vec<Exact>, Refused> {
    let takes_part = |e: &Vec<Value>| request.nan == NanPolicy::Propagate || !e.iter().any(|v| v.is_nan());
    let n = row.len();
    let (positions, elements): (Vec<i64>, Vec<Vec<Value>>) =
        row.into_iter().filter(|(_, e)| takes_part(e)).unzip();
    let case = Case { request, dropped: n - positions.len(), elements, positions };
    (entry.exact)(&case)
}

/// Largest allowed distance of a result from the exact one before the rounding to the output type, for a row of
/// `n` elements; 0 where the result must be equal, infinite where nothing is promised.
pub fn tolerance(bound: ErrorBound, exact: &Exact, n: usize) -> f64 {
    if !exact.is_bounded {
        return f64::INFINITY;
    }
    let value = exact.value.as_f64();
    match bound {
        ErrorBound::Exact => 0.0,
        ErrorBound::Terms { factor, eps } => factor * eps * exact.scale,
        ErrorBound::Relative { factor, eps } => factor * eps * value.abs().max(1.0),
        ErrorBound::Length { factor, eps } => factor * n as f64 * eps * value.abs(),
    }
}
