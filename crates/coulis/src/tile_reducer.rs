//! The reducers that tile calls name, and those that are written in them.

use coulis_ir::{Claims, DType, Reducer, Ties};
use coulis_reducers::accumulating;

use crate::statistic::told_apart;

/// The reducer of a name for sources of these types, or `None` where there is none.
pub fn tile_reducer(name: &str, inputs: &[DType]) -> Option<Reducer> {
    coulis_reducers::find(name).ok()?.build_in_tiles(inputs).ok()
}

/// The reducer that a call has written in it as the call folds it, where that is another: with the state of contract N4, and
/// with places of elements, or without the claim to commute, where the order of equal values decides which of them is kept
/// (contract N9). That is tried of reducers that say of equal values which wins, or that look at positions; others are taken
/// at their word. With `accum` an old value takes part, which has no place.
pub(crate) fn written(reducer: &Reducer, accum: bool) -> Option<Reducer> {
    let wide = accumulating(reducer);
    let folded = wide.as_ref().unwrap_or(reducer);
    if folded.ties == Ties::None && folded.ignores_position() {
        return wide;
    }
    match told_apart(folded.clone()) {
        Ok(told) if accum && told.arity() > folded.arity() => {
            let claims = Claims { commutative: false, ..folded.claims };
            Some(Reducer { claims, ..folded.clone() })
        }
        Ok(told) => Some(told),
        // Without a value of it for any element there is nothing to tell.
        Err(_) => wide,
    }
}
