//! A branch that a loop does not decide moves out of the loop.
//!
//! `for k: if c: s` becomes `if c: for k: s` where the branch is the whole body, has no else, and its condition
//! neither uses the loop variable nor reads memory. Conditions on block or thread indices stay, as in listing 3 of
//! seed 003, except where the loop is unrolled, as each copy of its body would repeat them, and where the end of the loop,
//! or of one around it, is read from memory: threads that the condition excludes must not read there.

use coulis_ir::expr::{Expr, Var};
use coulis_ir::{Form, Kernel, LoopKind, Stmt};

use crate::affine::uses;
use crate::pass::{Context, LowerError, Pass};
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
pub fn hoist_ifs(kernel: Kernel, _: &Context) -> Result<Kernel, LowerError> {
    let body = walk(kernel.body, &mut Vec::new(), Ends::Computed);
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

fn walk(stmt: Stmt, threads: &mut Vec<Var>, ends: Ends) -> Stmt {
    match stmt {
        Stmt::LaunchThread { tag, var, extent, body } => {
            threads.push(var.clone());
            let body = Box::new(walk(*body, threads, ends));
            threads.pop();
            Stmt::LaunchThread { tag, var, extent, body }
        }
        Stmt::For { var, min, extent, kind, body } => {
            let ends = if min.reads_memory() || extent.reads_memory() { Ends::Read } else { ends };
            match walk(*body, threads, ends) {
                Stmt::If { cond, then, otherwise: None } if may_leave(&cond, &var, threads, ends, kind) => {
                    Stmt::if_(cond, Stmt::For { var, min, extent, kind, body: then })
                }
                body => Stmt::for_(var, min, extent, kind, body),
            }
        }
        other => map_children(other, &mut |s| walk(s, threads, ends)),
    }
}

fn may_leave(cond: &Expr, var: &Var, threads: &[Var], ends: Ends, kind: LoopKind) -> bool {
    let by_threads = || threads.iter().any(|t| uses(cond, t));
    let any_may = ends == Ends::Read || kind == LoopKind::Unrolled;
    !cond.reads_memory() && !uses(cond, var) && (any_may || !by_threads())
}
