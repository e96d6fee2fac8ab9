//! How much work expressions are to vectors, as strategies weigh it.

use std::collections::HashSet;

use coulis_ir::visit::for_each_expr;
use coulis_ir::{Expr, Intrinsic, Lambda, Node, Var};

/// Whether a lambda calls functions that are many operations, such as `exp`.
pub fn calls_functions(part: &Lambda) -> bool {
    let mut found = false;
    for expr in &part.body {
        for_each_expr(expr, &mut |e: &Expr| found |= is_function(e));
    }
    found
}

fn is_function(expr: &Expr) -> bool {
    use Intrinsic::{Exp, Exp2, Exp2Ftz, Log, Log2};
    matches!(expr.node(), Node::Call(Exp | Exp2 | Exp2Ftz | Log | Log2, _))
}

/// Operations that a function such as `exp` is written out as.
const OF_A_FUNCTION: usize = 16;

/// The state after a step by one more element: of what is made of the element, only what the step reads.
pub fn stepped(step: &Lambda, lift: &Lambda) -> Vec<Expr> {
    let state = step.params[..lift.body.len()].iter().map(Var::expr);
    step.apply(&state.chain(lift.body.iter().cloned()).collect::<Vec<_>>())
}

/// How much work a lambda is to vectors.
pub fn work(part: &Lambda) -> usize {
    work_of(&part.body)
}

/// Bytes that the operations of the expressions make, equal ones counted once.
pub fn work_of(exprs: &[Expr]) -> usize {
    let mut seen = HashSet::new();
    let mut bytes = 0;
    for expr in exprs {
        for_each_expr(expr, &mut |e: &Expr| {
            let operations = match e.node() {
                Node::Var(_) | Node::Int(_) | Node::Float(_) => 0,
                _ if is_function(e) => OF_A_FUNCTION,
                _ => 1,
            };
            if seen.insert(e.clone()) {
                bytes += operations * e.dtype().bytes();
            }
        });
    }
    bytes
}
