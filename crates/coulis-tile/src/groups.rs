//! The groups of threads that fold together: how a distributed tile spreads its elements over a block.
//!
//! Element `(g, r)` of a tile with spatial dimensions `g` and reduced dimensions `r` is in the thread whose
//! number is a sum of digits times strides; the threads that share `g` are a group.

use coulis_ir::Expr;
use coulis_layout::{Iter, TileLayout, fused};

use crate::block::{Block, constant, scaled};

/// One digit of a thread's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digit {
    /// Number of values, at least 2.
    pub extent: u32,
    /// Threads from one value to the next.
    pub stride: u32,
}

/// The threads of a scope as groups; every thread holds exactly one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Digits that tell groups apart, outermost first.
    pub spatial: Vec<Digit>,
    /// Digits that tell the members of a group apart, outermost first: the row-major order of the reduced axes.
    pub reduce: Vec<Digit>,
}

fn digits(iters: &[Iter]) -> Option<Vec<Digit>> {
    let digit = |it: &Iter| {
        Some(Digit { extent: it.extent.try_into().ok()?, stride: it.step.stride.try_into().ok()? })
    };
    fused(iters).iter().map(digit).collect()
}

impl Groups {
    /// The groups of a tile of that shape and layout whose `reduced` dimensions are folded, over `n_threads` threads
    /// counted along `axis`; otherwise what was found instead of one element a thread.
    pub fn of(
        layout: &TileLayout,
        shape: &[i64],
        reduced: &[usize],
        axis: &str,
        n_threads: u32,
    ) -> Result<Groups, String> {
        if !layout.replica.is_empty() || !layout.offset.is_empty() || layout.swizzle.is_some() {
            return Err(format!("the source layout `{layout}` with replicas, offsets or a swizzle"));
        }
        if let Some(other) = layout.axes().into_iter().find(|a| *a != axis) {
            return Err(format!("steps along `{other}` beside `{axis}`"));
        }
        let grouped = layout.group(shape).map_err(|error| error.to_string())?;
        let part = |wanted: bool| -> Vec<Iter> {
            let dims = grouped.iter().enumerate().filter(|(dim, _)| reduced.contains(dim) == wanted);
            dims.flat_map(|(_, iters)| iters.iter().cloned()).collect()
        };
        let negative = || format!("strides below 0 or above 2^32 in `{layout}`");
        let spatial = digits(&part(false)).ok_or_else(negative)?;
        let reduce = digits(&part(true)).ok_or_else(negative)?;
        let mut by_stride: Vec<Digit> = spatial.iter().chain(&reduce).copied().collect();
        by_stride.sort_by_key(|digit| digit.stride);
        let mut covered = 1;
        for digit in by_stride {
            if digit.stride != covered {
                return Err(format!("`{layout}`, which skips or shares threads"));
            }
            covered *= digit.extent;
        }
        if covered != n_threads {
            return Err(format!("{covered} elements on {n_threads} threads"));
        }
        Ok(Groups { spatial, reduce })
    }

    /// Whether a destination of that layout has the total of a group in threads of that group only. It may be
    /// replicated over the group or be in its first thread.
    pub fn gives_totals_to(&self, layout: &TileLayout, axis: &str) -> bool {
        let on_axis = |iters: &[Iter]| -> Vec<Iter> {
            iters.iter().filter(|it| it.step.axis == axis).cloned().collect()
        };
        let no_offset = layout.offset.iter().all(|o| o.stride == 0);
        let Some(shard) = digits(&on_axis(&layout.shard)) else { return false };
        let Some(replica) = digits(&on_axis(&layout.replica)) else { return false };
        no_offset
            && layout.axes().iter().all(|a| *a == axis)
            && shard == self.spatial
            && joined(&replica).iter().all(|digit| joined(&self.reduce).iter().any(|own| within(digit, own)))
    }

    /// Members of a group.
    pub fn size(&self) -> u32 {
        self.reduce.iter().map(|digit| digit.extent).product()
    }

    /// Number of groups.
    pub fn count(&self) -> u32 {
        self.spatial.iter().map(|digit| digit.extent).product()
    }

    /// Whether the members of a group are consecutive threads in ascending order.
    pub fn is_consecutive(&self) -> bool {
        matches!(self.reduce[..], [] | [Digit { stride: 1, .. }])
    }

    /// The calling thread's place in its group, `int32`.
    pub fn member(&self, block: &Block) -> Expr {
        row_major(&self.reduce, block)
    }

    /// The number of the calling thread's group, `int32`.
    pub fn group(&self, block: &Block) -> Expr {
        row_major(&self.spatial, block)
    }

    /// The number of the first thread of the calling thread's group, `int32`.
    pub fn first_thread(&self, block: &Block) -> Expr {
        let terms = self.spatial.iter().map(|d| scaled(block.digit(d.extent, d.stride), d.stride));
        terms.reduce(|a, b| a + b).unwrap_or_else(|| Expr::int(0))
    }

    /// The number of the first thread of a thread's group.
    pub fn first_of(&self, thread: u32) -> u32 {
        self.spatial.iter().map(|d| thread / d.stride % d.extent * d.stride).sum()
    }

    /// Each `n_lanes` consecutive threads of `n_threads`, or what was found instead of such groups.
    pub fn of_lanes(n_lanes: u32, n_threads: u32) -> Result<Groups, String> {
        if n_lanes == 0 || !n_threads.is_multiple_of(n_lanes) {
            return Err(format!("groups of {n_lanes} threads in a block of {n_threads}"));
        }
        let digit = |extent, stride| (extent > 1).then_some(Digit { extent, stride });
        Ok(Groups {
            spatial: digit(n_threads / n_lanes, n_lanes).into_iter().collect(),
            reduce: digit(n_lanes, 1).into_iter().collect(),
        })
    }

    /// Whether every group lies within one warp of `warp` lanes, in a block of `n_threads`.
    pub fn is_within_warps(&self, warp: u32, n_threads: u32) -> bool {
        n_threads <= warp || self.reduce.iter().all(|d| warp.is_multiple_of(d.stride * d.extent))
    }
}

/// The digits of a set of threads, innermost first, those that continue each other as one. Digits that name the same threads
/// are the same then, however they were split and ordered.
pub(crate) fn joined(digits: &[Digit]) -> Vec<Digit> {
    let mut sorted = digits.to_vec();
    sorted.sort_by_key(|d| d.stride);
    let mut found: Vec<Digit> = Vec::new();
    for digit in sorted {
        match found.last_mut() {
            Some(last) if last.stride * last.extent == digit.stride => last.extent *= digit.extent,
            _ => found.push(digit),
        }
    }
    found
}

/// What is left of the digits of a set of threads, of which each names another thread, innermost first, where those of a part of
/// them are fixed. Both are split to where they meet.
///
/// # Errors
/// A digit of the part that is none of the set.
pub(crate) fn without(all: &[Digit], part: &[Digit]) -> Result<Vec<Digit>, Digit> {
    let mut left = joined(all);
    for digit in joined(part) {
        let is_in = |own: &Digit| {
            let inner = digit.stride / own.stride;
            digit.stride.is_multiple_of(own.stride) && own.extent.is_multiple_of(inner * digit.extent)
        };
        let at = left.iter().position(is_in).ok_or(digit)?;
        let own = left[at];
        let inner = Digit { extent: digit.stride / own.stride, stride: own.stride };
        let outer =
            Digit { extent: own.extent / (inner.extent * digit.extent), stride: digit.stride * digit.extent };
        left.splice(at..=at, [inner, outer].into_iter().filter(|rest| rest.extent > 1));
    }
    Ok(left)
}

/// Whether the values of `part` are some of those of `whole`.
fn within(part: &Digit, whole: &Digit) -> bool {
    part.stride.is_multiple_of(whole.stride) && part.extent * (part.stride / whole.stride) <= whole.extent
}

fn row_major(digits: &[Digit], block: &Block) -> Expr {
    let mut weight = digits.iter().map(|d| d.extent).product::<u32>();
    let mut sum: Option<Expr> = None;
    for digit in digits {
        weight /= digit.extent;
        let term = scaled(block.digit(digit.extent, digit.stride), weight);
        sum = Some(sum.map_or(term.clone(), |s| s + term));
    }
    sum.unwrap_or_else(|| constant(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use coulis_layout::AxisStride;

    fn layout(shard: &[(i64, i64)], replica: &[(i64, i64)]) -> TileLayout {
        let iters = |of: &[(i64, i64)]| {
            of.iter()
                .map(|&(extent, stride)| Iter { extent, step: AxisStride { stride, axis: "tx".to_owned() } })
                .collect()
        };
        TileLayout { shard: iters(shard), replica: iters(replica), offset: Vec::new(), swizzle: None }
    }

    #[test]
    fn the_rows_of_a_block_are_groups_of_consecutive_threads() {
        let groups = Groups::of(&layout(&[(32, 16), (16, 1)], &[]), &[32, 16], &[1], "tx", 512).unwrap();
        assert_eq!((groups.size(), groups.count()), (16, 32));
        assert!(groups.is_consecutive() && groups.is_within_warps(32, 512));
        assert!(groups.gives_totals_to(&layout(&[(32, 16)], &[(16, 1)]), "tx"));
        assert!(groups.gives_totals_to(&layout(&[(32, 16)], &[]), "tx"));
        assert!(!groups.gives_totals_to(&layout(&[(16, 16)], &[(32, 1)]), "tx"));
        // Members out of order, and totals for all of them by one digit.
        let groups = Groups::of(&layout(&[(32, 16), (4, 1), (4, 4)], &[]), &[32, 4, 4], &[1, 2], "tx", 512);
        assert!(groups.unwrap().gives_totals_to(&layout(&[(32, 16)], &[(16, 1)]), "tx"));
    }

    #[test]
    fn a_column_of_a_block_is_a_group_with_gaps() {
        let groups = Groups::of(&layout(&[(8, 1), (4, 8)], &[]), &[8, 4], &[1], "tx", 32).unwrap();
        assert!(!groups.is_consecutive() && groups.is_within_warps(32, 32));
        assert!(groups.is_within_warps(32, 64) && !groups.is_within_warps(16, 64));
    }

    #[test]
    fn two_reduced_axes_fold_as_one_where_they_continue_each_other() {
        let groups = Groups::of(&layout(&[(4, 8), (8, 1)], &[]), &[4, 8], &[0, 1], "tx", 32).unwrap();
        assert_eq!(groups.reduce, [Digit { extent: 32, stride: 1 }]);
        assert_eq!(groups.count(), 1);
    }

    #[test]
    fn digits_are_split_to_where_they_meet() {
        let digits = |of: &[(u32, u32)]| -> Vec<Digit> {
            of.iter().map(|&(extent, stride)| Digit { extent, stride }).collect()
        };
        let left = |all: &[(u32, u32)], part: &[(u32, u32)]| without(&digits(all), &digits(part));
        let split = [(2, 16), (2, 4), (4, 1)];
        for part in [&[(8, 1)][..], &[(2, 4), (4, 1)], &[(4, 1), (2, 4)], &[(2, 2), (2, 1), (2, 4)]] {
            assert_eq!(left(&split, part), Ok(digits(&[(2, 16)])), "{part:?}");
        }
        assert_eq!(left(&split, &[]), Ok(digits(&[(8, 1), (2, 16)])));
        assert_eq!(left(&[(32, 1)], &[(4, 2)]), Ok(digits(&[(2, 1), (4, 8)])));
        assert_eq!(left(&[(24, 1)], &[(3, 1), (2, 12)]), Ok(digits(&[(4, 3)])));
        // Digits of others, those over a gap, some values of one, and one twice.
        for part in [&[(2, 8)][..], &[(16, 1)], &[(3, 1)], &[(2, 1), (2, 1)]] {
            assert!(left(&split, part).is_err(), "{part:?}");
        }
    }

    #[test]
    fn a_tile_that_does_not_give_every_thread_one_element_is_no_set_of_groups() {
        let of =
            |shard: &[(i64, i64)], shape: &[i64], n| Groups::of(&layout(shard, &[]), shape, &[0], "tx", n);
        assert_eq!(of(&[(32, 1)], &[32], 64).unwrap_err(), "32 elements on 64 threads");
        assert!(of(&[(32, 2)], &[32], 32).unwrap_err().contains("skips"));
        assert!(of(&[(2, 1), (4, 2)], &[4], 8).unwrap_err().contains("shape"));
        let mut other = layout(&[(32, 1)], &[]);
        other.shard[0].step.axis = "laneid".to_owned();
        assert!(Groups::of(&other, &[32], &[0], "tx", 32).unwrap_err().contains("`laneid`"));
    }
}
