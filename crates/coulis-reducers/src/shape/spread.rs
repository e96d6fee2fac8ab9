//! Variance by shifted data: the state is a count, a pivot `p` (some element), `sum(x - p)` and `sum((x - p)^2)`,
//! all sums in `float64`.
//!
//! A step divides nothing. Two states are brought to the better centred of their pivots, the one with the
//! smaller mean square, so that an outlier that happens to come first spoils only the run that it starts.
//! Sums of squares about an element are at most `1 + n` times those about the mean, and a chain of `L`
//! additions errs by at most `L` units, so a run of 4096 steps stays within `2^25 * 2^-53` of its exact
//! variance, below a unit of `float32`, and so does the whole. A plan that makes longer runs has `n * L *
//! 2^-53` at the very worst, when a run starts with an outlier; otherwise a small multiple of `L * 2^-53`. A
//! constant row gives exactly 0, no row gives less. Squares of differences above 1e154 overflow, which gives
//! an infinity: that elements are finite is known by the sum of deviations, which is kept in units of which
//! `float64` holds any sum ([`Units`]). Elements of at most 16 bits may run in `float32` for 16 steps, or in
//! four chains of 16, about the first of them, which holds to `512 * 2^-23` ([`error`]). Squares of `bfloat16` leave the
//! range of `float32`; a run where they do is walked again with its deviations rescaled ([`walk_again`]), or
//! given up ([`give_up`]). Pivots of 64-bit integers
//! stay integers, which `float64` does not hold all of; only differences are rounded.
//!
//! Runs of elements of at most 32 bits keep `sum(x)` in place of `sum(x - p)`, for which other statistics have a use.
//! With `m` the largest magnitude, the sum is exact while all elements but zeros are above `2^-17 m`, or `2^-7 m` of
//! 16-bit elements in `float32`. Where it is not, there are deviations of about `m / 2`, and the chain's error of at most
//! `L^2 / 2` units of `m` is far below the bounds. Source: contract N12; T. F. Chan, G. H. Golub and R. J. LeVeque,
//! "Algorithms for computing the sample variance", 1983.

use coulis_ir::{BinaryOp, DType, ErrorBound, Expr, Intrinsic};

use crate::builder::{Builder, Slot};
use crate::entry::{ReducerError, ReducerRequest};
use crate::shape::integers;
use crate::shape::total::{EPS32, add_count, chains, fma, headroom, negative, scaled, statistic};

/// Longest run of steps for which the bound is stated.
const RUN: u32 = 4096;
/// The same where a run is kept in `float32`.
const SHORT_RUN: u32 = 16;
/// The variance of a state, `float64`, NaN where the count is at most ddof.
pub(crate) fn variance(op: &'static str, b: &mut Builder) -> Result<Expr, ReducerError> {
    statistic(op, b.request, 64)?;
    let float = |v: f64| Expr::float(v, DType::F64);
    if integers::are_narrow(b.request) {
        let (count, m2) = integers::deviations(op, b)?;
        return Ok(over_degrees_of_freedom(b.request, &count, m2));
    }
    let x = b.element(0).cast(DType::F64);
    // Zero, but NaN for NaN and for infinities, of which there is no variance.
    let no_deviation = Expr::binary(BinaryOp::Sub, x.clone(), x.clone());
    let count = add_count(b);
    let own = b.element(0);
    let centre = if is_wide(own.dtype()) { own } else { x };
    let pivot = b.field("pivot", Expr::constant(0, centre.dtype()), centre);
    let dev = b.field("dev", float(0.0), no_deviation.clone());
    let devsq = b.field("devsq", float(0.0), no_deviation);
    let units = Units::of(b.request);
    let moments = |count: &Expr, pivot: &Expr, dev: &Expr, devsq: &Expr| Moments {
        count: count.clone(),
        n: count.clone().cast(DType::F64),
        pivot: if is_wide(pivot.dtype()) { pivot.clone() } else { pivot.clone().cast(DType::F64) },
        dev: dev.clone().cast(DType::F64),
        devsq: devsq.clone().cast(DType::F64),
        units,
    };
    let left = moments(&count.left, &pivot.left, &dev.left, &devsq.left);
    let right = moments(&count.right, &pivot.right, &dev.right, &devsq.right);
    let (dtype, steps, closing) = if is_short(b.request) {
        (DType::F32, SHORT_RUN, Closing::AboutTheFirst)
    } else {
        (DType::F64, RUN, Closing::AboutTheCentred)
    };
    let [p, s, q] = left.merged(&right, closing);
    b.combine(&pivot, p);
    b.combine(&dev, s);
    b.combine(&devsq, q);

    let [p, s, q] = stepped(&count, &pivot, &dev, &devsq, units);
    b.step(&pivot, p);
    b.step(&dev, s);
    b.step(&devsq, q);

    let sums = sums_are_exact(b.request);
    if sums {
        run_with_sum(b, [&pivot, &dev, &devsq], dtype, steps);
    } else {
        run_with_deviations(b, [&pivot, &dev, &devsq], steps, units);
    }
    let mut squares = b.closed(&devsq);
    if sums && are_rescaled(b.request) && !b.request.one_by_one {
        squares = unscaled(&squares);
    }
    let mut run = moments(&b.closed(&count), &b.closed(&pivot), &b.closed(&dev), &squares);
    if sums {
        let divisor = divisor(b.request);
        let of_deviations = if are_given_up(b.request) { 1.0 } else { divisor };
        run.pivot = scaled(run.pivot, of_deviations);
        run.devsq = scaled(run.devsq, of_deviations * of_deviations);
        // The sum less that of as many pivots.
        run.dev = fma(&negative(&run.n), &run.pivot, &scaled(run.dev, divisor));
    }
    let [p, s, q] = left.merged(&run, closing);
    b.close(&pivot, p);
    b.close(&dev, s);
    b.close(&devsq, q);

    let sum = scaled(dev.left.clone(), 1.0 / units.sum);
    let m2 = &devsq.left - &(&sum * &(&sum / &left.n));
    let m2 = Expr::select(m2.clone().lt(float(0.0)), float(0.0), m2);
    let is_finite = |e: &Expr| Expr::call1(Intrinsic::IsFinite, e.clone());
    let overflown = is_finite(&dev.left).and(is_finite(&devsq.left).logical_not());
    let m2 = Expr::select(overflown, float(f64::INFINITY), m2);
    Ok(over_degrees_of_freedom(b.request, &count, scaled(m2, 1.0 / (units.deviation * units.deviation))))
}

/// The variance of a sum of squared deviations from the mean: over the count less ddof, NaN where that is not positive.
fn over_degrees_of_freedom(request: &ReducerRequest, count: &Slot, m2: Expr) -> Expr {
    let float = |v: f64| Expr::float(v, DType::F64);
    let (n, ddof) = (count.left.clone().cast(DType::F64), float(request.ddof));
    Expr::select(n.clone().gt(ddof.clone()), &m2 / &(&n - &ddof), float(f64::NAN))
}

/// Runs keep the sum of elements in place of that of deviations, which follows from it. They are about their first
/// element, or about 0 where that is not finite, so that only a NaN makes the sum of squares NaN.
fn run_with_sum(b: &mut Builder, [pivot, dev, devsq]: [&Slot; 3], dtype: DType, steps: u32) {
    let whole = b.element(0).cast(dtype);
    let x = scaled(whole.clone(), 1.0 / divisor(b.request));
    let zero = Expr::constant(0, dtype);
    let squares = squares(b.request, dtype);
    let no_square = Expr::constant(0, squares);
    let (mut about, mut square) = (x.clone(), no_square.clone());
    if are_given_up(b.request) {
        // No sum of squares about what is not finite is finite, that of itself neither, and the run is given up.
        (about, square) = (whole.clone(), Expr::binary(BinaryOp::Sub, whole.clone(), whole.clone()));
        b.nan_witness(devsq);
    } else if b.request.has_float() {
        let is_finite = Expr::call1(Intrinsic::IsFinite, x.clone());
        about = Expr::select(is_finite.clone(), x.clone(), zero.clone());
        square = Expr::select(is_finite, no_square.clone(), (&x * &x).cast(squares));
        b.nan_witness(devsq);
    }
    let p = b.run_field(pivot, zero.clone(), about);
    let s = b.run_field(dev, zero, x);
    let q = b.run_field(devsq, no_square, square);
    let deviating = if are_given_up(b.request) { &p.right } else { &s.right };
    let d = (deviating - &p.left).cast(squares);
    let chains = if is_short(b.request) { chains(b.request) } else { 1 };
    b.chained_step(pivot, p.left.clone(), steps, chains);
    b.chained_step(dev, &s.left + &s.right, steps, chains);
    b.chained_step(devsq, fma(&d, &d, &q.left), steps, chains);
    if are_given_up(b.request) {
        give_up(b, devsq, [&p, &q]);
    } else if are_rescaled(b.request) {
        let is_large_enough = q.left.clone().ge(float32(LEAST));
        let is_apart = Expr::call1(Intrinsic::Abs, p.left.clone()).ge(float32(APART));
        let is_finite = q.left.clone().le(float32(f64::from(f32::MAX)));
        let needed = is_large_enough.or(is_apart).and(is_finite).logical_not();
        walk_again(b, devsq, needed, [&p, &s, &q]);
    }
}

/// A number of runs of short floats.
fn float32(value: f64) -> Expr {
    Expr::float(value, DType::F32)
}

/// Has a run be given up whose sum `q` of squared deviations may be wrong: where it is neither finite and at least
/// [`LEAST_OF_CHAINS`], nor about a pivot of at least [`APART`], unless all its elements are the pivot: then 0 is right. A second
/// walk tells, since many a row is of zeros, which few steps of states are worth. An infinity marks what is to be given up.
///
/// Elements, pivot and deviations are multiples of `2^-133`, and not divided: a deviation that is not finite is seen in `q`.
fn give_up(b: &mut Builder, devsq: &Slot, [p, q]: [&Slot; 2]) {
    let sum = q.left.clone();
    let is_large_enough = |sum: &Expr| sum.clone().ge(float32(LEAST_OF_CHAINS));
    let is_finite = |sum: &Expr| sum.clone().le(float32(f64::from(f32::MAX)));
    let is_apart = Expr::call1(Intrinsic::Abs, p.left.clone()).ge(float32(APART));
    let needed = is_large_enough(&sum).or(is_apart).and(is_finite(&sum)).logical_not();
    let marked = Expr::select(is_large_enough(&sum), sum.clone(), float32(f64::NEG_INFINITY));
    let marked = Expr::select(p.right.clone().equal(p.left.clone()), sum.clone(), marked);
    b.rewalk(devsq, needed, sum.clone(), marked);
    let is_right = sum.clone().ge(float32(0.0)).and(is_finite(&sum));
    b.gives_up(is_right.logical_not());
}

/// Has a run be walked again whose sum `q` of squared deviations in `float32` may be wrong: where it is
/// neither finite and at least [`LEAST`], nor about a pivot of at least [`APART`]. The second sum is
/// negative, of deviations times [`SCALE`] where `q` was small, and divided by it, with [`LARGE`] added,
/// where `q` was too large.
///
/// Elements and pivot are `bfloat16` over 16, so below `2^124`, and multiples of `2^-137`. What `float32`
/// rounds a sum is one half unit of it, or `2^-150` where that is more; a deviation and 16 steps are within
/// half of the bound stated above, and the rest of this is within the other half, an eighth for each 16 steps
/// that err by `2^-18` of the sum.
///
/// - `q` is kept if it is at least `2^-126`: 16 roundings by `2^-150` are `2^-20` of it. Or if the pivot is at least
///   `2^-50`: then another element differs by `2^-58` or more, its square is `2^-116` or more, and `q` is 0 of a
///   constant run alone.
/// - Small: all squares together are below `2^-126` and a little, so below 1.1 once multiplied by `2^126`. Deviations times
///   `2^63` are multiples of `2^-74`, squares of `2^-148`, which `float32` holds down to there: nothing is lost.
/// - Large: the exact sum is above `2^128` less a few units, so above 3.9 once divided by `2^126`; it stays below
///   `2^128`, since 15 squares below `(2^125 * (1 - 2^-8))^2` are below `2^254 * 0.94`. Adding 3 at most doubles the
///   roundings. A sum below -2
///   thus is of divided deviations from its first step to its last, and no other ever gets there.
/// - Infinite elements stay infinite in both, about a pivot that is finite, and NaN stays NaN.
fn walk_again(b: &mut Builder, devsq: &Slot, needed: Expr, [p, s, q]: [&Slot; 3]) {
    let sum = q.left.clone();
    let kept = Expr::select(sum.clone().ge(float32(LEAST)), sum.clone(), float32(0.0));
    let overflows = sum.clone().gt(float32(f64::from(f32::MAX)));
    let start = Expr::select(overflows, float32(-LARGE), kept);
    let scale = Expr::select(is_large(&sum), float32(1.0 / SCALE), float32(SCALE));
    // The other way round than in the first walk, so that no machine keeps all deviations of a run for the second.
    let d = &(&p.left - &s.right) * &scale;
    let less = fma(&negative(&d), &d, &sum);
    b.rewalk(devsq, needed, start, Expr::select(sum.clone().gt(float32(0.0)), sum, less));
}

/// By what deviations are multiplied, or divided, where their squares would leave `float32`.
const SCALE: f64 = (1u64 << 63) as f64;
/// What is added to the sum of squares of divided deviations, so that it tells itself from that of multiplied ones.
const LARGE: f64 = 3.0;
/// The smallest sum of squares that roundings below the normal numbers of `float32` leave be.
const LEAST: f64 = f32::MIN_POSITIVE as f64;
/// The same of four chains, 64 of whose roundings by `2^-150` are a sixteenth of a half unit of it.
const LEAST_OF_CHAINS: f64 = 1.0 / (1u128 << 116) as f64;
/// A pivot from which other elements are so far apart that their squares are no smaller than that.
const APART: f64 = 1.0 / (1u64 << 50) as f64;

/// Whether the sum of squares of a second walk is of divided deviations.
fn is_large(q: &Expr) -> Expr {
    q.clone().lt(float32(-2.0))
}

/// The sum of squares of a run in `float64`, that of rescaled deviations too: a number of `float32` and the
/// power of two that it is to be multiplied by. NaN is none of the negative ones and stays.
fn unscaled(q: &Expr) -> Expr {
    let square = SCALE * SCALE;
    let small = Expr::select(q.clone().lt(float32(0.0)), float32(-1.0 / square), float32(1.0));
    let by = Expr::select(is_large(q), float32(square), small);
    let number = Expr::select(is_large(q), &float32(-LARGE) - q, q.clone());
    &number.cast(DType::F64) * &by.cast(DType::F64)
}

/// Whether runs sum squares in `float32` of elements whose squares it does not reach, which a second walk rescales.
fn are_rescaled(request: &ReducerRequest) -> bool {
    is_short(request) && divisor(request) != 1.0
}

/// The same where such runs are given up instead, so that their pivots and deviations are those of elements as they are.
fn are_given_up(request: &ReducerRequest) -> bool {
    are_rescaled(request) && request.one_by_one
}

/// The type in which runs of that type sum squares.
fn squares(request: &ReducerRequest, dtype: DType) -> DType {
    if divisor(request) == 1.0 || are_rescaled(request) { dtype } else { DType::F64 }
}

/// What runs divide elements by, so that their sum and deviations stay finite; their squares may not.
fn divisor(request: &ReducerRequest) -> f64 {
    if is_short(request) { headroom(request) } else { 1.0 }
}

/// Runs keep what states do, and leave the pivot be.
fn run_with_deviations(b: &mut Builder, [p, s, q]: [&Slot; 3], steps: u32, units: Units) {
    let d = units.deviation(&p.right, &p.left);
    b.run_step(p, p.left.clone(), steps);
    b.run_step(s, units.added(&s.left, &d), steps);
    b.run_step(q, fma(&d, &d, &q.left), steps);
}

/// Whether runs may keep the sum of elements, which other statistics share: whether it is exact in the run's type
/// unless elements differ by so many magnitudes that their squared deviations dwarf its rounding.
fn sums_are_exact(request: &ReducerRequest) -> bool {
    request.inputs.iter().all(|d| d.bytes() <= 4)
}

/// Whether elements have at most 16 bits, so that deviations and their squares may run in `float32`.
fn is_short(request: &ReducerRequest) -> bool {
    request.acc.is_none() && request.inputs.iter().all(|d| d.is_float() && d.bytes() <= 2)
}

/// Pivot, sum of deviations and sum of squares after one more element.
fn stepped(count: &Slot, pivot: &Slot, dev: &Slot, devsq: &Slot, units: Units) -> [Expr; 3] {
    let empty = count.left.clone().equal(Expr::constant(0, count.left.dtype()));
    let p = Expr::select(empty, pivot.right.clone(), pivot.left.clone());
    let d = units.deviation(&pivot.right, &p);
    [p, units.added(&dev.left, &d), &devsq.left + &(&d * &d)]
}

/// Powers of two by which deviations, and on top of that their sum, are multiplied in the state. Of finite
/// `float64` elements all deviations and all sums of less than `2^63` of them are finite then, so that a sum
/// is infinite or NaN where an element is and nowhere else. No digit changes but of numbers whose squares are
/// 0. For other elements both are 1, as nothing overflows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Units {
    deviation: f64,
    sum: f64,
}

impl Units {
    fn of(request: &ReducerRequest) -> Units {
        if request.inputs.contains(&DType::F64) {
            Units { deviation: 0.5, sum: 1.0 / 2f64.powi(64) }
        } else {
            Units { deviation: 1.0, sum: 1.0 }
        }
    }

    /// What two elements differ by. The multiplication is part of the subtraction, and that of the second is
    /// the same for all elements of a run.
    fn deviation(self, a: &Expr, b: &Expr) -> Expr {
        if self.deviation == 1.0 {
            return difference(a, b);
        }
        fma(a, &Expr::float(self.deviation, a.dtype()), &scaled(b.clone(), -self.deviation))
    }

    /// A sum of deviations and one more.
    fn added(self, sum: &Expr, d: &Expr) -> Expr {
        if self.sum == 1.0 { sum + d } else { fma(d, &Expr::float(self.sum, d.dtype()), sum) }
    }
}

/// Whether `float64` does not hold all values of the type.
pub(crate) fn is_wide(dtype: DType) -> bool {
    dtype.is_int() && dtype.bytes() == 8
}

/// `a - b` in floats, rounded once. 64-bit integers are taken apart, since their difference may not fit into one of them.
pub(crate) fn difference(a: &Expr, b: &Expr) -> Expr {
    let ty = a.dtype();
    if !is_wide(ty) {
        return a - b;
    }
    let half = |x: &Expr, op, by: i128| Expr::binary(op, x.clone(), Expr::int_of(by, ty)).cast(DType::I64);
    let high = half(a, BinaryOp::Shr, 32) - half(b, BinaryOp::Shr, 32);
    let low = half(a, BinaryOp::BitAnd, 0xffff_ffff) - half(b, BinaryOp::BitAnd, 0xffff_ffff);
    let float = |x: Expr| x.cast(DType::F64);
    fma(&float(high), &Expr::float(4_294_967_296.0, DType::F64), &float(low))
}

/// Whose pivot two states are brought to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    /// That of the state with the smaller mean square.
    AboutTheCentred,
    /// That of the first, unless it is empty: for 16-bit elements, where sums about any element, in `float64`, are more
    /// than precise enough, and states are brought together without waiting for each other.
    AboutTheFirst,
}

/// A state, in `float64`.
struct Moments {
    /// The number of elements as it is kept.
    count: Expr,
    n: Expr,
    pivot: Expr,
    dev: Expr,
    devsq: Expr,
    units: Units,
}

impl Moments {
    /// Pivot, sum of deviations and sum of squares of both.
    fn merged(&self, other: &Moments, closing: Closing) -> [Expr; 3] {
        let empty = self.count.clone().equal(Expr::constant(0, self.count.dtype()));
        match closing {
            Closing::AboutTheCentred => {
                let other_is_centred = (&other.devsq * &self.n).lt(&self.devsq * &other.n);
                let p = Expr::select(empty.or(other_is_centred), other.pivot.clone(), self.pivot.clone());
                let ((s, q), (t, r)) = (self.about(&p), other.about(&p));
                [p, &s + &t, &q + &r]
            }
            Closing::AboutTheFirst => {
                let p = Expr::select(empty, other.pivot.clone(), self.pivot.clone());
                let (t, r) = other.about(&p);
                [p, &self.dev + &t, &self.devsq + &r]
            }
        }
    }

    /// Sums of deviations and their squares about `p`.
    fn about(&self, p: &Expr) -> (Expr, Expr) {
        let d = self.units.deviation(&self.pivot, p);
        let dev = fma(&self.n, &scaled(d.clone(), self.units.sum), &self.dev);
        let devsq = fma(&d, &scaled(&self.dev + &dev, 1.0 / self.units.sum), &self.devsq);
        (dev, devsq)
    }
}

/// Bound of the error of a variance; the scale is the variance.
pub(crate) fn error(request: &ReducerRequest) -> ErrorBound {
    if integers::are_narrow(request) {
        // A quotient, its product and the difference err by a unit of `float64` together, of twice the
        // result; one quotient more.
        return ErrorBound::Terms { factor: 4.0, eps: f64::EPSILON };
    }
    if is_short(request) {
        // A square is rounded as often as it is added to, the k-th of a chain of 16 in 17 - k additions and 2 of chains, and
        // twice for its deviation: by 21 - k half units, which are 800 of a run of four chains. In units of the sum about the
        // mean, of which the weighted sum about an element is at most as many as all weights and the largest of them together,
        // that is 820 half units, or 410 units. Deviations whose sum is not exact leave less than 100 more: as many roundings
        // as elements that are smaller by far than another, and chains, of sums of at most 64 of the largest.
        return ErrorBound::Terms { factor: 512.0, eps: EPS32 };
    }
    let single = request.promoted().is_float() && !request.inputs.contains(&DType::F64);
    if single {
        ErrorBound::Terms { factor: 32.0, eps: EPS32 }
    } else {
        ErrorBound::Terms { factor: f64::from(RUN) * f64::from(RUN) * 2.0, eps: f64::EPSILON }
    }
}
