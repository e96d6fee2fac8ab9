//! A branch that a loop does not decide moves out of the loop.
//!
//! `for k: if c: s` becomes `if c: for k: s` where the branch is the whole body, has no else, and its condition
//! neither uses the loop variable nor reads memory. Conditions on block or thread indices stay, as in listing 3 of
//! seed 003.

use coulis_ir::expr::{Expr, Var};
use coulis_ir::{Form, Kernel, Stmt};

use crate::affine::uses;
use crate::pass::{Context, LowerError, Pass};
use crate::simplify::reads_memory;
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
    let body = walk(kernel.body, &mut Vec::new());
    Ok(Kernel { body, ..kernel })
}

fn walk(stmt: Stmt, threads: &mut Vec<Var>) -> Stmt {
    match stmt {
        Stmt::LaunchThread { tag, var, extent, body } => {
            threads.push(var.clone());
            let body = Box::new(walk(*body, threads));
            threads.pop();
            Stmt::LaunchThread { tag, var, extent, body }
        }
        Stmt::For { var, min, extent, kind, body } => match walk(*body, threads) {
            Stmt::If { cond, then, otherwise: None } if may_leave(&cond, &var, threads) => {
                Stmt::if_(cond, Stmt::For { var, min, extent, kind, body: then })
            }
            body => Stmt::for_(var, min, extent, kind, body),
        },
        other => map_children(other, &mut |s| walk(s, threads)),
    }
}

fn may_leave(cond: &Expr, var: &Var, threads: &[Var]) -> bool {
    !reads_memory(cond) && !uses(cond, var) && !threads.iter().any(|t| uses(cond, t))
}
