//! Smallest element.

use coulis_ir::Reducer;

use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::answer::{self, Answer};
use crate::exact::moments;
use crate::shape::extremum::{End, extremum};
use crate::shape::one_value;

/// Smallest element. Exact.
pub static ENTRY: Entry = Entry {
    name: "min",
    summary: "Smallest element.",
    details: "Exact. NaN when any element is NaN; when NaN is ignored, NaN only for a row of nothing but NaN. \
              `-0.0` and `0.0` are equal and either may be the result.",
    n_inputs: 1,
    empty: Empty::Refused,
    takes_init: true,
    takes_ddof: false,
    counts: false,
    make,
    exact,
    from_moments: Some(|m, _| moments::exactly([m.least.value])),
    in_tiles: |input| one_value::extremum("min", input, End::Least),
};

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    Ok(extremum("min", request, End::Least, (|x| x, f64::INFINITY), request.inputs[0]))
}

fn exact(case: &Case) -> Answer {
    answer::extremum(case, End::Least, answer::same)
}
