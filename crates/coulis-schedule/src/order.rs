//! Reducers that tell left from right: whose folds are to come in the order in which the program lists the points.
//!
//! An argmax that keeps the left of equal values gives the first one where the loops run through the points in
//! ascending order. Where they do not, or threads share them, the state says in one more field where its element stands
//! ([`Reduction::in_any_order`]), so that equal values give the same result whatever the schedule (contract N9).

use std::sync::Arc;

use coulis_tensor::{Body, Reduction};

use crate::error::ScheduleError;
use crate::ranges;
use crate::schedule::Schedule;
use crate::stage::Stage;

/// Whether a stage's state has fields that are no results.
pub(crate) fn has_hidden_fields(stage: &Stage, r: &Reduction) -> bool {
    r.arity() > stage.outputs.len()
}

/// Gives folds that their schedule takes out of order a state for that; refuses those of other reducers.
pub(crate) fn keep_order(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    for position in 0..schedule.stages.len() {
        let stage = &schedule.stages[position];
        let Body::Reduce(r) = &stage.body else { continue };
        let is_spread = stage.leaves.iter().any(|l| stage.origin(l).reduce && stage.thread_of(l).is_some());
        let primitive = if is_spread { "bind" } else { "reorder" };
        if r.claims.any_order() || r.axes.is_empty() {
            continue;
        }
        if !is_spread && ranges::is_ascending(stage, &stage.leaves) {
            continue;
        }
        match r.in_any_order() {
            Some(ordered) => {
                Arc::make_mut(&mut schedule.stages[position]).body = Body::Reduce(Box::new(ordered));
            }
            None => {
                let (stage, reducer) = (schedule.stage_name(stage.id), r.name.clone());
                return Err(ScheduleError::UnclaimedLaws { primitive, stage, reducer });
            }
        }
    }
    Ok(())
}
