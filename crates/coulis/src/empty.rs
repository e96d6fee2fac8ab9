//! Outputs in which no element takes part, found after the run.
//!
//! A reduced extent of 0 is refused before anything runs. A mask, or NaN under [`NanPolicy::Ignore`], may leave an output
//! without elements too; positions and extrema have no value then (contract N11), except that extrema of nothing but
//! NaN are NaN.

use coulis_io::Array;
use coulis_ir::eval::{Value, eval_lambda};
use coulis_ir::{DType, NanPolicy};
use half::{bf16, f16};

use crate::error::Error;
use crate::reduce::{Call, run};
use crate::request::{NamedArray, Request};
use crate::verify::{broadcast_strides, value};

/// A result of a call that shows when no element took part in one of its outputs.
#[derive(Clone, Debug)]
pub struct Doubt {
    /// Which of the call's results.
    pub result: usize,
    statistic: String,
    shows: Shows,
}

/// How a result shows that no element took part.
#[derive(Clone, Debug)]
enum Shows {
    /// By a position of -1.
    Position,
    /// By this value, if at all: real elements may give it too, and the mask tells. `None`: any value may be one.
    Value(Option<Value>),
}

impl Doubt {
    /// Whether the result holds positions, of which a negative one says that no element took part.
    pub fn is_position(&self) -> bool {
        matches!(self.shows, Shows::Position)
    }

    /// Whether results may tell that no output is without elements.
    pub fn depends_on_results(&self) -> bool {
        !matches!(self.shows, Shows::Value(None))
    }

    /// Whether results from `lo` to `hi` (or NaN) leave it open whether an output is without elements.
    pub fn may_lie_between(&self, lo: f64, hi: f64) -> bool {
        match &self.shows {
            Shows::Position => lo < 0.0,
            Shows::Value(None) => true,
            Shows::Value(Some(nothing)) => {
                let nothing = nothing.as_f64();
                [lo, hi, nothing].into_iter().any(f64::is_nan) || lo <= nothing && nothing <= hi
            }
        }
    }

    /// Whether what shows that an output is without elements is above most results.
    pub fn is_high(&self) -> bool {
        matches!(self.shows, Shows::Value(Some(nothing)) if nothing.as_f64() > 0.0)
    }

    /// The error of an output without elements.
    pub fn refusal(&self, output: usize) -> Error {
        let what = if self.is_position() { "position" } else { "value" };
        let op = &self.statistic;
        let message =
            format!("`{op}` of an empty set has no {what}: no element takes part in output {output}");
        Error::user("reduce/empty", message)
    }
}

/// Refuses positions that are scaled or added to where elements may be left out: what comes back would not
/// show that there is no position.
pub(crate) fn check_positions(call: &Call) -> Result<(), Error> {
    if !(call.spec.mask || call.spec.reducer.nan == NanPolicy::Ignore) {
        return Ok(());
    }
    for (statistic, part) in call.statistics.iter().zip(&call.product.parts) {
        let spec = &call.spec.outputs[part.results.end - 1];
        if statistic.empty_index_is_error() && (spec.alpha != 1.0 || spec.beta != 0.0) {
            let op = statistic.name();
            let message = format!(
                "`{op}` takes no alpha and beta together with `where` or nan=ignore: a group without elements has no \
                 position, which its result has to show"
            );
            return Err(Error::unsupported("reduce/position", message));
        }
    }
    Ok(())
}

/// The results that are to be looked at after a run in which elements may be left out.
pub(crate) fn doubts(call: &Call) -> Result<Vec<Doubt>, Error> {
    let mut doubts = Vec::new();
    if !(call.spec.mask || call.spec.reducer.nan == NanPolicy::Ignore) {
        return Ok(doubts);
    }
    if let Some(statistic) = call.normalization.as_ref().and_then(|of| of.refuses_empty)
        && call.spec.mask
    {
        doubts.push(Doubt { result: 0, statistic: statistic.to_owned(), shows: Shows::Value(None) });
    }
    for ((statistic, part), init) in call.statistics.iter().zip(&call.product.parts).zip(&call.inits) {
        let name = statistic.name().to_owned();
        if statistic.empty_index_is_error() {
            // The position is the last result, and the only one that is `int64` by itself where there is one alone.
            doubts.push(Doubt { result: part.results.end - 1, statistic: name, shows: Shows::Position });
        } else if call.spec.mask && statistic.refuses_empty() && init.is_none() {
            let result = part.results.start;
            let spec = &call.spec.outputs[result];
            let params = Vec::new();
            let identity =
                eval_lambda(&coulis_ir::Lambda { params, body: part.reducer.identity.clone() }, &[]);
            let nothing = identity.and_then(|state| eval_lambda(&part.reducer.finish, &state));
            let nothing = nothing.map_err(|e| Error::bug("reduce/empty", e))?[0];
            let scaled =
                if spec.alpha == 1.0 { nothing } else { Value::Float(spec.alpha * nothing.as_f64()) };
            let value = (spec.beta == 0.0).then(|| scaled.cast(spec.dtype));
            doubts.push(Doubt { result, statistic: name, shows: Shows::Value(value) });
        }
    }
    Ok(doubts)
}

/// Refuses results of outputs without elements. `shape` is the first input's; the request holds the mask.
pub(crate) fn refuse(
    shape: &[i64],
    request: &Request,
    call: &Call,
    results: &[NamedArray],
) -> Result<(), Error> {
    for doubt in doubts(call)? {
        let array = &results[doubt.result].array;
        let empty = match (&doubt.shows, &request.where_) {
            (Shows::Position, _) => first_of(array, Value::Int(-1).cast(array.dtype())),
            (Shows::Value(_), None) => None,
            (Shows::Value(nothing), Some(mask)) => {
                let is_open = nothing.is_none_or(|nothing| first_of(array, nothing).is_some());
                if is_open { first_without_elements(shape, request, mask)? } else { None }
            }
        };
        if let Some(output) = empty {
            return Err(doubt.refusal(output));
        }
    }
    Ok(())
}

/// The place of the first element that is that value, or NaN.
fn first_of(array: &Array, sought: Value) -> Option<usize> {
    // Of the types of most results as they lie in memory, many at once: results may be as many as elements.
    macro_rules! of {
        ($ty:ty, $sought:expr) => {
            if let (Some(all), Some(sought)) = (array.as_slice::<$ty>(), <Option<$ty>>::from($sought)) {
                return first_where(all, |v| v == sought || is_nan(v));
            }
        };
    }
    match (array.dtype(), sought) {
        (DType::I32, Value::Int(v)) => of!(i32, i32::try_from(v).ok()),
        (DType::I64, Value::Int(v)) => of!(i64, i64::try_from(v).ok()),
        (DType::U8, Value::Int(v)) => of!(u8, u8::try_from(v).ok()),
        (DType::F16, Value::Float(v)) => of!(f16, f16::from_f64(v)),
        (DType::BF16, Value::Float(v)) => of!(bf16, bf16::from_f64(v)),
        (DType::F32, Value::Float(v)) => of!(f32, v as f32),
        (DType::F64, Value::Float(v)) => of!(f64, v),
        _ => {}
    }
    array.scalars().map(value).position(|v| v.same(sought) || v.is_nan())
}

/// Whether a value does not equal itself.
#[allow(clippy::eq_op)]
fn is_nan<T: PartialEq>(v: T) -> bool {
    v != v
}

/// The first place where that holds, by blocks of which all elements are looked at, as vectors do.
fn first_where<T: Copy>(all: &[T], holds: impl Fn(T) -> bool) -> Option<usize> {
    const BLOCK: usize = 1 << 10;
    let block = all.chunks(BLOCK).position(|block| block.iter().fold(false, |any, v| any | holds(*v)))?;
    let start = block * BLOCK;
    all[start..].iter().position(|v| holds(*v)).map(|at| start + at)
}

/// The first output in which the mask lets no element take part.
fn first_without_elements(shape: &[i64], request: &Request, mask: &Array) -> Result<Option<usize>, Error> {
    let whole = mask.view(shape, &broadcast_strides(mask, shape), 0)?;
    let any = Request {
        axes: request.axes.clone(),
        threads: request.threads,
        device: request.device.clone(),
        ..Request::new(&["any"])
    };
    let outcome = run(&[whole], &any)?;
    Ok(outcome.results[0].array.scalars().position(|v| !value(v).is_true()))
}
