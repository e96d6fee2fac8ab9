//! Operations of two operands of one type, as documented on [`BinaryOp`].

use std::marker::PhantomData;

use coulis_ir::BinaryOp;

use super::{Fns, Op, Reg, fns, fns_on_either, fns_on_first, lane2};
use crate::level::Level;

macro_rules! declare {
    ($($name:ident),+) => {$(struct $name<T>(PhantomData<T>);)+};
}

declare!(Add, Sub, Mul, Div, Rem, FloorDiv, FloorMod, Min, Max, Eq, Ne, Lt, Le, And, Or, Xor, Shl, Shr);

lane2!(Add, same, |a, b| a.wrapping_add(b); u8, u16, u32, u64);
lane2!(Add, same, |a, b| a + b; f32, f64);
lane2!(Sub, same, |a, b| a.wrapping_sub(b); u8, u16, u32, u64);
lane2!(Sub, same, |a, b| a - b; f32, f64);
lane2!(Mul, same, |a, b| a.wrapping_mul(b); u8, u16, u32, u64);
lane2!(Mul, same, |a, b| a * b; f32, f64);
lane2!(Div, same, |a, b| a / b; f32, f64);
lane2!(Min, same, |a, b| if a < b { a } else { b }; i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
lane2!(Max, same, |a, b| if a > b { a } else { b }; i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
lane2!(Eq, bool, |a, b| u8::from(a == b); u8, u16, u32, u64, f32, f64);
lane2!(Ne, bool, |a, b| u8::from(a != b); u8, u16, u32, u64, f32, f64);
lane2!(Lt, bool, |a, b| u8::from(a < b); i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
lane2!(Le, bool, |a, b| u8::from(a <= b); i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
lane2!(And, same, |a, b| a & b; u8, u16, u32, u64);
lane2!(Or, same, |a, b| a | b; u8, u16, u32, u64);
lane2!(Xor, same, |a, b| a ^ b; u8, u16, u32, u64);

// Division by zero is refused by a check before; here it gives 0, so that no lane is undefined.
lane2!(Div, same, |a, b| if b == 0 { 0 } else { a.wrapping_div(b) }; i8, i16, i32, i64, u8, u16, u32, u64);
lane2!(Rem, same, |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) }; i8, i16, i32, i64, u8, u16, u32, u64);
lane2!(FloorDiv, same, |a, b| a.checked_div(b).unwrap_or(0); u8, u16, u32, u64);
lane2!(FloorMod, same, |a, b| a.checked_rem(b).unwrap_or(0); u8, u16, u32, u64);
lane2!(
    FloorDiv, same,
    |a, b| if b == 0 {
        0
    } else {
        let (q, r) = (a.wrapping_div(b), a.wrapping_rem(b));
        if r != 0 && (r < 0) != (b < 0) { q - 1 } else { q }
    };
    i8, i16, i32, i64
);
lane2!(
    FloorMod, same,
    |a, b| if b == 0 {
        0
    } else {
        let r = a.wrapping_rem(b);
        if r != 0 && (r < 0) != (b < 0) { r + b } else { r }
    };
    i8, i16, i32, i64
);
lane2!(Shl, same, |a, b| if b < width(a) as _ { a << b } else { 0 }; u8, u16, u32, u64);
lane2!(Shr, same, |a, b| if b < width(a) as _ { a >> b } else { 0 }; u8, u16, u32, u64);
// By the width less 1 gives the sign in every bit.
lane2!(Shr, same, |a, b| a >> (b as u8).min(width(a) as u8 - 1); i8);
lane2!(Shr, same, |a, b| a >> (b as u16).min(width(a) as u16 - 1); i16);
lane2!(Shr, same, |a, b| a >> (b as u32).min(width(a) as u32 - 1); i32);
lane2!(Shr, same, |a, b| a >> (b as u64).min(width(a) as u64 - 1); i64);

/// Bits of a value.
#[inline(always)]
const fn width<T: Copy>(_: T) -> usize {
    8 * size_of::<T>()
}

macro_rules! by_reg {
    ($make:ident, $op:ident, $level:expr, $reg:expr; $($($r:ident)|+ => $t:ident),+ $(,)?) => {
        match $reg {
            $($(Reg::$r)|+ => Some($make::<$op<$t>>($level)),)+
            _ => None,
        }
    };
}

/// Bit patterns and floats: where signedness does not matter.
macro_rules! by_width {
    ($make:ident, $op:ident, $level:expr, $reg:expr) => {
        by_reg!($make, $op, $level, $reg;
            I8 | U8 => u8, I16 | U16 => u16, I32 | U32 => u32, I64 | U64 => u64, F32 => f32, F64 => f64)
    };
}

macro_rules! by_bits {
    ($make:ident, $op:ident, $level:expr, $reg:expr) => {
        by_reg!($make, $op, $level, $reg;
            Bool | I8 | U8 => u8, I16 | U16 => u16, I32 | U32 => u32, I64 | U64 => u64)
    };
}

macro_rules! by_int {
    ($make:ident, $op:ident, $level:expr, $reg:expr) => {
        by_reg!($make, $op, $level, $reg; I8 => i8, I16 => i16, I32 => i32, I64 => i64,
            U8 => u8, U16 => u16, U32 => u32, U64 => u64)
    };
}

macro_rules! by_order {
    ($make:ident, $op:ident, $level:expr, $reg:expr) => {
        by_reg!($make, $op, $level, $reg; I8 => i8, I16 => i16, I32 => i32, I64 => i64,
            Bool | U8 => u8, U16 => u16, U32 => u32, U64 => u64, F32 => f32, F64 => f64)
    };
}

/// The functions of `op` on `reg`, and whether the operands are to be swapped; `None` where the operation is not
/// defined on that type.
#[allow(unreachable_patterns, reason = "some lists of types name every register type")]
pub(crate) fn binary(op: BinaryOp, reg: Reg, level: Level) -> Option<(Fns, bool)> {
    let found = match op {
        BinaryOp::Add => by_width!(fns_on_either, Add, level, reg),
        BinaryOp::Sub => by_width!(fns_on_first, Sub, level, reg),
        BinaryOp::Mul => by_width!(fns_on_either, Mul, level, reg),
        BinaryOp::Div => {
            let float = by_reg!(fns, Div, level, reg; F32 => f32, F64 => f64);
            float.or_else(|| by_int!(fns, Div, level, reg))
        }
        BinaryOp::TruncMod => by_int!(fns, Rem, level, reg),
        BinaryOp::FloorDiv => by_int!(fns, FloorDiv, level, reg),
        BinaryOp::FloorMod => by_int!(fns, FloorMod, level, reg),
        BinaryOp::Min => by_order!(fns_on_either, Min, level, reg),
        BinaryOp::Max => by_order!(fns_on_either, Max, level, reg),
        BinaryOp::Eq => by_reg!(fns, Eq, level, reg; Bool | I8 | U8 => u8, I16 | U16 => u16,
            I32 | U32 => u32, I64 | U64 => u64, F32 => f32, F64 => f64),
        BinaryOp::Ne => by_reg!(fns, Ne, level, reg; Bool | I8 | U8 => u8, I16 | U16 => u16,
            I32 | U32 => u32, I64 | U64 => u64, F32 => f32, F64 => f64),
        BinaryOp::Lt | BinaryOp::Gt => by_order!(fns, Lt, level, reg),
        BinaryOp::Le | BinaryOp::Ge => by_order!(fns, Le, level, reg),
        BinaryOp::And => by_reg!(fns_on_either, And, level, reg; Bool => u8),
        BinaryOp::Or => by_reg!(fns_on_either, Or, level, reg; Bool => u8),
        BinaryOp::BitAnd => by_bits!(fns_on_either, And, level, reg),
        BinaryOp::BitOr => by_bits!(fns_on_either, Or, level, reg),
        BinaryOp::BitXor => by_bits!(fns_on_either, Xor, level, reg),
        BinaryOp::Shl => {
            by_reg!(fns, Shl, level, reg; I8 | U8 => u8, I16 | U16 => u16, I32 | U32 => u32, I64 | U64 => u64)
        }
        BinaryOp::Shr => by_int!(fns, Shr, level, reg),
    };
    let (op, swapped) = match op {
        BinaryOp::Gt => (BinaryOp::Lt, true),
        BinaryOp::Ge => (BinaryOp::Le, true),
        _ => (op, false),
    };
    found.map(|fns| (fns.being(Op::Binary(op, reg)), swapped))
}
