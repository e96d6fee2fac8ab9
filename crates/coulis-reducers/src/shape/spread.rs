//! Variance by shifted data: the state is a count, a pivot `p` (some element), `sum(x - p)` and `sum((x - p)^2)`,
//! all sums in `float64`.
//!
//! A step divides nothing. Two states are brought to the better centred of their pivots, the one with the smaller
//! mean square, so that an outlier that happens to come first spoils only the run that it starts. Sums of
//! squares about an element are at most `1 + n` times those about the mean, and a chain of `L` additions errs
//! by at most `L` units, so a run of 4096 steps stays within `2^25 * 2^-53` of its exact variance, below a unit
//! of `float32`, and so does the whole. A plan that makes longer runs has `n * L * 2^-53` at the very worst, when a run
//! starts with an outlier; otherwise a small multiple of `L * 2^-53`. A constant row gives exactly 0, no row gives
//! less. Squares of differences above 1e154 overflow. Source: contract N12; T. F. Chan, G. H. Golub and R. J. LeVeque,
//! "Algorithms for computing the sample variance", 1983.

use coulis_ir::{BinaryOp, DType, ErrorBound, Expr, Intrinsic};

use crate::builder::{Builder, Slot};
use crate::entry::{ReducerError, Request};
use crate::shape::total::{EPS32, add_count, statistic};

/// Longest run of steps for which the bound is stated.
const RUN: u32 = 4096;

/// The variance of a state, `float64`, NaN where the count is at most ddof.
pub(crate) fn variance(op: &'static str, b: &mut Builder) -> Result<Expr, ReducerError> {
    statistic(op, b.request, 64)?;
    let float = |v: f64| Expr::float(v, DType::F64);
    let x = b.element(0).cast(DType::F64);
    // Zero, but NaN for NaN and for infinities, of which there is no variance.
    let no_deviation = Expr::binary(BinaryOp::Sub, x.clone(), x.clone());
    let count = add_count(b);
    let pivot = b.field("pivot", float(0.0), x);
    let dev = b.field("dev", float(0.0), no_deviation.clone());
    let devsq = b.field("devsq", float(0.0), no_deviation);
    let empty = count.left.clone().equal(Expr::constant(0, DType::I64));

    let (n, m) = (count.left.clone().cast(DType::F64), count.right.clone().cast(DType::F64));
    let right_is_centred = (&devsq.right * &n).lt(&devsq.left * &m);
    let take_right = empty.clone().or(right_is_centred);
    let p = Expr::select(take_right, pivot.right.clone(), pivot.left.clone());
    let (s, q) = about(&p, &n, &pivot.left, &dev.left, &devsq.left);
    let (t, r) = about(&p, &m, &pivot.right, &dev.right, &devsq.right);
    b.combine(&pivot, p);
    b.combine(&dev, &s + &t);
    b.combine(&devsq, &q + &r);

    let p = Expr::select(empty, pivot.right.clone(), pivot.left.clone());
    let d = &pivot.right - &p;
    step(b, &pivot, p);
    step(b, &dev, &dev.left + &d);
    step(b, &devsq, &devsq.left + &(&d * &d));

    let m2 = &devsq.left - &(&dev.left * &(&dev.left / &n));
    let m2 = Expr::select(m2.clone().lt(float(0.0)), float(0.0), m2);
    let overflown = Expr::call1(Intrinsic::IsInf, devsq.left.clone())
        .and(Expr::call1(Intrinsic::IsFinite, dev.left.clone()));
    let m2 = Expr::select(overflown, devsq.left.clone(), m2);
    let ddof = float(b.request.ddof);
    Ok(Expr::select(n.clone().gt(ddof.clone()), &m2 / &(&n - &ddof), float(f64::NAN)))
}

fn step(b: &mut Builder, slot: &Slot, expr: Expr) {
    b.step(slot, expr.clone());
    b.quick(slot, expr, RUN);
}

/// `sum(x - p)` and `sum((x - p)^2)` of `n` elements whose sums about `old` are `dev` and `devsq`.
fn about(p: &Expr, n: &Expr, old: &Expr, dev: &Expr, devsq: &Expr) -> (Expr, Expr) {
    let d = old - p;
    let shift = n * &d;
    let cross = &d * &(&(dev + dev) + &shift);
    (dev + &shift, devsq + &cross)
}

/// Bound of the error of a variance; the scale is the variance.
pub(crate) fn error(request: &Request) -> ErrorBound {
    let single = request.promoted().is_float() && !request.inputs.contains(&DType::F64);
    if single {
        ErrorBound::Terms { factor: 32.0, eps: EPS32 }
    } else {
        ErrorBound::Terms { factor: f64::from(RUN) * f64::from(RUN) * 2.0, eps: f64::EPSILON }
    }
}
