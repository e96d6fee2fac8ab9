//! compute_inline: a stage is computed in place of each read of it.

use coulis_tensor::Body;

use crate::error::ScheduleError;
use crate::example::{chain, size};
use crate::primitive::compute_at::refuse_output;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply};
use crate::schedule::{Schedule, StageRef};
use crate::stage::{Attach, StageId};
use crate::trace::Step;

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "compute_inline",
    signature: "s[A].compute_inline()",
    summary: "each read of the tensor is replaced by its expression, and its loops vanish",
    before: "\
B = T.allocate([n], \"float32\", \"global\")
for i in range(n):
    B[i] = A[i] * T.float32(2)
for i in range(n):
    C[i] = B[i] + T.float32(1)",
    call: "s[B].compute_inline()",
    after: "for i in range(n):\n    C[i] = A[i] * T.float32(2) + T.float32(1)",
    example: || chain(&[size("n")]),
    apply: apply::<ComputeInline>,
};

/// Arguments of compute_inline.
#[derive(Clone, Debug)]
pub(crate) struct ComputeInline {
    pub stage: StageId,
}

impl Schedule {
    /// The stage is computed in place of each read of it.
    pub fn compute_inline(&mut self, stage: impl Into<StageRef>) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(ComputeInline { stage })
    }
}

impl Primitive for ComputeInline {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<ComputeInline, ScheduleError> {
        call.at_most(0)?;
        Ok(ComputeInline { stage: call.object()? })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        Step::on_stage(schedule.stage_name(self.stage), "compute_inline", Vec::new())
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        refuse_output(schedule, stage, "compute_inline")?;
        schedule.check_holds_none("compute_inline", self.stage)?;
        stage.check_unturned("compute_inline")?;
        let name = schedule.stage_name(stage.id);
        if stage.is_arg() {
            let (primitive, reason) = ("compute_inline", "is to be stored");
            return Err(ScheduleError::Argument { primitive, stage: name, reason });
        }
        match &stage.body {
            Body::Plain(_) => Ok(()),
            Body::Reduce(_) => Err(ScheduleError::WrongBody {
                primitive: "compute_inline",
                stage: name,
                wanted: "a stage without a reduction",
                found: "a reduction",
            }),
        }
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        schedule.by_id_mut(self.stage).attach = Attach::Inline;
        Ok(())
    }
}
