//! Pieces of exact answers that several reducers share.

use std::cmp::Ordering;

use coulis_ir::eval::Value;
use coulis_ir::{DType, NanPolicy, Ties};

use super::{Case, Double, Exact, ExactSum, Refused};
use crate::shape::extremum::End;

/// The answer of an exact function.
pub(crate) type Answer = Result<Vec<Exact>, Refused>;

/// A float result; `scale` as in [`Exact`].
pub(crate) fn float(value: f64, scale: f64) -> Answer {
    Ok(vec![Exact::new(Value::Float(value), scale)])
}

/// A float result whose error is relative to itself.
pub(crate) fn relative(value: f64) -> Answer {
    float(value, value.abs())
}

/// An integer or bool result.
pub(crate) fn int(value: i128) -> Answer {
    Ok(vec![Exact::new(Value::Int(value), 0.0)])
}

impl Case<'_> {
    /// Number of elements that take part.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether no element takes part.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The values of an input.
    pub fn column(&self, input: usize) -> impl Iterator<Item = Value> + '_ {
        self.elements.iter().map(move |e| e[input])
    }

    /// Sum of the values of an input.
    pub(crate) fn sum(&self, input: usize, part: fn(Value) -> Value) -> ExactSum {
        let mut sum = ExactSum::new();
        for value in self.column(input) {
            match part(value) {
                Value::Int(v) => sum.add_int(v),
                Value::Float(v) => sum.add(v),
            }
        }
        sum
    }

    /// Sum of products of two inputs, or of squares of one.
    pub(crate) fn products(&self, a: usize, b: usize) -> ExactSum {
        let mut sum = ExactSum::new();
        for element in &self.elements {
            match (element[a], element[b]) {
                (Value::Int(x), Value::Int(y)) if x.checked_mul(y).is_some() => sum.add_int(x * y),
                (x, y) => sum.add_product(x.as_f64(), y.as_f64()),
            }
        }
        sum
    }

    /// Sum of integer terms, wrapped into the default accumulator of the inputs.
    pub(crate) fn wrapping(&self, term: fn(&[i128]) -> i128) -> Answer {
        let terms = self.elements.iter().map(|e| {
            let ints: Vec<i128> = e.iter().map(|v| v.as_int().unwrap_or(0)).collect();
            term(&ints)
        });
        int(self.wrap(terms.fold(0i128, i128::wrapping_add)))
    }

    /// Wraps into the accumulator: the one that was asked for, else `uint64` for unsigned inputs, else `int64`.
    pub(crate) fn wrap(&self, value: i128) -> i128 {
        let unsigned = self.request.inputs.iter().all(|d| d.is_unsigned_int());
        let default = if unsigned { DType::U64 } else { DType::I64 };
        self.request.acc.filter(|d| d.is_int()).unwrap_or(default).wrap_int(value)
    }

    /// Whether results of sums are floats: any input is, or the accumulator was asked to be.
    pub(crate) fn sums_are_floats(&self) -> bool {
        self.request.has_float() || self.request.acc.is_some_and(DType::is_float)
    }
}

/// Magnitude of a value.
pub(crate) fn abs(value: Value) -> Value {
    match value {
        Value::Int(v) => Value::Int(v.abs()),
        Value::Float(v) => Value::Float(v.abs()),
    }
}

/// The value itself.
pub(crate) fn same(value: Value) -> Value {
    value
}

/// The sum itself as a result.
pub(crate) fn of_sum(sum: &ExactSum) -> Answer {
    from_sum(sum, sum.value(), sum.magnitude())
}

/// A float result that is made of a sum; nothing is promised where adding up may leave the range of `float64`.
pub(crate) fn from_sum(sum: &ExactSum, value: f64, scale: f64) -> Answer {
    Ok(vec![Exact { is_bounded: !sum.may_overflow(), ..Exact::new(Value::Float(value), scale) }])
}

/// The extremum of a measure of the elements.
pub(crate) fn extremum(case: &Case, end: End, measure: fn(Value) -> Value) -> Answer {
    let at = best(case, end, Ties::First, measure);
    let value = match at {
        Some(at) => measure(case.elements[at][0]),
        None if case.dropped > 0 => Value::Float(f64::NAN),
        None => return Err(Refused::Empty),
    };
    Ok(vec![Exact::new(value, 0.0)])
}

/// The value and position of the extremum.
pub(crate) fn located(case: &Case, end: End, ties: Ties) -> Answer {
    match best(case, end, ties, same) {
        Some(at) => Ok(vec![
            Exact::new(case.elements[at][0], 0.0),
            Exact::new(Value::Int(i128::from(case.positions[at])), 0.0),
        ]),
        None if case.dropped > 0 && case.request.nan == NanPolicy::Ignore => Err(Refused::AllNan),
        None => Err(Refused::Empty),
    }
}

/// The position alone.
pub(crate) fn position(case: &Case, end: End, ties: Ties) -> Answer {
    located(case, end, ties).map(|both| both[1..].to_vec())
}

/// Place of the winner among the elements.
fn best(case: &Case, end: End, ties: Ties, measure: fn(Value) -> Value) -> Option<usize> {
    let mut winner: Option<usize> = None;
    for at in 0..case.len() {
        let takes = match winner {
            None => true,
            Some(old) => match order(measure(case.elements[at][0]), measure(case.elements[old][0]), end) {
                Ordering::Greater => true,
                Ordering::Equal => ties == Ties::Last,
                Ordering::Less => false,
            },
        };
        if takes {
            winner = Some(at);
        }
    }
    winner
}

/// Which of two values is nearer the end; NaN is nearest of all.
fn order(a: Value, b: Value, end: End) -> Ordering {
    let by_size = match (a, b) {
        (Value::Int(x), Value::Int(y)) => x.cmp(&y),
        _ => match (a.is_nan(), b.is_nan()) {
            (true, true) => return Ordering::Equal,
            (true, false) => return Ordering::Greater,
            (false, true) => return Ordering::Less,
            (false, false) => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal),
        },
    };
    match end {
        End::Greatest => by_size,
        End::Least => by_size.reverse(),
    }
}

/// Variance with the request's ddof.
pub(crate) fn variance(case: &Case) -> Double {
    let n = case.len() as f64;
    let finite = case.column(0).all(|v| v.as_f64().is_finite());
    if n <= case.request.ddof || case.is_empty() || !finite {
        return Double::from(f64::NAN);
    }
    let first = case.elements[0][0];
    if case.column(0).all(|v| v.same(first)) {
        return Double::ZERO;
    }
    let mean = case.sum(0, same).over(n.into());
    let sum = case.column(0).fold(Double::ZERO, |sum, v| {
        let x = match v {
            Value::Int(v) => Double::from(v),
            Value::Float(v) => Double::from(v),
        };
        sum + (x - mean) * (x - mean)
    });
    sum / Double::from(n - case.request.ddof)
}
