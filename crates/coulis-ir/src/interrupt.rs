//! Requests to stop work that is under way, as Ctrl-C makes them.
//!
//! Whoever calls for work and can be interrupted runs it by [`watched`]; long loops of the simulator, of the executor and
//! of compiled kernels look at [`flag`], and end early where it is set. A signal handler may set it, and does nothing
//! else: it is one atomic store. Work of other threads goes on, since only the thread that watches is asked.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set for the thread that watches.
static ASKED: AtomicBool = AtomicBool::new(false);

/// What the other threads look at.
static NEVER: AtomicBool = AtomicBool::new(false);

thread_local! {
    static WATCHES: Cell<bool> = const { Cell::new(false) };
}

/// Asks the thread that watches to stop. A signal handler may call this.
pub fn ask() {
    ASKED.store(true, Ordering::Relaxed);
}

/// What work that this thread calls for is to look at. It is to be asked for where the work begins, by the thread that calls
/// for it, and handed to the threads that help.
pub fn flag() -> &'static AtomicBool {
    if WATCHES.get() { &ASKED } else { &NEVER }
}

/// Whether work of this thread can be asked to stop.
pub fn is_watched() -> bool {
    WATCHES.get()
}

/// Whether the work of this thread is to stop.
pub fn is_asked() -> bool {
    flag().load(Ordering::Relaxed)
}

/// Runs work of this thread that [`ask`] stops. One thread of a process does so at a time; requests from
/// before are forgotten. Work inside of such work is a part of it: a request stops both.
pub fn watched<T>(work: impl FnOnce() -> T) -> T {
    /// Ends the watch, also where the work panics.
    struct Watch;
    impl Drop for Watch {
        fn drop(&mut self) {
            WATCHES.set(false);
        }
    }
    if WATCHES.get() {
        return work();
    }
    ASKED.store(false, Ordering::Relaxed);
    WATCHES.set(true);
    let _watch = Watch;
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_thread_that_watches_is_asked_and_only_while_it_does() {
        ask();
        assert!(!is_asked());
        let seen = watched(|| {
            let before = is_asked();
            ask();
            let elsewhere = std::thread::spawn(is_asked).join().unwrap();
            (before, is_asked(), elsewhere, std::ptr::eq(flag(), &raw const ASKED))
        });
        assert_eq!(seen, (false, true, false, true));
        assert!(!is_asked());
        let seen = watched(|| {
            ask();
            (watched(is_asked), is_watched(), is_asked())
        });
        assert_eq!(seen, (true, true, true));
        assert!(!is_watched());
    }
}
