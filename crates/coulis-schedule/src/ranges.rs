//! Ranges and values of axes inside one stage.
//!
//! Downward, extents of loops follow from the domains of the root axes; upward, the value of each axis follows
//! from the loop indices. Values here count from 0; the minimum of a root axis is added where it is used. An axis
//! whose loops may overrun it is marked, and gets a guard where the overrun cannot be ruled out.

use coulis_ir::hash::{FastMap, FastSet};

use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{substitute_expr, uses_any};
use coulis_ir::{BinaryOp, Expr, Var};
use coulis_tensor::IterVar;

use crate::fold;
use crate::schedule::Values;
use crate::stage::{Relation, SplitBy, Stage};

/// `(min, extent)` of each root axis.
pub(crate) type Domains = FastMap<Var, (Expr, Expr)>;

/// The first axis of the stage, none of these, whose domain depends on one of them.
pub(crate) fn dependent<'s>(stage: &'s Stage, on: &[Var]) -> Option<&'s IterVar> {
    let depends = |axis: &&IterVar| {
        !on.contains(axis.var()) && axis.dom().is_some_and(|(min, n)| uses_any(min, on) || uses_any(n, on))
    };
    stage.axes.iter().chain(stage.reduce_axes()).find(depends)
}

/// The domains that the operation itself declares.
pub(crate) fn declared(stage: &Stage) -> Domains {
    let roots = stage.axes.iter().chain(stage.reduce_axes());
    roots
        .filter_map(|axis| {
            axis.dom().map(|(min, extent)| (axis.var().clone(), (min.clone(), extent.clone())))
        })
        .collect()
}

/// Extents of all axes of a stage whose root axes have these domains.
pub(crate) fn extents(stage: &Stage, domains: &Domains, analyzer: &Analyzer) -> Values {
    let mut extents: Values =
        domains.iter().map(|(var, (_, extent))| (var.clone(), analyzer.simplify(extent))).collect();
    for relation in &stage.relations {
        match relation {
            Relation::Split { parent, outer, inner, by } => {
                let Some(whole) = extents.get(parent.var()).cloned() else { continue };
                // What a size makes 0 or less would be no loop at all, and leave the axis out in silence.
                let at_least_1 = |size: &Expr| {
                    let size = fold::cast(size, parent.dtype());
                    fold::max(analyzer, &size, &fold::int(1, parent.dtype()))
                };
                // The number of threads is what was asked for, whatever the axis needs.
                let clamp = |wanted: &Expr, part: &IterVar| {
                    let fits = fold::proves(analyzer, BinaryOp::Le, &whole, wanted) && !whole.is_int(0);
                    if fits && !stage.leads_to_thread(part) { whole.clone() } else { wanted.clone() }
                };
                let (outer_extent, inner_extent) = match by {
                    SplitBy::Factor(factor) | SplitBy::Overlap(factor) => {
                        let factor = at_least_1(factor);
                        (fold::ceildiv(analyzer, &whole, &factor), clamp(&factor, inner))
                    }
                    SplitBy::Nparts(parts) => {
                        let parts = at_least_1(parts);
                        (clamp(&parts, outer), fold::ceildiv(analyzer, &whole, &parts))
                    }
                };
                extents.insert(outer.var().clone(), outer_extent);
                extents.insert(inner.var().clone(), inner_extent);
            }
            Relation::Fuse { outer, inner, fused } => {
                if let (Some(a), Some(b)) = (extents.get(outer.var()), extents.get(inner.var())) {
                    extents.insert(fused.var().clone(), fused_extent(a, b, analyzer));
                }
            }
            Relation::Singleton { axis } => {
                extents.insert(axis.var().clone(), fold::int(1, axis.dtype()));
            }
        }
    }
    extents
}

/// Iterations of two loops as one. A loop whose extent is below 0 does not run, and the product of two such extents would:
/// where neither is known to be a number of iterations, the outer one is made one, and the sign of the product is the inner
/// one's then.
fn fused_extent(outer: &Expr, inner: &Expr, analyzer: &Analyzer) -> Expr {
    let is_natural = |e: &Expr| fold::proves(analyzer, BinaryOp::Ge, e, &fold::int(0, e.dtype()));
    if is_natural(outer) || is_natural(inner) {
        return fold::mul(outer, inner);
    }
    fold::mul(&fold::max(analyzer, outer, &fold::int(0, outer.dtype())), inner)
}

/// Values of all axes, counted from 0, given those of some loops.
pub(crate) fn offsets(stage: &Stage, extents: &Values, leaves: &Values) -> Values {
    let mut values = leaves.clone();
    for relation in stage.relations.iter().rev() {
        match relation {
            Relation::Split { parent, outer, inner, by } => {
                let parts = (values.get(outer.var()), values.get(inner.var()));
                let sizes = (extents.get(inner.var()), extents.get(parent.var()));
                if let ((Some(o), Some(i)), (Some(each), Some(whole))) = (parts, sizes) {
                    values.insert(parent.var().clone(), by.parent_of((o, i), each, whole));
                }
            }
            Relation::Fuse { outer, inner, fused } => {
                if let (Some(f), Some(e)) = (values.get(fused.var()), extents.get(inner.var())) {
                    // A pair with an extent of 1 passes the index through, which keeps texts free of `// 1`.
                    let outer_is_one = extents.get(outer.var()).is_some_and(|o| o.is_int(1));
                    let (o, i) = if outer_is_one {
                        (fold::int(0, f.dtype()), f.clone())
                    } else {
                        (fold::floordiv(f, e), fold::floormod(f, e))
                    };
                    values.insert(outer.var().clone(), fold::cast(&o, outer.dtype()));
                    values.insert(inner.var().clone(), fold::cast(&i, inner.dtype()));
                }
            }
            Relation::Singleton { .. } => {}
        }
    }
    values
}

/// The axes whose loops may run past their extent, where no guard of a loop within it says otherwise: a part of an axis
/// that is cut exactly, and a pair of fused axes, is in range where its loops are.
pub(crate) fn marked(stage: &Stage, extents: &Values, analyzer: &Analyzer) -> FastSet<Var> {
    let mut marked = FastSet::default();
    for relation in &stage.relations {
        if let Relation::Split { parent, outer, inner, by } = relation {
            let of = |axis: &IterVar| extents.get(axis.var());
            let exact = match (of(parent), of(outer), of(inner)) {
                (Some(p), _, Some(i)) if matches!(by, SplitBy::Overlap(_)) => {
                    fold::proves(analyzer, BinaryOp::Ge, p, i)
                }
                (Some(p), Some(o), Some(i)) => fold::proves(analyzer, BinaryOp::Eq, &fold::mul(o, i), p),
                _ => false,
            };
            if !exact {
                marked.insert(parent.var().clone());
            }
        }
    }
    marked
}

/// Absolute values of the root axes: minimum plus value, with the minima and extents that mention other root axes
/// expressed in loop indices too.
pub(crate) fn absolutes(stage: &Stage, domains: &Domains, offsets: &Values) -> Values {
    let mut absolute = Values::default();
    // Data axes first: domains of reduce axes may mention them, and reduce axes may mention earlier ones.
    for axis in stage.axes.iter().chain(stage.reduce_axes()) {
        if let (Some((min, _)), Some(offset)) = (domains.get(axis.var()), offsets.get(axis.var())) {
            let min = substitute_expr(min, &absolute);
            absolute.insert(axis.var().clone(), fold::add(&min, offset));
        }
    }
    absolute
}

/// The loops that derive from reduce axes, in the order in which they run through the points of the reduction as it
/// is defined: row-major over its axes as listed. `None` where no order of the loops does.
pub(crate) fn ascending_order(stage: &Stage) -> Option<Vec<IterVar>> {
    let mut order: Vec<IterVar> = stage.reduce_axes().to_vec();
    let at = |order: &[IterVar], axis: &IterVar| order.iter().position(|a| a == axis);
    for relation in &stage.relations {
        match relation {
            Relation::Split { parent, outer, inner, .. } => {
                if let Some(p) = at(&order, parent) {
                    order.splice(p..=p, [outer.clone(), inner.clone()]);
                }
            }
            Relation::Fuse { outer, inner, fused } => match (at(&order, outer), at(&order, inner)) {
                (Some(o), Some(i)) if o + 1 == i => {
                    order.splice(o..=i, [fused.clone()]);
                }
                (Some(_), Some(_)) => return None,
                (Some(p), None) | (None, Some(p)) => order[p] = fused.clone(),
                (None, None) => {}
            },
            Relation::Singleton { .. } => {}
        }
    }
    Some(order)
}

/// Whether the loops run through the points of the reduction in ascending order, for each element of the result.
pub(crate) fn is_ascending(stage: &Stage, loops: &[IterVar]) -> bool {
    let Some(order) = ascending_order(stage) else { return false };
    let expected: Vec<&IterVar> = order.iter().filter(|a| loops.contains(a)).collect();
    let found: Vec<&IterVar> = loops.iter().filter(|l| order.contains(l)).collect();
    expected == found
}
