//! double_buffer: two copies of a stage's memory, one filled while the other is read.
//!
//! The allocation is marked `double_buffer`; the pass that doubles it reads the mark. Source: seed 003's system.

use coulis_ir::remark::DOUBLE_BUFFER;
use coulis_ir::{Attr, Stmt};

use crate::error::ScheduleError;
use crate::example::{after, chain, size};
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply};
use crate::schedule::{Schedule, StageRef};
use crate::stage::StageId;
use crate::trace::Step;

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "double_buffer",
    signature: "s[A].double_buffer()",
    summary: "the memory of an attached stage is kept twice, so that one copy is filled while the other is read",
    before: "\
for i in range(n):
    B = T.allocate([1], \"float32\", \"global\")
    B[0] = A[i] * T.float32(2)
    C[i] = B[0] + T.float32(1)",
    call: "s[B].double_buffer()",
    after: "\
for i in range(n):
    with T.attr(None, \"double_buffer\", 1):
        B = T.allocate([1], \"float32\", \"global\")
        B[0] = A[i] * T.float32(2)
        C[i] = B[0] + T.float32(1)",
    example: || {
        after(chain(&[size("n")]), |s| {
            let i = s.stage("C")?.axes()[0].clone();
            s.compute_at("B", "C", &i)
        })
    },
    apply: apply::<DoubleBuffer>,
};

/// Arguments of double_buffer.
#[derive(Clone, Debug)]
pub(crate) struct DoubleBuffer {
    pub stage: StageId,
}

impl Schedule {
    /// Two copies of the stage's memory, so that one is filled while the other is read.
    pub fn double_buffer(&mut self, stage: impl Into<StageRef>) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(DoubleBuffer { stage })
    }
}

impl Primitive for DoubleBuffer {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<DoubleBuffer, ScheduleError> {
        call.at_most(0)?;
        Ok(DoubleBuffer { stage: call.object()? })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        Step::on_stage(schedule.stage_name(self.stage), "double_buffer", Vec::new())
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        if schedule.by_id(self.stage).is_arg() {
            return Err(ScheduleError::Argument {
                primitive: "double_buffer",
                stage: schedule.stage_name(self.stage),
                reason: "the caller gives its memory",
            });
        }
        Ok(())
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        schedule.by_id_mut(self.stage).double_buffer = true;
        Ok(())
    }
}

/// The allocation with its mark.
pub(crate) fn marked(allocation: Stmt) -> Stmt {
    let key = DOUBLE_BUFFER.to_owned();
    Stmt::Annotate { node: None, key, value: Attr::Int(1), body: Box::new(allocation) }
}
