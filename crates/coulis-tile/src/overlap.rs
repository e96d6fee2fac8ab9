//! Operands of one call that share elements.
//!
//! A variant reads and writes element by element, so that a result which lands among elements that are read
//! later would be read as one of them, without a word from anyone where a single thread does it all. What one
//! thread may do: put results in the place of their own elements (`Tx.sum(s[:, 0:1], s, axes=(1,))`), which
//! it read before. Of several threads one would write what another one reads, with no barrier between. Only
//! what is known to be shared is refused: two places that the program counts out may differ.

use std::collections::BTreeSet;

use coulis_ir::simplify::Analyzer;
use coulis_ir::{ExecScope, Expr};

use crate::call::Operand;
use crate::copy::{CopyFacts, CopyOp};
use crate::facts::Facts;
use crate::need::{Answer, Need, wanted};

/// Most elements whose addresses are compared one by one.
const MOST_ADDRESSES: i64 = 1 << 16;

/// Results land on no elements but, by one thread, their own.
pub(crate) const APART: Need = Need {
    name: "overlap",
    doc: "Results land on no elements but, by one thread, their own.",
    check: |facts| apart(facts),
};

/// What is written is not read.
pub(crate) const COPY_APART: Need<CopyOp> = Need {
    name: "overlap",
    doc: "What is written is not read, unless it stays where it is.",
    check: |facts: &CopyFacts| {
        let (dst, src) = (&facts.dsts[0], &facts.srcs[0]);
        let stays = distances(dst, src).is_some_and(|all| {
            all.iter().all(|distance| *distance == Some(0)) && extents(dst) == extents(src)
        });
        match !stays && share(dst, src) {
            true => wanted("a destination apart from its source", both(dst, src)),
            false => Ok(()),
        }
    },
};

fn apart(facts: &Facts) -> Answer {
    for (at, dst) in facts.dsts.iter().enumerate() {
        if let Some(other) = facts.dsts[..at].iter().find(|other| share(dst, other)) {
            return wanted("destinations apart from each other", both(dst, other));
        }
        let is_own =
            |src: &Operand| facts.scope == ExecScope::Thread && is_in_place(dst, src, &facts.reduced);
        if let Some(src) = facts.srcs.iter().find(|src| share(dst, src) && !is_own(src)) {
            return wanted("results apart from elements", both(dst, src));
        }
    }
    Ok(())
}

fn both(a: &Operand, b: &Operand) -> String {
    match a.tile().name == b.tile().name {
        true => format!("parts of `{}` that share elements", a.tile().name),
        false => format!("`{}` and `{}`, which share elements", a.tile().name, b.tile().name),
    }
}

/// Whether every result stands among its own elements.
fn is_in_place(dst: &Operand, src: &Operand, reduced: &[usize]) -> bool {
    let (Some(distances), Some(to), Some(from)) = (distances(dst, src), extents(dst), extents(src)) else {
        return false;
    };
    let kept = (0..from.len()).filter(|d| !reduced.contains(d));
    kept.into_iter().all(|d| distances[d] == Some(0) && to[d] == from[d])
}

fn extents(operand: &Operand) -> Option<Vec<i64>> {
    operand.extents()
}

/// From the first element of `a` to that of `b` along each dimension of the buffer that both name, where it is known.
fn distances(a: &Operand, b: &Operand) -> Option<Vec<Option<i64>>> {
    if a.tile().id != b.tile().id {
        return None;
    }
    let analyzer = Analyzer::new();
    let between = |((from, _), (to, _)): (&(Expr, Expr), &(Expr, Expr))| {
        let (from, to) = Expr::promoted(from.clone(), to.clone());
        analyzer.simplify(&(to - from)).as_int().and_then(|n| i64::try_from(n).ok())
    };
    Some(a.region.ranges.iter().zip(&b.region.ranges).map(between).collect())
}

/// Whether two operands are known to share an element of memory. Tiles that are spread over threads answer by their layouts.
fn share(a: &Operand, b: &Operand) -> bool {
    if a.is_spread || b.is_spread || a.tile().data != b.tile().data {
        return false;
    }
    let (Some(n), Some(m)) = (extents(a), extents(b)) else { return false };
    match distances(a, b) {
        Some(distances) => distances
            .iter()
            .zip(n.iter().zip(&m))
            .all(|(distance, (n, m))| distance.is_some_and(|distance| distance < *n && -distance < *m)),
        None => match (addresses(a), addresses(b)) {
            (Some(a), Some(b)) => !a.is_disjoint(&b),
            _ => false,
        },
    }
}

/// The addresses of an operand's elements, where all are constants.
fn addresses(operand: &Operand) -> Option<BTreeSet<i64>> {
    let tile = operand.tile();
    let constant = |e: &Expr| e.as_int().and_then(|n| i64::try_from(n).ok());
    let (extents, offset) = (operand.extents()?, constant(&tile.elem_offset)?);
    let size = operand.size().filter(|n| *n <= MOST_ADDRESSES)?;
    let shape = tile.shape.iter().map(constant).collect::<Option<Vec<i64>>>()?;
    let mins = operand.region.ranges.iter().map(|(min, _)| constant(min)).collect::<Option<Vec<i64>>>()?;
    if !tile.strides.is_empty() {
        return None;
    }
    let layout = tile.layout.clone().unwrap_or_else(|| coulis_layout::TileLayout::row_major(&shape));
    let address = |element: i64| -> Option<i64> {
        let mut rest = element;
        let mut coords = vec![0; extents.len()];
        for d in (0..extents.len()).rev() {
            coords[d] = mins[d] + rest % extents[d];
            rest /= extents[d];
        }
        let places = layout.apply(&coords, &shape).ok()?;
        Some(offset + places.get("m").copied().unwrap_or(0))
    };
    (0..size).map(address).collect()
}
