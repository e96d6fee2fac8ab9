//! Pure, interned expressions.
//!
//! Building the same expression twice gives the same node, so equality is one pointer comparison. Constructors
//! do not simplify: what a user wrote is what is printed. Reading memory is an expression ([`Node::Load`]);
//! writing it is a statement.
//!
//! Types are strict: both operands of a binary operation have the same type. [`Expr::promoted`] brings two
//! operands of different types together as tensor expressions do.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::dtype::{DType, Ty};
use crate::expr::holds::Holds;
use crate::expr::intern::interned;
pub use crate::op::{BinaryOp, Intrinsic};
pub use crate::var::{Var, VarId, VarKind};

mod holds;
mod intern;
mod lanes;

/// One expression node; its operands are interned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A constant of an integer type or bool.
    Int(i128),
    /// A constant of a float type, as the bits of the `float64` of the same value. All NaNs are one NaN.
    Float(u64),
    /// A variable.
    Var(Var),
    /// `a op b`; both operands have the same type.
    Binary(BinaryOp, Expr, Expr),
    /// Logical not of a bool.
    Not(Expr),
    /// Conversion to the node's type. Float to integer truncates and saturates, NaN gives 0; integer to integer
    /// wraps; to bool is `!= 0`; to a float rounds to nearest even.
    Cast(Expr),
    /// `cond ? a : b`, both sides evaluated: memory is read for both, yet only what is taken has to be written.
    Select(Expr, Expr, Expr),
    /// `cond ? a : b`, only the taken side evaluated. Scalar.
    IfThenElse(Expr, Expr, Expr),
    /// A pure function.
    Call(Intrinsic, Vec<Expr>),
    /// The element of a buffer. One index a dimension; in Flat form one index in all. A vector index
    /// (a [`Node::Ramp`], say) reads a vector.
    Load(Buffer, Vec<Expr>),
    /// The vector `base + i * stride` for `i` in `0..lanes`.
    Ramp(Expr, Expr),
    /// The scalar in every lane.
    Broadcast(Expr),
    /// `body` with the variable bound to the value.
    Let(Var, Expr, Expr),
}

struct ExprData {
    node: Node,
    ty: Ty,
    /// That of the node and the type.
    hash: u64,
    names: Names,
    holds: Holds,
}

/// A set of variables that may hold more than were put in: a bit for each, which several share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Names(u128);

impl Names {
    /// One variable.
    pub fn of(var: &Var) -> Names {
        Names(1 << (var.id().0 % 128))
    }

    /// Both.
    pub fn and(self, other: Names) -> Names {
        Names(self.0 | other.0)
    }

    /// Whether a variable may be in both; `false` is certain.
    pub fn may_meet(self, other: Names) -> bool {
        self.0 & other.0 != 0
    }
}

/// A shared handle on an interned expression. Cloning is cheap, equality is identity.
#[derive(Clone)]
pub struct Expr(Arc<ExprData>);

/// The operands of an expression, in order.
#[derive(Clone, Debug)]
pub struct Children<'e> {
    few: [Option<&'e Expr>; 3],
    many: std::slice::Iter<'e, Expr>,
    at: usize,
}

impl<'e> Children<'e> {
    fn of(node: &'e Node) -> Children<'e> {
        let (few, many): (_, &[Expr]) = match node {
            Node::Int(_) | Node::Float(_) | Node::Var(_) => ([None; 3], &[]),
            Node::Binary(_, a, b) | Node::Ramp(a, b) | Node::Let(_, a, b) => ([Some(a), Some(b), None], &[]),
            Node::Not(a) | Node::Cast(a) | Node::Broadcast(a) => ([Some(a), None, None], &[]),
            Node::Select(a, b, c) | Node::IfThenElse(a, b, c) => ([Some(a), Some(b), Some(c)], &[]),
            Node::Call(_, args) | Node::Load(_, args) => ([None; 3], args),
        };
        Children { few, many: many.iter(), at: 0 }
    }
}

impl<'e> Iterator for Children<'e> {
    type Item = &'e Expr;

    fn next(&mut self) -> Option<&'e Expr> {
        match self.few.get(self.at).copied().flatten() {
            Some(child) => {
                self.at += 1;
                Some(child)
            }
            None => self.many.next(),
        }
    }
}

impl Expr {
    /// The interned expression of that node and type. The typed constructors below are the usual way.
    pub fn new(node: Node, ty: Ty) -> Expr {
        interned(node, ty)
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.0.node
    }

    /// The type, with lanes.
    pub fn ty(&self) -> Ty {
        self.0.ty
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.0.ty.dtype
    }

    /// Number of lanes, 1 for a scalar.
    pub fn lanes(&self) -> u32 {
        self.0.ty.lanes
    }

    /// An `int32` constant.
    pub fn int(value: i32) -> Expr {
        Expr::int_of(i128::from(value), DType::I32)
    }

    /// An integer or bool constant, wrapped into `dtype`.
    pub fn int_of(value: i128, dtype: DType) -> Expr {
        debug_assert!(!dtype.is_float(), "integer constant of a float type");
        Expr::new(Node::Int(dtype.wrap_int(value)), Ty::scalar(dtype))
    }

    /// A bool constant.
    pub fn bool(value: bool) -> Expr {
        Expr::int_of(i128::from(value), DType::Bool)
    }

    /// A float constant, rounded to `dtype`.
    pub fn float(value: f64, dtype: DType) -> Expr {
        debug_assert!(dtype.is_float(), "float constant of an integer type");
        let rounded = dtype.round_float(value);
        let canonical = if rounded.is_nan() { f64::NAN } else { rounded };
        Expr::new(Node::Float(canonical.to_bits()), Ty::scalar(dtype))
    }

    /// The constant `value` in any type: an integer for integer types and bool, a float for floats.
    pub fn constant(value: i128, dtype: DType) -> Expr {
        if dtype.is_float() { Expr::float(value as f64, dtype) } else { Expr::int_of(value, dtype) }
    }

    /// `a op b`. A scalar operand beside a vector is broadcast. Both element types must be equal.
    #[track_caller]
    pub fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
        let lanes = a.lanes().max(b.lanes());
        let (a, b) = (a.broadcast_to(lanes), b.broadcast_to(lanes));
        assert_eq!(a.ty(), b.ty(), "operands of {op:?} differ in type: {a:?} and {b:?}");
        let dtype = if op.is_comparison() { DType::Bool } else { a.dtype() };
        Expr::new(Node::Binary(op, a, b), Ty { dtype, lanes })
    }

    /// Logical not.
    pub fn logical_not(self) -> Expr {
        let ty = self.ty();
        Expr::new(Node::Not(self), ty)
    }

    /// Converts the element type; the expression itself when it has that type already.
    pub fn cast(self, dtype: DType) -> Expr {
        if self.dtype() == dtype {
            return self;
        }
        let ty = self.ty().with_dtype(dtype);
        Expr::new(Node::Cast(self), ty)
    }

    /// `cond ? a : b`, both evaluated, and brought to one type where they have not one.
    #[track_caller]
    pub fn select(cond: Expr, a: Expr, b: Expr) -> Expr {
        let (a, b) = Expr::promoted(a, b);
        let lanes = cond.lanes().max(a.lanes()).max(b.lanes());
        let (cond, a, b) = (cond.broadcast_to(lanes), a.broadcast_to(lanes), b.broadcast_to(lanes));
        assert_eq!(a.ty(), b.ty(), "arms of a select differ in type: {a:?} and {b:?}");
        let ty = a.ty();
        Expr::new(Node::Select(cond, a, b), ty)
    }

    /// `cond ? a : b`, only one evaluated; both brought to one type where they have not one.
    #[track_caller]
    pub fn if_then_else(cond: Expr, a: Expr, b: Expr) -> Expr {
        let (a, b) = Expr::promoted(a, b);
        assert_eq!(a.ty(), b.ty(), "arms of if_then_else differ in type: {a:?} and {b:?}");
        let ty = a.ty();
        Expr::new(Node::IfThenElse(cond, a, b), ty)
    }

    /// A call of a pure function; the result has the first argument's type, or bool for a predicate.
    pub fn call(intrinsic: Intrinsic, args: Vec<Expr>) -> Expr {
        let first = args[0].ty();
        let ty = if intrinsic.is_predicate() { first.with_dtype(DType::Bool) } else { first };
        Expr::new(Node::Call(intrinsic, args), ty)
    }

    /// A call of a function of one argument.
    pub fn call1(intrinsic: Intrinsic, arg: Expr) -> Expr {
        Expr::call(intrinsic, vec![arg])
    }

    /// The element of `buffer` at `indices`; a vector index gives a vector.
    pub fn load(buffer: Buffer, indices: Vec<Expr>) -> Expr {
        let lanes = indices.iter().map(Expr::lanes).max().unwrap_or(1);
        let ty = Ty { dtype: buffer.dtype, lanes };
        Expr::new(Node::Load(buffer, indices), ty)
    }

    /// The vector `base + i * stride`.
    #[track_caller]
    pub fn ramp(base: Expr, stride: Expr, lanes: u32) -> Expr {
        assert_eq!(base.ty(), stride.ty(), "base and stride of a ramp differ in type");
        let dtype = base.dtype();
        Expr::new(Node::Ramp(base, stride), Ty { dtype, lanes })
    }

    /// The scalar in `lanes` lanes; the expression itself when it has that many.
    #[track_caller]
    pub fn broadcast_to(self, lanes: u32) -> Expr {
        if self.lanes() == lanes {
            return self;
        }
        assert!(self.lanes() == 1, "a vector of {} lanes cannot become one of {lanes}", self.lanes());
        let dtype = self.dtype();
        Expr::new(Node::Broadcast(self), Ty { dtype, lanes })
    }

    /// `body` with `var` bound to `value`.
    pub fn let_in(var: Var, value: Expr, body: Expr) -> Expr {
        let ty = body.ty();
        Expr::new(Node::Let(var, value, body), ty)
    }

    /// Brings two operands to one type as tensor expressions do: integer to float, narrow to wide; signed with
    /// unsigned of one width gives signed; `float16` with `bfloat16` gives `float32`.
    pub fn promoted(a: Expr, b: Expr) -> (Expr, Expr) {
        let dtype = promoted_dtype(a.dtype(), b.dtype());
        (a.cast(dtype), b.cast(dtype))
    }

    /// The value of an integer or bool constant.
    pub fn as_int(&self) -> Option<i128> {
        match self.node() {
            Node::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The value of a float constant.
    pub fn as_float(&self) -> Option<f64> {
        match self.node() {
            Node::Float(bits) => Some(f64::from_bits(*bits)),
            _ => None,
        }
    }

    /// The variable, if this is one.
    pub fn as_var(&self) -> Option<&Var> {
        match self.node() {
            Node::Var(var) => Some(var),
            _ => None,
        }
    }

    /// Whether this is the integer (or bool) constant `value`.
    pub fn is_int(&self, value: i128) -> bool {
        self.as_int() == Some(value)
    }

    /// The operands, in order.
    pub fn children(&self) -> Children<'_> {
        Children::of(self.node())
    }

    /// Calls `f` on the operands, in order.
    pub fn each_child<'e>(&'e self, mut f: impl FnMut(&'e Expr)) {
        match self.node() {
            Node::Int(_) | Node::Float(_) | Node::Var(_) => {}
            Node::Binary(_, a, b) | Node::Ramp(a, b) | Node::Let(_, a, b) => {
                f(a);
                f(b);
            }
            Node::Not(a) | Node::Cast(a) | Node::Broadcast(a) => f(a),
            Node::Select(a, b, c) | Node::IfThenElse(a, b, c) => {
                f(a);
                f(b);
                f(c);
            }
            Node::Call(_, args) | Node::Load(_, args) => args.iter().for_each(f),
        }
    }

    /// Whether it has no operands.
    pub fn is_leaf(&self) -> bool {
        match self.node() {
            Node::Int(_) | Node::Float(_) | Node::Var(_) => true,
            Node::Call(_, args) | Node::Load(_, args) => args.is_empty(),
            Node::Binary(..)
            | Node::Not(_)
            | Node::Cast(_)
            | Node::Select(..)
            | Node::IfThenElse(..)
            | Node::Ramp(..)
            | Node::Broadcast(_)
            | Node::Let(..) => false,
        }
    }

    /// Whether several expressions may have it as an operand; `false` says that at most one has.
    pub fn may_be_shared(&self) -> bool {
        // One reference is the table's, one the operand's.
        Arc::strong_count(&self.0) > 2 && !self.is_leaf()
    }

    /// The variables that occur in it, those of buffers' shapes and pointers apart, and perhaps others.
    pub fn names(&self) -> Names {
        self.0.names
    }

    /// `a op b` of operands that are brought to one type first, where they have not one; see [`Expr::promoted`].
    #[track_caller]
    fn mixed(op: BinaryOp, a: Expr, b: Expr) -> Expr {
        let (a, b) = Expr::promoted(a, b);
        Expr::binary(op, a, b)
    }

    /// The smaller of two, as [`BinaryOp::Min`].
    pub fn min(self, other: Expr) -> Expr {
        Expr::mixed(BinaryOp::Min, self, other)
    }

    /// The larger of two, as [`BinaryOp::Max`].
    pub fn max(self, other: Expr) -> Expr {
        Expr::mixed(BinaryOp::Max, self, other)
    }

    /// Floored integer quotient.
    pub fn floordiv(self, other: Expr) -> Expr {
        Expr::mixed(BinaryOp::FloorDiv, self, other)
    }

    /// Floored integer remainder.
    pub fn floormod(self, other: Expr) -> Expr {
        Expr::mixed(BinaryOp::FloorMod, self, other)
    }

    /// `self < other`.
    pub fn lt(self, other: Expr) -> Expr {
        Expr::mixed(BinaryOp::Lt, self, other)
    }

    /// `self <= other`.
    pub fn le(self, other: Expr) -> Expr {
        Expr::mixed(BinaryOp::Le, self, other)
    }

    /// `self > other`.
    pub fn gt(self, other: Expr) -> Expr {
        Expr::mixed(BinaryOp::Gt, self, other)
    }

    /// `self >= other`.
    pub fn ge(self, other: Expr) -> Expr {
        Expr::mixed(BinaryOp::Ge, self, other)
    }

    /// `self == other`, as an expression.
    pub fn equal(self, other: Expr) -> Expr {
        Expr::mixed(BinaryOp::Eq, self, other)
    }

    /// `self != other`, as an expression.
    pub fn not_equal(self, other: Expr) -> Expr {
        Expr::mixed(BinaryOp::Ne, self, other)
    }

    /// Logical and.
    pub fn and(self, other: Expr) -> Expr {
        Expr::mixed(BinaryOp::And, self, other)
    }

    /// Logical or.
    pub fn or(self, other: Expr) -> Expr {
        Expr::mixed(BinaryOp::Or, self, other)
    }

    /// Marks a condition as nearly always true.
    pub fn likely(self) -> Expr {
        Expr::call1(Intrinsic::Likely, self)
    }
}

/// The type that two operands of a mixed operation are brought to; see [`Expr::promoted`].
pub fn promoted_dtype(a: DType, b: DType) -> DType {
    if a == b {
        return a;
    }
    match (a.is_float(), b.is_float()) {
        (true, false) => a,
        (false, true) => b,
        (true, true) if a.bytes() == b.bytes() => DType::F32,
        _ if a == DType::Bool => b,
        _ if b == DType::Bool => a,
        _ if a.bytes() > b.bytes() => a,
        _ if b.bytes() > a.bytes() => b,
        (false, false) if a.is_signed_int() => a,
        _ => b,
    }
}

impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Expr {}

impl Hash for Expr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl From<i32> for Expr {
    fn from(value: i32) -> Expr {
        Expr::int(value)
    }
}

impl From<&Expr> for Expr {
    fn from(expr: &Expr) -> Expr {
        expr.clone()
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $op:expr) => {
        impl std::ops::$trait for Expr {
            type Output = Expr;

            #[track_caller]
            fn $method(self, other: Expr) -> Expr {
                Expr::mixed($op, self, other)
            }
        }

        impl std::ops::$trait<&Expr> for &Expr {
            type Output = Expr;

            #[track_caller]
            fn $method(self, other: &Expr) -> Expr {
                Expr::mixed($op, self.clone(), other.clone())
            }
        }
    };
}

operator!(Add, add, BinaryOp::Add);
operator!(Sub, sub, BinaryOp::Sub);
operator!(Mul, mul, BinaryOp::Mul);
operator!(Div, div, BinaryOp::Div);

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node() {
            Node::Int(value) => write!(f, "{value}:{}", self.ty()),
            Node::Float(bits) => write!(f, "{}:{}", f64::from_bits(*bits), self.ty()),
            Node::Var(var) => write!(f, "{var:?}"),
            Node::Binary(op, a, b) => write!(f, "{op:?}({a:?}, {b:?})"),
            Node::Not(a) => write!(f, "Not({a:?})"),
            Node::Cast(a) => write!(f, "Cast[{}]({a:?})", self.ty()),
            Node::Select(c, a, b) => write!(f, "Select({c:?}, {a:?}, {b:?})"),
            Node::IfThenElse(c, a, b) => write!(f, "IfThenElse({c:?}, {a:?}, {b:?})"),
            Node::Call(intrinsic, args) => write!(f, "{}({args:?})", intrinsic.name()),
            Node::Load(buffer, indices) => write!(f, "{buffer:?}{indices:?}"),
            Node::Ramp(base, stride) => write!(f, "Ramp({base:?}, {stride:?}, {})", self.lanes()),
            Node::Broadcast(a) => write!(f, "Broadcast({a:?}, {})", self.lanes()),
            Node::Let(var, value, body) => write!(f, "Let({var:?} = {value:?} in {body:?})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_bring_operands_of_two_types_to_one() {
        let [int, single, double] = [DType::I32, DType::F32, DType::F64].map(|t| Var::new("x", t).expr());
        let widened = single.clone().cast(DType::F64);
        assert_eq!(&single + &double, Expr::binary(BinaryOp::Add, widened.clone(), double.clone()));
        assert_eq!(double.clone() / int.clone(), &double / &int.clone().cast(DType::F64));
        assert_eq!(single.clone().lt(double.clone()), widened.clone().lt(double.clone()));
        assert_eq!(int.clone().max(single.clone()).dtype(), DType::F32);
        let chosen = Expr::select(Expr::bool(true), single.clone(), double.clone());
        assert_eq!(chosen, Expr::select(Expr::bool(true), widened, double.clone()));
        assert_eq!(Expr::if_then_else(single.clone().lt(int), double, single).dtype(), DType::F64);
    }

    #[test]
    fn the_same_expression_is_the_same_node() {
        let i = Var::new("i", DType::I32);
        assert_eq!(i.expr() + Expr::int(1), i.expr() + Expr::int(1));
        assert_ne!(i.expr() + Expr::int(1), i.fresh().expr() + Expr::int(1));
    }

    #[test]
    fn constants_of_different_types_differ() {
        assert_ne!(Expr::int_of(1, DType::I64), Expr::int(1));
        assert_ne!(Expr::float(0.0, DType::F32), Expr::float(-0.0, DType::F32));
        assert_eq!(Expr::float(f64::NAN, DType::F32), Expr::float(-f64::NAN, DType::F32));
    }

    #[test]
    fn promotion_goes_to_the_wider_and_to_floats() {
        let check = |a, b, want| assert_eq!(promoted_dtype(a, b), want);
        check(DType::I32, DType::F16, DType::F16);
        check(DType::F16, DType::BF16, DType::F32);
        check(DType::I32, DType::U32, DType::I32);
        check(DType::Bool, DType::U8, DType::U8);
        check(DType::U64, DType::I8, DType::U64);
    }
}
