//! Integer operations: they wrap, and quotients are as `coulis_ir::BinaryOp` names them.

use coulis_ir::BinaryOp;

use super::{F1, F2, Number, map1, map2};

/// An integer type of one to eight bytes.
pub(crate) trait Int: Number + Ord {
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn quotient(self, other: Self) -> Self;
    fn remainder(self, other: Self) -> Self;
    fn floor_quotient(self, other: Self) -> Self;
    fn floor_remainder(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn shl(self, other: Self) -> Self;
    fn shr(self, other: Self) -> Self;
    fn is_true(self) -> bool;
    fn magnitude(self) -> Self;
    fn ones(self) -> Self;
}

macro_rules! int {
    ($($t:ident, $wide:ident;)+) => {$(
        impl Number for $t {
            #[inline(always)]
            fn of(bits: u64) -> $t {
                bits as $t
            }

            #[inline(always)]
            fn bits(self) -> u64 {
                self as $wide as u64
            }
        }

        // One macro serves signed and unsigned types, and some comparisons are about signs only.
        #[allow(unused_comparisons, clippy::cast_lossless)]
        impl Int for $t {
            #[inline(always)]
            fn add(self, other: $t) -> $t {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn sub(self, other: $t) -> $t {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn mul(self, other: $t) -> $t {
                self.wrapping_mul(other)
            }

            #[inline(always)]
            fn quotient(self, other: $t) -> $t {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }

            #[inline(always)]
            fn remainder(self, other: $t) -> $t {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }

            #[inline(always)]
            fn floor_quotient(self, other: $t) -> $t {
                let below = self.remainder(other) != 0 && (self < 0) != (other < 0);
                self.quotient(other).wrapping_sub(below as $t)
            }

            #[inline(always)]
            fn floor_remainder(self, other: $t) -> $t {
                let rest = self.remainder(other);
                if rest != 0 && (self < 0) != (other < 0) { rest.wrapping_add(other) } else { rest }
            }

            #[inline(always)]
            fn and(self, other: $t) -> $t {
                self & other
            }

            #[inline(always)]
            fn or(self, other: $t) -> $t {
                self | other
            }

            #[inline(always)]
            fn xor(self, other: $t) -> $t {
                self ^ other
            }

            #[inline(always)]
            fn shl(self, other: $t) -> $t {
                u32::try_from(other).ok().and_then(|by| self.checked_shl(by)).unwrap_or(0)
            }

            #[inline(always)]
            fn shr(self, other: $t) -> $t {
                let all_sign = if self < 0 { (0 as $t).wrapping_sub(1) } else { 0 };
                u32::try_from(other).ok().and_then(|by| self.checked_shr(by)).unwrap_or(all_sign)
            }

            #[inline(always)]
            fn is_true(self) -> bool {
                self != 0
            }

            #[inline(always)]
            fn magnitude(self) -> $t {
                if self < 0 { (0 as $t).wrapping_sub(self) } else { self }
            }

            #[inline(always)]
            fn ones(self) -> $t {
                self.count_ones() as $t
            }
        }
    )+};
}

int!(i8, i64; i16, i64; i32, i64; i64, i64; u8, u64; u16, u64; u32, u64; u64, u64;);

/// A binary operation; every one has a meaning on integers.
pub(super) fn binary<T: Int, const W: usize>(op: BinaryOp) -> Option<F2<W>> {
    Some(match op {
        BinaryOp::Add => |a, b| map2(a, b, T::add),
        BinaryOp::Sub => |a, b| map2(a, b, T::sub),
        BinaryOp::Mul => |a, b| map2(a, b, T::mul),
        BinaryOp::Div => |a, b| map2(a, b, T::quotient),
        BinaryOp::TruncMod => |a, b| map2(a, b, T::remainder),
        BinaryOp::FloorDiv => |a, b| map2(a, b, T::floor_quotient),
        BinaryOp::FloorMod => |a, b| map2(a, b, T::floor_remainder),
        BinaryOp::Min => |a, b| map2(a, b, |x: T, y| if x < y { x } else { y }),
        BinaryOp::Max => |a, b| map2(a, b, |x: T, y| if x > y { x } else { y }),
        BinaryOp::Eq => |a, b| map2(a, b, |x: T, y| x == y),
        BinaryOp::Ne => |a, b| map2(a, b, |x: T, y| x != y),
        BinaryOp::Lt => |a, b| map2(a, b, |x: T, y| x < y),
        BinaryOp::Le => |a, b| map2(a, b, |x: T, y| x <= y),
        BinaryOp::Gt => |a, b| map2(a, b, |x: T, y| x > y),
        BinaryOp::Ge => |a, b| map2(a, b, |x: T, y| x >= y),
        BinaryOp::And => |a, b| map2(a, b, |x: T, y: T| x.is_true() & y.is_true()),
        BinaryOp::Or => |a, b| map2(a, b, |x: T, y: T| x.is_true() | y.is_true()),
        BinaryOp::BitAnd => |a, b| map2(a, b, T::and),
        BinaryOp::BitOr => |a, b| map2(a, b, T::or),
        BinaryOp::BitXor => |a, b| map2(a, b, T::xor),
        BinaryOp::Shl => |a, b| map2(a, b, T::shl),
        BinaryOp::Shr => |a, b| map2(a, b, T::shr),
    })
}

/// Magnitude; that of the least value wraps to itself.
pub(super) fn magnitude<T: Int, const W: usize>() -> F1<W> {
    |a| map1(a, T::magnitude)
}

/// Number of set bits.
pub(super) fn ones<T: Int, const W: usize>() -> F1<W> {
    |a| map1(a, T::ones)
}
