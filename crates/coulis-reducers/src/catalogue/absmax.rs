//! Largest magnitude.

use coulis_ir::{DType, Expr, Reducer};

use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::answer::{self, Answer};
use crate::exact::moments;
use crate::shape::extremum::{End, extremum};
use crate::shape::total::magnitude;

/// Largest magnitude of the elements. Exact; the magnitude of the least integer is right too.
pub static ENTRY: Entry = Entry {
    name: "absmax",
    summary: "Largest magnitude of the elements.",
    details: "Exact. Integers give the unsigned type of their width, so that the magnitude of the least one fits: \
              `int8` -128 gives `uint8` 128. NaN as for `max`.",
    n_inputs: 1,
    empty: Empty::Refused,
    takes_init: true,
    takes_ddof: false,
    counts: false,
    make,
    exact,
    from_moments: Some(|m, _| moments::exactly([m.largest()])),
    in_tiles: |_| None,
};

/// The type that holds every magnitude: the unsigned one of the same width.
fn unsigned(dtype: DType) -> DType {
    match dtype {
        DType::Bool | DType::I8 | DType::U8 => DType::U8,
        DType::I16 | DType::U16 => DType::U16,
        DType::I32 | DType::U32 => DType::U32,
        DType::I64 | DType::U64 => DType::U64,
        DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 | DType::F32 | DType::F64 => dtype,
    }
}

fn measure(x: Expr) -> Expr {
    let dtype = unsigned(x.dtype());
    magnitude(x, dtype)
}

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    Ok(extremum("absmax", request, End::Greatest, (measure, 0.0), unsigned(request.inputs[0])))
}

fn exact(case: &Case) -> Answer {
    answer::extremum(case, End::Greatest, answer::abs)
}
