//! What an expression knows of all that is in it, so that a pass that looks for it leaves others alone.

use super::{Expr, Intrinsic, Node};

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
    /// Whether it is a constant integer other than 0 in every lane.
    pub fn is_nonzero(&self) -> bool {
        match self.node() {
            Node::Broadcast(scalar) => scalar.is_nonzero(),
            _ => self.as_int().is_some_and(|value| value != 0),
        }
    }
}
