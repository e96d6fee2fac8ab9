//! vectorize: a loop becomes one vector operation.

use coulis_ir::{Expr, LoopKind};
use coulis_tensor::IterVar;

use crate::error::ScheduleError;
use crate::example::copy;
use crate::loop_kind;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::schedule::{Schedule, StageRef};
use crate::stage::StageId;
use crate::trace::Step;

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "vectorize",
    signature: "s[B].vectorize(axis)",
    summary: "the iterations become lanes; a data axis of constant extent",
    before: "for i in range(8):\n    B[i] = A[i]",
    call: "s[B].vectorize(i)",
    after: "for i in T.vectorized(8):\n    B[i] = A[i]",
    example: || copy(&[Expr::int(8)]),
    apply: apply::<Vectorize>,
};

/// Arguments of vectorize.
#[derive(Clone, Debug)]
pub(crate) struct Vectorize {
    pub stage: StageId,
    pub axis: IterVar,
}

impl Schedule {
    /// The iterations of a data axis become lanes.
    pub fn vectorize(&mut self, stage: impl Into<StageRef>, axis: &IterVar) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(Vectorize { stage, axis: axis.clone() })
    }
}

impl Primitive for Vectorize {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<Vectorize, ScheduleError> {
        call.at_most(1)?;
        let stage = call.object()?;
        Ok(Vectorize { stage, axis: call.axis(stage, 0, "axis")? })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let args = vec![axis_arg(schedule, self.stage, &self.axis)];
        Step::on_stage(schedule.stage_name(self.stage), "vectorize", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        loop_kind::check("vectorize", schedule, self.stage, &self.axis, LoopKind::Vectorized)
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        loop_kind::set(schedule, self.stage, &self.axis, LoopKind::Vectorized);
        Ok(())
    }
}
