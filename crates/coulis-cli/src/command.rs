//! The commands: one file each and one case here.

mod bench;
mod cache;
mod completions;
mod devices;
mod explain;
mod lower;
mod normalize;
mod reduce;
mod run;
mod tune;

use clap::Subcommand;

use crate::failure::Failure;

/// A command with its arguments.
#[derive(Subcommand)]
pub enum Command {
    /// Compute statistics of an array file.
    Reduce(reduce::Args),
    /// Normalize the rows of an array file: softmax and the norms.
    Normalize(normalize::Args),
    /// Print a kernel after its passes, or the text that is made of it.
    Lower(lower::Args),
    /// Say which plan or variant a call takes, and why.
    Explain(explain::Args),
    /// Run a kernel file on arrays.
    Run(run::Args),
    /// Time reductions.
    Bench(bench::Args),
    /// List devices, compilers and where they were looked for.
    Devices(devices::Args),
    /// Show or clear the compile cache.
    Cache(cache::Args),
    /// Print a completion script for a shell.
    Completions(completions::Args),
    /// Search better plans for this machine.
    Tune(tune::Args),
}

impl Command {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Command::Reduce(args) => reduce::run(&args),
            Command::Normalize(args) => normalize::run(&args),
            Command::Lower(args) => lower::run(&args),
            Command::Explain(args) => explain::run(&args),
            Command::Run(args) => run::run(&args),
            Command::Bench(args) => bench::run(&args),
            Command::Devices(args) => devices::run(&args),
            Command::Cache(args) => cache::run(&args),
            Command::Completions(args) => completions::run(&args),
            Command::Tune(args) => tune::run(&args),
        }
    }
}
