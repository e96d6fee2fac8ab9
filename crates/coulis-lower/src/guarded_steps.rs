//! Steps over vectors with guards: those on their lanes, which seldom run and are long when they are written
//! out, or stand beside loops and cost little there, and those on vectors that are read again.

use coulis_ir::expr::{Expr, Intrinsic, Node, Var};
use coulis_ir::visit::{any_stmt, for_each_expr, for_each_stmt, stmt_children, stmt_exprs, uses_any};
use coulis_ir::{Buffer, LoopKind, MemScope, Stmt};

/// Registers of a thread into which steps fold that may stay a loop. More leave none for its counters, which
/// are live in the part without guards too: a sum and a maximum of eight columns of bytes, 16 registers, then
/// took 1.05 times as long on an H100.
const MOST_KEPT: i128 = 12;

/// Whether a loop that is to be written out is better one: its vectors have guards on their lanes, each of
/// which is a branch in every step, no place in registers is one of its own steps, and it folds into few of
/// them.
pub fn may_stay_a_loop(var: &Var, body: &Stmt) -> bool {
    let (mut indexed, mut kept) = (false, Vec::new());
    let in_registers = |buffer: &Buffer| matches!(buffer.scope, MemScope::Local | MemScope::Warp);
    let mut defined = vec![var.clone()];
    for_each_stmt(body, &mut |s| {
        match s {
            Stmt::Store { buffer, indices, .. } if in_registers(buffer) => {
                indexed |= indices.iter().any(|at| uses_any(at, &defined));
                if !kept.contains(buffer) {
                    kept.push(buffer.clone());
                }
            }
            Stmt::Let { var, value, .. } if uses_any(value, &defined) => defined.push(var.clone()),
            Stmt::For { var, min, extent, .. } if uses_any(min, &defined) || uses_any(extent, &defined) => {
                defined.push(var.clone());
            }
            Stmt::Allocate { .. } => indexed = true,
            _ => {}
        }
        for expr in stmt_exprs(s) {
            for_each_expr(expr, &mut |e| {
                if let Node::Load(buffer, indices) = e.node()
                    && in_registers(buffer)
                {
                    indexed |= indices.iter().any(|at| uses_any(at, &defined));
                }
            });
        }
    });
    guards_lanes(body) && !indexed && kept.iter().map(registers).sum::<i128>() <= MOST_KEPT
}

/// Whether vectors in the body have guards on their lanes.
pub fn guards_lanes(body: &Stmt) -> bool {
    let (mut guarded, mut lanes) = (false, Vec::new());
    for_each_stmt(body, &mut |s| {
        if let Stmt::For { var, kind: LoopKind::Vectorized, .. } = s {
            lanes.push(var.clone());
        }
        for expr in stmt_exprs(s) {
            for_each_expr(expr, &mut |e| {
                guarded |= matches!(e.node(), Node::Call(Intrinsic::Likely, _)) && uses_any(e, &lanes);
            });
        }
    });
    guarded
}

/// Registers that an array of a thread takes; more than there are where its length is not constant.
fn registers(buffer: &Buffer) -> i128 {
    let words = buffer.dtype.bytes().div_ceil(4) as i128;
    buffer
        .shape
        .iter()
        .try_fold(words, |n, extent| n.checked_mul(extent.as_int()?))
        .unwrap_or(i128::from(u32::MAX))
}

/// Whether vectors of registers are filled from memory at two places.
pub fn reads_vectors_again(stmt: &Stmt) -> bool {
    let (mut filled, mut again) = (Vec::new(), false);
    for_each_stmt(stmt, &mut |s| {
        let Stmt::For { kind: LoopKind::Vectorized, body, .. } = s else { return };
        for_each_stmt(body, &mut |s| {
            if let Stmt::Store { buffer, value, .. } = s
                && matches!(value.node(), Node::Load(from, _) if from.scope == MemScope::Global)
            {
                again |= filled.contains(buffer);
                filled.push(buffer.clone());
            }
        });
    });
    again
}

/// Whether several steps stand in the body, one after another.
pub fn writes_steps_out(body: &Stmt) -> bool {
    any_stmt(body, &mut |s| matches!(s, Stmt::For { kind: LoopKind::Unrolled, .. }))
}

/// Whether a guard is only on lanes of vectors that stand in `body` beside loops, as where the results of rows are stored
/// that those loops fold: one more branch is nothing there, and a second part without the guard would be all of the loops.
pub fn is_beside_loops(body: &Stmt, cond: &Expr) -> bool {
    let is_loop = |s: &Stmt| matches!(s, Stmt::For { kind, .. } if *kind != LoopKind::Vectorized);
    any_stmt(body, &mut |s| is_loop(s)) && !occurs_elsewhere(body, cond)
}

/// Whether a condition stands in `stmt` anywhere but in vectors that are in none of its loops.
fn occurs_elsewhere(stmt: &Stmt, cond: &Expr) -> bool {
    let is_own = holds(stmt, cond);
    match stmt {
        Stmt::For { kind: LoopKind::Vectorized, .. } => false,
        Stmt::For { body, .. } => is_own || any_stmt(body, &mut |s| holds(s, cond)),
        _ => is_own || stmt_children(stmt).any(|child| occurs_elsewhere(child, cond)),
    }
}

/// Whether a condition is part of a statement's own expressions.
fn holds(stmt: &Stmt, cond: &Expr) -> bool {
    let mut found = false;
    stmt_exprs(stmt).into_iter().for_each(|e| for_each_expr(e, &mut |part| found |= part == cond));
    found
}
