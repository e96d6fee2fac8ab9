//! The simulator: executes checked Flat kernels under the GPU thread model, counts what the memory system would see,
//! and reports races, missing barriers, reads of unwritten memory and absent shuffle lanes.
//!
//! [`run`] compiles a kernel for one set of arguments to bytecode over the lanes of a warp, executes it, and gives a
//! [`SimReport`]. It shares the intermediate representation with the emitters and nothing else, so that it is an
//! independent witness: arithmetic, evaluation of expressions and the order of accesses are its own.
//!
//! Not modelled: clusters that run at the same time, or blocks without one (they run one after another, in several
//! orders), memory of warps, and the alignment of vector accesses.

#![forbid(unsafe_code)]

mod args;
mod code;
mod compile;
mod detector;
mod error;
mod exec;
mod lanes;
mod memory;
mod order;
mod report;
mod run;
mod schedule;
mod shadow;
mod traffic;
mod violation;
mod warp;

pub use args::{Memory, Options, SimArg, SimArray};
pub use error::SimError;
pub use report::{Counters, SimReport, Traffic};
pub use run::{check, run};
pub use violation::{Site, Thread, Violation, ViolationKind};
