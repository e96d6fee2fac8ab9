//! Dot product.

use coulis_ir::{DType, Reducer};

use crate::builder::Builder;
use crate::entry::{Empty, Entry, ReducerError, ReducerRequest};
use crate::exact::Case;
use crate::exact::answer::{Answer, of_sum};
use crate::shape::total::{Degree, Total, integral};

/// Sum of the products of two inputs, multiplied after widening.
pub static ENTRY: Entry = Entry {
    name: "dot",
    summary: "Sum of the products of two inputs.",
    details: "Elements are multiplied after widening. Accumulators as for `sum`, of the two types promoted; the \
              error is at most `32 * eps * sum|x * w|`. Inputs of two types give the type that both promote to: that of \
              the float beside integers, the wider of two floats, `float32` of `float16` and `bfloat16`; integers and \
              bools, signed or not, give `int64`, which wraps.",
    n_inputs: 2,
    empty: Empty::Value("0"),
    takes_init: false,
    takes_ddof: false,
    counts: false,
    make,
    exact,
    from_moments: None,
    in_tiles: |_| None,
};

fn make(request: &ReducerRequest) -> Result<Reducer, ReducerError> {
    let accumulator = integral("dot", request)?;
    let mut b = Builder::new("dot", request);
    let product = |b: &Builder, dtype| b.element(0).cast(dtype) * b.element(1).cast(dtype);
    let sum = Total::add(&mut b, "dot", &product, Degree::Two, accumulator);
    let result = if request.has_float() { request.promoted() } else { DType::I64 };
    Ok(b.finish(accumulator.error(), vec![("value", result, sum.value())]))
}

fn exact(case: &Case) -> Answer {
    if case.sums_are_floats() {
        of_sum(&case.products(0, 1))
    } else {
        case.wrapping(|x| x[0].wrapping_mul(x[1]))
    }
}
