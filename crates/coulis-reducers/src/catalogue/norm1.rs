//! Sum of magnitudes.

use coulis_ir::Reducer;

use crate::builder::Builder;
use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::answer::{Answer, abs, of_sum};
use crate::shape::total::{Degree, Total, integral, magnitude, sum_result};

/// Sum of the magnitudes of the elements, taken after widening.
pub static ENTRY: Entry = Entry {
    name: "norm1",
    summary: "Sum of the magnitudes of the elements.",
    details: "Magnitudes are taken after widening. Accumulators as for `sum`; the error is at most `32 * eps` \
              times the result.",
    n_inputs: 1,
    empty: Empty::Value("0"),
    takes_init: false,
    takes_ddof: false,
    counts: false,
    make,
    exact,
    from_moments: Some(|m, r| m.total(m.magnitude, m.magnitude, r)),
    in_tiles: |_| None,
};

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    let accumulator = integral("norm1", request)?;
    let mut b = Builder::new("norm1", request);
    let term = |b: &Builder, dtype| magnitude(b.element(0), dtype);
    let sum = Total::add(&mut b, "norm1", &term, Degree::One, accumulator);
    Ok(b.finish(accumulator.error(), vec![("value", sum_result(request), sum.value())]))
}

fn exact(case: &Case) -> Answer {
    if case.sums_are_floats() { of_sum(&case.sum(0, abs)) } else { case.wrapping(|x| x[0].abs()) }
}
