//! pragma: a remark on a loop that passes read.
//!
//! A value of another kind than passes read is refused. A key that none of them reads is kept as it is, as a remark of the
//! user's own, which costs nothing.

use coulis_ir::remark::{
    ASYNC_COPY, AUTO_UNROLL_MAX_STEP, PREFETCH, PREFETCH_BYTES, PREFETCH_L2, RESIDENT, STREAM, UNROLL,
    UNROLL_EXPLICIT, VECTORIZE,
};
use coulis_ir::verify::Faults;
use coulis_ir::{Attr, Expr, LoopKind};
use coulis_tensor::IterVar;

use crate::error::ScheduleError;
use crate::example::copy;
use crate::loop_kind;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::schedule::{Schedule, StageRef};
use crate::stage::StageId;
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "pragma",
    signature: "s[B].pragma(axis, key, value=1)",
    summary: "marks the loop with `pragma_<key>`; the keys unroll and vectorize act as those primitives, \
              auto_unroll_max_step expands constant serial loops of up to `value` steps, which are written out \
              whatever unroll_explicit says, prefetch asks for the memory of `value` iterations later, of rows that are walked side by side a line later each, prefetch_l2 for that of `value` iterations later, but into the second-level cache \
              only, on whose way there is room for more lines, prefetch_bytes asks for what lies `value` bytes behind what is \
              read, stream has a CPU store results past its caches and what a GPU reads leave them first, async_copy has a GPU \
              copy words into shared memory past the registers, all of the loop at once, so that nothing in it may \
              read them and no thread wait there for others, and resident has a GPU's compiler leave registers for `value` blocks a multiprocessor; any \
              other key is a remark that nothing reads",
    before: "for i in range(4):\n    B[i] = A[i]",
    call: "s[B].pragma(i, \"auto_unroll_max_step\", 16)",
    after: "\
with T.attr(None, \"pragma_auto_unroll_max_step\", 16):
    for i in range(4):
        B[i] = A[i]",
    example: || copy(&[Expr::int(4)]),
    apply: apply::<Pragma>,
};

/// A pragma that coulis reads.
#[derive(Debug)]
pub struct PragmaEntry {
    /// Its key.
    pub key: &'static str,
    /// What its value is.
    pub value: PragmaValue,
    /// The same in words, for who gives another.
    pub wanted: &'static str,
}

/// What the value of a pragma is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PragmaValue {
    /// None: 1 stands for it, or `True`.
    Mark,
    /// 0 or 1, or a bool.
    Switch,
    /// An integer of at least so much.
    AtLeast(i64),
}

/// Every pragma that coulis reads.
pub const PRAGMAS: &[PragmaEntry] = &[
    PragmaEntry { key: UNROLL, value: PragmaValue::Mark, wanted: "1 or left out" },
    PragmaEntry { key: VECTORIZE, value: PragmaValue::Mark, wanted: "1 or left out" },
    PragmaEntry {
        key: AUTO_UNROLL_MAX_STEP,
        value: PragmaValue::AtLeast(0),
        wanted: "a number of steps of at least 0",
    },
    PragmaEntry { key: UNROLL_EXPLICIT, value: PragmaValue::Switch, wanted: "0 or 1" },
    PragmaEntry {
        key: PREFETCH,
        value: PragmaValue::AtLeast(0),
        wanted: "a number of iterations of at least 0",
    },
    PragmaEntry {
        key: PREFETCH_L2,
        value: PragmaValue::AtLeast(0),
        wanted: "a number of iterations of at least 0",
    },
    PragmaEntry {
        key: PREFETCH_BYTES,
        value: PragmaValue::AtLeast(0),
        wanted: "a number of bytes of at least 0",
    },
    PragmaEntry { key: STREAM, value: PragmaValue::Switch, wanted: "0 or 1" },
    PragmaEntry { key: ASYNC_COPY, value: PragmaValue::Switch, wanted: "0 or 1" },
    PragmaEntry { key: RESIDENT, value: PragmaValue::AtLeast(1), wanted: "a number of blocks of at least 1" },
];

impl PragmaValue {
    /// The value as passes read it, if it is one.
    fn read(self, given: &Attr) -> Option<Attr> {
        let int = match given {
            Attr::Bool(given) => i64::from(*given),
            Attr::Int(given) => *given,
            Attr::Str(_) => return None,
        };
        let legal = match self {
            PragmaValue::Mark => int == 1,
            PragmaValue::Switch => int == 0 || int == 1,
            PragmaValue::AtLeast(least) => matches!(given, Attr::Int(_)) && int >= least,
        };
        legal.then_some(Attr::Int(int))
    }
}

/// Arguments of pragma.
#[derive(Clone, Debug)]
pub(crate) struct Pragma {
    pub stage: StageId,
    pub axis: IterVar,
    pub key: String,
    pub value: Attr,
}

impl Schedule {
    /// Marks the loop with `pragma_<key>`.
    pub fn pragma(
        &mut self,
        stage: impl Into<StageRef>,
        axis: &IterVar,
        key: &str,
        value: Attr,
    ) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(Pragma { stage, axis: axis.clone(), key: key.to_owned(), value })
    }
}

impl Schedule {
    /// The refusal of a pragma that all these faults come from; `None` of other faults. What stands in a loop is known when
    /// the kernel is lowered: threads that fold wait for each other on some machines and not on others.
    pub fn pragma_fault(&self, faults: &Faults) -> Option<ScheduleError> {
        let (first, others) = faults.faults.split_first()?;
        let key = first.pragma()?;
        if others.iter().any(|fault| fault.pragma() != Some(key)) {
            return None;
        }
        let has_it = |(own, value): &(String, Attr)| own == key && *value != Attr::Int(0);
        let mut loops = Vec::new();
        for stage in self.stages() {
            let marked = stage.leaves().iter().filter(|leaf| {
                stage.attrs.get(leaf.var()).is_some_and(|attr| attr.pragmas.iter().any(has_it))
            });
            let named = |leaf| format!("`{}` of `{}`", stage.axis_name(leaf), self.stage_name(stage.id));
            loops.extend(marked.map(named));
        }
        let found = first.message.clone();
        (!loops.is_empty()).then(|| ScheduleError::PragmaOver { key, loops: loops.join(" or "), found })
    }
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
        let axis = axis_arg(schedule, self.stage, &self.axis);
        let args = vec![axis, Arg::Str(self.key.clone()), self.value_arg()];
        Step::on_stage(schedule.stage_name(self.stage), "pragma", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        stage.leaf_position("pragma", &self.axis)?;
        if let Some(kind) = self.kind() {
            loop_kind::check("pragma", schedule, self.stage, &self.axis, kind)?;
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
        if let Some(known) = self.known().filter(|known| known.value.read(&self.value).is_none()) {
            return Err(ScheduleError::PragmaValue {
                stage: stage.name.clone(),
                key: known.key,
                wanted: known.wanted,
                found: self.value_arg().to_string(),
            });
        }
        Ok(())
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        if let Some(kind) = self.kind() {
            loop_kind::set(schedule, self.stage, &self.axis, kind);
            return Ok(());
        }
        let value = self.known().and_then(|known| known.value.read(&self.value)).unwrap_or(self.value);
        let attr = schedule.by_id_mut(self.stage).attrs.entry(self.axis.var().clone()).or_default();
        attr.pragmas.retain(|(key, _)| *key != self.key);
        attr.pragmas.push((self.key, value));
        Ok(())
    }
}

impl Pragma {
    fn value_arg(&self) -> Arg {
        match &self.value {
            Attr::Bool(value) => Arg::Bool(*value),
            Attr::Int(value) => Arg::Int(*value),
            Attr::Str(value) => Arg::Str(value.clone()),
        }
    }

    fn known(&self) -> Option<&'static PragmaEntry> {
        PRAGMAS.iter().find(|known| known.key == self.key)
    }

    fn kind(&self) -> Option<LoopKind> {
        match self.key.as_str() {
            UNROLL => Some(LoopKind::Unrolled),
            VECTORIZE => Some(LoopKind::Vectorized),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pragma_that_is_read_is_told_of() {
        for known in PRAGMAS {
            let told = |word: &str| word == known.key;
            assert!(ENTRY.summary.split([' ', ',', ';']).any(told), "{}", known.key);
        }
    }
}
