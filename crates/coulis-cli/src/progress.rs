//! A sign of life on a terminal when something takes longer than a second.
//!
//! A kernel runs in one call, so the bar shows the elapsed time and not a fraction.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Runs `work`; after a second a spinner with `what` appears on standard error if that is a terminal.
pub fn with_progress<T>(what: &str, work: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    std::thread::scope(|scope| {
        // Dropping the sender ends the watcher, also when `work` panics.
        let (_done, watch) = channel::<()>();
        scope.spawn(move || {
            if watch.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::new_spinner().with_message(what.to_owned());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]") {
                bar.set_style(style);
            }
            while watch.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
                bar.tick();
            }
            bar.finish_and_clear();
        });
        let result = work();
        drop(_done);
        result
    })
}
