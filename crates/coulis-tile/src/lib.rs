//! Tile calls: each is replaced by the statements of the best variant that accepts it.
//!
//! A variant states its needs, its priority and its numerics, and answers with statements or with the needs that
//! failed. The same dispatcher serves schedules that bind reduce axes to threads and kernels written with tile calls.
//! What a variant looks at are the [`Facts`] of a call: the reducer, the registers that hold the elements, and the
//! [`Groups`] of threads that fold together.

#![forbid(unsafe_code)]

pub mod block;
pub mod dispatch;
pub mod error;
pub mod facts;
pub mod groups;
pub mod need;
pub mod reduce;
pub mod variant;

pub use block::{Block, ThreadIndex};
pub use dispatch::{REGISTRY, dispatch, explain};
pub use error::TileError;
pub use facts::{Facts, Operand, is_row_major};
pub use groups::{Digit, Groups};
pub use need::{Decline, Need};
pub use variant::{Emitted, Numerics, Row, Variant, Verdict};
