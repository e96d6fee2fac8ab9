//! Walking and rewriting of expressions and statements.

use std::collections::HashMap;
use std::hash::BuildHasher;

use smallvec::{SmallVec, smallvec};

use crate::buffer::Buffer;
use crate::expr::{Expr, Names, Node, Var};
use crate::hash::{FastMap, Seen};
use crate::stmt::Stmt;

/// Calls `f` on `expr` and everything below it, parents first, each distinct node once, at its first place: an expression
/// written out may be longer than any memory.
pub fn for_each_expr(expr: &Expr, f: &mut impl FnMut(&Expr)) {
    fn go(expr: &Expr, f: &mut impl FnMut(&Expr), seen: &mut Seen<Expr>) {
        if expr.may_be_shared() && !seen.insert(expr.clone()) {
            return;
        }
        f(expr);
        expr.each_child(|child| go(child, f, seen));
    }
    go(expr, f, &mut Seen::default());
}

/// Calls `f` with the buffer and the lanes of every load in the expression, leaving out what is in `seen`, to which it is added:
/// several expressions may have one.
pub fn for_each_load(expr: &Expr, seen: &mut Seen<Expr>, f: &mut impl FnMut(&Buffer, u32)) {
    if !expr.reads_memory() || expr.may_be_shared() && !seen.insert(expr.clone()) {
        return;
    }
    if let Node::Load(buffer, _) = expr.node() {
        f(buffer, expr.lanes());
    }
    expr.each_child(|child| for_each_load(child, seen, f));
}

/// Calls `f` with the buffer and the indices of every load in the expression, each distinct load once, outer ones first.
pub fn for_each_read(expr: &Expr, f: &mut impl FnMut(&Buffer, &[Expr])) {
    fn go(expr: &Expr, f: &mut impl FnMut(&Buffer, &[Expr]), seen: &mut Seen<Expr>) {
        if !expr.reads_memory() || expr.may_be_shared() && !seen.insert(expr.clone()) {
            return;
        }
        if let Node::Load(buffer, indices) = expr.node() {
            f(buffer, indices);
        }
        expr.each_child(|child| go(child, f, seen));
    }
    if expr.reads_memory() {
        go(expr, f, &mut Seen::default());
    }
}

/// The expression with each operand replaced by `f(operand)`; types are recomputed from the new operands where
/// the lanes change. Scalars are broadcast beside vectors.
pub fn map_children(expr: &Expr, f: &mut impl FnMut(&Expr) -> Expr) -> Expr {
    match expr.node() {
        Node::Int(_) | Node::Float(_) | Node::Var(_) => expr.clone(),
        Node::Binary(op, a, b) => {
            let (x, y) = (f(a), f(b));
            if x == *a && y == *b { expr.clone() } else { Expr::binary(*op, x, y) }
        }
        Node::Not(a) => {
            let x = f(a);
            if x == *a { expr.clone() } else { x.logical_not() }
        }
        Node::Cast(a) => {
            let x = f(a);
            if x == *a { expr.clone() } else { x.cast(expr.dtype()) }
        }
        Node::Select(c, a, b) => {
            let (z, x, y) = (f(c), f(a), f(b));
            if z == *c && x == *a && y == *b { expr.clone() } else { Expr::select(z, x, y) }
        }
        Node::IfThenElse(c, a, b) => {
            let (z, x, y) = (f(c), f(a), f(b));
            if z == *c && x == *a && y == *b { expr.clone() } else { Expr::if_then_else(z, x, y) }
        }
        Node::Call(intrinsic, args) => {
            let new: Vec<Expr> = args.iter().map(&mut *f).collect();
            if new == *args {
                return expr.clone();
            }
            let lanes = new.iter().map(Expr::lanes).max().unwrap_or(1);
            Expr::call(*intrinsic, new.into_iter().map(|a| a.broadcast_to(lanes)).collect())
        }
        Node::Load(buffer, indices) => {
            let new: Vec<Expr> = indices.iter().map(&mut *f).collect();
            if new == *indices { expr.clone() } else { Expr::load(buffer.clone(), new) }
        }
        Node::Ramp(base, stride) => {
            let (x, y) = (f(base), f(stride));
            if x == *base && y == *stride { expr.clone() } else { Expr::ramp(x, y, expr.lanes()) }
        }
        Node::Broadcast(a) => {
            let x = f(a);
            if x == *a { expr.clone() } else { x.broadcast_to(expr.lanes()) }
        }
        Node::Let(var, value, body) => {
            let (x, y) = (f(value), f(body));
            if x == *value && y == *body { expr.clone() } else { Expr::let_in(var.clone(), x, y) }
        }
    }
}

/// The expression with variables replaced. Buffers' shapes are not looked into.
pub fn substitute_expr<S: BuildHasher>(expr: &Expr, map: &HashMap<Var, Expr, S>) -> Expr {
    Substitution::new(map).of(expr)
}

/// Variables to be replaced, and what became of expressions.
struct Substitution<'m, S> {
    map: &'m HashMap<Var, Expr, S>,
    names: Names,
    memo: FastMap<Expr, Expr>,
}

impl<'m, S: BuildHasher> Substitution<'m, S> {
    fn new(map: &'m HashMap<Var, Expr, S>) -> Substitution<'m, S> {
        let names = map.keys().fold(Names::default(), |names, var| names.and(Names::of(var)));
        Substitution { map, names, memo: FastMap::default() }
    }

    fn of(&mut self, expr: &Expr) -> Expr {
        if !expr.names().may_meet(self.names) {
            return expr.clone();
        }
        if let Node::Var(var) = expr.node() {
            return self.map.get(var).cloned().unwrap_or_else(|| expr.clone());
        }
        if let Some(done) = self.memo.get(expr) {
            return done.clone();
        }
        let new = map_children(expr, &mut |child| self.of(child));
        self.memo.insert(expr.clone(), new.clone());
        new
    }
}

/// Whether any of the variables occurs in the expression, buffers' shapes aside.
pub fn uses_any(expr: &Expr, vars: &[Var]) -> bool {
    fn go(expr: &Expr, vars: &[Var], names: Names, seen: &mut Seen<Expr>) -> bool {
        if !expr.names().may_meet(names) {
            return false;
        }
        if let Some(found) = expr.as_var() {
            return vars.contains(found);
        }
        if expr.may_be_shared() && !seen.insert(expr.clone()) {
            return false;
        }
        expr.children().any(|child| go(child, vars, names, seen))
    }
    let names = vars.iter().fold(Names::default(), |names, var| names.and(Names::of(var)));
    go(expr, vars, names, &mut Seen::default())
}

/// Calls `f` on the statement and everything below it, parents first.
pub fn for_each_stmt(stmt: &Stmt, f: &mut impl FnMut(&Stmt)) {
    f(stmt);
    for child in stmt_children(stmt) {
        for_each_stmt(child, f);
    }
}

/// The statements directly below a statement, in order.
#[derive(Clone, Debug)]
pub struct StmtChildren<'s> {
    first: Option<&'s Stmt>,
    others: std::slice::Iter<'s, Stmt>,
    last: Option<&'s Stmt>,
}

impl<'s> Iterator for StmtChildren<'s> {
    type Item = &'s Stmt;

    fn next(&mut self) -> Option<&'s Stmt> {
        self.first.take().or_else(|| self.others.next()).or_else(|| self.last.take())
    }
}

/// The statements directly below.
pub fn stmt_children(stmt: &Stmt) -> StmtChildren<'_> {
    let of = |first, last| StmtChildren { first, others: [].iter(), last };
    match stmt {
        Stmt::Seq(stmts) => StmtChildren { first: None, others: stmts.iter(), last: None },
        Stmt::For { body, .. }
        | Stmt::Let { body, .. }
        | Stmt::Allocate { body, .. }
        | Stmt::Annotate { body, .. }
        | Stmt::LaunchThread { body, .. } => of(Some(&**body), None),
        Stmt::If { then, otherwise, .. } => of(Some(&**then), otherwise.as_deref()),
        Stmt::Store { .. }
        | Stmt::DeviceEntry
        | Stmt::ScopeIds { .. }
        | Stmt::AllocBuffer(_)
        | Stmt::View { .. }
        | Stmt::Tile(_)
        | Stmt::Atom(_)
        | Stmt::Sync(_) => of(None, None),
    }
}

/// Expressions of a statement, which are few as a rule.
pub type StmtExprs<'s> = SmallVec<[&'s Expr; 4]>;

/// The expressions that stand directly in the statement, not those of statements below it.
pub fn stmt_exprs(stmt: &Stmt) -> StmtExprs<'_> {
    match stmt {
        Stmt::For { min, extent, .. } => smallvec![min, extent],
        Stmt::If { cond, .. } => smallvec![cond],
        Stmt::Store { indices, value, .. } => indices.iter().chain([value]).collect(),
        Stmt::Let { value, .. } => smallvec![value],
        Stmt::LaunchThread { extent, .. } => smallvec![extent],
        Stmt::ScopeIds { extents, .. } => extents.iter().collect(),
        Stmt::Atom(call) => call.exprs().into_iter().collect(),
        Stmt::Tile(call) => call
            .dsts
            .iter()
            .chain(&call.srcs)
            .flat_map(|r| r.ranges.iter().flat_map(|(a, b)| [a, b]))
            .collect(),
        Stmt::Allocate { buffer, .. } | Stmt::AllocBuffer(buffer) | Stmt::View { buffer, .. } => {
            buffer.shape.iter().collect()
        }
        Stmt::Seq(_) | Stmt::Annotate { .. } | Stmt::DeviceEntry | Stmt::Sync(_) => StmtExprs::new(),
    }
}

/// Rewrites a statement bottom-up. `on_expr` sees each expression that stands in a statement (whole, not its
/// parts) and `on_stmt` each rebuilt statement. Extents of allocated buffers are not rewritten.
pub fn rewrite_stmt(
    stmt: Stmt,
    on_expr: &mut dyn FnMut(&Expr) -> Expr,
    on_stmt: &mut dyn FnMut(Stmt) -> Stmt,
) -> Stmt {
    let rebuilt = match stmt {
        Stmt::Seq(stmts) => Stmt::seq(stmts.into_iter().map(|s| rewrite_stmt(s, on_expr, on_stmt))),
        Stmt::For { var, min, extent, kind, body } => {
            let (min, extent) = (on_expr(&min), on_expr(&extent));
            Stmt::For {
                var,
                min,
                extent,
                kind,
                body: Stmt::in_box(body, |s| rewrite_stmt(s, on_expr, on_stmt)),
            }
        }
        Stmt::If { cond, then, otherwise } => {
            let cond = on_expr(&cond);
            let then = Stmt::in_box(then, |s| rewrite_stmt(s, on_expr, on_stmt));
            let otherwise = otherwise.map(|s| Stmt::in_box(s, |s| rewrite_stmt(s, on_expr, on_stmt)));
            Stmt::If { cond, then, otherwise }
        }
        Stmt::Store { buffer, mut indices, value } => {
            indices.iter_mut().for_each(|index| *index = on_expr(index));
            Stmt::Store { buffer, indices, value: on_expr(&value) }
        }
        Stmt::Let { var, value, body } => {
            let value = on_expr(&value);
            Stmt::Let { var, value, body: Stmt::in_box(body, |s| rewrite_stmt(s, on_expr, on_stmt)) }
        }
        Stmt::Allocate { buffer, body } => {
            Stmt::Allocate { buffer, body: Stmt::in_box(body, |s| rewrite_stmt(s, on_expr, on_stmt)) }
        }
        Stmt::Annotate { node, key, value, body } => Stmt::Annotate {
            node,
            key,
            value,
            body: Stmt::in_box(body, |s| rewrite_stmt(s, on_expr, on_stmt)),
        },
        Stmt::LaunchThread { tag, var, extent, body } => {
            let extent = on_expr(&extent);
            Stmt::LaunchThread {
                tag,
                var,
                extent,
                body: Stmt::in_box(body, |s| rewrite_stmt(s, on_expr, on_stmt)),
            }
        }
        Stmt::ScopeIds { id, vars, extents } => {
            Stmt::ScopeIds { id, vars, extents: extents.iter().map(&mut *on_expr).collect() }
        }
        Stmt::Tile(mut call) => {
            for region in call.dsts.iter_mut().chain(&mut call.srcs) {
                for (min, extent) in &mut region.ranges {
                    *min = on_expr(min);
                    *extent = on_expr(extent);
                }
            }
            Stmt::Tile(call)
        }
        Stmt::Atom(call) => Stmt::Atom(Box::new(call.map_exprs(on_expr))),
        Stmt::DeviceEntry | Stmt::AllocBuffer(_) | Stmt::View { .. } | Stmt::Sync(_) => stmt,
    };
    on_stmt(rebuilt)
}

/// The statement with variables replaced in all its expressions.
pub fn substitute_stmt<S: BuildHasher>(stmt: Stmt, map: &HashMap<Var, Expr, S>) -> Stmt {
    let mut substitution = Substitution::new(map);
    rewrite_stmt(stmt, &mut |e| substitution.of(e), &mut |s| s)
}

/// Every buffer that the statement accesses or declares, in order of first occurrence.
pub fn buffers_of(stmt: &Stmt) -> Vec<Buffer> {
    let mut seen = Vec::new();
    let add = |buffer: &Buffer, seen: &mut Vec<Buffer>| {
        if !seen.contains(buffer) {
            seen.push(buffer.clone());
        }
    };
    for_each_stmt(stmt, &mut |s| {
        match s {
            Stmt::Store { buffer, .. }
            | Stmt::Allocate { buffer, .. }
            | Stmt::AllocBuffer(buffer)
            | Stmt::View { buffer, .. } => add(buffer, &mut seen),
            Stmt::Tile(call) => call.dsts.iter().chain(&call.srcs).for_each(|r| add(&r.buffer, &mut seen)),
            Stmt::Atom(call) => call.elements().for_each(|e| add(&e.buffer, &mut seen)),
            _ => {}
        }
        for expr in stmt_exprs(s) {
            for_each_expr(expr, &mut |e| {
                if let Node::Load(buffer, _) = e.node() {
                    add(buffer, &mut seen);
                }
            });
        }
    });
    seen
}
