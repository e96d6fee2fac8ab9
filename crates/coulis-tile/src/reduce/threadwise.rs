//! One thread folds every output by itself, element after element.

use coulis_ir::{DType, Stmt};

use crate::facts::Facts;
use crate::reduce::partial::Partial;
use crate::reduce::walk::{Walk, repeat};
use crate::rounding::Steps;
use crate::variant::{Emitted, Refusal};

/// The combinations of a call.
pub(crate) fn steps(facts: &Facts) -> Result<Steps, String> {
    Ok(Steps::chain(Walk::of(facts)?.n_elements().into()))
}

/// The statements.
pub(crate) fn emit(facts: &Facts) -> Result<Emitted, Refusal> {
    let walk = Walk::of(facts).map_err(Refusal::Bug)?;
    let partial = Partial::new(facts.reducer, "state");
    let body = repeat("p", walk.n_outputs(), |p| {
        let elements = repeat("q", walk.n_elements(), |q| {
            partial.take(&walk.elements(facts, p, q), q.clone().cast(DType::I64))
        });
        Stmt::seq([partial.clear(), elements, partial.finish(&walk.outputs(facts, p), facts.accum)])
    });
    Ok(Emitted { registers: partial.registers.clone(), shared: Vec::new(), body })
}
