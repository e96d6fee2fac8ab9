//! A reduction compiler: one read of the data, any set of statistics, at memory speed.
//!
//! Three doors. [`reduce`] takes arrays and names of statistics. [`te`] takes tensor expressions and schedules.
//! [`text`] takes kernels as text. All of them build the same intermediate representation, lower it by the same passes
//! and run it on the same executors.

#![forbid(unsafe_code)]

pub mod bench;
mod device;
mod empty;
mod error;
mod function;
mod init;
mod inside;
pub mod machine;
pub mod normalization;
pub mod partial;
mod pipeline;
mod prologue;
pub mod reduce;
mod request;
mod statistic;
mod target;
pub mod text;
pub mod tile;
mod tile_reducer;
mod trace;
pub mod tune;
mod verify;

pub use coulis_io::{
    AlignedBytes, Array, CutShortReport, Owner as MemoryOwner, RawSpec, ReadError, ReadOptions, Scalar,
    ShapeError, WriteError, bytes_around, bytes_from_disk, check_mapped, end_when_cut_short, extensions,
    keys, numpy_dtype, read, read_all, read_text, write_npy, write_npz,
};
pub use coulis_ir::args::{ArrayInfo, compact_strides, strides_in};
pub use coulis_ir::simplify::gcd;
pub use coulis_ir::{DType, NanPolicy};
pub use coulis_plan::Order;
pub use coulis_plan::tuned::Knob as PlanKnob;
pub use coulis_reducers::{
    Along, CATALOGUE, MapFn, NORMALIZATIONS, NormalizationEntry, UserNormalization, UserReducer, comm_reducer,
};
pub use coulis_runtime::cuda::DeviceMemory;
pub use coulis_runtime::{DevicePointer, StreamHandle, interruptible};
pub use coulis_sim::{Counters, SimReport, Violation, ViolationKind};
pub use device::forked;
pub use error::{Error, Owner};
pub use function::{Arguments, Called, CompileOptions, Function, InPlace, OnDevice, Parameter, Value};
pub use normalization::Normalize;
pub use pipeline::{Lowered, Route, compile_schedule, lower_kernel};
pub use prologue::{Prologue, PrologueFn};
pub use request::{DeviceChoice, NamedArray, Outcome, PlanInfo, Request, SIM_WARP, Tuned};
pub use statistic::OwnReducer;
pub use target::{DEFAULT_CUDA_ARCH, TargetChoice};
pub use tile_reducer::tile_reducer;
pub use trace::parse as parse_trace;
pub use verify::{Refutation, Verified, VerifyReport};

/// Tensor expressions and schedules.
pub mod te {
    pub use coulis_ir::{Attr, BinaryOp, Buffer, Expr, Intrinsic, Lambda, MemScope, Node, ThreadTag, Var};
    pub use coulis_schedule::{
        Arg, PRIMITIVES, PrimitiveEntry, Schedule, ScheduleError, Split, Stage, StageId, StageRef, Step,
        Trace, Value, body_texts, build_nest, thread_index,
    };
    pub use coulis_tensor::{
        Array as ReferenceArray, Body, CommReducer, EvaluateError, Indices, IntoBody, IterKind, IterVar, Op,
        OpKind, Program, Reduction, Tensor, TensorError, Term, all, any, comm_reducer, compute, compute_axes,
        compute_tuple, compute_tuple_axes, compute_tuple_strided, evaluate, max, min, operators, placeholder,
        placeholder_strided, prod, reduce, reduce_at, reduce_axis, reduce_axis_of, sum, var, var_of,
    };

    pub use coulis_ir::visit::{MOST_WRITTEN, for_each_expr};

    pub use crate::function::{build, build_with};
    pub use crate::text::{device_source, listing, listing_partitioned};
}
