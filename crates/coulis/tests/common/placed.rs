//! Arrays by how their axes lie in memory.

use coulis::{ArrayInfo, DType};

/// An extent, the distance of neighbours in elements of the next axis, and whether the axis is reduced.
pub type Axis = (i64, i64, bool);

/// The array whose axes lie in memory in that order and stand in it turned by `order`, and which of them are reduced.
pub fn in_memory(dtype: DType, axes: &[Axis], order: usize) -> (ArrayInfo, Vec<i64>) {
    let mut placed: Vec<(Axis, i64)> = Vec::new();
    let mut stride = 1;
    for &axis in axes.iter().rev() {
        placed.insert(0, (axis, stride * axis.1));
        stride *= (axis.0 * axis.1).max(1);
    }
    placed.rotate_left(order % axes.len());
    let reduced = placed.iter().enumerate().filter(|(_, (axis, _))| axis.2).map(|(at, _)| at as i64);
    let reduced = reduced.collect();
    let shape = placed.iter().map(|(axis, _)| axis.0).collect();
    let strides = placed.iter().map(|(_, stride)| *stride).collect();
    (ArrayInfo { dtype, shape, strides }, reduced)
}
