//! Smallest element and its position, the first of equal ones.

use coulis_ir::eval::Value;
use coulis_ir::{Reducer, Ties};

use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::answer::{self, Answer};
use crate::exact::moments;
use crate::shape::extremum::End;
use crate::shape::position::{Wanted, position};

/// Smallest element and its position, the first of equal ones. Exact.
pub static ENTRY: Entry = Entry {
    name: "minloc",
    summary: "Smallest element and its position, the first of equal ones.",
    details: "Exact, whatever the plan. Positions are row-major over the reduced axes taken ascending. NaN beats every \
              number, so the first NaN is found unless NaN is ignored; `-0.0` equals `0.0`.",
    n_inputs: 1,
    empty: Empty::Refused,
    takes_init: false,
    takes_ddof: false,
    counts: false,
    make,
    exact,
    from_moments: Some(|m, _| moments::exactly([m.least.value, Value::Int(m.least.first.into())])),
    in_tiles: |_| None,
};

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    Ok(position("minloc", request, End::Least, Ties::First, Wanted::ValueAndIndex))
}

fn exact(case: &Case) -> Answer {
    answer::located(case, End::Least, Ties::First)
}
