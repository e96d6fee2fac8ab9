//! reorder: loops change places.

use coulis_ir::visit::uses_any;
use coulis_tensor::IterVar;

use crate::error::ScheduleError;
use crate::example::{copy, size};
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::ranges;
use crate::schedule::{Schedule, StageRef};
use crate::stage::{Stage, StageId};
use crate::trace::Step;

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "reorder",
    signature: "s[B].reorder(*axes)",
    summary: "puts the loops, in the order given, into the places that they take together",
    before: "for i, j in T.grid(n, m):\n    B[i, j] = A[i, j]",
    call: "s[B].reorder(j, i)",
    after: "for j, i in T.grid(m, n):\n    B[i, j] = A[i, j]",
    example: || copy(&[size("n"), size("m")]),
    apply: apply::<Reorder>,
};

/// Arguments of reorder.
#[derive(Clone, Debug)]
pub(crate) struct Reorder {
    pub stage: StageId,
    pub axes: Vec<IterVar>,
}

impl Schedule {
    /// The loops, in the order given, take the places that they have together.
    pub fn reorder(&mut self, stage: impl Into<StageRef>, axes: &[IterVar]) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(Reorder { stage, axes: axes.to_vec() })
    }
}

impl Primitive for Reorder {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<Reorder, ScheduleError> {
        let stage = call.object()?;
        Ok(Reorder { stage, axes: call.axes(stage)? })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let args = self.axes.iter().map(|a| axis_arg(schedule, self.stage, a)).collect();
        Step::on_stage(schedule.stage_name(self.stage), "reorder", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        for (n, axis) in self.axes.iter().enumerate() {
            stage.leaf_position("reorder", axis)?;
            if self.axes[..n].contains(axis) {
                let axis = stage.axis_name(axis);
                return Err(ScheduleError::Repeated {
                    primitive: "reorder",
                    stage: stage.name.clone(),
                    axis,
                });
            }
        }
        check_order(stage, &self.order(stage))
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id_mut(self.stage);
        stage.leaves = self.order(stage);
        Ok(())
    }
}

impl Reorder {
    fn order(&self, stage: &Stage) -> Vec<IterVar> {
        let mut wanted = self.axes.iter();
        let place = |leaf: &IterVar| {
            if self.axes.contains(leaf) { wanted.next().unwrap_or(leaf).clone() } else { leaf.clone() }
        };
        stage.leaves.iter().map(place).collect()
    }
}

/// Refuses an order in which a loop stands outside one that its extent needs.
fn check_order(stage: &Stage, order: &[IterVar]) -> Result<(), ScheduleError> {
    let domains = ranges::declared(stage);
    for (position, leaf) in order.iter().enumerate() {
        for root in stage.roots_of(leaf) {
            let Some((min, extent)) = domains.get(root.var()) else { continue };
            for later in &order[position + 1..] {
                for on in stage.roots_of(later) {
                    let var = [on.var().clone()];
                    if on != root && (uses_any(extent, &var) || uses_any(min, &var)) {
                        return Err(ScheduleError::OrderDependency {
                            primitive: "reorder",
                            stage: stage.name.clone(),
                            axis: stage.axis_name(leaf),
                            on: stage.axis_name(later),
                        });
                    }
                }
            }
        }
    }
    Ok(())
}
