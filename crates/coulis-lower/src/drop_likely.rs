//! Takes the marks of likelihood off, once loops were partitioned at them.
//!
//! Simple mode keeps them, as the listings of seed 003 do.

use coulis_ir::expr::{Expr, Intrinsic, Node};
use coulis_ir::visit::rewrite_exprs;
use coulis_ir::{Form, Kernel};

use crate::pass::{LowerError, Options, Pass};
use crate::walk::Rewriter;

/// The pass.
pub const PASS: Pass = Pass {
    name: "drop_likely",
    from: Form::Flat,
    to: Form::Flat,
    run: drop_likely,
    doc: "takes `T.likely` off conditions, except in simple mode",
};

/// Takes the marks of likelihood off.
pub fn drop_likely(kernel: Kernel, options: &Options) -> Result<Kernel, LowerError> {
    if options.simple_mode {
        return Ok(kernel);
    }
    let unmark = |expr: &Expr| match expr.node() {
        Node::Call(Intrinsic::Likely, args) => Some(args[0].clone()),
        _ => None,
    };
    let mut unmarked = Rewriter::new(Expr::has_likely, unmark);
    let mut kernel = kernel;
    rewrite_exprs(&mut kernel.body, &mut |e| unmarked.of(e));
    Ok(kernel)
}
