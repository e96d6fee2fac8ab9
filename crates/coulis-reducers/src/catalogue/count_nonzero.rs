//! Number of non-zero elements.

use coulis_ir::{DType, ErrorBound, Expr, Reducer};

use crate::builder::Builder;
use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::answer::{Answer, int};
use crate::exact::moments;
use crate::shape::flag::non_zero;
use crate::shape::total::BYTE_RUN;

/// Number of elements that are not zero; NaN is non-zero.
pub static ENTRY: Entry = Entry {
    name: "count_nonzero",
    summary: "Number of elements that are not zero.",
    details: "Exact. NaN counts as non-zero.",
    n_inputs: 1,
    empty: Empty::Value("0"),
    takes_init: false,
    takes_ddof: false,
    counts: true,
    make,
    exact,
    from_moments: Some(|m, _| moments::int(m.n_nonzero as i128)),
    in_tiles: |_| None,
};

/// Longest run that counts in `int16`, and in `int32`.
const HALF_RUN: u32 = 1 << 14;
const LONGEST_RUN: u32 = 1 << 30;

/// The type that runs count in, and the longest one: long runs do in one as wide as the elements that are compared.
fn counter(request: &ReducerRequest) -> (DType, u32) {
    let is_counted = request.long && !request.has_float();
    match request.inputs[0].bytes() {
        1 if is_counted => (DType::I8, BYTE_RUN),
        2 if is_counted => (DType::I16, HALF_RUN),
        _ => (DType::I32, LONGEST_RUN),
    }
}

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    let mut b = Builder::new("count_nonzero", request);
    let one = |v| Expr::constant(v, DType::I64);
    let lift = Expr::select(non_zero(&b), one(1), one(0));
    let count = b.field("nonzero", one(0), lift);
    b.combine(&count, &count.left + &count.right);
    let (dtype, longest) = counter(request);
    let (zero, one) = (Expr::constant(0, dtype), Expr::constant(1, dtype));
    let run = b.run_field(&count, zero.clone(), Expr::select(non_zero(&b), one, zero));
    b.run_step(&count, &run.left + &run.right, longest);
    b.close(&count, &count.left + &run.left.cast(DType::I64));
    Ok(b.finish(ErrorBound::Exact, vec![("value", DType::I64, count.left)]))
}

fn exact(case: &Case) -> Answer {
    int(case.column(0).filter(|v| v.is_true()).count() as i128)
}
