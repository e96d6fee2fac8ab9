//! Euclidean norm.

use coulis_ir::{DType, Expr, Intrinsic, Reducer};

use crate::builder::Builder;
use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::answer::{Answer, relative};
use crate::exact::moments;
use crate::shape::total::{Degree, Total, square, statistic, statistic_result};

/// Root of the sum of squares.
pub static ENTRY: Entry = Entry {
    name: "norm2",
    summary: "Euclidean norm: the root of the sum of squares.",
    details: "The sum of squares in `float64` (of 8-bit integers in `int64`). The error is at most `32 * eps` \
              times the result. `float64` elements above 1e154 give an infinity; below 1e-154 their squares lose digits, and \
              below 1e-162 they are 0.",
    n_inputs: 1,
    empty: Empty::Value("0"),
    takes_init: false,
    takes_ddof: false,
    counts: false,
    make,
    exact,
    from_moments: Some(|m, _| moments::relative(m.sum_of_squares()?.sqrt().value())),
    in_tiles: |_| None,
};

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    let accumulator = statistic("norm2", request, 16 * request.inputs[0].bytes())?;
    let mut b = Builder::new("norm2", request);
    let sum = Total::add(&mut b, "sumsq", &square, Degree::Two, accumulator);
    let root = Expr::call1(Intrinsic::Sqrt, sum.value().cast(DType::F64));
    Ok(b.finish(accumulator.statistic_error(), vec![("value", statistic_result(request), root)]))
}

fn exact(case: &Case) -> Answer {
    relative(case.products(0, 0).double().sqrt().value())
}
