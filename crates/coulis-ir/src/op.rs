//! Operations of expressions: binary operators and pure functions, each with its meaning.

use crate::dtype::DType;

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
    /// Left shift of integers. The amount is read as a number without a sign: by the width or more, and so by a negative
    /// amount, every bit is shifted out, which gives 0.
    Shl,
    /// Right shift of integers, arithmetic for signed ones. The amount is read as in `Shl`; by the width or more gives 0,
    /// or -1 of a negative number.
    Shr,
}

/// `x << amount` or `x >> amount` of integers of `bits` bits, before it wraps to the type: see [`BinaryOp::Shl`].
const fn shifted(op: BinaryOp, x: i128, amount: i128, bits: u32) -> i128 {
    let all_out = amount < 0 || amount >= bits as i128;
    match op {
        BinaryOp::Shl if all_out => 0,
        BinaryOp::Shl => x << amount,
        _ if all_out => x >> 127,
        _ => x >> amount,
    }
}

/// Integer quotient rounded down; `b` is not 0.
pub fn floor_div(a: i128, b: i128) -> i128 {
    let quotient = quotient(a, b);
    if quotient * b != a && (a < 0) != (b < 0) { quotient - 1 } else { quotient }
}

/// `a / b`, in the machine's own width where both fit: that of 128 bits is a function.
fn quotient(a: i128, b: i128) -> i128 {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(x), Ok(y)) => x.checked_div(y).map_or(a / b, i128::from),
        _ => a / b,
    }
}

impl BinaryOp {
    /// The result on integers of `bits` bits, of which bools are 0 and 1, before it wraps to their type: its last 128 bits, and
    /// whether it has more. `None` for a division by zero.
    pub fn on_integers(self, x: i128, y: i128, bits: u32) -> Option<(i128, bool)> {
        let of_quotient = |f: fn(i128, i128) -> i128| (y != 0).then(|| f(x, y));
        let exact = match self {
            BinaryOp::Add => return Some(x.overflowing_add(y)),
            BinaryOp::Sub => return Some(x.overflowing_sub(y)),
            BinaryOp::Mul => return Some(x.overflowing_mul(y)),
            BinaryOp::Div => of_quotient(quotient)?,
            BinaryOp::TruncMod => of_quotient(|x, y| x - quotient(x, y) * y)?,
            BinaryOp::FloorDiv => of_quotient(floor_div)?,
            BinaryOp::FloorMod => of_quotient(|x, y| x - floor_div(x, y) * y)?,
            BinaryOp::Min => x.min(y),
            BinaryOp::Max => x.max(y),
            BinaryOp::Eq => i128::from(x == y),
            BinaryOp::Ne => i128::from(x != y),
            BinaryOp::Lt => i128::from(x < y),
            BinaryOp::Le => i128::from(x <= y),
            BinaryOp::Gt => i128::from(x > y),
            BinaryOp::Ge => i128::from(x >= y),
            BinaryOp::And => i128::from(x != 0 && y != 0),
            BinaryOp::Or => i128::from(x != 0 || y != 0),
            BinaryOp::BitAnd => x & y,
            BinaryOp::BitOr => x | y,
            BinaryOp::BitXor => x ^ y,
            BinaryOp::Shl | BinaryOp::Shr => shifted(self, x, y, bits),
        };
        Some((exact, false))
    }

    /// Every binary operation.
    pub const ALL: [BinaryOp; 22] = [
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::TruncMod,
        BinaryOp::FloorDiv,
        BinaryOp::FloorMod,
        BinaryOp::Min,
        BinaryOp::Max,
        BinaryOp::Eq,
        BinaryOp::Ne,
        BinaryOp::Lt,
        BinaryOp::Le,
        BinaryOp::Gt,
        BinaryOp::Ge,
        BinaryOp::And,
        BinaryOp::Or,
        BinaryOp::BitAnd,
        BinaryOp::BitOr,
        BinaryOp::BitXor,
        BinaryOp::Shl,
        BinaryOp::Shr,
    ];

    /// How the operation is called in errors.
    pub const fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::TruncMod => "truncmod",
            BinaryOp::FloorDiv => "//",
            BinaryOp::FloorMod => "%",
            BinaryOp::Min => "min",
            BinaryOp::Max => "max",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::And => "and",
            BinaryOp::Or => "or",
            BinaryOp::BitAnd => "&",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
        }
    }

    /// Whether the second operand divides the first: a quotient or a remainder, which integers have of no 0.
    pub const fn is_division(self) -> bool {
        matches!(self, BinaryOp::Div | BinaryOp::TruncMod | BinaryOp::FloorDiv | BinaryOp::FloorMod)
    }

    /// Whether the operation is defined on that type. The 8-bit floats are for storage, and compute with nothing.
    pub fn takes(self, dtype: DType) -> bool {
        let storage_only = dtype.is_storage_only();
        match self {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div => {
                dtype != DType::Bool && !storage_only
            }
            BinaryOp::TruncMod | BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::Shl | BinaryOp::Shr => {
                dtype.is_int()
            }
            BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge => !storage_only,
            BinaryOp::And | BinaryOp::Or => dtype == DType::Bool,
            BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => !dtype.is_float(),
        }
    }

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
    /// 2 to the x, where a power that is subnormal counts as zero, of the types that have float32's exponents, float32 and
    /// bfloat16. Only for what is added to a one, which such a power does not change (contract N10).
    Exp2Ftz,
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
    /// `1 / (1 + exp(-x))`; 2 ulp on every device.
    Sigmoid,
    /// Error function; 2 ulp.
    Erf,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// `pow(x, y)`.
    Pow,
    /// C's `fmod(x, y)`.
    Fmod,
    /// `x + y` of floats, in which subnormal operands and a subnormal sum count as zeros of their signs; of the types that
    /// have float32's exponents, float32 and bfloat16. Only calls that allow it get it (contract N10).
    AddFtz,
    /// `x * y + z`, rounded once.
    Fma,
    /// The largest of three floats; NaN where one of them is NaN. 0.0 counts as larger than -0.0.
    Max3,
    /// The smallest of three floats; NaN where one of them is NaN. -0.0 counts as smaller than 0.0.
    Min3,
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
    pub const ALL: [Intrinsic; 29] = [
        Intrinsic::Exp,
        Intrinsic::Exp2,
        Intrinsic::Exp2Ftz,
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
        Intrinsic::AddFtz,
        Intrinsic::Fma,
        Intrinsic::Max3,
        Intrinsic::Min3,
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
            Intrinsic::Exp2Ftz => "exp2_ftz",
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
            Intrinsic::AddFtz => "add_ftz",
            Intrinsic::Fma => "fma",
            Intrinsic::Max3 => "max3",
            Intrinsic::Min3 => "min3",
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
            Intrinsic::Pow | Intrinsic::Fmod | Intrinsic::AddFtz => 2,
            Intrinsic::Fma | Intrinsic::Max3 | Intrinsic::Min3 => 3,
            _ => 1,
        }
    }

    /// Whether the result is a bool whatever the argument's type.
    pub const fn is_predicate(self) -> bool {
        matches!(self, Intrinsic::IsNan | Intrinsic::IsInf | Intrinsic::IsFinite | Intrinsic::Likely)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_by_the_width_or_more_leaves_no_bit_but_the_sign() {
        for (op, x, amount, want) in [
            (BinaryOp::Shl, 1, 31, 1 << 31),
            (BinaryOp::Shl, 1, 32, 0),
            (BinaryOp::Shl, 1, -1, 0),
            (BinaryOp::Shr, 5, 31, 0),
            (BinaryOp::Shr, 5, 32, 0),
            (BinaryOp::Shr, -5, 1, -3),
            (BinaryOp::Shr, -5, 32, -1),
            (BinaryOp::Shr, -5, -32, -1),
        ] {
            assert_eq!(shifted(op, x, amount, 32), want, "{op:?} of {x} by {amount}");
        }
    }
}
