//! Forks: none happens while coulis runs, and the child knows that it is one.
//!
//! `os.fork` copies one thread and every lock as it is at that moment. So work of coulis holds a lock for readers, and a
//! fork takes it for itself: it waits until the work that is under way is done.

use std::cell::{Cell, RefCell};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::prelude::*;

static WORK: RwLock<()> = RwLock::new(());

thread_local! {
    static HELD: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
    static WORKS: Cell<bool> = const { Cell::new(false) };
}

/// While this lives, no fork happens.
pub struct Work(Option<RwLockReadGuard<'static, ()>>);

/// To be held by work that must not be forked, without the interpreter's lock. Work inside of such work, as a map of
/// Python's may call for it, takes no second lock, for which it would wait where a fork waits for the first.
pub fn work() -> Work {
    if WORKS.get() {
        return Work(None);
    }
    let held = WORK.read().unwrap_or_else(PoisonError::into_inner);
    WORKS.set(true);
    Work(Some(held))
}

impl Drop for Work {
    fn drop(&mut self) {
        if self.0.is_some() {
            WORKS.set(false);
        }
    }
}

/// Registers the functions with `os.register_at_fork`, where there is that.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    let os = py.import("os")?;
    if !os.hasattr("register_at_fork")? {
        return Ok(());
    }
    let words = pyo3::types::PyDict::new(py);
    words.set_item("before", wrap_pyfunction!(before, m)?)?;
    words.set_item("after_in_parent", wrap_pyfunction!(after_in_parent, m)?)?;
    words.set_item("after_in_child", wrap_pyfunction!(after_in_child, m)?)?;
    os.call_method("register_at_fork", (), Some(&words))?;
    Ok(())
}

#[pyfunction]
fn before(py: Python<'_>) {
    py.detach(|| HELD.set(Some(WORK.write().unwrap_or_else(PoisonError::into_inner))));
}

#[pyfunction]
fn after_in_parent() {
    HELD.set(None);
}

#[pyfunction]
fn after_in_child() {
    coulis::forked();
    HELD.set(None);
}
