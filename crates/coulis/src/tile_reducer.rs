//! The reducers that tile calls name.
//!
//! A tile call keeps the types that its program declares (contract N4): sums and products accumulate in one
//! value of the accumulator's type, and are converted once, when they are stored. The catalogue's own sums
//! hold wider states, which is what makes `reduce` exact for any length; here the program fixes the order,
//! and with it the error. All other names are the catalogue's.

use coulis_ir::{BinaryOp, Claims, DType, ErrorBound, Expr, Field, Intrinsic, Lambda, Reducer, Var};
use coulis_reducers::ReducerRequest;

/// The reducer of a name for sources of these types, or `None` where there is none.
pub fn tile_reducer(name: &str, inputs: &[DType]) -> Option<Reducer> {
    match (name, inputs) {
        ("sum", [input]) => Some(folded("sum", *input, BinaryOp::Add, 0)),
        ("prod", [input]) => Some(folded("prod", *input, BinaryOp::Mul, 1)),
        ("max", [input]) if input.is_float() => Some(extremum("max", *input, Intrinsic::Max3)),
        ("min", [input]) if input.is_float() => Some(extremum("min", *input, Intrinsic::Min3)),
        _ => coulis_reducers::find(name).ok()?.build(&ReducerRequest::new(inputs)).ok(),
    }
}

/// The type in which elements of a type are accumulated.
fn accumulator(dtype: DType) -> DType {
    match dtype {
        DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 | DType::F32 => DType::F32,
        DType::F64 => DType::F64,
        DType::Bool | DType::I8 | DType::I16 | DType::I32 | DType::I64 => DType::I64,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => DType::U64,
    }
}

fn folded(name: &str, input: DType, op: BinaryOp, identity: i64) -> Reducer {
    let dtype = accumulator(input);
    let combine = |x: Expr, y: Expr| Expr::binary(op, x, y);
    one_field(name, input, dtype, &combine, Expr::constant(identity.into(), dtype))
}

/// The largest or smallest of floats, NaN where one is NaN: one value, which is the result too, so that an old value
/// can take part.
fn extremum(name: &str, input: DType, of_three: Intrinsic) -> Reducer {
    let dtype = accumulator(input);
    let identity = if of_three == Intrinsic::Max3 { f64::NEG_INFINITY } else { f64::INFINITY };
    let combine = |x: Expr, y: Expr| Expr::call(of_three, vec![x, y.clone(), y]);
    let reducer = one_field(name, input, dtype, &combine, Expr::float(identity, dtype));
    let claims = Claims { idempotent: true, ..reducer.claims };
    Reducer { claims, error: ErrorBound::Exact, ..reducer }
}

fn one_field(
    name: &str,
    input: DType,
    dtype: DType,
    combine: &dyn Fn(Expr, Expr) -> Expr,
    identity: Expr,
) -> Reducer {
    let (x, y) = (Var::new("x", dtype), Var::new("y", dtype));
    let body = vec![combine(x.expr(), y.expr())];
    let plain = Reducer::plain(Lambda { params: vec![x, y], body }, vec![identity]);
    let element = Var::new("x0", input);
    let lift = Lambda {
        body: vec![element.expr().cast(dtype)],
        params: vec![element, Var::new("position", DType::I64)],
    };
    let value = vec![Field { name: "value".to_owned(), dtype }];
    Reducer { name: name.to_owned(), lift, fields: value.clone(), results: value, ..plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_accumulate_in_one_value_of_the_accumulators_type() {
        for (input, wanted) in [
            (DType::F16, DType::F32),
            (DType::F32, DType::F32),
            (DType::F64, DType::F64),
            (DType::I8, DType::I64),
            (DType::U32, DType::U64),
        ] {
            for name in ["sum", "prod"] {
                let reducer = tile_reducer(name, &[input]).expect("there is one");
                assert_eq!((reducer.arity(), reducer.fields[0].dtype), (1, wanted));
                assert_eq!(reducer.input_dtypes(), [input]);
            }
        }
        assert!(tile_reducer("logsumexp", &[DType::F32]).is_some());
        assert!(tile_reducer("no_such", &[DType::F32]).is_none());
    }
}
