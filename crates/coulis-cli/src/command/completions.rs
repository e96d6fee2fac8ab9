//! `coulis completions SHELL`: a completion script on standard output.

use clap::CommandFactory;

use crate::failure::Failure;
use crate::output::answer;

/// Arguments of `completions`.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  coulis completions bash > ~/.local/share/bash-completion/completions/coulis"
)]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Prints the script.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "coulis", &mut script);
    answer(&String::from_utf8_lossy(&script))
}
