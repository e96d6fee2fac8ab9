//! Examples: runs of a kernel, each of its own sizes and iterations, in which expressions have values.
//!
//! What is so in one of them is not otherwise in all runs: an example in which an access comes to pass and is inside its
//! buffer tells without a proof that the access is not outside for certain. Where none tells, nothing is known.

use std::rc::Rc;

use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, Node, Var, VarKind};
use crate::simplify::without_likely;

/// How many there are.
const N: usize = 16;

/// What sizes are: none, less than a step of most loops, mostly with a rest of every smaller step, a few of them, and many.
const SIZES: [i64; N] =
    [487, 1 << 20, 61, 0, 999, 1, 171, 4099, 13, 70_001, 342, 777, 32_000, 3, 1_000_003, 250];

/// A set of examples, a bit for each.
type Set = u16;

const ALL: Set = Set::MAX;

/// What something is in each example in which that is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values {
    of: [i64; N],
    known: Set,
}

const UNKNOWN: Values = Values { of: [0; N], known: 0 };

impl Values {
    fn constant(value: i128) -> Values {
        i64::try_from(value).map_or(UNKNOWN, |value| Values { of: [value; N], known: ALL })
    }

    fn zip(&self, other: &Values, f: impl Fn(i64, i64) -> Option<i64>) -> Values {
        let mut found = UNKNOWN;
        for at in members(self.known & other.known) {
            if let Some(value) = f(self.of[at], other.of[at]) {
                found.of[at] = value;
                found.known |= 1 << at;
            }
        }
        found
    }

    /// Where they are of a type; what is not one of it would wrap.
    fn within(self, dtype: DType) -> Values {
        let Some((least, most)) = dtype.int_range() else { return UNKNOWN };
        let fits = self.in_which(|value| least <= i128::from(value) && i128::from(value) <= most);
        Values { known: fits, ..self }
    }

    /// The examples in which they are known and the condition holds.
    fn in_which(&self, f: impl Fn(i64) -> bool) -> Set {
        members(self.known).filter(|at| f(self.of[*at])).fold(0, |set, at| set | 1 << at)
    }

    fn is_true(&self) -> Set {
        self.in_which(|value| value != 0)
    }

    fn is_false(&self) -> Set {
        self.in_which(|value| value == 0)
    }
}

fn members(set: Set) -> impl Iterator<Item = usize> {
    (0..N).filter(move |at| set >> at & 1 == 1)
}

/// The examples that come to a place, and the variables there.
#[derive(Clone)]
pub(super) struct Examples {
    /// The innermost one.
    bound: Option<Rc<Bound>>,
    coming: Set,
    /// How many loops are around.
    depth: usize,
}

struct Bound {
    var: Var,
    values: Values,
    outer: Option<Rc<Bound>>,
}

impl Default for Examples {
    fn default() -> Examples {
        Examples { bound: None, coming: ALL, depth: 0 }
    }
}

impl Examples {
    /// Inside a loop: in its first iteration, its last or one between them.
    pub fn inside(&self, var: &Var, min: &Expr, extent: &Expr) -> Examples {
        let (min, mut steps) = (self.values(min), self.values(extent));
        let runs = steps.in_which(|n| n > 0);
        for (at, n) in steps.of.iter_mut().enumerate() {
            // Outermost loops are over parts of a size, of which small ones have the first alone.
            let is_first = self.depth == 0 && at % 4 != 3;
            *n = if is_first { 0 } else { [0, *n - 1, *n / 2][(at + self.depth) % 3] };
        }
        let mut inner = self.with(var, min.zip(&steps, i64::checked_add));
        inner.coming &= runs;
        inner.depth += 1;
        inner
    }

    /// Inside a name of the value.
    pub fn naming(&self, var: &Var, value: &Expr) -> Examples {
        self.with(var, self.values(value))
    }

    /// Where the condition holds.
    pub fn under(&self, cond: &Expr) -> Examples {
        Examples { coming: self.coming & self.values(cond).is_true(), ..self.clone() }
    }

    /// Where it does not.
    pub fn under_not(&self, cond: &Expr) -> Examples {
        Examples { coming: self.coming & self.values(cond).is_false(), ..self.clone() }
    }

    /// Whether an expression is known to have several values here.
    pub fn vary(&self, expr: &Expr) -> bool {
        let values = self.values(expr);
        let mut those = members(values.known & self.coming).map(|at| values.of[at]);
        those.next().is_some_and(|first| those.any(|other| other != first))
    }

    /// Whether the index is in `[0, size)` in one of them.
    pub fn is_inside(&self, index: &Expr, shift: i128, size: i128) -> bool {
        let inside = |value: i64| (0..size).contains(&(i128::from(value) + shift));
        self.coming != 0 && self.values(index).in_which(inside) & self.coming != 0
    }

    fn with(&self, var: &Var, values: Values) -> Examples {
        let bound = Bound { var: var.clone(), values, outer: self.bound.clone() };
        Examples { bound: Some(Rc::new(bound)), ..*self }
    }

    fn var(&self, var: &Var) -> Values {
        let mut all = std::iter::successors(self.bound.as_ref(), |bound| bound.outer.as_ref());
        if let Some(bound) = all.find(|bound| bound.var == *var) {
            return bound.values;
        }
        match var.kind() {
            VarKind::Size => Values { of: SIZES, known: ALL },
            VarKind::Plain | VarKind::Handle => UNKNOWN,
        }
    }

    /// What an expression is in each example; nothing of one that reads memory.
    fn values(&self, expr: &Expr) -> Values {
        if expr.reads_memory() || !expr.ty().is_scalar() || expr.dtype().is_float() {
            return UNKNOWN;
        }
        let expr = without_likely(expr);
        match expr.node() {
            Node::Int(value) => Values::constant(*value),
            Node::Var(var) => self.var(var),
            Node::Binary(op, a, b) => self.binary(*op, a, b).within(expr.dtype()),
            Node::Not(a) => {
                let a = self.values(a);
                a.zip(&a, |a, _| Some(i64::from(a == 0)))
            }
            Node::Cast(a) => self.values(a).within(expr.dtype()),
            Node::Select(cond, a, b) | Node::IfThenElse(cond, a, b) => {
                let (cond, mut found, b) = (self.values(cond), self.values(a), self.values(b));
                let otherwise = cond.is_false();
                members(otherwise).for_each(|at| found.of[at] = b.of[at]);
                found.known = found.known & cond.is_true() | b.known & otherwise;
                found
            }
            _ => UNKNOWN,
        }
    }

    fn binary(&self, op: BinaryOp, a: &Expr, b: &Expr) -> Values {
        let positive = |b: i64| Some(b).filter(|b| *b > 0);
        let (a, b) = (self.values(a), self.values(b));
        let of = |f: fn(i64, i64) -> bool| a.zip(&b, |a, b| Some(i64::from(f(a, b))));
        match op {
            BinaryOp::Add => a.zip(&b, i64::checked_add),
            BinaryOp::Sub => a.zip(&b, i64::checked_sub),
            BinaryOp::Mul => a.zip(&b, i64::checked_mul),
            BinaryOp::Min => a.zip(&b, |a, b| Some(a.min(b))),
            BinaryOp::Max => a.zip(&b, |a, b| Some(a.max(b))),
            BinaryOp::FloorDiv => a.zip(&b, |a, b| a.checked_div_euclid(positive(b)?)),
            BinaryOp::FloorMod => a.zip(&b, |a, b| a.checked_rem_euclid(positive(b)?)),
            BinaryOp::Eq => of(|a, b| a == b),
            BinaryOp::Ne => of(|a, b| a != b),
            BinaryOp::Lt => of(|a, b| a < b),
            BinaryOp::Le => of(|a, b| a <= b),
            BinaryOp::Gt => of(|a, b| a > b),
            BinaryOp::Ge => of(|a, b| a >= b),
            BinaryOp::And => of(|a, b| a != 0 && b != 0),
            BinaryOp::Or => of(|a, b| a != 0 || b != 0),
            BinaryOp::Div
            | BinaryOp::TruncMod
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shl
            | BinaryOp::Shr => UNKNOWN,
        }
    }
}
