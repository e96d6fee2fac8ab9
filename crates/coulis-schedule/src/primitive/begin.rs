//! begin: the first elements along an axis are folded by a stage of their own, and the fold goes on from there.
//!
//! A fold that may end early, as that of `any` may, often does so among its first elements: one thread then finds out at once, by a
//! loop that is small enough for it, what all of them together would be started for. The loop is the outermost of the fold, so that
//! the order of the fold stays, whatever its reducer. Source: index set splitting of vectorising compilers.

use std::sync::Arc;

use coulis_ir::Expr;
use coulis_tensor::{Body, IterVar, Reduction};

use crate::error::ScheduleError;
use crate::example::{size, sums};
use crate::fold;
use crate::primitive::cut::{Part, part};
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::schedule::{Schedule, StageRef};
use crate::stage::{Stage, StageId};
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "begin",
    signature: "s.begin(stage, axis, length)",
    summary: "the first `length` elements along the axis, or as many as there are, become a stage, and the old stage starts from \
              what that folds",
    before: "\
for i in range(5):
    B[i] = T.float32(0)
    for k in range(m):
        B[i] = B[i] + A[i, k]",
    call: "B_head = s.begin(B, k, 8)",
    after: "\
B_head = T.allocate([5], \"float32\", \"global\")
for i in range(5):
    B_head[i] = T.float32(0)
    for k in range(T.min(m, 8)):
        B_head[i] = B_head[i] + A[i, k]
for i in range(5):
    B[i] = B_head[i]
    for k in range(T.max(m - 8, 0)):
        B[i] = B[i] + A[i, k + 8]",
    example: || sums(&[Expr::int(5)], size("m")),
    apply: apply::<Begin>,
};

/// Arguments of begin.
#[derive(Clone, Debug)]
pub(crate) struct Begin {
    pub stage: StageId,
    pub axis: IterVar,
    pub length: i64,
}

impl Schedule {
    /// The first `length` elements along the axis, or as many as there are, become a stage, and the old stage starts from what that
    /// folds: the new stage.
    ///
    /// # Errors
    /// For a stage that is no fold, or is scheduled; for an axis that is not the outermost of the fold, from 0; and for a length
    /// below 1.
    pub fn begin(
        &mut self,
        stage: impl Into<StageRef>,
        axis: &IterVar,
        length: i64,
    ) -> Result<StageId, ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(Begin { stage, axis: axis.clone(), length })
    }
}

impl Primitive for Begin {
    type Output = StageId;
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<Begin, ScheduleError> {
        call.at_most(3)?;
        let stage = call.stage(0, "stage")?;
        let length = call.as_int(call.arg(2, "length")?, "length")?;
        Ok(Begin { stage, axis: call.axis(stage, 1, "axis")?, length })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let stage = Arg::Name(schedule.stage_name(self.stage));
        let axis = axis_arg(schedule, self.stage, &self.axis);
        Step::on_schedule("begin", vec![stage, axis, Arg::Int(self.length)])
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let reduction = schedule.by_id(self.stage).reduction_as_made("begin", &self.axis)?;
        let bad = |what, wanted, found| schedule.bad_value("begin", self.stage, what, wanted, found);
        if extent_from_0(reduction, &self.axis).is_none() {
            let found = format!("`{}`", self.axis.name());
            return bad("axis", "the outermost loop of the fold, from 0", found);
        }
        if self.length < 1 {
            return bad("length", "at least 1", self.length.to_string());
        }
        schedule.check_holds_none("begin", self.stage)
    }

    fn apply(self, schedule: &mut Schedule) -> Result<StageId, ScheduleError> {
        let (id, position) = (schedule.fresh_id(), schedule.position(self.stage));
        let stage = &schedule.stages[position];
        let Body::Reduce(reduction) = &stage.body else { return Ok(self.stage) };
        let Some(extent) = extent_from_0(reduction, &self.axis) else { return Ok(self.stage) };
        let analyzer = schedule.analyzer();
        let [none, length] = [0, self.length].map(|n| fold::int(n.into(), self.axis.dtype()));
        let behind = fold::max(&analyzer, &fold::sub(extent, &length), &none);
        let head = Part { suffix: "head", n: fold::min(&analyzer, extent, &length), at: &|at, _| at.clone() };
        let rest = Part { suffix: "rest", n: behind, at: &|at, _| fold::add(at, &length) };
        // The first part is as wide as the state, or it would be rounded.
        let wide = reduction.accumulating();
        let reduction = wide.as_ref().unwrap_or(reduction);
        let head = part(schedule, stage, reduction, &self.axis, id, &head);
        let Stage { axes, body, factored, .. } = part(schedule, stage, reduction, &self.axis, id, &rest);
        let Body::Reduce(mut rest) = body else { return Ok(self.stage) };
        let indices: Vec<Expr> = axes.iter().map(IterVar::expr).collect();
        rest.init = head.outputs.iter().map(|output| output.at(indices.clone())).collect();
        let stage = schedule.by_id_mut(self.stage);
        stage.redefine(axes, Body::Reduce(rest));
        stage.factored = factored;
        schedule.stages.insert(position, Arc::new(head));
        Ok(id)
    }
}

/// The number of steps of the outermost loop of a fold, if that begins at 0.
fn extent_from_0<'a>(reduction: &'a Reduction, axis: &'a IterVar) -> Option<&'a Expr> {
    let (min, extent) = axis.dom()?;
    (reduction.axes.first() == Some(axis) && min.is_int(0)).then_some(extent)
}
