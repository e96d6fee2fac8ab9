//! Allocations move to the outermost place that still serves their uses.
//!
//! That is the top of the function, except inside a parallel loop or a thread launch, where every iteration,
//! thread or block needs its own memory (global memory is one for all launched threads), and under a binding
//! that an extent uses. One whose extent divides by what may be 0 outside stays in its loop or branch, which runs only
//! where it is not. Allocations that are marked as in place stay, and lose the mark. A buffer that copies
//! of a loop body share is allocated once. Source: seed 003's lowering (storage rewrite), without its sharing
//! of memory between buffers of disjoint lifetimes.

use coulis_ir::hash::{FastMap, FastSet};

use coulis_ir::buffer::BufferId;
use coulis_ir::remark::{IN_PLACE, ZEROED};
use coulis_ir::simplify::Analyzer;
use coulis_ir::{Buffer, Form, Kernel, LoopKind, MemScope, Stmt, Var};

use crate::affine::uses;
use crate::binders::redirect_accesses;
use crate::eager::Eager;
use crate::pass::{LowerError, Options, Pass};
use crate::simplify::with_sizes;
use crate::walk::map_children;

/// The pass.
pub const PASS: Pass = Pass {
    name: "hoist_allocations",
    from: Form::Flat,
    to: Form::Flat,
    run: hoist_allocations,
    doc: "moves allocations to the top of the function, or of the parallel loop or thread that uses them",
};

/// Moves allocations outwards.
pub fn hoist_allocations(kernel: Kernel, _: &Options) -> Result<Kernel, LowerError> {
    let mut hoist = Hoist { known: with_sizes(&kernel), placed: FastSet::default(), is_launched: false };
    let mut pending = Vec::new();
    let body = hoist.walk(kernel.body, &mut pending);
    let body = hoist.place(body, pending);
    Ok(Kernel { body, ..kernel })
}

struct Hoist {
    /// What holds at the top of the function.
    known: Analyzer,
    placed: FastSet<BufferId>,
    /// Whether the statement is in a launch, where memory of the device is not allocated.
    is_launched: bool,
}

impl Hoist {
    /// The statement without its allocations, which are added to `pending` in order of the text.
    fn walk(&mut self, stmt: Stmt, pending: &mut Vec<Buffer>) -> Stmt {
        match stmt {
            Stmt::Allocate { buffer, body } => {
                if !pending.contains(&buffer) {
                    pending.push(buffer);
                }
                self.walk(*body, pending)
            }
            Stmt::For { var, min, extent, kind, body } => {
                let mut inner = Vec::new();
                let body = self.walk(*body, &mut inner);
                let guarded = self.guarded(&inner);
                let stay =
                    |b: &Buffer| kind == LoopKind::Parallel || depends_on(b, &var) || guarded.contains(&b.id);
                let body = self.keep(body, inner, pending, &stay);
                Stmt::for_(var, min, extent, kind, body)
            }
            Stmt::If { cond, then, otherwise } => {
                let mut arm = |body: Stmt| {
                    let mut inner = Vec::new();
                    let body = self.walk(body, &mut inner);
                    let guarded = self.guarded(&inner);
                    self.keep(body, inner, pending, &|b| guarded.contains(&b.id))
                };
                let then = Box::new(arm(*then));
                Stmt::If { cond, then, otherwise: otherwise.map(|body| Box::new(arm(*body))) }
            }
            Stmt::LaunchThread { tag, var, extent, body } => {
                let mut inner = Vec::new();
                let outside = std::mem::replace(&mut self.is_launched, true);
                let body = self.walk(*body, &mut inner);
                self.is_launched = outside;
                let stay = |b: &Buffer| b.scope != MemScope::Global || depends_on(b, &var);
                let body = Box::new(self.keep(body, inner, pending, &stay));
                Stmt::LaunchThread { tag, var, extent, body }
            }
            Stmt::Annotate { key, body, .. } if key == IN_PLACE => match *body {
                Stmt::Allocate { buffer, body } => {
                    let body = self.walk(*body, pending);
                    self.place(body, vec![buffer])
                }
                other => self.walk(other, pending),
            },
            // Memory that is zero at the first launch stays under its mark, which is about the allocation right inside.
            Stmt::Annotate { node, key, value, body } if key == ZEROED => {
                let body = match *body {
                    Stmt::Allocate { buffer, body } => {
                        let body = self.walk(*body, pending);
                        self.place(body, vec![buffer])
                    }
                    other => self.walk(other, pending),
                };
                Stmt::Annotate { node, key, value, body: Box::new(body) }
            }
            Stmt::Let { var, value, body } => {
                let mut inner = Vec::new();
                let body = self.walk(*body, &mut inner);
                let body = self.keep(body, inner, pending, &|b| depends_on(b, &var));
                Stmt::let_(var, value, body)
            }
            other => map_children(other, &mut |s| self.walk(s, pending)),
        }
    }

    /// Those of the buffers whose extents have a value only under the conditions and in the loops around them.
    fn guarded(&self, buffers: &[Buffer]) -> Vec<BufferId> {
        let has_extents =
            |b: &Buffer| b.shape.iter().all(|extent| Eager::new(&self.known).has_quotients(extent));
        let guarded = buffers.iter().filter(|b| !self.is_launched && !has_extents(b));
        guarded.map(|b| b.id).collect()
    }

    /// Allocates around `body` those buffers that must stay, and passes the others up.
    fn keep(
        &mut self,
        body: Stmt,
        inner: Vec<Buffer>,
        pending: &mut Vec<Buffer>,
        stay: &dyn Fn(&Buffer) -> bool,
    ) -> Stmt {
        let (here, up): (Vec<Buffer>, Vec<Buffer>) = inner.into_iter().partition(|b| stay(b));
        for buffer in up {
            if !pending.contains(&buffer) {
                pending.push(buffer);
            }
        }
        self.place(body, here)
    }

    /// Allocates the buffers around `body`; one that is allocated elsewhere already gets a copy of its own here.
    fn place(&mut self, body: Stmt, buffers: Vec<Buffer>) -> Stmt {
        buffers.into_iter().rev().fold(body, |body, buffer| {
            if self.placed.insert(buffer.id) {
                return Stmt::allocate(buffer, body);
            }
            let new = buffer.derive(|b| b.data = buffer.data.fresh());
            let mut views = FastMap::from_iter([(buffer.id, new.clone())]);
            let body = redirect_accesses(body, &buffer.data, &mut |b, index| {
                let view = views.entry(b.id).or_insert_with(|| b.derive(|d| d.data = new.data.clone()));
                (view.clone(), index.clone())
            });
            Stmt::allocate(new, body)
        })
    }
}

fn depends_on(buffer: &Buffer, var: &Var) -> bool {
    buffer.shape.iter().any(|e| uses(e, var))
}
