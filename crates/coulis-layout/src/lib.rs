//! Index mathematics: shapes, strides, and tile layouts with thread and memory axes.

#![forbid(unsafe_code)]

pub mod algebra;
pub mod compose;
mod counted;
pub mod machine;
mod quoted_names;
pub mod tile;

pub use algebra::{LayoutError, axis_names, fused, is_memory_axis};
pub use counted::counted;
pub use machine::thread_axis_unit;
pub use quoted_names::quoted_names;
pub use tile::{AxisStride, Iter, Swizzle, TileLayout};
