//! The choice of a variant for a call, and the table that explains it.

use coulis_ir::TileCall;

use crate::error::TileError;
use crate::facts::Facts;
use crate::reduce;
use crate::rounding::{Accuracy, Steps};
use crate::variant::{Emitted, Numerics, Refusal, Row, Variant, Verdict};

/// An operation that tile calls do: its variants and what they look at.
pub trait Op: Sized + 'static {
    /// Name of the operation, as in tables.
    const NAME: &'static str;
    /// What a variant looks at.
    type Facts<'a>;
    /// Every variant, highest priority first.
    fn registry() -> &'static [&'static Variant<Self>];
    /// How far results may be from the exact ones where a variant makes these steps; `None` where nothing is computed.
    fn accuracy(facts: &Self::Facts<'_>, steps: Steps, numerics: Numerics) -> Option<Accuracy>;
}

/// Reductions.
pub struct ReduceOp;

impl Op for ReduceOp {
    const NAME: &'static str = "tile.reduce";
    type Facts<'a> = Facts<'a>;

    fn registry() -> &'static [&'static Variant<ReduceOp>] {
        REGISTRY
    }

    fn accuracy(facts: &Facts<'_>, steps: Steps, numerics: Numerics) -> Option<Accuracy> {
        Some(Accuracy::of(facts, steps, numerics.flushes_where_allowed))
    }
}

/// Every variant of reductions, highest priority first.
pub static REGISTRY: &[&Variant] = &[
    &reduce::redux_sync::VARIANT,
    &reduce::sm100_packed::VARIANT,
    &reduce::alone::VARIANT,
    &reduce::warp_shuffle::VARIANT,
    &reduce::warp_shuffle_two_stage::VARIANT,
    &reduce::packed_halves::VARIANT,
    &reduce::local::VARIANT,
    &reduce::shared::VARIANT,
    &reduce::shared_tree::VARIANT,
    &reduce::mixed::VARIANT,
    &reduce::cluster_shared::VARIANT,
    &reduce::serial::VARIANT,
];

/// What becomes of every variant for a call, in the order of the registry. `forced` names the variant that the call
/// asks for.
pub fn explain<O: Op>(facts: &O::Facts<'_>, forced: Option<&str>) -> Vec<Row> {
    choose::<O>(facts, forced).0
}

/// As [`explain`], for a call that may force a variant, with the error that the numbers of each may have; that it forces a
/// variant which does not exist is an error.
pub fn explain_call<O: Op>(call: &TileCall, facts: &O::Facts<'_>) -> Result<Vec<Row>, TileError> {
    let forced = forced::<O>(call)?;
    let mut rows = explain::<O>(facts, forced);
    for (row, variant) in rows.iter_mut().zip(O::registry()) {
        if matches!(row.verdict, Verdict::Declined(_)) {
            continue;
        }
        let bug = |message| TileError::Bug { variant: variant.name, op: O::NAME, message };
        let steps = (variant.steps)(facts).map_err(bug)?;
        row.accuracy = O::accuracy(facts, steps, variant.numerics);
    }
    Ok(rows)
}

/// The verdicts, and the position of the chosen variant with its answer.
type Choice = (Vec<Row>, Option<(usize, Result<Emitted, String>)>);

fn choose<O: Op>(facts: &O::Facts<'_>, forced: Option<&str>) -> Choice {
    let mut chosen = None;
    let mut rows = Vec::new();
    for (at, variant) in O::registry().iter().enumerate() {
        let declines = variant.declines(facts);
        let mut verdict = if declines.is_empty() { Verdict::Accepts } else { Verdict::Declined(declines) };
        let may = forced.is_none_or(|name| variant.is_named(name));
        if verdict == Verdict::Accepts && may && chosen.is_none() {
            match (variant.emit)(facts) {
                Ok(emitted) => {
                    verdict = Verdict::Chosen;
                    chosen = Some((at, Ok(emitted)));
                }
                Err(Refusal::Decline(decline)) => verdict = Verdict::Declined(vec![decline]),
                Err(Refusal::Bug(message)) => chosen = Some((at, Err(message))),
            }
        }
        rows.push(Row { name: variant.name, priority: variant.priority, verdict, accuracy: None });
    }
    (rows, chosen)
}

/// The variant that the call forces.
fn forced<O: Op>(call: &TileCall) -> Result<Option<&str>, TileError> {
    let Some(name) = call.dispatch.as_deref() else { return Ok(None) };
    if O::registry().iter().any(|variant| variant.is_named(name)) {
        return Ok(Some(name));
    }
    let legal: Vec<String> = O::registry().iter().map(|v| format!("`{}`", v.name)).collect();
    Err(TileError::UnknownVariant { name: name.to_owned(), op: O::NAME, legal: legal.join(", ") })
}

/// The statements of the best variant that accepts the call, or of the one that the call forces.
///
/// # Errors
/// Where no variant accepts it, or the forced one does not; a bug of a variant.
pub fn dispatch<O: Op>(
    call: &TileCall,
    facts: &O::Facts<'_>,
) -> Result<(&'static Variant<O>, Emitted), TileError> {
    let forced = forced::<O>(call)?;
    match choose::<O>(facts, forced) {
        (_, Some((at, Ok(emitted)))) => Ok((O::registry()[at], emitted)),
        (_, Some((at, Err(message)))) => {
            Err(TileError::Bug { variant: O::registry()[at].name, op: O::NAME, message })
        }
        (rows, None) => Err(match forced {
            Some(name) => TileError::Forced { name: name.to_owned(), rows },
            None => TileError::NoVariant { op: O::NAME, rows },
        }),
    }
}
