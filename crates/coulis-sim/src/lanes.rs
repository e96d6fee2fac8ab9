//! Arithmetic on the lanes of a warp: one function a operation and element type, applied to all lanes at once.
//!
//! A lane holds 64 bits. Integers are kept sign- or zero-extended, bools as 0 or 1, `float32` as its bits, `float64`
//! as its bits, and the narrower floats as the bits of the `float64` of the same value, rounded to their grid after
//! each operation. This is the simulator's own reading of the operations in `coulis_ir::op` (contract N15): nothing here is
//! shared with the simplifier, the executor or the emitters, only exp, log and erf are those of `coulis_ir::math`.

mod call;
mod cast;
mod float;
mod int;

use coulis_ir::{BinaryOp, DType};

pub(crate) use call::{Call, call, extremum};
pub(crate) use cast::{cast, decode, encode};

/// Values of all lanes of a warp.
pub(crate) type Lanes<const W: usize> = [u64; W];
/// A function of one operand.
pub(crate) type F1<const W: usize> = fn(&Lanes<W>) -> Lanes<W>;
/// A function of two operands.
pub(crate) type F2<const W: usize> = fn(&Lanes<W>, &Lanes<W>) -> Lanes<W>;
/// A function of three operands.
pub(crate) type F3<const W: usize> = fn(&Lanes<W>, &Lanes<W>, &Lanes<W>) -> Lanes<W>;

/// A type that a lane may hold.
pub(crate) trait Number: Copy {
    /// From the bits of a lane.
    fn of(bits: u64) -> Self;
    /// To the bits of a lane.
    fn bits(self) -> u64;
}

#[inline(always)]
fn map1<A: Number, D: Number, const W: usize>(a: &Lanes<W>, f: impl Fn(A) -> D) -> Lanes<W> {
    let mut d = [0; W];
    for lane in 0..W {
        d[lane] = f(A::of(a[lane])).bits();
    }
    d
}

#[inline(always)]
fn map2<A: Number, D: Number, const W: usize>(a: &Lanes<W>, b: &Lanes<W>, f: impl Fn(A, A) -> D) -> Lanes<W> {
    let mut d = [0; W];
    for lane in 0..W {
        d[lane] = f(A::of(a[lane]), A::of(b[lane])).bits();
    }
    d
}

#[inline(always)]
fn map3<A: Number, D: Number, const W: usize>(
    a: &Lanes<W>,
    b: &Lanes<W>,
    c: &Lanes<W>,
    f: impl Fn(A, A, A) -> D,
) -> Lanes<W> {
    let mut d = [0; W];
    for lane in 0..W {
        d[lane] = f(A::of(a[lane]), A::of(b[lane]), A::of(c[lane])).bits();
    }
    d
}

impl Number for bool {
    #[inline(always)]
    fn of(bits: u64) -> bool {
        bits != 0
    }

    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self)
    }
}

/// A binary operation on operands of that type; `None` where it has no meaning. Division by zero gives 0.
pub(crate) fn binary<const W: usize>(op: BinaryOp, dtype: DType) -> Option<F2<W>> {
    match dtype {
        DType::Bool => boolean(op),
        DType::I8 => int::binary::<i8, W>(op),
        DType::I16 => int::binary::<i16, W>(op),
        DType::I32 => int::binary::<i32, W>(op),
        DType::I64 => int::binary::<i64, W>(op),
        DType::U8 => int::binary::<u8, W>(op),
        DType::U16 => int::binary::<u16, W>(op),
        DType::U32 => int::binary::<u32, W>(op),
        DType::U64 => int::binary::<u64, W>(op),
        DType::F8E4M3 => float::binary::<float::F8E4M3, W>(op),
        DType::F8E5M2 => float::binary::<float::F8E5M2, W>(op),
        DType::F16 => float::binary::<float::F16, W>(op),
        DType::BF16 => float::binary::<float::BF16, W>(op),
        DType::F32 => float::binary::<f32, W>(op),
        DType::F64 => float::binary::<f64, W>(op),
    }
}

/// Bools add, subtract and multiply as integers that are taken for whether they are non-zero.
fn boolean<const W: usize>(op: BinaryOp) -> Option<F2<W>> {
    Some(match op {
        BinaryOp::Add | BinaryOp::Or | BinaryOp::BitOr | BinaryOp::Max => {
            |a, b| map2(a, b, |x: bool, y| x | y)
        }
        BinaryOp::Sub | BinaryOp::BitXor | BinaryOp::Ne => |a, b| map2(a, b, |x: bool, y| x ^ y),
        BinaryOp::Mul | BinaryOp::And | BinaryOp::BitAnd | BinaryOp::Min => {
            |a, b| map2(a, b, |x: bool, y| x & y)
        }
        BinaryOp::Eq => |a, b| map2(a, b, |x: bool, y| x == y),
        BinaryOp::Lt => |a, b| map2(a, b, |x: bool, y| !x & y),
        BinaryOp::Le => |a, b| map2(a, b, |x: bool, y| x <= y),
        BinaryOp::Gt => |a, b| map2(a, b, |x: bool, y| x & !y),
        BinaryOp::Ge => |a, b| map2(a, b, |x: bool, y| x >= y),
        BinaryOp::Div | BinaryOp::FloorDiv => |a, b| map2(a, b, |x: bool, y| x & y),
        BinaryOp::TruncMod | BinaryOp::FloorMod => |a, b| map2(a, b, |_: bool, _| false),
        BinaryOp::Shl | BinaryOp::Shr => return None,
    })
}

/// `a` where the bool is true, else `b`.
pub(crate) fn select<const W: usize>(cond: &Lanes<W>, a: &Lanes<W>, b: &Lanes<W>) -> Lanes<W> {
    let mut d = [0; W];
    for lane in 0..W {
        d[lane] = if cond[lane] != 0 { a[lane] } else { b[lane] };
    }
    d
}

/// Logical not.
pub(crate) fn not<const W: usize>(a: &Lanes<W>) -> Lanes<W> {
    map1(a, |x: bool| !x)
}

/// A binary operation on the values of one lane.
pub(crate) fn one<const W: usize>(f: F2<W>, a: u64, b: u64) -> u64 {
    f(&[a; W], &[b; W])[0]
}

#[cfg(test)]
mod tests {
    use coulis_ir::eval::{Value, eval_binary, eval_call};
    use coulis_ir::{BinaryOp, DType, Intrinsic};

    use super::*;

    fn lane(value: Value, dtype: DType) -> u64 {
        match value {
            Value::Int(v) => v as i64 as u64,
            Value::Float(v) if dtype == DType::F32 => u64::from((v as f32).to_bits()),
            Value::Float(v) => v.to_bits(),
        }
    }

    fn value(bits: u64, dtype: DType) -> Value {
        match dtype {
            DType::F32 => Value::Float(f64::from(f32::from_bits(bits as u32))),
            d if d.is_float() => Value::Float(f64::from_bits(bits)),
            DType::U64 => Value::Int(i128::from(bits)),
            _ => Value::Int(i128::from(bits as i64)),
        }
    }

    fn samples(dtype: DType) -> Vec<Value> {
        let numbers =
            [0.0, -0.0, 1.0, -1.0, 0.1, 3.5, -7.25, 1e-7, 448.0, 6e4, 1e30, f64::INFINITY, f64::NAN];
        match dtype.int_range() {
            None => numbers.iter().map(|v| Value::Float(dtype.round_float(*v))).collect(),
            Some((lo, hi)) => {
                let all = [lo, lo + 1, -7, -2, -1, 0, 1, 2, 3, 5, 7, 31, hi / 3, hi - 1, hi];
                all.iter().filter(|v| (lo..=hi).contains(v)).map(|v| Value::Int(*v)).collect()
            }
        }
    }

    #[test]
    fn operations_agree_with_the_plain_evaluator_on_edges() {
        for dtype in DType::ALL.into_iter().filter(|d| *d != DType::Bool) {
            for (op, x, y) in BinaryOp::ALL.into_iter().flat_map(|op| {
                let pairs =
                    samples(dtype).into_iter().flat_map(|x| samples(dtype).into_iter().map(move |y| (x, y)));
                pairs.map(move |(x, y)| (op, x, y))
            }) {
                let Ok(want) = eval_binary(op, x, y, dtype) else { continue };
                let f = binary::<32>(op, dtype).unwrap();
                let to = if op.is_comparison() || matches!(op, BinaryOp::And | BinaryOp::Or) {
                    DType::Bool
                } else {
                    dtype
                };
                let found = value(one(f, lane(x, dtype), lane(y, dtype)), to);
                assert!(found.same(want), "{dtype} {op:?} {x:?} {y:?}: {found:?}, not {want:?}");
            }
        }
    }

    #[test]
    fn conversions_agree_with_the_plain_evaluator_on_edges() {
        for from in DType::ALL {
            for to in DType::ALL.into_iter().filter(|to| *to != from) {
                let f = cast::<32>(from, to);
                for x in samples(from) {
                    let found = value(f(&[lane(x, from); 32])[7], to);
                    assert!(
                        found.same(x.cast(to)),
                        "{from} to {to} of {x:?}: {found:?}, not {:?}",
                        x.cast(to)
                    );
                }
            }
        }
    }

    #[test]
    fn memory_gives_back_what_was_put_into_it() {
        for dtype in DType::ALL {
            for x in samples(dtype) {
                let bits = encode::<32>(dtype)(&[lane(x, dtype); 32]);
                let kept = if dtype.bytes() == 8 {
                    bits
                } else {
                    bits.map(|b| b & ((1 << (8 * dtype.bytes())) - 1))
                };
                let found = value(decode::<32>(dtype)(&kept)[3], dtype);
                assert!(found.same(x), "{dtype} {x:?}: {found:?}");
            }
        }
    }

    #[test]
    fn exact_functions_agree_with_the_plain_evaluator() {
        let exact = [
            Intrinsic::Sqrt,
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
        ];
        for dtype in DType::ALL.into_iter().filter(|d| *d != DType::Bool) {
            for (intrinsic, x) in
                exact.into_iter().flat_map(|i| samples(dtype).into_iter().map(move |x| (i, x)))
            {
                let Ok(want) = eval_call(intrinsic, &[x], dtype) else { continue };
                let to = if intrinsic.is_predicate() { DType::Bool } else { dtype };
                let bits = match call::<32>(intrinsic, dtype) {
                    Some(Call::One(f)) => f(&[lane(x, dtype); 32])[0],
                    Some(Call::Same) => lane(x, dtype),
                    _ => panic!("{intrinsic:?} is not of one argument on {dtype}"),
                };
                let found = value(bits, to);
                assert!(found.same(want), "{dtype} {intrinsic:?} {x:?}: {found:?}, not {want:?}");
            }
        }
    }

    #[test]
    fn extrema_of_three_agree_with_the_plain_evaluator() {
        for dtype in DType::ALL.into_iter().filter(|d| d.is_float()) {
            let values = samples(dtype);
            for intrinsic in [Intrinsic::Max3, Intrinsic::Min3] {
                let Some(Call::Three(f)) = call::<32>(intrinsic, dtype) else {
                    panic!("{intrinsic:?} is not of three arguments on {dtype}");
                };
                for (x, y, z) in values.iter().flat_map(|x| {
                    let values = &values;
                    values.iter().flat_map(move |y| values.iter().map(move |z| (*x, *y, *z)))
                }) {
                    let want = eval_call(intrinsic, &[x, y, z], dtype).unwrap();
                    let lanes = [x, y, z].map(|v| [lane(v, dtype); 32]);
                    let found = value(f(&lanes[0], &lanes[1], &lanes[2])[0], dtype);
                    assert!(found.same(want), "{dtype} {intrinsic:?} {x:?} {y:?} {z:?}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn a_shift_past_the_width_gives_what_the_device_gives() {
        let check = |op, dtype, a: i64, by: i64, want: i64| {
            assert_eq!(one(binary::<32>(op, dtype).unwrap(), a as u64, by as u64) as i64, want);
        };
        check(BinaryOp::Shl, DType::U32, 65535, 32, 0);
        check(BinaryOp::Shl, DType::U32, 65535, 16, 0xffff_0000);
        check(BinaryOp::Shr, DType::I32, -5, 40, -1);
        check(BinaryOp::Shr, DType::U32, 5, 40, 0);
    }
}
