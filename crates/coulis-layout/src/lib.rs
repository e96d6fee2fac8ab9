//! Index mathematics: shapes, strides, and tile layouts with thread and memory axes.

pub mod tile;

pub use tile::{AxisStride, Iter, Swizzle, TileLayout};
