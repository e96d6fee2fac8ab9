//! Schedules: primitives that rewrite a loop nest, their legality, and the trace that records them.
//!
//! A [`Schedule`] holds one [`Stage`] a computed operation of a program. Each primitive checks, rewrites the
//! stages, and leaves a [`Step`] in the trace; [`build_nest`] turns the stages into a kernel of loops. The same
//! steps replayed on the same program give an equal kernel. Source: seed 003.

#![forbid(unsafe_code)]

mod accumulate;
mod alone;
mod asked;
mod body_text;
mod covered;
mod cross_thread;
pub mod error;
mod example;
mod explain;
mod fold;
mod from_begin;
mod grid;
mod indirect;
mod infer;
mod inline;
mod interval;
mod launch;
mod loop_kind;
mod names;
pub mod nest;
mod order;
pub mod primitive;
mod ranges;
mod reads;
mod runs;
pub mod schedule;
mod sizes;
pub mod stage;
mod stores;
pub mod thread_error;
pub mod trace;
mod turned;
mod until;

pub use body_text::body_texts;
pub use error::ScheduleError;
pub use launch::thread_index;
pub use nest::build_nest;
pub use primitive::cache_read::TensorRef;
pub use primitive::split::Split;
pub use primitive::{PRIMITIVES, PrimitiveEntry};
pub use schedule::{Schedule, StageRef, Value};
pub use stage::{Attach, GridFinish, Stage, StageId};
pub use thread_error::ThreadError;
pub use trace::{Arg, Step, Trace};
