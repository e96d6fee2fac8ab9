//! The planner of reduce: from shape, strides, dtype, reducer and target facts to a schedule trace.

#![forbid(unsafe_code)]

mod call_arrays;
pub mod constants;
pub mod counts;
mod elements;
pub mod in_order;
pub mod one_piece;
pub mod order;
pub mod plan;
pub mod problem;
pub mod program;
pub mod room;
mod scale;
pub mod strategy;
pub mod tuned;

pub use constants::Constants;
pub use coulis_ir::counts::Count;
pub use order::{Order, ResultForm};
pub use plan::{Choice, PlanError, Planned, choose, choose_named, replay, schedule};
pub use problem::{Dim, Problem, ProblemError, Role};
pub use program::{Map, OutputSpec, Spec, Statement};
pub use room::Room;
pub use strategy::{Decline, Facts, Machine, STRATEGIES, Sketch, Strategy};
