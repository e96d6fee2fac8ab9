//! pragma: a remark on a loop that passes read.

use coulis_ir::remark::{UNROLL, VECTORIZE};
use coulis_ir::{Attr, LoopKind};
use coulis_tensor::{IterKind, IterVar};

use crate::error::ScheduleError;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::schedule::Schedule;
use crate::stage::StageId;
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "pragma",
    signature: "s[B].pragma(axis, key, value=1)",
    summary: "marks the loop with `pragma_<key>`; the keys unroll and vectorize act as those primitives, prefetch asks for the memory of `value` iterations later, stream has a CPU store results past its caches and what a GPU reads leave them first, and resident has a GPU's compiler leave registers for `value` blocks a multiprocessor",
    before: "for i in range(4):\n    B[i] = A[i]",
    call: "s[B].pragma(i, \"auto_unroll_max_step\", 16)",
    after: "with T.attr(None, \"pragma_auto_unroll_max_step\", 16):\n    for i in range(4):\n        B[i] = A[i]",
    apply: apply::<Pragma>,
};

/// Arguments of pragma.
#[derive(Clone, Debug)]
pub(crate) struct Pragma {
    pub stage: StageId,
    pub axis: IterVar,
    pub key: String,
    pub value: Attr,
}

impl Primitive for Pragma {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<Pragma, ScheduleError> {
        call.at_most(3)?;
        let stage = call.object()?;
        let (axis, key) = (call.axis(stage, 0, "axis")?, call.string(1, "key")?);
        let value = match call.maybe(2, "value") {
            Some(arg) => call.attr(arg, "value")?,
            None => Attr::Int(1),
        };
        Ok(Pragma { stage, axis, key, value })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let value = match &self.value {
            Attr::Bool(value) => Arg::Bool(*value),
            Attr::Int(value) => Arg::Int(*value),
            Attr::Str(value) => Arg::Str(value.clone()),
        };
        let args = vec![axis_arg(schedule, self.stage, &self.axis), Arg::Str(self.key.clone()), value];
        Step::on_stage(schedule.stage_name(self.stage), "pragma", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        stage.leaf_position("pragma", &self.axis)?;
        if self.kind().is_some() {
            stage.check_unbound("pragma", &self.axis)?;
        }
        if self.kind() == Some(LoopKind::Vectorized) && self.axis.kind() != IterKind::Data {
            return Err(stage.wrong_kind("pragma", &self.axis, IterKind::Data));
        }
        if self.key.is_empty() || !self.key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(ScheduleError::BadValue {
                primitive: "pragma",
                stage: stage.name.clone(),
                what: "key",
                wanted: "a word of letters, digits and `_`",
                found: format!("`{}`", self.key),
            });
        }
        Ok(())
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        let kind = self.kind();
        let attr = schedule.by_id_mut(self.stage).attrs.entry(self.axis.var().clone()).or_default();
        match kind {
            Some(kind) => attr.kind = Some(kind),
            None => {
                attr.pragmas.retain(|(key, _)| *key != self.key);
                attr.pragmas.push((self.key, self.value));
            }
        }
        Ok(())
    }
}

impl Pragma {
    fn kind(&self) -> Option<LoopKind> {
        match self.key.as_str() {
            UNROLL => Some(LoopKind::Unrolled),
            VECTORIZE => Some(LoopKind::Vectorized),
            _ => None,
        }
    }
}
