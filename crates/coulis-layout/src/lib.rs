//! Index mathematics: shapes, strides, and tile layouts with thread and memory axes.

#![forbid(unsafe_code)]

pub mod tile;

pub use tile::{AxisStride, Iter, Swizzle, TileLayout};
