//! Outputs in which no element takes part, found after the run.
//!
//! A reduced extent of 0 is refused before anything runs. A mask, or NaN under [`NanPolicy::Ignore`], may leave an output
//! without elements too; positions and extrema have no value then (contract N11), except that extrema of nothing but
//! NaN are NaN.

use coulis_ir::eval::{Value, eval_lambda};
use coulis_ir::{DType, NanPolicy};

use crate::error::Error;
use crate::reduce::{Call, run};
use crate::request::{NamedArray, Request};
use crate::verify::{broadcast_strides, value};

fn refused(op: &str, what: &str, output: usize) -> Error {
    let message = format!("`{op}` of an empty set has no {what}: no element takes part in output {output}");
    Error::user("reduce/empty", message)
}

/// A position of -1 says that no element took part.
pub(crate) fn refuse_positions(call: &Call, results: &[NamedArray]) -> Result<(), Error> {
    let may_be_empty = call.spec.mask || call.spec.reducer.nan == NanPolicy::Ignore;
    if !may_be_empty {
        return Ok(());
    }
    for (statistic, part) in call.statistics.iter().zip(&call.product.parts) {
        if !statistic.empty_index_is_error() {
            continue;
        }
        // The position is the last result, and the only one that is `int64` by itself where there is one alone.
        let at = part.results.end - 1;
        let nowhere = Value::Int(-1).cast(results[at].array.dtype());
        if let Some(output) = results[at].array.scalars().map(value).position(|v| v == nowhere) {
            return Err(refused(statistic.name(), "position", output));
        }
    }
    Ok(())
}

/// The types that tell a position from -1, when the positions are below `reduce_len`.
pub(crate) fn tells_positions(dtype: DType, reduce_len: i64) -> bool {
    match dtype.int_range() {
        Some((lo, hi)) => lo < 0 && i128::from(reduce_len) <= hi + 1,
        None => true,
    }
}

/// Whether a result is what an output without elements gives; then the mask tells, as real elements may give it too.
pub(crate) fn refuse_extrema(
    shape: &[i64],
    request: &Request,
    call: &Call,
    results: &[NamedArray],
) -> Result<(), Error> {
    let Some(mask) = &request.where_ else { return Ok(()) };
    let parts = call.statistics.iter().zip(&call.product.parts).zip(&call.inits);
    let from_nothing = parts.filter(|(_, init)| init.is_none()).map(|(part, _)| part);
    for (statistic, part) in from_nothing.filter(|(s, _)| s.refuses_empty() && !s.empty_index_is_error()) {
        let at = part.results.start;
        let spec = &call.spec.outputs[at];
        let identity =
            eval_lambda(&coulis_ir::Lambda { params: Vec::new(), body: part.reducer.identity.clone() }, &[]);
        let nothing = identity.and_then(|state| eval_lambda(&part.reducer.finish, &state));
        let nothing = nothing.map_err(|e| Error::bug("reduce/empty", e))?[0];
        let is_suspect = |v: Value| {
            let scaled =
                if spec.alpha == 1.0 { nothing } else { Value::Float(spec.alpha * nothing.as_f64()) };
            spec.beta != 0.0 || v.same(scaled.cast(spec.dtype)) || v.is_nan()
        };
        if !results[at].array.scalars().map(value).any(is_suspect) {
            continue;
        }
        let whole = mask.view(shape, &broadcast_strides(mask, shape), 0)?;
        let any = Request {
            axes: request.axes.clone(),
            threads: request.threads,
            device: request.device.clone(),
            ..Request::new(&["any"])
        };
        let outcome = run(&[whole], &any)?;
        let empty = outcome.results[0].array.scalars().position(|v| !value(v).is_true());
        return empty.map_or(Ok(()), |output| Err(refused(statistic.name(), "value", output)));
    }
    Ok(())
}
