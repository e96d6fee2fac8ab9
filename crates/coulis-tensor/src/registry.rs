//! Which operation makes a buffer, and which variables are axes.
//!
//! A body is an expression and holds only buffers and variables. When a compute is built, this table leads from a
//! buffer that it reads to the operation behind it, and tells an axis from a size. Entries live as long as what
//! they stand for.

use coulis_ir::hash::{FastMap, FastSet};
use std::sync::{Mutex, OnceLock, PoisonError, Weak};

use coulis_ir::{BufferId, VarId};

use crate::tensor::{Op, OpData};

#[derive(Default)]
struct Registry {
    ops: FastMap<BufferId, Weak<OpData>>,
    axes: FastSet<VarId>,
}

fn with<R>(f: impl FnOnce(&mut Registry) -> R) -> R {
    static REGISTRY: OnceLock<Mutex<Registry>> = OnceLock::new();
    let mutex = REGISTRY.get_or_init(|| Mutex::new(Registry::default()));
    f(&mut mutex.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(crate) fn add_op(buffer: BufferId, op: Weak<OpData>) {
    with(|r| r.ops.insert(buffer, op));
}

pub(crate) fn remove_op(buffer: BufferId) {
    with(|r| r.ops.remove(&buffer));
}

/// The operation whose output the buffer is. The upgrade happens under the lock, the drop of anything else outside.
pub(crate) fn op_of(buffer: BufferId) -> Option<Op> {
    with(|r| r.ops.get(&buffer).and_then(Weak::upgrade)).map(Op::from_data)
}

pub(crate) fn add_axis(var: VarId) {
    with(|r| r.axes.insert(var));
}

pub(crate) fn remove_axis(var: VarId) {
    with(|r| r.axes.remove(&var));
}

pub(crate) fn is_axis(var: VarId) -> bool {
    with(|r| r.axes.contains(&var))
}
