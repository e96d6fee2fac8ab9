//! `cargo xtask bench cpu`: the benchmark beside other libraries.

use super::Command;
use crate::step::Failure;

/// The command.
pub const COMMAND: Command = Command {
    name: "bench",
    about: "time coulis beside NumPy and JAX (not built yet)",
    run: |words| match words {
        [device] if device == "cpu" => Err(Failure::NotBuilt { what: "the comparison with other libraries" }),
        [other, ..] => Err(Failure::Argument { argument: other.clone(), legal: "cpu" }),
        [] => Err(Failure::Argument { argument: String::new(), legal: "cpu" }),
    },
};
