//! Conversions between register types, as documented on `Node::Cast`: Rust's `as` has the same meaning.

use std::marker::PhantomData;

use super::{Fns, Lane, Op, Reg, fns};
use crate::level::Level;

struct Cast<A, B>(PhantomData<(A, B)>);
struct ToBool<A>(PhantomData<A>);

macro_rules! casts {
    ($($a:ident => $($b:ident),+;)+) => {$($(
        impl Lane for Cast<$a, $b> {
            type A = $a;
            type B = ();
            type C = ();
            type Out = $b;
            #[inline(always)]
            fn f(a: $a, _: (), _: ()) -> $b {
                a as $b
            }
        }
    )+)+};
}

// To integers of equal width only the bits matter, so integers go to unsigned types.
casts!(
    i8 => u16, u32, u64, f32, f64;
    i16 => u8, u32, u64, f32, f64;
    i32 => u8, u16, u64, f32, f64;
    i64 => u8, u16, u32, f32, f64;
    u8 => u16, u32, u64, f32, f64;
    u16 => u8, u32, u64, f32, f64;
    u32 => u8, u16, u64, f32, f64;
    u64 => u8, u16, u32, f32, f64;
    f32 => i8, i16, i32, i64, u8, u16, u32, u64, f64;
    f64 => i8, i16, i32, i64, u8, u16, u32, u64, f32;
);

macro_rules! to_bool {
    ($($a:ident, $zero:expr;)+) => {$(
        impl Lane for ToBool<$a> {
            type A = $a;
            type B = ();
            type C = ();
            type Out = u8;
            #[inline(always)]
            fn f(a: $a, _: (), _: ()) -> u8 {
                u8::from(a != $zero)
            }
        }
    )+};
}

to_bool!(u8, 0; u16, 0; u32, 0; u64, 0; f32, 0.0; f64, 0.0;);

macro_rules! pairs {
    ($level:expr, $from:expr, $to:expr; $($a_reg:ident $a:ident => $($($b_reg:ident)|+ $b:ident),+;)+) => {
        match ($from, $to) {
            $($((Reg::$a_reg, $(Reg::$b_reg)|+) => Some(fns::<Cast<$a, $b>>($level)),)+)+
            _ => None,
        }
    };
}

/// The functions that convert `from` to `to`; `None` where the bits stay as they are.
pub(crate) fn cast(from: Reg, to: Reg, level: Level) -> Option<Fns> {
    conversion(from, to, level).map(|fns| fns.being(Op::Cast(from, to)))
}

fn conversion(from: Reg, to: Reg, level: Level) -> Option<Fns> {
    if from == to {
        return None;
    }
    if to == Reg::Bool {
        return Some(match from {
            Reg::Bool | Reg::I8 | Reg::U8 => fns::<ToBool<u8>>(level),
            Reg::I16 | Reg::U16 => fns::<ToBool<u16>>(level),
            Reg::I32 | Reg::U32 => fns::<ToBool<u32>>(level),
            Reg::I64 | Reg::U64 => fns::<ToBool<u64>>(level),
            Reg::F32 => fns::<ToBool<f32>>(level),
            Reg::F64 => fns::<ToBool<f64>>(level),
        });
    }
    let from = if from == Reg::Bool { Reg::U8 } else { from };
    pairs!(level, from, to;
        I8 i8 => I16 | U16 u16, I32 | U32 u32, I64 | U64 u64, F32 f32, F64 f64;
        I16 i16 => I8 | U8 u8, I32 | U32 u32, I64 | U64 u64, F32 f32, F64 f64;
        I32 i32 => I8 | U8 u8, I16 | U16 u16, I64 | U64 u64, F32 f32, F64 f64;
        I64 i64 => I8 | U8 u8, I16 | U16 u16, I32 | U32 u32, F32 f32, F64 f64;
        U8 u8 => I16 | U16 u16, I32 | U32 u32, I64 | U64 u64, F32 f32, F64 f64;
        U16 u16 => I8 | U8 u8, I32 | U32 u32, I64 | U64 u64, F32 f32, F64 f64;
        U32 u32 => I8 | U8 u8, I16 | U16 u16, I64 | U64 u64, F32 f32, F64 f64;
        U64 u64 => I8 | U8 u8, I16 | U16 u16, I32 | U32 u32, F32 f32, F64 f64;
        F32 f32 => I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F64 f64;
        F64 f64 => I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32;
    )
}
