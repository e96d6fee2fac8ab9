//! V20 to V22, and V35 for every target: launches, clusters and barriers.

use std::rc::Rc;

use crate::hash::{FastMap, FastSet};

use super::{Check, Group, Property, Report};
use crate::atom::{Atom, AtomCall};
use crate::buffer::{Buffer, MemScope};
use crate::expr::{Expr, Node, VarId};
use crate::kernel::Kernel;
use crate::stmt::{MAX_BLOCK_THREADS, MAX_CLUSTER_BLOCKS, ScopeId, Stmt, SyncKind, ThreadTag};
use crate::visit::{for_each_expr, stmt_children};

pub(super) const GROUP: Group = Group {
    properties: &[
        Property::of_schedule("V20", "threads of a block, where constant, are at most 1024"),
        Property::new("V21", "barriers are reached by all the threads that they wait for"),
        Property::new("V22", "a hardware index is launched once on a path"),
    ],
    checks: &[Check::Tree(check_threads), Check::Launches(check_barriers_of_private_values)],
};

/// Checks launches and barriers.
fn check_threads<'k>(kernel: &'k Kernel, report: &mut Report<'k>) {
    let follows = if has_conditional_barrier(&kernel.body) { Follows::Values } else { Follows::Nothing };
    Walk::new(Known::default(), follows, report).stmt(&kernel.body);
}

/// Checks barriers again, with what threads keep in memory of their own: a condition on that may differ too.
fn check_barriers_of_private_values<'k>(kernel: &'k Kernel, report: &mut Report<'k>) {
    let body = &kernel.body;
    if !has_conditional_barrier(body) {
        return;
    }
    let mut known = Known::default();
    loop {
        // A loop may keep what its end computed, so that the walk is repeated until nothing is learnt: what
        // it finds then is so.
        let before = known.n_notes;
        let mut found = Report::default();
        let mut walk = Walk::new(known, Follows::Memory, &mut found);
        walk.stmt(body);
        known = walk.known;
        if known.n_notes == before {
            found.found.into_iter().for_each(|(stmt, fault)| report.add(stmt, fault.code, fault.message));
            break;
        }
    }
}

/// Whether a barrier stands under something that may differ between threads: a branch, or a loop of a length
/// that is not constant.
fn has_conditional_barrier(body: &Stmt) -> bool {
    fn go(stmt: &Stmt, is_conditional: bool) -> bool {
        let below = match stmt {
            Stmt::Sync(_) => return is_conditional,
            Stmt::If { .. } => true,
            Stmt::For { extent, .. } => is_conditional || extent.as_int().is_none(),
            Stmt::Seq(_)
            | Stmt::Store { .. }
            | Stmt::Let { .. }
            | Stmt::Allocate { .. }
            | Stmt::Annotate { .. }
            | Stmt::LaunchThread { .. }
            | Stmt::DeviceEntry
            | Stmt::ScopeIds { .. }
            | Stmt::AllocBuffer(_)
            | Stmt::View { .. }
            | Stmt::Tile(_)
            | Stmt::Atom(_) => is_conditional,
        };
        stmt_children(stmt).any(|child| go(child, below))
    }
    go(body, false)
}

/// What a walk asks whether it differs between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follows {
    /// Nothing: no barrier depends on it.
    Nothing,
    /// Values of variables.
    Values,
    /// Values, and those in memory of threads.
    Memory,
}

/// Which parts of a block something tells apart: a set of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Levels(u8);

impl Levels {
    const NONE: Levels = Levels(0);
    /// Threads, in a way that may differ between lanes of a warp.
    const LANE: Levels = Levels(1);
    /// Warps, but not the lanes of one.
    const WARP: Levels = Levels(2);
    /// Warpgroups, but not the warps of one.
    const WARPGROUP: Levels = Levels(4);
    /// Threads by their flat index, which may or may not tell lanes apart.
    const THREAD: Levels = Levels(8);

    fn and(self, other: Levels) -> Levels {
        Levels(self.0 | other.0)
    }

    fn is_empty(self) -> bool {
        self == Levels::NONE
    }

    /// Whether one of those is in it.
    fn has(self, other: Levels) -> bool {
        self.0 & other.0 != 0
    }
}

/// What is known of variables, and what expressions use.
#[derive(Default)]
struct Known {
    /// Variables that differ between threads, and memory of threads that holds what does.
    levels: FastMap<VarId, Levels>,
    /// Changes of the above.
    n_notes: usize,
    /// Variables and memory that an expression names.
    used: FastMap<Expr, Rc<[VarId]>>,
}

struct Walk<'r, 'k> {
    known: Known,
    follows: Follows,
    /// What the conditions around a statement depend on.
    divergent: Levels,
    /// Launches around the statement, with their constant extents.
    path: Vec<(ThreadTag, Option<i128>)>,
    report: &'r mut Report<'k>,
}

impl<'r, 'k> Walk<'r, 'k> {
    fn new(known: Known, follows: Follows, report: &'r mut Report<'k>) -> Walk<'r, 'k> {
        Walk { known, follows, divergent: Levels::NONE, path: Vec::new(), report }
    }

    fn levels(&mut self, expr: &Expr) -> Levels {
        let of = |id: &VarId, levels: &FastMap<VarId, Levels>| levels.get(id).copied().unwrap_or_default();
        if self.follows == Follows::Nothing || self.known.levels.is_empty() {
            return Levels::NONE;
        }
        if let Some(var) = expr.as_var() {
            return of(&var.id(), &self.known.levels);
        }
        if expr.is_leaf() {
            return Levels::NONE;
        }
        let Known { levels, used, .. } = &mut self.known;
        let ids = used.entry(expr.clone()).or_insert_with(|| {
            let mut ids: FastSet<VarId> = FastSet::default();
            for_each_expr(expr, &mut |e| {
                ids.extend(e.as_var().map(|v| v.id()));
                if let Node::Load(buffer, _) = e.node() {
                    ids.insert(buffer.data.id());
                }
            });
            ids.into_iter().collect()
        });
        ids.iter().fold(Levels::NONE, |all, id| all.and(of(id, levels)))
    }

    fn levels_of<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) -> Levels {
        exprs.into_iter().fold(Levels::NONE, |all, expr| all.and(self.levels(expr)))
    }

    /// Notes that the variable, or memory of that pointer, differs between threads.
    fn note(&mut self, id: VarId, levels: Levels) {
        if levels.is_empty() {
            return;
        }
        let known = self.known.levels.entry(id).or_default();
        if known.and(levels) != *known {
            *known = known.and(levels);
            self.known.n_notes += 1;
        }
    }

    /// Notes what a store to memory of threads says of that memory.
    fn keep(&mut self, buffer: &Buffer, levels: Levels) {
        if self.follows == Follows::Memory && matches!(buffer.scope, MemScope::Local | MemScope::Warp) {
            self.note(buffer.data.id(), levels.and(self.divergent));
        }
    }

    /// What the result of an atom differs by.
    fn result_of(&mut self, call: &AtomCall) -> Levels {
        match call.atom {
            // All lanes that are named get the same; the mask says which these are.
            Atom::Ballot
            | Atom::VoteAny
            | Atom::VoteAll
            | Atom::ReduxAdd
            | Atom::ReduxMin
            | Atom::ReduxMax => match self.levels_of(&call.args).is_empty() {
                true => Levels::NONE,
                false => Levels::WARP,
            },
            Atom::Shuffle => {
                let all = self.levels_of(&call.args);
                match call.args.get(2).map(|lane| self.levels(lane)) {
                    Some(lane) if lane.is_empty() && !all.is_empty() => Levels::WARP,
                    _ => all,
                }
            }
            Atom::ShuffleDown | Atom::ShuffleUp | Atom::ShuffleXor => self.levels_of(&call.args),
            Atom::ActiveMask
            | Atom::AtomicAdd
            | Atom::AtomicMin
            | Atom::AtomicMax
            | Atom::AtomicExchange
            | Atom::AtomicCompareSwap => {
                let within_groups = Levels::LANE.and(Levels::WARP).and(Levels::THREAD);
                match self.known.levels.values().any(|levels| levels.has(within_groups)) {
                    true => Levels::LANE,
                    false => Levels::NONE,
                }
            }
            // Another block's memory may hold what tells threads apart.
            Atom::ClusterLoad => self.levels_of(&call.args),
            Atom::ThreadFence | Atom::Prefetch | Atom::PrefetchL2 => Levels::NONE,
        }
    }

    /// Walks the body under conditions that depend on the expressions.
    fn under(&mut self, condition: &Expr, bodies: &[&'k Stmt]) {
        let before = self.divergent;
        self.divergent = before.and(self.levels(condition));
        bodies.iter().for_each(|body| self.stmt(body));
        self.divergent = before;
    }

    fn stmt(&mut self, stmt: &'k Stmt) {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().for_each(|s| self.stmt(s)),
            Stmt::For { var, min, extent, body, .. } => {
                let levels = self.levels_of([min, extent]);
                self.note(var.id(), levels);
                self.under(extent, &[body]);
            }
            Stmt::If { cond, then, otherwise } => {
                let mut bodies: Vec<&'k Stmt> = vec![then];
                bodies.extend(otherwise.as_deref());
                self.under(cond, &bodies);
            }
            Stmt::Let { var, value, body } => {
                let levels = self.levels(value);
                self.note(var.id(), levels);
                self.stmt(body);
            }
            Stmt::Allocate { body, .. } | Stmt::Annotate { body, .. } => self.stmt(body),
            Stmt::LaunchThread { tag, var, extent, body } => {
                self.launch(stmt, *tag, extent);
                if tag.is_thread() && !extent.is_int(1) {
                    self.note(var.id(), Levels::THREAD);
                }
                self.path.push((*tag, extent.as_int()));
                self.stmt(body);
                self.path.pop();
            }
            Stmt::ScopeIds { id, vars, extents } => {
                let extent = extents.iter().try_fold(1i128, |n, e| n.checked_mul(e.as_int()?));
                let level = match id {
                    ScopeId::CtaInCluster => return self.count_cluster(stmt, extent),
                    ScopeId::Cta | ScopeId::Cluster => return,
                    ScopeId::Thread => Levels::THREAD,
                    ScopeId::Warp | ScopeId::WarpInWarpgroup => Levels::WARP,
                    ScopeId::Warpgroup => Levels::WARPGROUP,
                    ScopeId::Lane | ScopeId::ThreadInWarpgroup => Levels::LANE,
                };
                vars.iter().for_each(|v| self.note(v.id(), level));
                if *id == ScopeId::Thread {
                    self.count(stmt, extent);
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
        let with_those_around = |is_alike: fn(ThreadTag) -> bool| {
            let outer = self.path.iter().filter(|(tag, _)| is_alike(*tag)).map(|(_, n)| *n);
            outer.chain([extent.as_int()]).try_fold(1i128, |n, e| n.checked_mul(e?))
        };
        if tag.is_thread() {
            let threads = with_those_around(ThreadTag::is_thread);
            self.count(stmt, threads);
        } else if tag.is_of_cluster() {
            let blocks = with_those_around(ThreadTag::is_of_cluster);
            self.count_cluster(stmt, blocks);
        }
    }

    fn count(&mut self, stmt: &'k Stmt, threads: Option<i128>) {
        if let Some(found) = threads.filter(|n| *n > i128::from(MAX_BLOCK_THREADS)) {
            let text = format!("a block has at most {MAX_BLOCK_THREADS} threads, got {found}");
            self.report.at(stmt, "V20", text);
        }
    }

    fn count_cluster(&mut self, stmt: &'k Stmt, blocks: Option<i128>) {
        if let Some(found) = blocks.filter(|n| *n > i128::from(MAX_CLUSTER_BLOCKS)) {
            let text = format!("a cluster has at most {MAX_CLUSTER_BLOCKS} blocks, got {found}");
            self.report.at(stmt, "V35", text);
        }
    }

    fn barrier(&mut self, stmt: &'k Stmt, kind: SyncKind) {
        let any = Levels::LANE.and(Levels::WARP).and(Levels::WARPGROUP).and(Levels::THREAD);
        let (name, waits_for) = match kind {
            SyncKind::Cluster => ("cluster", any),
            SyncKind::Cta => ("cta", any),
            SyncKind::Warpgroup(_) => ("warpgroup", Levels::LANE.and(Levels::WARP)),
            SyncKind::Named { .. } => ("named", Levels::LANE),
            SyncKind::Warp => ("warp", Levels::LANE),
        };
        if self.divergent.has(waits_for) {
            let text = format!("{name} barrier under a condition that differs between threads");
            self.report.at(stmt, "V21", text);
        }
    }
}
