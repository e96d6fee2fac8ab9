//! Drops statements without effect: empty loops and branches, lets and allocations that nothing uses, stores of an
//! element to itself.

use coulis_ir::expr::Node;
use coulis_ir::hash::{FastSet, roomy_set};
use coulis_ir::visit::stmt_exprs;
use coulis_ir::{Buffer, Expr, Form, Kernel, Role, Stmt, VarId};

use crate::pass::{LowerError, Options, Pass};
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
pub fn remove_noop(kernel: Kernel, _: &Options) -> Result<Kernel, LowerError> {
    let body = Walk { used: roomy_set(), seen: roomy_set() }.stmt(kernel.body);
    Ok(Kernel { body, ..kernel })
}

/// What the statements that stay use, as far as the walk has come. Each is looked at once, from the innermost on, so what
/// is bound or allocated around it has all its uses in here when its turn comes.
struct Walk {
    /// Variables, and pointers of memory.
    used: FastSet<VarId>,
    /// Expressions whose variables and memory are in `used`, as far as several may have them as operands.
    seen: FastSet<Expr>,
}

impl Walk {
    fn stmt(&mut self, stmt: Stmt) -> Stmt {
        let stmt = map_children(stmt, &mut |s| self.stmt(s));
        let idle = match &stmt {
            Stmt::For { body, extent, .. } => body.is_nop() || extent.as_int().is_some_and(|n| n <= 0),
            Stmt::If { then, otherwise, .. } => {
                then.is_nop() && otherwise.as_ref().is_none_or(|s| s.is_nop())
            }
            Stmt::Store { buffer, indices, value } => {
                matches!(value.node(), Node::Load(from, at) if from == buffer && at == indices)
            }
            Stmt::Annotate { body, .. } => body.is_nop(),
            Stmt::LaunchThread { .. }
            | Stmt::Let { .. }
            | Stmt::Allocate { .. }
            | Stmt::Seq(_)
            | Stmt::DeviceEntry
            | Stmt::ScopeIds { .. }
            | Stmt::AllocBuffer(_)
            | Stmt::View { .. }
            | Stmt::Tile(_)
            | Stmt::Atom(_)
            | Stmt::Sync(_) => false,
        };
        let stmt = match stmt {
            _ if idle => return Stmt::NOP,
            Stmt::Let { var, body, .. } if !self.used.contains(&var.id()) => return *body,
            Stmt::Allocate { buffer, body } if !self.used.contains(&buffer.data.id()) => return *body,
            Stmt::If { cond, then, otherwise } => {
                Stmt::If { cond, then, otherwise: otherwise.filter(|s| !s.is_nop()) }
            }
            Stmt::Seq(stmts) => return Stmt::seq(stmts),
            other => other,
        };
        stmt.each_buffer(&mut |buffer, role| match role {
            // A view has the memory of the buffer that it looks at.
            Role::Viewed | Role::Written | Role::Read => self.uses(buffer),
            Role::Declared => {}
        });
        stmt_exprs(&stmt).into_iter().for_each(|e| self.expr(e));
        stmt
    }

    fn uses(&mut self, buffer: &Buffer) {
        self.used.insert(buffer.data.id());
    }

    fn expr(&mut self, expr: &Expr) {
        if expr.may_be_shared() && !self.seen.insert(expr.clone()) {
            return;
        }
        match expr.node() {
            Node::Var(var) => {
                self.used.insert(var.id());
            }
            Node::Load(buffer, _) => self.uses(buffer),
            _ => {}
        }
        expr.each_child(|child| self.expr(child));
    }
}
