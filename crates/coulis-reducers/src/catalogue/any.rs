//! Whether any element is non-zero.

use coulis_ir::{BinaryOp, DType, ErrorBound, Expr, Reducer};

use crate::builder::Builder;
use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::answer::{Answer, int};
use crate::exact::moments;
use crate::shape::flag::{flag_dtype, is_set, mask, non_zero};

/// Whether any element is non-zero. NaN is non-zero.
pub static ENTRY: Entry = Entry {
    name: "any",
    summary: "Whether any element is non-zero.",
    details: "Exact. NaN counts as non-zero.",
    n_inputs: 1,
    empty: Empty::Value("false"),
    takes_init: true,
    takes_ddof: false,
    counts: false,
    make,
    exact,
    from_moments: Some(|m, _| moments::int(m.n_nonzero > 0)),
    in_tiles: |_| None,
};

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    let mut b = Builder::new("any", request);
    b.idempotent();
    let dtype = flag_dtype(b.element(0).dtype());
    let lift = mask(non_zero(&b), dtype);
    let flag = b.field("flag", Expr::constant(0, dtype), lift);
    b.combine(&flag, Expr::binary(BinaryOp::BitOr, flag.left.clone(), flag.right.clone()));
    b.settled(is_set(&flag.left));
    Ok(b.finish(ErrorBound::Exact, vec![("value", DType::Bool, is_set(&flag.left))]))
}

fn exact(case: &Case) -> Answer {
    int(i128::from(case.column(0).any(|v| v.is_true())))
}
