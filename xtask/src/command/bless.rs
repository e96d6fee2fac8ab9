//! `cargo xtask bless`: rewrites the expectations of the file tests with what the code says now.
//!
//! Read every changed line before it is committed.

use super::Command;
use super::test::tests;
use crate::step::Step;

/// The command. Words after it are passed to the test runner, as in `bless --package=coulis-script`.
pub const COMMAND: Command = Command {
    name: "bless",
    about: "run the tests with BLESS=1, which rewrites expectations; read the diff line by line",
    run: |words| {
        let packages = if words.is_empty() { vec!["--workspace".to_owned()] } else { words.to_vec() };
        tests(&packages).variable("BLESS", "1").run()?;
        Step::cargo(&["xtask", "docs"]).run()
    },
};
