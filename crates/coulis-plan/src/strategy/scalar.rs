//! `scalar`: one element after another. Right for every problem, and the choice for tiny ones.

use coulis_schedule::{Schedule, ScheduleError};

use super::steps::{place, site, stage_of};
use super::{Decline, Facts, Machine, Sketch, Strategy};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "scalar",
    machine: Machine::Loops,
    keeps_order: true,
    summary: "folds each output by itself, one element after another; accepts everything",
    propose,
    schedule,
};

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    Ok(facts.plain())
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let output = stage_of(s, &stmt.output)?;
    let site = site(s, output, spec.n_kept(), sketch.parallel, sketch.outer_is_long)?;
    let state = stage_of(s, &stmt.state)?;
    place(s, state, site.as_ref())
}
