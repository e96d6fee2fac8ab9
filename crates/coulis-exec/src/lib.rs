//! Executes checked Flat kernels on the CPU without a compiler.
//!
//! A kernel is compiled to bytecode: scalar registers for index arithmetic, and vector instructions that are
//! typed loops over hundreds of lanes, so that interpretation costs next to nothing. Where the processor has
//! AVX2 or AVX-512, bytecode becomes machine code as fast as a C compiler's, whose vectors are those of the
//! processor. [`pool`] is the thread pool that compiled kernels share.

mod code;
mod compile;
mod error;
mod frame;
mod level;
#[cfg(target_arch = "x86_64")]
mod native;
mod neighbours;
mod ops;
pub mod pool;
mod program;
mod registers;
mod run;

pub use error::ExecError;
pub use level::Level;
pub use pool::{Pace, Pool, PoolError, forked, partition};
pub use program::{Program, is_native, target};
