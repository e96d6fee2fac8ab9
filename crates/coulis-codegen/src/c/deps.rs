//! What expressions and statements read, write and use: the facts behind sharing, captures and registers.

use coulis_ir::hash::{FastMap, FastSet, roomy_set};
use std::collections::BTreeSet;
use std::rc::Rc;

use coulis_ir::visit::{stmt_children, stmt_exprs};
use coulis_ir::{BinaryOp, Expr, Node, Stmt, Var, VarId};

use crate::c::index;
use crate::c::scalar::{is_in_registers, may_trap};

/// Variables that an expression uses and memory that it reads, both by identity.
#[derive(Debug, Default)]
pub struct Deps {
    /// Free variables.
    pub vars: BTreeSet<VarId>,
    /// Data pointers of loads.
    pub reads: BTreeSet<VarId>,
}

/// Dependencies of expressions, each computed once.
#[derive(Debug, Default)]
pub struct DepsTable {
    known: FastMap<Expr, Rc<Deps>>,
}

impl DepsTable {
    /// Of one expression.
    pub fn of(&mut self, expr: &Expr) -> Rc<Deps> {
        if let Some(known) = self.known.get(expr) {
            return known.clone();
        }
        let mut deps = Deps::default();
        match expr.node() {
            Node::Var(var) => {
                deps.vars.insert(var.id());
            }
            Node::Load(buffer, _) => {
                deps.reads.insert(buffer.data.id());
            }
            _ => {}
        }
        for child in expr.children() {
            let below = self.of(child);
            deps.vars.extend(&below.vars);
            deps.reads.extend(&below.reads);
        }
        if let Node::Let(var, _, _) = expr.node() {
            deps.vars.remove(&var.id());
        }
        let deps = Rc::new(deps);
        self.known.insert(expr.clone(), deps.clone());
        deps
    }
}

/// How often each node is an operand, in the expressions of one block: of loads, and of nodes that may be
/// operands of several. Operands of a node that occurs twice count once, and those that only one arm of a
/// conditional evaluates do not count. `eager`: both arms are evaluated where they lie in registers.
pub fn count_uses<'a>(exprs: impl IntoIterator<Item = &'a Expr>, eager: bool) -> FastMap<Expr, u32> {
    let mut counts = FastMap::default();
    for expr in exprs {
        count(expr, eager, &mut counts);
    }
    counts
}

fn count(expr: &Expr, eager: bool, counts: &mut FastMap<Expr, u32>) {
    let is_counted = expr.may_be_shared() || matches!(expr.node(), Node::Load(..));
    if is_counted && !is_first(expr, counts) {
        return;
    }
    count_operands(expr, eager, counts);
}

/// Counts a node; whether it was not there.
fn is_first(expr: &Expr, counts: &mut FastMap<Expr, u32>) -> bool {
    let seen = counts.entry(expr.clone()).or_insert(0);
    *seen += 1;
    *seen == 1
}

fn count_operands(expr: &Expr, eager: bool, counts: &mut FastMap<Expr, u32>) {
    match expr.node() {
        Node::IfThenElse(cond, a, b) if !(eager && is_in_registers(a) && is_in_registers(b)) => {
            count(cond, eager, counts)
        }
        Node::Binary(BinaryOp::And | BinaryOp::Or, a, b)
            if expr.lanes() == 1 && may_trap(b) && !(eager && is_in_registers(b)) =>
        {
            count(a, eager, counts)
        }
        Node::Load(_, indices) => {
            for at in indices {
                match index::as_ramp(at) {
                    // These may have been made just now, and be made again for the next access.
                    Some((base, stride)) => {
                        for part in [&base, &stride] {
                            if is_first(part, counts) {
                                count_operands(part, eager, counts);
                            }
                        }
                    }
                    None => count(at, eager, counts),
                }
            }
        }
        _ => {
            for child in expr.children() {
                count(child, eager, counts);
            }
        }
    }
}

/// What a statement uses from outside: scalar variables and data pointers, each in order of first occurrence.
#[derive(Debug, Default)]
pub struct Captures {
    /// Variables.
    pub vars: Vec<Var>,
    /// Data pointers.
    pub data: Vec<VarId>,
}

/// The captures of a parallel loop's body, its own index aside.
pub fn captures(stmt: &Stmt, index: &Var) -> Captures {
    let mut walk = CaptureWalk { bound: roomy_set(), seen: roomy_set(), ..CaptureWalk::default() };
    walk.bound.insert(index.id());
    walk.stmt(stmt);
    walk.found
}

#[derive(Default)]
struct CaptureWalk<'s> {
    found: Captures,
    /// Variables and data pointers that the statement binds itself.
    bound: FastSet<VarId>,
    seen: FastSet<&'s Expr>,
    taken: FastSet<VarId>,
}

impl<'s> CaptureWalk<'s> {
    fn stmt(&mut self, stmt: &'s Stmt) {
        if let Stmt::Allocate { buffer, .. } = stmt {
            for extent in &buffer.shape {
                self.expr(extent);
            }
            self.bound.insert(buffer.data.id());
        }
        for expr in stmt_exprs(stmt) {
            self.expr(expr);
        }
        match stmt {
            Stmt::For { var, .. } | Stmt::Let { var, .. } | Stmt::LaunchThread { var, .. } => {
                self.bound.insert(var.id());
            }
            Stmt::Store { buffer, .. } => self.data(buffer.data.id()),
            Stmt::Atom(call) => call.elements().for_each(|e| self.data(e.buffer.data.id())),
            _ => {}
        }
        for child in stmt_children(stmt) {
            self.stmt(child);
        }
    }

    fn data(&mut self, id: VarId) {
        if !self.bound.contains(&id) && self.taken.insert(id) {
            self.found.data.push(id);
        }
    }

    fn expr(&mut self, expr: &'s Expr) {
        if expr.may_be_shared() && !self.seen.insert(expr) {
            return;
        }
        match expr.node() {
            Node::Var(var) if !self.bound.contains(&var.id()) && self.taken.insert(var.id()) => {
                self.found.vars.push(var.clone());
            }
            Node::Load(buffer, _) => self.data(buffer.data.id()),
            Node::Let(var, value, _) => {
                self.expr(value);
                self.bound.insert(var.id());
            }
            _ => {}
        }
        expr.each_child(|child| self.expr(child));
    }
}
