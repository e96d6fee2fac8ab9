//! What consumers are to give: references in `float64` that know nothing of plans, reducers or kernels.

use coulis::{Array, Consume, DType, DeviceChoice, NanPolicy, Request};
use coulis_ir::eval::Value;

/// A call of a consumer.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: &'static str,
    pub axes: Vec<usize>,
    pub weight: Option<Array>,
    pub bias: Option<Array>,
    pub eps: Option<f64>,
    pub nan: NanPolicy,
    pub alpha: f64,
    pub prior: Option<Array>,
    pub out: Option<DType>,
    pub threads: usize,
}

impl Case {
    /// The consumer over these axes, everything else by default.
    pub fn new(name: &'static str, axes: &[usize]) -> Case {
        Case {
            name,
            axes: axes.to_vec(),
            weight: None,
            bias: None,
            eps: None,
            nan: NanPolicy::Propagate,
            alpha: 1.0,
            prior: None,
            out: None,
            threads: 2,
        }
    }

    fn beside(&self) -> Vec<(&'static str, &Array)> {
        let both = [("weight", &self.weight), ("bias", &self.bias)];
        both.into_iter().filter_map(|(name, array)| Some((name, array.as_ref()?))).collect()
    }

    /// The request of the case.
    pub fn request(&self, device: &DeviceChoice) -> Request {
        let names: Vec<&str> = self.beside().iter().map(|(name, _)| *name).collect();
        let mut consume = Consume::named(self.name).unwrap().beside(&names);
        if let Some(eps) = self.eps {
            consume = consume.with("eps", eps);
        }
        let axes: Vec<i64> = self.axes.iter().map(|a| *a as i64).collect();
        let mut request = Request::consuming(consume).over(&axes);
        request.device = device.clone();
        request.nan = self.nan;
        request.threads = Some(self.threads);
        if self.alpha != 1.0 {
            request.alpha.insert(String::new(), self.alpha);
        }
        if let Some(prior) = &self.prior {
            request.beta.insert(String::new(), 0.5);
            request.prior.insert(self.name.to_owned(), prior.clone());
        }
        if let Some(out) = self.out {
            request.out_dtypes.insert(String::new(), out);
        }
        request
    }

    /// Runs the case and compares every element. The error says which was wrong.
    pub fn check(&self, x: &Array, device: &DeviceChoice) -> Result<(), String> {
        let request = self.request(device);
        let inputs: Vec<Array> =
            [x].into_iter().chain(self.beside().iter().map(|(_, a)| *a)).cloned().collect();
        let outcome = coulis::reduce::run(&inputs, &request).map_err(|e| e.to_string())?;
        let found = &outcome.results[0].array;
        let float = if x.dtype().is_float() { x.dtype() } else { DType::F64 };
        let wanted = self.out.unwrap_or(float);
        if found.shape() != x.shape() || found.dtype() != wanted {
            return Err(format!("{} of shape {:?}", found.dtype(), found.shape()));
        }
        let found: Vec<f64> = values(found);
        let prior = self.prior.as_ref().map(values);
        for (at, (exact, allowed)) in self.exact(x).into_iter().enumerate() {
            let (mut want, mut allowed) = (self.alpha * exact, allowed * self.alpha.abs());
            if let Some(prior) = &prior {
                want += 0.5 * prior[at];
                allowed += 4.0 * f64::EPSILON * want.abs();
            }
            let ends = [want - allowed, want, want + allowed];
            let [low, middle, high] = ends.map(|v| Value::Float(v).cast(wanted).as_f64());
            let f = found[at];
            let same = f == middle || (f.is_nan() && middle.is_nan());
            let is_right = same || (low <= f && f <= high);
            if !is_right {
                return Err(format!(
                    "{} at {at}: {f:e}, wanted {want:e} +- {allowed:e}, on {} by {}:\n{}",
                    self.name, outcome.device, outcome.plan.name, outcome.plan.trace
                ));
            }
        }
        Ok(())
    }

    /// The exact results, row-major, and how far a result may be from each before it is rounded.
    fn exact(&self, x: &Array) -> Vec<(f64, f64)> {
        let shape = x.shape();
        let all = values(x);
        let mut results = vec![(f64::NAN, 0.0); all.len()];
        let reduced = |a: &usize| self.axes.contains(a);
        let kept: Vec<usize> = (0..shape.len()).filter(|a| !reduced(a)).collect();
        let mut rows: std::collections::BTreeMap<Vec<i64>, Vec<usize>> = Default::default();
        let index = |at: usize| {
            let mut rest = at as i64;
            let mut index: Vec<i64> = shape.iter().rev().map(|n| (rest % n, rest /= n).0).collect();
            index.reverse();
            index
        };
        for at in 0..all.len() {
            let index = index(at);
            rows.entry(kept.iter().map(|&a| index[a]).collect()).or_default().push(at);
        }
        let mut sorted = self.axes.clone();
        sorted.sort_unstable();
        let own = if self.name == "batch_norm" { &kept } else { &sorted };
        let beside = |array: &Option<Array>, at: usize, otherwise: f64| {
            array.as_ref().map_or(otherwise, |array| {
                let index = index(at);
                let place = own.iter().fold(0, |place, &a| place * shape[a] + index[a]);
                values(array)[place as usize]
            })
        };
        let row_of = Row::of(self, x.dtype());
        for places in rows.values() {
            let row: Vec<f64> = places.iter().map(|&at| all[at]).collect();
            for (&at, result) in places.iter().zip(row_of.map(&row)) {
                results[at] = match result {
                    Mapped::Whole(value, allowed) => (value, allowed),
                    Mapped::Scaled(value, scale, factor) => {
                        let (w, b) = (beside(&self.weight, at, 1.0), beside(&self.bias, at, 0.0));
                        (value * w + b, factor * (scale * w.abs() + b.abs()))
                    }
                };
            }
        }
        results
    }
}

pub fn values(array: &Array) -> Vec<f64> {
    array.scalars().map(|v| v.to_f64()).collect()
}

/// The map of one row.
struct Row {
    name: &'static str,
    eps: f64,
    ignore: bool,
    /// Distance from 1 to the next number of the type in which the map computes.
    unit: f64,
    /// Factor of a norm's bound.
    factor: f64,
}

enum Mapped {
    /// A result and what it may err by.
    Whole(f64, f64),
    /// A result before weight and bias, its scale, and the factor of its error.
    Scaled(f64, f64, f64),
}

impl Row {
    fn of(case: &Case, dtype: DType) -> Row {
        let narrow = dtype.is_float() && dtype != DType::F64;
        let unit = if narrow { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let factor = match (case.name, dtype) {
            ("rms_norm", _) | (_, DType::F32) => 56.0,
            (_, DType::F64) => 1024.0,
            _ if narrow => 296.0,
            _ => 1024.0,
        };
        let default = match (case.name, dtype) {
            ("rms_norm", DType::F8E4M3) => 0.125,
            ("rms_norm", DType::F8E5M2) => 0.25,
            ("rms_norm", DType::F16) => 2f64.powi(-10),
            ("rms_norm", DType::BF16) => 2f64.powi(-7),
            ("rms_norm", _) => unit,
            _ => 1e-5,
        };
        let ignore = case.nan == NanPolicy::Ignore;
        Row { name: case.name, eps: case.eps.unwrap_or(default), ignore, unit, factor }
    }

    fn map(&self, row: &[f64]) -> Vec<Mapped> {
        let in_fold: Vec<f64> = row.iter().copied().filter(|v| !(self.ignore && v.is_nan())).collect();
        let n = in_fold.len() as f64;
        match self.name {
            "softmax" | "log_softmax" => {
                let is_nan = in_fold.iter().any(|v| v.is_nan());
                let max = in_fold.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum = sum(in_fold.iter().map(|v| (v - max).exp()));
                let none = is_nan || max.is_infinite();
                let of = |&v: &f64| {
                    // The shift may be lower than the greatest element by 8.
                    let d = (v - max).abs() + 8.0;
                    let (value, scale) = match self.name {
                        "softmax" => ((v - max).exp() / sum, (v - max).exp() / sum * (1.0 + d / 20.0)),
                        _ => (v - max - sum.ln(), 1.0 + d / 16.0 + sum.ln() + 8.0),
                    };
                    let tiny = if self.unit > 1e-10 { 2f64.powi(-148) } else { 1e-322 };
                    let scale = if scale.is_finite() { scale } else { 0.0 };
                    Mapped::Whole(if none { f64::NAN } else { value }, 40.0 * self.unit * scale + tiny)
                };
                row.iter().map(of).collect()
            }
            "rms_norm" => {
                let square = sum(in_fold.iter().map(|v| v * v)) / n;
                let root = (square + self.eps).sqrt();
                let of = |&v: &f64| {
                    Mapped::Scaled(v / root, finite(v.abs() / root) + 1.0, self.factor * self.unit)
                };
                row.iter().map(of).collect()
            }
            _ => {
                let mean = sum(in_fold.iter().copied()) / n;
                let var = sum(in_fold.iter().map(|v| (v - mean) * (v - mean))) / n;
                let root = (var + self.eps).sqrt();
                let of = |&v: &f64| {
                    let scale = finite((v.abs() + mean.abs()) / root) + 1.0;
                    Mapped::Scaled((v - mean) / root, scale, self.factor * self.unit)
                };
                row.iter().map(of).collect()
            }
        }
    }
}

fn finite(v: f64) -> f64 {
    if v.is_finite() { v } else { 0.0 }
}

/// The sum, with what each addition rounds off.
fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut low) = (0.0f64, 0.0f64);
    for term in terms {
        let total = sum + term;
        let part = total - sum;
        low += (sum - (total - part)) + (term - part);
        sum = total;
    }
    if low.is_nan() { sum } else { sum + low }
}
