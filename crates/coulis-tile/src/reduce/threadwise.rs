//! One thread folds every output by itself, element after element.

use coulis_ir::{DType, Stmt};

use crate::block::constant;
use crate::facts::Facts;
use crate::reduce::Instructions;
use crate::reduce::state::State;
use crate::reduce::walk::{Walk, affine, moved, repeat};
use crate::rounding::Steps;
use crate::variant::{Emitted, Refusal};

/// The combinations of a call.
pub(crate) fn steps(facts: &Facts) -> Result<Steps, String> {
    Ok(Steps::chain(Walk::of(facts)?.n_elements().into()))
}

/// The statements, neighbours by the instruction where there is one.
pub(crate) fn emit_by(facts: &Facts, by: Instructions) -> Result<Emitted, Refusal> {
    let walk = Walk::of(facts).map_err(Refusal::Bug)?;
    let state = State::new(facts.reducer);
    let halves = by.halves.map_or_else(Vec::new, |by| by.registers());
    let body = repeat("p", walk.n_outputs(), |p| {
        let elements = match by.halves {
            Some(by) => {
                let n = walk.n_elements() / by.lanes;
                by.fold(&state, &halves, ("q", n), |q, lane| {
                    facts.srcs[0].value(&moved(walk.coords(p, &affine(q, by.lanes, &constant(0))), lane))
                })
            }
            None => repeat("q", walk.n_elements(), |q| {
                state.take(&walk.elements(facts, p, q), q.clone().cast(DType::I64))
            }),
        };
        Stmt::seq([state.clear(), elements, state.finish_onto(&walk.outputs(facts, p), facts.accum)])
    });
    Ok(Emitted {
        registers: state.registers.iter().chain(&halves).cloned().collect(),
        shared: Vec::new(),
        body,
    })
}
