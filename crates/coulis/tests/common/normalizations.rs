//! What normalizations are to give: the exact results of the catalogue, which know nothing of plans, reducers or
//! kernels, within the bounds that it states.

use coulis::{Along, Array, DType, DeviceChoice, NanPolicy, Normalize, Request};
use coulis_ir::eval::Value;
use coulis_reducers::{NormalizationRequest, ReducerRequest, find_normalization};

/// A call of a normalization.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: &'static str,
    pub axes: Vec<usize>,
    /// Arrays beside the elements, by name.
    pub beside: Vec<(&'static str, Array)>,
    /// Numbers, by name.
    pub set: Vec<(&'static str, f64)>,
    pub nan: NanPolicy,
    /// Which elements take part, broadcast to the shape of the array.
    pub where_: Option<Array>,
    pub alpha: f64,
    pub prior: Option<Array>,
    pub out: Option<DType>,
    pub threads: usize,
    /// Trace of the plan, where it is not the planner's.
    pub plan: Option<String>,
}

impl Case {
    /// The normalization over these axes, everything else by default.
    pub fn new(name: &'static str, axes: &[usize]) -> Case {
        Case {
            name,
            axes: axes.to_vec(),
            beside: Vec::new(),
            set: Vec::new(),
            nan: NanPolicy::Propagate,
            where_: None,
            alpha: 1.0,
            prior: None,
            out: None,
            threads: 2,
            plan: None,
        }
    }

    /// The request of the case.
    pub fn request(&self, device: &DeviceChoice) -> Request {
        let names: Vec<&str> = self.beside.iter().map(|(name, _)| *name).collect();
        let normalize = Normalize::named(self.name).unwrap().beside(&names);
        let normalize =
            self.set.iter().fold(normalize, |normalize, (name, value)| normalize.with(name, *value));
        let axes: Vec<i64> = self.axes.iter().map(|a| *a as i64).collect();
        let mut request = Request::normalizing(normalize).over(&axes);
        request.device = device.clone();
        request.nan = self.nan;
        request.where_.clone_from(&self.where_);
        request.threads = Some(self.threads);
        request.plan.clone_from(&self.plan);
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
        let inputs: Vec<Array> = [x].into_iter().chain(self.beside.iter().map(|(_, a)| a)).cloned().collect();
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
            let f = found[at];
            if !is_right(f, (want, allowed), wanted) {
                return Err(format!(
                    "{} at {at}: {f:e}, wanted {want:e} +- {allowed:e}, on {} by {}:\n{}",
                    self.name, outcome.device, outcome.plan.name, outcome.plan.trace
                ));
            }
        }
        Ok(())
    }

    /// The exact results, row-major, and how far a result may be from each before it is rounded.
    pub fn exact(&self, x: &Array) -> Vec<(f64, f64)> {
        let shape = x.shape();
        let all = values(x);
        let axes = |is_kept: bool| (0..shape.len()).filter(move |a| self.axes.contains(a) != is_kept);
        let kept: Vec<usize> = axes(true).collect();
        let index = |at: usize| {
            let mut rest = at as i64;
            let mut index: Vec<i64> = shape.iter().rev().map(|n| (rest % n, rest /= n).0).collect();
            index.reverse();
            index
        };
        let mut rows: std::collections::BTreeMap<Vec<i64>, Vec<usize>> = Default::default();
        for at in 0..all.len() {
            let index = index(at);
            rows.entry(kept.iter().map(|&a| index[a]).collect()).or_default().push(at);
        }
        let entry = find_normalization(self.name).unwrap();
        let beside: Vec<(&str, Vec<f64>, Vec<usize>)> = self
            .beside
            .iter()
            .map(|(name, array)| {
                let own: Vec<usize> = match entry.beside.iter().find(|e| e.name == *name).unwrap().along {
                    Along::Reduced => axes(false).collect(),
                    Along::Kept => kept.clone(),
                    Along::All => (0..shape.len()).collect(),
                };
                (*name, values(array), own)
            })
            .collect();
        let fold = ReducerRequest { nan: self.nan, ..ReducerRequest::new(&[x.dtype()]) };
        let set = |(name, value): &(&str, f64)| ((*name).to_owned(), *value);
        let given = NormalizationRequest {
            fold,
            parameters: self.set.iter().map(set).collect(),
            beside: self.beside.iter().map(|(name, array)| ((*name).to_owned(), array.dtype())).collect(),
            wide: false,
            result: None,
        };
        let bound = entry.build(&given).unwrap().bound.unwrap();
        // The scale of the error, of the same numbers in `float64`.
        let resolved = entry.parameters.iter();
        let resolved = resolved.map(|p| (p.name.to_owned(), given.parameter(entry.parameters, p.name)));
        let in_float64 = NormalizationRequest {
            fold: ReducerRequest { nan: self.nan, ..ReducerRequest::new(&[DType::F64]) },
            parameters: resolved.collect(),
            beside: self.beside.iter().map(|(name, _)| ((*name).to_owned(), DType::F64)).collect(),
            wide: false,
            result: None,
        };
        let in_float64 = entry.build(&in_float64).unwrap();
        // What variances err by at the very worst, these rows do not reach.
        let factor = bound.factor.min(1024.0) * bound.eps;
        let tiny = if bound.eps > 1e-10 { 2f64.powi(-148) } else { 1e-322 };
        let mask = self.where_.as_ref().map(|mask| (mask.shape(), values(mask)));
        let takes_part = |at: usize| {
            mask.as_ref().is_none_or(|(own, flags)| {
                let index = index(at);
                let along = own.iter().zip(&index[index.len() - own.len()..]);
                let place = along.fold(0, |place, (n, i)| place * n + if *n == 1 { 0 } else { *i });
                flags[place as usize] != 0.0
            })
        };
        let mut results = vec![(f64::NAN, 0.0); all.len()];
        for places in rows.values() {
            let row: Vec<f64> = places.iter().map(|&at| all[at]).collect();
            let beside: Vec<(&str, Vec<f64>)> = beside
                .iter()
                .map(|(name, values, own)| {
                    let of = |&at: &usize| {
                        let index = index(at);
                        values[own.iter().fold(0, |place, &a| place * shape[a] + index[a]) as usize]
                    };
                    (*name, places.iter().map(of).collect())
                })
                .collect();
            let takes_part = |position: usize| takes_part(places[position]);
            let exact = entry.reference(&given, &row, &beside, &takes_part);
            let float = |values: &[f64]| values.iter().map(|v| Value::Float(*v)).collect::<Vec<Value>>();
            let of_beside: Vec<Vec<Value>> = beside.iter().map(|(_, values)| float(values)).collect();
            let scales = in_float64.evaluate(&float(&row), &of_beside, &takes_part).unwrap();
            for ((&at, exact), (_, scale)) in places.iter().zip(exact).zip(scales) {
                results[at] = (exact, factor * if scale.is_finite() { scale } else { 0.0 } + tiny);
            }
        }
        results
    }
}

/// Whether a result of that type is within so much of what is wanted, each rounded to the type.
pub fn is_right(found: f64, (want, allowed): (f64, f64), dtype: DType) -> bool {
    let ends = [want - allowed, want, want + allowed];
    let [low, middle, high] = ends.map(|v| Value::Float(v).cast(dtype).as_f64());
    found == middle || (found.is_nan() && middle.is_nan()) || (low <= found && found <= high)
}

pub fn values(array: &Array) -> Vec<f64> {
    array.scalars().map(|v| v.to_f64()).collect()
}
