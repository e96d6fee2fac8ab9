//! Reductions of tiles: every case of the reference's tests and every call that the reference gets wrong, by every
//! variant that accepts the call.
//!
//! Names begin with `tile_` and the row of the table of cases that they stand for.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod build;
mod cases;
mod catalogue;
mod clusters;
mod digits;
mod forced;
#[path = "../common/gpu.rs"]
mod gpu;
mod halves;
mod intrinsics;
mod packed;
mod probes;
mod redux;
mod registers;
mod replicas;
mod rounding;
mod run;
mod seeds;
mod shared;
mod views;
