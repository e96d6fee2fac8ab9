//! clamp: an index that stays inside takes the place of a guard.
//!
//! A loop that is split may have more steps than there are points of its axis, and what is attached in it would be under
//! the guard of its consumer at every access: no load is under way with another then, and a text has a part with guards beside
//! the one without. Nothing reads what is computed past the end, since the consumer's own guard keeps that from being stored. It
//! concerns axes of which the stage has a constant number of points there, from an index of the loop on that is surely not below 0,
//! and whose length is a constant of at least as many; others keep their guards. Several points begin so far before the end of the
//! axis that they all lie in it: some of them were computed before, and are computed again.

use coulis_ir::simplify::Analyzer;
use coulis_ir::{BinaryOp, Expr};

use crate::error::ScheduleError;
use crate::example::{after, chain};
use crate::fold;
use crate::primitive::split::Split;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply};
use crate::schedule::{Schedule, StageRef};
use crate::stage::{Attach, StageId};
use crate::trace::Step;

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "clamp",
    signature: "s[B].clamp()",
    summary: "past the end of its domain an attached stage computes its last point again, without a guard",
    before: "\
for i_outer, i_inner in T.grid(3, 4):
    B = T.allocate([1], \"float32\", \"global\")
    if T.likely(i_outer * 4 + i_inner < 11):
        B[0] = A[i_outer * 4 + i_inner] * T.float32(2)
    if T.likely(i_outer * 4 + i_inner < 11):
        C[i_outer * 4 + i_inner] = B[0] + T.float32(1)",
    call: "s[B].clamp()",
    after: "\
for i_outer, i_inner in T.grid(3, 4):
    B = T.allocate([1], \"float32\", \"global\")
    B[0] = A[T.min(i_outer * 4 + i_inner, 10)] * T.float32(2)
    if T.likely(i_outer * 4 + i_inner < 11):
        C[i_outer * 4 + i_inner] = B[0] + T.float32(1)",
    example: || {
        after(chain(&[Expr::int(11)]), |s| {
            let i = s.stage("C")?.axes()[0].clone();
            let (_, inner) = s.split("C", &i, Split::Factor(4))?;
            s.compute_at("B", "C", &inner)
        })
    },
    apply: apply::<Clamp>,
};

/// Arguments of clamp.
#[derive(Clone, Debug)]
pub(crate) struct Clamp {
    pub stage: StageId,
}

impl Schedule {
    /// Past the end of its domain the stage computes its last point again; it is attached already.
    ///
    /// # Errors
    /// For a stage that is not attached in a loop of another.
    pub fn clamp(&mut self, stage: impl Into<StageRef>) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(Clamp { stage })
    }
}

impl Primitive for Clamp {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<Clamp, ScheduleError> {
        call.at_most(0)?;
        Ok(Clamp { stage: call.object()? })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        Step::on_stage(schedule.stage_name(self.stage), "clamp", Vec::new())
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        if matches!(stage.attach, Attach::At(..)) {
            return Ok(());
        }
        Err(ScheduleError::BadValue {
            primitive: "clamp",
            stage: stage.name.clone(),
            what: "stage",
            wanted: "one that is attached in a loop of another",
            found: "one that is not".to_owned(),
        })
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        schedule.by_id_mut(self.stage).clamped = true;
        Ok(())
    }
}

/// Where the points of an axis from 0 to `declared` begin that a stage computes, as many as it does, or where its last begin if some
/// of these may lie behind them.
pub(crate) fn clamped(analyzer: &Analyzer, (first, count): (&Expr, &Expr), declared: &Expr) -> Option<Expr> {
    let are_known =
        matches!((count.as_int(), declared.as_int()), (Some(count), Some(n)) if 0 < count && count <= n);
    let last = fold::sub(declared, count);
    let is_behind_first = fold::proves(analyzer, BinaryOp::Ge, first, &fold::int(0, first.dtype()));
    let may_be_past = !fold::proves(analyzer, BinaryOp::Le, first, &last);
    (are_known && is_behind_first && may_be_past).then(|| fold::min(analyzer, first, &last))
}
