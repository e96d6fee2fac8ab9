//! The benchmark next to other libraries: who is timed, how, and the report.

pub mod gpu;
pub mod latency;
mod peers;
pub mod report;
mod server;
mod turns;
pub mod workload;

use std::path::PathBuf;

use crate::step::{Failure, root};

pub use peers::Peers;
pub use workload::Outcome;

/// How a run of the benchmark is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// Largest input; first axes are halved until it fits.
    pub max_bytes: u64,
    /// Seconds of turns for each workload, about.
    pub seconds: f64,
    /// Part of the ids that are run.
    pub only: String,
}

impl Default for Options {
    /// Inputs of several times the usual last-level cache, and a run of a few minutes.
    fn default() -> Options {
        Options { max_bytes: 256 << 20, seconds: 3.0, only: String::new() }
    }
}

/// The folder that cargo builds into.
pub fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// The built command line.
pub fn coulis() -> Result<PathBuf, Failure> {
    let path = target_folder().join("release").join("coulis");
    match path.metadata() {
        Ok(_) => Ok(path),
        Err(source) => Err(Failure::File { path, source }),
    }
}
