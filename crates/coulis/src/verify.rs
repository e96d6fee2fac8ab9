//! Results against exact ones: what `reduce --verify` and benchmarks say and what tests ask.
//!
//! The reference reads elements one by one through shape and strides, knows nothing of plans and kernels, and
//! sums without any rounding ([`coulis_reducers::exact`]), or in 106 bits where a row is long. A result is
//! right if it is the rounding to the output type of some number within the reducer's bound of the exact one.
//! Source: contract N1, N2, N12.

mod moments;
mod reference;

use std::time::{Duration, Instant};

use coulis_io::Array;
use coulis_ir::eval::Value;
use coulis_ir::{DType, ErrorBound};
use coulis_plan::OutputSpec;
use coulis_reducers::exact::{Exact, tolerance, ulp_distance};

use crate::error::Error;
use crate::reduce::{Call, array_info, check};
use crate::request::{Outcome, Request};

use self::reference::Answers;
pub(crate) use self::reference::{LONG, Reference, broadcast_strides, value};

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
    /// difference; `u64::MAX` between a NaN and a number.
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
/// Errors: the request does not fit the arrays or the outcome; a statistic whose exact result is out of reach.
pub fn verify_outcome(inputs: &[Array], request: &Request, outcome: &Outcome) -> Result<VerifyReport, Error> {
    let infos: Vec<_> = inputs.iter().map(array_info).collect();
    let call = check(&infos, request)?;
    if call.prologue.is_some() {
        return Err(Error::unsupported("reduce/verify", "statistics of a prologue are not verified"));
    }
    if let Some(normalization) = &call.normalization {
        let message = format!("results of `{}` are not verified", normalization.name);
        return Err(Error::unsupported("normalize/verify", message));
    }
    let problem = &call.spec.problem;
    let n_outputs = usize::try_from(problem.n_outputs).unwrap_or(usize::MAX);
    let fits = outcome.results.len() == call.names.len()
        && outcome.results.iter().zip(&call.names).all(|(r, n)| r.name == *n && r.array.len() == n_outputs);
    if !fits {
        return Err(Error::user("reduce/verify", "the outcome is not one of this request"));
    }
    let reference = Reference::new(&call, inputs, request.where_.as_ref());
    let mut columns = Columns::new(&call, request, outcome)?;
    let start = Instant::now();
    let mut notes = Vec::new();
    for output in 0..n_outputs {
        if start.elapsed() > TIME_LIMIT {
            notes.push(format!("{output} of {n_outputs} outputs were compared in {TIME_LIMIT:?}"));
            break;
        }
        match reference.answers(output)? {
            Ok(answers) => columns.compare(&call, output, &answers),
            Err(why) => return Err(Error::unsupported("reduce/verify", why)),
        }
    }
    for (verified, n_open) in columns.done.iter().zip(&columns.n_open).filter(|(_, n_open)| **n_open > 0) {
        notes.push(format!(
            "{n_open} of {n_outputs} outputs of `{}` were not compared, since no error bound holds for their elements",
            verified.name
        ));
    }
    Ok(VerifyReport { results: columns.done, notes })
}

/// The results, one column each, and what was found so far.
struct Columns {
    found: Vec<Vec<Value>>,
    priors: Vec<Option<Vec<Value>>>,
    done: Vec<Verified>,
    /// Outputs for which nothing is promised, so that they are neither right nor wrong.
    n_open: Vec<usize>,
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
        let done: Vec<Verified> = call.names.iter().zip(bounds).map(verified).collect();
        let n_open = vec![0; done.len()];
        let found = outcome.results.iter().map(|r| values(&r.array)).collect();
        Ok(Columns { found, priors, done, n_open })
    }

    /// Compares all results of one output.
    fn compare(&mut self, call: &Call, output: usize, answers: &Answers) {
        for (part, (n, exact)) in call.product.parts.iter().zip(&answers.of) {
            for (slot, result) in part.results.clone().enumerate() {
                let found = self.found[result][output];
                let prior = self.priors[result].as_ref().map(|p| p[output]);
                let spec = &call.spec.outputs[result];
                let verified = &mut self.done[result];
                if matches!(exact, Ok(exact) if !exact[slot].is_bounded) {
                    self.n_open[result] += 1;
                    continue;
                }
                verified.n_checked += 1;
                let judged = match &exact {
                    Ok(exact) => judge(found, &exact[slot], part.reducer.error, *n, spec, prior),
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
pub(crate) struct Judged {
    /// The exact result in words, and the largest distance that is allowed.
    pub(crate) why: Option<(String, f64)>,
    ulp: u64,
    part: f64,
}

pub(crate) fn judge(
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
    if same(found, want.rounded(spec.dtype)) {
        return right;
    }
    let w = want.as_f64();
    if allowed == 0.0 || !w.is_finite() || found.is_nan() {
        return wrong(f64::INFINITY);
    }
    let ends = [w - allowed, w + allowed].map(|end| Value::Float(end).rounded(spec.dtype).as_f64());
    let f = found.as_f64();
    let rounding = coulis_reducers::exact::rounding_error(w, spec.dtype);
    let part = (f - w).abs() / (allowed + rounding);
    if ends[0] <= f && f <= ends[1] { Judged { part: part.min(1.0), ..right } } else { wrong(part) }
}

/// Whether a result is the rounding of a number at most `allowed` from the wanted one.
pub(crate) fn is_near(found: Value, want: f64, allowed: f64, dtype: DType) -> bool {
    let rounded = |v: f64| Value::Float(v).rounded(dtype);
    let [low, high] = [want - allowed, want + allowed].map(|end| rounded(end).as_f64());
    same(found, rounded(want)) || (low <= found.as_f64() && found.as_f64() <= high)
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

pub(crate) fn in_text(value: Value) -> String {
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

    fn spec(dtype: DType) -> OutputSpec {
        OutputSpec::plain(dtype)
    }

    #[test]
    fn a_result_within_the_bound_is_right_and_one_beyond_it_is_wrong() {
        let exact = Exact::new(Value::Float(1.0), 1.0);
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
            let exact = Exact::new(exact, 0.0);
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
        let exact = Exact::new(Value::Int(10), 0.0);
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
