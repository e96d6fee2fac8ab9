//! Largest element.

use coulis_ir::Reducer;

use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::answer::{self, Answer};
use crate::exact::moments;
use crate::shape::extremum::{End, extremum};
use crate::shape::one_value;

/// Largest element. Exact.
pub static ENTRY: Entry = Entry {
    name: "max",
    summary: "Largest element.",
    details: "Exact. NaN when any element is NaN; when NaN is ignored, NaN only for a row of nothing but NaN. \
              `-0.0` and `0.0` are equal and either may be the result.",
    n_inputs: 1,
    empty: Empty::Refused,
    takes_init: true,
    takes_ddof: false,
    counts: false,
    make,
    exact,
    from_moments: Some(|m, _| moments::exactly([m.greatest.value])),
    in_tiles: |input| one_value::extremum("max", input, End::Greatest),
};

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    Ok(extremum("max", request, End::Greatest, (|x| x, f64::NEG_INFINITY), request.inputs[0]))
}

fn exact(case: &Case) -> Answer {
    answer::extremum(case, End::Greatest, answer::same)
}
