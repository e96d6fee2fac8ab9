//! Logarithm of the sum of exponentials.

use coulis_ir::{DType, ErrorBound, Expr, Intrinsic, Reducer};

use crate::builder::Builder;
use crate::entry::{Empty, Entry, ReducerError, Request};
use crate::exact::Case;
use crate::exact::ExactSum;
use crate::exact::answer::{Answer, relative};
use crate::shape::total::{EPS32, statistic, statistic_result, two_sum};

/// `log(sum(exp(x)))` without overflow.
pub static ENTRY: Entry = Entry {
    name: "logsumexp",
    summary: "Logarithm of the sum of the exponentials of the elements.",
    details: "The state is a shift and `sum(exp(x - shift))`. The shift is moved only when an element exceeds it \
              by more than 8, so slowly rising rows are not rescaled at every element and rounding of the \
              rescaling does not pile up; exponentials never overflow. They are taken in `float32` for inputs of \
              at most 32 bits, else in `float64`, one an element; their sum is kept in `float64`. The error is at \
              most `16 * eps * max(1, |result|)`.",
    n_inputs: 1,
    empty: Empty::Value("-inf"),
    takes_init: false,
    takes_ddof: false,
    make,
    exact,
};

/// How far an element may exceed the shift before the shift moves. The error of an exponential's argument grows
/// with it, the number of rescalings falls.
const SLACK: i128 = 8;

fn make(request: &Request) -> Result<Reducer, ReducerError> {
    statistic("logsumexp", request, 64)?;
    let mut b = Builder::new("logsumexp", request);
    let dtype = request.promoted();
    let narrow = dtype.is_float() && dtype != DType::F64 && request.acc != Some(DType::F64);
    let compute = if narrow { DType::F32 } else { DType::F64 };
    let float = |v: i128| Expr::constant(v, DType::F64);
    let x = b.element(0).cast(compute);
    let shift = b.field("shift", Expr::float(f64::NEG_INFINITY, compute), x);
    let sum = b.field("expsum", float(0), float(1));

    // Equal shifts differ by 0, infinite ones too.
    let (old, new) = (&shift.left, &shift.right);
    let zero = Expr::constant(0, compute);
    let d = Expr::select(new.clone().equal(old.clone()), zero.clone(), new - old);
    let moves = d.clone().gt(Expr::constant(SLACK, compute));
    let exponent = Expr::select(moves.clone(), &zero - &d, d);
    let e = Expr::call1(Intrinsic::Exp, exponent);
    b.combine(&shift, Expr::select(moves.clone(), new.clone(), old.clone()));
    // One side keeps its scale. The choice is made before widening, where vectors are half as long.
    let one = Expr::constant(1, compute);
    let of_left = Expr::select(moves.clone(), e.clone(), one.clone()).cast(DType::F64);
    let of_right = Expr::select(moves, one, e).cast(DType::F64);
    let (scaled_left, scaled_right) = (&sum.left * &of_left, &sum.right * &of_right);
    let lifted = of_right.clone();

    let (total, error) = if narrow {
        b.combine(&sum, &scaled_left + &scaled_right);
        b.step(&sum, &scaled_left + &lifted);
        (sum.left, ErrorBound::Relative { factor: 16.0, eps: EPS32 })
    } else {
        let low = b.field("expsum_low", float(0), float(0));
        let (low_left, low_right) = (&low.left * &of_left, &low.right * &of_right);
        let (total, lost) = two_sum(&scaled_left, &scaled_right);
        b.combine(&sum, total);
        b.combine(&low, &(&low_left + &low_right) + &lost);
        let (total, lost) = two_sum(&scaled_left, &lifted);
        b.step(&sum, total);
        b.step(&low, &low_left + &lost);
        (&sum.left + &low.left, ErrorBound::Relative { factor: 16.0, eps: f64::EPSILON })
    };
    let result = &shift.left.cast(DType::F64) + &Expr::call1(Intrinsic::Log, total);
    Ok(b.finish(error, vec![("value", statistic_result(request), result)]))
}

fn exact(case: &Case) -> Answer {
    if case.column(0).any(|v| v.is_nan()) {
        return relative(f64::NAN);
    }
    let greatest = case.column(0).map(|v| v.as_f64()).fold(f64::NEG_INFINITY, f64::max);
    if greatest.is_infinite() {
        return relative(greatest);
    }
    let mut sum = ExactSum::new();
    case.column(0).for_each(|v| sum.add((v.as_f64() - greatest).exp()));
    relative(greatest + sum.value().ln())
}
