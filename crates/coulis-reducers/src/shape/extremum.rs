//! Largest and smallest values.
//!
//! NaN by contract N8 costs one comparison and one `or` an element: the extremum itself is folded by a plain
//! comparison, which passes over NaN, and a flag that min, max and absmax share tells at the end. Runs keep the sum
//! of magnitudes instead of the flag, which is NaN when one of them is, as none is negative. When NaN is
//! ignored the identity is NaN ("nothing yet"), so that a row of NaN gives NaN and a row of -inf gives -inf.

use coulis_ir::{DType, ErrorBound, Expr, Intrinsic, Reducer};

use crate::builder::Builder;
use crate::entry::ReducerRequest;
use crate::shape::flag::{add_nan_seen, is_set};

/// Which end of the order is sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The smallest value.
    Least,
    /// The largest value.
    Greatest,
}

impl End {
    /// The value that every other beats or equals: an infinity for floats, a limit for integers.
    pub(crate) fn identity(self, dtype: DType) -> Expr {
        match (dtype.int_range(), self) {
            (None, End::Greatest) => Expr::float(f64::NEG_INFINITY, dtype),
            (None, End::Least) => Expr::float(f64::INFINITY, dtype),
            (Some((min, _)), End::Greatest) => Expr::int_of(min, dtype),
            (Some((_, max)), End::Least) => Expr::int_of(max, dtype),
        }
    }

    /// The value that beats or equals every other of a narrow type, which a long row is likely to hold; `None` of wider ones.
    pub(crate) fn last(self, input: DType, dtype: DType) -> Option<Expr> {
        let (least, greatest) = match input {
            DType::Bool => (0, 1),
            // Magnitudes are kept in the unsigned type.
            DType::I8 | DType::U8 if input != dtype => (0, -input.int_range()?.0),
            DType::I8 | DType::U8 => dtype.int_range()?,
            DType::I16
            | DType::I32
            | DType::I64
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::F8E4M3
            | DType::F8E5M2
            | DType::F16
            | DType::BF16
            | DType::F32
            | DType::F64 => return None,
        };
        Some(Expr::int_of(if self == End::Greatest { greatest } else { least }, dtype))
    }

    /// Whether `a` is nearer this end than `b`; false with NaN.
    pub(crate) fn beats(self, a: &Expr, b: &Expr) -> Expr {
        match self {
            End::Greatest => a.clone().gt(b.clone()),
            End::Least => a.clone().lt(b.clone()),
        }
    }

    /// Whether `a` is nearer this end than `b` or equal; false with NaN.
    pub(crate) fn reaches(self, a: &Expr, b: &Expr) -> Expr {
        match self {
            End::Greatest => a.clone().ge(b.clone()),
            End::Least => a.clone().le(b.clone()),
        }
    }

    /// The nearer of two; NaN where `nan` says that there may be one and either is. `float32` has an operation for that.
    pub(crate) fn of_any(self, a: &Expr, b: &Expr, nan: bool) -> Expr {
        match (nan, a.dtype()) {
            (false, _) => self.of(b, a),
            (true, DType::F32) => Expr::call(self.of_three(), vec![a.clone(), b.clone(), b.clone()]),
            (true, _) => {
                let is_nan = |x: &Expr| Expr::call1(Intrinsic::IsNan, x.clone());
                let keeps = self.reaches(a, b).or(is_nan(a));
                Expr::select(keeps, a.clone(), b.clone())
            }
        }
    }

    /// The operation that finds the nearest of three, NaN where one is.
    pub(crate) fn of_three(self) -> Intrinsic {
        match self {
            End::Greatest => Intrinsic::Max3,
            End::Least => Intrinsic::Min3,
        }
    }

    /// `a` if it beats `b`, else `b`.
    fn of(self, a: &Expr, b: &Expr) -> Expr {
        match self {
            End::Greatest => a.clone().max(b.clone()),
            End::Least => a.clone().min(b.clone()),
        }
    }
}

/// The reducer of the extremum of `measure` of the elements, with results of type `result`. `least`: the
/// float of which the measure beats none.
pub(crate) fn extremum(
    name: &'static str,
    request: &ReducerRequest,
    end: End,
    (measure, least): (fn(Expr) -> Expr, f64),
    result: DType,
) -> Reducer {
    let mut b = Builder::new(name, request);
    b.idempotent();
    let lift = measure(b.element(0));
    let dtype = lift.dtype();
    let value = if b.sees_nan() {
        b.neutral(least);
        let value = b.field("value", end.identity(dtype), lift);
        b.combine(&value, end.of(&value.right, &value.left));
        let seen = add_nan_seen(&mut b);
        if request.twice && dtype == DType::F32 {
            // A NaN in a run is seen by the flag, and not taken into the state.
            b.run_step(&value, end.of_any(&value.left, &value.right, true), 1 << 30);
            b.close(&value, end.of(&value.right, &value.left));
        }
        Expr::select(is_set(&seen.left), Expr::float(f64::NAN, dtype), value.left)
    } else if dtype.is_float() {
        let value = b.field("value", Expr::float(f64::NAN, dtype), lift);
        let nothing_yet = Expr::call1(Intrinsic::IsNan, value.left.clone());
        let take = end.beats(&value.right, &value.left).or(nothing_yet);
        b.combine(&value, Expr::select(take, value.right.clone(), value.left.clone()));
        value.left
    } else {
        let value = b.field("value", end.identity(dtype), lift);
        b.combine(&value, end.of(&value.right, &value.left));
        if let Some(last) = end.last(request.inputs[0], dtype) {
            b.settled(end.reaches(&value.left, &last));
        }
        value.left
    };
    b.finish(ErrorBound::Exact, vec![("value", result, value)])
}
