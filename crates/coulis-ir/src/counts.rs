//! Fields that only count: where every element takes part their value is known before the fold, so it is not folded.
//!
//! What tells them is algebra, not a name: an integer that starts at 0, grows by the same constant with each element, is
//! added up, and on which no other field depends.

use crate::visit::uses_any;
use crate::{Lambda, Reducer, Var};

/// A field whose value is a constant times the number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Which field, among all.
    pub field: usize,
    /// What each element adds.
    pub each: i128,
}

/// The fields of a reducer that only count.
pub fn counts(reducer: &Reducer) -> Vec<Count> {
    (0..reducer.arity()).filter_map(|field| count(reducer, field)).collect()
}

fn count(reducer: &Reducer, field: usize) -> Option<Count> {
    let n = reducer.arity();
    let each = reducer.lift.body[field].as_int()?;
    let adds = |lambda: &Lambda| {
        lambda.body[field] == &lambda.params[field].expr() + &lambda.params[n + field].expr()
    };
    let is_count = reducer.fields[field].dtype.is_int()
        && reducer.identity[field].as_int() == Some(0)
        && adds(&reducer.combine)
        && reducer.step.as_ref().is_none_or(adds);
    let of_state =
        |lambda: &Lambda| is_alone(lambda, field, &[&lambda.params[field], &lambda.params[n + field]]);
    let is_unread = of_state(&reducer.combine)
        && reducer.step.as_ref().is_none_or(of_state)
        && reducer.quick.as_ref().is_none_or(|q| is_alone(&q.close, field, &[&q.close.params[field]]))
        && of_second_walk(reducer).all(|l| l.body.iter().all(|e| !uses_any(e, &l.params[field..=field])));
    (is_count && is_unread).then_some(Count { field, each })
}

/// What begins each further walk over a run, by the fields of the state and those of the run, and what asks
/// for another fold.
fn of_second_walk(reducer: &Reducer) -> impl Iterator<Item = &Lambda> {
    let walks = reducer.quick.iter().flat_map(|quick| &quick.rewalks);
    let spoilt = reducer.quick.iter().flat_map(|quick| &quick.spoilt);
    walks.flat_map(|walk| [&walk.needed, &walk.start].into_iter().chain(&walk.gives_up)).chain(spoilt)
}

/// Whether no other result of the lambda reads these parameters.
fn is_alone(lambda: &Lambda, field: usize, params: &[&Var]) -> bool {
    let params: Vec<Var> = params.iter().copied().cloned().collect();
    lambda.body.iter().enumerate().all(|(at, e)| at == field || !uses_any(e, &params))
}
