//! Logarithm of softmax.

use coulis_ir::{DType, Expr, Intrinsic};

use super::softmax::{FACTOR, TwoFolds, exact_shift_and_sum, no_quotient};
use crate::catalogue::logsumexp;
use crate::exact::MappedRow;
use crate::normalization::{Draft, NormalizationEntry, NormalizationError, Parts};

/// `x - log(sum(exp(x)))` without overflow.
pub static ENTRY: NormalizationEntry = NormalizationEntry {
    name: "log_softmax",
    summary: "Elements less the logarithm of the sum of the row's exponentials.",
    details: "Computed as `(x - shift) - log(sum(exp(x - shift)))`, shift and sum being the state of `logsumexp`; on a CPU, of \
              rows and columns that near caches hold, the greatest and a sum of their own. A row that \
              holds NaN or +inf, or nothing but -inf, gives NaN; -inf beside finite elements gives -inf, and so does an element that `where` \
              leaves out. Integers of 64 \
              bits are subtracted before anything is rounded, and so are elements where the result is scaled or of \
              `float64`: what `float32` does not hold is no infinity then. The error is at most \
              `40 * eps * (1 + |x - shift| / 16 + log(sum))`, with `eps` of `float32` for elements of at most 32 bits, \
              else of `float64`.",
    parameters: &[],
    beside: &[],
    takes_ddof: false,
    left_out: Some(f64::NEG_INFINITY),
    example: ">>> import coulis, numpy as np\n\
              >>> coulis.log_softmax(np.array([1000.0, -1000.0]))\n\
              array([    0., -2000.])",
    make,
    exact,
};

fn exact(row: &MappedRow) -> Vec<f64> {
    let of_row = exact_shift_and_sum(row);
    let of = |v: &f64| of_row.map_or(f64::NAN, |(max, total)| v - max - total.ln());
    row.elements.iter().map(of).collect()
}

/// What is left of the elements is kept, and exponentials are taken of it once the greatest is known: one fold takes them about a
/// shift that it moves.
const FOLDS: TwoFolds = TwoFolds {
    kept: Expr::clone,
    absent: f64::NEG_INFINITY,
    exponential: logsumexp::bounded_exp,
    of_row: ("log", |total| Expr::call1(Intrinsic::Log, total.clone())),
    value: |less, log| less - log,
};

fn make(parts: &Parts) -> Result<Draft, NormalizationError> {
    let (reducer, shift, total) = logsumexp::shift_and_sum(&parts.request.fold)?;
    let nan = Expr::float(f64::NAN, total.dtype());
    let none = no_quotient(&shift, &total);
    let dtype = if shift.dtype() == DType::F32 { DType::F32 } else { DType::F64 };
    let log = Expr::call1(Intrinsic::Log, total.cast(dtype)).cast(nan.dtype());
    let log = Expr::select(none, nan, log);
    let (shift, of_row, d) = parts.less("shift", shift);
    let (log, log_of_row) = parts.row("log", log);
    let log_of_element = log.expr().cast(parts.result());
    let value = &d - &log_of_element;
    let float = |v: f64| Expr::float(v, parts.result());
    let scale = Expr::call1(Intrinsic::Abs, d) * float(1.0 / 16.0) + (log_of_element + float(1.0));
    Ok(Draft {
        reducer,
        rows: vec![of_row, log_of_row],
        row_vars: vec![shift, log],
        value,
        staged: FOLDS.staged(parts)?,
        bound: Some((FACTOR, scale)),
    })
}
