//! parallel: a loop runs on all CPU threads.

use coulis_ir::LoopKind;
use coulis_tensor::IterVar;

use crate::error::ScheduleError;
use crate::example::{copy, size};
use crate::loop_kind;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::schedule::{Schedule, StageRef};
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
    example: || copy(&[size("n")]),
    apply: apply::<Parallel>,
};

/// Arguments of parallel.
#[derive(Clone, Debug)]
pub(crate) struct Parallel {
    pub stage: StageId,
    pub axis: IterVar,
}

impl Schedule {
    /// The iterations of a data axis are spread over threads.
    pub fn parallel(&mut self, stage: impl Into<StageRef>, axis: &IterVar) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(Parallel { stage, axis: axis.clone() })
    }
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
        loop_kind::check("parallel", schedule, self.stage, &self.axis, LoopKind::Parallel)
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        loop_kind::set(schedule, self.stage, &self.axis, LoopKind::Parallel);
        Ok(())
    }
}
