//! A scalar select whose arms may fail, by a read or a division by zero, evaluates only the arm that it takes.
//!
//! Source: seed 003's lowering, by which argmax prints `T.if_then_else`. Vector selects stay: their arms were shown
//! to have a value in every lane.

use coulis_ir::expr::{Expr, Node};
use coulis_ir::visit::rewrite_exprs;
use coulis_ir::{Form, Kernel};

use crate::pass::{LowerError, Options, Pass};
use crate::walk::Rewriter;

/// The pass.
pub const PASS: Pass = Pass {
    name: "rewrite_unsafe_select",
    from: Form::Flat,
    to: Form::Flat,
    run: rewrite_unsafe_select,
    doc: "makes scalar selects whose arms read memory or divide evaluate only the arm that they take",
};

/// Makes scalar selects whose arms may fail lazy.
pub fn rewrite_unsafe_select(kernel: Kernel, _: &Options) -> Result<Kernel, LowerError> {
    let mut rewriter = Rewriter::new(Expr::has_unsafe_select, |new: &Expr| match new.node() {
        Node::Select(cond, a, b) if new.lanes() == 1 && (a.may_fail() || b.may_fail()) => {
            Some(Expr::if_then_else(cond.clone(), a.clone(), b.clone()))
        }
        _ => None,
    });
    let mut kernel = kernel;
    rewrite_exprs(&mut kernel.body, &mut |e| rewriter.of(e));
    Ok(kernel)
}
