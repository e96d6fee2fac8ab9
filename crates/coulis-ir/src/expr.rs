//! Pure, interned expressions.
//!
//! Building the same expression twice gives the same node, so equality is one pointer comparison. Constructors
//! do not simplify: what a user wrote is what is printed. Reading memory is an expression ([`Node::Load`]);
//! writing it is a statement.
//!
//! Types are strict: both operands of a binary operation have the same type. [`Expr::promoted`] brings two
//! operands of different types together as tensor expressions do.

use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::buffer::Buffer;
use crate::dtype::{DType, Ty};

/// Identity of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u64);

/// What kind of thing a variable stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarKind {
    /// A scalar whose sign is not known.
    Plain,
    /// A scalar that is at least 0: a size or an index.
    Size,
    /// A pointer; its dtype field is not looked at.
    Handle,
}

/// A variable: a loop index, a size, a stride, a parameter, a lambda's argument, or a data pointer.
#[derive(Clone)]
pub struct Var(Arc<VarData>);

struct VarData {
    id: VarId,
    name: String,
    dtype: DType,
    kind: VarKind,
}

static NEXT_VAR: AtomicU64 = AtomicU64::new(1);

impl Var {
    fn make(name: &str, dtype: DType, kind: VarKind) -> Var {
        let id = VarId(NEXT_VAR.fetch_add(1, Ordering::Relaxed));
        Var(Arc::new(VarData { id, name: name.to_owned(), dtype, kind }))
    }

    /// A new scalar of unknown sign.
    pub fn new(name: &str, dtype: DType) -> Var {
        Var::make(name, dtype, VarKind::Plain)
    }

    /// A new scalar that analysis may take as at least 0.
    pub fn size(name: &str, dtype: DType) -> Var {
        Var::make(name, dtype, VarKind::Size)
    }

    /// A new pointer.
    pub fn handle(name: &str) -> Var {
        Var::make(name, DType::U64, VarKind::Handle)
    }

    /// A new variable of the same name, type and kind.
    pub fn fresh(&self) -> Var {
        Var::make(&self.0.name, self.0.dtype, self.0.kind)
    }

    /// A new variable of the same type and kind with another name.
    pub fn renamed(&self, name: &str) -> Var {
        Var::make(name, self.0.dtype, self.0.kind)
    }

    /// Identity.
    pub fn id(&self) -> VarId {
        self.0.id
    }

    /// Name hint.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Type of the scalar.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// What it stands for.
    pub fn kind(&self) -> VarKind {
        self.0.kind
    }

    /// This variable as an expression.
    pub fn expr(&self) -> Expr {
        Expr::new(Node::Var(self.clone()), Ty::scalar(self.0.dtype))
    }
}

impl PartialEq for Var {
    fn eq(&self, other: &Var) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for Var {}

impl PartialOrd for Var {
    fn partial_cmp(&self, other: &Var) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Var {
    fn cmp(&self, other: &Var) -> std::cmp::Ordering {
        self.0.id.cmp(&other.0.id)
    }
}

impl Hash for Var {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl fmt::Debug for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.0.name, self.0.id.0)
    }
}

impl From<&Var> for Expr {
    fn from(var: &Var) -> Expr {
        var.expr()
    }
}

impl From<Var> for Expr {
    fn from(var: Var) -> Expr {
        var.expr()
    }
}

/// A binary operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BinaryOp {
    /// Sum; integers wrap.
    Add,
    /// Difference; integers wrap.
    Sub,
    /// Product; integers wrap.
    Mul,
    /// Quotient: IEEE for floats, truncated toward zero for integers (`T.Div`, `T.truncdiv`).
    Div,
    /// Remainder of the truncated integer quotient, sign of the dividend.
    TruncMod,
    /// Integer quotient rounded down.
    FloorDiv,
    /// Integer remainder of the floored quotient, sign of the divisor.
    FloorMod,
    /// The smaller operand. On floats: the second operand unless the first is less (`a < b ? a : b`).
    Min,
    /// The larger operand. On floats: the second operand unless the first is greater (`a > b ? a : b`).
    Max,
    /// Equal.
    Eq,
    /// Not equal; true when either is NaN.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Logical and of bools.
    And,
    /// Logical or of bools.
    Or,
    /// Bitwise and of integers.
    BitAnd,
    /// Bitwise or of integers.
    BitOr,
    /// Bitwise exclusive or of integers.
    BitXor,
    /// Left shift of integers; the amount is at least 0 and less than the width.
    Shl,
    /// Right shift of integers, arithmetic for signed ones; the amount is at least 0 and less than the width.
    Shr,
}

impl BinaryOp {
    /// Whether the result is a bool that compares two operands.
    pub const fn is_comparison(self) -> bool {
        matches!(
            self,
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge
        )
    }
}

/// A pure function of scalars or vectors, lane by lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Intrinsic {
    /// e to the x; 2 ulp on every device (contract N15).
    Exp,
    /// 2 to the x.
    Exp2,
    /// Natural logarithm; 2 ulp on every device.
    Log,
    /// Base-2 logarithm.
    Log2,
    /// Correctly rounded square root.
    Sqrt,
    /// One over the square root, by a root and a division.
    Rsqrt,
    /// Hyperbolic tangent.
    Tanh,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// Error function.
    Erf,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// `pow(x, y)`.
    Pow,
    /// C's `fmod(x, y)`.
    Fmod,
    /// `x * y + z`, rounded once.
    Fma,
    /// Magnitude. The magnitude of the least signed integer wraps to itself; widen first.
    Abs,
    /// Rounds down.
    Floor,
    /// Rounds up.
    Ceil,
    /// Rounds half away from zero.
    Round,
    /// Rounds toward zero.
    Trunc,
    /// Rounds half to even.
    Nearbyint,
    /// Whether x is NaN.
    IsNan,
    /// Whether x is an infinity.
    IsInf,
    /// Whether x is neither NaN nor an infinity.
    IsFinite,
    /// Number of set bits of an integer.
    Popcount,
    /// The condition itself; says that it nearly always holds, so that loops may be partitioned at it.
    Likely,
}

impl Intrinsic {
    /// Every intrinsic.
    pub const ALL: [Intrinsic; 25] = [
        Intrinsic::Exp,
        Intrinsic::Exp2,
        Intrinsic::Log,
        Intrinsic::Log2,
        Intrinsic::Sqrt,
        Intrinsic::Rsqrt,
        Intrinsic::Tanh,
        Intrinsic::Sigmoid,
        Intrinsic::Erf,
        Intrinsic::Sin,
        Intrinsic::Cos,
        Intrinsic::Pow,
        Intrinsic::Fmod,
        Intrinsic::Fma,
        Intrinsic::Abs,
        Intrinsic::Floor,
        Intrinsic::Ceil,
        Intrinsic::Round,
        Intrinsic::Trunc,
        Intrinsic::Nearbyint,
        Intrinsic::IsNan,
        Intrinsic::IsInf,
        Intrinsic::IsFinite,
        Intrinsic::Popcount,
        Intrinsic::Likely,
    ];

    /// The name after `T.` in text.
    pub const fn name(self) -> &'static str {
        match self {
            Intrinsic::Exp => "exp",
            Intrinsic::Exp2 => "exp2",
            Intrinsic::Log => "log",
            Intrinsic::Log2 => "log2",
            Intrinsic::Sqrt => "sqrt",
            Intrinsic::Rsqrt => "rsqrt",
            Intrinsic::Tanh => "tanh",
            Intrinsic::Sigmoid => "sigmoid",
            Intrinsic::Erf => "erf",
            Intrinsic::Sin => "sin",
            Intrinsic::Cos => "cos",
            Intrinsic::Pow => "pow",
            Intrinsic::Fmod => "fmod",
            Intrinsic::Fma => "fma",
            Intrinsic::Abs => "fabs",
            Intrinsic::Floor => "floor",
            Intrinsic::Ceil => "ceil",
            Intrinsic::Round => "round",
            Intrinsic::Trunc => "trunc",
            Intrinsic::Nearbyint => "nearbyint",
            Intrinsic::IsNan => "isnan",
            Intrinsic::IsInf => "isinf",
            Intrinsic::IsFinite => "isfinite",
            Intrinsic::Popcount => "popcount",
            Intrinsic::Likely => "likely",
        }
    }

    /// Number of arguments: 1, 2 or 3.
    pub const fn arity(self) -> usize {
        match self {
            Intrinsic::Pow | Intrinsic::Fmod => 2,
            Intrinsic::Fma => 3,
            _ => 1,
        }
    }

    /// Whether the result is a bool whatever the argument's type.
    pub const fn is_predicate(self) -> bool {
        matches!(self, Intrinsic::IsNan | Intrinsic::IsInf | Intrinsic::IsFinite | Intrinsic::Likely)
    }
}

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
    /// `cond ? a : b`, both sides evaluated.
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
}

/// A shared handle on an interned expression. Cloning is cheap, equality is identity.
#[derive(Clone)]
pub struct Expr(Arc<ExprData>);

struct Key(Expr);

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.0.0.ty == other.0.0.ty && self.0.0.node == other.0.0.node
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.0.ty.hash(state);
        self.0.0.node.hash(state);
    }
}

/// The table of live expressions. It holds one reference to each; when it has doubled since the last sweep,
/// those that nobody else holds are dropped.
struct Interner {
    table: HashSet<Key>,
    sweep_at: usize,
}

fn interner() -> &'static Mutex<Interner> {
    static INTERNER: OnceLock<Mutex<Interner>> = OnceLock::new();
    INTERNER.get_or_init(|| Mutex::new(Interner { table: HashSet::new(), sweep_at: 1 << 16 }))
}

impl Interner {
    fn intern(&mut self, expr: Expr) -> Expr {
        let key = Key(expr);
        if let Some(found) = self.table.get(&key) {
            return found.0.clone();
        }
        if self.table.len() >= self.sweep_at {
            self.sweep();
        }
        let expr = key.0.clone();
        self.table.insert(key);
        expr
    }

    fn sweep(&mut self) {
        loop {
            let before = self.table.len();
            self.table.retain(|key| Arc::strong_count(&key.0.0) > 1);
            if self.table.len() == before {
                break;
            }
        }
        self.sweep_at = (2 * self.table.len()).max(1 << 16);
    }
}

impl Expr {
    /// The interned expression of that node and type. The typed constructors below are the usual way.
    pub fn new(node: Node, ty: Ty) -> Expr {
        let candidate = Expr(Arc::new(ExprData { node, ty }));
        interner().lock().unwrap_or_else(PoisonError::into_inner).intern(candidate)
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

    /// `cond ? a : b`, both evaluated.
    #[track_caller]
    pub fn select(cond: Expr, a: Expr, b: Expr) -> Expr {
        let lanes = cond.lanes().max(a.lanes()).max(b.lanes());
        let (cond, a, b) = (cond.broadcast_to(lanes), a.broadcast_to(lanes), b.broadcast_to(lanes));
        assert_eq!(a.ty(), b.ty(), "arms of a select differ in type: {a:?} and {b:?}");
        let ty = a.ty();
        Expr::new(Node::Select(cond, a, b), ty)
    }

    /// `cond ? a : b`, only one evaluated.
    #[track_caller]
    pub fn if_then_else(cond: Expr, a: Expr, b: Expr) -> Expr {
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

    /// Brings two scalars to one type as tensor expressions do: integer to float, narrow to wide; signed with
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
    pub fn children(&self) -> Vec<&Expr> {
        match self.node() {
            Node::Int(_) | Node::Float(_) | Node::Var(_) => Vec::new(),
            Node::Binary(_, a, b) | Node::Ramp(a, b) | Node::Let(_, a, b) => vec![a, b],
            Node::Not(a) | Node::Cast(a) | Node::Broadcast(a) => vec![a],
            Node::Select(a, b, c) | Node::IfThenElse(a, b, c) => vec![a, b, c],
            Node::Call(_, args) | Node::Load(_, args) => args.iter().collect(),
        }
    }

    /// The smaller of two, as [`BinaryOp::Min`].
    pub fn min(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Min, self, other)
    }

    /// The larger of two, as [`BinaryOp::Max`].
    pub fn max(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Max, self, other)
    }

    /// Floored integer quotient.
    pub fn floordiv(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::FloorDiv, self, other)
    }

    /// Floored integer remainder.
    pub fn floormod(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::FloorMod, self, other)
    }

    /// `self < other`.
    pub fn lt(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Lt, self, other)
    }

    /// `self <= other`.
    pub fn le(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Le, self, other)
    }

    /// `self > other`.
    pub fn gt(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Gt, self, other)
    }

    /// `self >= other`.
    pub fn ge(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Ge, self, other)
    }

    /// `self == other`, as an expression.
    pub fn equal(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Eq, self, other)
    }

    /// `self != other`, as an expression.
    pub fn not_equal(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Ne, self, other)
    }

    /// Logical and.
    pub fn and(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::And, self, other)
    }

    /// Logical or.
    pub fn or(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Or, self, other)
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
                Expr::binary($op, self, other)
            }
        }

        impl std::ops::$trait<&Expr> for &Expr {
            type Output = Expr;

            #[track_caller]
            fn $method(self, other: &Expr) -> Expr {
                Expr::binary($op, self.clone(), other.clone())
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
