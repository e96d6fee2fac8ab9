//! set_store_predicate: results are stored only where a condition holds.
//!
//! The start values of a serial reduction are stored anyway. Guards of the data axes stand around the store as well,
//! whatever the condition says (fault C5 of docs/sources.md is why). Source: seed 003.

use coulis_ir::visit::for_each_expr;
use coulis_ir::{BinaryOp, DType, Expr, Node, ThreadTag};

use crate::error::ScheduleError;
use crate::example::{copy, size};
use crate::launch::thread_index;
use crate::names::identifier;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply};
use crate::schedule::{Schedule, StageRef};
use crate::sizes::{in_trace, size_of_name, sizes};
use crate::stage::{Stage, StageId};
use crate::thread_error::ThreadError;
use crate::trace::{Arg, Step, spelling};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "set_store_predicate",
    signature: "s[B].set_store_predicate(condition)",
    summary: "results are stored only where the condition on axes, sizes and thread indices (threadIdx_x) holds",
    before: "for i in range(n):\n    B[i] = A[i]",
    call: "s[B].set_store_predicate(i < n)",
    after: "for i in range(n):\n    if i < n:\n        B[i] = A[i]",
    example: || copy(&[size("n")]),
    apply: apply::<SetStorePredicate>,
};

/// Arguments of set_store_predicate.
#[derive(Clone, Debug)]
pub(crate) struct SetStorePredicate {
    pub stage: StageId,
    pub predicate: Expr,
}

impl Schedule {
    /// Only where the condition holds are results stored. It is over axes of the stage, sizes, and the thread indices
    /// that [`crate::thread_index`] gives.
    pub fn set_store_predicate(
        &mut self,
        stage: impl Into<StageRef>,
        predicate: Expr,
    ) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(SetStorePredicate { stage, predicate })
    }
}

impl Primitive for SetStorePredicate {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<SetStorePredicate, ScheduleError> {
        call.at_most(1)?;
        let stage = call.object()?;
        let predicate = condition(call, stage, call.arg(0, "condition")?)?;
        Ok(SetStorePredicate { stage, predicate })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let stage = schedule.by_id(self.stage);
        let args = vec![written(stage, &in_trace(schedule, &self.predicate, &axis_names(stage)))];
        Step::on_stage(schedule.stage_name(self.stage), "set_store_predicate", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        let refused =
            |found| Err(ThreadError::Predicate { stage: schedule.stage_name(self.stage), found }.into());
        if self.predicate.dtype() != DType::Bool || self.predicate.lanes() != 1 {
            return refused(format!("a value of {}", self.predicate.ty()));
        }
        let sizes = sizes(schedule);
        let mut fault = None;
        for_each_expr(&self.predicate, &mut |e| match e.node() {
            Node::Var(var) => {
                let known = stage.all_axes.iter().any(|a| a.var() == var)
                    || ThreadTag::ALL.into_iter().any(|tag| thread_index(tag) == *var)
                    || sizes.contains(var);
                if !known {
                    fault = Some(format!("`{}`", var.name()));
                }
            }
            Node::Load(buffer, _) => fault = Some(format!("the tensor `{}`", buffer.name)),
            _ => {}
        });
        fault.map_or(Ok(()), refused)
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        schedule.by_id_mut(self.stage).store_predicate = Some(self.predicate);
        Ok(())
    }
}

/// The expression that an argument is.
fn condition(call: &Call, stage: StageId, arg: &Arg) -> Result<Expr, ScheduleError> {
    match arg {
        Arg::Int(value) => i32::try_from(*value)
            .map(Expr::int)
            .map_err(|_| call.bad(format!("{value} is no 32-bit integer"))),
        Arg::Bool(value) => Ok(Expr::bool(*value)),
        Arg::Expr(expr) => Ok(expr.clone()),
        Arg::Name(name) => {
            let tag = ThreadTag::ALL.into_iter().find(|tag| identifier(tag.name()) == *name);
            if let Some(tag) = tag {
                return Ok(thread_index(tag).expr());
            }
            let axes = axis_names(call.schedule.by_id(stage));
            if let Some(size) = size_of_name(call.schedule, name, &axes) {
                return Ok(size.expr());
            }
            Ok(call.schedule.find_axis("set_store_predicate", stage, name)?.expr())
        }
        Arg::Binary(op, a, b) => {
            let (a, b) = (condition(call, stage, a)?, condition(call, stage, b)?);
            let logic = matches!(op, BinaryOp::And | BinaryOp::Or);
            if logic != (a.dtype() == DType::Bool) || logic != (b.dtype() == DType::Bool) {
                return Err(call.bad(format!("`{arg}` mixes conditions and integers")));
            }
            Ok(if logic { Expr::binary(*op, a, b) } else { crate::fold::compare(*op, &a, &b) })
        }
        other => Err(call.bad(format!("`condition` is to be a condition, got {other}"))),
    }
}

/// The names of the axes of a stage, which in its conditions are no names of sizes.
fn axis_names(stage: &Stage) -> Vec<String> {
    stage.all_axes.iter().map(|axis| stage.axis_name(axis)).collect()
}

/// How a condition is written in a step: as code where its parts have a spelling there.
fn written(stage: &Stage, expr: &Expr) -> Arg {
    let whole = || Arg::Expr(expr.clone());
    match expr.node() {
        Node::Int(_) if expr.dtype() == DType::Bool => Arg::Bool(expr.is_int(1)),
        Node::Int(_) => expr.as_int().and_then(|v| i64::try_from(v).ok()).map_or_else(whole, Arg::Int),
        Node::Var(var) => {
            let tag = ThreadTag::ALL.into_iter().find(|tag| thread_index(*tag) == *var);
            let axis = stage.all_axes.iter().find(|a| a.var() == var);
            match (tag, axis) {
                (Some(tag), _) => Arg::Name(identifier(tag.name())),
                (None, Some(axis)) => Arg::Name(stage.axis_name(axis)),
                (None, None) => Arg::Name(var.name().to_owned()),
            }
        }
        Node::Binary(op, a, b) if spelling(*op).is_some() => {
            let (a, b) = (written(stage, a), written(stage, b));
            if matches!(a, Arg::Expr(_)) || matches!(b, Arg::Expr(_)) {
                return whole();
            }
            Arg::Binary(*op, Box::new(a), Box::new(b))
        }
        _ => whole(),
    }
}
