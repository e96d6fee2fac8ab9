//! Moments, extrema and counts of a row, from which most statistics follow exactly without its elements.

use coulis_ir::DType;
use coulis_ir::eval::Value;

use super::{Double, Exact};
use crate::entry::ReducerRequest;

/// What is gathered of the elements of a row of one input that take part. There is at least one, and all are finite.
#[derive(Clone, Debug)]
pub struct Moments {
    /// Type of the elements.
    pub dtype: DType,
    /// Number of elements, at least 1.
    pub n: usize,
    /// Number of those that are not zero.
    pub n_nonzero: usize,
    /// Sum of the elements.
    pub sum: Total,
    /// Sum of their magnitudes.
    pub magnitude: Total,
    /// Sum of their squares.
    pub squares: Total,
    /// Sum of squared distances from the mean.
    pub spread: Double,
    /// Sum of the exponentials of distances from the greatest value.
    pub exponentials: Double,
    /// The least value.
    pub least: Extremum,
    /// The greatest value.
    pub greatest: Extremum,
}

/// A sum: of integers modulo 2^128, of floats in 106 bits.
#[derive(Clone, Copy, Debug)]
pub struct Total {
    /// Sum of the integers.
    pub int: i128,
    /// Sum of the floats.
    pub float: Double,
}

/// A value, and the first and the last place where it is.
#[derive(Clone, Copy, Debug)]
pub struct Extremum {
    /// The value.
    pub value: Value,
    /// Its first position in the row.
    pub first: i64,
    /// Its last position in the row.
    pub last: i64,
}

/// The exact results of a reducer from moments; `None` where they do not follow, as for what wraps on the way.
pub(crate) type FromMoments = fn(&Moments, &ReducerRequest) -> Option<Vec<Exact>>;

impl Total {
    /// The sum of nothing.
    pub const ZERO: Total = Total { int: 0, float: Double::ZERO };

    /// The sum of both.
    pub fn plus(self, other: Total) -> Total {
        Total { int: self.int.wrapping_add(other.int), float: self.float + other.float }
    }

    /// The sum as a number, where it did not wrap.
    pub fn double(self) -> Double {
        self.float + Double::from(self.int)
    }
}

impl Moments {
    /// A sum as a result; `magnitude` is the sum of its terms' magnitudes.
    pub(crate) fn total(&self, sum: Total, magnitude: Total, request: &ReducerRequest) -> Option<Vec<Exact>> {
        match request.acc {
            _ if self.dtype.is_float() => {
                from_sum(magnitude, sum.double().value(), magnitude.double().value())
            }
            None => int(sum.int),
            // What it wraps at, or rounds to, is the accumulator's matter.
            Some(_) => None,
        }
    }

    /// The sum of squares, where it cannot have wrapped: squares of 64 bits may at 128.
    pub(crate) fn sum_of_squares(&self) -> Option<Double> {
        (self.dtype.is_float() || self.dtype.bytes() < 8).then(|| self.squares.double())
    }

    /// The count as a number.
    pub(crate) fn count(&self) -> Double {
        Double::from(self.n as f64)
    }

    /// Variance with the request's ddof.
    pub(crate) fn variance(&self, request: &ReducerRequest) -> Double {
        let degrees = self.n as f64 - request.ddof;
        match () {
            () if degrees <= 0.0 => Double::from(f64::NAN),
            () if self.least.value.same(self.greatest.value) => Double::ZERO,
            () => self.spread / Double::from(degrees),
        }
    }

    /// The largest magnitude.
    pub(crate) fn largest(&self) -> Value {
        match (self.least.value, self.greatest.value) {
            (Value::Int(a), Value::Int(b)) => Value::Int(a.abs().max(b.abs())),
            (a, b) => Value::Float(a.as_f64().abs().max(b.as_f64().abs())),
        }
    }
}

/// A float result; `scale` as in [`Exact`].
pub(crate) fn float(value: f64, scale: f64) -> Option<Vec<Exact>> {
    Some(vec![Exact::new(Value::Float(value), scale)])
}

/// A float result that is made of a sum of terms of that magnitude; nothing is promised where adding up may leave the
/// range of `float64`.
pub(crate) fn from_sum(magnitude: Total, value: f64, scale: f64) -> Option<Vec<Exact>> {
    let is_bounded = magnitude.double().value().is_finite();
    Some(vec![Exact { is_bounded, ..Exact::new(Value::Float(value), scale) }])
}

/// A float result whose error is relative to itself.
pub(crate) fn relative(value: f64) -> Option<Vec<Exact>> {
    float(value, value.abs())
}

/// Results that are equal or wrong.
pub(crate) fn exactly<const N: usize>(values: [Value; N]) -> Option<Vec<Exact>> {
    Some(values.map(|value| Exact::new(value, 0.0)).to_vec())
}

/// An integer or bool result.
pub(crate) fn int(value: impl Into<i128>) -> Option<Vec<Exact>> {
    exactly([Value::Int(value.into())])
}
