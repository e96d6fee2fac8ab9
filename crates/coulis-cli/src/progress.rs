//! A sign of life on a terminal when something takes longer than a second.
//!
//! A kernel runs in one call. Where it waits for a disk, the bar shows how much of the inputs has come from there; where
//! it does not (less than a 64th, which may be other files), there is no fraction to show, and a spinner shows the time.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use coulis::{Array, bytes_from_disk};
use indicatif::{ProgressBar, ProgressStyle};

/// Runs `work` on the inputs; after a second a bar with `what` appears on standard error if that is a terminal.
pub fn with_progress<T>(what: &str, inputs: &[Array], work: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    let total = inputs.iter().map(Array::n_bytes).sum();
    std::thread::scope(|scope| {
        // Dropping the sender ends the watcher, also when `work` panics.
        let (_done, watch) = channel::<()>();
        scope.spawn(move || {
            let before = bytes_from_disk();
            if watch.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::new(total).with_message(what.to_owned());
            let mut kind = None;
            while watch.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
                let position = position(before, bytes_from_disk(), total);
                let wanted = if position > total / 64 { FRACTION } else { ELAPSED };
                if kind.replace(wanted) != Some(wanted)
                    && let Ok(style) = ProgressStyle::with_template(wanted)
                {
                    bar.set_style(style.progress_chars("=> "));
                }
                bar.set_position(position);
                bar.tick();
            }
            bar.finish_and_clear();
        });
        let result = work();
        drop(_done);
        result
    })
}

const FRACTION: &str = "{msg} [{bar:24}] {bytes} of {total_bytes} from disk [{elapsed}]";
const ELAPSED: &str = "{spinner} {msg} [{elapsed}]";

/// How many bytes of the inputs have come from a disk since `before`. Other reads of the process are few; they are cut off
/// where they would show more than there is.
fn position(before: Option<u64>, now: Option<u64>, total: u64) -> u64 {
    match (before, now) {
        (Some(before), Some(now)) => now.saturating_sub(before).min(total),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_what_was_read_since_and_never_more_than_there_is() {
        assert_eq!(position(Some(100), Some(4196), 8192), 4096);
        assert_eq!(position(Some(100), Some(90_000), 8192), 8192);
        assert_eq!(position(Some(100), Some(50), 8192), 0);
        assert_eq!(position(None, Some(50), 8192), 0);
    }
}
