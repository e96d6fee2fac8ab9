//! What closes a run that is the only one of its state: the state before it is the identity, whose zeros, infinities and counts
//! leave little of what brings a run together with others.
//!
//! The rules are those of real numbers beside an identity, not of floats: 0 takes part in no sum, and what it scales is 0. They
//! keep the value of a state, as an identity is to change none (contract N16), where what 0 scales is finite. A state whose run
//! is not, keeps its own infinity or NaN. Of zeros the sign may be another (contract N10).

use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::change_children;
use coulis_ir::{BinaryOp, Expr, Intrinsic, Node};

/// The expression, in which identities stand as constants, without what they annul.
pub(crate) fn beside_identity(expr: &Expr) -> Expr {
    let analyzer = Analyzer::new();
    let mut now = analyzer.simplify(expr);
    while let Some(fewer) = annulled(&now) {
        now = analyzer.simplify(&fewer);
    }
    now
}

/// The expression with rules applied from the operands up, where one applies.
fn annulled(expr: &Expr) -> Option<Expr> {
    let rebuilt = change_children(expr, &mut annulled);
    by_rule(rebuilt.as_ref().unwrap_or(expr)).or(rebuilt)
}

fn by_rule(expr: &Expr) -> Option<Expr> {
    match expr.node() {
        Node::Binary(BinaryOp::Add, a, b) if is_zero(a) => Some(b.clone()),
        Node::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) if is_zero(b) => Some(a.clone()),
        Node::Binary(BinaryOp::Sub, a, b) if a == b => Some(Expr::constant(0, expr.dtype())),
        Node::Binary(BinaryOp::Mul, a, b) if is_zero(a) || is_zero(b) => {
            Some(Expr::constant(0, expr.dtype()))
        }
        Node::Call(Intrinsic::Fma, args) if args[..2].iter().any(is_zero) => Some(args[2].clone()),
        // In this order a NaN stays.
        Node::Binary(BinaryOp::Max, a, b) if is_float(a, f64::NEG_INFINITY) => Some(b.clone()),
        Node::Binary(BinaryOp::Min, a, b) if is_float(a, f64::INFINITY) => Some(b.clone()),
        _ => None,
    }
}

fn is_zero(expr: &Expr) -> bool {
    expr.lanes() == 1 && (expr.is_int(0) || is_float(expr, 0.0))
}

fn is_float(expr: &Expr, value: f64) -> bool {
    matches!(expr.node(), Node::Float(bits) if f64::from_bits(*bits) == value)
}
