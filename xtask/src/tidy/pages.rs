//! Generated pages are what `cargo xtask docs` would write now, and each entry of a catalogue has a comment.

use super::Fault;
use crate::command::pages;
use crate::step::{Failure, read_text};

/// Compares every page with its file.
pub fn check() -> Result<Vec<Fault>, Failure> {
    let mut faults = Vec::new();
    for (path, text) in pages()? {
        if read_text(path).ok().as_deref() != Some(text.as_str()) {
            faults.push(Fault::new(path, "is stale; run `cargo xtask docs`"));
        }
    }
    Ok(faults)
}
