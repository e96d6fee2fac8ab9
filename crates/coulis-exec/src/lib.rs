//! Executes checked Flat kernels on the CPU without a compiler.
//!
//! A kernel is compiled to bytecode: scalar registers for index arithmetic, and vector instructions that are typed
//! loops over hundreds of lanes, so that interpretation costs next to nothing. [`pool`] is the thread pool that
//! compiled kernels share.

mod code;
mod compile;
mod error;
mod frame;
mod level;
mod ops;
pub mod pool;
mod program;
mod registers;
mod run;

pub use error::ExecError;
pub use level::Level;
pub use pool::{Pool, PoolError, forked, partition};
pub use program::{Program, target};
