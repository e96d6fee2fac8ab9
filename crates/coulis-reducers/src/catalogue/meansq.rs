//! Mean of squares.

use coulis_ir::Reducer;

use crate::builder::Builder;
use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::Double;
use crate::exact::answer::{Answer, relative};
use crate::exact::moments;
use crate::shape::total::{Degree, Total, add_count, square, statistic, statistic_result};

/// Mean of the squares of the elements.
pub static ENTRY: Entry = Entry {
    name: "meansq",
    summary: "Mean of the squares of the elements.",
    details: "The sum of squares in `float64` (of 8-bit integers in `int64`) over the count. The error is at most \
              `32 * eps` times the result.",
    n_inputs: 1,
    empty: Empty::Value("NaN"),
    takes_init: false,
    takes_ddof: false,
    counts: false,
    make,
    exact,
    from_moments: Some(|m, _| moments::relative((m.sum_of_squares()? / m.count()).value())),
    in_tiles: |_| None,
};

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    let accumulator = statistic("meansq", request, 16 * request.inputs[0].bytes())?;
    let mut b = Builder::new("meansq", request);
    let sum = Total::add(&mut b, "sumsq", &square, Degree::Two, accumulator);
    let count = add_count(&mut b);
    Ok(b.finish(
        accumulator.statistic_error(),
        vec![("value", statistic_result(request), sum.over(&count.left))],
    ))
}

fn exact(case: &Case) -> Answer {
    relative((case.products(0, 0).double() / Double::from(case.len() as f64)).value())
}
