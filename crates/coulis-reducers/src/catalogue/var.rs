//! Variance.

use coulis_ir::Reducer;

use crate::builder::Builder;
use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::answer::{self, Answer, relative};
use crate::exact::moments;
use crate::shape::spread::{error, variance};
use crate::shape::total::statistic_result;

/// Variance: the sum of squared deviations from the mean, over the count less ddof.
pub static ENTRY: Entry = Entry {
    name: "var",
    summary: "Variance: squared deviations from the mean, over the count less `ddof`.",
    details: "Computed from sums about one of the elements, in `float64`; never negative, 0 for a constant row, NaN \
              where the count is at most `ddof` or an element is infinite. Floats of at most 16 bits may run in \
              `float32`, in up to four chains of 16 elements: the relative error is at most `512 * 2^-23`. For `float32` it is at most `32 * 2^-23`; for integers of at most 16 bits, \
              whose sums are exact, `4 * 2^-52`; for others `2^25 * 2^-52` at worst, which takes an outlier \
              at the beginning of a run of 4096, and commonly a few units of `float64`. Deviations below 1e-153 have \
              squares that lose digits, and below 1e-161 squares of 0; of `float64` elements that differ by more than 1e154 the \
              variance is infinite.",
    n_inputs: 1,
    empty: Empty::Value("NaN"),
    takes_init: false,
    takes_ddof: true,
    counts: false,
    make,
    exact,
    from_moments: Some(|m, r| moments::relative(m.variance(r).value())),
    in_tiles: |_| None,
};

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    let mut b = Builder::new("var", request);
    let variance = variance("var", &mut b)?;
    Ok(b.finish(error(request), vec![("value", statistic_result(request), variance)]))
}

fn exact(case: &Case) -> Answer {
    relative(answer::variance(case).value())
}
