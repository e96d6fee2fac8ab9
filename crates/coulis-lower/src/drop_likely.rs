//! Takes the marks of likelihood off, once loops were partitioned at them.
//!
//! Simple mode keeps them, as the listings of seed 003 do.

use coulis_ir::expr::{Expr, Intrinsic, Node};
use coulis_ir::visit::{map_children, rewrite_stmt};
use coulis_ir::{Form, Kernel};

use crate::pass::{Context, LowerError, Pass};

/// The pass.
pub const PASS: Pass = Pass {
    name: "drop_likely",
    from: Form::Flat,
    to: Form::Flat,
    run: drop_likely,
    doc: "takes `T.likely` off conditions, except in simple mode",
};

/// Takes the marks of likelihood off.
pub fn drop_likely(kernel: Kernel, context: &Context) -> Result<Kernel, LowerError> {
    if context.simple_mode {
        return Ok(kernel);
    }
    let body = rewrite_stmt(kernel.body, &mut unmark, &mut |s| s);
    Ok(Kernel { body, ..kernel })
}

fn unmark(expr: &Expr) -> Expr {
    match expr.node() {
        Node::Call(Intrinsic::Likely, args) => unmark(&args[0]),
        _ => map_children(expr, &mut unmark),
    }
}
