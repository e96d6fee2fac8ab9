//! What the conditions of branches say of the lanes of a vector.

use coulis_ir::Stmt;
use coulis_ir::expr::{Expr, Node, Var};
use coulis_ir::visit::{any_stmt, for_each_expr, for_each_stmt};

use crate::affine::{Comparison, conjuncts, uses};
use crate::vector_expr::Lanes;

/// What one part of a condition says of the lanes.
pub enum Part {
    /// The same for all lanes.
    Same,
    /// Holds exactly for the lanes below the bound.
    Below(Expr),
    /// Depends on memory that the lane selects.
    Data,
    /// Anything else.
    Other,
}

/// What the part of a condition says of the lanes.
pub fn classify(cond: &Expr, lanes: &Lanes) -> Part {
    if !uses(cond, &lanes.var) {
        return Part::Same;
    }
    if let Some(bound) = upper_bound(cond, &lanes.var) {
        return Part::Below(bound);
    }
    let mut reads = false;
    for_each_expr(cond, &mut |e| {
        reads |= matches!(e.node(), Node::Load(..)) && uses(e, &lanes.var);
    });
    if reads { Part::Data } else { Part::Other }
}

/// The `T` such that the condition says `lane < T`.
fn upper_bound(cond: &Expr, lane: &Var) -> Option<Expr> {
    let found = Comparison::of(cond, lane).filter(|found| found.step > 0)?;
    Some(found.cut(found.left.clone(), found.right.clone()))
}

/// Whether a branch in the statement hangs on the lane alone.
pub fn has_lane_guard(stmt: &Stmt, lanes: &Lanes) -> bool {
    let mut found = false;
    for_each_stmt(stmt, &mut |s| {
        if let Stmt::If { cond, .. } = s {
            found |= conjuncts(cond)
                .iter()
                .any(|part| matches!(classify(part, lanes), Part::Below(_) | Part::Other));
        }
    });
    found
}

/// Whether a branch in the statement hangs on elements of memory, or a choice in it reads some: vectors of either read all of them, where
/// these are known to be inside their memory.
pub fn has_data_guard(stmt: &Stmt) -> bool {
    let chooses = |value: &Expr| {
        let mut found = false;
        for_each_expr(value, &mut |e| found |= matches!(e.node(), Node::IfThenElse(..)) && e.reads_memory());
        found
    };
    any_stmt(stmt, &mut |s| match s {
        Stmt::If { cond, .. } => cond.reads_memory(),
        Stmt::Store { value, .. } => chooses(value),
        _ => false,
    })
}
