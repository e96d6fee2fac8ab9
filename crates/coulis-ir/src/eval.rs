//! The meaning of scalar expressions: every node evaluated one value at a time, rounded as its type says.
//!
//! Slow and plain on purpose. Law tests of reducers, the reference evaluator of tensor programs and constant
//! folding compare against it. A float is held as the `float64` of the same value; each operation is computed so
//! that one rounding to the operation's own type remains. Source: contracts N5 and N15.

use crate::hash::FastMap;
use std::cmp::Ordering;

use crate::buffer::Buffer;
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, Intrinsic, Node, Var};
use crate::math::{self, fma_odd, to_odd};

/// A scalar. Its type is that of the expression it comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Of an integer type or bool (0 or 1), within the type's range.
    Int(i128),
    /// Of a float type, exactly representable in it.
    Float(f64),
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// A variable that nothing binds.
    #[error("variable `{name}` has no value")]
    Unbound {
        /// The variable's name.
        name: String,
    },
    /// A vector where only scalars are evaluated.
    #[error("a vector of {lanes} lanes cannot be evaluated as a scalar")]
    NotScalar {
        /// Number of lanes.
        lanes: u32,
    },
    /// A load in an environment without memory.
    #[error("buffer `{buffer}` cannot be read here")]
    NoMemory {
        /// The buffer's name.
        buffer: String,
    },
    /// A load outside the buffer, as the memory callback reports it.
    #[error("index {indices:?} is outside buffer `{buffer}`")]
    OutOfBounds {
        /// The buffer's name.
        buffer: String,
        /// The indices that were asked for.
        indices: Vec<i128>,
    },
    /// Integer division or remainder by zero.
    #[error("integer division by zero")]
    DivisionByZero,
    /// An operation on a type for which it has no meaning.
    #[error("`{operation}` has no meaning on {dtype}")]
    WrongType {
        /// The operation.
        operation: String,
        /// The operand's type.
        dtype: DType,
    },
}

/// Reads the element of a buffer at the given indices.
pub type Memory<'a> = dyn FnMut(&Buffer, &[i128]) -> Result<Value, EvalError> + 'a;

/// Values of variables, and memory for loads.
#[derive(Default)]
pub struct Env<'a> {
    vars: FastMap<Var, Value>,
    memory: Option<&'a mut Memory<'a>>,
}

impl<'a> Env<'a> {
    /// Nothing bound, no memory.
    pub fn new() -> Env<'a> {
        Env::default()
    }

    /// Nothing bound, loads answered by `memory`.
    pub fn with_memory(memory: &'a mut Memory<'a>) -> Env<'a> {
        Env { vars: FastMap::default(), memory: Some(memory) }
    }

    /// Binds a variable, or binds it anew.
    pub fn set(&mut self, var: &Var, value: Value) {
        self.vars.insert(var.clone(), value);
    }

    /// The value of a variable.
    pub fn get(&self, var: &Var) -> Option<Value> {
        self.vars.get(var).copied()
    }

    /// Leaves a variable without a value.
    pub fn unset(&mut self, var: &Var) {
        self.vars.remove(var);
    }
}

impl Value {
    /// The value as `float64`, rounded if it is a large integer.
    pub fn as_f64(self) -> f64 {
        match self {
            Value::Int(v) => v as f64,
            Value::Float(v) => v,
        }
    }

    /// The value of an integer or bool.
    pub fn as_int(self) -> Option<i128> {
        match self {
            Value::Int(v) => Some(v),
            Value::Float(_) => None,
        }
    }

    /// Whether the value is non-zero; NaN is.
    pub fn is_true(self) -> bool {
        match self {
            Value::Int(v) => v != 0,
            Value::Float(v) => v != 0.0,
        }
    }

    /// Whether the value is a NaN.
    pub fn is_nan(self) -> bool {
        matches!(self, Value::Float(v) if v.is_nan())
    }

    /// Equal as results are: any NaN equals any NaN, and 0.0 equals -0.0.
    pub fn same(self, other: Value) -> bool {
        self == other || (self.is_nan() && other.is_nan())
    }

    /// As [`Value::cast`], but a float becomes the nearest integer, of two equally near ones the even one, as results do
    /// (contract N5).
    pub fn rounded(self, to: DType) -> Value {
        match self {
            Value::Float(v) if to.is_int() => Value::Float(v.round_ties_even()).cast(to),
            Value::Float(_) | Value::Int(_) => self.cast(to),
        }
    }

    /// Conversion as [`Node::Cast`] defines it.
    pub fn cast(self, to: DType) -> Value {
        match (self, to) {
            (v, DType::Bool) => Value::Int(i128::from(v.is_true())),
            (Value::Int(v), _) if to.is_float() => Value::Float(int_to_float(v, to)),
            (Value::Int(v), _) => Value::Int(to.wrap_int(v)),
            (Value::Float(v), _) => match to.int_range() {
                None => Value::Float(to.round_float(v)),
                Some(_) if v.is_nan() => Value::Int(0),
                Some((min, max)) => Value::Int((v as i128).clamp(min, max)),
            },
        }
    }
}

/// Rounds once, also integers of more than 53 bits into narrow floats.
fn int_to_float(value: i128, to: DType) -> f64 {
    let near = value as f64;
    let rest = value - near as i128;
    to.round_float(if to == DType::F64 { near } else { to_odd(near, rest as f64) })
}

/// The value of a scalar expression.
pub fn eval_expr(expr: &Expr, env: &mut Env) -> Result<Value, EvalError> {
    Evaluator { env, memo: FastMap::default() }.eval(expr)
}

/// The values of a lambda's results at `args`, one a parameter.
pub fn eval_lambda(lambda: &crate::reducer::Lambda, args: &[Value]) -> Result<Vec<Value>, EvalError> {
    let mut env = Env::new();
    for (param, value) in lambda.params.iter().zip(args) {
        env.set(param, *value);
    }
    let mut evaluator = Evaluator { env: &mut env, memo: FastMap::default() };
    lambda.body.iter().map(|e| evaluator.eval(e)).collect()
}

struct Evaluator<'e, 'a> {
    env: &'e mut Env<'a>,
    /// Values of shared nodes; valid while no variable is bound anew.
    memo: FastMap<Expr, Value>,
}

impl Evaluator<'_, '_> {
    fn eval(&mut self, expr: &Expr) -> Result<Value, EvalError> {
        if !expr.may_be_shared() {
            return self.eval_node(expr);
        }
        if let Some(value) = self.memo.get(expr) {
            return Ok(*value);
        }
        let value = self.eval_node(expr)?;
        self.memo.insert(expr.clone(), value);
        Ok(value)
    }

    fn eval_node(&mut self, expr: &Expr) -> Result<Value, EvalError> {
        if expr.lanes() != 1 {
            return Err(EvalError::NotScalar { lanes: expr.lanes() });
        }
        match expr.node() {
            Node::Int(value) => Ok(Value::Int(*value)),
            Node::Float(bits) => Ok(Value::Float(f64::from_bits(*bits))),
            Node::Var(var) => {
                let name = || var.name().to_owned();
                self.env.vars.get(var).copied().ok_or_else(|| EvalError::Unbound { name: name() })
            }
            Node::Binary(op, a, b) => {
                let (x, y) = (self.eval(a)?, self.eval(b)?);
                eval_binary(*op, x, y, a.dtype())
            }
            Node::Not(a) => Ok(Value::Int(i128::from(!self.eval(a)?.is_true()))),
            Node::Cast(a) => Ok(self.eval(a)?.cast(expr.dtype())),
            Node::Select(c, a, b) | Node::IfThenElse(c, a, b) => {
                let taken = if self.eval(c)?.is_true() { a } else { b };
                self.eval(taken)
            }
            Node::Call(intrinsic, args) => {
                let dtype = args[0].dtype();
                let args = args.iter().map(|a| self.eval(a)).collect::<Result<Vec<_>, _>>()?;
                eval_call(*intrinsic, &args, dtype)
            }
            Node::Load(buffer, indices) => {
                let indices = indices
                    .iter()
                    .map(|i| Ok(self.eval(i)?.as_int().unwrap_or(-1)))
                    .collect::<Result<Vec<_>, _>>()?;
                match &mut self.env.memory {
                    Some(memory) => memory(buffer, &indices),
                    None => Err(EvalError::NoMemory { buffer: buffer.name.clone() }),
                }
            }
            Node::Ramp(base, _) | Node::Broadcast(base) => self.eval(base),
            Node::Let(var, value, body) => {
                let value = self.eval(value)?;
                let shadowed = self.env.vars.insert(var.clone(), value);
                let outer = std::mem::take(&mut self.memo);
                let result = self.eval(body);
                self.memo = outer;
                match shadowed {
                    Some(old) => self.env.vars.insert(var.clone(), old),
                    None => self.env.vars.remove(var),
                };
                result
            }
        }
    }
}

/// The value of `x op y` on operands of type `dtype`.
pub fn eval_binary(op: BinaryOp, x: Value, y: Value, dtype: DType) -> Result<Value, EvalError> {
    match (x, y) {
        (Value::Int(a), Value::Int(b)) => binary_int(op, a, b, dtype),
        _ => binary_float(op, x.as_f64(), y.as_f64(), dtype),
    }
}

fn truth(value: bool) -> Result<Value, EvalError> {
    Ok(Value::Int(i128::from(value)))
}

fn binary_int(op: BinaryOp, a: i128, b: i128, dtype: DType) -> Result<Value, EvalError> {
    let (value, _) = op.on_integers(a, b, 8 * dtype.bytes() as u32).ok_or(EvalError::DivisionByZero)?;
    Ok(Value::Int(if op.is_comparison() { value } else { dtype.wrap_int(value) }))
}

fn binary_float(op: BinaryOp, a: f64, b: f64, dtype: DType) -> Result<Value, EvalError> {
    // A float64 result of these rounds again to at most 24 bits without harm: 53 >= 2 * 24 + 2.
    let raw = match op {
        BinaryOp::Eq => return truth(a == b),
        BinaryOp::Ne => return truth(a != b),
        BinaryOp::Lt => return truth(a < b),
        BinaryOp::Le => return truth(a <= b),
        BinaryOp::Gt => return truth(a > b),
        BinaryOp::Ge => return truth(a >= b),
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Min => {
            if a < b {
                a
            } else {
                b
            }
        }
        BinaryOp::Max => {
            if a > b {
                a
            } else {
                b
            }
        }
        BinaryOp::TruncMod
        | BinaryOp::FloorDiv
        | BinaryOp::FloorMod
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr => return Err(EvalError::WrongType { operation: format!("{op:?}"), dtype }),
    };
    Ok(Value::Float(dtype.round_float(raw)))
}

/// The value of a call whose first argument is of type `dtype`.
pub fn eval_call(intrinsic: Intrinsic, args: &[Value], dtype: DType) -> Result<Value, EvalError> {
    let float = |f: fn(f64) -> f64| match args[0] {
        Value::Float(x) => Ok(Value::Float(dtype.round_float(f(x)))),
        Value::Int(_) => Err(EvalError::WrongType { operation: intrinsic.name().to_owned(), dtype }),
    };
    let float2 = |f: fn(f64, f64) -> f64| match (args[0], args[1]) {
        (Value::Float(x), Value::Float(y)) => Ok(Value::Float(dtype.round_float(f(x, y)))),
        _ => Err(EvalError::WrongType { operation: intrinsic.name().to_owned(), dtype }),
    };
    // Rounding to a whole number leaves an integer as it is.
    let whole = |f: fn(f64) -> f64| if let Value::Int(_) = args[0] { Ok(args[0]) } else { float(f) };
    match intrinsic {
        Intrinsic::Exp => float(f64::exp),
        Intrinsic::Exp2 => float(f64::exp2),
        Intrinsic::Exp2Ftz => float(f64::exp2).map(|power| Value::Float(flushed(power.as_f64(), dtype))),
        Intrinsic::Log => float(f64::ln),
        Intrinsic::Log2 => float(f64::log2),
        Intrinsic::Sqrt => float(f64::sqrt),
        Intrinsic::Rsqrt => float(f64::sqrt).map(|root| Value::Float(dtype.round_float(1.0 / root.as_f64()))),
        Intrinsic::Tanh => float(math::tanh_f64),
        Intrinsic::Sigmoid => float(math::sigmoid_f64),
        Intrinsic::Erf => float(math::erf_f64),
        Intrinsic::Sin => float(f64::sin),
        Intrinsic::Cos => float(f64::cos),
        Intrinsic::Pow => float2(f64::powf),
        Intrinsic::Fmod => float2(|x, y| x % y),
        Intrinsic::AddFtz => match (args[0], args[1]) {
            (Value::Float(x), Value::Float(y)) => {
                let sum = dtype.round_float(flushed(x, dtype) + flushed(y, dtype));
                Ok(Value::Float(flushed(sum, dtype)))
            }
            _ => Err(EvalError::WrongType { operation: intrinsic.name().to_owned(), dtype }),
        },
        Intrinsic::Fma => match (args[0], args[1], args[2]) {
            (Value::Float(x), Value::Float(y), Value::Float(z)) => Ok(Value::Float(fma(x, y, z, dtype))),
            (x, y, z) => {
                let product = eval_binary(BinaryOp::Mul, x, y, dtype)?;
                eval_binary(BinaryOp::Add, product, z, dtype)
            }
        },
        Intrinsic::Max3 | Intrinsic::Min3 => match (args[0], args[1], args[2]) {
            (Value::Float(x), Value::Float(y), Value::Float(z)) => {
                let of_two = if intrinsic == Intrinsic::Max3 { maximum } else { minimum };
                Ok(Value::Float(of_two(of_two(x, y), z)))
            }
            _ => Err(EvalError::WrongType { operation: intrinsic.name().to_owned(), dtype }),
        },
        Intrinsic::Abs => match args[0] {
            Value::Int(v) => Ok(Value::Int(dtype.wrap_int(v.abs()))),
            Value::Float(v) => Ok(Value::Float(v.abs())),
        },
        Intrinsic::Floor => whole(f64::floor),
        Intrinsic::Ceil => whole(f64::ceil),
        Intrinsic::Round => whole(f64::round),
        Intrinsic::Trunc => whole(f64::trunc),
        Intrinsic::Nearbyint => whole(f64::round_ties_even),
        Intrinsic::IsNan => truth(args[0].is_nan()),
        Intrinsic::IsInf => truth(args[0].as_f64().is_infinite()),
        Intrinsic::IsFinite => truth(args[0].as_f64().is_finite()),
        Intrinsic::Popcount => match args[0] {
            Value::Int(v) => {
                let bits = 8 * dtype.bytes() as u32;
                Ok(Value::Int(i128::from((v as u128 & ((1u128 << bits) - 1)).count_ones())))
            }
            Value::Float(_) => Err(EvalError::WrongType { operation: "popcount".to_owned(), dtype }),
        },
        Intrinsic::Likely => Ok(args[0]),
    }
}

/// The value, or the zero of its sign where it is subnormal, of the types that have the exponents of `float32`.
fn flushed(x: f64, dtype: DType) -> f64 {
    let has_exponents = matches!(dtype, DType::F32 | DType::BF16);
    if has_exponents && x.abs() < f64::from(f32::MIN_POSITIVE) { 0f64.copysign(x) } else { x }
}

/// The larger of two numbers, of which 0.0 is larger than -0.0; NaN where one is NaN.
fn maximum(x: f64, y: f64) -> f64 {
    match x.partial_cmp(&y) {
        None => f64::NAN,
        Some(Ordering::Greater) => x,
        Some(Ordering::Less) => y,
        Some(Ordering::Equal) => {
            if x.is_sign_negative() {
                y
            } else {
                x
            }
        }
    }
}

/// The smaller of two numbers, of which -0.0 is smaller than 0.0; NaN where one is NaN.
fn minimum(x: f64, y: f64) -> f64 {
    -maximum(-x, -y)
}

/// `x * y + z` rounded once to `dtype`. Below `float64` the product is exact in `float64`, and the sum is rounded to
/// odd before it is rounded to the type.
fn fma(x: f64, y: f64, z: f64, dtype: DType) -> f64 {
    if dtype == DType::F64 {
        return x.mul_add(y, z);
    }
    dtype.round_float(fma_odd(x, y, z))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(expr: Expr) -> Value {
        eval_expr(&expr, &mut Env::new()).unwrap()
    }

    fn f32c(v: f64) -> Expr {
        Expr::float(v, DType::F32)
    }

    #[test]
    fn float32_operations_round_to_float32() {
        let third = value(f32c(1.0) / f32c(3.0));
        assert_eq!(third, Value::Float(f64::from(1f32 / 3f32)));
        assert_eq!(value(f32c(16_777_216.0) + f32c(1.0)), Value::Float(16_777_216.0));
        assert_eq!(value(f32c(3e38) + f32c(3e38)), Value::Float(f64::INFINITY));
    }

    #[test]
    fn integers_wrap_and_divide_as_stated() {
        let int = |v| Expr::int_of(v, DType::I8);
        assert_eq!(value(int(127) + int(1)), Value::Int(-128));
        assert_eq!(value(int(-7) / int(2)), Value::Int(-3));
        assert_eq!(value(int(-7).floordiv(int(2))), Value::Int(-4));
        assert_eq!(value(int(-7).floormod(int(2))), Value::Int(1));
        assert_eq!(value(int(-128) / int(-1)), Value::Int(-128));
        assert_eq!(eval_expr(&(int(1) / int(0)), &mut Env::new()), Err(EvalError::DivisionByZero));
    }

    #[test]
    fn casts_truncate_saturate_and_round_once() {
        let of = |v: f64, d| Value::Float(v).cast(d);
        assert_eq!(of(-1.9, DType::I8), Value::Int(-1));
        assert_eq!(of(300.0, DType::U8), Value::Int(255));
        assert_eq!(of(f64::NAN, DType::I32), Value::Int(0));
        assert_eq!(of(f64::NAN, DType::Bool), Value::Int(1));
        assert_eq!(of(65520.0, DType::F16), Value::Float(f64::INFINITY));
        // 2^60 + 2^36 + 1 lies just above a midpoint of float32; by way of float64 it would be the midpoint.
        let above = (1i128 << 60) + (1 << 36) + 1;
        assert_eq!(Value::Int(above).cast(DType::F32), Value::Float(f64::from(above as f32)));
    }

    #[test]
    fn a_narrow_fma_rounds_once() {
        // 4097^2 is a midpoint of float32, and the float64 sum loses what lies above it.
        let exact = f32::mul_add(4097.0, 4097.0, 2f32.powi(-60));
        let args = vec![f32c(4097.0), f32c(4097.0), f32c(2f64.powi(-60))];
        assert_eq!(value(Expr::call(Intrinsic::Fma, args)), Value::Float(f64::from(exact)));
    }

    #[test]
    fn min_and_max_of_floats_follow_the_comparison() {
        assert_eq!(value(f32c(f64::NAN).max(f32c(1.0))), Value::Float(1.0));
        assert!(value(f32c(1.0).max(f32c(f64::NAN))).is_nan());
    }

    #[test]
    fn only_the_taken_side_of_if_then_else_is_evaluated() {
        let missing = Var::new("missing", DType::I32);
        let pick = |c| Expr::if_then_else(Expr::bool(c), Expr::int(1), missing.expr());
        assert_eq!(value(pick(true)), Value::Int(1));
        let refused = eval_expr(&pick(false), &mut Env::new());
        assert_eq!(refused, Err(EvalError::Unbound { name: "missing".to_owned() }));
    }

    #[test]
    fn a_let_binds_in_its_body_only() {
        let x = Var::new("x", DType::I32);
        let inner = Expr::let_in(x.clone(), x.expr() + Expr::int(1), x.expr() + x.expr());
        let mut env = Env::new();
        env.set(&x, Value::Int(10));
        assert_eq!(eval_expr(&(&inner + &x.expr()), &mut env), Ok(Value::Int(32)));
    }

    #[test]
    fn loads_ask_the_memory() {
        let buffer = Buffer::new("A", DType::I32, vec![Expr::int(4)], crate::buffer::MemScope::Global);
        let load = Expr::load(buffer.clone(), vec![Expr::int(2)]);
        let mut memory = |_: &Buffer, at: &[i128]| Ok(Value::Int(at[0] * 100));
        assert_eq!(eval_expr(&load, &mut Env::with_memory(&mut memory)), Ok(Value::Int(200)));
        let refused = eval_expr(&load, &mut Env::new());
        assert_eq!(refused, Err(EvalError::NoMemory { buffer: "A".to_owned() }));
    }
}
