//! `coulis cache [ls|clear|path]`: the folder of compiled kernels. Not built yet.

use crate::failure::{Failure, not_built};

/// What to do with the cache.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Action {
    /// List the entries.
    Ls,
    /// Remove the entries.
    Clear,
    /// Print the folder.
    Path,
}

/// Arguments of `cache`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  coulis cache\n  coulis cache clear\n  coulis cache path")]
pub struct Args {
    /// What to do
    #[arg(value_enum, default_value_t = Action::Ls)]
    action: Action,
}

/// Refuses: not built yet.
pub fn run(_args: &Args) -> Result<(), Failure> {
    Err(not_built("cache"))
}
