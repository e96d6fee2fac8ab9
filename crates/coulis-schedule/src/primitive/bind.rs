//! bind: a loop runs over a block or thread index.
//!
//! Blocks of a launch in which a loop is bound to `clusterCtaIdx` are in clusters of so many, and a loop that
//! is bound to `blockIdx` along the same axis runs over clusters. Blocks of a cluster each have shared memory
//! of their own, and fold a bound reduce axis together as threads do.
//!
//! What depends on other primitives (extents, memory, who reduces together) is checked when the nest is built.
//! Source: seed 003.

use coulis_ir::ThreadTag;
use coulis_tensor::IterVar;

use crate::error::ScheduleError;
use crate::example::{copy, size};
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::schedule::{Schedule, StageRef};
use crate::stage::StageId;
use crate::thread_error::ThreadError;
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "bind",
    signature: "s[B].bind(axis, tag)",
    summary: "the loop runs over blockIdx.{x,y,z}, threadIdx.{x,y,z}, the blocks of a cluster \
              (clusterCtaIdx.{x,y,z}) or vthread; threads of a bound reduce axis fold together",
    before: "for i in range(n):\n    B[i] = A[i]",
    call: "s[B].bind(i, \"blockIdx.x\")",
    after: "blockIdx_x = T.launch_thread(\"blockIdx.x\", n)\nB[blockIdx_x] = A[blockIdx_x]",
    example: || copy(&[size("n")]),
    apply: apply::<Bind>,
};

/// Arguments of bind.
#[derive(Clone, Debug)]
pub(crate) struct Bind {
    pub stage: StageId,
    pub axis: IterVar,
    pub tag: ThreadTag,
}

impl Schedule {
    /// The loop runs over that block or thread index.
    pub fn bind(
        &mut self,
        stage: impl Into<StageRef>,
        axis: &IterVar,
        tag: ThreadTag,
    ) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(Bind { stage, axis: axis.clone(), tag })
    }
}

impl Primitive for Bind {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<Bind, ScheduleError> {
        call.at_most(2)?;
        let stage = call.object()?;
        let (axis, found) = (call.axis(stage, 0, "axis")?, call.string(1, "tag")?);
        let tag = ThreadTag::ALL.into_iter().find(|tag| tag.name() == found);
        let tag = tag.ok_or(ThreadError::UnknownTag { found })?;
        Ok(Bind { stage, axis, tag })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let axis = axis_arg(schedule, self.stage, &self.axis);
        let args = vec![axis, Arg::Str(self.tag.name().to_owned())];
        Step::on_stage(schedule.stage_name(self.stage), "bind", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        stage.leaf_position("bind", &self.axis)?;
        stage.check_unmarked("bind", &self.axis)?;
        stage.check_computes_once("bind", &self.axis, true)?;
        let (name, axis) = (schedule.stage_name(stage.id), stage.axis_name(&self.axis));
        let origin = stage.origin(&self.axis);
        if origin.data && origin.reduce {
            return Err(ThreadError::Mixed { stage: name, axis }.into());
        }
        let other = stage.leaves.iter().find(|leaf| stage.thread_of(leaf) == Some(self.tag));
        if let Some(other) = other.filter(|_| self.tag != ThreadTag::VThread) {
            let (tag, other) = (self.tag.name(), stage.axis_name(other));
            return Err(ThreadError::Taken { stage: name, axis, tag, other }.into());
        }
        Ok(())
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        let attr = schedule.by_id_mut(self.stage).attrs.entry(self.axis.var().clone()).or_default();
        attr.thread = Some(self.tag);
        Ok(())
    }
}
