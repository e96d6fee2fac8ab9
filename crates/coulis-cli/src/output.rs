//! Writing answers to standard output, where a closed pipe is no error of ours.

use std::io::Write;

use crate::failure::Failure;

/// Writes `text` and flushes.
pub fn answer(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Stdout)
}

/// A note on standard error.
pub fn note(text: &str) {
    eprintln!("note: {text}");
}
