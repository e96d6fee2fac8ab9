//! The catalogue of reducers, one file each, and what is built from reducers.
//!
//! [`CATALOGUE`] is a slice of [`Entry`]s; tests, documentation and every door read it. [`product`] fuses reducers
//! into one and keeps shared state once. [`comm_reducer`] makes a reducer of a user's functions and
//! [`spot_check`] looks for a counterexample of what it claims. [`NORMALIZATIONS`] are maps that read
//! a row again beside its statistics. [`exact`] holds answers that owe nothing to the
//! reducers' own lambdas. Sources: contracts N1 to N16, seeds 003 and 004.

#![forbid(unsafe_code)]

mod builder;
mod catalogue;
mod docs;
mod entry;
pub mod exact;
mod flagged;
mod laws;
mod normalization;
mod normalizations;
mod places;
mod product;
pub mod scalar;
mod shape;
mod staged;
mod user;
mod user_normalization;
mod wide_state;

pub use catalogue::{CATALOGUE, find};
pub use docs::docs_page;
pub use entry::{Empty, Entry, ReducerError, ReducerRequest, UnknownReducer, compute_dtype, widened_dtype};
pub use laws::{ClaimError, Law, Refuted, commutes_on_ties, spot_check};
pub use normalization::{
    Along, Beside, BesideEntry, MapBound, Normalization, NormalizationEntry, NormalizationError,
    NormalizationRequest, Parameter,
};
pub use normalizations::{NORMALIZATIONS, find_normalization};
pub use places::{NO_PLACE, placed_combine, with_places};
pub use product::{Part, Product, ProductError, product};
pub use staged::Staged;
pub use user::{Combine, Finish, Lift, UserReducer, UserReducerError, comm_reducer};
pub use user_normalization::{MapFn, UserNormalization};
pub use wide_state::{WideState, accumulating};
