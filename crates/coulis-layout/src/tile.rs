//! Tile layouts: where each element of a tile lives, over thread axes and memory axes.
//!
//! Source: the `TileLayout` of seeds 000 to 002. This file holds the data, `algebra.rs` what is computed of it.

use std::fmt;

/// A stride along a named axis; `m` is memory, `laneid`, `warpid`, `tid_in_wg` and the like are threads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AxisStride {
    /// Steps along the axis for one step of the iterator.
    pub stride: i64,
    /// Axis name.
    pub axis: String,
}

/// One iterator: `extent` steps of `stride` along `axis`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Iter {
    /// Number of steps, at least 1.
    pub extent: i64,
    /// Where a step goes.
    pub step: AxisStride,
}

/// An exclusive-or swizzle of the linear address, in elements as powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Swizzle {
    /// log2 of the elements that stay together.
    pub per_element: u32,
    /// log2 of the number of swizzled rows.
    pub swizzle_len: u32,
    /// log2 of the atom length.
    pub atom_len: u32,
}

impl Swizzle {
    /// Where the element of a linear address goes. Addresses count in units of `2^per_element` elements: the
    /// `swizzle_len` bits of the unit's number from bit `atom_len` on are exclusive-ored onto its lowest ones.
    pub fn apply(self, address: i64) -> i64 {
        let unit = 1i64 << self.per_element;
        let (high, low) = (address.div_euclid(unit), address.rem_euclid(unit));
        let turn = (high >> self.atom_len) & ((1 << self.swizzle_len) - 1);
        (high ^ turn) * unit + low
    }
}

/// `shard + replica + offset`, optionally swizzled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TileLayout {
    /// Iterators that the logical index is split over, outermost first.
    pub shard: Vec<Iter>,
    /// Iterators that repeat each element.
    pub replica: Vec<Iter>,
    /// Constant offsets along axes.
    pub offset: Vec<AxisStride>,
    /// Swizzle of the memory address.
    pub swizzle: Option<Swizzle>,
}

fn iters_of(iters: &[(i64, i64, &str)]) -> Vec<Iter> {
    let iter = |&(extent, stride, axis): &(i64, i64, &str)| Iter {
        extent,
        step: AxisStride { stride, axis: axis.to_owned() },
    };
    iters.iter().map(iter).collect()
}

impl TileLayout {
    /// Row-major over memory: the layout written `S[(4, 8)]`.
    pub fn row_major(extents: &[i64]) -> TileLayout {
        let mut shard = Vec::with_capacity(extents.len());
        let mut stride = 1;
        for &extent in extents.iter().rev() {
            shard.push(Iter { extent, step: AxisStride { stride, axis: "m".to_owned() } });
            stride *= extent;
        }
        shard.reverse();
        TileLayout { shard, replica: Vec::new(), offset: Vec::new(), swizzle: None }
    }

    /// Shard iterators `(extent, stride, axis)`, outermost first, without replicas, offsets or a swizzle.
    pub fn sharded(iters: &[(i64, i64, &str)]) -> TileLayout {
        TileLayout { shard: iters_of(iters), replica: Vec::new(), offset: Vec::new(), swizzle: None }
    }

    /// The layout with further replica iterators `(extent, stride, axis)`.
    #[must_use]
    pub fn replicated(mut self, iters: &[(i64, i64, &str)]) -> TileLayout {
        self.replica.extend(iters_of(iters));
        self
    }

    /// The layout moved by `distance` along `axis`.
    #[must_use]
    pub fn moved(mut self, distance: i64, axis: &str) -> TileLayout {
        self.offset.push(AxisStride { stride: distance, axis: axis.to_owned() });
        self
    }

    /// The layout with its memory address swizzled.
    #[must_use]
    pub fn swizzled(mut self, swizzle: Swizzle) -> TileLayout {
        self.swizzle = Some(swizzle);
        self
    }

    /// Whether every shard iterator is row-major over memory, so that `S[extents]` says it.
    fn has_default_strides(&self) -> bool {
        let extents: Vec<i64> = self.shard.iter().map(|it| it.extent).collect();
        self.shard == TileLayout::row_major(&extents).shard
    }
}

impl fmt::Display for AxisStride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.axis == "m" {
            write!(f, "{}", self.stride)
        } else {
            write!(f, "{} @ {}", self.stride, self.axis)
        }
    }
}

fn write_tuple<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    if let [only] = items {
        return write!(f, "{only}");
    }
    f.write_str("(")?;
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{item}")?;
    }
    f.write_str(")")
}

fn write_iters(f: &mut fmt::Formatter<'_>, kind: &str, iters: &[Iter], default_strides: bool) -> fmt::Result {
    let extents: Vec<i64> = iters.iter().map(|it| it.extent).collect();
    write!(f, "{kind}[")?;
    write_tuple(f, &extents)?;
    if !default_strides {
        let steps: Vec<&AxisStride> = iters.iter().map(|it| &it.step).collect();
        f.write_str(" : ")?;
        write_tuple(f, &steps)?;
    }
    f.write_str("]")
}

impl fmt::Display for TileLayout {
    /// The text that builds it: `TileLayout(S[32 : 1 @ laneid])`, `TileLayout(S[1] + R[32 : 1 @ laneid] + 5 @ warpid)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(s) = self.swizzle {
            write!(f, "ComposeLayout({}, {}, {}, ", s.per_element, s.swizzle_len, s.atom_len)?;
        }
        f.write_str("TileLayout(")?;
        write_iters(f, "S", &self.shard, self.has_default_strides())?;
        if !self.replica.is_empty() {
            f.write_str(" + ")?;
            write_iters(f, "R", &self.replica, false)?;
        }
        for offset in &self.offset {
            write!(f, " + {offset}")?;
        }
        f.write_str(if self.swizzle.is_some() { "))" } else { ")" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_print_as_they_are_written() {
        let mut layout = TileLayout::row_major(&[4, 8]);
        assert_eq!(layout.to_string(), "TileLayout(S[(4, 8)])");
        layout.shard[0].step.axis = "laneid".to_owned();
        layout.offset.push(AxisStride { stride: 5, axis: "warpid".to_owned() });
        assert_eq!(layout.to_string(), "TileLayout(S[(4, 8) : (8 @ laneid, 1)] + 5 @ warpid)");
    }
}
