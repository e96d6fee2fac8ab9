//! Positions of extrema, with or without the value.
//!
//! The state is a value and an index (`int64`, or `int32` where positions fit), -1 while no element was seen. `combine` compares indices where
//! values are equal, so the winner does not depend on the plan (contract N9); a step may rely on ascending
//! positions and compares values only. Two NaNs count as equal, and NaN beats every number (contract N8).

use coulis_ir::{DType, ErrorBound, Expr, Intrinsic, Reducer, Ties};

use crate::builder::{Builder, Slot};
use crate::entry::Request;
use crate::shape::extremum::End;

/// Which results are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The position.
    Index,
    /// The value and its position.
    ValueAndIndex,
}

/// Longest run that keeps positions as it goes. It is long, since states are not brought together cheaply.
const LONG_RUN: u32 = 1 << 30;

/// Runs compare as if there were neither NaN nor a state of no element, and note the sum of elements, which is NaN where one is. A
/// run of which that or the lack of a position tells that it was wrong is walked again, by `step`.
fn find_in_passing(
    b: &mut Builder,
    [value, index]: [&Slot; 2],
    (end, ties): (End, Ties),
    step: &dyn Fn(&Builder, [&Slot; 2]) -> [Expr; 2],
) {
    let (element, at) = (b.element(0), b.position().cast(b.request.position));
    let (worst, nowhere) = (end.identity(element.dtype()), Expr::constant(-1, b.request.position));
    let none = |i: &Expr| i.clone().lt(Expr::constant(0, b.request.position));
    let run = b.run_field(value, worst.clone(), element.clone());
    let place = b.run_field(index, nowhere.clone(), at);
    let take = match ties {
        Ties::Last => end.reaches(&run.right, &run.left),
        Ties::First | Ties::None => end.beats(&run.right, &run.left),
    };
    b.quick(value, Expr::select(take.clone(), run.right.clone(), run.left.clone()), LONG_RUN);
    b.quick(index, Expr::select(take, place.right.clone(), place.left.clone()), LONG_RUN);
    let mut needed = none(&place.left);
    if b.sees_nan() {
        let zero = Expr::constant(0, element.dtype());
        needed = is_nan(&b.note("total", zero, element, |sum, x| sum + x)).or(needed);
    }
    let [found, found_at] = step(b, [&run, &place]);
    b.again(value, needed.clone(), worst, found);
    b.again(index, needed, nowhere, found_at);
    let [taken, taken_at] = step(b, [&value.beside(&run.left), &index.beside(&place.left)]);
    let is_empty = none(&place.left);
    b.close(value, Expr::select(is_empty.clone(), value.left.clone(), taken));
    b.close(index, Expr::select(is_empty, index.left.clone(), taken_at));
}

/// Longest run whose extremum is sought first and its position then.
const RUN: u32 = 64;

/// Runs seek the extremum alone, and its position only where it beats the state's: seldom, and then by a second walk. That
/// goes from the last element to the first, so the last one that it finds is the first of equal ones.
fn find_again(b: &mut Builder, value: &Slot, index: &Slot, (end, ties): (End, Ties)) {
    let (element, at) = (b.element(0), b.position().cast(b.request.position));
    let run = b.run_field(value, end.identity(element.dtype()), element);
    let place = b.run_field(index, Expr::constant(-1, b.request.position), at);
    let none = |i: &Expr| i.clone().lt(Expr::constant(0, b.request.position));
    let (old, new) = (&value.left, &run.left);
    let beats = match (ties, b.sees_nan()) {
        (Ties::Last, true) => end.reaches(new, old).or(is_nan(new)),
        (Ties::Last, false) => end.reaches(new, old),
        (Ties::First | Ties::None, true) => {
            end.reaches(old, new).logical_not().and(is_nan(old).logical_not())
        }
        (Ties::First | Ties::None, false) => end.beats(new, old),
    };
    let needed = beats.or(none(&index.left));
    // Where an element is NaN the extremum of the run is.
    let (x, found) = (&run.right, &run.left);
    let equal = x.clone().equal(found.clone());
    let same = if b.sees_nan() { equal.or(is_nan(x)) } else { equal };
    let is_it = match ties {
        Ties::Last => same.and(none(&place.left)),
        Ties::First | Ties::None => same,
    };
    let sought = Expr::select(is_it, place.right.clone(), place.left.clone());
    let start = Expr::constant(-1, b.request.position);
    b.again(index, needed.clone(), start, sought);
    b.backwards();
    let best = end.of_any(&run.left, &run.right, b.sees_nan());
    b.quick(value, best, RUN);
    b.quick(index, place.left.clone(), RUN);
    // A run of no elements has no position.
    let take = needed.and(none(&place.left).logical_not());
    b.close(value, Expr::select(take.clone(), new.clone(), old.clone()));
    b.close(index, Expr::select(take, place.left, index.left.clone()));
}

fn is_nan(value: &Expr) -> Expr {
    Expr::call1(Intrinsic::IsNan, value.clone())
}

/// The reducer of the position of the extremum.
pub(crate) fn position(
    name: &'static str,
    request: &Request,
    end: End,
    ties: Ties,
    wanted: Wanted,
) -> Reducer {
    let mut b = Builder::new(name, request);
    b.idempotent();
    b.ties(ties);
    b.ascending();
    let (element, at) = (b.element(0), b.position());
    let value = b.field("value", end.identity(element.dtype()), element);
    let narrow = request.position;
    let index = b.field("index", Expr::constant(-1, narrow), at.cast(narrow));
    let none = |i: &Expr| i.clone().lt(Expr::constant(0, narrow));

    let (old, new) = (&value.left, &value.right);
    let (old_at, new_at) = (&index.left, &index.right);
    let equal = new.clone().equal(old.clone());
    let nearer = match ties {
        Ties::Last => new_at.clone().gt(old_at.clone()),
        Ties::First | Ties::None => new_at.clone().lt(old_at.clone()),
    };
    let (beats, same) = if b.sees_nan() {
        let nan_beats = is_nan(new).and(is_nan(old).logical_not());
        (end.beats(new, old).or(nan_beats), equal.or(is_nan(new).and(is_nan(old))))
    } else {
        (end.beats(new, old), equal)
    };
    let better = none(old_at).or(beats).or(same.and(nearer));
    let take = none(new_at).logical_not().and(better);
    b.combine(&value, Expr::select(take.clone(), new.clone(), old.clone()));
    b.combine(&index, Expr::select(take, new_at.clone(), old_at.clone()));

    // The identity is the worst value, so the last-wins comparison takes the first element by itself.
    let stepped = |b: &Builder, [value, index]: [&Slot; 2]| -> [Expr; 2] {
        let (old, new) = (&value.left, &value.right);
        let (old_at, new_at) = (&index.left, &index.right);
        let take = match (ties, b.sees_nan()) {
            (Ties::Last, false) => end.reaches(new, old),
            (Ties::Last, true) => end.reaches(new, old).or(is_nan(new)),
            (Ties::First | Ties::None, false) => end.beats(new, old).or(none(old_at)),
            (Ties::First | Ties::None, true) => {
                let not_worse = end.reaches(old, new).logical_not();
                not_worse.and(is_nan(old).logical_not()).or(none(old_at))
            }
        };
        let chosen = |new: &Expr, old: &Expr| Expr::select(take.clone(), new.clone(), old.clone());
        [chosen(new, old), chosen(new_at, old_at)]
    };
    let [found, found_at] = stepped(&b, [&value, &index]);
    b.step(&value, found);
    b.step(&index, found_at);

    if request.twice {
        find_again(&mut b, &value, &index, (end, ties));
    } else {
        find_in_passing(&mut b, [&value, &index], (end, ties), &stepped);
    }
    let at = ("index", DType::I64, index.left.cast(DType::I64));
    let results = match wanted {
        Wanted::Index => vec![at],
        Wanted::ValueAndIndex => vec![("value", request.inputs[0], value.left), at],
    };
    b.finish(ErrorBound::Exact, results)
}
