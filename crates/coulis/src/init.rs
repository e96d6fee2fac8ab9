//! Initial values: folded into the result of their statistic as one more element, once.
//!
//! A fold that starts from a value has an answer where no element takes part, so extrema of empty sets are legal with one
//! (contract N11). The value is one of the type of the input, or of what a prologue makes of it; other statistics of the call do not see it, also where they
//! share state.

use coulis_io::Scalar;
use coulis_ir::eval::Value;
use coulis_ir::{DType, Expr, Lambda, NanPolicy, Reducer, Var};
use coulis_reducers::Product;

use crate::error::Error;
use crate::request::Request;
use crate::statistic::Statistic;
use crate::verify::value;

/// The initial value of each statistic, of the type of what is folded; `None` where the fold starts from nothing.
pub(crate) fn inits(
    request: &Request,
    statistics: &[Statistic],
    dtype: DType,
) -> Result<Vec<Option<Value>>, Error> {
    let unknown = request.init.keys().find(|name| !request.ops.contains(name));
    if let Some(name) = unknown {
        let message = format!(
            "an initial value is given for `{name}`, which is not among the statistics asked for: {}",
            request.ops.join(", ")
        );
        return Err(Error::user("reduce/init", message));
    }
    statistics
        .iter()
        .map(|s| request.init.get(s.name()).map(|v| legal(s, *v, request, dtype)).transpose())
        .collect()
}

/// The value as one of the type of what is folded, if the statistic takes it.
fn legal(statistic: &Statistic, given: Scalar, request: &Request, dtype: DType) -> Result<Value, Error> {
    let whose = if request.prologue.is_some() { "the type of what is folded," } else { "the input's type" };
    let refused = |message: String| Err(Error::user("reduce/init", message));
    if !statistic.takes_init() {
        let takers = coulis_reducers::CATALOGUE.iter().filter(|e| e.takes_init);
        let names: Vec<&str> = takers.map(|e| e.name).collect();
        return refused(format!(
            "`{}` takes no initial value; those that do are {}",
            statistic.name(),
            names.join(", ")
        ));
    }
    let wide = value(given);
    if wide.is_nan() && request.nan == NanPolicy::Ignore {
        return refused(format!("the initial value of `{}` is NaN, and NaN is ignored", statistic.name()));
    }
    let own = wide.cast(dtype);
    let is_finite = |value: &Value| value.as_f64().is_finite();
    if dtype.is_float() && !is_finite(&own) && (is_finite(&wide) || own.is_nan() != wide.is_nan()) {
        return refused(format!(
            "the initial value of `{}` is {}, and the largest finite value of {whose} {dtype} is {:?}",
            statistic.name(),
            in_words(given),
            dtype.max_finite()
        ));
    }
    // A float that the type does not hold is cast to the nearest integer that it holds, which may be the same `float64`.
    let is_held = match (own, wide) {
        (Value::Int(own), Value::Float(wide)) => wide.fract() == 0.0 && own == wide as i128,
        (own, wide) => own.same(wide),
    };
    if !dtype.is_float() && !is_held {
        let (lo, hi) = dtype.int_range().unwrap_or((0, 1));
        return refused(format!(
            "the initial value of `{}` is to be one of {whose} {dtype}, {lo} to {hi}, got {}",
            statistic.name(),
            in_words(given)
        ));
    }
    Ok(own)
}

fn in_words(given: Scalar) -> String {
    match given {
        Scalar::Bool(value) => value.to_string(),
        Scalar::Int(value) => value.to_string(),
        Scalar::UInt(value) => value.to_string(),
        Scalar::Float(value) => format!("{value:?}"),
    }
}

/// The product's reducer, whose results start from the initial values.
pub(crate) fn with_inits(product: &Product, inits: &[Option<Value>], dtype: DType) -> Reducer {
    let reducer = product.reducer.clone();
    if inits.iter().all(Option::is_none) {
        return reducer;
    }
    let constant = |value: &Value| match *value {
        Value::Int(value) => Expr::int_of(value, dtype),
        Value::Float(value) => Expr::float(value, dtype),
    };
    let inits: Vec<Option<Expr>> = inits.iter().map(|v| v.as_ref().map(constant)).collect();
    let params: Vec<Var> = reducer.fields.iter().map(|f| Var::new(&f.name, f.dtype)).collect();
    let state: Vec<Expr> = params.iter().map(Var::expr).collect();
    let body = product.finish_with(&state, &inits);
    Reducer { finish: Lambda { params, body }, ..reducer }
}
