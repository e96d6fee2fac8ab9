//! Variants of reductions, one file each.

pub mod alone;
pub mod cluster_shared;
pub(crate) mod cooperative;
pub(crate) mod lanes;
pub mod local;
pub mod mixed;
pub mod own_element;
pub mod packed_halves;
pub mod redux_sync;
pub mod serial;
pub mod shared;
pub mod shared_tree;
pub mod shuffle;
pub mod sm100_packed;
pub mod state;
pub(crate) mod threadwise;
pub(crate) mod view;
pub(crate) mod walk;
pub mod warp_shuffle;
pub mod warp_shuffle_two_stage;

use coulis_ir::{Buffer, Element, Expr, MemScope, Reducer};

use crate::dispatch::Op;
use crate::facts::Facts;
use crate::groups::Groups;
use crate::rounding::{Accuracy, Steps};
use crate::variant::{Numerics, Refusal, Variant};

/// Reductions.
pub struct ReduceOp;

impl Op for ReduceOp {
    const NAME: &'static str = "tile.reduce";
    type Facts<'a> = Facts<'a>;

    fn registry() -> &'static [&'static Variant<ReduceOp>] {
        REDUCTIONS
    }

    fn accuracy(facts: &Facts<'_>, steps: Steps, numerics: Numerics) -> Option<Accuracy> {
        Some(Accuracy::of(facts, steps, numerics.flushes_where_allowed))
    }
}

/// Every variant of reductions, highest priority first.
pub static REDUCTIONS: &[&Variant] = &[
    &redux_sync::VARIANT,
    &sm100_packed::VARIANT,
    &alone::VARIANT,
    &warp_shuffle::VARIANT,
    &warp_shuffle_two_stage::VARIANT,
    &packed_halves::VARIANT,
    &local::VARIANT,
    &shared::VARIANT,
    &shared_tree::VARIANT,
    &mixed::VARIANT,
    &cluster_shared::VARIANT,
    &serial::VARIANT,
];

/// Instructions that take the place of plain folds, where a variant has them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Instructions {
    /// Folds all lanes of a warp.
    pub redux: Option<redux_sync::Redux>,
    /// Folds neighbours in a thread.
    pub halves: Option<packed_halves::Halves>,
}

/// The groups of a call whose variant needs them.
pub(crate) fn groups_of<'f>(facts: &'f Facts) -> Result<&'f Groups, Refusal> {
    facts.groups.as_ref().map_err(|found| Refusal::Bug(found.clone()))
}

/// Shared memory for `n` states, one buffer a field.
pub(crate) fn shared_states(name: &str, reducer: &Reducer, n: u32) -> Vec<Buffer> {
    let fields = reducer.fields.iter().enumerate();
    let shape = || vec![crate::block::constant(n)];
    fields.map(|(i, f)| Buffer::new(&format!("{name}{i}"), f.dtype, shape(), MemScope::Shared)).collect()
}

/// The element of a one-dimensional buffer.
pub(crate) fn element(buffer: &Buffer, index: &Expr) -> Element {
    Element { buffer: buffer.clone(), indices: vec![index.clone()] }
}
