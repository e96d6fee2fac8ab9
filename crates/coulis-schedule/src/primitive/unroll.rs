//! unroll: a loop is expanded in text.

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
    name: "unroll",
    signature: "s[B].unroll(axis)",
    summary: "the body is repeated once an iteration; the extent is to be constant",
    before: "for i in range(4):\n    B[i] = A[i]",
    call: "s[B].unroll(i)",
    after: "for i in T.unroll(4):\n    B[i] = A[i]",
    example: || copy(&[Expr::int(4)]),
    apply: apply::<Unroll>,
};

/// Arguments of unroll.
#[derive(Clone, Debug)]
pub(crate) struct Unroll {
    pub stage: StageId,
    pub axis: IterVar,
}

impl Schedule {
    /// The body is repeated once an iteration.
    pub fn unroll(&mut self, stage: impl Into<StageRef>, axis: &IterVar) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(Unroll { stage, axis: axis.clone() })
    }
}

impl Primitive for Unroll {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<Unroll, ScheduleError> {
        call.at_most(1)?;
        let stage = call.object()?;
        Ok(Unroll { stage, axis: call.axis(stage, 0, "axis")? })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let args = vec![axis_arg(schedule, self.stage, &self.axis)];
        Step::on_stage(schedule.stage_name(self.stage), "unroll", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        loop_kind::check("unroll", schedule, self.stage, &self.axis, LoopKind::Unrolled)
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        loop_kind::set(schedule, self.stage, &self.axis, LoopKind::Unrolled);
        Ok(())
    }
}
