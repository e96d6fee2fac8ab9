//! Positions of extrema, with or without the value.
//!
//! The state is a value and an index (`int64`, or `int32` where positions fit), -1 while no element was seen.
//! `combine` compares indices where values are equal, so the winner does not depend on the plan (contract
//! N9); where elements come in ascending position steps and runs compare values only. Two NaNs count as
//! equal, and NaN beats every number (contract N8).

use coulis_ir::{DType, ErrorBound, Expr, Intrinsic, Reducer, Ties};

use crate::builder::{Builder, Slot};
use crate::entry::ReducerRequest;
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
/// Longest run whose extremum is sought first and its position then.
const RUN: u32 = 64;

fn is_nan(value: &Expr) -> Expr {
    Expr::call1(Intrinsic::IsNan, value.clone())
}

/// What is sought, over fields of a value and its position.
#[derive(Clone, Copy)]
struct Search {
    end: End,
    ties: Ties,
    /// Whether an element may be NaN.
    nan: bool,
}

impl Search {
    /// Whether a position says that no element was seen.
    fn none(index: &Expr) -> Expr {
        index.clone().lt(Expr::constant(0, index.dtype()))
    }

    /// Whether the right position is the one to keep of equal values.
    fn nearer(self, index: &Slot) -> Expr {
        let (old, new) = (index.left.clone(), index.right.clone());
        if self.ties == Ties::Last { new.gt(old) } else { new.lt(old) }
    }

    /// Value and position of two states, whichever holds the earlier elements.
    fn combined(self, [value, index]: [&Slot; 2]) -> [Expr; 2] {
        let (old, new) = (&value.left, &value.right);
        let equal = new.clone().equal(old.clone());
        let (beats, same) = if self.nan {
            let nan_beats = is_nan(new).and(is_nan(old).logical_not());
            (self.end.beats(new, old).or(nan_beats), equal.or(is_nan(new).and(is_nan(old))))
        } else {
            (self.end.beats(new, old), equal)
        };
        let better = Search::none(&index.left).or(beats).or(same.and(self.nearer(index)));
        chosen(&Search::none(&index.right).logical_not().and(better), [value, index])
    }

    /// The same where the right one is an element behind all of the left one, so that values alone are compared. The
    /// identity is the worst value, so the comparison in which the last one wins takes the first element by itself.
    fn stepped(self, [value, index]: [&Slot; 2]) -> [Expr; 2] {
        let (old, new, end) = (&value.left, &value.right, self.end);
        let take = match (self.ties, self.nan) {
            (Ties::Last, false) => end.reaches(new, old),
            (Ties::Last, true) => end.reaches(new, old).or(is_nan(new)),
            (Ties::First | Ties::None, false) => end.beats(new, old).or(Search::none(&index.left)),
            (Ties::First | Ties::None, true) => {
                let not_worse = end.reaches(old, new).logical_not();
                not_worse.and(is_nan(old).logical_not()).or(Search::none(&index.left))
            }
        };
        chosen(&take, [value, index])
    }

    /// What follows one more element in the order in which the request's come.
    fn followed(self, request: &ReducerRequest, fields: [&Slot; 2]) -> [Expr; 2] {
        if request.ascending { self.stepped(fields) } else { self.combined(fields) }
    }
}

/// The right ones of the fields, or else the left ones.
fn chosen(take: &Expr, fields: [&Slot; 2]) -> [Expr; 2] {
    fields.map(|field| Expr::select(take.clone(), field.right.clone(), field.left.clone()))
}

/// Runs compare as if there were neither NaN nor a state of no element, and note the sum of elements, which
/// is NaN where one is. A run of which that or the lack of a position tells that it was wrong is walked
/// again, with all comparisons.
fn find_in_passing(b: &mut Builder, [value, index]: [&Slot; 2], search: Search) {
    let request = b.request;
    let (element, at) = (b.element(0), b.position().cast(request.position));
    let (worst, nowhere) = (search.end.identity(element.dtype()), Expr::constant(-1, request.position));
    let run = b.run_field(value, worst.clone(), element.clone());
    let place = b.run_field(index, nowhere.clone(), at.clone());
    let reaches = || search.end.reaches(&run.right, &run.left);
    let beats = || search.end.beats(&run.right, &run.left);
    let take = match (request.ascending, search.ties) {
        (true, Ties::Last) => reaches(),
        (true, Ties::First | Ties::None) => beats(),
        (false, _) => beats().or(reaches().and(search.nearer(&place))),
    };
    let [chosen_value, best_at] = chosen(&take, [&run, &place]);
    // Machines have an operation for the extremum that waits for no comparison. Equal integers are one number; zeros of two
    // signs are not, so that of floats it is the one whose position is taken.
    let best = match (element.dtype().is_float(), request.ascending, search.ties) {
        (false, ..) | (true, true, Ties::First | Ties::None) => {
            search.end.of_any(&run.left, &run.right, false)
        }
        (true, true, Ties::Last) => search.end.of_any(&run.right, &run.left, false),
        (true, false, _) => chosen_value,
    };
    b.run_step(value, best, LONG_RUN);
    b.run_step(index, best_at, LONG_RUN);
    let mut needed = Search::none(&place.left);
    if request.leaves_out {
        // A run of no elements has no position either.
        let seen = b.note("seen", nowhere.clone(), at, |last, at| last.clone().max(at.clone()));
        needed = needed.and(Search::none(&seen).logical_not());
    }
    if search.nan {
        let zero = Expr::constant(0, element.dtype());
        needed = is_nan(&b.note("total", zero, element, |sum, x| sum + x)).or(needed);
    }
    let [found, found_at] = search.followed(request, [&run, &place]);
    b.rewalk(value, needed.clone(), worst, found);
    b.rewalk(index, needed, nowhere, found_at);
    let both = [&value.beside(&run.left), &index.beside(&place.left)];
    let [taken, taken_at] = search.followed(request, both);
    let is_empty = Search::none(&place.left);
    b.close(value, Expr::select(is_empty.clone(), value.left.clone(), taken));
    b.close(index, Expr::select(is_empty, index.left.clone(), taken_at));
}

/// Runs seek the extremum alone, and its position only where it beats the state's: seldom, and then by a second walk. Of
/// elements in ascending position that goes from the last to the first, so the last one that it finds is the first of equal
/// ones. Of others it compares positions, and is needed where the extremum equals the state's, too.
fn find_again(b: &mut Builder, [value, index]: [&Slot; 2], search: Search) {
    let Search { end, ties, nan } = search;
    let request = b.request;
    let (element, at) = (b.element(0), b.position().cast(request.position));
    let run = b.run_field(value, end.identity(element.dtype()), element);
    let place = b.run_field(index, Expr::constant(-1, request.position), at);
    let (old, new) = (&value.left, &run.left);
    let only_better = request.ascending && ties != Ties::Last;
    let beats = match (only_better, nan) {
        (false, true) => end.reaches(new, old).or(is_nan(new)),
        (false, false) => end.reaches(new, old),
        (true, true) => end.reaches(old, new).logical_not().and(is_nan(old).logical_not()),
        (true, false) => end.beats(new, old),
    };
    let needed = beats.or(Search::none(&index.left));
    // Where an element is NaN the extremum of the run is.
    let (x, found) = (&run.right, &run.left);
    let equal = x.clone().equal(found.clone());
    let same = if nan { equal.or(is_nan(x)) } else { equal };
    let is_it = match (request.ascending, ties) {
        (false, _) => same.and(Search::none(&place.left).or(search.nearer(&place))),
        (true, Ties::Last) => same.and(Search::none(&place.left)),
        (true, Ties::First | Ties::None) => same,
    };
    let sought = Expr::select(is_it, place.right.clone(), place.left.clone());
    let start = Expr::constant(-1, request.position);
    b.rewalk(index, needed.clone(), start, sought);
    b.backwards();
    let best = end.of_any(&run.left, &run.right, nan);
    b.run_step(value, best, RUN);
    b.run_step(index, place.left.clone(), RUN);
    // A run of no elements has no position.
    let is_found = needed.and(Search::none(&place.left).logical_not());
    let [taken, taken_at] = if request.ascending {
        [new.clone(), place.left.clone()]
    } else {
        search.combined([&value.beside(new), &index.beside(&place.left)])
    };
    b.close(value, Expr::select(is_found.clone(), taken, old.clone()));
    b.close(index, Expr::select(is_found, taken_at, index.left.clone()));
}

/// The reducer of the position of the extremum.
pub(crate) fn position(
    name: &'static str,
    request: &ReducerRequest,
    end: End,
    ties: Ties,
    wanted: Wanted,
) -> Reducer {
    let mut b = Builder::new(name, request);
    b.idempotent();
    b.ties(ties);
    let (element, at) = (b.element(0), b.position());
    let value = b.field("value", end.identity(element.dtype()), element);
    let index = b.field("index", Expr::constant(-1, request.position), at.cast(request.position));
    let (fields, search) = ([&value, &index], Search { end, ties, nan: b.sees_nan() });
    let [best, best_at] = search.combined(fields);
    b.combine(&value, best);
    b.combine(&index, best_at);
    if request.ascending {
        b.ascending();
        let [best, best_at] = search.stepped(fields);
        b.step(&value, best);
        b.step(&index, best_at);
        if let Some(last) = end.last(request.inputs[0], value.left.dtype()).filter(|_| ties != Ties::Last) {
            b.settled(end.reaches(&value.left, &last));
        }
    }
    if request.twice && !request.in_passing {
        find_again(&mut b, fields, search);
    } else {
        find_in_passing(&mut b, fields, search);
    }
    let at = ("index", DType::I64, index.left.cast(DType::I64));
    let results = match wanted {
        Wanted::Index => vec![at],
        Wanted::ValueAndIndex => vec![("value", request.inputs[0], value.left), at],
    };
    b.finish(ErrorBound::Exact, results)
}
