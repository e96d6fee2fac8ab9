//! V13 and V14: iterations of a parallel loop do not write to one place, nor read what another one writes.
//!
//! Found are stores under no condition on the iteration whose place is the same in all iterations, or in the
//! first two, to memory that is not allocated inside the loop; and reads of such memory, under no such
//! condition either, at a constant distance of iterations from a store. Of what is left iterations are followed one by one
//! ([`super::iterations`]).

use std::collections::{HashMap, HashSet};

use super::forms::each_stmt;
use super::iterations::{Access, Loop};
use super::witness::Step;
use super::{Check, Group, Property, Report};
use crate::buffer::Buffer;
use crate::expr::{Expr, Node, Var, VarId};
use crate::kernel::Kernel;
use crate::simplify::Analyzer;
use crate::stmt::{LoopKind, Stmt};
use crate::visit::{any_stmt, for_each_expr, stmt_children, substitute_expr};

pub(super) const GROUP: Group = Group {
    properties: &[
        Property::new(
            "V13",
            "iterations of a parallel loop do not store to one place, nor to one that another reads",
        ),
        Property::new("V14", "iterations of a parallel loop do not fold into one place"),
    ],
    checks: &[Check::Values(check_races)],
};

/// Checks the stores inside each parallel loop.
fn check_races<'k>(kernel: &'k Kernel, report: &mut Report<'k>) {
    if any_stmt(&kernel.body, &mut is_parallel) {
        loops_below(
            &kernel.body,
            &mut Around { kernel, steps: Vec::new() },
            &Analyzer::of_call(kernel),
            report,
        );
    }
}

fn is_parallel(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For { kind: LoopKind::Parallel, .. })
}

/// Where a statement stands.
struct Around<'k> {
    kernel: &'k Kernel,
    steps: Vec<Step>,
}

impl<'k> Around<'k> {
    /// Does something one step further inside.
    fn inside(&mut self, step: Step, f: impl FnOnce(&mut Self)) {
        self.steps.push(step);
        f(self);
        self.steps.pop();
    }
}

/// Checks the loop that the statement is, and those in it, by what is known where they stand.
fn loops_below<'k>(stmt: &'k Stmt, around: &mut Around<'k>, known: &Analyzer, report: &mut Report<'k>) {
    // What holds in other loops is not asked for.
    if !any_stmt(stmt, &mut is_parallel) {
        return;
    }
    match stmt {
        Stmt::For { var, min, extent, body, .. } => {
            if is_parallel(stmt) && !known.can_prove(&extent.clone().le(Expr::int_of(1, extent.dtype()))) {
                check_loop((var, min, extent), body, around, report);
            }
            let mut inner = known.clone();
            inner.bind(var, min, extent);
            let step = Step::Loop(var.clone(), min.clone(), extent.clone());
            around.inside(step, |around| loops_below(body, around, &inner, report));
        }
        Stmt::LaunchThread { var, extent, body, .. } => {
            let mut inner = known.clone();
            inner.bind(var, &Expr::int_of(0, extent.dtype()), extent);
            loops_below(body, around, &inner, report);
        }
        Stmt::Let { var, value, body } => {
            let mut inner = known.clone();
            inner.bind_value(var, value);
            let step = Step::Name(var.clone(), value.clone());
            around.inside(step, |around| loops_below(body, around, &inner, report));
        }
        Stmt::If { cond, then, otherwise } => {
            let step = |holds| Step::Cond(cond.clone(), holds);
            around.inside(step(true), |around| loops_below(then, around, &known.with(cond), report));
            if let Some(otherwise) = otherwise {
                let known = known.with(&cond.clone().logical_not());
                around.inside(step(false), |around| loops_below(otherwise, around, &known, report));
            }
        }
        other => stmt_children(other).for_each(|s| loops_below(s, around, known, report)),
    }
}

/// Checks the stores inside a parallel loop of more than one iteration.
fn check_loop<'k>(
    (var, min, extent): (&'k Var, &'k Expr, &Expr),
    body: &'k Stmt,
    around: &Around<'k>,
    report: &mut Report<'k>,
) {
    let mut scan = Scan {
        var,
        min,
        varying: HashSet::from([var.id()]),
        inner: HashSet::new(),
        values: HashMap::new(),
        stores: Vec::new(),
        loads: Vec::new(),
        written: written(body),
        path: Vec::new(),
        accesses: Vec::new(),
        told: HashSet::new(),
        report,
    };
    scan.stmt(body, Guard::Free);
    scan.reads(extent.as_int());
    let own = Loop { var, min, extent, around: &around.steps };
    scan.meetings(&own, around.kernel);
}

/// Data pointers of what is stored to.
fn written(body: &Stmt) -> HashSet<VarId> {
    let mut found = HashSet::new();
    each_stmt(body, &mut |stmt| {
        if let Stmt::Store { buffer, .. } = stmt {
            found.insert(buffer.data.id());
        }
    });
    found
}

/// Whether control depends on the iteration.
#[derive(Clone, Copy, PartialEq)]
enum Guard {
    Free,
    OnIteration,
}

struct Scan<'s, 'k> {
    var: &'k Var,
    min: &'k Expr,
    /// Variables that may differ between iterations.
    varying: HashSet<VarId>,
    /// Data pointers of memory that belongs to one iteration.
    inner: HashSet<VarId>,
    /// Values of names bound inside the loop.
    values: HashMap<Var, Expr>,
    /// Memory that the loop stores to.
    written: HashSet<VarId>,
    /// What every iteration stores, with its place.
    stores: Vec<(&'k Stmt, Buffer, Vec<Expr>)>,
    /// Where every iteration reads memory that the loop stores to.
    loads: Vec<(VarId, Vec<Expr>)>,
    /// Loops and branches of the loop that stand around what is looked at.
    path: Vec<Step>,
    /// All stores of the loop to memory that is not one iteration's own, and all reads of it.
    accesses: Vec<Access<'k>>,
    /// Memory of which something was said.
    told: HashSet<VarId>,
    report: &'s mut Report<'k>,
}

impl<'k> Scan<'_, 'k> {
    /// Whether the value may differ between iterations.
    fn varies(&self, expr: &Expr) -> bool {
        let mut found = false;
        for_each_expr(expr, &mut |e| match e.node() {
            Node::Var(var) => found |= self.varying.contains(&var.id()),
            Node::Load(buffer, _) => found |= self.inner.contains(&buffer.data.id()),
            _ => {}
        });
        found
    }

    /// Notes the reads of an expression of a statement.
    fn note(&mut self, stmt: &'k Stmt, expr: &Expr, guard: Guard) {
        if self.written.is_subset(&self.inner) {
            return;
        }
        for_each_expr(expr, &mut |e| {
            if let Node::Load(buffer, at) = e.node() {
                let data = buffer.data.id();
                if self.written.contains(&data) && !self.inner.contains(&data) {
                    let place: Vec<Expr> = at.iter().map(|i| substitute_expr(i, &self.values)).collect();
                    let (buffer, path) = (buffer.clone(), self.path.clone());
                    self.accesses.push(Access { stmt, buffer, place: place.clone(), path, stores: false });
                    if guard == Guard::Free {
                        self.loads.push((data, place));
                    }
                }
            }
        });
    }

    /// Does something inside a loop or a branch.
    fn inside(&mut self, step: Step, f: impl FnOnce(&mut Self)) {
        let step = match step {
            Step::Cond(cond, holds) => Step::Cond(substitute_expr(&cond, &self.values), holds),
            Step::Loop(var, min, extent) => {
                Step::Loop(var, substitute_expr(&min, &self.values), substitute_expr(&extent, &self.values))
            }
            name @ Step::Name(..) => name,
        };
        self.path.push(step);
        f(self);
        self.path.pop();
    }

    /// Reports iterations that meet where they are followed, of memory of which nothing was said.
    fn meetings(self, own: &Loop, kernel: &Kernel) {
        let mut buffers: Vec<&Buffer> = Vec::new();
        for access in self.accesses.iter().filter(|access| access.stores) {
            if !buffers.contains(&&access.buffer) {
                buffers.push(&access.buffer);
            }
        }
        for buffer in buffers.into_iter().filter(|buffer| !self.told.contains(&buffer.data.id())) {
            let those: Vec<&Access> =
                self.accesses.iter().filter(|access| access.buffer == *buffer).collect();
            let Some(meeting) = own.meeting(kernel, &those) else { continue };
            let (loop_, name, (first, second)) = (own.var.name(), &buffer.name, meeting.iterations);
            let what = match meeting.reads {
                true => format!(
                    "iteration {second} of the parallel loop `{loop_}` reads an element of `{name}` that iteration {first} stores"
                ),
                false => format!(
                    "iterations {first} and {second} of the parallel loop `{loop_}` store to one element of `{name}`"
                ),
            };
            self.report.at(meeting.store, "V13", what);
        }
    }

    /// Reports stores of what another iteration reads; the loop has so many, where that is known.
    fn reads(&mut self, extent: Option<i128>) {
        for (stmt, buffer, place) in &self.stores {
            let data = buffer.data.id();
            let is_read = |(read, at): &(VarId, Vec<Expr>)| {
                *read == data && self.distance(place, at).is_some_and(|d| extent.is_none_or(|n| d < n))
            };
            if self.loads.iter().any(is_read) && self.told.insert(data) {
                let (loop_, name) = (self.var.name(), &buffer.name);
                let text = format!(
                    "iterations of the parallel loop `{loop_}` read elements of `{name}` that other iterations store"
                );
                self.report.at(stmt, "V13", text);
            }
        }
    }

    /// How many iterations lie between one that stores a place and one that reads it, where that is a constant and not 0.
    fn distance(&self, place: &[Expr], read: &[Expr]) -> Option<i128> {
        if place.len() != read.len() {
            return None;
        }
        let analyzer = Analyzer::new();
        let next = self.var.expr() + Expr::int_of(1, self.var.dtype());
        let mut distance = None;
        for (to, from) in place.iter().zip(read) {
            let after = substitute_expr(to, &HashMap::from([(self.var.clone(), next.clone())]));
            let step = analyzer.simplify(&(after - to.clone())).as_int()?;
            let gap = analyzer.simplify(&(to.clone() - from.clone())).as_int()?;
            let of_dim = match (step, gap) {
                (0, 0) => continue,
                (0, _) => return None,
                (step, gap) if gap % step != 0 => return None,
                (step, gap) => gap / step,
            };
            if distance.replace(of_dim).is_some_and(|other| other != of_dim) {
                return None;
            }
        }
        distance.map(i128::abs).filter(|d| *d != 0)
    }

    fn stmt(&mut self, stmt: &'k Stmt, guard: Guard) {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().for_each(|s| self.stmt(s, guard)),
            Stmt::For { var, min, extent, body, .. } => {
                self.note(stmt, min, guard);
                self.note(stmt, extent, guard);
                let varies = self.varies(min) || self.varies(extent);
                if varies {
                    self.varying.insert(var.id());
                }
                let step = Step::Loop(var.clone(), min.clone(), extent.clone());
                let guard = if varies { Guard::OnIteration } else { guard };
                self.inside(step, |scan| scan.stmt(body, guard));
            }
            Stmt::LaunchThread { body, .. } | Stmt::Annotate { body, .. } => self.stmt(body, guard),
            Stmt::If { cond, then, otherwise } => {
                self.note(stmt, cond, guard);
                let guard = if self.varies(cond) { Guard::OnIteration } else { guard };
                self.inside(Step::Cond(cond.clone(), true), |scan| scan.stmt(then, guard));
                if let Some(otherwise) = otherwise {
                    self.inside(Step::Cond(cond.clone(), false), |scan| scan.stmt(otherwise, guard));
                }
            }
            Stmt::Let { var, value, body } => {
                if self.varies(value) {
                    self.varying.insert(var.id());
                }
                self.note(stmt, value, guard);
                let value = substitute_expr(value, &self.values);
                self.values.insert(var.clone(), value);
                self.stmt(body, guard);
            }
            Stmt::Allocate { buffer, body } => {
                self.inner.insert(buffer.data.id());
                self.stmt(body, guard);
            }
            Stmt::AllocBuffer(buffer) => {
                self.inner.insert(buffer.data.id());
            }
            Stmt::Store { buffer, indices, value } => {
                indices.iter().chain([value]).for_each(|e| self.note(stmt, e, guard));
                self.store(stmt, buffer, indices, value, guard);
            }
            Stmt::DeviceEntry
            | Stmt::ScopeIds { .. }
            | Stmt::View { .. }
            | Stmt::Tile(_)
            | Stmt::Atom(_)
            | Stmt::Sync(_) => {}
        }
    }

    fn store(&mut self, stmt: &'k Stmt, buffer: &Buffer, indices: &[Expr], value: &Expr, guard: Guard) {
        if self.inner.contains(&buffer.data.id()) {
            return;
        }
        let indices: Vec<Expr> = indices.iter().map(|i| substitute_expr(i, &self.values)).collect();
        let (path, place) = (self.path.clone(), indices.clone());
        self.accesses.push(Access { stmt, buffer: buffer.clone(), place, path, stores: true });
        if guard == Guard::OnIteration {
            return;
        }
        if !indices.iter().all(|i| self.meets(i)) {
            self.stores.push((stmt, buffer.clone(), indices));
            return;
        }
        let mut folds = false;
        for_each_expr(value, &mut |e| {
            if let Node::Load(source, at) = e.node() {
                let at: Vec<Expr> = at.iter().map(|i| substitute_expr(i, &self.values)).collect();
                folds |= source.data == buffer.data && at == indices;
            }
        });
        self.told.insert(buffer.data.id());
        let (loop_, name) = (self.var.name(), &buffer.name);
        if folds {
            let text = format!(
                "iterations of the parallel loop `{loop_}` fold into one element of `{name}`; give each its own \
                 partial result"
            );
            self.report.at(stmt, "V14", text);
        } else {
            let text = format!("iterations of the parallel loop `{loop_}` store to one element of `{name}`");
            self.report.at(stmt, "V13", text);
        }
    }

    /// Whether the index is the same in all iterations, or in the first two.
    fn meets(&self, index: &Expr) -> bool {
        if !self.varies(index) {
            return true;
        }
        let at = |value: Expr| substitute_expr(index, &HashMap::from([(self.var.clone(), value)]));
        let first = at(self.min.clone());
        let second = at(self.min.clone() + Expr::int_of(1, self.min.dtype()));
        if self.varies(&first) || self.varies(&second) {
            return false;
        }
        let analyzer = Analyzer::new();
        analyzer.simplify(&first) == analyzer.simplify(&second)
    }
}
