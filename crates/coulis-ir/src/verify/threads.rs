//! V20 to V22: launches and barriers.

use std::collections::HashSet;

use super::Report;
use crate::expr::{Expr, VarId};
use crate::kernel::Kernel;
use crate::stmt::{ScopeId, Stmt, SyncKind, ThreadTag};
use crate::visit::for_each_expr;

/// Threads that a block may have.
const MAX_THREADS: i128 = 1024;

/// Checks launches and barriers.
pub(super) fn check_threads<'k>(kernel: &'k Kernel, report: &mut Report<'k>) {
    Walk { indices: Vec::new(), divergent: Divergence::default(), path: Vec::new(), report }
        .stmt(&kernel.body);
}

/// Which part of a block a variable tells apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// Threads, in a way that may differ between lanes of a warp.
    Lane,
    /// Warps, but not the lanes of one.
    Warp,
    /// Warpgroups, but not the warps of one.
    Warpgroup,
    /// Threads by their flat index, which may or may not tell lanes apart.
    Thread,
}

/// What the conditions around a statement depend on.
#[derive(Clone, Copy, Default)]
struct Divergence {
    lane: bool,
    warp: bool,
    warpgroup: bool,
    thread: bool,
}

struct Walk<'r, 'k> {
    indices: Vec<(VarId, Level)>,
    divergent: Divergence,
    /// Launches around the statement, with their constant extents.
    path: Vec<(ThreadTag, Option<i128>)>,
    report: &'r mut Report<'k>,
}

impl<'k> Walk<'_, 'k> {
    fn levels(&self, expr: &Expr) -> Vec<Level> {
        let mut used = HashSet::new();
        for_each_expr(expr, &mut |e| used.extend(e.as_var().map(|v| v.id())));
        self.indices.iter().filter(|(id, _)| used.contains(id)).map(|(_, level)| *level).collect()
    }

    /// Walks the body under conditions that depend on the expressions.
    fn under(&mut self, conditions: &[&Expr], bodies: &[&'k Stmt]) {
        let before = self.divergent;
        let levels: Vec<Level> = conditions.iter().flat_map(|e| self.levels(e)).collect();
        for level in levels {
            match level {
                Level::Lane => self.divergent.lane = true,
                Level::Warp => self.divergent.warp = true,
                Level::Warpgroup => self.divergent.warpgroup = true,
                Level::Thread => self.divergent.thread = true,
            }
        }
        bodies.iter().for_each(|body| self.stmt(body));
        self.divergent = before;
    }

    fn stmt(&mut self, stmt: &'k Stmt) {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().for_each(|s| self.stmt(s)),
            Stmt::For { var, min, extent, body, .. } => {
                let levels: Vec<Level> = [self.levels(min), self.levels(extent)].concat();
                self.indices.extend(levels.into_iter().map(|level| (var.id(), level)));
                self.under(&[extent], &[body]);
            }
            Stmt::If { cond, then, otherwise } => {
                let mut bodies: Vec<&'k Stmt> = vec![then];
                bodies.extend(otherwise.as_deref());
                self.under(&[cond], &bodies);
            }
            Stmt::Let { var, value, body } => {
                let levels = self.levels(value);
                self.indices.extend(levels.into_iter().map(|level| (var.id(), level)));
                self.stmt(body);
            }
            Stmt::Allocate { body, .. } | Stmt::Annotate { body, .. } => self.stmt(body),
            Stmt::LaunchThread { tag, var, extent, body } => {
                self.launch(stmt, *tag, extent);
                if is_thread(*tag) && !extent.is_int(1) {
                    self.indices.push((var.id(), Level::Thread));
                }
                self.path.push((*tag, extent.as_int()));
                self.stmt(body);
                self.path.pop();
            }
            Stmt::ScopeIds { id, vars, extents } => {
                let level = match id {
                    ScopeId::Cta => return,
                    ScopeId::Thread => Level::Thread,
                    ScopeId::Warp | ScopeId::WarpInWarpgroup => Level::Warp,
                    ScopeId::Warpgroup => Level::Warpgroup,
                    ScopeId::Lane | ScopeId::ThreadInWarpgroup => Level::Lane,
                };
                self.indices.extend(vars.iter().map(|v| (v.id(), level)));
                if *id == ScopeId::Thread {
                    let threads = extents.iter().try_fold(1i128, |n, e| n.checked_mul(e.as_int()?));
                    self.count(stmt, threads);
                }
            }
            Stmt::Sync(kind) => self.barrier(stmt, *kind),
            Stmt::Store { .. }
            | Stmt::DeviceEntry
            | Stmt::AllocBuffer(_)
            | Stmt::View { .. }
            | Stmt::Tile(_)
            | Stmt::Atom(_) => {}
        }
    }

    fn launch(&mut self, stmt: &'k Stmt, tag: ThreadTag, extent: &Expr) {
        if tag == ThreadTag::VThread {
            return;
        }
        if self.path.iter().any(|(other, _)| *other == tag) {
            let text =
                format!("`{}` is launched inside a launch of itself; use the outer variable", tag.name());
            self.report.at(stmt, "V22", text);
        }
        if is_thread(tag) {
            let outer = self.path.iter().filter(|(tag, _)| is_thread(*tag)).map(|(_, n)| *n);
            let threads = outer.chain([extent.as_int()]).try_fold(1i128, |n, e| n.checked_mul(e?));
            self.count(stmt, threads);
        }
    }

    fn count(&mut self, stmt: &'k Stmt, threads: Option<i128>) {
        if let Some(found) = threads.filter(|n| *n > MAX_THREADS) {
            let text = format!("a block has at most {MAX_THREADS} threads, got {found}");
            self.report.at(stmt, "V20", text);
        }
    }

    fn barrier(&mut self, stmt: &'k Stmt, kind: SyncKind) {
        let d = self.divergent;
        let (name, differs) = match kind {
            SyncKind::Cta => ("cta", d.lane || d.warp || d.warpgroup || d.thread),
            SyncKind::Warpgroup(_) => ("warpgroup", d.lane || d.warp),
            SyncKind::Named { .. } => ("named", d.lane),
            SyncKind::Warp => ("warp", d.lane),
        };
        if differs {
            let text = format!("{name} barrier under a condition that differs between threads");
            self.report.at(stmt, "V21", text);
        }
    }
}

/// Whether the tag counts threads of a block.
fn is_thread(tag: ThreadTag) -> bool {
    match tag {
        ThreadTag::ThreadX | ThreadTag::ThreadY | ThreadTag::ThreadZ => true,
        ThreadTag::BlockX | ThreadTag::BlockY | ThreadTag::BlockZ | ThreadTag::VThread => false,
    }
}
