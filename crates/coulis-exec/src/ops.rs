//! The operations of the bytecode: one typed function of lanes each, as a scalar call and as a vector loop.
//!
//! An operation is a type that implements [`Lane`]. [`fns`] makes from it the function that scalar instructions
//! call and the loop that vector instructions call; the loop is compiled once for each [`Level`].

mod binary;
mod cast;
mod memory;
mod narrow;
mod unary;

pub(crate) use binary::binary;
pub(crate) use cast::cast;
pub(crate) use memory::{
    GatherFn, ScatterFn, StridedFn, any_zero, broadcast, copy, gather, gather_strided, ramp, scatter,
    scatter_strided, select,
};
pub(crate) use narrow::{
    NAN_BYTE, Signedness, ToByte, fma, narrow, round_from_f64, round_in_f32, to_f64_odd, widen,
};
pub(crate) use unary::{Call, call, not};

use std::slice;

use coulis_ir::{BinaryOp, DType, Intrinsic};

use crate::level::Level;

/// What a register lane holds. The float types of 8 and 16 bits are held as `f32` and rounded after each
/// operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reg {
    /// One byte, 0 or 1.
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

impl Reg {
    pub(crate) const fn of(dtype: DType) -> Reg {
        match dtype {
            DType::Bool => Reg::Bool,
            DType::I8 => Reg::I8,
            DType::I16 => Reg::I16,
            DType::I32 => Reg::I32,
            DType::I64 => Reg::I64,
            DType::U8 => Reg::U8,
            DType::U16 => Reg::U16,
            DType::U32 => Reg::U32,
            DType::U64 => Reg::U64,
            DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 | DType::F32 => Reg::F32,
            DType::F64 => Reg::F64,
        }
    }

    pub(crate) const fn bytes(self) -> usize {
        match self {
            Reg::Bool | Reg::I8 | Reg::U8 => 1,
            Reg::I16 | Reg::U16 => 2,
            Reg::I32 | Reg::U32 | Reg::F32 => 4,
            Reg::I64 | Reg::U64 | Reg::F64 => 8,
        }
    }

    pub(crate) const fn is_int(self) -> bool {
        !matches!(self, Reg::Bool | Reg::F32 | Reg::F64)
    }
}

/// A vector loop: destination, three operands (unused ones may point anywhere), number of lanes. The destination
/// does not overlap an operand, except where an in-place form says so.
pub(crate) type VecFn = unsafe fn(*mut u8, *const u8, *const u8, *const u8, usize);

/// A scalar operation on register slots.
pub(crate) type ScalarFn = unsafe fn(*mut u64, *const u64, *const u64, *const u64);

/// Which operation an instruction is, for native code; its functions are the definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Never `Gt` or `Ge`: those are the others with swapped operands.
    Binary(BinaryOp, Reg),
    Not,
    /// `a ? b : c` on lanes of so many bytes.
    Select(u8),
    Copy(u8),
    Broadcast(u8),
    Ramp(u8),
    Cast(Reg, Reg),
    /// Memory form to register form.
    Widen(DType),
    /// Register form to memory form.
    Narrow(DType),
    /// Rounding of an `f32` to the values of a type.
    Round(DType),
    Call(Intrinsic, Reg),
    /// Any other.
    Other,
}

/// The functions of one operation at one level.
#[derive(Clone, Copy)]
pub(crate) struct Fns {
    pub(crate) op: Op,
    pub(crate) scalar: ScalarFn,
    pub(crate) vector: VecFn,
    /// The loop for a destination that is the first, second or third operand.
    pub(crate) in_place: [Option<VecFn>; 3],
}

/// An operation on one lane. Unused operands have type `()`.
pub(crate) trait Lane {
    type A: Copy;
    type B: Copy;
    type C: Copy;
    type Out: Copy;
    fn f(a: Self::A, b: Self::B, c: Self::C) -> Self::Out;
}

/// A loop over lanes whose destination overlaps no operand. An operand of type `()` is not used.
pub(crate) trait Kernel {
    type D: Copy;
    type A: Copy;
    type B: Copy;
    type C: Copy;
    /// All slices have one length.
    fn run(d: &mut [Self::D], a: &[Self::A], b: &[Self::B], c: &[Self::C]);
}

struct Fresh<O>(O);
struct OnFirst<O>(O);
struct OnSecond<O>(O);
struct OnThird<O>(O);

macro_rules! kernel {
    ($name:ident<$o:ident: $bound:path>, $a:ty, $b:ty, $c:ty, |$d:ident, $x:ident, $y:ident, $z:ident| $call:expr) => {
        impl<$o: $bound> Kernel for $name<$o> {
            type D = $o::Out;
            type A = $a;
            type B = $b;
            type C = $c;
            #[inline(always)]
            fn run(d: &mut [$o::Out], a: &[$a], b: &[$b], c: &[$c]) {
                let n = d.len();
                let (a, b, c) = (&a[..n], &b[..n], &c[..n]);
                for i in 0..n {
                    let ($d, $x, $y, $z) = (d[i], a[i], b[i], c[i]);
                    d[i] = $call;
                }
            }
        }
    };
}

/// An operation whose first operand has the type of the result; and so on.
pub(crate) trait OnA: Lane<A = <Self as Lane>::Out> {}
impl<O: Lane<A = <O as Lane>::Out>> OnA for O {}
pub(crate) trait OnB: Lane<B = <Self as Lane>::Out> {}
impl<O: Lane<B = <O as Lane>::Out>> OnB for O {}
pub(crate) trait OnC: Lane<C = <Self as Lane>::Out> {}
impl<O: Lane<C = <O as Lane>::Out>> OnC for O {}

kernel!(Fresh<O: Lane>, O::A, O::B, O::C, |_old, a, b, c| O::f(a, b, c));
kernel!(OnFirst<O: OnA>, (), O::B, O::C, |old, _a, b, c| O::f(old, b, c));
kernel!(OnSecond<O: OnB>, O::A, (), O::C, |old, a, _b, c| O::f(a, old, c));
kernel!(OnThird<O: OnC>, O::A, O::B, (), |old, a, b, _c| O::f(a, b, old));

unsafe fn scalar<O: Lane>(d: *mut u64, a: *const u64, b: *const u64, c: *const u64) {
    // SAFETY: slots are valid, aligned to 8 bytes and hold a value of the operation's type in their first bytes.
    unsafe { *d.cast::<O::Out>() = O::f(*a.cast(), *b.cast(), *c.cast()) }
}

/// Two functions a level: the second one's slices tell the compiler that nothing overlaps, which holds for
/// parameters of a call only; without it loops over types of different sizes are not vectorised.
macro_rules! level {
    ($raw:ident, $typed:ident $(, $feature:literal)?) => {
        unsafe fn $raw<K: Kernel>(d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
            // SAFETY: the compiler of the bytecode gives pointers to `n` aligned lanes of the operation's types, a
            // destination that no operand overlaps, and takes this level only where the machine has it.
            unsafe {
                $typed::<K>(
                    slice::from_raw_parts_mut(d.cast(), n),
                    slice::from_raw_parts(a.cast(), n),
                    slice::from_raw_parts(b.cast(), n),
                    slice::from_raw_parts(c.cast(), n),
                );
            }
        }

        #[inline(never)]
        $(#[target_feature(enable = $feature)])?
        fn $typed<K: Kernel>(d: &mut [K::D], a: &[K::A], b: &[K::B], c: &[K::C]) {
            K::run(d, a, b, c);
        }
    };
}

level!(baseline, baseline_loop);
#[cfg(target_arch = "x86_64")]
level!(avx2, avx2_loop, "avx2,fma,f16c");
#[cfg(target_arch = "x86_64")]
level!(avx512, avx512_loop, "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c");

/// The loop at that level, which the machine must have.
pub(crate) fn vec_fn<K: Kernel>(level: Level) -> VecFn {
    match level {
        Level::Baseline => baseline::<K>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::<K>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::<K>,
        #[cfg(not(target_arch = "x86_64"))]
        Level::Avx2 | Level::Avx512 => baseline::<K>,
    }
}

impl Fns {
    /// The same functions, known to be that operation.
    fn being(self, op: Op) -> Fns {
        Fns { op, ..self }
    }
}

/// The functions of an operation.
pub(crate) fn fns<O: Lane>(level: Level) -> Fns {
    Fns { op: Op::Other, scalar: scalar::<O>, vector: vec_fn::<Fresh<O>>(level), in_place: [None; 3] }
}

/// The functions of an operation whose result often replaces its first operand.
pub(crate) fn fns_on_first<O: OnA>(level: Level) -> Fns {
    Fns { in_place: [Some(vec_fn::<OnFirst<O>>(level)), None, None], ..fns::<O>(level) }
}

/// The functions of an operation whose result often replaces its first or its second operand.
pub(crate) fn fns_on_either<O: OnA + OnB>(level: Level) -> Fns {
    let (first, second) = (vec_fn::<OnFirst<O>>(level), vec_fn::<OnSecond<O>>(level));
    Fns { in_place: [Some(first), Some(second), None], ..fns::<O>(level) }
}

/// The functions of a choice whose result often replaces one of its arms.
pub(crate) fn fns_on_arms<O: OnB + OnC>(level: Level) -> Fns {
    let (second, third) = (vec_fn::<OnSecond<O>>(level), vec_fn::<OnThird<O>>(level));
    Fns { in_place: [None, Some(second), Some(third)], ..fns::<O>(level) }
}

/// Declares an operation and its lanes: `lane2!(Add, T => T, |a, b| a + b; f32, f64)`.
macro_rules! lane2 {
    ($name:ident, $out:ident, |$a:ident, $b:ident| $body:expr; $($t:ident),+ $(,)?) => {$(
        impl $crate::ops::Lane for $name<$t> {
            type A = $t;
            type B = $t;
            type C = ();
            type Out = $crate::ops::out_type!($out, $t);
            #[inline(always)]
            fn f($a: $t, $b: $t, _: ()) -> Self::Out {
                $body
            }
        }
    )+};
}

/// Declares an operation of one operand for several types.
macro_rules! lane1 {
    ($name:ident, $out:ident, |$a:ident| $body:expr; $($t:ident),+ $(,)?) => {$(
        impl $crate::ops::Lane for $name<$t> {
            type A = $t;
            type B = ();
            type C = ();
            type Out = $crate::ops::out_type!($out, $t);
            #[inline(always)]
            fn f($a: $t, _: (), _: ()) -> Self::Out {
                $body
            }
        }
    )+};
}

macro_rules! out_type {
    (same, $t:ident) => {
        $t
    };
    (bool, $t:ident) => {
        u8
    };
}

pub(crate) use {lane1, lane2, out_type};
