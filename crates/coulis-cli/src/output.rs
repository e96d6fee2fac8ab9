//! Writing answers to standard output, where a closed pipe is no error of ours, and remarks to standard error.

use std::io::Write;

use crate::failure::Failure;

/// Writes `text` and flushes.
pub fn answer(text: &str) -> Result<(), Failure> {
    answer_bytes(text.as_bytes())
}

/// Writes bytes that need not be text, and flushes.
pub fn answer_bytes(bytes: &[u8]) -> Result<(), Failure> {
    answer_by(|| std::io::stdout().write_all(bytes))
}

/// Has `write` write to standard output, and flushes. Of a file that was cut short while it was read there is no answer.
pub fn answer_by(write: impl FnOnce() -> std::io::Result<()>) -> Result<(), Failure> {
    coulis::check_mapped()?;
    write().and_then(|()| std::io::stdout().flush()).map_err(Failure::Stdout)
}

/// A note on standard error.
pub fn note(text: &str) {
    remark(&format!("note: {text}"));
}

/// A line on standard error. Where that cannot be written, nobody reads it, and the exit code still tells.
pub fn remark(line: &str) {
    let _unread = writeln!(std::io::stderr().lock(), "{line}");
}
