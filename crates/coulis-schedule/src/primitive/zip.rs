//! zip: two folds whose results are combined become one fold of what their steps give together.
//!
//! Parts of a fold that were taken apart are folded by the same threads, and bringing those threads' states together is done
//! once instead of twice. The order of the fold changes, so only an associative and commutative reducer is folded like this.
//! Source: the horizontal fusion of reductions, of which this is the case of one reducer.

use std::sync::Arc;

use coulis_ir::visit::substitute_expr;
use coulis_ir::{DType, Expr};
use coulis_tensor::{Body, IterKind, IterVar, Reduction};

use crate::error::ScheduleError;
use crate::example::{after, sums};
use crate::fold;
use crate::primitive::split::Split;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply};
use crate::schedule::{Schedule, StageRef, Values};
use crate::stage::{Stage, StageId};
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "zip",
    signature: "s.zip(stage, first, second)",
    summary: "two folds of as many steps, whose results the stage combines as their reducer does, become one fold of \
              that stage over what each step of the two gives together",
    before: "\
B_words_rf = T.allocate([5, 2], \"float32\", \"global\")
for i, k_inner in T.grid(5, 2):
    B_words_rf[i, k_inner] = T.float32(0)
    for k_outer in range(4):
        B_words_rf[i, k_inner] = B_words_rf[i, k_inner] + A[i, k_outer * 2 + k_inner + ((i * 13 + 3) // 4 * 4 - i * 13)]
B_words = T.allocate([5], \"float32\", \"global\")
for ax0 in range(5):
    B_words[ax0] = T.float32(0)
    for k_inner_v in range(2):
        B_words[ax0] = B_words[ax0] + B_words_rf[ax0, k_inner_v]
B_ends_rf = T.allocate([5, 2], \"float32\", \"global\")
for i, k_inner in T.grid(5, 2):
    B_ends_rf[i, k_inner] = T.float32(0)
    for k_outer in range(3):
        if T.likely(k_outer * 2 + k_inner < 5):
            B_ends_rf[i, k_inner] = B_ends_rf[i, k_inner] + A[i, T.Select(k_outer * 2 + k_inner < (i * 13 + 3) // 4 * 4 - i * 13, k_outer * 2 + k_inner, k_outer * 2 + k_inner + 8)]
B_ends = T.allocate([5], \"float32\", \"global\")
for ax0 in range(5):
    B_ends[ax0] = T.float32(0)
    for k_inner_v in range(2):
        B_ends[ax0] = B_ends[ax0] + B_ends_rf[ax0, k_inner_v]
for i in range(5):
    B[i] = B_words[i] + B_ends[i]",
    call: "s.zip(B, B_words, B_ends)",
    after: "\
B_words_rf = T.allocate([5, 2], \"float32\", \"global\")
for i, k_inner in T.grid(5, 2):
    B_words_rf[i, k_inner] = T.float32(0)
    for k_outer in range(4):
        B_words_rf[i, k_inner] = B_words_rf[i, k_inner] + A[i, k_outer * 2 + k_inner + ((i * 13 + 3) // 4 * 4 - i * 13)]
B_ends_rf = T.allocate([5, 2], \"float32\", \"global\")
for i, k_inner in T.grid(5, 2):
    B_ends_rf[i, k_inner] = T.float32(0)
    for k_outer in range(3):
        if T.likely(k_outer * 2 + k_inner < 5):
            B_ends_rf[i, k_inner] = B_ends_rf[i, k_inner] + A[i, T.Select(k_outer * 2 + k_inner < (i * 13 + 3) // 4 * 4 - i * 13, k_outer * 2 + k_inner, k_outer * 2 + k_inner + 8)]
for i in range(5):
    B[i] = T.float32(0)
    for k_inner_v in range(2):
        B[i] = B[i] + (B_words_rf[i, k_inner_v] + B_ends_rf[i, k_inner_v])",
    example: || {
        after(sums(&[Expr::int(5)], Expr::int(13)), |s| {
            let k = s.stage("B")?.reduce_axes()[0].clone();
            let (words, ends) = s.peel("B", &k, 4)?;
            for stage in [words, ends] {
                let k = s.stage(stage)?.reduce_axes()[0].clone();
                let (_, thread) = s.split(stage, &k, Split::Factor(2))?;
                s.rfactor_at(stage, &thread, 1)?;
            }
            Ok(())
        })
    },
    apply: apply::<Zip>,
};

/// Arguments of zip.
#[derive(Clone, Debug)]
pub(crate) struct Zip {
    pub stage: StageId,
    pub first: StageId,
    pub second: StageId,
}

impl Schedule {
    /// Two folds of as many steps, whose results the stage combines as their reducer does, become one fold of that stage.
    pub fn zip(
        &mut self,
        stage: impl Into<StageRef>,
        first: impl Into<StageRef>,
        second: impl Into<StageRef>,
    ) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        let (first, second) = (self.find(&first.into())?, self.find(&second.into())?);
        self.call(Zip { stage, first, second })
    }
}

/// The one reduce loop of a stage that is as it was made, and its fold, which has no condition and starts from the identity.
fn plain_fold(stage: &Stage) -> Option<(&Reduction, &IterVar)> {
    let Body::Reduce(reduction) = &stage.body else { return None };
    let [axis] = &reduction.axes[..] else { return None };
    let is_plain = reduction.condition.is_none() && reduction.init.is_empty() && reduction.quick.is_none();
    let is_new = stage.relations.is_empty() && stage.attrs.is_empty() && stage.aligns.is_empty();
    (is_plain && is_new).then_some((reduction, axis))
}

/// What a stage holds at these indices.
fn held(stage: &Stage, indices: &[Expr]) -> Vec<Expr> {
    stage.outputs.iter().map(|output| output.at(indices.to_vec())).collect()
}

/// The sources of a fold at these indices and this step.
fn sources(stage: &Stage, reduction: &Reduction, axis: &IterVar, indices: &[Expr], step: &Expr) -> Vec<Expr> {
    let mut map: Values =
        stage.axes.iter().zip(indices).map(|(axis, index)| (axis.var().clone(), index.clone())).collect();
    map.insert(axis.var().clone(), fold::cast(step, axis.dtype()));
    reduction.sources.iter().map(|source| substitute_expr(source, &map)).collect()
}

impl Primitive for Zip {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<Zip, ScheduleError> {
        call.at_most(3)?;
        let stage = |position, name| call.stage(position, name);
        Ok(Zip { stage: stage(0, "stage")?, first: stage(1, "first")?, second: stage(2, "second")? })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let name = |id| Arg::Name(schedule.stage_name(id));
        Step::on_schedule("zip", vec![name(self.stage), name(self.first), name(self.second)])
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let [stage, first, second] = [self.stage, self.first, self.second].map(|id| schedule.by_id(id));
        let bad = |what, wanted, of: &Stage, found: &str| {
            let stage = schedule.stage_name(of.id);
            Err(ScheduleError::BadValue { primitive: "zip", stage, what, wanted, found: found.to_owned() })
        };
        let wanted = "a fold without a condition over one loop that is as it was made";
        let Some((reduction, axis)) = plain_fold(first) else {
            return bad("first", wanted, first, "another stage");
        };
        let Some((other, of_other)) = plain_fold(second) else {
            return bad("second", wanted, second, "another stage");
        };
        if !reduction.claims.any_order() {
            let (primitive, reducer) = ("zip", reduction.name.clone());
            let stage = schedule.stage_name(stage.id);
            return Err(ScheduleError::UnclaimedLaws { primitive, stage, reducer });
        }
        let domain = |axis: &IterVar| axis.dom().map(|(min, extent)| (min.clone(), extent.clone()));
        if domain(axis).is_none_or(|(min, _)| !min.is_int(0)) || domain(axis) != domain(of_other) {
            return bad(
                "second",
                "a fold of as many steps from 0 as the first has",
                second,
                "another number",
            );
        }
        // A reducer combines states of its own types alone.
        let types = |of: &Stage| of.outputs.iter().map(|output| output.dtype).collect::<Vec<_>>();
        if types(second) != types(first) {
            let names: Vec<&str> = types(second).iter().map(|ty| ty.name()).collect();
            return bad("second", "a fold into results of the first's types", second, &names.join(", "));
        }
        let state: Vec<DType> = reduction.identity.iter().map(Expr::dtype).collect();
        let wanted = "one that combines the two as their reducer does";
        if types(first) != state || types(stage) != state {
            return bad("stage", wanted, stage, "another");
        }
        let indices: Vec<Expr> = stage.axes.iter().map(IterVar::expr).collect();
        let (left, right) = (held(first, &indices), held(second, &indices));
        let combined = reduction.merge(&left, &right);
        let is_one = other.identity == reduction.identity
            && other.merge(&left, &right) == combined
            && matches!(&stage.body, Body::Plain(values) if *values == combined);
        if !is_one || !stage.relations.is_empty() || !stage.attrs.is_empty() {
            return bad("stage", wanted, stage, "another");
        }
        let read_elsewhere = |of: &Stage| schedule.consumers(of).iter().any(|reader| reader.id != stage.id);
        if read_elsewhere(first) || read_elsewhere(second) {
            return bad("stage", "the only reader of the two", stage, "other readers");
        }
        [self.stage, self.first, self.second].iter().try_for_each(|id| schedule.check_holds_none("zip", *id))
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        let [stage, first, second] = [self.stage, self.first, self.second].map(|id| schedule.by_id(id));
        let (Some((reduction, axis)), Some((other, of_other))) = (plain_fold(first), plain_fold(second))
        else {
            return Ok(());
        };
        let Some((min, extent)) = axis.dom() else { return Ok(()) };
        let over = IterVar::new(axis.var().fresh(), IterKind::Reduce, min.clone(), extent.clone());
        let indices: Vec<Expr> = stage.axes.iter().map(IterVar::expr).collect();
        let left = sources(first, reduction, axis, &indices, &over.expr());
        let right = sources(second, other, of_other, &indices, &over.expr());
        let zipped =
            Reduction { sources: reduction.merge(&left, &right), axes: vec![over], ..reduction.clone() };
        let axes = stage.axes.clone();
        let position = schedule.position(self.stage);
        Arc::make_mut(&mut schedule.stages[position]).redefine(axes, Body::Reduce(Box::new(zipped)));
        schedule.take_away(self.first, Zip::ENTRY.name, self.stage);
        if self.second != self.first {
            schedule.take_away(self.second, Zip::ENTRY.name, self.stage);
        }
        Ok(())
    }
}
