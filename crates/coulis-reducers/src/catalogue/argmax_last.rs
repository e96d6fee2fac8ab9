//! Position of the largest element, the last of equal ones.

use coulis_ir::{Reducer, Ties};

use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::answer::{self, Answer};
use crate::exact::moments;
use crate::shape::extremum::End;
use crate::shape::position::{Wanted, position};

/// Position of the largest element, the last of equal ones. Exact.
pub static ENTRY: Entry = Entry {
    name: "argmax_last",
    summary: "Position of the largest element, the last of equal ones.",
    details: "Exact, whatever the plan. Positions are row-major over the reduced axes taken ascending. NaN beats every \
              number, so the last NaN is found unless NaN is ignored; `-0.0` equals `0.0`.",
    n_inputs: 1,
    empty: Empty::Refused,
    takes_init: false,
    takes_ddof: false,
    counts: false,
    make,
    exact,
    from_moments: Some(|m, _| moments::int(m.greatest.last)),
    in_tiles: |_| None,
};

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    Ok(position("argmax_last", request, End::Greatest, Ties::Last, Wanted::Index))
}

fn exact(case: &Case) -> Answer {
    answer::position(case, End::Greatest, Ties::Last)
}
