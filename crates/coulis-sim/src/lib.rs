//! The simulator: executes checked Flat kernels under the GPU thread model, counts what the memory system would see,
//! and accuses races, missing barriers, reads of unwritten memory and absent shuffle lanes.
//!
//! It shares the intermediate representation with the emitters and nothing else, so that it is an independent witness.

#![forbid(unsafe_code)]
