//! compute_root: a stage is computed in a loop nest of its own, as it is by default.

use crate::error::ScheduleError;
use crate::example::{after, chain, size};
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply};
use crate::schedule::{Schedule, StageRef};
use crate::stage::{Attach, StageId};
use crate::trace::Step;

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "compute_root",
    signature: "s[A].compute_root()",
    summary: "undoes compute_at and compute_inline",
    before: "for i in range(n):\n    C[i] = A[i] * T.float32(2) + T.float32(1)",
    call: "s[B].compute_root()",
    after: "\
B = T.allocate([n], \"float32\", \"global\")
for i in range(n):
    B[i] = A[i] * T.float32(2)
for i in range(n):
    C[i] = B[i] + T.float32(1)",
    example: || after(chain(&[size("n")]), |s| s.compute_inline("B")),
    apply: apply::<ComputeRoot>,
};

/// Arguments of compute_root.
#[derive(Clone, Debug)]
pub(crate) struct ComputeRoot {
    pub stage: StageId,
}

impl Schedule {
    /// The stage is computed in a loop nest of its own.
    pub fn compute_root(&mut self, stage: impl Into<StageRef>) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(ComputeRoot { stage })
    }
}

impl Primitive for ComputeRoot {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<ComputeRoot, ScheduleError> {
        call.at_most(0)?;
        Ok(ComputeRoot { stage: call.object()? })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        Step::on_stage(schedule.stage_name(self.stage), "compute_root", Vec::new())
    }

    fn check(&self, _schedule: &Schedule) -> Result<(), ScheduleError> {
        Ok(())
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        schedule.by_id_mut(self.stage).attach = Attach::Root;
        Ok(())
    }
}
