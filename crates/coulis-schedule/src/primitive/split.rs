//! split: one loop becomes two.
//!
//! Where the inner loop's length does not divide the outer one's, points past the end are guarded; or, as vectorising compilers do with
//! the remainders of loops, the last inner loop begins sooner and computes some elements again. What it stores is what is there already, so
//! that only a stage that folds nothing may be split so, and its iterations may not run at the same time.

use std::sync::Arc;

use coulis_ir::print::print_expr;
use coulis_ir::visit::for_each_expr;
use coulis_ir::{Expr, Node};
use coulis_tensor::{Body, IterVar};

use crate::error::ScheduleError;
use crate::example::{copy, size};
use crate::primitive::{Call, Primitive, PrimitiveEntry, Size, apply, axis_arg, size_arg};
use crate::schedule::{Schedule, StageRef};
use crate::stage::{Attach, Relation, SplitBy, StageId};
use crate::trace::{Arg, Step};

/// What fixes the extents of the two loops.
#[derive(Clone, Debug, PartialEq)]
pub enum Split {
    /// The inner loop runs this often, at least 1.
    Factor(i64),
    /// The outer loop runs this often, at least 1.
    Nparts(i64),
    /// The inner loop runs this often: an expression of sizes, which counts for 1 where it is less at a call.
    FactorExpr(Expr),
    /// The outer loop runs this often: an expression of sizes, which counts for 1 where it is less at a call.
    NpartsExpr(Expr),
    /// The inner loop runs this often, at least 1, and its last run begins among the points of the one before it.
    Overlap(i64),
}

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "split",
    signature: "s[B].split(axis, factor=None, nparts=None, overlap=False)",
    summary: "one loop becomes an outer and an inner one; points past the end are guarded, or with a factor and `overlap=True` the last \
              inner loop begins sooner, among the points of the one before it, and ends with the axis: elements are computed again \
              with the same result. A factor or number of parts of sizes counts for 1 where it is less at a call",
    before: "for i in range(n):\n    B[i] = A[i]",
    call: "i_outer, i_inner = s[B].split(i, factor=32)",
    after: "\
for i_outer, i_inner in T.grid((n + 31) // 32, 32):
    if T.likely(i_outer * 32 + i_inner < n):
        B[i_outer * 32 + i_inner] = A[i_outer * 32 + i_inner]",
    example: || copy(&[size("n")]),
    apply: apply::<SplitAxis>,
};

/// Arguments of split.
#[derive(Clone, Debug)]
pub(crate) struct SplitAxis {
    pub stage: StageId,
    pub axis: IterVar,
    pub by: Split,
}

impl Schedule {
    /// One loop becomes an outer and an inner one.
    pub fn split(
        &mut self,
        stage: impl Into<StageRef>,
        axis: &IterVar,
        by: Split,
    ) -> Result<(IterVar, IterVar), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(SplitAxis { stage, axis: axis.clone(), by })
    }
}

impl Primitive for SplitAxis {
    type Output = (IterVar, IterVar);
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<SplitAxis, ScheduleError> {
        call.at_most(4)?;
        let stage = call.object()?;
        let axis = call.axis(stage, 0, "axis")?;
        let overlaps = match call.maybe(3, "overlap") {
            Some(Arg::Bool(overlaps)) => *overlaps,
            Some(other) => return Err(call.bad(format!("`overlap` is to be True or False, got {other}"))),
            None => false,
        };
        let by = match (call.maybe(1, "factor"), call.maybe(2, "nparts")) {
            (Some(factor), None) if overlaps => Split::Overlap(call.as_int(factor, "factor")?),
            (None, Some(_)) if overlaps => return Err(call.bad("`overlap` goes with a factor")),
            (Some(factor), None) => match call.size(factor, "factor")? {
                Size::Int(value) => Split::Factor(value),
                Size::Expr(expr) => Split::FactorExpr(expr),
            },
            (None, Some(parts)) => match call.size(parts, "nparts")? {
                Size::Int(value) => Split::Nparts(value),
                Size::Expr(expr) => Split::NpartsExpr(expr),
            },
            (Some(_), Some(_)) => return Err(call.bad("both factor and nparts are given; one is needed")),
            (None, None) => return Err(call.bad("neither factor nor nparts is given; one is needed")),
        };
        Ok(SplitAxis { stage, axis, by })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let step = Step::on_stage(
            schedule.stage_name(self.stage),
            "split",
            vec![axis_arg(schedule, self.stage, &self.axis)],
        );
        match self.by() {
            SplitBy::Factor(factor) => step.option("factor", size_arg(schedule, &factor)),
            SplitBy::Nparts(parts) => step.option("nparts", size_arg(schedule, &parts)),
            SplitBy::Overlap(factor) => {
                step.option("factor", size_arg(schedule, &factor)).option("overlap", Arg::Bool(true))
            }
        }
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        stage.leaf_position("split", &self.axis)?;
        stage.check_unmarked("split", &self.axis)?;
        let axis = stage.axis_name(&self.axis);
        let dtype = self.axis.dtype();
        // An extent is rounded up to a multiple of the factor in the type of the index, of which both may be half. Types of
        // fewer bits are widened where they do not hold that.
        let most = match dtype.int_range() {
            Some((_, most)) if most > i128::from(u32::MAX) => most / 2,
            Some((_, most)) => most,
            None => i128::MAX,
        };
        let sized = |what, found| match found {
            ..1 => Err(ScheduleError::FactorTooSmall { primitive: "split", axis, what, found }),
            _ if i128::from(found) > most => {
                let dtype = dtype.name();
                Err(ScheduleError::FactorTooLarge { primitive: "split", axis, what, found, most, dtype })
            }
            _ => Ok(()),
        };
        if matches!(self.by, Split::Overlap(_)) {
            let refused = |found: &str| {
                let wanted = "a loop over elements, in their own order, of a stage that folds nothing";
                schedule.bad_value("split", self.stage, "overlap", wanted, found.to_owned())
            };
            match &stage.body {
                Body::Reduce(_) => return refused("a fold, which would take elements twice"),
                Body::Plain(_) if stage.turn.is_some() => return refused("elements in another order"),
                Body::Plain(_) => {}
            }
        }
        match &self.by {
            Split::Overlap(found) | Split::Factor(found) => sized("factor", *found),
            Split::Nparts(found) => sized("number of parts", *found),
            Split::FactorExpr(expr) | Split::NpartsExpr(expr) => {
                check_size(&stage.axis_name(&self.axis), schedule, expr)
            }
        }
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(IterVar, IterVar), ScheduleError> {
        let by = self.by();
        let stage = schedule.by_id_mut(self.stage);
        let position = stage.leaf_position("split", &self.axis)?;
        let (name, kind) = (self.axis.name(), self.axis.kind());
        let outer = stage.new_axis(&format!("{name}_outer"), &self.axis, kind);
        let inner = stage.new_axis(&format!("{name}_inner"), &self.axis, kind);
        stage.leaves.splice(position..=position, [outer.clone(), inner.clone()]);
        stage.relations.push(Relation::Split {
            parent: self.axis.clone(),
            outer: outer.clone(),
            inner: inner.clone(),
            by,
        });
        move_attached(schedule, self.stage, &self.axis, &inner);
        Ok((outer, inner))
    }
}

impl SplitAxis {
    fn by(&self) -> SplitBy {
        let constant = |value: i64| Expr::int_of(i128::from(value), self.axis.dtype());
        match &self.by {
            Split::Factor(value) => SplitBy::Factor(constant(*value)),
            Split::Nparts(value) => SplitBy::Nparts(constant(*value)),
            Split::Overlap(value) => SplitBy::Overlap(constant(*value)),
            Split::FactorExpr(expr) => SplitBy::Factor(expr.clone()),
            Split::NpartsExpr(expr) => SplitBy::Nparts(expr.clone()),
        }
    }
}

/// A symbolic factor is an integer expression of sizes.
fn check_size(axis: &str, schedule: &Schedule, expr: &Expr) -> Result<(), ScheduleError> {
    let refused = |found: String| ScheduleError::FactorForm { axis: axis.to_owned(), found };
    if !expr.dtype().is_int() {
        return Err(refused(print_expr(expr)));
    }
    if let Some(value) = expr.as_int().filter(|v| *v < 1) {
        return Err(refused(value.to_string()));
    }
    let mut fault = None;
    for_each_expr(expr, &mut |e| match e.node() {
        Node::Var(var) => {
            let is_axis = schedule.stages.iter().any(|s| s.all_axes.iter().any(|a| a.var() == var));
            if is_axis {
                fault = Some(var.name().to_owned());
            }
        }
        Node::Load(buffer, _) => fault = Some(buffer.name.clone()),
        _ => {}
    });
    fault.map_or(Ok(()), |found| Err(refused(found)))
}

/// Stages that were attached at an axis that is gone are attached at the one that took its place.
pub(crate) fn move_attached(schedule: &mut Schedule, parent: StageId, from: &IterVar, to: &IterVar) {
    for stage in &mut schedule.stages {
        if matches!(&stage.attach, Attach::At(p, axis) if *p == parent && axis == from) {
            Arc::make_mut(stage).attach = Attach::At(parent, to.clone());
        }
    }
}
