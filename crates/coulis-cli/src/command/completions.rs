//! `coulis completions SHELL`: a completion script on standard output.

use clap::CommandFactory;

use crate::command::{Command, Entry};
use crate::failure::Failure;
use crate::output::answer;

/// The command.
pub const COMMAND: Entry = Entry::new::<Args>("completions", |words| Command::read(words, run));

/// Print a completion script for a shell.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  coulis completions bash > ~/.local/share/bash-completion/completions/coulis"
)]
struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Prints the script.
fn run(args: &Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "coulis", &mut script);
    answer(&String::from_utf8_lossy(&script))
}
