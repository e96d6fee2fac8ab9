//! The list of rewrites, and which nodes each may rewrite, so that a node is offered to a few of them.

use super::Analyzer;
use crate::expr::{BinaryOp, Expr, Node};

/// A rewrite of a node whose operands are simplified; `None` where it does not apply.
pub(super) struct Rule {
    /// The function's name.
    #[allow(dead_code, reason = "tests name the rule that failed")]
    pub name: &'static str,
    /// The nodes that it may rewrite: a set of [`Kind`]s.
    pub kinds: u8,
    /// The rewrite. It keeps the type, and the value for all operands that evaluate. One that loses a division by
    /// what may be 0 is not made.
    pub apply: fn(&Analyzer, &Expr) -> Option<Expr>,
}

/// Nodes that rules tell apart.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// A sum, difference or product.
    Sum = 1,
    /// A floored quotient or remainder.
    Quotient = 2,
    /// A comparison.
    Comparison = 4,
    /// Another operation of two operands.
    Operation = 8,
    /// A function.
    Call = 16,
    /// A conversion, a negation, a selection.
    Choice = 32,
    /// A ramp.
    Ramp = 64,
    /// Anything else.
    Other = 128,
}

impl Kind {
    /// That of a node.
    pub fn of(node: &Node) -> Kind {
        match node {
            Node::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, ..) => Kind::Sum,
            Node::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod, ..) => Kind::Quotient,
            Node::Binary(op, ..) if op.is_comparison() => Kind::Comparison,
            Node::Binary(..) => Kind::Operation,
            Node::Call(..) => Kind::Call,
            Node::Cast(_) | Node::Not(_) | Node::Select(..) | Node::IfThenElse(..) => Kind::Choice,
            Node::Ramp(..) => Kind::Ramp,
            Node::Int(_)
            | Node::Float(_)
            | Node::Var(_)
            | Node::Load(..)
            | Node::Broadcast(_)
            | Node::Let(..) => Kind::Other,
        }
    }
}

/// All of them.
const ANY: u8 = u8::MAX;
const SUM: u8 = Kind::Sum as u8;
const QUOTIENT: u8 = Kind::Quotient as u8;
const COMPARISON: u8 = Kind::Comparison as u8;
const OPERATION: u8 = Kind::Operation as u8;
const CALL: u8 = Kind::Call as u8;
const CHOICE: u8 = Kind::Choice as u8;
const RAMP: u8 = Kind::Ramp as u8;
const OTHER: u8 = Kind::Other as u8;
/// Operations of two operands.
const BINARY: u8 = SUM | QUOTIENT | COMPARISON | OPERATION;

macro_rules! rules {
    ($($kinds:expr => $module:ident::$name:ident),* $(,)?) => {
        &[$(Rule { name: stringify!($name), kinds: $kinds, apply: super::$module::$name }),*]
    };
}

/// Every rewrite, in the order in which they are tried.
pub(super) const RULES: &[Rule] = rules![
    ANY => logic::apply_known_conditions,
    BINARY => fold::fold_constants,
    OTHER => fold::replace_single_iteration,
    ANY => fold::replace_by_only_value,
    BINARY => fold::drop_neutral_operand,
    CHOICE => fold::reduce_cast,
    CHOICE => fold::scale_before_rounding,
    CALL => fold::reduce_abs,
    SUM => sum::move_factors_out,
    SUM => sum::write_sums_canonically,
    QUOTIENT => divide::join_nested_quotients,
    QUOTIENT => divide::divide_by_constant,
    QUOTIENT => divide::remainder_by_constant,
    QUOTIENT => divide::take_remainder_first,
    QUOTIENT => divide::divide_by_expression,
    QUOTIENT => divide::remainder_by_expression,
    COMPARISON => compare::decide_comparison,
    COMPARISON => compare::cancel_common_terms,
    COMPARISON => compare::divide_comparison,
    OPERATION => compare::decide_extremum,
    OPERATION => compare::flatten_extremum,
    OPERATION => logic::reduce_conjunctions,
    CHOICE => logic::reduce_not,
    CALL => logic::reduce_likely,
    CHOICE => logic::reduce_selection,
    RAMP => vector::reduce_ramp,
    BINARY | CHOICE => vector::operate_before_broadcast,
    BINARY => vector::combine_ramps,
    COMPARISON => vector::decide_vector_comparison,
];
