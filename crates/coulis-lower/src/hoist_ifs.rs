//! A branch that a loop does not decide moves out of the loop.
//!
//! `for k: if c: s` becomes `if c: for k: s` where the branch is the whole body, has no else, and its condition
//! neither uses the loop variable nor reads memory. Conditions on block or thread indices stay, as in listing 3 of
//! seed 003, except where the loop is unrolled, as each copy of its body would repeat them, and where the end of the loop,
//! or of one around it, is read from memory: threads that the condition excludes must not read there. So does a condition
//! that divides by what may be 0 where the loop does not run.

use coulis_ir::expr::{Expr, Var};
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{any_stmt, for_each_expr};
use coulis_ir::{Form, Kernel, LoopKind, Stmt};

use crate::affine::uses;
use crate::eager::{Eager, may_trap};
use crate::name_quotients::Sizes;
use crate::pass::{LowerError, Options, Pass};
use crate::simplify::{with_condition, with_let, with_loop, with_sizes};
use crate::walk::map_children;

/// The pass.
pub const PASS: Pass = Pass {
    name: "hoist_ifs",
    from: Form::Nest,
    to: Form::Nest,
    run: hoist_ifs,
    doc: "moves a branch out of a loop that does not decide it",
};

/// Moves branches out of loops that do not decide them.
pub fn hoist_ifs(kernel: Kernel, _: &Options) -> Result<Kernel, LowerError> {
    let divides = |s: &Stmt| {
        let mut divides = false;
        if let Stmt::If { cond, .. } = s {
            for_each_expr(cond, &mut |e| divides |= may_trap(e));
        }
        divides
    };
    let known = any_stmt(&kernel.body, &mut { divides }).then(|| with_sizes(&kernel));
    let body = walk(kernel.body, &mut Vec::new(), Ends::Computed, known.as_ref());
    Ok(Kernel { body, ..kernel })
}

/// Where the ends of the loops around a statement come from.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    /// From sizes and loop variables.
    Computed,
    /// One at least from memory.
    Read,
}

/// `known`: what holds around the statement, where the kernel has conditions that divide by it.
fn walk(stmt: Stmt, threads: &mut Vec<Var>, ends: Ends, known: Option<&Analyzer>) -> Stmt {
    match stmt {
        Stmt::LaunchThread { tag, var, extent, body } => {
            let zero = Expr::int_of(0, var.dtype());
            let inner = known.map(|known| within(known, &var, &zero, &extent));
            threads.push(var.clone());
            let body = Box::new(walk(*body, threads, ends, inner.as_ref()));
            threads.pop();
            Stmt::LaunchThread { tag, var, extent, body }
        }
        Stmt::For { var, min, extent, kind, body } => {
            let ends = if min.reads_memory() || extent.reads_memory() { Ends::Read } else { ends };
            let inner = known.map(|known| within(known, &var, &min, &extent));
            match walk(*body, threads, ends, inner.as_ref()) {
                Stmt::If { cond, then, otherwise: None }
                    if may_leave(&cond, &var, threads, ends, kind)
                        && known.is_none_or(|known| Eager::new(known).has_quotients(&cond)) =>
                {
                    Stmt::if_(cond, Stmt::For { var, min, extent, kind, body: then })
                }
                body => Stmt::for_(var, min, extent, kind, body),
            }
        }
        Stmt::Let { var, value, body } => {
            let inner = known.map(|known| with_let(known, &var, &value));
            Stmt::let_(var, value, walk(*body, threads, ends, inner.as_ref()))
        }
        Stmt::If { cond, then, otherwise } => {
            let inner = known.map(|known| with_condition(known, &cond));
            let then = Box::new(walk(*then, threads, ends, inner.as_ref()));
            let otherwise = otherwise.map(|body| Box::new(walk(*body, threads, ends, known)));
            Stmt::If { cond, then, otherwise }
        }
        other => map_children(other, &mut |s| walk(s, threads, ends, known)),
    }
}

/// What is known inside of a loop: that it runs, so that no factor of its extent is 0.
fn within(known: &Analyzer, var: &Var, min: &Expr, extent: &Expr) -> Analyzer {
    let mut inner = with_loop(known, var, min, extent);
    for factor in Sizes::of(extent, known).0.into_iter().filter(|factor| factor.as_int().is_none()) {
        inner.assume(&factor.clone().gt(Expr::int_of(0, factor.dtype())));
    }
    inner
}

fn may_leave(cond: &Expr, var: &Var, threads: &[Var], ends: Ends, kind: LoopKind) -> bool {
    let by_threads = || threads.iter().any(|t| uses(cond, t));
    let any_may = ends == Ends::Read || kind == LoopKind::Unrolled;
    !cond.reads_memory() && !uses(cond, var) && (any_may || !by_threads())
}
