//! A virtual thread becomes a loop of the thread that executes it.
//!
//! Virtual threads of one thread own disjoint parts of its work, so that the order between them does not matter, and a
//! serial loop is one of the orders. The reference spreads the loop over the statements inside; here it stays whole, as a
//! barrier in it is passed by all threads of the block alike. Order: after `unify_launches`, which moves launches
//! out of virtual threads; before `place_barriers`, which reads loops.
//!
//! Source: the virtual threads of seed 003's system.

use coulis_ir::visit::{any_stmt, rewrite_stmt};
use coulis_ir::{Expr, Form, Kernel, LoopKind, Stmt, ThreadTag};

use crate::pass::{LowerError, Options, Pass};

/// The pass.
pub const PASS: Pass = Pass {
    name: "expand_vthreads",
    from: Form::Nest,
    to: Form::Nest,
    run: expand_vthreads,
    doc: "makes a virtual thread a loop",
};

/// Makes virtual threads loops.
pub fn expand_vthreads(kernel: Kernel, _: &Options) -> Result<Kernel, LowerError> {
    let is_virtual = |s: &Stmt| matches!(s, Stmt::LaunchThread { tag: ThreadTag::VThread, .. });
    if !any_stmt(&kernel.body, &mut { is_virtual }) {
        return Ok(kernel);
    }
    let body = rewrite_stmt(kernel.body, &mut |_| None, &mut |stmt| match stmt {
        Stmt::LaunchThread { tag: ThreadTag::VThread, var, extent, body } => {
            let first = Expr::int_of(0, var.dtype());
            Stmt::For { var, min: first, extent, kind: LoopKind::Serial, body }
        }
        other => other,
    });
    Ok(Kernel { body, ..kernel })
}
