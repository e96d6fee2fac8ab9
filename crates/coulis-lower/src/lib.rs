//! Passes that turn a Tiled or Nest kernel into a Flat one.
//!
//! Each pass is one file with one public function, named by what it does; [`PASSES`] is the order in which they
//! run, and [`lower`] runs them. Observable effects follow the lowering of seed 003, whose listings are goldens of
//! this crate; where the reference is known to be wrong the meaning of the program wins.

#![forbid(unsafe_code)]

mod active_threads;
pub mod affine;
mod balance_adders;
mod binders;
mod blocks_apart;
mod branch;
pub mod dispatch_tiles;
pub mod drop_likely;
mod eager;
mod element_place;
pub mod eliminate_common_subexpressions;
pub mod expand_vthreads;
pub mod finish_in_last_block;
pub mod flatten_buffers;
mod guarded_steps;
pub mod hoist_allocations;
pub mod hoist_ifs;
mod independent;
pub mod inject_double_buffer;
pub mod insert_prefetches;
mod lane_accesses;
mod lane_allocations;
mod lane_guards;
mod loop_guards;
pub mod name_quotients;
pub mod narrow_index_types;
mod pair_extrema;
pub mod partition_loops;
pub mod pass;
pub mod place_barriers;
pub mod remove_noop;
pub mod resolve_reducers;
pub mod resolve_scope_ids;
pub mod rewrite_unsafe_select;
mod shared_access;
pub mod simplify;
pub mod size_shared_memory;
mod thread_digits;
mod tile_memory;
pub mod unify_launches;
pub mod unroll_loops;
mod vector_expr;
pub mod vectorize_loops;
mod walk;
mod widen_index_types;

pub use dispatch_tiles::explain_tiles;
pub use pass::{LowerError, Observer, Options, PASSES, Pass, lower, lower_and};
pub use resolve_reducers::resolve_reducers;
pub use widen_index_types::widen_index_types;
