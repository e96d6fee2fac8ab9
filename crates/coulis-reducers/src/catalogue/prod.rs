//! Product.

use coulis_ir::{ErrorBound, Expr, Reducer};

use crate::builder::Builder;
use crate::entry::{Empty, Entry, ReducerError, Request};
use crate::exact::Case;
use crate::exact::answer::{Answer, int, relative};
use crate::shape::total::{Accumulator, EPS32, integral, sum_result};

/// Product of the elements. A `float64` product of `n` elements is within `n * 2^-52` of the exact one, relative.
pub static ENTRY: Entry = Entry {
    name: "prod",
    summary: "Product of the elements.",
    details: "Integers are multiplied in `int64` (`uint64` for unsigned ones) and wrap. Floats are multiplied in \
              `float64`: for inputs of at most 32 bits the relative error is at most `32 * 2^-23`, for `float64` at \
              most `n * 2^-52`. A partial product outside the range of `float64` is infinite or zero, even where \
              the whole product is not.",
    n_inputs: 1,
    empty: Empty::Value("1"),
    takes_init: true,
    takes_ddof: false,
    counts: false,
    make,
    exact,
};

fn make(request: &Request) -> Result<Reducer, ReducerError> {
    let accumulator = integral("prod", request)?;
    let mut b = Builder::new("prod", request);
    let term = b.element(0).cast(accumulator.dtype());
    let prod = b.field("prod", Expr::constant(1, accumulator.dtype()), term);
    b.combine(&prod, &prod.left * &prod.right);
    let error = match accumulator {
        Accumulator::Wrapping(_) => ErrorBound::Exact,
        Accumulator::Wider => ErrorBound::Terms { factor: 32.0, eps: EPS32 },
        Accumulator::Compensated => ErrorBound::Length { factor: 1.0, eps: f64::EPSILON },
    };
    Ok(b.finish(error, vec![("value", sum_result(request), prod.left)]))
}

fn exact(case: &Case) -> Answer {
    if !case.sums_are_floats() {
        let ints = case.column(0).map(|v| v.as_int().unwrap_or(0));
        return int(case.wrap(ints.fold(1i128, i128::wrapping_mul)));
    }
    relative(float_product(case.column(0).map(|v| v.as_f64())))
}

/// The product with mantissas and exponents apart, so that no partial product overflows.
fn float_product(values: impl Iterator<Item = f64>) -> f64 {
    use crate::exact::Double;
    let (mut mantissa, mut exponent, mut plain) = (Double::from(1.0), 0i32, 1.0);
    for value in values {
        if value == 0.0 || !value.is_finite() {
            plain *= value;
            continue;
        }
        let (m, e) = split(value);
        mantissa = mantissa * Double::from(m);
        let (_, carried) = split(mantissa.high);
        mantissa = mantissa * Double::from(2f64.powi(-carried));
        exponent = exponent.saturating_add(e + carried);
    }
    if plain != 1.0 {
        return plain * mantissa.high;
    }
    let half = (exponent / 2).clamp(-1000, 1000);
    let rest = (exponent - half).clamp(-1070, 1020);
    mantissa.high * 2f64.powi(half) * 2f64.powi(rest)
}

/// A mantissa in [1, 2) with the sign, and the exponent, of a finite number that is not zero.
fn split(value: f64) -> (f64, i32) {
    if value.is_subnormal() {
        let (m, e) = split(value * 2f64.powi(64));
        return (m, e - 64);
    }
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    (value * 2f64.powi(-exponent / 2) * 2f64.powi(-exponent - (-exponent / 2)), exponent)
}
