//! The choice of a variant for a call, and the table that explains it.

use coulis_ir::TileCall;

use crate::error::TileError;
use crate::facts::Facts;
use crate::reduce;
use crate::variant::{Emitted, Row, Variant, Verdict};

/// Every variant of reductions, highest priority first.
pub static REGISTRY: &[&Variant] = &[
    &reduce::alone::VARIANT,
    &reduce::warp_shuffle::VARIANT,
    &reduce::warp_shuffle_two_stage::VARIANT,
    &reduce::shared_tree::VARIANT,
    &reduce::serial::VARIANT,
];

/// The operation that the registry does.
const OP: &str = "tile.reduce";

/// What becomes of every variant for a call, in the order of the registry. `forced` names the variant that the call
/// asks for.
pub fn explain(facts: &Facts, forced: Option<&str>) -> Vec<Row> {
    let mut rows: Vec<Row> = REGISTRY
        .iter()
        .map(|variant| {
            let declines = variant.declines(facts);
            let verdict = if declines.is_empty() { Verdict::Accepts } else { Verdict::Declined(declines) };
            Row { name: variant.name, priority: variant.priority, verdict }
        })
        .collect();
    let may = |row: &&mut Row| row.verdict == Verdict::Accepts && forced.is_none_or(|name| name == row.name);
    if let Some(row) = rows.iter_mut().find(may) {
        row.verdict = Verdict::Chosen;
    }
    rows
}

/// The statements of the best variant that accepts the call, or of the one that the call forces.
///
/// # Errors
/// Where no variant accepts it, or the forced one does not.
pub fn dispatch(call: &TileCall, facts: &Facts) -> Result<(&'static Variant, Emitted), TileError> {
    let forced = call.dispatch.as_deref();
    if let Some(name) = forced
        && !REGISTRY.iter().any(|variant| variant.name == name)
    {
        let legal: Vec<String> = REGISTRY.iter().map(|v| format!("`{}`", v.name)).collect();
        return Err(TileError::UnknownVariant { name: name.to_owned(), op: OP, legal: legal.join(", ") });
    }
    let rows = explain(facts, forced);
    let chosen = rows.iter().position(|row| row.verdict == Verdict::Chosen);
    match (chosen, forced) {
        (Some(at), _) => Ok((REGISTRY[at], (REGISTRY[at].emit)(facts))),
        (None, Some(name)) => Err(TileError::Forced { name: name.to_owned(), rows }),
        (None, None) => Err(TileError::NoVariant { op: OP, rows }),
    }
}
