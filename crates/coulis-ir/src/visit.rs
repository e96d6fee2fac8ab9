//! Walking and rewriting of expressions and statements.

use std::collections::HashMap;
use std::hash::BuildHasher;

use smallvec::{SmallVec, smallvec};

use crate::buffer::Buffer;
use crate::expr::{Expr, Names, Node, Var};
use crate::hash::{FastMap, FastSet, Seen};
use crate::stmt::{Role, Stmt};
use crate::var::VarId;

/// Calls `f` on `expr` and everything below it, parents first, each distinct node once, at its first place: an expression
/// written out may be longer than any memory.
pub fn for_each_expr<'e>(expr: &'e Expr, f: &mut impl FnMut(&'e Expr)) {
    fn go<'e>(expr: &'e Expr, f: &mut impl FnMut(&'e Expr), seen: &mut Seen<&'e Expr>) {
        if expr.may_be_shared() && !seen.insert(expr) {
            return;
        }
        f(expr);
        expr.each_child(|child| go(child, f, seen));
    }
    go(expr, f, &mut Seen::default());
}

/// Most operations that an expression of a program may have when it is written out: far more than anybody writes, and few
/// enough to be printed, and to be walked through with what is known at each place.
pub const MOST_WRITTEN: u64 = 100_000;

/// Operations, constants and names of the expression written out, where shared parts count each time; `u64::MAX` where
/// they are more.
pub fn written_size(expr: &Expr) -> u64 {
    fn go(expr: &Expr, sizes: &mut FastMap<Expr, u64>) -> u64 {
        let is_shared = expr.may_be_shared();
        if is_shared && let Some(known) = sizes.get(expr) {
            return *known;
        }
        let size = expr.children().fold(1u64, |sum, child| sum.saturating_add(go(child, sizes)));
        if is_shared {
            sizes.insert(expr.clone(), size);
        }
        size
    }
    go(expr, &mut FastMap::default())
}

/// Calls `f` with the buffer and the lanes of every load in the expression, leaving out what is in `seen`, to
/// which it is added: several expressions may have one.
pub fn for_each_load<'e>(expr: &'e Expr, seen: &mut Seen<&'e Expr>, f: &mut impl FnMut(&'e Buffer, u32)) {
    if !expr.reads_memory() || expr.may_be_shared() && !seen.insert(expr) {
        return;
    }
    if let Node::Load(buffer, _) = expr.node() {
        f(buffer, expr.lanes());
    }
    expr.each_child(|child| for_each_load(child, seen, f));
}

/// Calls `f` with the buffer and the indices of every load in the expression, each distinct load once, outer ones first.
pub fn for_each_read<'e>(expr: &'e Expr, f: &mut impl FnMut(&'e Buffer, &'e [Expr])) {
    fn go<'e>(expr: &'e Expr, f: &mut impl FnMut(&'e Buffer, &'e [Expr]), seen: &mut Seen<&'e Expr>) {
        if !expr.reads_memory() || expr.may_be_shared() && !seen.insert(expr) {
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
    let changed = change_children(expr, &mut |child| {
        let new = f(child);
        (new != *child).then_some(new)
    });
    changed.unwrap_or_else(|| expr.clone())
}

/// As [`map_children`] for an `f` that gives nothing where the operand stays; nothing where all stay.
pub fn change_children(expr: &Expr, f: &mut impl FnMut(&Expr) -> Option<Expr>) -> Option<Expr> {
    /// What is new, and otherwise what was.
    fn or(new: Option<Expr>, old: &Expr) -> Expr {
        new.unwrap_or_else(|| old.clone())
    }
    /// All operands, where one is new.
    fn all(old: &[Expr], f: &mut impl FnMut(&Expr) -> Option<Expr>) -> Option<Vec<Expr>> {
        let mut found = old.iter().enumerate().map(|(at, operand)| (at, f(operand)));
        let (first, new) = found.find_map(|(at, new)| Some((at, new?)))?;
        let mut operands = Vec::with_capacity(old.len());
        operands.extend(old[..first].iter().cloned().chain([new]));
        operands.extend(found.map(|(at, new)| or(new, &old[at])));
        Some(operands)
    }
    Some(match expr.node() {
        Node::Int(_) | Node::Float(_) | Node::Var(_) => return None,
        Node::Binary(op, a, b) => match (f(a), f(b)) {
            (None, None) => return None,
            (x, y) => Expr::binary(*op, or(x, a), or(y, b)),
        },
        Node::Not(a) => f(a)?.logical_not(),
        Node::Cast(a) => f(a)?.cast(expr.dtype()),
        Node::Select(c, a, b) => match (f(c), f(a), f(b)) {
            (None, None, None) => return None,
            (z, x, y) => Expr::select(or(z, c), or(x, a), or(y, b)),
        },
        Node::IfThenElse(c, a, b) => match (f(c), f(a), f(b)) {
            (None, None, None) => return None,
            (z, x, y) => Expr::if_then_else(or(z, c), or(x, a), or(y, b)),
        },
        Node::Call(intrinsic, args) => {
            let new = all(args, f)?;
            let lanes = new.iter().map(Expr::lanes).max().unwrap_or(1);
            Expr::call(*intrinsic, new.into_iter().map(|a| a.broadcast_to(lanes)).collect())
        }
        Node::Load(buffer, indices) => Expr::load(buffer.clone(), all(indices, f)?),
        Node::Ramp(base, stride) => match (f(base), f(stride)) {
            (None, None) => return None,
            (x, y) => Expr::ramp(or(x, base), or(y, stride), expr.lanes()),
        },
        Node::Broadcast(a) => f(a)?.broadcast_to(expr.lanes()),
        Node::Let(var, value, body) => match (f(value), f(body)) {
            (None, None) => return None,
            (x, y) => Expr::let_in(var.clone(), or(x, value), or(y, body)),
        },
    })
}

/// The expression with variables replaced. Buffers' shapes are not looked into.
pub fn substitute_expr<S: BuildHasher>(expr: &Expr, map: &HashMap<Var, Expr, S>) -> Expr {
    Substitution::new(map).of(expr).unwrap_or_else(|| expr.clone())
}

/// Variables to be replaced, and what became of expressions that several may have as an operand.
struct Substitution<'m, S> {
    map: &'m HashMap<Var, Expr, S>,
    names: Names,
    memo: FastMap<Expr, Option<Expr>>,
}

impl<'m, S: BuildHasher> Substitution<'m, S> {
    fn new(map: &'m HashMap<Var, Expr, S>) -> Substitution<'m, S> {
        let names = map.keys().fold(Names::default(), |names, var| names.and(Names::of(var)));
        Substitution { map, names, memo: FastMap::default() }
    }

    /// What becomes of the expression, where it changes.
    fn of(&mut self, expr: &Expr) -> Option<Expr> {
        if !expr.names().may_meet(self.names) {
            return None;
        }
        if let Node::Var(var) = expr.node() {
            return self.map.get(var).filter(|new| *new != expr).cloned();
        }
        let is_shared = expr.may_be_shared();
        if is_shared && let Some(done) = self.memo.get(expr) {
            return done.clone();
        }
        let new = change_children(expr, &mut |child| self.of(child));
        if is_shared {
            self.memo.insert(expr.clone(), new.clone());
        }
        new
    }
}

/// Whether any of the variables occurs in the expression, buffers' shapes aside.
pub fn uses_any(expr: &Expr, vars: &[Var]) -> bool {
    fn go<'e>(expr: &'e Expr, vars: &[Var], names: Names, seen: &mut Seen<&'e Expr>) -> bool {
        if !expr.names().may_meet(names) {
            return false;
        }
        if let Some(found) = expr.as_var() {
            return vars.contains(found);
        }
        if expr.may_be_shared() && !seen.insert(expr) {
            return false;
        }
        expr.children().any(|child| go(child, vars, names, seen))
    }
    let names = vars.iter().fold(Names::default(), |names, var| names.and(Names::of(var)));
    go(expr, vars, names, &mut Seen::default())
}

/// Calls `f` on the statement and everything below it, parents first.
pub fn for_each_stmt<'s>(stmt: &'s Stmt, f: &mut impl FnMut(&'s Stmt)) {
    f(stmt);
    for child in stmt_children(stmt) {
        for_each_stmt(child, f);
    }
}

/// Whether `f` holds of the statement or of one below it; parents are asked first.
pub fn any_stmt(stmt: &Stmt, f: &mut impl FnMut(&Stmt) -> bool) -> bool {
    f(stmt) || stmt_children(stmt).any(|child| any_stmt(child, f))
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

/// Calls `f` on each statement directly below, in order, until it fails. A sequence may be left with others right in it, see
/// [`Stmt::seq`].
///
/// # Errors
/// The first of `f`.
pub fn try_each_child_mut<E>(
    stmt: &mut Stmt,
    f: &mut dyn FnMut(&mut Stmt) -> Result<(), E>,
) -> Result<(), E> {
    match stmt {
        Stmt::Seq(stmts) => stmts.iter_mut().try_for_each(f),
        Stmt::For { body, .. }
        | Stmt::Let { body, .. }
        | Stmt::Allocate { body, .. }
        | Stmt::Annotate { body, .. }
        | Stmt::LaunchThread { body, .. } => f(body),
        Stmt::If { then, otherwise, .. } => {
            f(then)?;
            otherwise.as_deref_mut().map_or(Ok(()), f)
        }
        Stmt::Store { .. }
        | Stmt::DeviceEntry
        | Stmt::ScopeIds { .. }
        | Stmt::AllocBuffer(_)
        | Stmt::View { .. }
        | Stmt::Tile(_)
        | Stmt::Atom(_)
        | Stmt::Sync(_) => Ok(()),
    }
}

/// As [`try_each_child_mut`] for an `f` that cannot fail.
pub fn each_child_mut(stmt: &mut Stmt, f: &mut dyn FnMut(&mut Stmt)) {
    let Ok(()) = try_each_child_mut::<std::convert::Infallible>(stmt, &mut |child| {
        f(child);
        Ok(())
    });
}

/// A sequence whose statements changed, without sequences right in it; any other statement stays.
fn flatten(stmt: &mut Stmt) {
    if let Stmt::Seq(stmts) = stmt
        && (stmts.len() == 1 || stmts.iter().any(|s| matches!(s, Stmt::Seq(_))))
    {
        *stmt = Stmt::seq(std::mem::take(stmts));
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
        Stmt::Atom(call) => call.exprs(),
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

/// Replaces expressions of a statement and of all below it: `on_expr` sees each expression that stands in a
/// statement (whole, not its parts) and gives what it is replaced by, if it is. Nested sequences become one.
/// Extents of allocated buffers are not rewritten.
pub fn rewrite_exprs(stmt: &mut Stmt, on_expr: &mut dyn FnMut(&Expr) -> Option<Expr>) {
    change_exprs(stmt, on_expr);
    each_child_mut(stmt, &mut |child| rewrite_exprs(child, on_expr));
    flatten(stmt);
}

/// Replaces the expressions that stand directly in a statement.
fn change_exprs(stmt: &mut Stmt, on_expr: &mut dyn FnMut(&Expr) -> Option<Expr>) {
    let mut change = |expr: &mut Expr| {
        if let Some(new) = on_expr(expr) {
            *expr = new;
        }
    };
    match stmt {
        Stmt::For { min, extent, .. } => {
            change(min);
            change(extent);
        }
        Stmt::If { cond: expr, .. }
        | Stmt::Let { value: expr, .. }
        | Stmt::LaunchThread { extent: expr, .. } => change(expr),
        Stmt::Store { indices, value, .. } => {
            indices.iter_mut().chain([value]).for_each(change);
        }
        Stmt::ScopeIds { extents, .. } => extents.iter_mut().for_each(change),
        Stmt::Tile(call) => {
            for region in call.dsts.iter_mut().chain(&mut call.srcs) {
                for (min, extent) in &mut region.ranges {
                    change(min);
                    change(extent);
                }
            }
        }
        Stmt::Atom(call) => call.exprs_mut().for_each(change),
        Stmt::Seq(_)
        | Stmt::Allocate { .. }
        | Stmt::Annotate { .. }
        | Stmt::DeviceEntry
        | Stmt::AllocBuffer(_)
        | Stmt::View { .. }
        | Stmt::Sync(_) => {}
    }
}

/// Rewrites a statement bottom-up: its expressions as [`rewrite_exprs`] does, and `on_stmt` sees each rebuilt statement.
pub fn rewrite_stmt(
    mut stmt: Stmt,
    on_expr: &mut dyn FnMut(&Expr) -> Option<Expr>,
    on_stmt: &mut dyn FnMut(Stmt) -> Stmt,
) -> Stmt {
    change_exprs(&mut stmt, on_expr);
    each_child_mut(&mut stmt, &mut |child| {
        let taken = std::mem::replace(child, Stmt::NOP);
        *child = rewrite_stmt(taken, on_expr, on_stmt);
    });
    flatten(&mut stmt);
    on_stmt(stmt)
}

/// The statement with variables replaced in all its expressions.
pub fn substitute_stmt<S: BuildHasher>(mut stmt: Stmt, map: &HashMap<Var, Expr, S>) -> Stmt {
    if !map.is_empty() {
        let mut substitution = Substitution::new(map);
        rewrite_exprs(&mut stmt, &mut |e| substitution.of(e));
    }
    stmt
}

/// Every buffer that the statement accesses, declares or looks at through another, in order of first occurrence.
pub fn buffers_of(stmt: &Stmt) -> Vec<Buffer> {
    let mut seen = Vec::new();
    let add = |buffer: &Buffer, seen: &mut Vec<Buffer>| {
        if !seen.contains(buffer) {
            seen.push(buffer.clone());
        }
    };
    for_each_stmt(stmt, &mut |s| {
        s.each_buffer(&mut |buffer, _| add(buffer, &mut seen));
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

/// Data pointers of the memory that the statement, or one below it, may write.
pub fn written_memory(stmt: &Stmt) -> FastSet<VarId> {
    let mut written = FastSet::default();
    for_each_stmt(stmt, &mut |s| {
        s.each_buffer(&mut |buffer, role| {
            if role == Role::Written {
                written.insert(buffer.data.id());
            }
        });
    });
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atom::{Atom, AtomCall, Element};
    use crate::buffer::MemScope;
    use crate::dtype::DType;
    use crate::expr::Intrinsic;

    #[test]
    fn a_buffer_that_is_only_looked_at_by_another_is_one_of_the_statement() {
        let source = Buffer::new("m", DType::I32, vec![Expr::int(8)], MemScope::Local);
        let window = source.derive(|b| b.name = "w".into());
        let view = Stmt::View { buffer: window.clone(), source: source.clone(), local: false };
        assert_eq!(buffers_of(&view), [window.clone(), source.clone()]);
        let mut roles = Vec::new();
        view.each_buffer(&mut |buffer, role| roles.push((buffer.clone(), role)));
        assert_eq!(roles, [(window, Role::Declared), (source, Role::Viewed)]);
    }

    #[test]
    fn an_atom_writes_its_destination_and_what_it_updates() {
        let [dst, memory] =
            ["d", "m"].map(|name| Buffer::new(name, DType::I32, vec![Expr::int(8)], MemScope::Global));
        let at = |buffer: &Buffer| Element { buffer: buffer.clone(), indices: vec![Expr::int(0)] };
        let written = |atom: Atom| {
            let has_result =
                atom.signature().result(&[DType::I32; 2], Some(DType::I32), DType::U32).is_some();
            let (dst, memory) = (has_result.then(|| at(&dst)), Some(at(&memory)));
            written_memory(&Stmt::Atom(Box::new(AtomCall { atom, dst, memory, args: Vec::new() })))
        };
        let is = |found: FastSet<VarId>, wanted: &[&Buffer]| {
            assert_eq!(found, wanted.iter().map(|buffer| buffer.data.id()).collect());
        };
        is(written(Atom::AtomicAdd), &[&dst, &memory]);
        is(written(Atom::ClusterLoad), &[&dst]);
        is(written(Atom::Prefetch), &[]);
    }

    #[test]
    fn operands_that_change_are_replaced_and_an_expression_without_is_left() {
        let [a, b, c] = ["a", "b", "c"].map(|name| Var::new(name, DType::I32).expr());
        let memory = Buffer::new("m", DType::I32, vec![Expr::int(8), Expr::int(8)], MemScope::Global);
        let cond = a.clone().lt(b.clone());
        let call = |x: &Expr, y: &Expr| {
            let floats = [x, y, &c].map(|e| e.clone().cast(DType::F32));
            Expr::call(Intrinsic::Fma, floats.to_vec())
        };
        let samples = |a: &Expr, b: &Expr| {
            [
                a.clone() + b.clone(),
                Expr::select(a.clone().lt(b.clone()), b.clone(), a.clone()),
                Expr::if_then_else(cond.clone(), b.clone(), a.clone()),
                memory.at([b.clone(), a.clone()]),
                Expr::ramp(a.clone(), b.clone(), 4),
                a.clone().broadcast_to(4),
                call(a, b),
                call(b, a),
            ]
        };
        // Operands are looked at all the way down.
        fn changed(expr: &Expr, from: &Expr, to: &Expr) -> Option<Expr> {
            match expr == from {
                true => Some(to.clone()),
                false => change_children(expr, &mut |child| changed(child, from, to)),
            }
        }
        let other = Expr::int(7);
        for (old, new) in samples(&a, &b).iter().zip(samples(&other, &b)) {
            if !matches!(old.node(), Node::IfThenElse(..)) {
                assert_eq!(changed(old, &a, &other), Some(new), "{old:?}");
            }
            assert_eq!(change_children(old, &mut |_| None), None, "{old:?}");
            assert_eq!(map_children(old, &mut Expr::clone), *old);
        }
    }

    #[test]
    fn expressions_are_replaced_where_they_stand_and_nested_sequences_become_one() {
        let [a, b] = ["a", "b"].map(|name| Var::new(name, DType::I32));
        let memory = Buffer::new("m", DType::I32, vec![Expr::int(8)], MemScope::Global);
        let store = |at: &Expr| Stmt::store(&memory, vec![at.clone()], at.clone() + Expr::int(1));
        let made = |at: &Expr, inner: Vec<Stmt>| {
            let body = Stmt::Seq([vec![store(at)], inner].concat());
            Stmt::if_(at.clone().lt(Expr::int(4)), Stmt::range(Var::new("i", DType::I32), at.clone(), body))
        };
        let (old, new) = (a.expr(), b.expr());
        let nested = Stmt::Seq(vec![Stmt::Seq(vec![store(&old), Stmt::NOP]), store(&old)]);
        let mut stmt = made(&old, vec![nested]);
        let map = FastMap::from_iter([(a, new.clone())]);
        rewrite_exprs(&mut stmt, &mut |e| Some(substitute_expr(e, &map)));
        let Stmt::If { cond, then, .. } = &stmt else { panic!("{stmt:?}") };
        let Stmt::For { extent, body, .. } = &**then else { panic!("{stmt:?}") };
        assert_eq!((cond, extent), (&new.clone().lt(Expr::int(4)), &new));
        assert_eq!(**body, Stmt::Seq(vec![store(&new), store(&new), store(&new)]));
        assert!(any_stmt(&stmt, &mut |s| matches!(s, Stmt::Store { .. })));
        assert!(!any_stmt(&stmt, &mut |s| matches!(s, Stmt::Sync(_))));
    }

    #[test]
    fn an_expression_written_out_is_measured_without_writing_it_out() {
        let mut expr = Var::new("a", DType::I32).expr();
        let mut size = 1;
        for _ in 0..12 {
            expr = expr.clone() * expr.clone() + expr;
            size = 3 * size + 2;
            assert_eq!(written_size(&expr), size);
        }
        for _ in 0..60 {
            expr = expr.clone() * expr.clone() + expr;
        }
        assert_eq!(written_size(&expr), u64::MAX);
    }

    #[test]
    fn a_shared_operand_is_seen_once_and_substituted_wherever_it_stands() {
        let [a, b] = ["a", "b"].map(|name| Var::new(name, DType::I32));
        let sum = a.expr() + b.expr();
        let expr = sum.clone() * (sum.clone() - sum.clone());
        let mut seen = Vec::new();
        for_each_expr(&expr, &mut |e| seen.push(e.clone()));
        assert_eq!(seen.iter().filter(|e| **e == sum).count(), 1);
        let five = Expr::int(5);
        let new = five.clone() + b.expr();
        let map = FastMap::from_iter([(a, five)]);
        assert_eq!(substitute_expr(&expr, &map), new.clone() * (new.clone() - new));
    }
}
