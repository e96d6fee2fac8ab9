//! `coulis devices`: devices, compilers, and where they were looked for. Not built yet.

use crate::failure::{Failure, not_built};

/// Arguments of `devices`: none.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  coulis devices")]
pub struct Args {}

/// Refuses: not built yet.
pub fn run(_args: &Args) -> Result<(), Failure> {
    Err(not_built("devices"))
}
