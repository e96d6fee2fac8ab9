//! Results against exact ones: what `reduce --verify` says and what tests ask.
//!
//! The reference reads elements one by one through shape and strides, knows nothing of plans and kernels, and sums
//! without any rounding ([`coulis_reducers::exact`]). A result is right if it is the rounding to the output type of some
//! number within the reducer's bound of the exact one. Source: contract N1, N2, N12.

use std::time::{Duration, Instant};

use coulis_io::{Array, Scalar};
use coulis_ir::ErrorBound;
use coulis_ir::eval::Value;
use coulis_plan::OutputSpec;
use coulis_reducers::exact::{Exact, reference_at, tolerance, ulp_distance};

use crate::error::Error;
use crate::reduce::{Call, array_info, check};
use crate::request::{Outcome, Request};
use crate::statistic::Statistic;

/// Longest row that is checked; exact arithmetic holds a row in memory.
const MAX_ROW: i64 = 1 << 24;
/// Time after which no further output is checked.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A result that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Refutation {
    /// Place of the output, row-major.
    pub output: usize,
    /// The result.
    pub found: String,
    /// The exact result, before its rounding to the output type; or why there is none.
    pub exact: String,
    /// Largest distance that the bound allows before that rounding.
    pub allowed: f64,
}

/// What was found out about one result.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// Name of the result.
    pub name: String,
    /// Number of outputs that were compared.
    pub n_checked: usize,
    /// Largest distance from the rounded exact result, in units of the last place of the output type; for integers the
    /// difference.
    pub max_ulp: u64,
    /// Largest error as a part of what the bound and the rounding allow; 0 where all results are exact.
    pub worst: f64,
    /// The bound in words.
    pub bound: String,
    /// The first wrong result.
    pub refuted: Option<Refutation>,
}

/// The comparison of an outcome with exact results.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifyReport {
    /// One a result of the call, in order.
    pub results: Vec<Verified>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

impl VerifyReport {
    /// Whether no result is wrong.
    pub fn is_right(&self) -> bool {
        self.results.iter().all(|r| r.refuted.is_none())
    }
}

/// Compares the outcome of a call with exact results, output by output. Stops with a note after a minute.
///
/// Errors: the request does not fit the arrays or the outcome; a row too long for exact arithmetic.
pub fn verify(inputs: &[Array], request: &Request, outcome: &Outcome) -> Result<VerifyReport, Error> {
    let infos: Vec<_> = inputs.iter().map(array_info).collect();
    let call = check(&infos, request)?;
    let problem = &call.spec.problem;
    if problem.reduce_len > MAX_ROW {
        let message =
            format!("rows of {} elements cannot be verified; the most is {MAX_ROW}", problem.reduce_len);
        return Err(Error::unsupported("reduce/verify", message));
    }
    let n_outputs = usize::try_from(problem.n_outputs).unwrap_or(usize::MAX);
    let fits = outcome.results.len() == call.names.len()
        && outcome.results.iter().zip(&call.names).all(|(r, n)| r.name == *n && r.array.len() == n_outputs);
    if !fits {
        return Err(Error::user("reduce/verify", "the outcome is not one of this request"));
    }
    if let Some(own) = call.statistics.iter().find(|s| matches!(s, Statistic::Own(_))) {
        let message = format!("`{}` is a reducer of your own, whose exact answer nobody stated", own.name());
        return Err(Error::unsupported("reduce/verify", message));
    }
    let rows = Rows::new(inputs, request.where_.as_ref(), &problem.axes)?;
    let mut columns = Columns::new(&call, request, outcome)?;
    let start = Instant::now();
    let mut notes = Vec::new();
    for output in 0..n_outputs {
        if start.elapsed() > TIME_LIMIT {
            notes.push(format!("{output} of {n_outputs} outputs were compared in {TIME_LIMIT:?}"));
            break;
        }
        columns.compare(&call, output, rows.row(output)?);
    }
    Ok(VerifyReport { results: columns.done, notes })
}

/// The arrays as rows of elements.
struct Rows<'a> {
    arrays: Vec<(&'a Array, Vec<i64>)>,
    has_mask: bool,
    kept: Vec<(usize, i64)>,
    reduced: Vec<(usize, i64)>,
}

impl<'a> Rows<'a> {
    fn new(inputs: &'a [Array], mask: Option<&'a Array>, axes: &[usize]) -> Result<Rows<'a>, Error> {
        let shape = inputs[0].shape();
        let of_role =
            |role: bool| (0..shape.len()).filter(move |a| axes.contains(a) == role).map(|a| (a, shape[a]));
        let arrays = inputs.iter().chain(mask).map(|array| (array, broadcast_strides(array, shape)));
        Ok(Rows {
            arrays: arrays.collect(),
            has_mask: mask.is_some(),
            kept: of_role(false).collect(),
            reduced: of_role(true).collect(),
        })
    }

    /// The elements of an output that the mask leaves, with their positions.
    fn row(&self, output: usize) -> Result<Vec<(i64, Vec<Value>)>, Error> {
        let lengths: Vec<i64> = self.reduced.iter().map(|r| r.1).collect();
        if lengths.contains(&0) {
            return Ok(Vec::new());
        }
        let mut index = vec![0i64; self.kept.len()];
        let mut rest = output as i64;
        for (at, &(_, length)) in self.kept.iter().enumerate().rev() {
            index[at] = rest % length;
            rest /= length;
        }
        let mut views = Vec::new();
        for (array, strides) in &self.arrays {
            let start = self.kept.iter().zip(&index).map(|(&(axis, _), i)| i * strides[axis]).sum();
            let own: Vec<i64> = self.reduced.iter().map(|&(axis, _)| strides[axis]).collect();
            views.push(array.view(&lengths, &own, start)?);
        }
        let mut columns: Vec<_> = views.iter().map(Array::scalars).collect();
        let n = lengths.iter().product::<i64>();
        let mut row = Vec::new();
        for position in 0..n {
            let mut element: Vec<Value> = columns.iter_mut().filter_map(Iterator::next).map(value).collect();
            let is_in = if self.has_mask { element.pop().is_some_and(Value::is_true) } else { true };
            if is_in {
                row.push((position, element));
            }
        }
        Ok(row)
    }
}

/// Strides of an array that broadcasts to `shape`.
pub(crate) fn broadcast_strides(array: &Array, shape: &[i64]) -> Vec<i64> {
    let missing = shape.len().saturating_sub(array.shape().len());
    let own = array.shape().iter().zip(array.strides()).zip(&shape[missing..]);
    let own = own.map(|((length, stride), wanted)| if length == wanted { *stride } else { 0 });
    std::iter::repeat_n(0, missing).chain(own).collect()
}

pub(crate) fn value(scalar: Scalar) -> Value {
    match scalar {
        Scalar::Bool(v) => Value::Int(i128::from(v)),
        Scalar::Int(v) => Value::Int(i128::from(v)),
        Scalar::UInt(v) => Value::Int(i128::from(v)),
        Scalar::Float(v) => Value::Float(v),
    }
}

/// The results, one column each, and what was found so far.
struct Columns {
    found: Vec<Vec<Value>>,
    priors: Vec<Option<Vec<Value>>>,
    done: Vec<Verified>,
}

impl Columns {
    fn new(call: &Call, request: &Request, outcome: &Outcome) -> Result<Columns, Error> {
        let values = |array: &Array| array.scalars().map(value).collect::<Vec<_>>();
        let mut priors = Vec::new();
        for (name, spec) in call.names.iter().zip(&call.spec.outputs) {
            let prior = request.prior.get(name).filter(|_| spec.beta != 0.0);
            priors.push(prior.map(values));
        }
        let bounds = call.product.parts.iter().flat_map(|p| p.results.clone().map(|_| p.reducer.error));
        let verified = |(name, bound): (&String, ErrorBound)| Verified {
            name: name.clone(),
            n_checked: 0,
            max_ulp: 0,
            worst: 0.0,
            bound: in_words(bound),
            refuted: None,
        };
        let done = call.names.iter().zip(bounds).map(verified).collect();
        Ok(Columns { found: outcome.results.iter().map(|r| values(&r.array)).collect(), priors, done })
    }

    /// Compares all results of one output.
    fn compare(&mut self, call: &Call, output: usize, row: Vec<(i64, Vec<Value>)>) {
        let parts = call.statistics.iter().zip(&call.product.parts);
        for ((statistic, part), init) in parts.zip(&call.inits) {
            let Statistic::Listed(entry) = statistic else { continue };
            let n = row.len() + usize::from(init.is_some());
            let own = coulis_reducers::Request {
                inputs: part.reducer.input_dtypes(),
                ..call.reducer_request.clone()
            };
            let read = |(at, e): &(i64, Vec<Value>)| (*at, e[..entry.n_inputs].to_vec());
            // An initial value is one more element, which has no position.
            let elements = row.iter().map(read).chain(init.map(|value| (-1, vec![value]))).collect();
            let exact = reference_at(entry, &own, elements);
            for (slot, result) in part.results.clone().enumerate() {
                let found = self.found[result][output];
                let prior = self.priors[result].as_ref().map(|p| p[output]);
                let spec = &call.spec.outputs[result];
                let verified = &mut self.done[result];
                verified.n_checked += 1;
                let judged = match &exact {
                    Ok(exact) => judge(found, &exact[slot], part.reducer.error, n, spec, prior),
                    Err(why) => Judged { why: Some((why.to_string(), 0.0)), ulp: 0, part: 0.0 },
                };
                verified.max_ulp = verified.max_ulp.max(judged.ulp);
                verified.worst = verified.worst.max(judged.part);
                if let (Some((exact, allowed)), None) = (judged.why, &verified.refuted) {
                    let found = in_text(found);
                    verified.refuted = Some(Refutation { output, found, exact, allowed });
                }
            }
        }
    }
}

/// What a comparison gives: why the result is wrong, its distance, and its error as a part of the allowed one.
struct Judged {
    why: Option<(String, f64)>,
    ulp: u64,
    part: f64,
}

fn judge(
    found: Value,
    exact: &Exact,
    bound: ErrorBound,
    n: usize,
    spec: &OutputSpec,
    prior: Option<Value>,
) -> Judged {
    let scaled = spec.alpha != 1.0 || prior.is_some();
    let mut allowed = tolerance(bound, exact, n);
    let mut want = exact.value;
    if scaled {
        let product = spec.alpha * want.as_f64();
        let added = prior.map_or(0.0, |p| spec.beta * p.as_f64());
        // Two products, a sum and the finish are each rounded to float64.
        allowed = allowed * spec.alpha.abs() + 4.0 * f64::EPSILON * (product.abs() + added.abs());
        want = Value::Float(product + added);
    }
    let ulp = ulp_distance(found, want, spec.dtype);
    let right = Judged { why: None, ulp, part: 0.0 };
    let wrong = |part| Judged { why: Some((in_text(want), allowed)), ulp, part };
    if same(found, want.cast(spec.dtype)) {
        return right;
    }
    let w = want.as_f64();
    if allowed == 0.0 || !w.is_finite() || found.is_nan() {
        return wrong(f64::INFINITY);
    }
    let ends = [w - allowed, w + allowed].map(|end| Value::Float(end).cast(spec.dtype).as_f64());
    let f = found.as_f64();
    let rounding = coulis_reducers::exact::rounding_error(w, spec.dtype);
    let part = (f - w).abs() / (allowed + rounding);
    if ends[0] <= f && f <= ends[1] { Judged { part: part.min(1.0), ..right } } else { wrong(part) }
}

/// Equal as results: all NaN are one, and so are both zeros.
fn same(a: Value, b: Value) -> bool {
    (a.is_nan() && b.is_nan())
        || match (a, b) {
            (Value::Int(x), Value::Int(y)) => x == y,
            (Value::Float(x), Value::Float(y)) => x == y,
            (Value::Int(_), Value::Float(_)) | (Value::Float(_), Value::Int(_)) => false,
        }
}

fn in_text(value: Value) -> String {
    match value {
        Value::Int(v) => v.to_string(),
        Value::Float(v) => format!("{v:e}"),
    }
}

fn in_words(bound: ErrorBound) -> String {
    let eps = |eps: f64| format!("2^{}", eps.log2());
    match bound {
        ErrorBound::Exact => "exact".to_owned(),
        ErrorBound::Terms { factor, eps: e } => format!("{factor} * {} * sum of magnitudes", eps(e)),
        ErrorBound::Relative { factor, eps: e } => format!("{factor} * {} * max(1, |exact|)", eps(e)),
        ErrorBound::Length { factor, eps: e } => format!("{factor} * n * {} * |exact|", eps(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coulis_ir::DType;

    fn spec(dtype: DType) -> OutputSpec {
        OutputSpec::plain(dtype)
    }

    #[test]
    fn a_result_within_the_bound_is_right_and_one_beyond_it_is_wrong() {
        let exact = Exact { value: Value::Float(1.0), scale: 1.0 };
        let bound = ErrorBound::Terms { factor: 2.0, eps: f64::EPSILON };
        let check = |found: f64, right: bool| {
            let judged = judge(Value::Float(found), &exact, bound, 1, &spec(DType::F64), None);
            assert_eq!(judged.why.is_none(), right, "{found:e}");
        };
        check(1.0, true);
        check(1.0 + 2.0 * f64::EPSILON, true);
        check(1.0 + 3.0 * f64::EPSILON, false);
        check(1.0 - 2.0 * f64::EPSILON, true);
        check(1.0 - 2.5 * f64::EPSILON, false);
        check(f64::NAN, false);
        check(f64::INFINITY, false);
    }

    #[test]
    fn an_exact_bound_takes_equal_values_alone() {
        let check = |found: Value, exact: Value, dtype, right: bool| {
            let exact = Exact { value: exact, scale: 0.0 };
            let judged = judge(found, &exact, ErrorBound::Exact, 3, &spec(dtype), None);
            assert_eq!(judged.why.is_none(), right, "{found:?} {exact:?}");
        };
        check(Value::Int(3), Value::Int(3), DType::I64, true);
        check(Value::Int(3), Value::Int(4), DType::I64, false);
        check(Value::Float(-0.0), Value::Float(0.0), DType::F32, true);
        check(Value::Float(f64::NAN), Value::Float(f64::NAN), DType::F32, true);
        check(Value::Float(f64::INFINITY), Value::Int(70_000), DType::F16, true);
    }

    #[test]
    fn alpha_and_the_prior_are_part_of_the_wanted_value() {
        let exact = Exact { value: Value::Int(10), scale: 0.0 };
        let output = OutputSpec { dtype: DType::F64, alpha: 0.5, beta: 2.0 };
        let check = |found: f64, right: bool| {
            let prior = Some(Value::Float(3.0));
            let judged = judge(Value::Float(found), &exact, ErrorBound::Exact, 4, &output, prior);
            assert_eq!(judged.why.is_none(), right, "{found}");
        };
        check(11.0, true);
        check(10.0, false);
    }
}
