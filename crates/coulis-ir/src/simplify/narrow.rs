//! Arithmetic on narrow integers that is written in 64 bits, in no more bits than its values take.
//!
//! Sums, differences and products wrap, so that they may be done in any type that holds the result: the square of a
//! difference of two `uint8` in `uint64` is that in `int32`. Operations that compare or divide need each operand to be
//! the number that it stands for. Machines do arithmetic on 16 or 32 bits several times as fast as on 64, and who knows
//! that values are short may add many up before they take more room.

use super::interval::{Interval, interval_of_operands};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, Intrinsic, Node};
use crate::hash::FastMap;
use crate::visit::map_children;

/// Types that arithmetic is done in, the narrowest first.
const COMPUTED_IN: [DType; 2] = [DType::I16, DType::I32];
/// Types of what comes of it.
const RESULTS: [DType; 3] = [DType::I16, DType::U16, DType::I32];

/// The scalar expression with arithmetic in 64-bit integers done in 16 or 32 bits wherever that gives the same values. If
/// it is such an integer itself, it becomes one of a type that is as narrow as its values allow; else it keeps its type.
pub fn narrow_integers(expr: &Expr) -> Expr {
    Narrowing::default().any(expr)
}

/// Numbers that an expression stands for, before they wrap to its type.
#[derive(Clone, Copy)]
struct Numbers {
    own: Interval,
    /// Those of the expression and of all in it that is computed with it.
    all: Interval,
}

#[derive(Default)]
struct Narrowing {
    numbers: FastMap<Expr, Option<Numbers>>,
    done: FastMap<Expr, Expr>,
    computed: FastMap<(Expr, DType), Expr>,
}

impl Narrowing {
    fn any(&mut self, expr: &Expr) -> Expr {
        if let Some(done) = self.done.get(expr) {
            return done.clone();
        }
        let narrow = self.integer(expr).or_else(|| self.comparison(expr));
        let narrow = narrow.unwrap_or_else(|| {
            map_children(expr, &mut |child| {
                let narrow = self.any(child);
                // Of floats it is the number that counts, not the type which it had as an integer.
                let is_read_as_number = matches!(expr.node(), Node::Cast(_)) && expr.dtype().is_float();
                if is_read_as_number { narrow } else { narrow.cast(child.dtype()) }
            })
        });
        self.done.insert(expr.clone(), narrow.clone());
        narrow
    }

    /// A wide integer in its narrowest type.
    fn integer(&mut self, expr: &Expr) -> Option<Expr> {
        let Numbers { own, all } = self.exact(expr)?;
        if let Node::Cast(narrow) = expr.node()
            && !is_wide(narrow)
        {
            return Some(narrow.clone());
        }
        let computed_in = COMPUTED_IN.into_iter().find(|dtype| all.fits(*dtype))?;
        let result = RESULTS.into_iter().find(|dtype| own.fits(*dtype))?;
        Some(self.within(expr, computed_in).cast(result))
    }

    /// A comparison of wide integers.
    fn comparison(&mut self, expr: &Expr) -> Option<Expr> {
        let Node::Binary(op, a, b) = expr.node() else { return None };
        if !op.is_comparison() {
            return None;
        }
        let all = self.exact(a)?.all.union(self.exact(b)?.all);
        let dtype = COMPUTED_IN.into_iter().find(|dtype| all.fits(*dtype))?;
        Some(Expr::binary(*op, self.within(a, dtype), self.within(b, dtype)))
    }

    /// The numbers of a wide integer, where each is its value.
    fn exact(&mut self, expr: &Expr) -> Option<Numbers> {
        self.numbers_of(expr).filter(|numbers| is_wide(expr) && numbers.own.fits(expr.dtype()))
    }

    /// The numbers of an integer: of a narrow one its values.
    fn numbers_of(&mut self, expr: &Expr) -> Option<Numbers> {
        if !is_wide(expr) {
            let of_type = Interval::of_dtype(expr.dtype());
            return (of_type != Interval::ALL).then_some(Numbers { own: of_type, all: of_type });
        }
        if let Some(found) = self.numbers.get(expr) {
            return *found;
        }
        let found = self.numbers_of_wide(expr).filter(|n| n.all.lo.is_some() && n.all.hi.is_some());
        self.numbers.insert(expr.clone(), found);
        found
    }

    fn numbers_of_wide(&mut self, expr: &Expr) -> Option<Numbers> {
        let of = |own: Interval, parts: &[Numbers]| {
            let all = parts.iter().fold(own, |all, part| all.union(part.all));
            Some(Numbers { own, all })
        };
        match expr.node() {
            Node::Int(value) => of(Interval::point(*value), &[]),
            Node::Cast(a) => self.numbers_of(a),
            Node::Binary(op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul), a, b) => {
                let (x, y) = (self.numbers_of(a)?, self.numbers_of(b)?);
                of(interval_of_operands(*op, (a, x.own), (b, y.own)), &[x, y])
            }
            Node::Binary(op @ (BinaryOp::Min | BinaryOp::Max), a, b) => {
                let (x, y) = (self.exact(a)?, self.exact(b)?);
                of(interval_of_operands(*op, (a, x.own), (b, y.own)), &[x, y])
            }
            Node::Binary(op @ (BinaryOp::FloorDiv | BinaryOp::FloorMod), a, b) => {
                let (x, y) = (self.exact(a)?, self.exact(b).filter(|y| y.own.at_least(1))?);
                of(interval_of_operands(*op, (a, x.own), (b, y.own)), &[x, y])
            }
            Node::Select(_, a, b) | Node::IfThenElse(_, a, b) => {
                let (x, y) = (self.numbers_of(a)?, self.numbers_of(b)?);
                of(x.own.union(y.own), &[x, y])
            }
            Node::Call(Intrinsic::Abs, args) => {
                let x = self.exact(&args[0])?;
                of(x.own.max_with(x.own.neg()).intersect(Interval { lo: Some(0), hi: None }), &[x])
            }
            _ => None,
        }
    }

    /// An integer of known numbers, computed in a type that holds all of them.
    fn within(&mut self, expr: &Expr, dtype: DType) -> Expr {
        if !is_wide(expr) {
            return expr.clone().cast(dtype);
        }
        let key = (expr.clone(), dtype);
        if let Some(computed) = self.computed.get(&key) {
            return computed.clone();
        }
        let computed = match expr.node() {
            Node::Int(value) => Expr::int_of(*value, dtype),
            Node::Cast(a) => self.within(a, dtype),
            Node::Binary(op, a, b) => Expr::binary(*op, self.within(a, dtype), self.within(b, dtype)),
            Node::Select(cond, a, b) => {
                Expr::select(self.any(cond), self.within(a, dtype), self.within(b, dtype))
            }
            Node::IfThenElse(cond, a, b) => {
                Expr::if_then_else(self.any(cond), self.within(a, dtype), self.within(b, dtype))
            }
            Node::Call(intrinsic, args) => Expr::call1(*intrinsic, self.within(&args[0], dtype)),
            _ => expr.clone().cast(dtype),
        };
        self.computed.insert(key, computed.clone());
        computed
    }
}

/// Whether the scalar expression is an integer of 64 bits.
fn is_wide(expr: &Expr) -> bool {
    expr.ty().is_scalar() && matches!(expr.dtype(), DType::I64 | DType::U64)
}
