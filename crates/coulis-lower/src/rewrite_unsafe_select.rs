//! A scalar select whose arms read memory evaluates only the arm that it takes.
//!
//! Source: seed 003's lowering, by which argmax prints `T.if_then_else`. Vector selects stay: their arms were shown
//! readable in every lane.

use coulis_ir::expr::{Expr, Node};
use coulis_ir::visit::{map_children, rewrite_stmt};
use coulis_ir::{Form, Kernel};

use crate::pass::{Context, LowerError, Pass};
use crate::simplify::reads_memory;

/// The pass.
pub const PASS: Pass = Pass {
    name: "rewrite_unsafe_select",
    from: Form::Flat,
    to: Form::Flat,
    run: rewrite_unsafe_select,
    doc: "makes scalar selects whose arms read memory evaluate only the arm that they take",
};

/// Makes scalar selects whose arms read memory lazy.
pub fn rewrite_unsafe_select(kernel: Kernel, _: &Context) -> Result<Kernel, LowerError> {
    let body = rewrite_stmt(kernel.body, &mut rewrite, &mut |s| s);
    Ok(Kernel { body, ..kernel })
}

fn rewrite(expr: &Expr) -> Expr {
    let mut memo = std::collections::HashMap::new();
    go(expr, &mut memo)
}

fn go(expr: &Expr, memo: &mut std::collections::HashMap<Expr, Expr>) -> Expr {
    if let Some(done) = memo.get(expr) {
        return done.clone();
    }
    let new = map_children(expr, &mut |child| go(child, memo));
    let new = match new.node() {
        Node::Select(cond, a, b) if new.lanes() == 1 && (reads_memory(a) || reads_memory(b)) => {
            Expr::if_then_else(cond.clone(), a.clone(), b.clone())
        }
        _ => new,
    };
    memo.insert(expr.clone(), new.clone());
    new
}
