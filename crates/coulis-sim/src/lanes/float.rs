//! Float operations: one rounding each, comparisons as IEEE 754 says.

use coulis_ir::{BinaryOp, DType};

use super::{F2, Number, map2};

/// A float type.
pub(crate) trait Float: Number + PartialOrd {
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    /// `self * b + c`, rounded once.
    fn fma(self, b: Self, c: Self) -> Self;
    /// The value rounded to this type.
    fn round(value: f64) -> Self;
    /// The exact value.
    fn wide(self) -> f64;
}

macro_rules! native {
    ($($t:ident, $bits:ident;)+) => {$(
        impl Number for $t {
            #[inline(always)]
            fn of(bits: u64) -> $t {
                $t::from_bits(bits as $bits)
            }

            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self.to_bits())
            }
        }

        impl Float for $t {
            #[inline(always)]
            fn add(self, other: $t) -> $t {
                self + other
            }

            #[inline(always)]
            fn sub(self, other: $t) -> $t {
                self - other
            }

            #[inline(always)]
            fn mul(self, other: $t) -> $t {
                self * other
            }

            #[inline(always)]
            fn div(self, other: $t) -> $t {
                self / other
            }

            #[inline(always)]
            fn fma(self, b: $t, c: $t) -> $t {
                self.mul_add(b, c)
            }

            #[inline(always)]
            fn round(value: f64) -> $t {
                value as $t
            }

            #[inline(always)]
            fn wide(self) -> f64 {
                f64::from(self)
            }
        }
    )+};
}

native!(f32, u32; f64, u64;);

macro_rules! narrow {
    ($($t:ident, $doc:literal;)+) => {$(
        #[doc = $doc]
        #[derive(Clone, Copy, PartialEq, PartialOrd)]
        pub(crate) struct $t(f64);

        impl Number for $t {
            #[inline(always)]
            fn of(bits: u64) -> $t {
                $t(f64::from_bits(bits))
            }

            #[inline(always)]
            fn bits(self) -> u64 {
                self.0.to_bits()
            }
        }

        // Sum, difference, product and quotient of two such numbers, rounded to float64 and then to the type, are
        // rounded right: float64 has more than twice its digits and two.
        impl Float for $t {
            fn add(self, other: $t) -> $t {
                Self::round(self.0 + other.0)
            }

            fn sub(self, other: $t) -> $t {
                Self::round(self.0 - other.0)
            }

            fn mul(self, other: $t) -> $t {
                Self::round(self.0 * other.0)
            }

            fn div(self, other: $t) -> $t {
                Self::round(self.0 / other.0)
            }

            fn fma(self, b: $t, c: $t) -> $t {
                Self::round(odd_sum(self.0 * b.0, c.0))
            }

            fn round(value: f64) -> $t {
                $t(DType::$t.round_float(value))
            }

            fn wide(self) -> f64 {
                self.0
            }
        }
    )+};
}

narrow!(
    F16, "A `float16` as the `float64` of its value.";
    BF16, "A `bfloat16` as the `float64` of its value.";
    F8E4M3, "A `float8_e4m3` as the `float64` of its value.";
    F8E5M2, "A `float8_e5m2` as the `float64` of its value.";
);

/// `a + b` with the last bit odd where something was lost, so that rounding it again is rounding the exact sum.
fn odd_sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let b_part = sum - a;
    let rest = (a - (sum - b_part)) + (b - b_part);
    if rest == 0.0 || !sum.is_finite() || rest.is_nan() || sum.to_bits() & 1 == 1 {
        return sum;
    }
    let away = (rest > 0.0) == (sum > 0.0);
    f64::from_bits(if away { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
}

/// A binary operation; `None` for those of integers and bools.
pub(super) fn binary<T: Float, const W: usize>(op: BinaryOp) -> Option<F2<W>> {
    Some(match op {
        BinaryOp::Add => |a, b| map2(a, b, T::add),
        BinaryOp::Sub => |a, b| map2(a, b, T::sub),
        BinaryOp::Mul => |a, b| map2(a, b, T::mul),
        BinaryOp::Div => |a, b| map2(a, b, T::div),
        BinaryOp::Min => |a, b| map2(a, b, |x: T, y| if x < y { x } else { y }),
        BinaryOp::Max => |a, b| map2(a, b, |x: T, y| if x > y { x } else { y }),
        BinaryOp::Eq => |a, b| map2(a, b, |x: T, y| x == y),
        BinaryOp::Ne => |a, b| map2(a, b, |x: T, y| x != y),
        BinaryOp::Lt => |a, b| map2(a, b, |x: T, y| x < y),
        BinaryOp::Le => |a, b| map2(a, b, |x: T, y| x <= y),
        BinaryOp::Gt => |a, b| map2(a, b, |x: T, y| x > y),
        BinaryOp::Ge => |a, b| map2(a, b, |x: T, y| x >= y),
        BinaryOp::TruncMod
        | BinaryOp::FloorDiv
        | BinaryOp::FloorMod
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr => return None,
    })
}
