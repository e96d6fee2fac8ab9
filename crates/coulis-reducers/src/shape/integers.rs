//! Spread of integers of at most 16 bits, from exact sums of elements and of their squares.
//!
//! The state has the fields of `mean` and `meansq`, with which it shares them; two states are brought
//! together by additions. The sum of squares about the integer `p` next to the mean is `q - p (s + (s - n
//! p))`, of a sum `s`, a sum of squares `q` and a count `n`. It is at least the sum of magnitudes of
//! deviations, which is at least that of deviations `d`, at most `n / 2`: what `d^2 / n` takes off it is at
//! most one half, and no digits cancel. All of it but that quotient is exact in `float64` for up to 2^37
//! elements, with sums of squares of 16-bit elements in the two fields of a compensated sum.

use coulis_ir::{DType, Expr, Intrinsic};

use crate::builder::{Builder, Slot};
use crate::entry::{ReducerError, ReducerRequest};
use crate::shape::total::{Degree, Total, add_count, fma, negative, square, statistic};

/// Whether elements are integers whose sums of squares are exact in this state.
pub(crate) fn are_narrow(request: &ReducerRequest) -> bool {
    request.inputs.iter().all(|d| !d.is_float() && d.bytes() <= 2)
}

/// Number of elements, and the sum of their squared deviations from the mean, `float64`: not negative, NaN of no elements.
pub(crate) fn deviations(op: &'static str, b: &mut Builder) -> Result<(Slot, Expr), ReducerError> {
    let bits = 8 * b.request.inputs[0].bytes();
    let [of_elements, of_squares] = [bits, 2 * bits].map(|bits| statistic(op, &exactly(b.request), bits));
    let sum = Total::add(b, "sum", &|b, dtype| b.element(0).cast(dtype), Degree::One, of_elements?);
    let squares = Total::add(b, "sumsq", &square, Degree::Two, of_squares?);
    let count = add_count(b);
    let (n, total) = (count.left.clone().cast(DType::F64), sum.value().cast(DType::F64));
    let pivot = Expr::call1(Intrinsic::Nearbyint, &total / &n);
    let dev = fma(&negative(&n), &pivot, &total);
    let about_pivot = squares.less(&pivot, &(&total + &dev));
    let m2 = &about_pivot - &(&dev * &(&dev / &n));
    Ok((count, m2))
}

/// The request for the accumulators of contract N4, which hold these sums better than any that could be asked for.
fn exactly(request: &ReducerRequest) -> ReducerRequest {
    ReducerRequest { acc: None, ..request.clone() }
}
