//! Thread axes on a machine: a lane of a warp of a warpgroup of a block is a thread of the block.
//!
//! Each thread axis counts units of one scope inside another. Where a layout uses several, they can all be counted along
//! the axis from the widest scope among them to the finest unit. Source: the layouts of seeds 000 to 002, where lanes and
//! warps fuse to `tid_in_wg` or `tx` under a target.

use crate::algebra::is_memory_axis;
use crate::tile::{AxisStride, Iter, TileLayout};

/// A level of the thread hierarchy, finest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Thread,
    Warp,
    Warpgroup,
    Cta,
}

/// Axes with what they count and what they count it in.
const AXES: [(&str, Level, Level); 6] = [
    ("laneid", Level::Thread, Level::Warp),
    ("tid_in_wg", Level::Thread, Level::Warpgroup),
    ("tx", Level::Thread, Level::Cta),
    ("wid_in_wg", Level::Warp, Level::Warpgroup),
    ("warpid", Level::Warp, Level::Cta),
    ("wgid", Level::Warpgroup, Level::Cta),
];

/// Names of the axes that count threads of a block, or groups of them.
pub(crate) fn thread_axes() -> impl Iterator<Item = &'static str> {
    AXES.into_iter().map(|(name, ..)| name)
}

fn levels(axis: &str) -> Option<(Level, Level)> {
    AXES.iter().find(|(name, ..)| *name == axis).map(|(_, unit, inside)| (*unit, *inside))
}

fn threads_of(level: Level, warp: i64) -> i64 {
    match level {
        Level::Thread => 1,
        Level::Warp => warp,
        Level::Warpgroup | Level::Cta => 4 * warp,
    }
}

/// Threads from one step to the next along an axis of threads of a block, for warps of `warp` lanes: 1 for `laneid`,
/// `warp` for `warpid`. `None` for memory axes and axes of blocks.
pub fn thread_axis_unit(axis: &str, warp: i64) -> Option<i64> {
    levels(axis).map(|(unit, _)| threads_of(unit, warp))
}

impl TileLayout {
    /// Whether the thread axes in use hang together: each but the widest one counts inside the units of another.
    /// Lanes next to warpgroups, without a word on the warp, do not.
    pub fn is_connected(&self) -> bool {
        let mut used: Vec<(Level, Level)> = self.axes().iter().filter_map(|axis| levels(axis)).collect();
        used.sort_unstable();
        used.windows(2).all(|pair| pair[0].1 == pair[1].0)
    }

    /// The canonical form on a machine with warps of `warp` lanes: thread axes that hang together are one axis, from the
    /// widest scope to the finest unit among them. A layout whose axes do not is only made canonical.
    pub fn canonical_on(&self, warp: i64) -> TileLayout {
        let used: Vec<(Level, Level)> = self.axes().iter().filter_map(|axis| levels(axis)).collect();
        let finest = used.iter().map(|(unit, _)| *unit).min();
        let widest = used.iter().map(|(_, inside)| *inside).max();
        let whole = AXES.iter().find(|(_, unit, inside)| Some(*unit) == finest && Some(*inside) == widest);
        let (Some((name, unit, _)), true) = (whole, self.is_connected()) else { return self.canonical() };
        let step = |step: &AxisStride| match levels(&step.axis) {
            Some((own, _)) if !is_memory_axis(&step.axis) => AxisStride {
                stride: step.stride * threads_of(own, warp) / threads_of(*unit, warp),
                axis: (*name).to_owned(),
            },
            _ => step.clone(),
        };
        let iters = |of: &[Iter]| -> Vec<Iter> {
            let real = of.iter().filter(|it| it.extent > 1);
            real.map(|it| Iter { extent: it.extent, step: step(&it.step) }).collect()
        };
        let offset = self.offset.iter().map(step).collect();
        TileLayout { shard: iters(&self.shard), replica: iters(&self.replica), offset, swizzle: self.swizzle }
            .canonical()
    }
}
