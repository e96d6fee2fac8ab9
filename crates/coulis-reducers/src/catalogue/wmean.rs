//! Weighted mean.

use coulis_ir::eval::Value;
use coulis_ir::{ErrorBound, Reducer};

use crate::builder::Builder;
use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::answer::{Answer, same};
use crate::exact::{Case, Exact};
use crate::shape::total::{Accumulator, Degree, Total, statistic, statistic_result};

/// Weighted mean: `sum(x * w) / sum(w)`. Where the sum of the weights comes out as zero, it is what IEEE division gives.
pub static ENTRY: Entry = Entry {
    name: "wmean",
    summary: "Weighted mean: `sum(x * w) / sum(w)`, the second input being the weights.",
    details: "Both sums in `float64`. With `S = sum|w| / |sum w|` the error is at most \
              `32 * eps * (sum|x * w| / |sum w| + |result| * S)` where `32 * eps * S` is at most 1/2. Beyond that the \
              weights cancel, and what is left of their sum may be rounding alone: nothing is promised then, and \
              `--verify` says how many such outputs it left out. Weights whose sum comes out as zero give NaN or an \
              infinity, as the division does. Inputs of two types give the type that both promote to, as those of `dot` do; \
              integers and bools give `float64`.",
    n_inputs: 2,
    empty: Empty::Value("NaN"),
    takes_init: false,
    takes_ddof: false,
    counts: false,
    make,
    exact,
    from_moments: None,
    in_tiles: |_| None,
};

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    let accumulator = statistic("wmean", request, 64)?;
    let mut b = Builder::new("wmean", request);
    let weight = |b: &Builder, dtype| b.element(1).cast(dtype);
    let product = |b: &Builder, dtype| b.element(0).cast(dtype) * weight(b, dtype);
    let weighted = Total::add(&mut b, "dot", &product, Degree::Two, accumulator);
    let weight = Total::add(&mut b, "weight", &weight, Degree::One, accumulator);
    let mean = &weighted.value() / &weight.value();
    Ok(b.finish(accumulator.error(), vec![("value", statistic_result(request), mean)]))
}

fn exact(case: &Case) -> Answer {
    let (weighted, weight) = (case.products(0, 1), case.sum(1, same));
    let mean = weighted.over(weight.double()).value();
    let divisor = weight.value().abs();
    let spread = weight.magnitude() / divisor;
    let scale = weighted.magnitude() / divisor + mean.abs() * spread;
    // The sum of the weights is as far off as its own bound says, and dividing by it keeps the bound while that is a part of it.
    let sum_is_off = match statistic("wmean", case.request, 64).map(Accumulator::error) {
        Ok(ErrorBound::Terms { factor, eps }) => factor * eps * spread,
        Ok(ErrorBound::Exact | ErrorBound::Relative { .. } | ErrorBound::Length { .. }) | Err(_) => 0.0,
    };
    // It is NaN where an element is, or where all weights are zero: then the result is NaN in any order.
    let is_bounded = sum_is_off.is_nan() || sum_is_off <= 0.5;
    Ok(vec![Exact { is_bounded, ..Exact::new(Value::Float(mean), scale) }])
}
