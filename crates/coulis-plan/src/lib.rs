//! The planner of reduce: from shape, strides, dtype, reducer and target facts to a schedule trace.

pub mod problem;

pub use problem::{Dim, Problem, ProblemError, Role};
