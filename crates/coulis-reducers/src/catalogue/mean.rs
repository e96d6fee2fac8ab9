//! Arithmetic mean.

use coulis_ir::Reducer;

use crate::builder::Builder;
use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::answer::{Answer, from_sum, same};
use crate::exact::moments;
use crate::shape::total::{Degree, Total, add_count, statistic, statistic_result};

/// Mean of the elements. Within `32 * eps * sum|x| / n` of the exact mean.
pub static ENTRY: Entry = Entry {
    name: "mean",
    summary: "Arithmetic mean of the elements.",
    details: "The sum in `float64` (of integers of at most 16 bits in `int64`, the field that `sum` has) over the \
              count. The error is at most `32 * eps * sum|x| / n`. A `float16` mean does not overflow where the \
              sum would; one of `float64` elements does where a partial sum does.",
    n_inputs: 1,
    empty: Empty::Value("NaN"),
    takes_init: false,
    takes_ddof: false,
    counts: false,
    make,
    exact,
    from_moments: Some(|m, _| {
        let scale = m.magnitude.double().value() / m.n as f64;
        moments::from_sum(m.magnitude, (m.sum.double() / m.count()).value(), scale)
    }),
    in_tiles: |_| None,
};

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    let accumulator = statistic("mean", request, 8 * request.inputs[0].bytes())?;
    let mut b = Builder::new("mean", request);
    let sum = Total::add(&mut b, "sum", &|b, dtype| b.element(0).cast(dtype), Degree::One, accumulator);
    let count = add_count(&mut b);
    Ok(b.finish(
        accumulator.statistic_error(),
        vec![("value", statistic_result(request), sum.over(&count.left))],
    ))
}

fn exact(case: &Case) -> Answer {
    let sum = case.sum(0, same);
    let n = case.len() as f64;
    from_sum(&sum, sum.over(n.into()).value(), sum.magnitude_over(n))
}
