//! Number of elements.

use coulis_ir::{DType, ErrorBound, Reducer};

use crate::builder::Builder;
use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::answer::{Answer, int};
use crate::exact::moments;
use crate::shape::total::add_count;

/// Number of elements that take part.
pub static ENTRY: Entry = Entry {
    name: "count",
    summary: "Number of elements that take part (`where`, NaN ignored).",
    details: "Exact.",
    n_inputs: 1,
    empty: Empty::Value("0"),
    takes_init: false,
    takes_ddof: false,
    counts: true,
    make,
    exact,
    from_moments: Some(|m, _| moments::int(m.n as i128)),
    in_tiles: |_| None,
};

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    let mut b = Builder::new("count", request);
    let count = add_count(&mut b);
    Ok(b.finish(ErrorBound::Exact, vec![("value", DType::I64, count.left)]))
}

fn exact(case: &Case) -> Answer {
    int(case.len() as i128)
}
