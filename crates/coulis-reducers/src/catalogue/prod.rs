//! Product.
//!
//! A product of floats is a number of `float64` and how often it was scaled by `2^768`, which keeps its
//! magnitude within `2^-384` and `2^384`: the product of two of those is a normal number, which scaling
//! changes by no digit. Several elements are multiplied before that: few enough for their type, or, on machines whose
//! vectors are registers, as many as are of common magnitude, which a run notes beside its product; it is walked again,
//! with scaling, where one was not. So no order of multiplications overflows, and the result is as finite as the exact
//! one. Source: W. Kahan's counters of overflows and underflows, as in W. Kahan, "Lecture notes on the status of IEEE
//! standard 754", 1997.

use coulis_ir::{BinaryOp, DType, ErrorBound, Expr, Intrinsic, Reducer};

use crate::builder::Builder;
use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::answer::{Answer, int, relative};
use crate::shape::one_value;
use crate::shape::total::{Accumulator, EPS32, integral, sum_result};

/// Product of the elements. A `float64` product of `n` elements is within `n * 2^-52` of the exact one, relative.
pub static ENTRY: Entry = Entry {
    name: "prod",
    summary: "Product of the elements.",
    details: "Integers are multiplied in `int64` (`uint64` for unsigned ones) and wrap. Floats are multiplied in \
              `float64`: for inputs of at most 32 bits the relative error is at most `32 * 2^-23`, for `float64` at \
              most `n * 2^-52`. No partial product overflows: the result is infinite or zero only where the exact one is too \
              large or too small, or an element is. What is infinite in `float64` is so before `alpha` scales it.",
    n_inputs: 1,
    empty: Empty::Value("1"),
    takes_init: true,
    takes_ddof: false,
    counts: false,
    make,
    exact,
    from_moments: None,
    in_tiles: |input| Some(one_value::folded("prod", input, BinaryOp::Mul, 1)),
};

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    let accumulator = integral("prod", request)?;
    let mut b = Builder::new("prod", request);
    b.neutral(1.0);
    let term = b.element(0).cast(accumulator.dtype());
    let one = Expr::constant(1, accumulator.dtype());
    let (error, value) = match accumulator {
        Accumulator::Wrapping(_) => {
            let prod = b.field("prod", one, term);
            b.combine(&prod, &prod.left * &prod.right);
            (ErrorBound::Exact, prod.left)
        }
        Accumulator::Wider | Accumulator::Compensated => {
            let [term, scalings] = lifted(request, term);
            let prod = b.field("prod", one, term);
            let scale = b.field("scale", Expr::int_of(0, DType::I64), scalings);
            let [product, scalings] = scaled([&prod.left * &prod.right, &scale.left + &scale.right]);
            b.combine(&prod, product);
            b.combine(&scale, scalings);
            if let Some(run) = longest_run(request) {
                let product = b.run_field(&prod, power(0), b.element(0).cast(DType::F64));
                let count = b.run_field(&scale, Expr::int_of(0, DType::I64), Expr::int_of(0, DType::I64));
                b.run_step(&prod, &product.left * &product.right, run.steps);
                b.run_step(&scale, count.left.clone(), run.steps);
                if run.is_noted {
                    let needed = is_uncommon(&mut b);
                    let [next, scalings] = lifted(request, product.right);
                    let [again, counted] = scaled([&product.left * &next, &count.left + &scalings]);
                    b.rewalk(&prod, needed.clone(), power(0), again);
                    b.rewalk(&scale, needed, Expr::int_of(0, DType::I64), counted);
                }
                let folded = [product.left, count.left];
                let [run, of_run] = if run.is_noted { folded } else { scaled(folded) };
                let [product, scalings] = scaled([&prod.left * &run, &scale.left + &of_run]);
                b.close(&prod, product);
                b.close(&scale, scalings);
            }
            let error = match accumulator {
                Accumulator::Compensated => ErrorBound::Length { factor: 1.0, eps: f64::EPSILON },
                Accumulator::Wider | Accumulator::Wrapping(_) => {
                    ErrorBound::Terms { factor: 32.0, eps: EPS32 }
                }
            };
            (error, unscaled(&prod.left, &scale.left))
        }
    };
    Ok(b.finish(error, vec![("value", sum_result(request), value)]))
}

/// By what numbers are scaled, as a power of two.
const SCALE: i32 = 768;
/// Elements of a run whose magnitudes are noted, and powers of two that are common: a product of so many of these is within
/// `2^-384` and `2^384`.
const NOTED_STEPS: u32 = 8;
const COMMON: i32 = 48;

/// How many elements are multiplied before they are scaled.
struct Run {
    steps: u32,
    /// Whether the run notes their magnitudes.
    is_noted: bool,
}

/// The longest run whose product can be scaled once, or need not be where magnitudes are noted. It stays above `2^-768` and
/// below `2^768`, as `float16` is at least `2^-24`, and `float32` and `bfloat16` `2^-149` and below `2^128`, if it is not 0.
fn longest_run(request: &ReducerRequest) -> Option<Run> {
    // Threads that walk twice over what is in registers have no operations to save.
    let notes = !request.twice;
    let noted = Some(Run { steps: NOTED_STEPS, is_noted: true });
    match request.promoted() {
        DType::F16 | DType::F8E4M3 | DType::F8E5M2 => Some(Run { steps: 32, is_noted: false }),
        DType::F32 | DType::BF16 if notes => noted,
        DType::F32 | DType::BF16 => Some(Run { steps: 4, is_noted: false }),
        DType::F64 if notes => noted,
        DType::F64
        | DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64 => None,
    }
}

/// Has runs note the magnitudes of their elements; whether one of them is no common one and not 0.
fn is_uncommon(b: &mut Builder) -> Expr {
    let element = b.element(0);
    let float = |value: f64| Expr::float(value, element.dtype());
    let magnitude = Expr::call1(Intrinsic::Abs, element.clone());
    let but_zero = Expr::select(element.clone().equal(float(0.0)), float(1.0), magnitude.clone());
    let highest = b.note("highest", float(1.0), magnitude, |all, one| all.clone().max(one.clone()));
    let lowest = b.note("lowest", float(1.0), but_zero, |all, one| all.clone().min(one.clone()));
    highest.gt(float(2f64.powi(COMMON))).or(lowest.lt(float(2f64.powi(-COMMON))))
}

/// The state of one element, which was taken to `float64`: one scaling brings `2^1024` and `2^-1074` into the range.
fn lifted(request: &ReducerRequest, term: Expr) -> [Expr; 2] {
    let unscaled = [term, Expr::int_of(0, DType::I64)];
    if request.inputs.contains(&DType::F64) { scaled(unscaled) } else { unscaled }
}

fn power(exponent: i32) -> Expr {
    Expr::float(2f64.powi(exponent), DType::F64)
}

/// A number and how often it was scaled down, once more where its magnitude is above `2^384` and once less where it is below
/// `2^-384`. Zeros, infinities and NaN stay what they are.
fn scaled([number, scalings]: [Expr; 2]) -> [Expr; 2] {
    let magnitude = Expr::call1(Intrinsic::Abs, number.clone());
    let is_large = magnitude.clone().gt(power(SCALE / 2));
    let is_small = magnitude.lt(power(-SCALE / 2));
    let choose = |large: Expr, small: Expr, neither: Expr| {
        Expr::select(is_large.clone(), large, Expr::select(is_small.clone(), small, neither))
    };
    let count = |n: i128| Expr::int_of(n, DType::I64);
    let factor = choose(power(-SCALE), power(SCALE), power(0));
    [&number * &factor, scalings + choose(count(1), count(-1), count(0))]
}

/// The number itself. Two scalings leave the range of `float64` from anywhere, and only one of them rounds.
fn unscaled(number: &Expr, scalings: &Expr) -> Expr {
    let count = |n: i128| Expr::int_of(n, DType::I64);
    let at_least = |n: i128| {
        let down = Expr::select(scalings.clone().le(count(-n)), power(-SCALE), power(0));
        Expr::select(scalings.clone().ge(count(n)), power(SCALE), down)
    };
    (1..=2).fold(number.clone(), |value, n| &value * &at_least(n))
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
