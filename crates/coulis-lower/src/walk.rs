//! One step of recursion over statements, shared by passes that carry something downwards, and rewriting of expressions.

use coulis_ir::hash::{FastMap, roomy_map};
use coulis_ir::visit;
use coulis_ir::{Expr, Stmt};

/// Rewrites expressions from their operands up. What becomes of an expression that several may have as an
/// operand is kept, so that no node is rewritten twice however often it occurs in a kernel.
pub struct Rewriter<W, N> {
    /// Whether something in the expression may change.
    wants: W,
    /// What becomes of an expression whose operands are rewritten, where it changes.
    on_node: N,
    done: FastMap<Expr, Option<Expr>>,
}

impl<W: Fn(&Expr) -> bool, N: FnMut(&Expr) -> Option<Expr>> Rewriter<W, N> {
    /// Nothing rewritten yet.
    pub fn new(wants: W, on_node: N) -> Rewriter<W, N> {
        Rewriter { wants, on_node, done: FastMap::default() }
    }

    /// The rewritten expression, where it is another.
    pub fn of(&mut self, expr: &Expr) -> Option<Expr> {
        if !(self.wants)(expr) {
            return None;
        }
        let is_shared = expr.may_be_shared();
        if is_shared && let Some(done) = self.done.get(expr) {
            return done.clone();
        }
        let rebuilt = visit::change_children(expr, &mut |child| self.of(child));
        let new = (self.on_node)(rebuilt.as_ref().unwrap_or(expr)).or(rebuilt);
        if is_shared {
            if self.done.capacity() == 0 {
                self.done = roomy_map();
            }
            self.done.insert(expr.clone(), new.clone());
        }
        new
    }
}

/// The statement with each statement directly below it replaced by `f` of it.
pub fn try_map_children<E>(mut stmt: Stmt, f: &mut dyn FnMut(Stmt) -> Result<Stmt, E>) -> Result<Stmt, E> {
    visit::try_each_child_mut(&mut stmt, &mut |child| {
        *child = f(std::mem::replace(child, Stmt::NOP))?;
        Ok(())
    })?;
    Ok(match stmt {
        Stmt::Seq(stmts) => Stmt::seq(stmts),
        other => other,
    })
}

/// As [`try_map_children`] for an `f` that cannot fail.
pub fn map_children(stmt: Stmt, f: &mut dyn FnMut(Stmt) -> Stmt) -> Stmt {
    match try_map_children::<std::convert::Infallible>(stmt, &mut |s| Ok(f(s))) {
        Ok(stmt) => stmt,
        Err(never) => match never {},
    }
}
