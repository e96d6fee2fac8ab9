//! Index mathematics: shapes, strides, and tile layouts with thread and memory axes.

#![forbid(unsafe_code)]

pub mod algebra;
pub mod tile;

pub use algebra::{LayoutError, fused, is_memory_axis};
pub use tile::{AxisStride, Iter, Swizzle, TileLayout};
