//! V8 to V10: variables and buffers are there where they are used.

use crate::hash::Seen;

use super::{Check, Group, Property, Report};
use crate::buffer::Buffer;
use crate::expr::{Expr, Node, Var, VarId};
use crate::kernel::{Kernel, Param};
use crate::stmt::Stmt;
use crate::visit::{for_each_expr, stmt_exprs};

pub(super) const GROUP: Group = Group {
    properties: &[
        Property::new("V8", "variables are defined where they are used"),
        Property::new("V9", "a variable is not defined again inside its own scope"),
        Property::new(
            "V10",
            "accessed buffers are parameters, allocated around the access, or aliases of one of these",
        ),
    ],
    checks: &[Check::Tree(check_scopes)],
};

/// Checks that names are defined around their uses. Variables of the parameters' shapes, strides and offsets are
/// defined by the arguments.
fn check_scopes<'k>(kernel: &'k Kernel, report: &mut Report<'k>) {
    let mut scopes = Scopes { vars: Vec::new(), indices: Vec::new(), report };
    for param in &kernel.params {
        match param {
            Param::Scalar(var) => scopes.vars.push(var.id()),
            Param::Buffer { handle, buffer } => {
                scopes.vars.extend([handle.id(), buffer.data.id()]);
                for expr in buffer.shape.iter().chain(&buffer.strides).chain([&buffer.elem_offset]) {
                    for_each_expr(expr, &mut |e| scopes.vars.extend(e.as_var().map(Var::id)));
                }
            }
        }
    }
    scopes.stmt(&kernel.body);
}

struct Scopes<'r, 'k> {
    /// Variables and data pointers, innermost last.
    vars: Vec<VarId>,
    /// Thread indices of tile programs, which are seen to the end of the function.
    indices: Vec<VarId>,
    report: &'r mut Report<'k>,
}

impl<'k> Scopes<'_, 'k> {
    fn has(&self, var: &Var) -> bool {
        self.vars.contains(&var.id()) || self.indices.contains(&var.id())
    }

    fn define(&mut self, stmt: &'k Stmt, var: &Var) {
        if self.has(var) {
            let text = format!("`{}` is defined again inside its own scope; make a new variable", var.name());
            self.report.at(stmt, "V9", text);
        }
        self.vars.push(var.id());
    }

    fn within(&mut self, f: impl FnOnce(&mut Self)) {
        let depth = self.vars.len();
        f(self);
        self.vars.truncate(depth);
    }

    fn stmt(&mut self, stmt: &'k Stmt) {
        for expr in stmt_exprs(stmt) {
            self.expr(stmt, expr);
        }
        match stmt {
            Stmt::Seq(stmts) => self.within(|s| stmts.iter().for_each(|child| s.stmt(child))),
            Stmt::For { var, body, .. }
            | Stmt::Let { var, body, .. }
            | Stmt::LaunchThread { var, body, .. } => {
                self.within(|s| {
                    s.define(stmt, var);
                    s.stmt(body);
                });
            }
            Stmt::If { then, otherwise, .. } => {
                self.within(|s| s.stmt(then));
                if let Some(otherwise) = otherwise {
                    self.within(|s| s.stmt(otherwise));
                }
            }
            Stmt::Allocate { buffer, body } => self.within(|s| {
                s.define(stmt, &buffer.data);
                s.stmt(body);
            }),
            Stmt::Annotate { body, .. } => self.stmt(body),
            Stmt::Store { buffer, .. } => self.buffer(stmt, buffer),
            Stmt::ScopeIds { vars, .. } => {
                for var in vars {
                    self.define(stmt, var);
                    self.indices.push(var.id());
                }
            }
            Stmt::AllocBuffer(buffer) => self.define(stmt, &buffer.data),
            Stmt::View { source, .. } => self.buffer(stmt, source),
            Stmt::Tile(call) => {
                for region in call.dsts.iter().chain(&call.srcs) {
                    self.buffer(stmt, &region.buffer);
                }
            }
            Stmt::Atom(call) => call.elements().for_each(|e| self.buffer(stmt, &e.buffer)),
            Stmt::DeviceEntry | Stmt::Sync(_) => {}
        }
    }

    fn buffer(&mut self, stmt: &'k Stmt, buffer: &Buffer) {
        if !self.has(&buffer.data) {
            let text =
                format!("`{}` is neither a parameter nor allocated around this statement", buffer.name);
            self.report.at(stmt, "V10", text);
            return;
        }
        for expr in buffer.shape.iter().chain(&buffer.strides).chain([&buffer.elem_offset]) {
            self.expr(stmt, expr);
        }
    }

    fn expr(&mut self, stmt: &'k Stmt, expr: &Expr) {
        if matches!(expr.node(), Node::Int(_) | Node::Float(_)) {
            return;
        }
        self.expr_once(stmt, expr, &mut Seen::default());
    }

    fn expr_once<'e>(&mut self, stmt: &'k Stmt, expr: &'e Expr, seen: &mut Seen<&'e Expr>) {
        if matches!(expr.node(), Node::Int(_) | Node::Float(_)) || expr.may_be_shared() && !seen.insert(expr)
        {
            return;
        }
        match expr.node() {
            Node::Var(var) if !self.has(var) => {
                let text = format!(
                    "`{}` is not defined here; parameters, loops and bindings around a statement define names",
                    var.name()
                );
                self.report.at(stmt, "V8", text);
            }
            Node::Let(var, value, body) => {
                self.expr_once(stmt, value, seen);
                self.within(|s| {
                    s.define(stmt, var);
                    s.expr(stmt, body);
                });
            }
            Node::Load(buffer, _) => {
                self.buffer(stmt, buffer);
                expr.each_child(|child| self.expr_once(stmt, child, seen));
            }
            _ => expr.each_child(|child| self.expr_once(stmt, child, seen)),
        }
    }
}
