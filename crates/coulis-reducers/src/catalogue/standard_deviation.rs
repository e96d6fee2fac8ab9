//! Standard deviation.

use coulis_ir::{Expr, Intrinsic, Reducer};

use crate::builder::Builder;
use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::answer::{self, Answer, relative};
use crate::exact::moments;
use crate::shape::spread::{error, variance};
use crate::shape::total::statistic_result;

/// Standard deviation: the root of the variance.
pub static ENTRY: Entry = Entry {
    name: "std",
    summary: "Standard deviation: the root of the variance.",
    details: "State and bound as for `var`, with which it shares its state; the root halves the relative error.",
    n_inputs: 1,
    empty: Empty::Value("NaN"),
    takes_init: false,
    takes_ddof: true,
    counts: false,
    make,
    exact,
    from_moments: Some(|m, r| moments::relative(m.variance(r).sqrt().value())),
    in_tiles: |_| None,
};

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    let mut b = Builder::new("std", request);
    let root = Expr::call1(Intrinsic::Sqrt, variance("std", &mut b)?);
    Ok(b.finish(error(request), vec![("value", statistic_result(request), root)]))
}

fn exact(case: &Case) -> Answer {
    relative(answer::variance(case).sqrt().value())
}
