//! `cargo xtask setup`: what the tests need and a bare Rust does not have.

use super::{Command, no_words};
use crate::step::{Failure, Step};

/// The command.
pub const COMMAND: Command = Command {
    name: "setup",
    about: "install what the tests need: rustfmt, clippy, cargo-nextest",
    run: |words| {
        no_words(words)?;
        setup()
    },
};

/// Whether `cargo nextest` answers.
pub fn has_nextest() -> bool {
    Step::cargo(&["nextest", "--version"]).output().is_ok()
}

/// Installs what is missing. The parts of the toolchain are only asked for, because not every Rust comes from rustup.
pub fn setup() -> Result<(), Failure> {
    Step::cargo(&["fmt", "--version"]).output()?;
    Step::cargo(&["clippy", "--version"]).output()?;
    if has_nextest() {
        return Ok(());
    }
    Step::cargo(&["install", "--locked", "cargo-nextest"]).run()
}
