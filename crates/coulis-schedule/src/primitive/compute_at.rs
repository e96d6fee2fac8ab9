//! compute_at: a stage is computed inside a loop of the stage that reads it.

use coulis_tensor::IterVar;

use crate::error::ScheduleError;
use crate::example::{chain, size};
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::schedule::{Schedule, StageRef};
use crate::stage::{Attach, Stage, StageId};
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "compute_at",
    signature: "s[A].compute_at(parent, axis)",
    summary: "the part of the stage that one iteration of the loop needs is computed at the head of its body",
    before: "\
B = T.allocate([n], \"float32\", \"global\")
for i in range(n):
    B[i] = A[i] * T.float32(2)
for i in range(n):
    C[i] = B[i] + T.float32(1)",
    call: "s[B].compute_at(s[C], i)",
    after: "\
for i in range(n):
    B = T.allocate([1], \"float32\", \"global\")
    B[0] = A[i] * T.float32(2)
    C[i] = B[0] + T.float32(1)",
    example: || chain(&[size("n")]),
    apply: apply::<ComputeAt>,
};

/// Arguments of compute_at.
#[derive(Clone, Debug)]
pub(crate) struct ComputeAt {
    pub stage: StageId,
    pub parent: StageId,
    pub axis: IterVar,
}

impl Schedule {
    /// The stage is computed inside the loop `axis` of `parent`.
    pub fn compute_at(
        &mut self,
        stage: impl Into<StageRef>,
        parent: impl Into<StageRef>,
        axis: &IterVar,
    ) -> Result<(), ScheduleError> {
        let (stage, parent) = (self.find(&stage.into())?, self.find(&parent.into())?);
        self.call(ComputeAt { stage, parent, axis: axis.clone() })
    }
}

impl Primitive for ComputeAt {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<ComputeAt, ScheduleError> {
        call.at_most(2)?;
        let (stage, parent) = (call.object()?, call.stage(0, "parent")?);
        Ok(ComputeAt { stage, parent, axis: call.axis(parent, 1, "axis")? })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let parent = Arg::Stage(schedule.stage_name(self.parent));
        let args = vec![parent, axis_arg(schedule, self.parent, &self.axis)];
        Step::on_stage(schedule.stage_name(self.stage), "compute_at", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let (stage, parent) = (schedule.by_id(self.stage), schedule.by_id(self.parent));
        refuse_output(schedule, stage, "compute_at")?;
        parent.leaf_position("compute_at", &self.axis)?;
        let mut above = Some(parent);
        while let Some(holder) = above {
            if holder.id == stage.id {
                let (stage, parent) = (schedule.stage_name(stage.id), schedule.stage_name(parent.id));
                return Err(ScheduleError::AttachCycle { stage, parent });
            }
            above = match &holder.attach {
                Attach::At(next, _) => Some(schedule.by_id(*next)),
                Attach::Root | Attach::Inline => None,
            };
        }
        if !uses(schedule, parent, stage) {
            let consumers = schedule.consumers(stage);
            return Err(ScheduleError::OutsideConsumers {
                stage: schedule.stage_name(stage.id),
                parent: schedule.stage_name(parent.id),
                axis: parent.axis_name(&self.axis),
                consumer: consumers
                    .first()
                    .map_or("nobody".to_owned(), |c| format!("`{}`", schedule.stage_name(c.id))),
                consumers: consumers.iter().map(|c| schedule.stage_name(c.id)).collect(),
            });
        }
        Ok(())
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        schedule.by_id_mut(self.stage).attach = Attach::At(self.parent, self.axis);
        Ok(())
    }
}

/// Whether `stage` is read by `user`, directly or through other stages. Whether all readers are inside the loop is
/// known only when the nest is built, since they may be attached later.
fn uses(schedule: &Schedule, user: &Stage, stage: &Stage) -> bool {
    let reads = user.reads();
    reads.iter().any(|b| stage.outputs.contains(b))
        || reads.iter().filter_map(|b| schedule.producer(b.id)).any(|p| uses(schedule, p, stage))
}

/// Refuses to move an output away from the root.
pub(crate) fn refuse_output(
    schedule: &Schedule,
    stage: &Stage,
    primitive: &'static str,
) -> Result<(), ScheduleError> {
    if !stage.is_output {
        return Ok(());
    }
    let legal = schedule.stages.iter().filter(|s| !s.is_output).map(|s| schedule.stage_name(s.id)).collect();
    Err(ScheduleError::Output { primitive, stage: schedule.stage_name(stage.id), legal })
}
