//! `coulis tune`: searches better plans for this machine. Not built yet.

use crate::failure::{Failure, not_built};

/// Arguments of `tune`: none yet.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  coulis tune")]
pub struct Args {}

/// Refuses: not built yet.
pub fn run(_args: &Args) -> Result<(), Failure> {
    Err(not_built("tune"))
}
