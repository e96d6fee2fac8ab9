//! The coulis command line: words in, a request to the facade, text out.
//!
//! Answers go to standard output, everything else to standard error. The exit code is 0 when it is done, 1 when it ran
//! and was refuted, 2 when it was refused. No command holds logic of its own.

#![forbid(unsafe_code)]

mod command;
mod failure;
mod numbers;
mod output;
mod present;
mod progress;
mod request;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use command::Command;
use failure::Failure;

/// Planning a call makes many small things: with the system's allocator it takes 1.2 times as long.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Statistics of arrays in one read: plans, compiles and runs reductions.
#[derive(Parser)]
#[command(name = "coulis", version, arg_required_else_help = true, subcommand_required = true)]
#[command(
    after_help = "Exit codes: 0 done; 1 it ran and was refuted; 2 refused. `coulis COMMAND --help` gives examples."
)]
struct Cli {
    /// C compiler, before COULIS_CC, CC and those in PATH
    #[arg(long, global = true, value_name = "PATH", help_heading = "Where compilers are")]
    cc: Option<OsString>,
    /// Folder of CUDA, before COULIS_CUDA_PATH, CUDA_HOME, CUDA_PATH and the usual ones
    #[arg(long, global = true, value_name = "PATH", help_heading = "Where compilers are")]
    cuda_path: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    coulis::end_when_cut_short(|error| told(&error.into()));
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        // What is wrong with what was read of a file that was cut short says nothing about the file.
        Err(failure) => ExitCode::from(told(&coulis::check_mapped().err().map_or(failure, Failure::from))),
    }
}

/// Says why the command ends, if there is something to say, and gives the exit code.
fn told(failure: &Failure) -> u8 {
    if let Some(text) = failure.text() {
        output::remark(&text);
    }
    failure.exit_code()
}

fn run() -> Result<(), Failure> {
    let Cli { cc, cuda_path, command } = match Cli::try_parse() {
        Ok(line) => line,
        // A help or a version that is asked for is an answer like others; a mistake ends the process here.
        Err(wanted) if !wanted.use_stderr() => return output::answer_by(|| wanted.print()),
        Err(mistake) => mistake.exit(),
    };
    coulis::machine::use_compiler(cc.as_deref());
    coulis::machine::use_cuda(cuda_path.as_deref());
    command.run()
}
