//! overlap: a fold is over whole vectors, the last of which begins among the elements of the one before it.
//!
//! What a row has behind its last whole vector is folded as the end of a vector of its own that is read like any other: all of
//! it lies in the row, and a condition leaves out the elements that were folded before. One element after another would be as
//! much work as several vectors. Source: the remainders of vectorising compilers.

use coulis_ir::visit::substitute_expr;
use coulis_ir::{BinaryOp, Expr};
use coulis_tensor::{Body, IterKind, IterVar, Reduction};

use crate::error::ScheduleError;
use crate::example::sums;
use crate::fold;
use crate::inline::map_body;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::schedule::{Schedule, StageRef, Values};
use crate::stage::StageId;
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "overlap",
    signature: "s.overlap(stage, axis, lanes)",
    summary: "the fold goes on to a whole number of vectors of so many lanes, the last of which begins among the elements of the \
              one before it and leaves those out",
    before: "\
for i in range(5):
    B[i] = T.float32(0)
    for k in range(13):
        B[i] = B[i] + A[i, k]",
    call: "s.overlap(B, k, 4)",
    after: "\
for i in range(5):
    B[i] = T.float32(0)
    for k in range(16):
        if k < 12 or k >= 15:
            B[i] = B[i] + A[i, T.Select(k < 12, k, k - 3)]",
    example: || sums(&[Expr::int(5)], Expr::int(13)),
    apply: apply::<Overlap>,
};

/// Arguments of overlap.
#[derive(Clone, Debug)]
pub(crate) struct Overlap {
    pub stage: StageId,
    pub axis: IterVar,
    pub lanes: i64,
}

impl Schedule {
    /// The fold goes on to a whole number of vectors, the last of which begins among the elements of the one before it and
    /// leaves those out.
    ///
    /// # Errors
    /// For a stage that is no fold, or is scheduled; for an axis without a constant length of at least `lanes` that is no whole
    /// number of them; and for fewer than two lanes.
    pub fn overlap(
        &mut self,
        stage: impl Into<StageRef>,
        axis: &IterVar,
        lanes: i64,
    ) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(Overlap { stage, axis: axis.clone(), lanes })
    }
}

impl Primitive for Overlap {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<Overlap, ScheduleError> {
        call.at_most(3)?;
        let stage = call.stage(0, "stage")?;
        let lanes = call.as_int(call.arg(2, "lanes")?, "lanes")?;
        Ok(Overlap { stage, axis: call.axis(stage, 1, "axis")?, lanes })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let stage = Arg::Name(schedule.stage_name(self.stage));
        let axis = axis_arg(schedule, self.stage, &self.axis);
        Step::on_schedule("overlap", vec![stage, axis, Arg::Int(self.lanes)])
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        stage.reduction_as_made("overlap", &self.axis)?;
        let bad = |what, wanted, found| schedule.bad_value("overlap", self.stage, what, wanted, found);
        if self.lanes < 2 {
            return bad("lanes", "at least 2", self.lanes.to_string());
        }
        let length = self.axis.length();
        if length.is_none_or(|n| n < self.lanes || n % self.lanes == 0) {
            let found = length.map_or("no constant".to_owned(), |n| n.to_string());
            let wanted = "a loop of a constant number of steps from 0 that is one vector or more, and a rest";
            return bad("axis", wanted, found);
        }
        schedule.check_holds_none("overlap", self.stage)
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        let (Body::Reduce(_), Some(length)) = (&stage.body, self.axis.length()) else { return Ok(()) };
        let whole = length / self.lanes * self.lanes;
        let again = whole + self.lanes - length;
        let dtype = self.axis.dtype();
        let int = |n: i64| fold::int(n.into(), dtype);
        let extent = int(whole + self.lanes);
        let axis = IterVar::new(self.axis.var().fresh(), IterKind::Reduce, int(0), extent);
        let step = axis.expr();
        let is_whole = fold::compare(BinaryOp::Lt, &step, &int(whole));
        let is_new = fold::compare(BinaryOp::Ge, &step, &int(whole + again));
        let place = Expr::select(is_whole.clone(), step.clone(), fold::sub(&step, &int(again)));
        let map = Values::from_iter([(self.axis.var().clone(), place)]);
        let Body::Reduce(moved) = map_body(&stage.body, &|e| substitute_expr(e, &map)) else { return Ok(()) };
        let taken = is_whole.or(is_new);
        let condition = match moved.condition.clone() {
            Some(condition) => taken.and(condition),
            None => taken,
        };
        let axes = moved.axes.iter().map(|old| if *old == self.axis { axis.clone() } else { old.clone() });
        let axes = axes.collect();
        let body = Body::Reduce(Box::new(Reduction { axes, condition: Some(condition), ..*moved }));
        let axes = stage.axes.clone();
        schedule.by_id_mut(self.stage).redefine(axes, body);
        Ok(())
    }
}
