//! from_first: a fold starts from the state of its first element, not from the identity.
//!
//! A short fold that is unrolled is a combination shorter for it, and no state waits for a constant. The identity changes
//! nothing, so the result is the same; it is kept where a fold may hold no element.

use coulis_ir::Expr;
use coulis_tensor::Body;

use crate::error::ScheduleError;
use crate::example::sums;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply};
use crate::schedule::{Schedule, StageRef};
use crate::stage::StageId;
use crate::trace::Step;

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "from_first",
    signature: "s[B].from_first()",
    summary: "a fold that surely holds an element starts from the state of the first one instead of the identity; it \
              has no effect on others",
    before: "B[()] = T.float32(0)\nfor k in range(4):\n    B[()] = B[()] + A[k]",
    call: "s[B].from_first()",
    after: "\
for k in range(4):
    if k == 0:
        B[()] = A[k]
    else:
        B[()] = B[()] + A[k]",
    example: || sums(&[], Expr::int(4)),
    apply: apply::<FromFirst>,
};

/// Arguments of from_first.
#[derive(Clone, Debug)]
pub(crate) struct FromFirst {
    pub stage: StageId,
}

impl Schedule {
    /// A fold that surely holds an element starts from the state of the first one.
    pub fn from_first(&mut self, stage: impl Into<StageRef>) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(FromFirst { stage })
    }
}

impl Primitive for FromFirst {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<FromFirst, ScheduleError> {
        call.at_most(0)?;
        Ok(FromFirst { stage: call.object()? })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        Step::on_stage(schedule.stage_name(self.stage), "from_first", Vec::new())
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        if matches!(stage.body, Body::Reduce(_)) {
            return Ok(());
        }
        Err(ScheduleError::WrongBody {
            primitive: "from_first",
            stage: stage.name.clone(),
            wanted: "a reduction",
            found: "no reduction",
        })
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        schedule.by_id_mut(self.stage).from_first = true;
        Ok(())
    }
}
