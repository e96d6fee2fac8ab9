//! `scalar`: one element after another. Right for every problem, and the choice for tiny ones.

use coulis_schedule::{Schedule, ScheduleError};

use super::map_steps::{map_row, root};
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
    Ok(facts.plain().with_map_inside(facts.has_rows()))
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let root = root(s, stmt, sketch)?;
    let site = site(s, root, spec.n_kept(), sketch.whole.parallel, sketch.whole.outer_is_long)?;
    let state = stage_of(s, &stmt.state)?;
    place(s, state, site.as_ref())?;
    map_row(s, stmt, site.as_ref(), sketch)
}
