//! Marked memory is kept twice: a turn of its loop fills one half for the next turn while it reads the other.
//!
//! `for k: fill(k); use(k)` around an allocation that is marked `double_buffer` becomes `fill(0)`, then
//! `for k: if k + 1 < n: fill(k + 1) in half (k + 1) % 2; use(k) from half k % 2`, so that loads are under way while their
//! predecessors are used, and one barrier a turn is enough. The mark goes away without that where filling depends on
//! what use writes, works across threads, or is not seen to come first: the meaning is the same. Order: after launches
//! are unified, before `place_barriers`, which places the one barrier.
//!
//! Source: the double buffers of seed 003's system.

use coulis_ir::hash::FastMap;

use coulis_ir::expr::{Expr, Node, Var};
use coulis_ir::remark::DOUBLE_BUFFER;
use coulis_ir::stmt::Role;
use coulis_ir::visit::{
    any_stmt, buffers_of, for_each_expr, for_each_stmt, map_children as map_operands, rewrite_stmt,
    stmt_exprs, written_memory,
};
use coulis_ir::{Buffer, Form, Kernel, LoopKind, Stmt};

use crate::affine::{difference, sum};
use crate::binders::copy_with;
use crate::pass::{LowerError, Options, Pass};
use crate::walk::map_children;

/// The pass.
pub const PASS: Pass = Pass {
    name: "inject_double_buffer",
    from: Form::Nest,
    to: Form::Nest,
    run: inject_double_buffer,
    doc: "keeps marked memory twice, so that one half is filled while the other is read",
};

/// Keeps marked memory twice.
pub fn inject_double_buffer(kernel: Kernel, _: &Options) -> Result<Kernel, LowerError> {
    let is_marked = |s: &Stmt| matches!(s, Stmt::Annotate { key, .. } if key == DOUBLE_BUFFER);
    if !any_stmt(&kernel.body, &mut { is_marked }) {
        return Ok(kernel);
    }
    // Marks that no loop took go away.
    let body = rewrite_stmt(walk(kernel.body), &mut |_| None, &mut |s| match s {
        Stmt::Annotate { key, body, .. } if key == DOUBLE_BUFFER => *body,
        other => other,
    });
    Ok(Kernel { body, ..kernel })
}

fn walk(stmt: Stmt) -> Stmt {
    match map_children(stmt, &mut walk) {
        Stmt::For { var, min, extent, kind: LoopKind::Serial, body } => {
            let turn = Turn { var: &var, min: &min, extent: &extent };
            match turn.doubled(&body) {
                Some(doubled) => doubled,
                None => Stmt::for_(var, min, extent, LoopKind::Serial, *body),
            }
        }
        other => other,
    }
}

/// The loop around marked memory.
struct Turn<'a> {
    var: &'a Var,
    min: &'a Expr,
    extent: &'a Expr,
}

impl Turn<'_> {
    /// The loop with two halves, or `None` where it has no mark or is not of that shape.
    fn doubled(&self, body: &Stmt) -> Option<Stmt> {
        let Stmt::Annotate { key, body, .. } = body else { return None };
        let Stmt::Allocate { buffer, body } = &**body else { return None };
        let constant = buffer.shape.iter().all(|e| e.as_int().is_some());
        if key != DOUBLE_BUFFER || !constant || !buffer.strides.is_empty() {
            return None;
        }
        let parts = match &**body {
            Stmt::Seq(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        let n_filling = parts.iter().rposition(|s| written_memory(s).contains(&buffer.data.id()))? + 1;
        let (fill, rest) = parts.split_at(n_filling);
        let (fill, rest) = (Stmt::seq(fill.to_vec()), Stmt::seq(rest.to_vec()));
        if rest.is_nop() || !may_run_ahead(&fill, &rest, buffer) {
            return None;
        }
        let double = buffer.derive(|b| {
            b.data = buffer.data.fresh();
            b.shape.insert(0, Expr::int(2));
        });
        let int = |n: i128| Expr::int_of(n, self.var.dtype());
        let half_of = |turn: &Expr| difference(turn.clone(), self.min.clone()).floormod(int(2));
        let filled = |turn: Expr| {
            let map = FastMap::from_iter([(self.var.clone(), turn.clone())]);
            redirected(copy_with(&fill, &map), buffer, &double, &half_of(&turn))
        };
        let this = self.var.expr();
        let next = this.clone() + int(1);
        let end = sum(self.min.clone(), self.extent.clone());
        let ahead = Stmt::if_(next.clone().lt(end), filled(next));
        let used = redirected(rest, buffer, &double, &half_of(&this));
        let first = match self.extent.as_int() {
            Some(n) if n > 0 => filled(self.min.clone()),
            _ => Stmt::if_(int(0).lt(self.extent.clone()), filled(self.min.clone())),
        };
        let turns = Stmt::for_(
            self.var.clone(),
            self.min.clone(),
            self.extent.clone(),
            LoopKind::Serial,
            Stmt::seq([ahead, used]),
        );
        Some(Stmt::allocate(double, Stmt::seq([first, turns])))
    }
}

/// Whether filling for the next turn may come before the use of this one: it writes the marked memory alone, reads
/// nothing that the use writes, and works in one thread; and no other window looks at the memory.
fn may_run_ahead(fill: &Stmt, rest: &Stmt, buffer: &Buffer) -> bool {
    let mut legal = true;
    let changed = written_memory(rest);
    for_each_stmt(fill, &mut |s| {
        legal &= !matches!(s, Stmt::Sync(_) | Stmt::Atom(_) | Stmt::Tile(_) | Stmt::Allocate { .. });
        s.each_buffer(&mut |b, role| legal &= role != Role::Written || b == buffer);
        for expr in stmt_exprs(s) {
            for_each_expr(expr, &mut |e| {
                if let Node::Load(from, _) = e.node() {
                    legal &= from.data == buffer.data || !changed.contains(&from.data.id());
                }
            });
        }
    });
    let windows = buffers_of(fill).into_iter().chain(buffers_of(rest));
    legal && windows.filter(|b| b.data == buffer.data).all(|b| b == *buffer)
}

/// The statement with accesses of `from` going to one half of `to`.
fn redirected(stmt: Stmt, from: &Buffer, to: &Buffer, half: &Expr) -> Stmt {
    fn on_expr(expr: &Expr, from: &Buffer, to: &Buffer, half: &Expr) -> Expr {
        let new = map_operands(expr, &mut |child| on_expr(child, from, to, half));
        match new.node() {
            Node::Load(buffer, indices) if buffer == from => {
                Expr::load(to.clone(), [half.clone()].into_iter().chain(indices.iter().cloned()).collect())
            }
            _ => new,
        }
    }
    rewrite_stmt(stmt, &mut |e| Some(on_expr(e, from, to, half)), &mut |s| match s {
        Stmt::Store { buffer, indices, value } if buffer == *from => {
            let indices = [half.clone()].into_iter().chain(indices).collect();
            Stmt::Store { buffer: to.clone(), indices, value }
        }
        other => other,
    })
}
