//! What likely guards say of the iterations of a loop: from where on they surely hold, and surely fail.

use coulis_ir::expr::{BinaryOp, Expr, Intrinsic, Node, Var};
use coulis_ir::hash::FastMap;
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{for_each_expr, for_each_stmt, stmt_children, stmt_exprs, substitute_expr};
use coulis_ir::{LoopKind, Stmt};

use crate::affine::{Comparison, conjuncts, difference, product, sum, uses, widen};
use crate::eager::Eager;

/// A guard and the iterations for which it holds.
#[derive(Clone)]
pub struct Guard {
    /// The comparison as it stands in the text.
    pub cond: Expr,
    /// It surely holds on this side of the cut.
    pub side: Side,
    /// The cut, in the type of the comparison.
    pub cut: Expr,
    /// Where it begins to fail surely (below which it does, for [`Side::From`]); equal to `cut` where no inner loop
    /// takes part.
    pub fail: Expr,
}

impl Guard {
    /// Whether both hold, and fail, for the same iterations.
    pub fn cuts_as(&self, other: &Guard) -> bool {
        self.side == other.side && self.cut == other.cut && self.fail == other.fail
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Side {
    Below,
    From,
}

/// What holds from the first cut of the loop of `var` on where that is one of guards on the lanes of vectors, and on no loop beside it,
/// all of which begin to fail there: that a vector is not whole. Later passes then write no code for whole ones.
pub fn in_part_of_lanes(var: &Var, body: &Stmt, guards: &[Guard]) -> Option<Expr> {
    let mut loops: Vec<(Var, LoopKind, Expr)> = Vec::new();
    for_each_stmt(body, &mut |s| {
        if let Stmt::For { var, extent, kind, .. } = s {
            loops.push((var.clone(), *kind, extent.clone()));
        }
    });
    let inside = |g: &Guard| loops.iter().filter(|(var, ..)| uses(&g.cond, var)).collect::<Vec<_>>();
    let upper = guards.iter().filter(|g| g.side == Side::Below);
    let (of_lanes, others): (Vec<&Guard>, Vec<&Guard>) = upper.partition(|g| !inside(g).is_empty());
    let first = of_lanes.first()?;
    let [(lane, LoopKind::Vectorized, lanes)] = inside(first)[..] else { return None };
    let are_alike = of_lanes.iter().all(|g| g.cuts_as(first) && inside(g).len() == 1);
    // That of a vector's first lane fails where all of them do.
    let are_later = others.iter().all(|g| g.cut == first.fail);
    let last = Expr::int_of(lanes.as_int()? - 1, lane.dtype());
    let of_last = substitute_expr(&first.cond, &FastMap::from_iter([(lane.clone(), last)]));
    // It is the last lane that fails first, and no bound of all lanes which none of them has.
    let is_of_last = solve(&of_last, var, &Inside::new())?.cut == first.cut;
    (are_alike && are_later && is_of_last).then(|| of_last.logical_not())
}

/// The variables of serial loops in a statement.
pub fn serial_loops(stmt: &Stmt) -> Vec<Var> {
    let mut vars = Vec::new();
    for_each_stmt(stmt, &mut |s| {
        if let Stmt::For { var, kind: LoopKind::Serial, .. } = s {
            vars.push(var.clone());
        }
    });
    vars
}

/// The likely comparisons in the body that can be solved for `var`, each once, and have cuts where `known` holds.
pub fn guards_of(body: &Stmt, var: &Var, threads: &Inside, known: &Analyzer) -> Vec<Guard> {
    let mut found: Vec<(Expr, Option<Guard>)> = Vec::new();
    collect(body, var, &mut threads.clone(), &mut found);
    let has_cuts = |g: &Guard| [&g.cut, &g.fail].iter().all(|cut| Eager::new(known).has_quotients(cut));
    found.into_iter().filter_map(|(_, guard)| guard).filter(has_cuts).collect()
}

/// The variables bound inside the loop, with `(min, extent)` where they are those of a loop.
pub type Inside = Vec<(Var, Option<(Expr, Expr)>)>;

fn collect(stmt: &Stmt, var: &Var, inside: &mut Inside, found: &mut Vec<(Expr, Option<Guard>)>) {
    for expr in stmt_exprs(stmt) {
        for_each_expr(expr, &mut |e| {
            let Node::Call(Intrinsic::Likely, args) = e.node() else { return };
            for cond in conjuncts(&args[0]) {
                if !uses(&cond, var) {
                    continue;
                }
                let guard = solve(&cond, var, inside);
                match found.iter_mut().find(|(c, _)| *c == cond) {
                    None => found.push((cond, guard)),
                    // One comparison under loops of different ranges: usable where both say the same.
                    Some((_, earlier)) => {
                        let cut = |g: &Option<Guard>| g.as_ref().map(|g| (g.cut.clone(), g.fail.clone()));
                        if cut(earlier) != cut(&guard) {
                            *earlier = None;
                        }
                    }
                }
            }
        });
    }
    let bound = match stmt {
        Stmt::For { var, min, extent, .. } => Some((var, Some((min.clone(), extent.clone())))),
        Stmt::LaunchThread { var, extent, .. } => {
            Some((var, Some((Expr::int_of(0, var.dtype()), extent.clone()))))
        }
        // It has one value.
        Stmt::Let { var, value, .. } if value.dtype().is_int() => {
            Some((var, Some((value.clone(), Expr::int_of(1, var.dtype())))))
        }
        Stmt::Let { var, .. } => Some((var, None)),
        _ => None,
    };
    let depth = inside.len();
    inside.extend(bound.map(|(v, range)| (v.clone(), range)));
    for child in stmt_children(stmt) {
        collect(child, var, inside, found);
    }
    inside.truncate(depth);
}

/// The cut of one comparison, with the variables of `inside` anywhere in their ranges.
fn solve(cond: &Expr, var: &Var, inside: &Inside) -> Option<Guard> {
    let found = Comparison::of(cond, var)?;
    let boundary = |left: Expr, right: Expr| {
        let at = Analyzer::new().simplify(&found.cut(left, right));
        if uses(&at, var) { None } else { Some(at) }
    };
    let cut = boundary(extreme(&found.left, inside, true)?, extreme(&found.right, inside, false)?)?;
    let fail = boundary(extreme(&found.left, inside, false)?, extreme(&found.right, inside, true)?)?;
    let side = if found.step > 0 { Side::Below } else { Side::From };
    Some(Guard { cond: cond.clone(), side, cut, fail })
}

/// The largest or smallest value of an index expression over the ranges of `inside`, as far as it is monotone in
/// each of them; `None` where that is not seen.
fn extreme(expr: &Expr, inside: &Inside, largest: bool) -> Option<Expr> {
    if !inside.iter().any(|(v, _)| uses(expr, v)) {
        return if expr.reads_memory() { None } else { Some(expr.clone()) };
    }
    let dtype = expr.dtype();
    match expr.node() {
        Node::Var(var) => {
            let (_, range) = inside.iter().rev().find(|(v, _)| v == var)?;
            // An index of a launch may be narrower than what the launch counts in.
            let [min, extent] =
                range.as_ref().map(|(min, extent)| [min, extent].map(|e| widen(e.clone(), dtype)))?;
            let at = if largest { sum(min, difference(extent, Expr::int_of(1, dtype))) } else { min };
            extreme(&at, inside, largest)
        }
        Node::Binary(BinaryOp::Add, a, b) => {
            Some(sum(extreme(a, inside, largest)?, extreme(b, inside, largest)?))
        }
        Node::Binary(BinaryOp::Sub, a, b) => {
            Some(difference(extreme(a, inside, largest)?, extreme(b, inside, !largest)?))
        }
        Node::Binary(BinaryOp::Mul, a, b) => {
            let (inner, factor) = if b.as_int().is_some() { (a, b) } else { (b, a) };
            let n = factor.as_int()?;
            Some(product(extreme(inner, inside, largest == (n >= 0))?, factor.clone()))
        }
        Node::Binary(BinaryOp::FloorDiv, a, b) if b.as_int().is_some_and(|n| n > 0) => {
            Some(extreme(a, inside, largest)?.floordiv(b.clone()))
        }
        Node::Binary(BinaryOp::FloorMod, _, b) if b.as_int().is_some_and(|n| n > 0) => {
            let n = b.as_int()?;
            Some(Expr::int_of(if largest { n - 1 } else { 0 }, dtype))
        }
        Node::Binary(op @ (BinaryOp::Min | BinaryOp::Max), a, b) => {
            Some(Expr::binary(*op, extreme(a, inside, largest)?, extreme(b, inside, largest)?))
        }
        Node::Cast(a) if a.dtype().is_int() && a.dtype().bytes() <= dtype.bytes() => {
            Some(widen(extreme(a, inside, largest)?, dtype))
        }
        _ => None,
    }
}
