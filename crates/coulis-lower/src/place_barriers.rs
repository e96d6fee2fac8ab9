//! Barriers go between accesses of different threads to one place of shared memory.
//!
//! In order of the text, a statement whose access may meet one that no barrier follows yet gets a barrier of the block
//! in front of it. A loop's body is gone through twice, so that what an iteration leaves meets what the next one does. A
//! barrier stands only where all threads pass: not under conditions or in loops that differ between threads; a
//! statement of that kind is one statement here, and threads that would have to wait for each other inside it are
//! refused. Barriers of the text count; statements of a variant whose barriers order them already are looked at by
//! what they begin and end with, and their remarks stay while the kernel is in Nest form, since this pass goes over such
//! a kernel again where its text is lowered. Order: after launches are unified and virtual threads are loops; before loops
//! are cut, since a loop with a barrier in it stays whole.
//!
//! Source: the placement of barriers in seed 003's lowering, which does not look at divergence.

use coulis_ir::hash::{FastMap, FastSet};
use coulis_ir::remark::{HANDED_OVER, SYNCHRONIZED};

use coulis_ir::expr::{Expr, Node, Var};
use coulis_ir::print::print_expr;
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{rewrite_stmt, stmt_exprs};
use coulis_ir::{Form, Kernel, Stmt, SyncKind};

use crate::pass::{LowerError, Options, Pass};
use crate::shared_access::{
    Access, Known, Loops, SharedMemory, Threads, any_meet, first_that_meets, is_branch_or_loop, loop_of,
};
use crate::simplify::{with_let, with_loop};
use crate::walk::try_map_children;

/// The pass.
pub const PASS: Pass = Pass {
    name: "place_barriers",
    from: Form::Nest,
    to: Form::Nest,
    run: place_barriers,
    doc: "puts barriers between accesses of different threads to one place of shared memory",
};

/// Rounds over a loop's body until no further barrier is needed; each adds one at least, and two do nearly always.
const MAX_ROUNDS: usize = 8;

/// Puts barriers between conflicting accesses to shared memory.
pub fn place_barriers(kernel: Kernel, _: &Options) -> Result<Kernel, LowerError> {
    let body = host(kernel.body)?;
    Ok(Kernel { body, ..kernel })
}

/// Finds the device kernels.
fn host(stmt: Stmt) -> Result<Stmt, LowerError> {
    match stmt {
        Stmt::LaunchThread { .. } => {
            let mut place = Place { shared: SharedMemory::of(&stmt), ..Place::default() };
            let (mut pending, known) = (Pending::default(), Known::new(Analyzer::new()));
            if place.shared.is_in(&stmt) { place.stmt(stmt, &mut pending, &known) } else { Ok(stmt) }
        }
        other => try_map_children(other, &mut host),
    }
}

/// The statement without the remarks that this pass reads, of which a Flat kernel has no use.
pub(crate) fn without_remarks(stmt: Stmt) -> Stmt {
    rewrite_stmt(stmt, &mut |_| None, &mut |s| match s {
        Stmt::Annotate { key, body, .. } if key == SYNCHRONIZED || key == HANDED_OVER => *body,
        other => other,
    })
}

#[derive(Default)]
struct Place {
    shared: SharedMemory,
    threads: Threads,
    /// Loops around the statement that all threads run alike.
    around: Loops,
    /// For each loop variable, that of any earlier iteration, and that of the last one.
    iterations: FastMap<Var, (Var, Var)>,
}

/// Accesses that no barrier follows yet, each once.
#[derive(Clone, Default)]
struct Pending {
    list: Vec<Access>,
    seen: FastSet<Access>,
}

impl Pending {
    fn extend(&mut self, accesses: impl IntoIterator<Item = Access>) {
        for access in accesses {
            if !self.seen.contains(&access) {
                self.seen.insert(access.clone());
                self.list.push(access);
            }
        }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.seen.clear();
    }

    /// The accesses where `var` is `other` in them.
    fn in_iteration(&self, var: &Var, other: &Expr) -> Pending {
        let mut moved = Pending::default();
        moved.extend(self.list.iter().map(|access| access.in_iteration(var, other)));
        moved
    }
}

impl Place {
    /// The statement with barriers, where all threads of the block execute it.
    fn stmt(&mut self, stmt: Stmt, pending: &mut Pending, known: &Known) -> Result<Stmt, LowerError> {
        if is_branch_or_loop(&stmt) && !self.shared.concerns(&stmt) {
            return Ok(stmt);
        }
        if let Some(cond) = self.splits_threads(&stmt) {
            return self.whole(stmt, &cond, pending, known);
        }
        match stmt {
            Stmt::Seq(stmts) => {
                let mut out = Vec::with_capacity(stmts.len());
                for s in stmts {
                    out.push(self.stmt(s, pending, known)?);
                }
                Ok(Stmt::seq(out))
            }
            Stmt::LaunchThread { tag, var, extent, body } => {
                let inner = Known::new(with_loop(&known.names, &var, &Expr::int_of(0, var.dtype()), &extent));
                if tag.is_thread() {
                    // A block of unknown size counts as a large one: more threads meet more often.
                    self.threads.indices.push((var.clone(), extent.as_int().unwrap_or(1 << 16)));
                }
                let body = Box::new(self.stmt(*body, pending, &inner)?);
                Ok(Stmt::LaunchThread { tag, var, extent, body })
            }
            Stmt::Allocate { buffer, body } => Ok(Stmt::allocate(buffer, self.stmt(*body, pending, known)?)),
            Stmt::Annotate { ref key, ref body, .. } if key == SYNCHRONIZED => {
                let barrier = self.synchronized(body, pending, known);
                Ok(Stmt::seq(barrier.into_iter().chain([stmt])))
            }
            Stmt::Annotate { node, key, value, body } => {
                // The remark is about what stands right inside, which a barrier is not.
                let mut body = match self.stmt(*body, pending, known)? {
                    Stmt::Seq(stmts) => stmts,
                    other => vec![other],
                };
                let is_barrier = |s: &Stmt| matches!(s, Stmt::Sync(kind) if kind.is_of_block());
                let n_before = body.iter().take_while(|s| is_barrier(s)).count();
                let inside = Box::new(Stmt::seq(body.split_off(n_before)));
                let remarked = Stmt::Annotate { node, key, value, body: inside };
                Ok(Stmt::seq(body.into_iter().chain([remarked])))
            }
            Stmt::Let { var, value, body } => {
                let header = self.header_accesses(&value);
                let barrier = self.barrier_before(&header, pending, known);
                pending.extend(header);
                if self.differs(&value) {
                    self.threads.varying.push(var.clone());
                }
                let inner = Known::new(with_let(&known.names, &var, &value));
                let body = self.stmt(*body, pending, &inner)?;
                Ok(Stmt::seq(barrier.into_iter().chain([Stmt::let_(var, value, body)])))
            }
            Stmt::If { cond, then, otherwise } => {
                let header = self.header_accesses(&cond);
                // One barrier before the branch serves every way through it.
                let mut first = header.clone();
                for branch in [Some(&then), otherwise.as_ref()].into_iter().flatten() {
                    self.leading(branch, &self.around, known, &mut first);
                }
                let barrier = self.barrier_before(&first, pending, known);
                pending.extend(header);
                let mut other = pending.clone();
                let then = Box::new(self.stmt(*then, pending, known)?);
                let otherwise = match otherwise {
                    Some(s) => Some(Box::new(self.stmt(*s, &mut other, known)?)),
                    None => None,
                };
                pending.extend(other.list);
                Ok(Stmt::seq(barrier.into_iter().chain([Stmt::If { cond, then, otherwise }])))
            }
            Stmt::For { var, min, extent, kind, body } => {
                let inner = Known::new(with_loop(&known.names, &var, &min, &extent));
                // One barrier before the loop is better than one in it.
                self.around.push(loop_of(&var, &min, &extent));
                let mut first = self.header_accesses(&extent);
                self.leading(&body, &self.around, &inner, &mut first);
                let barrier = self.barrier_before(&first, pending, known);
                let before = pending.clone();
                let body = self.looped(&var, *body, pending, &inner)?;
                self.around.pop();
                let runs = extent.as_int().is_some_and(|n| n > 0);
                if !runs {
                    pending.extend(before.list);
                }
                let whole = Stmt::For { var, min, extent, kind, body: Box::new(body) };
                Ok(Stmt::seq(barrier.into_iter().chain([whole])))
            }
            Stmt::Sync(kind) if kind.is_of_block() => {
                pending.clear();
                Ok(stmt)
            }
            Stmt::Store { .. }
            | Stmt::Atom(_)
            | Stmt::Sync(_)
            | Stmt::Tile(_)
            | Stmt::DeviceEntry
            | Stmt::ScopeIds { .. }
            | Stmt::AllocBuffer(_)
            | Stmt::View { .. } => {
                let mut own = Vec::new();
                self.shared.own_accesses(&stmt, &Loops::new(), &self.around, &mut own);
                let barrier = self.barrier_before(&own, pending, known);
                pending.extend(own);
                Ok(Stmt::seq(barrier.into_iter().chain([stmt])))
            }
        }
    }

    /// The body of a loop that all threads run alike, gone through until an iteration meets no earlier one.
    fn looped(
        &mut self,
        var: &Var,
        body: Stmt,
        pending: &mut Pending,
        known: &Known,
    ) -> Result<Stmt, LowerError> {
        let (any_earlier, last) = self.iterations_of(var);
        let mut body = self.stmt(body, pending, known)?;
        for _ in 0..MAX_ROUNDS {
            // What stands before the last barrier of an iteration is over; what follows it meets the next iteration.
            // Without a barrier on every path, accesses of any earlier iteration may be under way.
            let earlier = if always_syncs(&body) {
                var.expr() - Expr::int_of(1, var.dtype())
            } else {
                any_earlier.expr()
            };
            let mut again = pending.in_iteration(var, &earlier);
            let next = self.stmt(body.clone(), &mut again, known)?;
            *pending = again;
            if next == body {
                break;
            }
            body = next;
        }
        // After the loop the last iteration is any.
        *pending = pending.in_iteration(var, &last.expr());
        Ok(body)
    }

    /// The variables of any earlier iteration of a loop, and of its last one. A loop has one of each, however often it is
    /// gone through: accesses that wait are compared with those of the text, which never use them.
    fn iterations_of(&mut self, var: &Var) -> (Var, Var) {
        let named = |what: &str| var.renamed(&format!("{}_{what}", var.name()));
        self.iterations.entry(var.clone()).or_insert_with(|| (named("earlier"), named("last"))).clone()
    }

    /// A statement that not all threads execute alike.
    fn whole(
        &mut self,
        stmt: Stmt,
        cond: &Expr,
        pending: &mut Pending,
        known: &Known,
    ) -> Result<Stmt, LowerError> {
        let inside = self.shared.accesses_of(&stmt, &self.around, &self.threads, known);
        let is_for_one_thread =
            matches!(stmt, Stmt::If { otherwise: None, .. }) && self.is_for_one_thread(cond);
        if !is_for_one_thread && let Some(met) = first_that_meets(&inside, &self.threads, known) {
            let (buffer, cond) = (met.buffer.name.clone(), print_expr(cond));
            return Err(LowerError::DivergentSharing { buffer, cond });
        }
        let barrier = self.barrier_before(&inside, pending, known);
        pending.extend(inside);
        Ok(Stmt::seq(barrier.into_iter().chain([stmt])))
    }

    /// The barrier before the statements of a variant, which order themselves.
    fn synchronized(&self, body: &Stmt, pending: &mut Pending, known: &Known) -> Option<Stmt> {
        let parts = match body {
            Stmt::Seq(stmts) => &stmts[..],
            other => std::slice::from_ref(other),
        };
        let is_barrier = |s: &Stmt| matches!(s, Stmt::Sync(kind) if kind.is_of_block());
        let first = parts.iter().position(is_barrier).unwrap_or(parts.len());
        let last = parts.iter().rposition(is_barrier).map_or(0, |at| at + 1);
        let of = |stmts: &[Stmt]| {
            let of_one = |s| self.shared.accesses_of(s, &self.around, &self.threads, known);
            stmts.iter().flat_map(of_one).collect::<Vec<Access>>()
        };
        let barrier = self.barrier_before(&of(&parts[..first]), pending, known);
        if last > 0 {
            pending.clear();
        }
        pending.extend(of(&parts[last..]));
        barrier
    }

    /// The accesses of the head of a statement.
    fn header_accesses(&self, value: &Expr) -> Vec<Access> {
        let mut found = Vec::new();
        let carrier =
            Stmt::Let { var: Var::new("_", value.dtype()), value: value.clone(), body: Box::new(Stmt::NOP) };
        self.shared.own_accesses(&carrier, &Loops::new(), &Loops::new(), &mut found);
        found
    }

    /// The accesses of a loop's body before the first barrier that every pass meets. Returns whether there is one.
    fn leading(&self, stmt: &Stmt, around: &Loops, known: &Known, found: &mut Vec<Access>) -> bool {
        match stmt {
            Stmt::Sync(kind) if kind.is_of_block() => true,
            Stmt::Seq(stmts) => stmts.iter().any(|s| self.leading(s, around, known, found)),
            Stmt::Let { value, body, .. } => {
                found.extend(self.header_accesses(value));
                self.leading(body, around, known, found)
            }
            Stmt::Allocate { body, .. } | Stmt::Annotate { body, .. } => {
                self.leading(body, around, known, found)
            }
            other => {
                found.extend(self.shared.accesses_of(other, around, &self.threads, known));
                always_syncs(other)
            }
        }
    }

    /// A barrier, where one of the accesses may meet a pending one.
    fn barrier_before(&self, next: &[Access], pending: &mut Pending, known: &Known) -> Option<Stmt> {
        if !any_meet(next, &pending.list, &self.threads, known) {
            return None;
        }
        pending.clear();
        Some(Stmt::Sync(SyncKind::Cta))
    }

    /// Whether the value differs between threads, or may.
    fn differs(&self, expr: &Expr) -> bool {
        expr.reads_memory() || self.threads.tell_apart(expr)
    }

    /// The condition or extent by which threads part ways at the statement.
    fn splits_threads(&self, stmt: &Stmt) -> Option<Expr> {
        match stmt {
            Stmt::If { .. } | Stmt::For { .. } => {
                stmt_exprs(stmt).into_iter().find(|e| self.differs(e)).cloned()
            }
            _ => None,
        }
    }

    /// Whether at most one thread of the block passes the condition.
    fn is_for_one_thread(&self, cond: &Expr) -> bool {
        let parts = crate::affine::conjuncts(cond);
        let pinned = |var: &Var| {
            parts.iter().any(|part| match part.node() {
                Node::Binary(coulis_ir::BinaryOp::Eq, a, b) => {
                    let is = |x: &Expr, y: &Expr| x.as_var() == Some(var) && !self.differs(y);
                    is(a, b) || is(b, a)
                }
                _ => false,
            })
        };
        self.threads.indices.iter().all(|(var, extent)| *extent == 1 || pinned(var))
    }
}

/// Whether every pass through the statement meets a barrier of the block.
fn always_syncs(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Sync(kind) => kind.is_of_block(),
        Stmt::Seq(stmts) => stmts.iter().any(always_syncs),
        Stmt::Let { body, .. } | Stmt::Allocate { body, .. } | Stmt::Annotate { body, .. } => {
            always_syncs(body)
        }
        Stmt::For { extent, body, .. } => extent.as_int().is_some_and(|n| n > 0) && always_syncs(body),
        Stmt::If { then, otherwise, .. } => {
            always_syncs(then) && otherwise.as_ref().is_some_and(|s| always_syncs(s))
        }
        _ => false,
    }
}
