//! join: two neighbouring dimensions of an intermediate become one.
//!
//! Loops that are fused are one loop over two dimensions, and a stage that is computed inside it covers whole rows
//! wherever the loop may step from one row to the next. Dimensions that are joined are one dimension, of which it
//! covers what is read. The memory stays the same: the last dimension was contiguous already. Source: the layouts
//! that TVM's `transform_layout` writes, of which this is the one that a reduction over rows of odd length needs.

use std::sync::Arc;

use coulis_ir::expr::promoted_dtype;
use coulis_ir::visit::substitute_expr;
use coulis_ir::{Buffer, Expr, Var};
use coulis_tensor::IterVar;

use crate::error::ScheduleError;
use crate::example::{chain, size};
use crate::fold;
use crate::inline::{map_body, replace_in_stage};
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::schedule::{Schedule, StageRef, Values};
use crate::stage::StageId;
use crate::trace::Step;

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "join",
    signature: "s[B].join(outer, inner)",
    summary: "two neighbouring dimensions of an intermediate become one, at `outer * extent(inner) + inner`",
    before: "\
B = T.allocate([n, 8], \"float32\", \"global\")
for i, j in T.grid(n, 8):
    B[i, j] = A[i, j] * T.float32(2)
for i, j in T.grid(n, 8):
    C[i, j] = B[i, j] + T.float32(1)",
    call: "i_j = s[B].join(i, j)",
    after: "\
B = T.allocate([n * 8], \"float32\", \"global\")
for i_j in range(n * 8):
    B[i_j] = A[i_j // 8, i_j % 8] * T.float32(2)
for i, j in T.grid(n, 8):
    C[i, j] = B[i * 8 + j] + T.float32(1)",
    example: || chain(&[size("n"), Expr::int(8)]),
    apply: apply::<Join>,
};

/// Arguments of join.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    pub stage: StageId,
    pub outer: IterVar,
    pub inner: IterVar,
}

impl Schedule {
    /// Two neighbouring dimensions of an intermediate become one.
    pub fn join(
        &mut self,
        stage: impl Into<StageRef>,
        outer: &IterVar,
        inner: &IterVar,
    ) -> Result<IterVar, ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(Join { stage, outer: outer.clone(), inner: inner.clone() })
    }
}

impl Primitive for Join {
    type Output = IterVar;
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<Join, ScheduleError> {
        call.at_most(2)?;
        let stage = call.object()?;
        Ok(Join { stage, outer: call.axis(stage, 0, "outer")?, inner: call.axis(stage, 1, "inner")? })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let args =
            vec![axis_arg(schedule, self.stage, &self.outer), axis_arg(schedule, self.stage, &self.inner)];
        Step::on_stage(schedule.stage_name(self.stage), "join", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        let name = schedule.stage_name(stage.id);
        if stage.is_arg() {
            let (primitive, reason) = ("join", "the caller lays it out");
            return Err(ScheduleError::Argument { primitive, stage: name, reason });
        }
        let bad = |what, wanted, found: String| {
            Err(ScheduleError::BadValue { primitive: "join", stage: name.clone(), what, wanted, found })
        };
        stage.check_unturned("join")?;
        let at = |axis: &IterVar| stage.axes.iter().position(|a| a == axis);
        let (Some(outer), Some(inner)) = (at(&self.outer), at(&self.inner)) else {
            let axis = if at(&self.outer).is_none() { &self.outer } else { &self.inner };
            return bad("axis", "a dimension of the stage", stage.axis_name(axis));
        };
        if outer + 1 != inner {
            return bad("inner", "the dimension after outer", stage.axis_name(&self.inner));
        }
        if !stage.relations.is_empty() || !stage.attrs.is_empty() || !stage.aligns.is_empty() {
            return bad(
                "stage",
                "one whose loops are as they were made",
                "loops that were scheduled".to_owned(),
            );
        }
        schedule.check_holds_none("join", self.stage)
    }

    fn apply(self, schedule: &mut Schedule) -> Result<IterVar, ScheduleError> {
        let position = schedule.position(self.stage);
        let stage = &schedule.stages[position];
        let Some(at) = stage.axes.iter().position(|a| *a == self.outer) else { return Ok(self.outer) };
        let (rows, length) = (extent(&self.outer), extent(&self.inner));
        let dtype = promoted_dtype(rows.dtype(), length.dtype());
        let var = Var::size(&format!("{}_{}", self.outer.name(), self.inner.name()), dtype);
        let joined = IterVar::new(var, self.outer.kind(), fold::int(0, dtype), fold::mul(&rows, &length));
        let axes: Vec<IterVar> =
            stage.axes[..at].iter().chain([&joined]).chain(&stage.axes[at + 2..]).cloned().collect();
        let value = |e: Expr, axis: &IterVar| (axis.var().clone(), fold::cast(&e, axis.dtype()));
        let map: Values = [
            value(fold::floordiv(&joined.expr(), &length), &self.outer),
            value(fold::floormod(&joined.expr(), &length), &self.inner),
        ]
        .into_iter()
        .collect();
        let body = map_body(&stage.body, &|e| substitute_expr(e, &map));
        let outputs: Vec<(Buffer, Buffer)> =
            stage.outputs.iter().map(|old| (old.clone(), of_shape(old, &axes))).collect();
        let stage = Arc::make_mut(&mut schedule.stages[position]);
        stage.outputs = outputs.iter().map(|(_, new)| new.clone()).collect();
        stage.redefine(axes, body);
        schedule.former.extend(outputs.iter().map(|(old, _)| (old.id, self.stage)));
        let replace = |buffer: &Buffer, indices: &[Expr]| {
            let (_, new) = outputs.iter().find(|(old, _)| old == buffer)?;
            let mut indices = indices.to_vec();
            let inner = indices.remove(at + 1);
            indices[at] = fold::add(&fold::mul(&indices[at], &length), &inner);
            Some(new.at(indices))
        };
        for consumer in schedule.stages[position + 1..].iter_mut().map(Arc::make_mut) {
            replace_in_stage(consumer, &replace);
        }
        Ok(joined)
    }
}

/// The extent of a dimension.
fn extent(axis: &IterVar) -> Expr {
    axis.dom().map_or_else(|| fold::int(1, axis.dtype()), |(_, extent)| extent.clone())
}

/// An intermediate like `old` with these dimensions.
fn of_shape(old: &Buffer, axes: &[IterVar]) -> Buffer {
    let shape: Vec<Expr> = axes.iter().map(extent).collect();
    Buffer::new(&old.name, old.dtype, shape, old.scope)
}
