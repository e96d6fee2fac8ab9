//! Executes checked Flat kernels on the CPU without a compiler.
//!
//! [`pool`] is the thread pool that compiled kernels share.

pub mod pool;

pub use pool::{Pool, PoolError, partition};
