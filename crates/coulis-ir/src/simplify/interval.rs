//! Intervals of integers with open ends, and which interval each integer expression lies in.
//!
//! Arithmetic is on mathematical integers; what leaves 128 bits becomes an open end, so a bound is never wrong.

use super::Analyzer;
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, Intrinsic, Node, Var, VarKind};
use crate::op::floor_div;

/// The integers from `lo` to `hi`, both included; `None` is an open end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    /// Smallest value, if there is one.
    pub lo: Option<i128>,
    /// Largest value, if there is one.
    pub hi: Option<i128>,
}

/// An integer or an infinity, for products of ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Minus,
    Finite(i128),
    Plus,
}

impl End {
    fn sign(self) -> i8 {
        match self {
            End::Minus => -1,
            End::Finite(v) => v.signum() as i8,
            End::Plus => 1,
        }
    }

    fn times(self, other: End) -> End {
        let sign = self.sign() * other.sign();
        let finite = match (self, other) {
            (End::Finite(a), End::Finite(b)) => a.checked_mul(b),
            _ => None,
        };
        match (finite, sign) {
            (Some(v), _) => End::Finite(v),
            (None, 0) => End::Finite(0),
            (None, 1) => End::Plus,
            (None, _) => End::Minus,
        }
    }
}

impl Interval {
    /// Every integer.
    pub const ALL: Interval = Interval { lo: None, hi: None };

    /// One integer.
    pub fn point(value: i128) -> Interval {
        Interval::of(value, value)
    }

    /// From `lo` to `hi`.
    pub fn of(lo: i128, hi: i128) -> Interval {
        Interval { lo: Some(lo), hi: Some(hi) }
    }

    /// What a type holds; every integer for floats.
    pub fn of_dtype(dtype: DType) -> Interval {
        dtype.int_range().map_or(Interval::ALL, |(lo, hi)| Interval::of(lo, hi))
    }

    /// The value, where there is only one.
    pub fn as_point(self) -> Option<i128> {
        if self.lo == self.hi { self.lo } else { None }
    }

    /// Whether there is no value.
    pub fn is_empty(self) -> bool {
        matches!((self.lo, self.hi), (Some(lo), Some(hi)) if lo > hi)
    }

    /// Whether every value lies in `[lo, hi]`.
    pub fn within(self, lo: i128, hi: i128) -> bool {
        self.lo.is_some_and(|v| v >= lo) && self.hi.is_some_and(|v| v <= hi)
    }

    /// Whether every value is one of `dtype`.
    pub fn fits(self, dtype: DType) -> bool {
        dtype.int_range().is_some_and(|(lo, hi)| self.within(lo, hi))
    }

    /// Whether every value is at least `bound`.
    pub fn at_least(self, bound: i128) -> bool {
        self.lo.is_some_and(|lo| lo >= bound)
    }

    /// Whether every value is at most `bound`.
    pub fn at_most(self, bound: i128) -> bool {
        self.hi.is_some_and(|hi| hi <= bound)
    }

    /// Values in both.
    pub fn intersect(self, other: Interval) -> Interval {
        let pick = |a: Option<i128>, b: Option<i128>, f: fn(i128, i128) -> i128| match (a, b) {
            (Some(a), Some(b)) => Some(f(a, b)),
            (one, None) | (None, one) => one,
        };
        Interval { lo: pick(self.lo, other.lo, i128::max), hi: pick(self.hi, other.hi, i128::min) }
    }

    /// The smallest interval around both.
    pub fn union(self, other: Interval) -> Interval {
        Interval {
            lo: self.lo.zip(other.lo).map(|(a, b)| a.min(b)),
            hi: self.hi.zip(other.hi).map(|(a, b)| a.max(b)),
        }
    }

    /// Sums.
    pub fn add(self, other: Interval) -> Interval {
        let sum = |a: Option<i128>, b: Option<i128>| a.zip(b).and_then(|(a, b)| a.checked_add(b));
        Interval { lo: sum(self.lo, other.lo), hi: sum(self.hi, other.hi) }
    }

    /// Negated values.
    pub fn neg(self) -> Interval {
        Interval { lo: self.hi.and_then(i128::checked_neg), hi: self.lo.and_then(i128::checked_neg) }
    }

    /// Products.
    pub fn mul(self, other: Interval) -> Interval {
        if let (Some((a, b)), Some((c, d))) = (self.short(), other.short()) {
            let wide = |x: i64, y: i64| i128::from(x) * i128::from(y);
            let corners = [wide(a, c), wide(a, d), wide(b, c), wide(b, d)];
            let [first, others @ ..] = corners;
            return Interval::of(
                others.into_iter().fold(first, i128::min),
                others.into_iter().fold(first, i128::max),
            );
        }
        self.mul_ends(other)
    }

    /// Products with one integer other than 0.
    pub fn scale(self, factor: i128) -> Interval {
        let (lo, hi) = if factor < 0 { (self.hi, self.lo) } else { (self.lo, self.hi) };
        let times = |end: Option<i128>| end.and_then(|end| end.checked_mul(factor));
        Interval { lo: times(lo), hi: times(hi) }
    }

    /// Both ends, where they are short: their products are exact.
    fn short(self) -> Option<(i64, i64)> {
        Some((i64::try_from(self.lo?).ok()?, i64::try_from(self.hi?).ok()?))
    }

    /// Products of any ends.
    fn mul_ends(self, other: Interval) -> Interval {
        let lows = [self.lo.map_or(End::Minus, End::Finite), other.lo.map_or(End::Minus, End::Finite)];
        let highs = [self.hi.map_or(End::Plus, End::Finite), other.hi.map_or(End::Plus, End::Finite)];
        let corners = [
            lows[0].times(lows[1]),
            lows[0].times(highs[1]),
            highs[0].times(lows[1]),
            highs[0].times(highs[1]),
        ];
        let finite = |end: Option<&End>| match end {
            Some(End::Finite(v)) => Some(*v),
            Some(End::Minus | End::Plus) | None => None,
        };
        Interval { lo: finite(corners.iter().min()), hi: finite(corners.iter().max()) }
    }

    /// Floored quotients by a positive constant.
    pub fn floor_div(self, divisor: i128) -> Interval {
        Interval { lo: self.lo.map(|v| floor_div(v, divisor)), hi: self.hi.map(|v| floor_div(v, divisor)) }
    }

    fn min_with(self, other: Interval) -> Interval {
        let hi = match (self.hi, other.hi) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, None) | (None, one) => one,
        };
        Interval { lo: self.union(other).lo, hi }
    }

    pub fn max_with(self, other: Interval) -> Interval {
        self.neg().min_with(other.neg()).neg()
    }
}

impl Analyzer {
    /// Where a scalar integer or bool expression lies; every integer for anything else.
    pub(crate) fn interval(&self, expr: &Expr) -> Interval {
        if !expr.ty().is_scalar() || expr.dtype().is_float() {
            return Interval::ALL;
        }
        if let Some(value) = expr.as_int() {
            return Interval::point(value);
        }
        if let Some(known) = self.found(expr, |found| found.interval) {
            return known;
        }
        let range = Interval::of_dtype(expr.dtype());
        let found = self.structural_interval(expr).intersect(range);
        let found = match is_of_unrelated(expr) {
            true => found,
            false => self.expand(expr).map_or(found, |poly| found.intersect(self.poly_interval(&poly))),
        };
        self.note(expr, |known| known.interval = Some(found));
        found
    }

    /// Where a variable lies.
    pub(crate) fn var_interval(&self, var: &Var) -> Interval {
        let range = Interval::of_dtype(var.dtype());
        let kind = match var.kind() {
            VarKind::Size => Interval { lo: Some(0), hi: None },
            VarKind::Plain | VarKind::Handle => Interval::ALL,
        };
        self.look_at(var);
        let known = self.facts.vars.get(&var.id()).and_then(|known| known.bounds).unwrap_or(Interval::ALL);
        range.intersect(kind).intersect(known)
    }

    /// From the operands' intervals. The result of `+ - *` counts only where the operation cannot wrap.
    fn structural_interval(&self, expr: &Expr) -> Interval {
        match expr.node() {
            Node::Int(value) => Interval::point(*value),
            Node::Var(var) => self.var_interval(var),
            Node::Binary(op, a, b) => {
                let (x, y) = (self.interval(a), self.interval(b));
                if matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul) && !self.is_exact(expr) {
                    return Interval::ALL;
                }
                binary_interval(*op, x, y)
            }
            Node::Cast(a) => {
                let inner = self.interval(a);
                if inner.fits(expr.dtype()) { inner } else { Interval::ALL }
            }
            Node::Select(_, a, b) | Node::IfThenElse(_, a, b) => self.interval(a).union(self.interval(b)),
            Node::Call(Intrinsic::Popcount, _) => Interval::of(0, 64),
            Node::Call(Intrinsic::Abs, args) => {
                let x = self.interval(&args[0]);
                let least = expr.dtype().int_range().map(|(lo, _)| lo);
                if x.lo.is_some() && x.lo > least { x.max_with(x.neg()) } else { Interval::ALL }
            }
            Node::Let(_, _, body) => self.interval(body),
            Node::Float(_)
            | Node::Not(_)
            | Node::Call(..)
            | Node::Load(..)
            | Node::Ramp(..)
            | Node::Broadcast(_) => Interval::ALL,
        }
    }
}

/// The least and the greatest integer that an element of a scalar or vector expression can be by what it is made of, whatever
/// its variables and the memory that it reads hold; nothing for floats.
pub fn element_range(expr: &Expr) -> Option<(i128, i128)> {
    let range = elements(expr);
    range.lo.zip(range.hi)
}

fn elements(expr: &Expr) -> Interval {
    let of_type = Interval::of_dtype(expr.dtype());
    let found = match expr.node() {
        Node::Int(value) => Interval::point(*value),
        Node::Broadcast(a) | Node::Cast(a) if !a.dtype().is_float() => elements(a),
        Node::Binary(op, a, b) => interval_of_operands(*op, (a, elements(a)), (b, elements(b))),
        Node::Select(_, a, b) | Node::IfThenElse(_, a, b) => elements(a).union(elements(b)),
        _ => Interval::ALL,
    };
    // What does not fit the type wraps.
    if found.fits(expr.dtype()) { found } else { of_type }
}

/// Whether nothing can cancel between the operands of a sum or product: its polynomial says no more than their intervals.
fn is_of_unrelated(expr: &Expr) -> bool {
    match expr.node() {
        Node::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, a, b) => {
            !(a.names().may_meet(b.names()) || a.reads_memory() && b.reads_memory())
        }
        _ => false,
    }
}

/// The interval of `a op b` on mathematical integers, of operands with those intervals: a square is not negative.
pub(crate) fn interval_of_operands(op: BinaryOp, a: (&Expr, Interval), b: (&Expr, Interval)) -> Interval {
    let found = binary_interval(op, a.1, b.1);
    let is_square = op == BinaryOp::Mul && a.0 == b.0;
    if is_square { found.intersect(Interval { lo: Some(0), hi: None }) } else { found }
}

/// The interval of `x op y` on mathematical integers.
pub(crate) fn binary_interval(op: BinaryOp, x: Interval, y: Interval) -> Interval {
    let nonnegative = x.at_least(0) && y.at_least(0);
    match op {
        BinaryOp::Add => x.add(y),
        BinaryOp::Sub => x.add(y.neg()),
        BinaryOp::Mul => x.mul(y),
        BinaryOp::Min => x.min_with(y),
        BinaryOp::Max => x.max_with(y),
        BinaryOp::FloorDiv => match y.as_point() {
            Some(c) if c > 0 => x.floor_div(c),
            _ if nonnegative => Interval { lo: Some(0), hi: x.hi },
            _ => Interval::ALL,
        },
        BinaryOp::Div if nonnegative => match y.as_point() {
            Some(c) if c > 0 => x.floor_div(c),
            _ => Interval { lo: Some(0), hi: x.hi },
        },
        BinaryOp::FloorMod if y.at_least(0) => {
            let below = Interval { lo: Some(0), hi: y.hi.map(|hi| hi - 1) };
            if !x.at_least(0) {
                return below;
            }
            let small = y.lo.zip(x.hi).is_some_and(|(lo, hi)| hi < lo);
            if small { x } else { below.intersect(Interval { lo: Some(0), hi: x.hi }) }
        }
        BinaryOp::TruncMod if nonnegative => {
            Interval { lo: Some(0), hi: y.hi.map(|hi| hi - 1) }.intersect(Interval { lo: Some(0), hi: x.hi })
        }
        BinaryOp::BitAnd if nonnegative => Interval { lo: Some(0), hi: x.min_with(y).hi },
        BinaryOp::BitAnd if y.at_least(0) => Interval { lo: Some(0), hi: y.hi },
        BinaryOp::BitAnd if x.at_least(0) => Interval { lo: Some(0), hi: x.hi },
        BinaryOp::Shr => match y.as_point() {
            Some(amount) if (0..64).contains(&amount) => x.floor_div(1 << amount),
            _ => Interval::ALL,
        },
        BinaryOp::Div
        | BinaryOp::TruncMod
        | BinaryOp::FloorMod
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl => Interval::ALL,
    }
}
