//! V20 to V22: launches and barriers.

use crate::hash::FastSet;

use super::Report;
use crate::atom::{Atom, AtomCall};
use crate::buffer::{Buffer, MemScope};
use crate::expr::{Expr, Node, VarId};
use crate::kernel::Kernel;
use crate::stmt::{ScopeId, Stmt, SyncKind, ThreadTag};
use crate::visit::for_each_expr;

/// Threads that a block may have.
pub(super) const MAX_THREADS: i128 = 1024;

/// Checks launches and barriers.
pub(super) fn check_threads<'k>(kernel: &'k Kernel, report: &mut Report<'k>) {
    let levels = Vec::new();
    Walk { levels, private: false, divergent: Divergence::default(), path: Vec::new(), report }
        .stmt(&kernel.body);
}

/// Checks barriers again, with what threads keep in memory of their own: a condition on that may differ too.
pub(super) fn check_barriers_of_private_values<'k>(body: &'k Stmt, report: &mut Report<'k>) {
    let mut levels = Vec::new();
    loop {
        // A loop may keep what its end computed, so that the walk is repeated until nothing is learnt.
        let before = levels.len();
        let mut ignored = Report::default();
        let mut walk = Walk {
            levels,
            private: true,
            divergent: Divergence::default(),
            path: Vec::new(),
            report: &mut ignored,
        };
        walk.stmt(body);
        levels = walk.levels;
        if levels.len() == before {
            break;
        }
    }
    let divergent = Divergence::default();
    Walk { levels, private: true, divergent, path: Vec::new(), report }.stmt(body);
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
    /// Variables that differ between threads, and memory of threads that holds what does.
    levels: Vec<(VarId, Level)>,
    /// Whether memory of threads is followed.
    private: bool,
    divergent: Divergence,
    /// Launches around the statement, with their constant extents.
    path: Vec<(ThreadTag, Option<i128>)>,
    report: &'r mut Report<'k>,
}

impl<'k> Walk<'_, 'k> {
    fn levels(&self, expr: &Expr) -> Vec<Level> {
        if self.levels.is_empty() {
            return Vec::new();
        }
        let mut used = FastSet::default();
        for_each_expr(expr, &mut |e| {
            used.extend(e.as_var().map(|v| v.id()));
            if let Node::Load(buffer, _) = e.node() {
                used.insert(buffer.data.id());
            }
        });
        self.levels.iter().filter(|(id, _)| used.contains(id)).map(|(_, level)| *level).collect()
    }

    /// Notes that the variable, or memory of that pointer, differs between threads.
    fn note(&mut self, id: VarId, levels: Vec<Level>) {
        for level in levels {
            if !self.levels.contains(&(id, level)) {
                self.levels.push((id, level));
            }
        }
    }

    /// What the conditions around differ by.
    fn around(&self) -> Vec<Level> {
        let d = self.divergent;
        let all = [
            (d.lane, Level::Lane),
            (d.warp, Level::Warp),
            (d.warpgroup, Level::Warpgroup),
            (d.thread, Level::Thread),
        ];
        all.into_iter().filter(|(differs, _)| *differs).map(|(_, level)| level).collect()
    }

    /// Notes what a store to memory of threads says of that memory.
    fn keep(&mut self, buffer: &Buffer, mut levels: Vec<Level>) {
        if self.private && matches!(buffer.scope, MemScope::Local | MemScope::Warp) {
            levels.extend(self.around());
            self.note(buffer.data.id(), levels);
        }
    }

    /// What the result of an atom differs by.
    fn result_of(&self, call: &AtomCall) -> Vec<Level> {
        let of_args = || call.args.iter().flat_map(|arg| self.levels(arg)).collect::<Vec<Level>>();
        let has_lanes = self.levels.iter().any(|(_, level)| *level != Level::Warpgroup);
        match call.atom {
            // All lanes that are named get the same; the mask says which these are.
            Atom::Ballot
            | Atom::VoteAny
            | Atom::VoteAll
            | Atom::ReduxAdd
            | Atom::ReduxMin
            | Atom::ReduxMax => {
                if of_args().is_empty() {
                    Vec::new()
                } else {
                    vec![Level::Warp]
                }
            }
            Atom::Shuffle => match call.args.get(2).map(|lane| self.levels(lane)) {
                Some(lane) if lane.is_empty() && !of_args().is_empty() => vec![Level::Warp],
                _ => of_args(),
            },
            Atom::ShuffleDown | Atom::ShuffleUp | Atom::ShuffleXor => of_args(),
            Atom::ActiveMask
            | Atom::AtomicAdd
            | Atom::AtomicMin
            | Atom::AtomicMax
            | Atom::AtomicExchange
            | Atom::AtomicCompareSwap => {
                if has_lanes {
                    vec![Level::Lane]
                } else {
                    Vec::new()
                }
            }
            // Another block's memory may hold what tells threads apart.
            Atom::ClusterLoad => of_args(),
            Atom::ThreadFence | Atom::Prefetch => Vec::new(),
        }
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
                self.note(var.id(), levels);
                self.under(&[extent], &[body]);
            }
            Stmt::If { cond, then, otherwise } => {
                let mut bodies: Vec<&'k Stmt> = vec![then];
                bodies.extend(otherwise.as_deref());
                self.under(&[cond], &bodies);
            }
            Stmt::Let { var, value, body } => {
                let levels = self.levels(value);
                self.note(var.id(), levels);
                self.stmt(body);
            }
            Stmt::Allocate { body, .. } | Stmt::Annotate { body, .. } => self.stmt(body),
            Stmt::LaunchThread { tag, var, extent, body } => {
                self.launch(stmt, *tag, extent);
                if is_thread(*tag) && !extent.is_int(1) {
                    self.note(var.id(), vec![Level::Thread]);
                }
                self.path.push((*tag, extent.as_int()));
                self.stmt(body);
                self.path.pop();
            }
            Stmt::ScopeIds { id, vars, extents } => {
                let level = match id {
                    ScopeId::Cta | ScopeId::Cluster | ScopeId::CtaInCluster => return,
                    ScopeId::Thread => Level::Thread,
                    ScopeId::Warp | ScopeId::WarpInWarpgroup => Level::Warp,
                    ScopeId::Warpgroup => Level::Warpgroup,
                    ScopeId::Lane | ScopeId::ThreadInWarpgroup => Level::Lane,
                };
                vars.iter().for_each(|v| self.note(v.id(), vec![level]));
                if *id == ScopeId::Thread {
                    let threads = extents.iter().try_fold(1i128, |n, e| n.checked_mul(e.as_int()?));
                    self.count(stmt, threads);
                }
            }
            Stmt::Sync(kind) => self.barrier(stmt, *kind),
            Stmt::Store { buffer, value, .. } => {
                let levels = self.levels(value);
                self.keep(buffer, levels);
            }
            Stmt::Atom(call) => {
                if let Some(dst) = &call.dst {
                    let levels = self.result_of(call);
                    self.keep(&dst.buffer, levels);
                }
            }
            Stmt::DeviceEntry | Stmt::AllocBuffer(_) | Stmt::View { .. } | Stmt::Tile(_) => {}
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
            SyncKind::Cluster => ("cluster", d.lane || d.warp || d.warpgroup || d.thread),
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
        ThreadTag::BlockX
        | ThreadTag::BlockY
        | ThreadTag::BlockZ
        | ThreadTag::ClusterX
        | ThreadTag::ClusterY
        | ThreadTag::ClusterZ
        | ThreadTag::VThread => false,
    }
}
