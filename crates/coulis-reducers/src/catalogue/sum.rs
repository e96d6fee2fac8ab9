//! Sum.

use coulis_ir::{BinaryOp, Reducer};

use crate::builder::Builder;
use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::answer::{Answer, of_sum, same};
use crate::shape::one_value;
use crate::shape::total::{Degree, Total, integral, sum_result};

/// Sum of the elements. Within `32 * eps * sum|x|` of the exact sum, `eps` being that of the accumulator.
pub static ENTRY: Entry = Entry {
    name: "sum",
    summary: "Sum of the elements.",
    details: "Integers are summed in `int64` (`uint64` for unsigned ones) and wrap. Floats of at most 32 bits are \
              summed in `float64` (those of at most 16 bits in runs of 16 in `float32`; `float32` on a CPU too, where no other statistic is asked for, and again \
              without runs where one leaves the range of `float32`), `float64` in two `float64` fields; the error is at most `32 * eps * sum|x|` for \
              any length, with `eps` of `float32` or `float64`, as long as no partial sum of `float64` elements \
              leaves the range of `float64`: then the result is infinite or NaN.",
    n_inputs: 1,
    empty: Empty::Value("0"),
    takes_init: true,
    takes_ddof: false,
    counts: false,
    make,
    exact,
    from_moments: Some(|m, r| m.total(m.sum, m.magnitude, r)),
    in_tiles: |input| Some(one_value::folded("sum", input, BinaryOp::Add, 0)),
};

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    let accumulator = integral("sum", request)?;
    let mut b = Builder::new("sum", request);
    let sum = Total::add(&mut b, "sum", &|b, dtype| b.element(0).cast(dtype), Degree::One, accumulator);
    Ok(b.finish(accumulator.error(), vec![("value", sum_result(request), sum.value())]))
}

fn exact(case: &Case) -> Answer {
    if case.sums_are_floats() { of_sum(&case.sum(0, same)) } else { case.wrapping(|x| x[0]) }
}
