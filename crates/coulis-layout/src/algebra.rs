//! Algebra of tile layouts: sizes, spans, the place of an element, grouping by a shape, canonical form.
//!
//! A layout maps a coordinate of a shape to a place: the coordinate is flattened row-major, split over the shard's
//! extents, and every iterator adds its steps along its axis. Replicas say at which further places the same element
//! stands. Source: the `TileLayout` of seeds 000 to 002. How layouts are made of others is in `compose.rs`, how thread
//! axes become one another on a machine in `machine.rs`.

use std::collections::BTreeMap;

use crate::counted;
use crate::tile::{AxisStride, Iter, TileLayout};

/// Names of the axes that count memory; every other axis counts threads or blocks.
const MEMORY_AXES: [&str; 6] = ["m", "TLane", "TCol", "P", "F", "Bank"];

/// Whether the axis counts memory.
pub fn is_memory_axis(axis: &str) -> bool {
    MEMORY_AXES.contains(&axis)
}

/// Names of the axes that count blocks.
const BLOCK_AXES: [&str; 6] = ["bx", "by", "bz", "cbx", "cby", "cbz"];

/// The names that axes have, those of memory first.
pub fn axis_names() -> impl Iterator<Item = &'static str> {
    MEMORY_AXES.into_iter().chain(crate::machine::thread_axes()).chain(BLOCK_AXES)
}

/// Why a layout has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A shape with another number of elements.
    #[error("a layout of {size} elements cannot lay out the shape {shape:?}")]
    Size {
        /// Elements of the layout.
        size: i64,
        /// The shape.
        shape: Vec<i64>,
    },
    /// A dimension whose boundary cuts an iterator.
    #[error(
        "dimension {dim} of the shape {shape:?} ends inside an iterator of extent {iter}, and {rest}, what is left of the \
         dimension there, does not divide it"
    )]
    Boundary {
        /// The shape.
        shape: Vec<i64>,
        /// The dimension.
        dim: usize,
        /// What is left of the dimension's extent.
        rest: i64,
        /// Extent of the iterator.
        iter: i64,
    },
    /// Two shapes, or a shape and a region, of different ranks.
    #[error("{} {} laid out, got {found}", counted(wanted, "dimension"), if *wanted == 1 { "is" } else { "are" })]
    Rank {
        /// Dimensions of the layout's shape.
        wanted: usize,
        /// Dimensions of the other.
        found: usize,
    },
    /// A region that is empty or not inside the shape.
    #[error("the region from {start} of {extent} elements is not inside a dimension of {size}")]
    Region {
        /// First element.
        start: i64,
        /// Number of elements.
        extent: i64,
        /// Extent of the dimension.
        size: i64,
    },
    /// Dimensions whose extents do not divide those of a larger shape.
    #[error("tiles of the shape {inner:?} do not fill the shape {outer:?}")]
    Tiles {
        /// Shape of a tile.
        inner: Vec<i64>,
        /// Shape to fill.
        outer: Vec<i64>,
    },
    /// An order that does not name each dimension once.
    #[error("{order:?} is not an order of {}", counted(rank, "dimension"))]
    Order {
        /// The order.
        order: Vec<usize>,
        /// Number of dimensions.
        rank: usize,
    },
    /// A coordinate outside its shape, or of another rank.
    #[error("the coordinate {coord:?} is not inside the shape {shape:?}")]
    Coordinate {
        /// The coordinate.
        coord: Vec<i64>,
        /// The shape.
        shape: Vec<i64>,
    },
}

/// Row-major position of a coordinate, or `None` outside the shape.
fn flatten(coord: &[i64], shape: &[i64]) -> Option<i64> {
    let inside = coord.len() == shape.len() && coord.iter().zip(shape).all(|(c, n)| (0..*n).contains(c));
    inside.then(|| coord.iter().zip(shape).fold(0, |at, (c, n)| at * n + c))
}

impl TileLayout {
    /// Number of elements: the product of the shard's extents.
    pub fn size(&self) -> i64 {
        self.shard.iter().map(|it| it.extent).product()
    }

    /// Number of steps from the first to past the last place along an axis, offset included. It stays at the
    /// largest number where that is passed.
    pub fn span(&self, axis: &str) -> i64 {
        let steps = self.shard.iter().chain(&self.replica).filter(|it| it.step.axis == axis);
        let offsets = self.offset.iter().filter(|o| o.axis == axis).map(|o| o.stride);
        steps
            .map(|it| (it.extent - 1).saturating_mul(it.step.stride))
            .chain(offsets)
            .fold(1, i64::saturating_add)
    }

    /// Whether a stride or an offset leads back.
    pub fn has_negative_steps(&self) -> bool {
        let steps = self.shard.iter().chain(&self.replica).map(|it| &it.step);
        steps.chain(&self.offset).any(|step| step.stride < 0)
    }

    /// Number of elements along an axis: the product of the extents of its shard iterators.
    pub fn size_along(&self, axis: &str) -> i64 {
        self.shard.iter().filter(|it| it.step.axis == axis).map(|it| it.extent).product()
    }

    /// Number of memory elements that one thread holds: the span of all memory axes together.
    pub fn memory_span(&self) -> i64 {
        let memory = self.axes().into_iter().filter(|axis| is_memory_axis(axis));
        memory.map(|axis| self.span(axis)).fold(1, i64::saturating_mul)
    }

    /// The axes in use, sorted, each once. An axis along which there is no step and no offset does not count.
    pub fn axes(&self) -> Vec<&str> {
        let iters = self.shard.iter().chain(&self.replica).filter(|it| it.extent > 1).map(|it| &it.step);
        let mut axes: Vec<&str> = iters.chain(&self.offset).map(|step| step.axis.as_str()).collect();
        axes.sort_unstable();
        axes.dedup();
        axes
    }

    /// Whether any element is in another thread than the first.
    pub fn is_distributed(&self) -> bool {
        self.axes().iter().any(|axis| !is_memory_axis(axis))
    }

    /// The place of an element, replicas aside, by axis. A swizzle moves it along `m`.
    ///
    /// # Errors
    /// Where the shape has another number of elements, or the coordinate is outside it.
    pub fn apply(&self, coord: &[i64], shape: &[i64]) -> Result<BTreeMap<String, i64>, LayoutError> {
        if shape.iter().product::<i64>() != self.size() {
            return Err(LayoutError::Size { size: self.size(), shape: shape.to_vec() });
        }
        let Some(mut rest) = flatten(coord, shape) else {
            return Err(LayoutError::Coordinate { coord: coord.to_vec(), shape: shape.to_vec() });
        };
        let mut place = BTreeMap::new();
        for offset in &self.offset {
            *place.entry(offset.axis.clone()).or_insert(0) += offset.stride;
        }
        for it in self.shard.iter().rev() {
            *place.entry(it.step.axis.clone()).or_insert(0) += rest % it.extent * it.step.stride;
            rest /= it.extent;
        }
        if let Some(swizzle) = self.swizzle {
            place.entry("m".to_owned()).and_modify(|address| *address = swizzle.apply(*address));
        }
        Ok(place)
    }

    /// Two elements, by their row-major numbers, that a layout over memory alone puts at one address,
    /// replicas aside; `None` where each has an address of its own.
    ///
    /// Nested strides and a swizzle that is a permutation need no counting; of others every address is noted, as long
    /// as they span less than 2^32 elements.
    pub fn overlap(&self) -> Option<(i64, i64)> {
        // Bits that only change lower ones can be found again from the highest one down.
        let permutes = self.swizzle.is_none_or(|s| s.atom_len >= 1 || s.swizzle_len == 0);
        if permutes && self.is_nested() {
            return None;
        }
        let offset: i64 = self.offset.iter().map(|step| step.stride).sum();
        let reach = |it: &Iter| (it.extent - 1) * it.step.stride;
        let lowest = offset + self.shard.iter().map(|it| reach(it).min(0)).sum::<i64>();
        let highest = offset + self.shard.iter().map(|it| reach(it).max(0)).sum::<i64>();
        // A swizzle stays within blocks of this number of elements.
        let block = self.swizzle.map_or(1, |s| 1i64 << (s.per_element + s.atom_len + s.swizzle_len).min(32));
        let start = lowest.div_euclid(block) * block;
        let n_places = (highest.div_euclid(block) + 1).saturating_mul(block).saturating_sub(start);
        if n_places > 1 << 32 {
            return None;
        }
        let place = |element: i64| {
            let mut rest = element;
            let mut address = offset;
            for it in self.shard.iter().rev() {
                address += rest % it.extent * it.step.stride;
                rest /= it.extent;
            }
            self.swizzle.map_or(address, |swizzle| swizzle.apply(address)) - start
        };
        let mut seen = vec![0u64; (n_places / 64 + 1) as usize];
        (0..self.size()).find_map(|element| {
            let at = place(element);
            let (word, bit) = ((at / 64) as usize, 1u64 << (at % 64));
            let is_taken = seen[word] & bit != 0;
            seen[word] |= bit;
            is_taken.then(|| (0..element).find(|other| place(*other) == at).map(|other| (other, element)))?
        })
    }

    /// Whether each stride is larger than all that the smaller ones reach together.
    fn is_nested(&self) -> bool {
        let mut steps: Vec<(i64, i64)> = self
            .shard
            .iter()
            .filter(|it| it.extent > 1)
            .map(|it| (it.step.stride.abs(), it.extent))
            .collect();
        steps.sort_unstable();
        let mut reach = 0;
        steps.iter().all(|(stride, extent)| {
            let is_larger = *stride > reach;
            reach += (extent - 1) * stride;
            is_larger
        })
    }

    /// The iterators of each dimension of a shape, outermost first. Where a boundary asks for it iterators are split, and one
    /// that the boundary does not divide is fused with those outside of it that go on where it ends.
    ///
    /// # Errors
    /// Where the shape has another number of elements, or a boundary cuts an iterator that it does not divide: one dimension
    /// carries into the other there, which iterators of each do not say.
    pub fn group(&self, shape: &[i64]) -> Result<Vec<Vec<Iter>>, LayoutError> {
        if shape.iter().product::<i64>() != self.size() {
            return Err(LayoutError::Size { size: self.size(), shape: shape.to_vec() });
        }
        let mut left: Vec<Iter> = self.shard.iter().filter(|it| it.extent > 1).cloned().collect();
        let mut groups = Vec::with_capacity(shape.len());
        for (dim, &extent) in shape.iter().enumerate().rev() {
            let mut rest = extent;
            let mut group = Vec::new();
            while rest > 1 {
                let Some(mut it) = left.pop() else {
                    return Err(LayoutError::Size { size: self.size(), shape: shape.to_vec() });
                };
                while it.extent % rest != 0 && rest % it.extent != 0 {
                    let Some(whole) = left.last().and_then(|outer| joined(outer, &it)) else {
                        return Err(LayoutError::Boundary {
                            shape: shape.to_vec(),
                            dim,
                            rest,
                            iter: it.extent,
                        });
                    };
                    left.pop();
                    it = whole;
                }
                if it.extent > rest {
                    let step = AxisStride { stride: it.step.stride * rest, axis: it.step.axis.clone() };
                    left.push(Iter { extent: it.extent / rest, step });
                    it.extent = rest;
                }
                rest /= it.extent;
                group.push(it);
            }
            group.reverse();
            groups.push(group);
        }
        groups.reverse();
        Ok(groups)
    }

    /// What one thread holds: the layout without its thread axes.
    pub fn storage(&self) -> TileLayout {
        let of = |iters: &[Iter]| iters.iter().filter(|it| is_memory_axis(&it.step.axis)).cloned().collect();
        TileLayout {
            shard: of(&self.shard),
            replica: of(&self.replica),
            offset: self.offset.iter().filter(|o| is_memory_axis(&o.axis)).cloned().collect(),
            swizzle: self.swizzle,
        }
    }

    /// The same mapping without iterators of one step and offsets of 0, neighbours that continue each other fused,
    /// replicas sorted. No axis is turned into another.
    pub fn canonical(&self) -> TileLayout {
        let mut replica = fused(&self.replica);
        replica.sort_by(|a, b| (&a.step.axis, a.step.stride).cmp(&(&b.step.axis, b.step.stride)));
        TileLayout { shard: fused(&self.shard), replica, offset: summed(&self.offset), swizzle: self.swizzle }
    }
}

/// One offset an axis, those of 0 left out, in the order in which axes come first.
pub(crate) fn summed(offset: &[AxisStride]) -> Vec<AxisStride> {
    let mut sums: Vec<AxisStride> = Vec::new();
    for own in offset {
        match sums.iter_mut().find(|sum| sum.axis == own.axis) {
            Some(sum) => sum.stride += own.stride,
            None => sums.push(own.clone()),
        }
    }
    sums.retain(|sum| sum.stride != 0);
    sums
}

/// The iterators with those of one step dropped, and neighbours on one axis fused where the outer one goes on where the
/// inner one ends.
pub fn fused(iters: &[Iter]) -> Vec<Iter> {
    let mut out: Vec<Iter> = Vec::new();
    for it in iters.iter().filter(|it| it.extent > 1) {
        match out.last_mut().and_then(|outer| joined(outer, it).map(|whole| (outer, whole))) {
            Some((outer, whole)) => *outer = whole,
            None => out.push(it.clone()),
        }
    }
    out
}

/// Two neighbours as one iterator, if the outer one goes on where the inner one ends.
fn joined(outer: &Iter, inner: &Iter) -> Option<Iter> {
    let goes_on = outer.step.axis == inner.step.axis && outer.step.stride == inner.extent * inner.step.stride;
    goes_on.then(|| Iter { extent: outer.extent * inner.extent, step: inner.step.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iters(of: &[(i64, i64, &str)]) -> Vec<Iter> {
        of.iter()
            .map(|&(extent, stride, axis)| Iter {
                extent,
                step: AxisStride { stride, axis: axis.to_owned() },
            })
            .collect()
    }

    fn layout(shard: &[(i64, i64, &str)], replica: &[(i64, i64, &str)]) -> TileLayout {
        TileLayout { shard: iters(shard), replica: iters(replica), offset: Vec::new(), swizzle: None }
    }

    /// Seed 000's page on layouts: elements of an (8, 16) tile over lanes, two warps and two registers.
    #[test]
    fn an_element_is_where_its_layout_says() {
        let mut tile =
            layout(&[(8, 4, "laneid"), (2, 1, "warpid"), (4, 1, "laneid"), (2, 1, "m")], &[(2, 4, "warpid")]);
        tile.offset.push(AxisStride { stride: 5, axis: "warpid".to_owned() });
        for i in 0..8 {
            for j in 0..16 {
                let place = tile.apply(&[i, j], &[8, 16]).unwrap();
                assert_eq!(place["laneid"], 4 * i + (j / 2) % 4);
                assert_eq!(place["warpid"], 5 + j / 8);
                assert_eq!(place["m"], j % 2);
            }
        }
        assert_eq!((tile.size(), tile.memory_span(), tile.span("laneid")), (128, 2, 32));
    }

    #[test]
    fn grouping_splits_iterators_at_the_boundaries_of_dimensions() {
        let tile = layout(&[(32, 1, "tx")], &[]);
        assert_eq!(tile.group(&[2, 16]).unwrap(), [iters(&[(2, 16, "tx")]), iters(&[(16, 1, "tx")])]);
        assert_eq!(tile.group(&[32, 1]).unwrap(), [iters(&[(32, 1, "tx")]), Vec::new()]);
        let two = layout(&[(6, 4, "tx"), (4, 1, "tx")], &[]);
        assert_eq!(
            two.group(&[3, 8]).unwrap(),
            [iters(&[(3, 8, "tx")]), iters(&[(2, 4, "tx"), (4, 1, "tx")])]
        );
        assert_eq!(two.group(&[4, 6]).unwrap(), [iters(&[(4, 6, "tx")]), iters(&[(6, 1, "tx")])]);
        let three = layout(&[(3, 16, "tx"), (2, 4, "tx"), (2, 1, "tx"), (2, 1, "m")], &[]);
        assert_eq!(
            three.group(&[2, 12]).unwrap_err().to_string(),
            "dimension 1 of the shape [2, 12] ends inside an iterator of extent 2, and 3, what is left of the dimension there, does \
             not divide it"
        );
        let three = layout(&[(3, 8, "tx"), (2, 4, "tx"), (2, 2, "tx"), (2, 1, "m")], &[]);
        assert_eq!(
            three.group(&[2, 12]).unwrap(),
            [iters(&[(2, 12, "tx")]), iters(&[(3, 4, "tx"), (2, 2, "tx"), (2, 1, "m")])]
        );
        assert!(matches!(two.group(&[5, 5]), Err(LayoutError::Size { size: 24, .. })));
    }

    #[test]
    fn the_canonical_form_places_every_element_alike() {
        for shard in [
            &[(2, 16, "tx"), (1, 9, "m"), (4, 4, "tx"), (4, 1, "tx")][..],
            &[(2, 1, "tx"), (4, 4, "tx"), (4, 2, "m")][..],
        ] {
            let (before, after) = (layout(shard, &[]), layout(shard, &[]).canonical());
            assert!(after.shard.len() < before.shard.len() || after == before);
            for i in 0..before.size() {
                let at = |l: &TileLayout| {
                    let mut place = l.apply(&[i], &[l.size()]).unwrap();
                    place.retain(|_, v| *v != 0);
                    place
                };
                assert_eq!(at(&before), at(&after));
            }
        }
    }

    #[test]
    fn one_thread_holds_the_memory_axes() {
        let tile = layout(&[(2, 2, "m"), (8, 4, "laneid"), (4, 1, "laneid"), (2, 1, "m")], &[]);
        assert!(tile.is_distributed() && !tile.storage().is_distributed());
        assert_eq!(tile.storage().shard, iters(&[(2, 2, "m"), (2, 1, "m")]));
        assert_eq!(tile.memory_span(), 4);
    }

    #[test]
    fn a_coordinate_outside_the_shape_is_refused() {
        let tile = TileLayout::row_major(&[4, 8]);
        assert!(tile.apply(&[3, 7], &[4, 8]).is_ok());
        assert!(matches!(tile.apply(&[4, 0], &[4, 8]), Err(LayoutError::Coordinate { .. })));
        assert!(matches!(tile.apply(&[0], &[4, 8]), Err(LayoutError::Coordinate { .. })));
    }
}
