//! Results against an exact reference, within the bound that each statistic states.
//!
//! Outputs of ordinary length are compared with the catalogue's exact answers (contract N12), evenly spread outputs
//! where there are too many. A reference that holds each element as a number of any type does not fit longer ones:
//! they are read twice in 106 bits, which covers the statistics that follow from moments and extrema.

use coulis_io::{AlignedBytes, Array, Scalar};
use coulis_ir::eval::Value;
use coulis_ir::{DType, ErrorBound};

use coulis_reducers::exact::{Double, Exact, reference, rounding_error, tolerance};

use crate::error::Error;
use crate::reduce::Prepared;
use crate::statistic::Statistic;

/// What became of a check.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Every output that was compared is right.
    Verified {
        /// Outputs that were compared.
        checked: usize,
        /// Outputs there are.
        of: usize,
    },
    /// A result is wrong.
    Refuted {
        /// Name of the result.
        result: String,
        /// Position of the output, row-major.
        output: usize,
        /// What was found, what is right, and what distance is allowed.
        why: String,
    },
    /// The reference does not reach so far.
    OutOfReach {
        /// What it lacks.
        why: String,
    },
}

impl Verdict {
    /// Whether all that was compared is right.
    pub fn is_verified(&self) -> bool {
        match self {
            Verdict::Verified { .. } => true,
            Verdict::Refuted { .. } | Verdict::OutOfReach { .. } => false,
        }
    }
}

/// Elements of an output above which it is long.
const LONG: i64 = 1 << 18;
/// Elements that are compared by the catalogue's reference.
const EXACT_BUDGET: i64 = 1 << 20;
/// Elements of long outputs that are compared.
const LONG_BUDGET: i64 = 1 << 26;

/// Compares the outputs of a launch.
pub(super) fn check(
    prepared: &Prepared,
    input: &Array,
    outputs: Vec<AlignedBytes>,
) -> Result<Verdict, Error> {
    let call = prepared.call();
    let problem = &call.spec.problem;
    let n_outputs = problem.n_outputs as usize;
    let mut results = Vec::new();
    for (output, bytes) in call.spec.outputs.iter().zip(outputs) {
        results.push(Array::from_owned(output.dtype, &[problem.n_outputs], bytes)?);
    }
    let found: Vec<Vec<Value>> = results.iter().map(|array| array.scalars().map(value).collect()).collect();
    let len = problem.reduce_len;
    let budget = if len > LONG { LONG_BUDGET } else { EXACT_BUDGET };
    let n_checked = usize::try_from(budget / len.max(1)).unwrap_or(1).max(2).min(n_outputs);
    for nth in 0..n_checked {
        let at = if n_checked == 1 { 0 } else { nth * (n_outputs - 1) / (n_checked - 1) };
        let row = row(input, &problem.axes, at as i64)?;
        let moments = if len > LONG { Some(Moments::of(&row)) } else { None };
        let elements: Vec<Vec<Value>> =
            if moments.is_none() { row.scalars().map(|s| vec![value(s)]).collect() } else { Vec::new() };
        for (statistic, part) in call.statistics.iter().zip(&call.product.parts) {
            let Statistic::Listed(entry) = statistic else { return Ok(out_of_reach(statistic.name(), len)) };
            let exact = match &moments {
                Some(moments) => moments.answer(entry.name),
                None => reference(entry, &call.reducer_request, &elements).ok(),
            };
            let Some(exact) = exact else { return Ok(out_of_reach(entry.name, len)) };
            for (slot, exact) in part.results.clone().zip(&exact) {
                let dtype = results[slot].dtype();
                if let Err(why) = agrees(found[slot][at], exact, part.reducer.error, len, dtype) {
                    return Ok(Verdict::Refuted { result: call.names[slot].clone(), output: at, why });
                }
            }
        }
    }
    Ok(Verdict::Verified { checked: n_checked, of: n_outputs })
}

fn out_of_reach(name: &str, len: i64) -> Verdict {
    Verdict::OutOfReach { why: format!("there is no reference of `{name}` for {len} elements") }
}

fn value(scalar: Scalar) -> Value {
    match scalar {
        Scalar::Bool(v) => Value::Int(i128::from(v)),
        Scalar::Int(v) => Value::Int(i128::from(v)),
        Scalar::UInt(v) => Value::Int(i128::from(v)),
        Scalar::Float(v) => Value::Float(v),
    }
}

/// The elements that output `at` is made of, in the order of positions.
fn row(input: &Array, axes: &[usize], at: i64) -> Result<Array, Error> {
    let (shape, strides) = (input.shape(), input.strides());
    let (mut start, mut rest) = (0, at);
    for axis in (0..shape.len()).rev().filter(|axis| !axes.contains(axis)) {
        start += rest % shape[axis] * strides[axis];
        rest /= shape[axis];
    }
    let of = |list: &[i64]| axes.iter().map(|&axis| list[axis]).collect::<Vec<i64>>();
    Ok(input.view(&of(shape), &of(strides), start)?)
}

fn agrees(found: Value, exact: &Exact, bound: ErrorBound, n: i64, dtype: DType) -> Result<(), String> {
    let want = exact.value;
    if found.same(want.cast(dtype)) {
        return Ok(());
    }
    let (f, w) = (found.as_f64(), want.as_f64());
    let allowed = tolerance(bound, exact, n as usize) + rounding_error(w.abs(), dtype);
    let is_float = matches!(found, Value::Float(_));
    if is_float && (f - w).abs() <= allowed {
        return Ok(());
    }
    Err(format!("found {found:?}, exact {want:?}, allowed distance {allowed:e}"))
}

/// What a long output's statistics follow from.
struct Moments {
    dtype: DType,
    n: f64,
    sum: Double,
    magnitude: Double,
    squares: Double,
    /// Sum of squared distances from the mean.
    spread: Double,
    /// Sum of the exponentials of distances from the greatest value.
    exponentials: Double,
    n_nonzero: i128,
    least: (f64, i128, i128),
    greatest: (f64, i128, i128),
}

impl Moments {
    /// Of elements that are all finite numbers.
    fn of(row: &Array) -> Moments {
        let (mut sum, mut magnitude, mut squares) = (Double::ZERO, Double::ZERO, Double::ZERO);
        let mut n_nonzero = 0;
        let mut least = (f64::INFINITY, -1, -1);
        let mut greatest = (f64::NEG_INFINITY, -1, -1);
        for (at, scalar) in (0i128..).zip(row.scalars()) {
            let x = scalar.to_f64();
            sum = sum + Double::from(x);
            magnitude = magnitude + Double::from(x.abs());
            squares = squares + Double::from(x) * Double::from(x);
            n_nonzero += i128::from(x != 0.0);
            if x <= least.0 {
                least = (x, if x < least.0 { at } else { least.1 }, at);
            }
            if x >= greatest.0 {
                greatest = (x, if x > greatest.0 { at } else { greatest.1 }, at);
            }
        }
        let n = row.len() as f64;
        let mean = sum / Double::from(n);
        let (mut spread, mut exponentials) = (Double::ZERO, Double::ZERO);
        for scalar in row.scalars() {
            let x = scalar.to_f64();
            let distance = Double::from(x) - mean;
            spread = spread + distance * distance;
            exponentials = exponentials + Double::from((x - greatest.0).exp());
        }
        let dtype = row.dtype();
        Moments { dtype, n, sum, magnitude, squares, spread, exponentials, n_nonzero, least, greatest }
    }

    /// The exact results of a statistic of the catalogue, ddof 0; `None` where they do not follow from this.
    fn answer(&self, op: &str) -> Option<Vec<Exact>> {
        let float = |value: f64, scale: f64| Some(vec![Exact { value: Value::Float(value), scale }]);
        let relative = |value: f64| float(value, value.abs());
        let int = |value: i128| Some(vec![Exact { value: Value::Int(value), scale: 0.0 }]);
        // Integers are summed exactly up to 2^53 only.
        let total = |sum: Double, magnitude: Double| match self.dtype.is_float() {
            true => float(sum.value(), magnitude.value()),
            false if magnitude.value() < 2f64.powi(53) => int(sum.value() as i128),
            false => None,
        };
        let own =
            |value: f64| if self.dtype.is_float() { Value::Float(value) } else { Value::Int(value as i128) };
        let located = |value: f64, at: i128| {
            let value = Exact { value: own(value), scale: 0.0 };
            Some(vec![value, Exact { value: Value::Int(at), scale: 0.0 }])
        };
        if self.dtype.bytes() == 8 && self.dtype.is_int() {
            return None;
        }
        let n = Double::from(self.n);
        let variance = self.spread / n;
        match op {
            "sum" => total(self.sum, self.magnitude),
            "norm1" => total(self.magnitude, self.magnitude),
            "sumsq" => total(self.squares, self.squares),
            "mean" => float((self.sum / n).value(), self.magnitude.value() / self.n),
            "meansq" => relative((self.squares / n).value()),
            "norm2" => relative(self.squares.sqrt().value()),
            "var" => relative(variance.value()),
            "std" => relative(variance.sqrt().value()),
            "logsumexp" => relative(self.greatest.0 + self.exponentials.value().ln()),
            "count" => int(self.n as i128),
            "count_nonzero" => int(self.n_nonzero),
            "any" => int(i128::from(self.n_nonzero > 0)),
            "all" => int(i128::from(self.n_nonzero == self.n as i128)),
            "min" => Some(vec![Exact { value: own(self.least.0), scale: 0.0 }]),
            "max" => Some(vec![Exact { value: own(self.greatest.0), scale: 0.0 }]),
            "absmax" => {
                let value = self.least.0.abs().max(self.greatest.0.abs());
                Some(vec![Exact { value: own(value), scale: 0.0 }])
            }
            "argmin" => int(self.least.1),
            "argmin_last" => int(self.least.2),
            "argmax" => int(self.greatest.1),
            "argmax_last" => int(self.greatest.2),
            "minloc" => located(self.least.0, self.least.1),
            "maxloc" => located(self.greatest.0, self.greatest.1),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Init, input};

    #[test]
    fn answers_from_moments_are_those_of_the_catalogue() {
        for dtype in [DType::F32, DType::F16, DType::F64, DType::I8, DType::U16, DType::Bool] {
            let row = input(dtype, &[1000], Init::Uniform).unwrap();
            let moments = Moments::of(&row);
            let elements: Vec<Vec<Value>> = row.scalars().map(|s| vec![value(s)]).collect();
            let request = coulis_reducers::Request::new(&[dtype]);
            for entry in coulis_reducers::CATALOGUE.iter().filter(|e| e.n_inputs == 1) {
                let Some(found) = moments.answer(entry.name) else {
                    assert_eq!(entry.name, "prod");
                    continue;
                };
                let want = reference(entry, &request, &elements).unwrap();
                assert_eq!(found.len(), want.len(), "{}", entry.name);
                for (found, want) in found.iter().zip(&want) {
                    let (f, w) = (found.value.as_f64(), want.value.as_f64());
                    assert!((f - w).abs() <= 1e-14 * w.abs(), "{} of {dtype}: {f} {w}", entry.name);
                    assert!(
                        (found.scale - want.scale).abs() <= 1e-14 * want.scale,
                        "{} of {dtype}",
                        entry.name
                    );
                    let ints = [found.value, want.value].map(|v| matches!(v, Value::Int(_)));
                    assert_eq!(ints[0], ints[1], "{} of {dtype}: {found:?} {want:?}", entry.name);
                }
            }
        }
    }

    #[test]
    fn a_row_is_gathered_by_its_output() {
        let values: Vec<f32> = (0..24).map(|v| v as f32).collect();
        let array = Array::from_slice(&[2, 3, 4], &values).unwrap();
        let of = |axes: &[usize], at| -> Vec<f64> {
            row(&array, axes, at).unwrap().scalars().map(|s| s.to_f64()).collect()
        };
        assert_eq!(of(&[1], 5), [13.0, 17.0, 21.0]);
        assert_eq!(of(&[0, 2], 2), [8.0, 9.0, 10.0, 11.0, 20.0, 21.0, 22.0, 23.0]);
    }

    #[test]
    fn distances_beyond_the_bound_are_refuted() {
        let exact = Exact { value: Value::Float(1.0), scale: 1.0 };
        let bound = ErrorBound::Terms { factor: 32.0, eps: 2f64.powi(-23) };
        let check = |found| agrees(Value::Float(found), &exact, bound, 9, DType::F32).is_ok();
        assert!(check(1.0) && check(1.0 + 30.0 * 2f64.powi(-23)));
        assert!(!check(1.0 + 34.0 * 2f64.powi(-23)) && !check(f64::NAN));
        let whole = Exact { value: Value::Int(7), scale: 0.0 };
        assert!(agrees(Value::Int(7), &whole, ErrorBound::Exact, 9, DType::I64).is_ok());
        assert!(agrees(Value::Int(8), &whole, ErrorBound::Exact, 9, DType::I64).is_err());
    }
}
