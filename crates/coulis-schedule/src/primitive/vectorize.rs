//! vectorize: a loop becomes one vector operation.

use coulis_ir::LoopKind;
use coulis_tensor::{IterKind, IterVar};

use crate::error::ScheduleError;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::schedule::Schedule;
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
    apply: apply::<Vectorize>,
};

/// Arguments of vectorize.
#[derive(Clone, Debug)]
pub(crate) struct Vectorize {
    pub stage: StageId,
    pub axis: IterVar,
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
        let stage = schedule.by_id(self.stage);
        stage.leaf_position("vectorize", &self.axis)?;
        stage.check_unbound("vectorize", &self.axis)?;
        if self.axis.kind() != IterKind::Data {
            return Err(stage.wrong_kind("vectorize", &self.axis, IterKind::Data));
        }
        Ok(())
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        let attr = schedule.by_id_mut(self.stage).attrs.entry(self.axis.var().clone()).or_default();
        attr.kind = Some(LoopKind::Vectorized);
        Ok(())
    }
}
