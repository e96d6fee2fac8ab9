//! Scenarios that a library of fused reductions has to pass, on every device that is there.
//!
//! A test is named `mr_` and the scenario's id. Each runs without a compiler, with one where asked for, in the simulator
//! (warps of 32 and 64 lanes, several orders) when the array is small, and on a GPU where there is one. Left out are the
//! scenarios of other things than one array: segments and keys, structs, complex numbers, iterators, counts on a device.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod execution;
mod harness;
mod large;
mod layout;
mod operators;
mod positions;
mod scaling;
mod shapes;
mod values;
