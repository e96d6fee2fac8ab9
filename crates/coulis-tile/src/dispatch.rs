//! The choice of a variant for a call, and the table that explains it.

use coulis_ir::TileCall;

use crate::error::TileError;
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

/// What becomes of every variant for a call, in the order of the registry. `forced` names the variant that the call
/// asks for.
pub fn explain<O: Op>(facts: &O::Facts<'_>, forced: Option<&str>) -> Vec<Row> {
    let mut is_chosen = false;
    let verdict = |variant: &Variant<O>| {
        let declines = variant.declines(facts);
        if !declines.is_empty() {
            return Verdict::Declined(declines);
        }
        if is_chosen || forced.is_some_and(|name| !variant.is_named(name)) {
            return Verdict::Accepts;
        }
        match (variant.emit)(facts) {
            Err(Refusal::Decline(decline)) => Verdict::Declined(vec![decline]),
            // A bug is for those who want the statements.
            Err(Refusal::Bug(_)) => {
                is_chosen = true;
                Verdict::Accepts
            }
            Ok(_) => {
                is_chosen = true;
                Verdict::Chosen
            }
        }
    };
    let verdicts: Vec<Verdict> = O::registry().iter().copied().map(verdict).collect();
    let row = |(variant, verdict): (&&'static Variant<O>, Verdict)| Row {
        name: variant.name,
        priority: variant.priority,
        verdict,
        accuracy: None,
    };
    O::registry().iter().zip(verdicts).map(row).collect()
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
    let may = |variant: &&&'static Variant<O>| forced.is_none_or(|name| variant.is_named(name));
    for variant in O::registry().iter().filter(may).filter(|variant| variant.accepts(facts)) {
        match (variant.emit)(facts) {
            Ok(emitted) => return Ok((variant, emitted)),
            Err(Refusal::Decline(_)) => {}
            Err(Refusal::Bug(message)) => {
                return Err(TileError::Bug { variant: variant.name, op: O::NAME, message });
            }
        }
    }
    let rows = explain::<O>(facts, forced);
    Err(match forced {
        Some(name) => TileError::Forced { name: name.to_owned(), rows },
        None => TileError::NoVariant { op: O::NAME, rows },
    })
}
