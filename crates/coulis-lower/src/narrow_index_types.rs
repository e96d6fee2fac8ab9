//! Narrows int64 indices of threads to int32 where their values are shown to fit.
//!
//! Machines with threads do arithmetic on 32 bits, and take several instructions for one on 64. A loop or
//! thread variable becomes int32 where everything that is computed from it in int64 has constant bounds that
//! int32 holds: then no value changes. What hangs on a size that is known at a call only stays in int64
//! (contract N6). Nothing is widened here. Variables that meet in one expression are narrowed together or not
//! at all, so that no conversion appears in the middle of one. Source: the narrowing of seed 003's lowering.
//! Order: late, since it looks at values and not at shapes of expressions; before names are given to common
//! subexpressions.

use std::cell::RefCell;

use coulis_ir::expr::Names;
use coulis_ir::hash::{FastMap, Seen, roomy_map};
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::map_children;
use coulis_ir::{BinaryOp, DType, Element, Expr, Form, Kernel, Node, Stmt, Var, VarKind};

use crate::pass::{LowerError, Options, Pass};
use crate::simplify::with_loop;

/// The pass.
pub const PASS: Pass = Pass {
    name: "narrow_index_types",
    from: Form::Flat,
    to: Form::Flat,
    run: narrow_index_types,
    doc: "int64 loop and thread variables become int32 where all that is computed from them is shown to fit",
};

/// Narrows variables of kernels for machines with threads.
pub fn narrow_index_types(kernel: Kernel, options: &Options) -> Result<Kernel, LowerError> {
    if !options.target.has_threads() {
        return Ok(kernel);
    }
    let mut groups = Groups::default();
    groups.stmt(&kernel.body, &Analyzer::new());
    let vars = groups.narrowed();
    if vars.is_empty() {
        return Ok(kernel);
    }
    let names = vars.keys().fold(Names::default(), |names, var| names.and(Names::of(var)));
    let narrow = Narrowing { vars, names, done: RefCell::new(roomy_map()) };
    let body = narrow.stmt(kernel.body);
    Ok(Kernel { body, ..kernel })
}

/// What is known in the body of a let.
fn with_value(known: &Analyzer, var: &Var, value: &Expr) -> Analyzer {
    let mut inner = known.clone();
    if !value.reads_memory() {
        inner.bind_value(var, value);
    }
    inner
}

/// Operations whose int32 results are the int64 ones, where operands and results fit.
fn is_arithmetic(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::TruncMod
            | BinaryOp::FloorDiv
            | BinaryOp::FloorMod
            | BinaryOp::Min
            | BinaryOp::Max
    )
}

/// Whether a value of that type is one of int32.
fn is_within_int32(dtype: DType) -> bool {
    matches!(dtype, DType::Bool | DType::I8 | DType::I16 | DType::I32 | DType::U8 | DType::U16)
}

/// Whether the value is shown to be one of int32.
fn fits_int32(expr: &Expr, known: &Analyzer) -> bool {
    let (lo, hi) = (i128::from(i32::MIN), i128::from(i32::MAX));
    known.is_within(expr, lo, hi)
}

/// Variables by the expressions in which they meet.
#[derive(Default)]
struct Groups<'k> {
    /// Position of each variable.
    at: FastMap<Var, usize>,
    /// The variable that stands for a group, by position of each of its members.
    parent: Vec<usize>,
    /// Whether the variable is bound in the body, to be replaced there.
    bound: Vec<bool>,
    /// Whether something of the variable's does not fit.
    beyond: Vec<bool>,
    /// Expressions of the statement that were looked at, as far as several may have them as operands.
    seen: Seen<&'k Expr>,
}

impl<'k> Groups<'k> {
    fn position(&mut self, var: &Var) -> usize {
        if let Some(at) = self.at.get(var) {
            return *at;
        }
        let at = self.parent.len();
        self.at.insert(var.clone(), at);
        self.parent.push(at);
        self.bound.push(false);
        self.beyond.push(false);
        at
    }

    fn root(&self, mut at: usize) -> usize {
        while self.parent[at] != at {
            at = self.parent[at];
        }
        at
    }

    fn join(&mut self, members: &[usize], fits: bool) {
        let Some(first) = members.first().map(|at| self.root(*at)) else { return };
        for at in members {
            let root = self.root(*at);
            self.parent[root] = first;
            self.beyond[first] |= self.beyond[root];
        }
        self.beyond[first] |= !fits;
    }

    /// Variables that become int32, with the ones that they become.
    fn narrowed(&self) -> FastMap<Var, Var> {
        let mut legal: Vec<bool> = self.beyond.iter().map(|beyond| !beyond).collect();
        for at in 0..self.parent.len() {
            if !self.bound[at] {
                legal[self.root(at)] = false;
            }
        }
        let vars = self.at.iter().filter(|(_, at)| legal[self.root(**at)]);
        vars.map(|(var, _)| (var.clone(), as_int32(var))).collect()
    }

    /// The variables of an int64 expression, and whether all of it fits. What it only contains is looked at apart.
    fn value(&mut self, expr: &'k Expr, known: &Analyzer, members: &mut Vec<usize>) -> bool {
        let fits = fits_int32(expr, known);
        match expr.node() {
            Node::Int(value) => i32::try_from(*value).is_ok(),
            Node::Var(var) => {
                let at = self.position(var);
                members.push(at);
                fits
            }
            Node::Binary(op, a, b) if is_arithmetic(*op) => {
                let (a, b) = (self.value(a, known, members), self.value(b, known, members));
                fits && a && b
            }
            Node::Select(cond, a, b) | Node::IfThenElse(cond, a, b) => {
                self.expr(cond, known);
                let (a, b) = (self.value(a, known, members), self.value(b, known, members));
                fits && a && b
            }
            Node::Ramp(a, b) => {
                // The first lane and the last; those between lie between.
                let steps = Expr::int_of(i128::from(expr.lanes()) - 1, a.dtype());
                let last = a.clone() + b.clone() * steps;
                let (a, b) = (self.value(a, known, members), self.value(b, known, members));
                a && b && fits_int32(&last, known)
            }
            Node::Broadcast(a) => self.value(a, known, members),
            Node::Cast(a) => {
                self.expr(a, known);
                is_within_int32(a.dtype())
            }
            Node::Let(var, value, body) => {
                self.binding(var, &[value], known);
                self.value(body, &with_value(known, var, value), members) && fits
            }
            Node::Binary(..) | Node::Not(_) | Node::Call(..) | Node::Load(..) | Node::Float(_) => {
                expr.each_child(|child| self.expr(child, known));
                false
            }
        }
    }

    /// Int64 expressions that are computed together.
    fn together(&mut self, exprs: &[&'k Expr], known: &Analyzer, mut members: Vec<usize>) {
        let mut fits = true;
        for expr in exprs {
            fits &= self.value(expr, known, &mut members);
        }
        self.join(&members, fits);
    }

    /// A variable and what it is bound to, or the ends of its range.
    fn binding(&mut self, var: &Var, values: &[&'k Expr], known: &Analyzer) {
        if var.dtype() != DType::I64 {
            values.iter().for_each(|value| self.expr(value, known));
            return;
        }
        let at = self.position(var);
        self.bound[at] = true;
        self.together(values, known, vec![at]);
    }

    fn expr(&mut self, expr: &'k Expr, known: &Analyzer) {
        // What is known is the same in all of a statement's expressions.
        if expr.may_be_shared() && !self.seen.insert(expr) {
            return;
        }
        match expr.node() {
            _ if expr.dtype() == DType::I64 => self.together(&[expr], known, Vec::new()),
            Node::Binary(op, a, b) if op.is_comparison() && a.dtype() == DType::I64 => {
                self.together(&[a, b], known, Vec::new());
            }
            Node::Let(var, value, body) => {
                self.binding(var, &[value], known);
                let outside = std::mem::take(&mut self.seen);
                self.expr(body, &with_value(known, var, value));
                self.seen = outside;
            }
            _ => expr.each_child(|child| self.expr(child, known)),
        }
    }

    fn stmt(&mut self, stmt: &'k Stmt, known: &Analyzer) {
        self.seen = Seen::default();
        match stmt {
            Stmt::For { var, min, extent, body, .. } => {
                let inner = with_loop(known, var, min, extent);
                self.binding(var, &[min, extent], known);
                self.stmt(body, &inner);
            }
            Stmt::LaunchThread { var, extent, body, .. } => {
                let inner = with_loop(known, var, &Expr::int_of(0, extent.dtype()), extent);
                self.binding(var, &[extent], known);
                // That a thread is there says that its index is in range, so a use of it tells.
                if var.dtype() == DType::I64 {
                    let at = self.position(var);
                    self.join(&[at], fits_int32(&var.expr(), &inner));
                }
                self.stmt(body, &inner);
            }
            Stmt::Let { var, value, body } => {
                self.binding(var, &[value], known);
                self.stmt(body, &with_value(known, var, value));
            }
            Stmt::Allocate { buffer, body } => {
                // Sizes stay as they are, with the variables in them.
                for extent in &buffer.shape {
                    let mut members = Vec::new();
                    self.value(extent, known, &mut members);
                    self.join(&members, false);
                }
                self.stmt(body, known);
            }
            _ => {
                for expr in coulis_ir::visit::stmt_exprs(stmt) {
                    self.expr(expr, known);
                }
                for child in coulis_ir::visit::stmt_children(stmt) {
                    self.stmt(child, known);
                }
            }
        }
    }
}

fn as_int32(var: &Var) -> Var {
    match var.kind() {
        VarKind::Size => Var::size(var.name(), DType::I32),
        VarKind::Plain | VarKind::Handle => Var::new(var.name(), DType::I32),
    }
}

struct Narrowing {
    vars: FastMap<Var, Var>,
    /// Those of the variables, and perhaps others.
    names: Names,
    /// What became of expressions that several share.
    done: RefCell<FastMap<Expr, Expr>>,
}

impl Narrowing {
    /// Whether an int64 expression is computed in int32: its variables are, of which it has at least one.
    fn is_narrow(&self, expr: &Expr) -> bool {
        match expr.node() {
            Node::Var(var) => self.vars.contains_key(var),
            Node::Binary(op, a, b) if is_arithmetic(*op) => self.is_narrow(a) || self.is_narrow(b),
            Node::Select(_, a, b) | Node::IfThenElse(_, a, b) | Node::Ramp(a, b) => {
                self.is_narrow(a) || self.is_narrow(b)
            }
            Node::Broadcast(a) | Node::Let(_, _, a) => self.is_narrow(a),
            Node::Int(_)
            | Node::Float(_)
            | Node::Binary(..)
            | Node::Not(_)
            | Node::Cast(_)
            | Node::Call(..)
            | Node::Load(..) => false,
        }
    }

    fn var(&self, var: &Var) -> Var {
        self.vars.get(var).unwrap_or(var).clone()
    }

    /// The int32 of an int64 expression that fits.
    fn value(&self, expr: &Expr) -> Expr {
        match expr.node() {
            Node::Int(value) => Expr::int_of(*value, DType::I32),
            Node::Var(var) => self.var(var).expr(),
            Node::Binary(op, a, b) if is_arithmetic(*op) => Expr::binary(*op, self.value(a), self.value(b)),
            Node::Select(cond, a, b) => Expr::select(self.expr(cond), self.value(a), self.value(b)),
            Node::IfThenElse(cond, a, b) => Expr::if_then_else(self.expr(cond), self.value(a), self.value(b)),
            Node::Ramp(a, b) => Expr::ramp(self.value(a), self.value(b), expr.lanes()),
            Node::Broadcast(a) => self.value(a).broadcast_to(expr.lanes()),
            Node::Let(var, value, body) => {
                Expr::let_in(self.var(var), self.bound(var, value), self.value(body))
            }
            _ => self.expr(expr).cast(DType::I32),
        }
    }

    /// What a variable is bound to, in its type.
    fn bound(&self, var: &Var, value: &Expr) -> Expr {
        if self.vars.contains_key(var) { self.value(value) } else { self.expr(value) }
    }

    /// An index: of either type.
    fn index(&self, expr: &Expr) -> Expr {
        if expr.dtype() == DType::I64 && self.is_narrow(expr) { self.value(expr) } else { self.expr(expr) }
    }

    /// The expression in its own type.
    fn expr(&self, expr: &Expr) -> Expr {
        if !expr.names().may_meet(self.names) {
            return expr.clone();
        }
        if !expr.may_be_shared() {
            return self.new_expr(expr);
        }
        if let Some(done) = self.done.borrow().get(expr) {
            return done.clone();
        }
        let new = self.new_expr(expr);
        self.done.borrow_mut().insert(expr.clone(), new.clone());
        new
    }

    fn new_expr(&self, expr: &Expr) -> Expr {
        match expr.node() {
            _ if expr.dtype() == DType::I64 && self.is_narrow(expr) => self.value(expr).cast(DType::I64),
            Node::Binary(op, a, b) if op.is_comparison() && a.dtype() == DType::I64 => {
                if self.is_narrow(a) || self.is_narrow(b) {
                    Expr::binary(*op, self.value(a), self.value(b))
                } else {
                    map_children(expr, &mut |e| self.expr(e))
                }
            }
            Node::Cast(a) if a.dtype() == DType::I64 && self.is_narrow(a) => self.value(a).cast(expr.dtype()),
            Node::Load(buffer, indices) => {
                Expr::load(buffer.clone(), indices.iter().map(|i| self.index(i)).collect())
            }
            Node::Let(var, value, body) => {
                Expr::let_in(self.var(var), self.bound(var, value), self.expr(body))
            }
            _ => map_children(expr, &mut |e| self.expr(e)),
        }
    }

    fn element(&self, element: Element) -> Element {
        let indices = element.indices.iter().map(|i| self.index(i)).collect();
        Element { indices, ..element }
    }

    fn stmt(&self, stmt: Stmt) -> Stmt {
        match stmt {
            Stmt::For { var, min, extent, kind, body } => {
                let (min, extent) = (self.bound(&var, &min), self.bound(&var, &extent));
                Stmt::For { var: self.var(&var), min, extent, kind, body: Box::new(self.stmt(*body)) }
            }
            Stmt::LaunchThread { tag, var, extent, body } => {
                let extent = self.bound(&var, &extent);
                Stmt::LaunchThread { tag, var: self.var(&var), extent, body: Box::new(self.stmt(*body)) }
            }
            Stmt::Let { var, value, body } => {
                let value = self.bound(&var, &value);
                Stmt::let_(self.var(&var), value, self.stmt(*body))
            }
            Stmt::If { cond, then, otherwise } => Stmt::If {
                cond: self.expr(&cond),
                then: Box::new(self.stmt(*then)),
                otherwise: otherwise.map(|s| Box::new(self.stmt(*s))),
            },
            Stmt::Store { buffer, indices, value } => {
                let indices = indices.iter().map(|i| self.index(i)).collect();
                Stmt::Store { buffer, indices, value: self.expr(&value) }
            }
            Stmt::Atom(mut call) => {
                call.dst = call.dst.take().map(|e| self.element(e));
                call.memory = call.memory.take().map(|e| self.element(e));
                call.args = call.args.iter().map(|e| self.expr(e)).collect();
                Stmt::Atom(call)
            }
            other => crate::walk::map_children(other, &mut |s| self.stmt(s)),
        }
    }
}
