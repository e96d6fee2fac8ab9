//! `gpu_beside`: a few reduced neighbours within each output's part of a row, and more of the same far apart.
//!
//! Rows are folded as columns, each neighbour by itself, and neighbours with each other at the end, when there is one state of each
//! left: what lies between two outputs in memory is then read by the same threads side by side, in whole accesses. Measured:
//! `bench/results/h200.md`.

use super::joined::Row;
use super::{Decline, Facts, Machine, Sketch, Strategy, gpu_columns};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "gpu_beside",
    machine: Machine::Threads,
    keeps_order: false,
    summary: "few reduced neighbours of each output are columns by themselves, and folded with each other at the end",
    propose,
    schedule: gpu_columns::schedule,
};

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    Ok(gpu_columns::sketch(facts, &Row::with_reduced(facts)?))
}
