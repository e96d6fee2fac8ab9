//! Tile calls: each is replaced by the statements of the best variant that accepts it.
//!
//! A variant states its needs, its priority and its numerics, and answers with statements or with the needs that
//! failed. The same dispatcher serves schedules that bind reduce axes to threads and kernels written with tile calls.
//!
//! # What a variant is given
//!
//! A [`Call`]: the machine, the scope, the [`Block`] of threads, the [`ActiveSet`], the operands, the [`Options`] and
//! the named barriers. A reduction adds its reducer, `accum`, the reduced dimensions and, for tiles with one element a
//! thread, the [`Groups`] that fold ([`Facts`]). A copy adds nothing ([`CopyFacts`]). Both read through to the call.
//!
//! - **Threads.** `block.linear()` is the number of the calling thread, `block.digit(extent, stride)` a digit of it,
//!   whatever indices launched it. [`Call::participants`] gives the threads of one instance of the scope that reach the
//!   call together: how many, the calling thread's rank among them, the number of its instance, and which instances
//!   come. It fails, with the reason as text for a need, where an instance comes in part. `target.warp` is the only
//!   width of a warp; a warpgroup is four warps.
//! - **Operands.** An [`Operand`] names a [`Region`](coulis_ir::stmt::Region): a buffer with scope, shape and layout,
//!   and a minimum and an extent a dimension. Minimums may be any expression; extents are mostly constants
//!   ([`Operand::extents`]). A buffer in global or shared memory, and a local one without thread axes, is accessed by
//!   logical coordinates ([`Operand::element`] adds the minimums): lowering applies its layout, swizzle included. A local
//!   buffer whose layout has thread axes ([`Operand::is_spread`]) has no such accesses: `register` is the calling
//!   thread's own memory of it, one-dimensional, `layout.memory_span()` elements in physical order.
//! - **Memory of its own.** [`Emitted`] lists the registers and the shared memory that the statements declare; new
//!   buffers come from [`coulis_ir::Buffer::new`] with scope `Local` or `Shared`, of constant shape.
//! - **Barriers.** [`Call::sync`] is the barrier of all threads that reach the call with the calling thread: none for a
//!   thread, a warp barrier, a named barrier a warpgroup (a free one, see [`NamedBarriers`]), the barrier of the block, or
//!   that of the cluster.
//!   Where the calling code has accesses of its own before the call, it synchronizes before; what the variant promises
//!   after is part of its doc.
//! - **Options** that the call gives are typed in [`Options`]. A variant that cannot honour one has a need for it.
//!
//! # What a variant answers
//!
//! All needs are checked, none is skipped; a need that rests on another one that failed holds. `emit` is called only where
//! all hold. It answers with statements, with [`Refusal::Decline`] (the search goes on, and the table says why) or with
//! [`Refusal::Bug`], which is an error of ours and never a decline.

#![forbid(unsafe_code)]

pub mod active;
pub mod address;
pub mod barriers;
pub mod block;
pub mod call;
pub mod copy;
pub mod dispatch;
pub mod error;
pub mod facts;
pub mod groups;
pub mod need;
pub(crate) mod overlap;
pub mod reduce;
pub mod rounding;
pub mod variant;

pub use active::ActiveSet;
pub use barriers::NamedBarriers;
pub use block::{Block, ThreadIndex};
pub use call::{Call, Cluster, Operand, Options, Participants};
pub use copy::{COPIES, CopyFacts, CopyOp};
pub use dispatch::{Op, dispatch, explain, explain_call};
pub use error::TileError;
pub use facts::{Facts, is_row_major};
pub use groups::{Digit, Groups};
pub use need::{Decline, Need};
pub use reduce::{REDUCTIONS, ReduceOp};
pub use rounding::{Accuracy, Rounding, Steps};
pub use variant::{Emitted, Numerics, Refusal, Row, Variant, Verdict};
