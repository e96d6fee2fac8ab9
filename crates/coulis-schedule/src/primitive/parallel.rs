//! parallel: a loop runs on all CPU threads.

use coulis_ir::LoopKind;
use coulis_tensor::{IterKind, IterVar};

use crate::error::ScheduleError;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::schedule::Schedule;
use crate::stage::StageId;
use crate::trace::Step;

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "parallel",
    signature: "s[B].parallel(axis)",
    summary: "the iterations are spread over threads; a data axis, since threads may not fold into one element",
    before: "for i in range(n):\n    B[i] = A[i]",
    call: "s[B].parallel(i)",
    after: "for i in T.parallel(n):\n    B[i] = A[i]",
    apply: apply::<Parallel>,
};

/// Arguments of parallel.
#[derive(Clone, Debug)]
pub(crate) struct Parallel {
    pub stage: StageId,
    pub axis: IterVar,
}

impl Primitive for Parallel {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<Parallel, ScheduleError> {
        call.at_most(1)?;
        let stage = call.object()?;
        Ok(Parallel { stage, axis: call.axis(stage, 0, "axis")? })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let args = vec![axis_arg(schedule, self.stage, &self.axis)];
        Step::on_stage(schedule.stage_name(self.stage), "parallel", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        stage.leaf_position("parallel", &self.axis)?;
        stage.check_unbound("parallel", &self.axis)?;
        if self.axis.kind() != IterKind::Data {
            return Err(stage.wrong_kind("parallel", &self.axis, IterKind::Data));
        }
        Ok(())
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        let attr = schedule.by_id_mut(self.stage).attrs.entry(self.axis.var().clone()).or_default();
        attr.kind = Some(LoopKind::Parallel);
        Ok(())
    }
}
