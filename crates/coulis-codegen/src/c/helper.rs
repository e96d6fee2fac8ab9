//! The helper functions that emitted text may call: a closed vocabulary that each dialect defines.
//!
//! A helper is defined in the text only if something calls it, before its first caller, after those it calls.

use coulis_ir::{Atom, BinaryOp, DType, Intrinsic};

use crate::c::types::{CTy, VTy};
use crate::dialect::Dialect;

/// Integer divisions, each defined for every operand: a zero divisor gives 0 and writes 2 to the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Division {
    /// Quotient truncated toward zero.
    Div,
    /// Remainder of the truncated quotient.
    Mod,
    /// Quotient rounded down.
    FloorDiv,
    /// Remainder of the floored quotient.
    FloorMod,
}

/// Comparisons; all but `Ne` are false of NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Comparison {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

impl Comparison {
    /// C's operator.
    pub const fn operator(self) -> &'static str {
        match self {
            Comparison::Eq => "==",
            Comparison::Ne => "!=",
            Comparison::Lt => "<",
            Comparison::Le => "<=",
            Comparison::Gt => ">",
            Comparison::Ge => ">=",
        }
    }
}

/// The greatest magnitude of integers that one addition brings into the digits of an `f64`.
pub const SHORT: i128 = 1 << 51;

/// One helper function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Helper {
    /// The vector (or, at 0 lanes, the value) at a pointer to memory of that type. Bools give a byte mask.
    Load(DType, u32),
    /// The same of elements that lie that many apart, from the one at the pointer on: not 0 or 1, and negative where they lie
    /// before it. They are read as the vectors of neighbours that have them.
    LoadEvery(DType, u32, i32),
    /// Writes a vector at a pointer; the value has the carrier's type, for bools a byte mask.
    Store(DType, u32),
    /// Writes a vector as `Store` does, but past the caches where the pointer is a multiple of the vector's bytes.
    Stream(DType, u32),
    /// Returns when what the thread wrote past the caches is seen by all before anything that it writes later.
    Drain,
    /// The scalar in every lane; a scalar bool for masks.
    Splat(VTy),
    /// The mask of a comparison of two vectors.
    Compare(Comparison, VTy),
    /// A lane of a mask as a scalar bool.
    Lane(VTy),
    /// Whether any integer of a vector at a pointer is not zero.
    AnySet(VTy),
    /// `mask ? a : b` by lanes; the mask has the shape of the operands.
    Select(VTy),
    /// `a < b ? a : b`.
    Min(VTy),
    /// `a > b ? a : b`.
    Max(VTy),
    /// Lanes `lanes * index ..` of a vector that has more: type of the piece, lanes of the whole, index.
    Piece(VTy, u32, u32),
    /// Puts a vector variable into memory, where that is faster than to cut it in registers: the address of the variable.
    Keep(VTy),
    /// A piece as in `Piece`, of the vector at that address, which was kept.
    Kept(VTy, u32, u32),
    /// Two vectors of that type as one.
    Concat(VTy),
    /// Lanes of two vectors by turns, in each block of that many lanes: those of the block's first half, or (`true`)
    /// of its second.
    Zip(VTy, u32, bool),
    /// Every other lane of two vectors, from lane 0 or (`true`) 1: in each block of that many lanes those of the
    /// first vector, then those of the second. The opposite of `Zip`.
    Unzip(VTy, u32, bool),
    /// In each block of that many lanes those of the second vector whose bits are set, lane 0 having the lowest, and of the
    /// first vector otherwise.
    Blend(VTy, u32, u64),
    /// In each block of that many lanes, every so many-th of these around the block, from the given one on.
    Around {
        /// The vector.
        of: VTy,
        /// Lanes of a block, a power of two.
        block: u32,
        /// Lanes from one to the next, odd.
        step: u32,
        /// The first one.
        first: u32,
    },
    /// Lane by lane conversion by C's rules, from the first type to the second; in range or rounded to nearest.
    Convert(VTy, CTy),
    /// Integers of 64 bits of at most [`SHORT`] in magnitude, as `f64`, which holds them all.
    Short(VTy),
    /// Float to integer that truncates and saturates; NaN gives 0.
    Saturate(VTy, CTy),
    /// Rounds to a type that lives in memory only, and widens again.
    Round(VTy, DType),
    /// A conversion that rounds inexact results to odd, so that a second rounding is right: `f64` to `f32`, or a
    /// 64-bit integer to `f64`.
    Odd(VTy),
    /// An integer division; on a CPU its last argument points to the status.
    Divide(Division, VTy),
    /// Lane by lane function of floats or integers.
    Math(Intrinsic, VTy),
    /// The exponential, of what is at most `EXP_CAP` or NaN.
    ExpCapped(VTy),
    /// The same of what is also at least `EXP_FLOOR_F32`, or that of `f64`.
    ExpBounded(VTy),
    /// Memory for that many elements of so many bytes, 64-byte aligned; null where there is none.
    Alloc,
    /// The larger or smaller of two `f32`, NaN where either is: `max3` or `min3` of two.
    OfTwo(Intrinsic),
    /// Gives memory back.
    Free,
    /// Writes the status of the launch, which several threads may do.
    Fail,
    /// The `f32` of the bits of a type that lives in memory only.
    Widen(DType),
    /// The same of a vector of so many of them; on a GPU of the two 8-bit ones in the lowest bytes of 32 bits, as a `float2`.
    WidenAll(DType, u32),
    /// The bits of the value of such a type that is nearest to an `f32`.
    Narrow(DType),
    /// The same of a vector of so many of them; on a GPU of two values, as the lowest bytes of 32 bits.
    NarrowAll(DType, u32),
    /// An operation of signed integers that wraps, where the compiler's own is undefined beyond their range.
    Wrap(BinaryOp, CTy),
    /// A product of integers that wraps, which the compiler does not look into.
    OpaqueProduct(CTy),
    /// A shift by any amount, where the compiler's own is defined for those below the width only.
    Shift(BinaryOp, VTy),
    /// `a * b + c` of a type that lives in memory only, rounded once; its operands and its value are `f32` of that shape.
    Fma(VTy, DType),
    /// `a * b + c` of vectors whose product is exact, so that it is no matter whether it is rounded.
    AddExact(VTy),
    /// The larger or smaller of two 16-bit floats each, NaN kept, by one instruction.
    ExtremumPair(Intrinsic, DType),
    /// A byte of 32 bits as a value of that type, by one instruction.
    Byte(CTy, u32),
    /// -1 where a byte of 32 bits is not zero, else 0.
    NonZero(u32),
    /// Bytes of 32 bits, each 1 where it is not zero.
    Ones,
    /// Sums of two pairs of `f32`, which may flush subnormal numbers.
    AddPair {
        /// Whether they do.
        ftz: bool,
    },
    /// An atomic update that the machine has no instruction for.
    Atomic(Atom, DType),
    /// What stands in the shared memory of another block of the cluster, as it is in memory.
    ClusterLoad(DType),
    /// A word of so many fields of memory that is only read, which leaves the caches before others.
    Passing(CTy, u32),
    /// Has so many bytes of global memory copied into shared memory while the thread goes on.
    CopyWord(u32),
    /// Returns when what the thread has copied so is there.
    WaitForCopies,
    /// Returns when the launches before this one are done, and what they wrote is seen.
    WaitForLaunch,
    /// Lets the next launch take its place on the device, where it waits.
    LetNextBegin,
}

impl Helper {
    /// Name in the text; all begin with `cx_`.
    pub fn name(&self) -> String {
        let lanes = |n: &u32| if *n == 0 { String::new() } else { format!("x{n}") };
        let short = |d: &DType| d.short_name();
        let blocks =
            |v: &VTy, block: u32| if block == v.lanes { String::new() } else { format!("_by{block}") };
        match self {
            Helper::Load(d, n) => format!("cx_load_{}{}", short(d), lanes(n)),
            Helper::LoadEvery(d, n, step) => {
                let back = if *step < 0 { "back" } else { "" };
                format!("cx_load_{back}every{}_{}{}", step.abs(), short(d), lanes(n))
            }
            Helper::Store(d, n) => format!("cx_store_{}{}", short(d), lanes(n)),
            Helper::Stream(d, n) => format!("cx_stream_{}{}", short(d), lanes(n)),
            Helper::Drain => "cx_drain".to_owned(),
            Helper::Splat(v) => format!("cx_splat_{}", v.name()),
            Helper::Compare(comparison, v) => {
                let kind = match comparison {
                    Comparison::Eq => "eq",
                    Comparison::Ne => "ne",
                    Comparison::Lt => "lt",
                    Comparison::Le => "le",
                    Comparison::Gt => "gt",
                    Comparison::Ge => "ge",
                };
                format!("cx_{kind}_{}", v.name())
            }
            Helper::Lane(v) => format!("cx_lane_{}", v.name()),
            Helper::AnySet(v) => format!("cx_any_{}", v.name()),
            Helper::Select(v) => format!("cx_select_{}", v.name()),
            Helper::Min(v) => format!("cx_min_{}", v.name()),
            Helper::Max(v) => format!("cx_max_{}", v.name()),
            Helper::Piece(v, of, index) => format!("cx_piece{index}_of{of}_{}", v.name()),
            Helper::Keep(v) => format!("cx_keep_{}", v.name()),
            Helper::Kept(v, of, index) => format!("cx_kept{index}_of{of}_{}", v.name()),
            Helper::Concat(v) => format!("cx_concat_{}", v.name()),
            Helper::Zip(v, block, high) => {
                format!("cx_zip_{}_{}{}", if *high { "high" } else { "low" }, v.name(), blocks(v, *block))
            }
            Helper::Unzip(v, block, odd) => {
                format!("cx_unzip_{}_{}{}", if *odd { "odd" } else { "even" }, v.name(), blocks(v, *block))
            }
            Helper::Blend(v, block, lanes) => format!("cx_blend{lanes:x}_{}{}", v.name(), blocks(v, *block)),
            Helper::Around { of, block, step, first } => {
                format!("cx_around{step}_from{first}_{}{}", of.name(), blocks(of, *block))
            }
            Helper::Convert(v, to) => format!("cx_convert_{}_{}", v.name(), to.name()),
            Helper::Short(v) => format!("cx_short_{}", v.name()),
            Helper::Saturate(v, to) => format!("cx_saturate_{}_{}", v.name(), to.name()),
            Helper::Round(v, d) => format!("cx_round_{}_{}", v.name(), short(d)),
            Helper::OfTwo(intrinsic) => format!("cx_{}_of_two", intrinsic.name()),
            Helper::Odd(v) => format!("cx_odd_{}", v.name()),
            Helper::Divide(division, v) => {
                let kind = match division {
                    Division::Div => "div",
                    Division::Mod => "mod",
                    Division::FloorDiv => "floordiv",
                    Division::FloorMod => "floormod",
                };
                format!("cx_{kind}_{}", v.name())
            }
            Helper::Math(intrinsic, v) => format!("cx_{}_{}", intrinsic.name(), v.name()),
            Helper::ExpCapped(v) => format!("cx_exp_capped_{}", v.name()),
            Helper::ExpBounded(v) => format!("cx_exp_bounded_{}", v.name()),
            Helper::Alloc => "cx_alloc".to_owned(),
            Helper::Free => "cx_free".to_owned(),
            Helper::Fail => "cx_fail".to_owned(),
            Helper::Widen(d) => format!("cx_widen_{}", short(d)),
            Helper::WidenAll(d, n) => format!("cx_widen_{}{}", short(d), lanes(n)),
            Helper::Narrow(d) => format!("cx_narrow_{}", short(d)),
            Helper::NarrowAll(d, n) => format!("cx_narrow_{}{}", short(d), lanes(n)),
            Helper::Wrap(op, ty) => format!("cx_{}_{}", format!("{op:?}").to_lowercase(), ty.name()),
            Helper::OpaqueProduct(ty) => format!("cx_product_{}", ty.name()),
            Helper::Shift(op, v) => format!("cx_{}_by_any_{}", format!("{op:?}").to_lowercase(), v.name()),
            Helper::Fma(v, d) => format!("cx_fma_{}{}", short(d), lanes(&v.lanes)),
            Helper::AddExact(v) => format!("cx_add_exact_{}", v.name()),
            Helper::ExtremumPair(of, dtype) => {
                let op = if *of == Intrinsic::Max3 { "max" } else { "min" };
                format!("cx_{op}_{}x2", short(dtype))
            }
            Helper::Byte(ty, byte) => format!("cx_{}_of_byte{byte}", ty.name()),
            Helper::NonZero(byte) => format!("cx_nonzero_of_byte{byte}"),
            Helper::Ones => "cx_ones_of_bytes".to_owned(),
            Helper::AddPair { ftz } => format!("cx_add_{}f32x2", if *ftz { "ftz_" } else { "" }),
            Helper::Atomic(atom, d) => format!("cx_{}_{}", atom.name().replace("cuda.", ""), short(d)),
            Helper::ClusterLoad(d) => format!("cx_cluster_load_{}", short(d)),
            Helper::Passing(field, fields) => format!("cx_passing_{}x{fields}", field.name()),
            Helper::CopyWord(bytes) => format!("cx_copy_{bytes}"),
            Helper::WaitForCopies => "cx_wait_for_copies".to_owned(),
            Helper::WaitForLaunch => "cx_wait_for_launch".to_owned(),
            Helper::LetNextBegin => "cx_let_next_begin".to_owned(),
        }
    }
}

/// What a definition refers to: names of other helpers and of vector types, which are defined before it.
pub trait Needs {
    /// The name of another helper.
    fn helper(&mut self, helper: Helper) -> Result<String, crate::EmitError>;
    /// The name of a type.
    fn ty(&mut self, ty: VTy) -> String;
    /// The name of the same type, aligned to its lanes only and allowed to alias others: for memory.
    fn unaligned(&mut self, ty: VTy) -> String;
    /// The dialect that defines it.
    fn dialect(&self) -> &dyn Dialect;
}
