//! Logarithm of the sum of exponentials.

use coulis_ir::math::{EXP_CAP, EXP_FLOOR_F32, EXP_FLOOR_F64};
use coulis_ir::{DType, ErrorBound, Expr, Field, Intrinsic, Lambda, Reducer};

use crate::builder::{Builder, Slot};
use crate::catalogue::sum;
use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::ExactSum;
use crate::exact::answer::{Answer, relative};
use crate::exact::moments;
use crate::shape::extremum::End;
use crate::shape::spread::{difference, is_wide};
use crate::shape::total::{CHAINS, EPS32, compensated, statistic, statistic_result, two_sum};

/// `log(sum(exp(x)))` without overflow.
pub static ENTRY: Entry = Entry {
    name: "logsumexp",
    summary: "Logarithm of the sum of the exponentials of the elements.",
    details: "The state is a shift and `sum(exp(x - shift))`. The shift is moved only when an element, \
              the greatest of a run or the shift of another part of the row exceeds it by more than 2, so slowly rising rows are not rescaled \
              at every element and rounding of the rescaling does not pile up; exponentials never overflow. They are taken in `float32` for inputs of \
              at most 32 bits, else in `float64`, one an element; their sum is kept in `float64`, in runs of 16 \
              in `float32` where exponentials are, or of 8 in `float64`, which are walked twice. The error is at most `16 * eps * max(1, |result|)`, with `eps` of \
              `float64`, or `32 * eps * max(1, |result|)` with that of `float32`.",
    n_inputs: 1,
    empty: Empty::Value("-inf"),
    takes_init: false,
    takes_ddof: false,
    counts: false,
    make,
    exact,
    from_moments: Some(|m, _| moments::relative(m.greatest.value.as_f64() + m.exponentials.value().ln())),
    in_tiles: |_| None,
};

/// How far an element, the greatest of a run, or the shift of a state that is brought together with another may exceed the
/// shift before that moves. What a move scales down counts less than a seventh, so that roundings of moves do not
/// pile up. It counts once more for each time that states are brought together, so that elements exceed the
/// shift of a whole row by a few times as much: by 30 after 14 times, as threads of a cluster of blocks do, while
/// exponentials in `float32` are finite up to 88.
const SLACK: i128 = 2;
/// Longest run in `float32`. The exponential of an element errs by 2 units and, as its argument may be 2, by
/// one more; that of a move as well, and what it scales down counts less than a seventh; the run's additions
/// err by 15 half units. This is below 12 units, and the lanes' sums are brought together with 6 more.
const RUN: u32 = 16;
/// The same in `float64`, whose additions err by 7 half units of the 16 units that are stated.
const RUN_OF_DOUBLES: u32 = 8;

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    let (reducer, shift, total) = shift_and_sum(request)?;
    // Beside what exponentials in `float32` err by, their logarithm in it is nothing, and rows may be short.
    let dtype = if shift.dtype() == DType::F32 { DType::F32 } else { DType::F64 };
    let result = &shift.cast(dtype) + &Expr::call1(Intrinsic::Log, total.cast(dtype));
    let finish = Lambda { body: vec![result], ..reducer.finish };
    let results = vec![Field { name: "value".to_owned(), dtype: statistic_result(request) }];
    Ok(Reducer { finish, results, ..reducer })
}

/// The fold without its end: a shift in the type of the exponentials, or of elements that are integers of 64
/// bits, and `sum(exp(x - shift))` in `float64`, both over the parameters of the reducer's `finish`, which gives
/// just these. No element exceeds the shift by more than a few times [`SLACK`].
pub(crate) fn shift_and_sum(request: &ReducerRequest) -> Result<(Reducer, Expr, Expr), ReducerError> {
    statistic("logsumexp", request, 64)?;
    let mut b = Builder::new("logsumexp", request);
    let dtype = request.promoted();
    let narrow = dtype.is_float() && dtype != DType::F64 && request.acc != Some(DType::F64);
    let compute = if narrow { DType::F32 } else { DType::F64 };
    let float = |v: i128| Expr::constant(v, DType::F64);
    let own = b.element(0);
    // `float64` does not hold all integers of 64 bits; a shift of these is one, and only differences are rounded.
    let (least, x) = match own.dtype().int_range() {
        Some((least, _)) if is_wide(own.dtype()) => (Expr::int_of(least, own.dtype()), own),
        _ => (Expr::float(f64::NEG_INFINITY, compute), own.cast(compute)),
    };
    let shift = b.field("shift", least, x);
    let sum = b.field("expsum", float(0), float(1));

    let Joined { moves, of_left, of_right } = join(&shift.left, &shift.right);
    b.combine(&shift, Expr::select(moves, shift.right.clone(), shift.left.clone()));
    let [of_left, of_right] = [of_left, of_right].map(|scale| scale.cast(DType::F64));
    let (scaled_left, scaled_right) = (&sum.left * &of_left, &sum.right * &of_right);
    let lifted = of_right.clone();

    // Its exponential is 0, whatever the shift: the sum of a state of nothing else vanishes beside that of
    // any other, and tells as little by itself as that of no element.
    b.neutral(f64::NEG_INFINITY);

    let (total, error) = if narrow {
        b.combine(&sum, &scaled_left + &scaled_right);
        b.step(&sum, &scaled_left + &lifted);
        run_twice(&mut b, &shift, &sum, None);
        (sum.left, ErrorBound::Relative { factor: 32.0, eps: EPS32 })
    } else {
        let low = b.field("expsum_low", float(0), float(0));
        let (low_left, low_right) = (&low.left * &of_left, &low.right * &of_right);
        let (total, lost) = two_sum(&scaled_left, &scaled_right);
        b.combine(&sum, total);
        b.combine(&low, &(&low_left + &low_right) + &lost);
        let (total, lost) = two_sum(&scaled_left, &lifted);
        b.step(&sum, total);
        b.step(&low, &low_left + &lost);
        if !is_wide(shift.left.dtype()) {
            run_twice(&mut b, &shift, &sum, Some(&low));
        }
        (compensated(&sum.left, &low.left), ErrorBound::Relative { factor: 16.0, eps: f64::EPSILON })
    };
    let shift = shift.left;
    let results = vec![("shift", shift.dtype(), shift.clone()), ("expsum", DType::F64, total.clone())];
    Ok((b.finish(error, results), shift, total))
}

/// Two shifts brought together. One side keeps its scale.
struct Joined {
    /// Whether the right shift is taken.
    moves: Expr,
    /// By what the left side's sum is multiplied.
    of_left: Expr,
    /// By what the right side's sum is multiplied.
    of_right: Expr,
}

/// Factors are chosen in the type of floats that are shifts, before widening, where vectors are half as long.
fn join(old: &Expr, new: &Expr) -> Joined {
    let apart = difference(new, old);
    let dtype = apart.dtype();
    let (zero, one) = (Expr::constant(0, dtype), Expr::constant(1, dtype));
    // Equal shifts differ by 0, infinite ones too.
    let d = Expr::select(new.clone().equal(old.clone()), zero.clone(), apart);
    let moves = d.clone().gt(Expr::constant(SLACK, dtype));
    let exponent = Expr::select(moves.clone(), &zero - &d, d);
    let e = Expr::call1(Intrinsic::Exp, exponent);
    Joined {
        of_left: Expr::select(moves.clone(), e.clone(), one.clone()),
        of_right: Expr::select(moves.clone(), one, e),
        moves,
    }
}

/// What no sum of a run is greater than but one with an element of +inf: others are of [`RUN`] exponentials of [`SLACK`] at most.
const MOST_OF_RUN: f64 = 1e6;

/// The exponential of how far an element exceeds a shift: by a few times [`SLACK`], or of +inf, in place of which stands
/// [`EXP_CAP`], since a CPU needs fewer operations where it knows that.
pub(crate) fn capped_exp(apart: &Expr) -> Expr {
    Expr::call1(Intrinsic::Exp, capped(apart))
}

fn capped(apart: &Expr) -> Expr {
    // In this order a NaN stays.
    Expr::float(EXP_CAP, apart.dtype()).min(apart.clone())
}

/// The same for what is added to a total of which one is a part: of what is far below it the least that CPUs take no longer for
/// than for others, in place of less or nothing, as [`without_floors`] takes away where there is no such part.
pub(crate) fn bounded_exp(apart: &Expr) -> Expr {
    let dtype = apart.dtype();
    let floor = if dtype == DType::F64 { EXP_FLOOR_F64 } else { EXP_FLOOR_F32.into() };
    Expr::call1(Intrinsic::Exp, Expr::float(floor, dtype).max(capped(apart)))
}

/// The sum of a run, nothing where all its elements are that far below its shift: nothing but -inf, or much less than the state has.
fn without_floors(sum: &Expr) -> Expr {
    /// More than so many of the least ones, and far below one.
    const LEAST: (f64, f64) = (1e-30, 1e-290);
    let least = if sum.dtype() == DType::F64 { LEAST.1 } else { LEAST.0 };
    let zero = Expr::constant(0, sum.dtype());
    Expr::select(sum.clone().lt(Expr::float(least, sum.dtype())), zero, sum.clone())
}

/// Runs find their greatest element first, then sum exponentials about a shift that does for all of them: the
/// state's, or the greatest where that exceeds it. The shift of a run is finite, so that no difference is NaN but that of a NaN.
/// Its sum tells an element of +inf, and then the state's shift is +inf, as steps leave it: beside a state
/// of that shift a sum about any other counts 0 times, which an infinite one must not. Runs are kept in
/// the type of the exponentials; with `low`, what their additions to the state round off is kept there.
///
/// On machines with threads exponentials in `float32` are powers of two of products with `1 / ln 2`, as such
/// a machine has that power as a single operation; others have it as a function that is slower than `exp`.
/// For each unit of an argument the product adds 0.6 units, and the difference before it half a unit; and
/// arguments count as little as their exponentials do: for `n` elements less than `ln n` on average, where
/// many are that far below the greatest. With 2 units of the power, 8 of a run's additions and 6 of the lanes
/// that leaves 16, which roundings of more elements than some millions reach only if all are as bad as can be
/// and of one sign. Of narrow elements, several of which come with each word, subnormal powers count as
/// zeros, which saves such a machine three operations of each: in the total, whose shift is some element,
/// they stand next to that element's 1.
fn run_twice(b: &mut Builder, shift: &Slot, sum: &Slot, low: Option<&Slot>) {
    let dtype = shift.left.dtype();
    let float = |v: f64| Expr::float(v, dtype);
    let (x, one) = (b.element(0).cast(dtype), float(1.0));
    let of_run = b.run_field(shift, float(f64::NEG_INFINITY), x);
    let run_sum = b.run_field(sum, float(0.0), one);
    let is_single = dtype == DType::F32;
    let run = if is_single { RUN } else { RUN_OF_DOUBLES };
    // A NaN reaches the sum in the second walk; the greatest may hold it or not, whichever the machine is quicker at.
    let keeps_nan = b.request.twice && is_single;
    b.run_step(shift, End::Greatest.of_any(&of_run.left, &of_run.right, keeps_nan), run);
    b.run_step(sum, run_sum.left.clone(), run);
    let moved = of_run.left.clone().gt(&shift.left + &Expr::constant(SLACK, dtype));
    let chosen = Expr::select(moved, of_run.left.clone(), shift.left.clone());
    let most = if is_single { f64::from(f32::MAX) } else { f64::MAX };
    let finite = chosen.min(float(most)).max(float(-most));
    let apart = &of_run.right - &of_run.left;
    let on_cpu = !b.request.twice;
    let e = if on_cpu {
        bounded_exp(&apart)
    } else if is_single {
        let power = if are_narrow(b.request) { Intrinsic::Exp2Ftz } else { Intrinsic::Exp2 };
        Expr::call1(power, &apart * &float(std::f64::consts::LOG2_E))
    } else {
        Expr::call1(Intrinsic::Exp, apart)
    };
    let always = Expr::bool(true);
    b.rewalk(shift, always.clone(), finite, of_run.left.clone());
    b.rewalk(sum, always, float(0.0), &run_sum.left + &e);
    let scale = Expr::call1(Intrinsic::Exp, &shift.left - &of_run.left).cast(DType::F64);
    let is_infinite = run_sum.left.clone().gt(float(MOST_OF_RUN));
    let told = Expr::select(is_infinite, float(f64::INFINITY), of_run.left);
    // A state that is infinite stays so.
    b.close(shift, told.max(shift.left.clone()));
    let of_run = if on_cpu { without_floors(&run_sum.left) } else { run_sum.left };
    let of_run = of_run.cast(DType::F64);
    match low {
        None => b.close(sum, Expr::call(Intrinsic::Fma, vec![sum.left.clone(), scale, of_run])),
        Some(low) => {
            b.run_step(low, low.left.clone(), run);
            let (total, lost) = two_sum(&(&sum.left * &scale), &of_run);
            b.close(sum, total);
            b.close(low, &(&low.left * &scale) + &lost);
        }
    }
}

/// The greatest of the elements, in the type of the exponentials: the first of two folds, the second of which sums their exponentials
/// about it. It may pass over a NaN, which the second meets again.
pub(crate) fn greatest(request: &ReducerRequest, dtype: DType) -> Reducer {
    let mut b = Builder::new("greatest", request);
    b.idempotent();
    let x = b.element(0).cast(dtype);
    let shift = b.field("shift", Expr::float(f64::NEG_INFINITY, dtype), x);
    b.neutral(f64::NEG_INFINITY);
    b.combine(&shift, End::Greatest.of_any(&shift.left, &shift.right, false));
    let results = vec![("shift", dtype, shift.left)];
    b.finish(ErrorBound::Exact, results)
}

/// The second of them, of exponentials of that type, and their sum over the parameters of its `finish`, which gives just it. None is
/// more than 1, so that sums of runs in `float32` stay finite.
pub(crate) fn sum_of_exponentials(
    request: &ReducerRequest,
    dtype: DType,
) -> Result<(Reducer, Expr), ReducerError> {
    let request = ReducerRequest { inputs: vec![dtype], acc: None, ..request.clone() };
    if dtype != DType::F32 {
        let sum = sum::ENTRY.build(&request)?;
        let total = sum.finish.body[0].clone();
        return Ok((sum, total));
    }
    let wide = DType::F64;
    let mut b = Builder::new("expsum", &request);
    let e = b.element(0);
    let sum = b.field("expsum", Expr::constant(0, wide), e.clone().cast(wide));
    b.combine(&sum, &sum.left + &sum.right);
    let run = b.run_field(&sum, Expr::constant(0, dtype), e);
    b.chained_step(&sum, &run.left + &run.right, RUN, CHAINS);
    b.close(&sum, &sum.left + &run.left.cast(wide));
    let results = vec![("expsum", wide, sum.left.clone())];
    Ok((b.finish(ErrorBound::Terms { factor: 32.0, eps: EPS32 }, results), sum.left))
}

/// Whether elements are so narrow that what is done to each of them takes longer than to read it.
pub(crate) fn are_narrow(request: &ReducerRequest) -> bool {
    request.promoted().bytes() < DType::F32.bytes()
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

#[cfg(test)]
mod tests {
    use coulis_ir::Node;
    use coulis_ir::visit::for_each_expr;

    use super::*;

    #[test]
    fn exponentials_of_runs_are_what_the_machine_is_quick_at() {
        use Intrinsic::{Exp, Exp2, Exp2Ftz};
        let (wide, narrow) = (ReducerRequest::new(&[DType::F32]), ReducerRequest::new(&[DType::BF16]));
        for (request, wanted) in [
            (wide.clone(), Exp),
            (narrow.clone(), Exp),
            (wide.with_two_walks(), Exp2),
            (narrow.with_two_walks(), Exp2Ftz),
        ] {
            let reducer = make(&request).expect("a reducer");
            let runs = reducer.quick.expect("runs");
            let mut found = Vec::new();
            for expr in runs.rewalks.iter().flat_map(|walk| &walk.step.body) {
                for_each_expr(expr, &mut |e: &Expr| match e.node() {
                    Node::Call(intrinsic, _) if !found.contains(intrinsic) => found.push(*intrinsic),
                    _ => {}
                });
            }
            assert!(found.contains(&wanted), "{wanted:?}: {found:?}");
            for other in [Exp, Exp2, Exp2Ftz].into_iter().filter(|other| *other != wanted) {
                assert!(!found.contains(&other), "{wanted:?}: {found:?}");
            }
        }
    }
}
