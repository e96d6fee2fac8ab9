//! Equality of kernels up to the identity of variables and buffers.

use crate::hash::FastMap;

use crate::atom::Element;
use crate::buffer::Buffer;
use crate::expr::{Expr, Node, Var, VarId};
use crate::kernel::{Kernel, Param};
use crate::stmt::{Region, Stmt, TileCall};

/// Whether two kernels are the same but for ids: same structure, types, constants and binding; the printed names
/// of variables and buffers are not compared.
pub fn kernels_equal(a: &Kernel, b: &Kernel) -> bool {
    let mut eq = Matcher::default();
    a.name == b.name
        && a.attrs == b.attrs
        && a.form == b.form
        && a.params.len() == b.params.len()
        && a.params.iter().zip(&b.params).all(|(x, y)| eq.param(x, y))
        && eq.stmt(&a.body, &b.body)
}

/// Whether two statements do the same: they differ in nothing but which variables and memory they bind themselves.
pub fn stmts_equal(a: &Stmt, b: &Stmt) -> bool {
    Matcher { free: Free::AreTheSame, ..Matcher::default() }.stmt(a, b)
}

/// What is asked of variables that no binder introduced.
#[derive(Clone, Copy, Default, PartialEq)]
enum Free {
    /// That they correspond.
    #[default]
    Correspond,
    /// That they are the same.
    AreTheSame,
}

/// One-to-one correspondence of variables, built while walking both kernels.
#[derive(Default)]
struct Matcher {
    free: Free,
    vars: FastMap<VarId, VarId>,
    vars_back: FastMap<VarId, VarId>,
}

impl Matcher {
    /// Two occurrences. Those that no binder introduced (sizes, strides, parameters) correspond from their first
    /// occurrence on, and are of one kind.
    fn var(&mut self, a: &Var, b: &Var) -> bool {
        match (self.vars.get(&a.id()), self.vars_back.get(&b.id())) {
            (None, None) if self.free == Free::AreTheSame => a == b,
            (None, None) => a.kind() == b.kind() && self.pair(a, b),
            (Some(to), Some(from)) => *to == b.id() && *from == a.id(),
            _ => false,
        }
    }

    fn pair(&mut self, a: &Var, b: &Var) -> bool {
        self.vars.insert(a.id(), b.id());
        self.vars_back.insert(b.id(), a.id());
        a.dtype() == b.dtype()
    }

    /// Two binders and what they bind. A variable may be bound again elsewhere; kinds are not compared, for the
    /// binder says which values there are.
    fn bound(&mut self, a: &Var, b: &Var, inside: impl FnOnce(&mut Matcher) -> bool) -> bool {
        let (old, old_back) = (self.vars.get(&a.id()).copied(), self.vars_back.get(&b.id()).copied());
        let equal = self.pair(a, b) && inside(self);
        restore(&mut self.vars, a.id(), old);
        restore(&mut self.vars_back, b.id(), old_back);
        equal
    }

    /// Two buffers: equal in all but name and identity. Aliases that agree in every field are one buffer.
    fn buffer(&mut self, a: &Buffer, b: &Buffer) -> bool {
        a.dtype == b.dtype
            && a.scope == b.scope
            && a.align == b.align
            && a.layout == b.layout
            && a.auto_broadcast == b.auto_broadcast
            && self.var(&a.data, &b.data)
            && self.exprs(&a.shape, &b.shape)
            && self.exprs(&a.strides, &b.strides)
            && self.expr(&a.elem_offset, &b.elem_offset)
    }

    fn param(&mut self, a: &Param, b: &Param) -> bool {
        match (a, b) {
            (Param::Buffer { handle: h, buffer: x }, Param::Buffer { handle: g, buffer: y }) => {
                self.var(h, g) && self.buffer(x, y)
            }
            (Param::Scalar(x), Param::Scalar(y)) => self.var(x, y),
            _ => false,
        }
    }

    fn exprs(&mut self, a: &[Expr], b: &[Expr]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(x, y)| self.expr(x, y))
    }

    fn expr(&mut self, a: &Expr, b: &Expr) -> bool {
        if a.ty() != b.ty() {
            return false;
        }
        match (a.node(), b.node()) {
            (Node::Var(x), Node::Var(y)) => self.var(x, y),
            (Node::Int(x), Node::Int(y)) => x == y,
            (Node::Float(x), Node::Float(y)) => x == y,
            (Node::Binary(o, x1, x2), Node::Binary(p, y1, y2)) => {
                o == p && self.expr(x1, y1) && self.expr(x2, y2)
            }
            (Node::Not(x), Node::Not(y))
            | (Node::Cast(x), Node::Cast(y))
            | (Node::Broadcast(x), Node::Broadcast(y)) => self.expr(x, y),
            (Node::Select(x1, x2, x3), Node::Select(y1, y2, y3))
            | (Node::IfThenElse(x1, x2, x3), Node::IfThenElse(y1, y2, y3)) => {
                self.expr(x1, y1) && self.expr(x2, y2) && self.expr(x3, y3)
            }
            (Node::Call(f, xs), Node::Call(g, ys)) => f == g && self.exprs(xs, ys),
            (Node::Load(x, xs), Node::Load(y, ys)) => self.buffer(x, y) && self.exprs(xs, ys),
            (Node::Ramp(x1, x2), Node::Ramp(y1, y2)) => self.expr(x1, y1) && self.expr(x2, y2),
            (Node::Let(v, x1, x2), Node::Let(w, y1, y2)) => {
                self.expr(x1, y1) && self.bound(v, w, |eq| eq.expr(x2, y2))
            }
            _ => false,
        }
    }

    fn region(&mut self, a: &Region, b: &Region) -> bool {
        self.buffer(&a.buffer, &b.buffer)
            && a.ranges.len() == b.ranges.len()
            && a.ranges.iter().zip(&b.ranges).all(|((x, n), (y, m))| self.expr(x, y) && self.expr(n, m))
    }

    fn element(&mut self, a: Option<&Element>, b: Option<&Element>) -> bool {
        match (a, b) {
            (None, None) => true,
            (Some(x), Some(y)) => self.buffer(&x.buffer, &y.buffer) && self.exprs(&x.indices, &y.indices),
            _ => false,
        }
    }

    fn tile_call(&mut self, a: &TileCall, b: &TileCall) -> bool {
        a.op == b.op
            && a.scope == b.scope
            && a.dispatch == b.dispatch
            && a.options == b.options
            && a.dsts.len() == b.dsts.len()
            && a.srcs.len() == b.srcs.len()
            && a.dsts.iter().zip(&b.dsts).all(|(x, y)| self.region(x, y))
            && a.srcs.iter().zip(&b.srcs).all(|(x, y)| self.region(x, y))
    }

    fn stmt(&mut self, a: &Stmt, b: &Stmt) -> bool {
        match (a, b) {
            (Stmt::Seq(_), _) | (_, Stmt::Seq(_)) => {
                let (x, y) = (a.in_sequence(), b.in_sequence());
                x.len() == y.len() && x.iter().zip(y).all(|(s, t)| self.stmt(s, t))
            }
            (
                Stmt::For { var: v, min: m, extent: e, kind: k, body: s },
                Stmt::For { var: w, min: n, extent: f, kind: l, body: t },
            ) => k == l && self.expr(m, n) && self.expr(e, f) && self.bound(v, w, |eq| eq.stmt(s, t)),
            (Stmt::If { cond: c, then: s, otherwise: x }, Stmt::If { cond: d, then: t, otherwise: y }) => {
                self.expr(c, d)
                    && self.stmt(s, t)
                    && match (x, y) {
                        (None, None) => true,
                        (Some(x), Some(y)) => self.stmt(x, y),
                        _ => false,
                    }
            }
            (
                Stmt::Store { buffer: x, indices: i, value: u },
                Stmt::Store { buffer: y, indices: j, value: v },
            ) => self.buffer(x, y) && self.exprs(i, j) && self.expr(u, v),
            (Stmt::Let { var: v, value: x, body: s }, Stmt::Let { var: w, value: y, body: t }) => {
                self.expr(x, y) && self.bound(v, w, |eq| eq.stmt(s, t))
            }
            (Stmt::Allocate { buffer: x, body: s }, Stmt::Allocate { buffer: y, body: t }) => {
                self.bound(&x.data, &y.data, |eq| eq.buffer(x, y) && eq.stmt(s, t))
            }
            (
                Stmt::Annotate { node: v, key: k, value: x, body: s },
                Stmt::Annotate { node: w, key: l, value: y, body: t },
            ) => {
                let nodes = match (v, w) {
                    (None, None) => true,
                    (Some(v), Some(w)) if self.vars.contains_key(&v.id()) => self.var(v, w),
                    (Some(v), Some(w)) => !self.vars_back.contains_key(&w.id()) && v.name() == w.name(),
                    _ => false,
                };
                nodes && k == l && x == y && self.stmt(s, t)
            }
            (
                Stmt::LaunchThread { tag: a, var: v, extent: e, body: s },
                Stmt::LaunchThread { tag: b, var: w, extent: f, body: t },
            ) => a == b && self.expr(e, f) && self.bound(v, w, |eq| eq.stmt(s, t)),
            (Stmt::DeviceEntry, Stmt::DeviceEntry) => true,
            (
                Stmt::ScopeIds { id: a, vars: v, extents: e },
                Stmt::ScopeIds { id: b, vars: w, extents: f },
            ) => {
                a == b
                    && v.len() == w.len()
                    && self.exprs(e, f)
                    && v.iter().zip(w).all(|(x, y)| self.pair(x, y))
            }
            (Stmt::AllocBuffer(x), Stmt::AllocBuffer(y)) => self.pair(&x.data, &y.data) && self.buffer(x, y),
            (
                Stmt::View { buffer: x, source: s, local: l },
                Stmt::View { buffer: y, source: t, local: m },
            ) => l == m && self.buffer(s, t) && self.buffer(x, y),
            (Stmt::Tile(x), Stmt::Tile(y)) => self.tile_call(x, y),
            (Stmt::Atom(x), Stmt::Atom(y)) => {
                x.atom == y.atom
                    && self.element(x.dst.as_ref(), y.dst.as_ref())
                    && self.element(x.memory.as_ref(), y.memory.as_ref())
                    && self.exprs(&x.args, &y.args)
            }
            (Stmt::Sync(x), Stmt::Sync(y)) => x == y,
            _ => false,
        }
    }
}

fn restore(map: &mut FastMap<VarId, VarId>, key: VarId, old: Option<VarId>) {
    match old {
        Some(old) => map.insert(key, old),
        None => map.remove(&key),
    };
}
