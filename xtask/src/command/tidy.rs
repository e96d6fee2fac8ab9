//! `cargo xtask tidy`: the rules of the house that no compiler knows.

use super::{Command, no_words};
use crate::tidy;

/// The command.
pub const COMMAND: Command = Command {
    name: "tidy",
    about: "check module comments, crate arrows, file lengths, generated docs and stray text",
    run: |words| {
        no_words(words)?;
        tidy::check()
    },
};
