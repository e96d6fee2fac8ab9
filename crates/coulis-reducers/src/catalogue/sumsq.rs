//! Sum of squares.

use coulis_ir::Reducer;

use crate::builder::Builder;
use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::answer::{Answer, of_sum};
use crate::shape::total::{Degree, Total, integral, square, sum_result};

/// Sum of the squares of the elements, squared after widening.
pub static ENTRY: Entry = Entry {
    name: "sumsq",
    summary: "Sum of the squares of the elements.",
    details: "Elements are squared after widening. Accumulators as for `sum`; the error is at most `32 * eps` \
              times the result. Squares above 1e308 are infinite.",
    n_inputs: 1,
    empty: Empty::Value("0"),
    takes_init: false,
    takes_ddof: false,
    counts: false,
    make,
    exact,
    from_moments: Some(|m, r| m.total(m.squares, m.squares, r)),
    in_tiles: |_| None,
};

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    let accumulator = integral("sumsq", request)?;
    let mut b = Builder::new("sumsq", request);
    let sum = Total::add(&mut b, "sumsq", &square, Degree::Two, accumulator);
    Ok(b.finish(accumulator.error(), vec![("value", sum_result(request), sum.value())]))
}

fn exact(case: &Case) -> Answer {
    if case.sums_are_floats() {
        of_sum(&case.products(0, 0))
    } else {
        case.wrapping(|x| x[0].wrapping_mul(x[0]))
    }
}
