//! A reduction compiler: one read of the data, any set of statistics, at memory speed.
//!
//! Two doors so far. [`reduce`] takes arrays and names of statistics. [`te`] takes tensor expressions and schedules.
//! Both build the same intermediate representation, lower it by the same passes and run it on the same executors.

#![forbid(unsafe_code)]

pub mod bench;
mod device;
mod error;
mod pipeline;
pub mod reduce;
mod request;
mod trace;

pub use coulis_io::{
    Array, RawSpec, ReadError, ReadOptions, Scalar, WriteError, keys, read, read_all, write_npy, write_npz,
};
pub use coulis_ir::args::ArrayInfo;
pub use coulis_ir::{DType, NanPolicy};
pub use coulis_reducers::CATALOGUE;
pub use error::{Error, Owner};
pub use pipeline::{compile_schedule, lower_kernel};
pub use request::{DeviceChoice, NamedArray, Outcome, PlanInfo, Request};

/// Tensor expressions and schedules.
pub mod te {
    pub use coulis_schedule::{Schedule, ScheduleError, Split, Step, Trace, build_nest};
    pub use coulis_tensor::*;
}
