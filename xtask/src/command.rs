//! The commands of xtask.

mod bench;
mod bless;
mod dist;
mod docs;
mod gpu;
mod python;
mod setup;
mod test;
mod tidy;

pub use docs::pages;

use crate::step::Failure;

/// A command.
pub struct Command {
    /// What one types.
    pub name: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// Runs it with the words after its name.
    pub run: fn(&[String]) -> Result<(), Failure>,
}

/// Every command.
pub const COMMANDS: &[&Command] = &[
    &setup::COMMAND,
    &test::COMMAND,
    &tidy::COMMAND,
    &bless::COMMAND,
    &bench::COMMAND,
    &docs::COMMAND,
    &dist::COMMAND,
    &gpu::COMMAND,
    &python::COMMAND,
];

/// Refuses any word for a command that takes none.
fn no_words(words: &[String]) -> Result<(), Failure> {
    match words.first() {
        None => Ok(()),
        Some(word) => Err(Failure::Argument { argument: word.clone(), legal: "none" }),
    }
}
