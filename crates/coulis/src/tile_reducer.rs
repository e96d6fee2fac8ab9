//! The reducers that tile calls name.

use coulis_ir::{DType, Reducer};

/// The reducer of a name for sources of these types, or `None` where there is none.
pub fn tile_reducer(name: &str, inputs: &[DType]) -> Option<Reducer> {
    coulis_reducers::find(name).ok()?.build_in_tiles(inputs).ok()
}
