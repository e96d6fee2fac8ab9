//! Layouts made of layouts: tiles of tiles, parts, permuted dimensions, and what a reduction leaves.
//!
//! Source: the `TileLayout` of seeds 000 to 002.

use std::collections::BTreeMap;

use crate::algebra::{LayoutError, fused, is_memory_axis};
use crate::tile::{AxisStride, Iter, TileLayout};

/// A part of the iterators of one dimension, and where it begins.
struct Part {
    iters: Vec<Iter>,
    offset: BTreeMap<String, i64>,
}

impl TileLayout {
    /// `outer` laid out with copies of this layout in place of its elements: coordinate `x` of dimension `d` stands
    /// where `outer` puts `x / inner_shape[d]`, in steps of this layout's span, and this one `x % inner_shape[d]`.
    /// Replicas of both remain, those of `outer` in steps of the span too; the result is canonical.
    ///
    /// # Errors
    /// Where the shapes have different ranks, or a shape does not fit its layout.
    pub fn tiled(
        &self,
        inner_shape: &[i64],
        outer: &TileLayout,
        outer_shape: &[i64],
    ) -> Result<TileLayout, LayoutError> {
        if inner_shape.len() != outer_shape.len() {
            return Err(LayoutError::Rank { wanted: inner_shape.len(), found: outer_shape.len() });
        }
        let scaled = |step: &AxisStride| AxisStride {
            stride: step.stride * self.span(&step.axis),
            axis: step.axis.clone(),
        };
        let apart = |it: &Iter| Iter { extent: it.extent, step: scaled(&it.step) };
        let inner = self.group(inner_shape)?;
        let mut shard = Vec::new();
        for (out, own) in outer.group(outer_shape)?.iter().zip(inner) {
            shard.extend(out.iter().map(apart).chain(own));
        }
        let replica = outer.replica.iter().map(apart).chain(self.replica.iter().cloned()).collect();
        let offset = outer.offset.iter().map(scaled).chain(self.offset.iter().cloned()).collect();
        Ok(TileLayout { shard, replica, offset, swizzle: self.swizzle }.canonical())
    }

    /// Copies of this layout of `shape`, one after the other in memory, row-major, until they fill `whole`.
    ///
    /// # Errors
    /// Where copies do not fill it, or the shape is not this layout's.
    pub fn tiled_to(&self, shape: &[i64], whole: &[i64]) -> Result<TileLayout, LayoutError> {
        let fills =
            shape.len() == whole.len() && shape.iter().zip(whole).all(|(n, all)| *n > 0 && all % n == 0);
        if !fills {
            return Err(LayoutError::Tiles { inner: shape.to_vec(), outer: whole.to_vec() });
        }
        let counts: Vec<i64> = whole.iter().zip(shape).map(|(all, n)| all / n).collect();
        self.tiled(shape, &TileLayout::row_major(&counts), &counts)
    }

    /// The layout of a part: `(start, extent)` a dimension of `shape`. `None` where no layout says where the part's
    /// elements stand.
    ///
    /// # Errors
    /// Where the shape is not this layout's, or a range is empty or outside.
    pub fn slice(&self, shape: &[i64], region: &[(i64, i64)]) -> Result<Option<TileLayout>, LayoutError> {
        if shape.len() != region.len() {
            return Err(LayoutError::Rank { wanted: shape.len(), found: region.len() });
        }
        for (&size, &(start, extent)) in shape.iter().zip(region) {
            if start < 0 || extent < 1 || start + extent > size {
                return Err(LayoutError::Region { start, extent, size });
            }
        }
        let mut shard = Vec::new();
        let mut offset: BTreeMap<String, i64> = BTreeMap::new();
        for own in &self.offset {
            *offset.entry(own.axis.clone()).or_insert(0) += own.stride;
        }
        for (iters, &(start, extent)) in self.group(shape)?.iter().zip(region) {
            let Some(part) = part_of(&fused(iters), start, extent) else { return Ok(None) };
            shard.extend(part.iters);
            for (axis, distance) in part.offset {
                *offset.entry(axis).or_insert(0) += distance;
            }
        }
        let offset = offset.into_iter().map(|(axis, stride)| AxisStride { stride, axis }).collect();
        let slice = TileLayout { shard, replica: self.replica.clone(), offset, swizzle: self.swizzle };
        Ok(Some(slice.canonical()))
    }

    /// The layout of the tile with its dimensions in another order: dimension `d` of the result is `order[d]` of `shape`.
    ///
    /// # Errors
    /// Where the order does not name each dimension once, or the shape is not this layout's.
    pub fn permuted(&self, shape: &[i64], order: &[usize]) -> Result<TileLayout, LayoutError> {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..shape.len()) {
            return Err(LayoutError::Order { order: order.to_vec(), rank: shape.len() });
        }
        let groups = self.group(shape)?;
        let shard = order.iter().flat_map(|&d| groups[d].iter().cloned()).collect();
        Ok(TileLayout { shard, ..self.clone() })
    }

    /// The layout of what is left when dimensions of `shape` are reduced and every thread that held a part knows the
    /// whole: threads of the reduced dimensions become replicas, memory of them is dropped, strides stay.
    ///
    /// # Errors
    /// Where the shape is not this layout's.
    pub fn reduced(&self, shape: &[i64], dims: &[usize]) -> Result<TileLayout, LayoutError> {
        let mut left = TileLayout { shard: Vec::new(), ..self.clone() };
        for (dim, iters) in self.group(shape)?.into_iter().enumerate() {
            match dims.contains(&dim) {
                true => left.replica.extend(iters.into_iter().filter(|it| !is_memory_axis(&it.step.axis))),
                false => left.shard.extend(iters),
            }
        }
        Ok(left.canonical())
    }
}

/// Elements `start..start + extent` of the positions that the iterators count.
fn part_of(iters: &[Iter], start: i64, extent: i64) -> Option<Part> {
    let Some((outer, rest)) = iters.split_first() else {
        return Some(Part { iters: Vec::new(), offset: BTreeMap::new() });
    };
    let inner: i64 = rest.iter().map(|it| it.extent).product();
    let (first, at) = (start / inner, start % inner);
    let moved = |mut part: Part, steps: i64| {
        *part.offset.entry(outer.step.axis.clone()).or_insert(0) += steps * outer.step.stride;
        part
    };
    if at == 0 && extent % inner == 0 {
        let own = Iter { extent: extent / inner, step: outer.step.clone() };
        let iters = [own].into_iter().chain(rest.iter().cloned()).filter(|it| it.extent > 1).collect();
        return Some(moved(Part { iters, offset: BTreeMap::new() }, first));
    }
    if (start + extent - 1) / inner == first {
        return Some(moved(part_of(rest, at, extent)?, first));
    }
    // Two halves on both sides of one boundary are a part where they look alike and one step leads from the first to
    // the second.
    let half = extent / 2;
    if extent % 2 != 0 || at + half != inner {
        return None;
    }
    let (left, right) = (part_of(rest, at, half)?, part_of(rest, 0, half)?);
    if fused(&left.iters) != fused(&right.iters) {
        return None;
    }
    let mut steps = right.offset;
    *steps.entry(outer.step.axis.clone()).or_insert(0) += outer.step.stride;
    for (axis, distance) in &left.offset {
        *steps.entry(axis.clone()).or_insert(0) -= distance;
    }
    steps.retain(|_, distance| *distance != 0);
    let mut steps = steps.into_iter();
    let (Some((axis, stride)), None) = (steps.next(), steps.next()) else { return None };
    let over = Iter { extent: 2, step: AxisStride { stride, axis } };
    let iters = [over].into_iter().chain(left.iters).collect();
    Some(moved(Part { iters, offset: left.offset }, first))
}
