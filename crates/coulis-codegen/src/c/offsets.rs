//! Indices as a rest and a constant: equal rests of two indices mean that they are a constant apart.
//!
//! Variables that a kernel binds once, to arithmetic of other variables, are looked through. A rest that reads memory
//! or uses a variable that is bound several times is none: it may change between two uses.

use coulis_ir::hash::{FastMap, FastSet};

use coulis_ir::visit::{for_each_expr, stmt_children, stmt_exprs};
use coulis_ir::{BinaryOp, Expr, Node, Stmt, VarId};

use crate::c::index::{constant, fold, fold_binary};

/// A rest of more nodes than this is not written out in place of its variable.
const MAX_NODES: usize = 64;

/// What the `let`s of a kernel say about indices.
#[derive(Debug, Default)]
pub struct Offsets {
    /// Variables that are bound once, to an index: its rest and constant.
    known: FastMap<VarId, (Expr, i64)>,
    /// Variables that several `let`s bind.
    rebound: FastSet<VarId>,
}

impl Offsets {
    /// Of a kernel's body.
    pub fn of(body: &Stmt) -> Offsets {
        let mut offsets = Offsets::default();
        let mut bound = FastSet::default();
        offsets.count(body, &mut bound);
        offsets.define(body);
        offsets
    }

    /// Whether the variable is bound once, to an index: its value is the same wherever it is used.
    pub fn is_known(&self, var: VarId) -> bool {
        self.known.contains_key(&var)
    }

    /// `(rest, constant)` of a scalar index.
    pub fn split(&self, expr: &Expr) -> Option<(Expr, i64)> {
        let (rest, offset) = self.parts(expr);
        let mut stable = true;
        for_each_expr(&rest, &mut |e| {
            stable &= match e.node() {
                Node::Load(..) | Node::Let(..) => false,
                Node::Var(var) => !self.rebound.contains(&var.id()),
                _ => true,
            };
        });
        stable.then_some((rest, offset))
    }

    fn count(&mut self, stmt: &Stmt, bound: &mut FastSet<VarId>) {
        let mut bind = |var: VarId| {
            if !bound.insert(var) {
                self.rebound.insert(var);
            }
        };
        if let Stmt::Let { var, .. } = stmt {
            bind(var.id());
        }
        for expr in stmt_exprs(stmt) {
            for_each_expr(expr, &mut |e| {
                if let Node::Let(var, _, _) = e.node() {
                    bind(var.id());
                }
            });
        }
        for child in stmt_children(stmt) {
            self.count(child, bound);
        }
    }

    fn define(&mut self, stmt: &Stmt) {
        if let Stmt::Let { var, value, .. } = stmt
            && value.lanes() == 1
            && value.dtype().is_int()
            && !self.rebound.contains(&var.id())
            && let Some(split) = self.split(value)
            && is_small(&split.0)
        {
            self.known.insert(var.id(), split);
        }
        for child in stmt_children(stmt) {
            self.define(child);
        }
    }

    fn parts(&self, expr: &Expr) -> (Expr, i64) {
        let dtype = expr.dtype();
        if let Some(value) = constant(expr) {
            return (Expr::int_of(0, dtype), value);
        }
        let whole = || (expr.clone(), 0);
        match expr.node() {
            Node::Var(var) => self.known.get(&var.id()).cloned().unwrap_or_else(whole),
            Node::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) => {
                let ((x, c), (y, d)) = (self.parts(a), self.parts(b));
                let sum = if *op == BinaryOp::Add { c.checked_add(d) } else { c.checked_sub(d) };
                sum.map_or_else(whole, |sum| (fold_binary(*op, x, y), sum))
            }
            Node::Binary(BinaryOp::Mul, a, b) => {
                let (x, c) = self.parts(a);
                let product = constant(b).and_then(|factor| c.checked_mul(factor));
                product.map_or_else(whole, |product| (fold_binary(BinaryOp::Mul, x, b.clone()), product))
            }
            // As in ramps: an index stays within its type.
            Node::Cast(a) if a.dtype().is_int() && dtype.is_int() && a.dtype().bytes() <= dtype.bytes() => {
                let (x, c) = self.parts(a);
                (fold(&x.cast(dtype)), c)
            }
            _ => whole(),
        }
    }
}

fn is_small(expr: &Expr) -> bool {
    fn size(expr: &Expr, left: &mut usize) -> bool {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        expr.children().all(|child| size(child, left))
    }
    size(expr, &mut MAX_NODES.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use coulis_ir::{DType, Var};

    fn int(value: i64) -> Expr {
        Expr::int_of(i128::from(value), DType::I64)
    }

    #[test]
    fn variables_bound_once_are_looked_through() {
        let [i, x, y] = ["i", "x", "y"].map(|name| Var::new(name, DType::I64));
        let bind =
            |var: &Var, value: Expr, body: Stmt| Stmt::Let { var: var.clone(), value, body: Box::new(body) };
        let none = || Stmt::seq([]);
        let offsets = Offsets::of(&bind(&x, i.expr() * int(16), bind(&y, x.expr() + int(3), none())));
        let rest = i.expr() * int(16);
        assert_eq!(offsets.split(&x.expr()), Some((rest.clone(), 0)));
        assert_eq!(offsets.split(&(y.expr() * int(2) - int(5))), Some((rest * int(2), 1)));
        let twice = Stmt::seq([bind(&x, i.expr(), none()), bind(&x, i.expr() + int(1), none())]);
        assert_eq!(Offsets::of(&twice).split(&(x.expr() + int(1))), None);
    }
}
