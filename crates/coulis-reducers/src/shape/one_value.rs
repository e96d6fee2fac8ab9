//! Folds whose state is one value, as tile calls have them: of the accumulator's type, and the result too, so that an old value
//! can take part.

use coulis_ir::{BinaryOp, Claims, DType, ErrorBound, Expr, Field, Lambda, Reducer, Var};

use crate::shape::extremum::End;

/// The type in which elements of a type are accumulated.
fn accumulator(dtype: DType) -> DType {
    match dtype {
        DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 | DType::F32 => DType::F32,
        DType::F64 => DType::F64,
        DType::Bool | DType::I8 | DType::I16 | DType::I32 | DType::I64 => DType::I64,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => DType::U64,
    }
}

/// Sums and products.
pub(crate) fn folded(name: &str, input: DType, op: BinaryOp, identity: i64) -> Reducer {
    let dtype = accumulator(input);
    let combine = |x: Expr, y: Expr| Expr::binary(op, x, y);
    one_field(name, input, dtype, &combine, Expr::constant(identity.into(), dtype))
}

/// The largest or smallest of floats, NaN where one is NaN. Of integers the state is one value as it is.
pub(crate) fn extremum(name: &str, input: DType, end: End) -> Option<Reducer> {
    if !input.is_float() {
        return None;
    }
    let dtype = accumulator(input);
    let combine = |x: Expr, y: Expr| Expr::call(end.of_three(), vec![x, y.clone(), y]);
    let reducer = one_field(name, input, dtype, &combine, end.identity(dtype));
    let claims = Claims { idempotent: true, ..reducer.claims };
    Some(Reducer { claims, error: ErrorBound::Exact, ..reducer })
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
    use crate::{ReducerRequest, find};

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
                let reducer = find(name).expect("it is in the catalogue").build_in_tiles(&[input]);
                let reducer = reducer.expect("it takes the type");
                assert_eq!((reducer.arity(), reducer.fields[0].dtype), (1, wanted));
                assert_eq!(reducer.input_dtypes(), [input]);
            }
        }
    }

    #[test]
    fn all_others_are_what_they_are_elsewhere() {
        for (name, input) in [("logsumexp", DType::F32), ("max", DType::I32)] {
            let entry = find(name).expect("it is in the catalogue");
            let elsewhere = entry.build(&ReducerRequest::new(&[input])).expect("it takes the type");
            let in_tiles = entry.build_in_tiles(&[input]).expect("it takes the type");
            assert_eq!(in_tiles.fields, elsewhere.fields);
        }
    }
}
