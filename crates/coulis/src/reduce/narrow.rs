//! Results that are positions or numbers of elements, and types that do not hold them all.
//!
//! How large they may be is known before anything runs, so a type that is too narrow is refused whatever the data is. Sums
//! wrap in a type that the caller asks for, as those of NumPy and PyTorch do; positions never do there.

use coulis_ir::{DType, NanPolicy};
use coulis_plan::Spec;
use coulis_reducers::Product;

use crate::error::Error;
use crate::statistic::Statistic;

/// Positions and numbers of elements are never stored in a type that some of them do not fit: what wraps is a wrong answer,
/// whatever the data. Outputs without elements are known by a position of -1, which the type must tell from positions.
pub(super) fn refuse(statistics: &[Statistic], product: &Product, spec: &Spec) -> Result<(), Error> {
    let may_be_empty = spec.mask || spec.reducer.nan == NanPolicy::Ignore;
    let n = spec.problem.reduce_len;
    for (statistic, part) in statistics.iter().zip(&product.parts) {
        let output = &spec.outputs[part.results.end - 1];
        let dtype = output.dtype;
        let name = statistic.name();
        let refused = |what: &str, most: i64| {
            let message = format!(
                "`{name}` over {n} elements gives {what} up to {most}, and {dtype} holds {}; int64 holds all",
                held_words(dtype)
            );
            Err(Error::user("reduce/dtype", message))
        };
        // A part of a number, or what it is added to, is a float that is rounded as others are.
        let is_scaled = dtype.is_float() && (output.alpha != 1.0 || output.beta != 0.0);
        if statistic.counts() && !is_scaled && !holds_integers(dtype, 0, n) {
            return refused("numbers", n);
        }
        if !statistic.empty_index_is_error() {
            continue;
        }
        let last = (n - 1).max(0);
        if !holds_integers(dtype, 0, last) {
            return refused("positions", last);
        }
        if may_be_empty && !holds_integers(dtype, -1, last) {
            let message = format!(
                "`{name}` of masked elements cannot be stored as {dtype}, which does not tell positions below {n} \
                 from none; int64 does"
            );
            return Err(Error::unsupported("reduce/dtype", message));
        }
    }
    Ok(())
}

/// Whether a type holds all integers from `lo` to `hi`, of which none is below -1.
fn holds_integers(dtype: DType, lo: i64, hi: i64) -> bool {
    let (least, most) = dtype.int_range().unwrap_or_else(|| exact_integers(dtype));
    least <= i128::from(lo) && i128::from(hi) <= most
}

/// The range of integers that a float type holds all of.
fn exact_integers(dtype: DType) -> (i128, i128) {
    let digits = match dtype {
        DType::F8E5M2 => 3,
        DType::F8E4M3 => 4,
        DType::BF16 => 8,
        DType::F16 => 11,
        DType::F32 => 24,
        DType::F64
        | DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64 => 53,
    };
    (-(1 << digits), 1 << digits)
}

fn held_words(dtype: DType) -> String {
    match dtype.int_range() {
        Some((least, most)) => format!("{least} to {most}"),
        None => format!("every integer up to {} only", exact_integers(dtype).1),
    }
}
