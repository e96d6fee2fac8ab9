//! Drops statements without effect: empty loops and branches, lets and allocations that nothing uses, stores of an
//! element to itself.

use coulis_ir::expr::Node;
use coulis_ir::visit::buffers_of;
use coulis_ir::{Form, Kernel, Stmt};

use crate::affine::stmt_uses;
use crate::pass::{Context, LowerError, Pass};
use crate::walk::map_children;

/// The pass.
pub const PASS: Pass = Pass {
    name: "remove_noop",
    from: Form::Flat,
    to: Form::Flat,
    run: remove_noop,
    doc: "drops empty loops and branches, unused lets and allocations, and stores of an element to itself",
};

/// Drops statements without effect.
pub fn remove_noop(kernel: Kernel, _: &Context) -> Result<Kernel, LowerError> {
    let body = walk(kernel.body);
    Ok(Kernel { body, ..kernel })
}

fn walk(stmt: Stmt) -> Stmt {
    let stmt = map_children(stmt, &mut walk);
    let idle = match &stmt {
        Stmt::For { body, extent, .. } => body.is_nop() || extent.as_int().is_some_and(|n| n <= 0),
        Stmt::LaunchThread { .. } => false,
        Stmt::If { then, otherwise, .. } => then.is_nop() && otherwise.as_ref().is_none_or(|s| s.is_nop()),
        Stmt::Store { buffer, indices, value } => {
            matches!(value.node(), Node::Load(from, at) if from == buffer && at == indices)
        }
        Stmt::Let { var, body, .. } => {
            if !stmt_uses(body, var) {
                return unwrap(stmt);
            }
            false
        }
        Stmt::Allocate { buffer, body } => {
            if !buffers_of(body).iter().any(|b| b.data == buffer.data) {
                return unwrap(stmt);
            }
            false
        }
        Stmt::Annotate { body, .. } => body.is_nop(),
        Stmt::Seq(_)
        | Stmt::DeviceEntry
        | Stmt::ScopeIds { .. }
        | Stmt::AllocBuffer(_)
        | Stmt::View { .. }
        | Stmt::Tile(_)
        | Stmt::Atom(_)
        | Stmt::Sync(_) => false,
    };
    match stmt {
        _ if idle => Stmt::NOP,
        Stmt::If { cond, then, otherwise } => {
            Stmt::If { cond, then, otherwise: otherwise.filter(|s| !s.is_nop()) }
        }
        Stmt::Seq(stmts) => Stmt::seq(stmts),
        other => other,
    }
}

fn unwrap(stmt: Stmt) -> Stmt {
    match stmt {
        Stmt::Let { body, .. } | Stmt::Allocate { body, .. } => *body,
        other => other,
    }
}
