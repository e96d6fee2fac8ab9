//! Tensor expressions: placeholders, computes, reductions, and their reference evaluator.
//!
//! A [`Tensor`] is an output of an [`Op`] and is backed by an n-d buffer; reading it is a load. [`compute`] checks
//! everything that can be wrong with a body when it is built, so that a schedule starts from a sound program.
//! Source: seed 003, contract N4 to N11.

#![forbid(unsafe_code)]

pub mod axis;
pub mod compute;
pub mod error;
pub mod evaluate;
pub mod operators;
mod other_states;
pub mod program;
pub mod reduction;
mod registry;
pub mod tensor;

pub use axis::{IterKind, IterVar, reduce_axis, reduce_axis_of, var, var_of};
pub use compute::{
    Body, IntoBody, Term, compute, compute_axes, compute_tuple, compute_tuple_axes, compute_tuple_strided,
};
pub use error::TensorError;
pub use evaluate::{Array, EvaluateError, evaluate};
pub use program::Program;
pub use reduction::{
    CommReducer, QuickFold, Reduction, all, any, comm_reducer, max, min, prod, reduce, reduce_at, sum,
};
pub use tensor::{Indices, Op, OpKind, Tensor, placeholder, placeholder_strided};
