//! What an expression knows of all that is in it, so that a pass that looks for it leaves others alone.

use super::{BinaryOp, Expr, Intrinsic, Node};

/// What there is in an expression that few passes look for: a set of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holds(u8);

impl Holds {
    /// A load.
    pub const LOAD: Holds = Holds(1);
    /// A mark of likelihood.
    pub const LIKELY: Holds = Holds(2);
    /// A selection with an arm that may fail: it reads memory or divides.
    pub const UNSAFE_SELECT: Holds = Holds(4);
    /// A division of integers by anything but a constant other than 0.
    pub const DIVISION: Holds = Holds(8);

    /// What a node is by itself.
    pub fn own(node: &Node) -> Holds {
        match node {
            Node::Load(..) => Holds::LOAD,
            Node::Call(Intrinsic::Likely, _) => Holds::LIKELY,
            Node::Select(_, a, b) if a.may_fail() || b.may_fail() => Holds::UNSAFE_SELECT,
            Node::Binary(op, a, b) if op.is_division() && !a.dtype().is_float() && !b.is_nonzero() => {
                Holds::DIVISION
            }
            Node::Int(_)
            | Node::Float(_)
            | Node::Var(_)
            | Node::Binary(..)
            | Node::Not(_)
            | Node::Cast(_)
            | Node::Select(..)
            | Node::IfThenElse(..)
            | Node::Call(..)
            | Node::Ramp(..)
            | Node::Broadcast(_)
            | Node::Let(..) => Holds::default(),
        }
    }

    /// Both.
    pub fn and(self, other: Holds) -> Holds {
        Holds(self.0 | other.0)
    }

    /// Whether one of those is in it.
    pub fn has(self, other: Holds) -> bool {
        self.0 & other.0 != 0
    }
}

impl Expr {
    /// Whether memory is read in it.
    pub fn reads_memory(&self) -> bool {
        self.0.holds.has(Holds::LOAD)
    }

    /// Whether an integer in it is divided by anything but a constant other than 0.
    pub fn divides(&self) -> bool {
        self.0.holds.has(Holds::DIVISION)
    }

    /// The operand that decides which of the others are evaluated, where one does: the condition of `if_then_else`, and of a
    /// selection that has an arm that divides, and the left side of `and` and `or`.
    pub fn decider(&self) -> Option<&Expr> {
        match self.node() {
            Node::IfThenElse(first, ..) | Node::Binary(BinaryOp::And | BinaryOp::Or, first, _) => Some(first),
            Node::Select(first, a, b) if a.divides() || b.divides() => Some(first),
            _ => None,
        }
    }

    /// What this node by itself divides an integer by, if it does.
    pub fn divisor(&self) -> Option<&Expr> {
        match self.node() {
            Node::Binary(op, _, divisor) if op.is_division() && !divisor.dtype().is_float() => Some(divisor),
            _ => None,
        }
    }

    /// Whether a condition in it is marked as nearly always true.
    pub fn has_likely(&self) -> bool {
        self.0.holds.has(Holds::LIKELY)
    }

    /// Whether it may fail where the program does not compute it: it reads memory or divides.
    pub fn may_fail(&self) -> bool {
        self.reads_memory() || self.divides()
    }

    /// Whether a selection in it has an arm that may fail.
    pub fn has_unsafe_select(&self) -> bool {
        self.0.holds.has(Holds::UNSAFE_SELECT)
    }

    /// Whether it is a constant integer other than 0 in every lane.
    pub fn is_nonzero(&self) -> bool {
        match self.node() {
            Node::Broadcast(scalar) => scalar.is_nonzero(),
            _ => self.as_int().is_some_and(|value| value != 0),
        }
    }
}
