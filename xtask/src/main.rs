//! Set-up, tests, tidy checks and benchmarks of coulis: `cargo xtask <command>`.
//!
//! One file a command and one line in [`COMMANDS`]. Nothing here depends on the crates of the project, so that the
//! checks start before anything is built.

#![forbid(unsafe_code)]

mod bench;
mod command;
mod step;
mod tidy;

use std::process::ExitCode;

use command::COMMANDS;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_default();
    let rest: Vec<String> = words.collect();
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprintln!("usage: cargo xtask <command>\n");
        for command in COMMANDS {
            eprintln!("  {:6}  {}", command.name, command.about);
        }
        return ExitCode::from(2);
    };
    match (command.run)(&rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {}: {error}", command.name);
            ExitCode::FAILURE
        }
    }
}
