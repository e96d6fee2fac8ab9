//! Weighted mean.

use coulis_ir::{DType, Reducer};

use crate::builder::Builder;
use crate::entry::{Empty, Entry, ReducerError, Request};
use crate::exact::Case;
use crate::exact::answer::{Answer, float, same};
use crate::shape::total::{Total, statistic, statistic_result};

/// Weighted mean: `sum(x * w) / sum(w)`. Weights that sum to zero give what IEEE division gives.
pub static ENTRY: Entry = Entry {
    name: "wmean",
    summary: "Weighted mean: `sum(x * w) / sum(w)`, the second input being the weights.",
    details: "Both sums in `float64`. With `S = sum|w| / |sum w|` the error is at most \
              `32 * eps * (sum|x * w| / |sum w| + |result| * S)`. Weights that sum to zero give NaN or an infinity, \
              as the division does.",
    n_inputs: 2,
    empty: Empty::Value("NaN"),
    takes_init: false,
    takes_ddof: false,
    make,
    exact,
};

fn make(request: &Request) -> Result<Reducer, ReducerError> {
    let accumulator = statistic("wmean", request, 64)?;
    let mut b = Builder::new("wmean", request);
    let (x, w) = (b.element(0).cast(DType::F64), b.element(1).cast(DType::F64));
    let weighted = Total::add(&mut b, "dot", &x * &w, accumulator);
    let weight = Total::add(&mut b, "weight", w, accumulator);
    let mean = &weighted.value() / &weight.value();
    Ok(b.finish(accumulator.error(), vec![("value", statistic_result(request), mean)]))
}

fn exact(case: &Case) -> Answer {
    let (weighted, weight) = (case.products(0, 1), case.sum(1, same));
    let mean = (weighted.double() / weight.double()).value();
    let divisor = weight.value().abs();
    float(mean, weighted.magnitude() / divisor + mean.abs() * weight.magnitude() / divisor)
}
