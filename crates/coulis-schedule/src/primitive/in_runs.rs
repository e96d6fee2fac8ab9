//! in_runs: each execution of a reduce loop folds a short run by the reducer's quick step, then closes it into the total.
//!
//! This is the first of the two levels of contract N12: up to `max_steps` elements are folded in a narrower type, in
//! registers of their own, and the state of the stage changes once a run. Source: contract N12.

use coulis_ir::{Expr, LoopKind};
use coulis_tensor::{Body, IterKind, IterVar};

use crate::error::ScheduleError;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::ranges;
use crate::schedule::{Schedule, StageRef};
use crate::stage::StageId;
use crate::trace::Step;

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "in_runs",
    signature: "s[B].in_runs(axis)",
    summary: "each execution of the reduce loop, with the reduce loops in it, folds a short run by the reducer's \
              quick step, closed into the total; under a condition on elements it has no effect",
    before: "for i in range(n):\n    B[i] = T.float64(0)\n    for k_outer, k_inner in T.grid((m + 15) // 16, 16):\n        if T.likely(k_outer * 16 + k_inner < m):\n            B[i] = B[i] + T.Cast(\"float64\", T.Cast(\"float32\", A[i, k_outer * 16 + k_inner]))",
    call: "s[B].in_runs(k_inner)",
    after: "for i in range(n):\n    B[i] = T.float64(0)\n    for k_outer in range((m + 15) // 16):\n        B_run = T.allocate([1], \"float32\", \"local\")\n        B_run[0] = T.float32(0)\n        if T.likely(k_outer * 16 + 0 < m):\n            B_run[0] = T.Cast(\"float32\", A[i, k_outer * 16 + 0])\n        for k_inner in range(15):\n            if T.likely(k_outer * 16 + (k_inner + 1) < m):\n                B_run[0] = B_run[0] + T.Cast(\"float32\", A[i, k_outer * 16 + (k_inner + 1)])\n        B[i] = B[i] + T.Cast(\"float64\", B_run[0])",
    apply: apply::<InRuns>,
};

/// Arguments of in_runs.
#[derive(Clone, Debug)]
pub(crate) struct InRuns {
    pub stage: StageId,
    pub axis: IterVar,
}

impl Schedule {
    /// The reduce loop and those in it fold short runs by the reducer's quick step.
    pub fn in_runs(&mut self, stage: impl Into<StageRef>, axis: &IterVar) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(InRuns { stage, axis: axis.clone() })
    }
}

impl Primitive for InRuns {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<InRuns, ScheduleError> {
        call.at_most(1)?;
        let stage = call.object()?;
        Ok(InRuns { stage, axis: call.axis(stage, 0, "axis")? })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let args = vec![axis_arg(schedule, self.stage, &self.axis)];
        Step::on_stage(schedule.stage_name(self.stage), "in_runs", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        let at = stage.leaf_position("in_runs", &self.axis)?;
        let Body::Reduce(reduction) = &stage.body else {
            let (wanted, found) = ("a reduction", "no reduction");
            return Err(ScheduleError::WrongBody {
                primitive: "in_runs",
                stage: stage.name.clone(),
                wanted,
                found,
            });
        };
        if self.axis.kind() != IterKind::Reduce {
            return Err(stage.wrong_kind("in_runs", &self.axis, IterKind::Reduce));
        }
        let Some(quick) = &reduction.quick else {
            let (wanted, found) = ("a reducer with a quick step", "one without");
            return Err(ScheduleError::WrongBody {
                primitive: "in_runs",
                stage: stage.name.clone(),
                wanted,
                found,
            });
        };
        let bad = |found: String| ScheduleError::BadValue {
            primitive: "in_runs",
            stage: stage.name.clone(),
            what: "axis",
            wanted: "a reduce loop that with those in it has a constant number of steps, up to the longest run of \
                     the reducer",
            found,
        };
        let extents = ranges::extents(stage, &ranges::declared(stage), &schedule.analyzer());
        let steps = extents.get(self.axis.var()).and_then(Expr::as_int);
        let steps = steps.ok_or_else(|| bad("no constant".to_owned()))?;
        let longest = i128::from(quick.max_steps);
        let inner = &stage.leaves[at + 1..];
        let mut all = steps;
        for leaf in inner.iter().filter(|leaf| stage.origin(leaf).reduce) {
            let steps = extents.get(leaf.var()).and_then(Expr::as_int).filter(|_| !stage.origin(leaf).data);
            let Some(steps) = steps else {
                return Err(bad(format!(
                    "the reduce loop `{}` in it, of no constant number",
                    stage.axis_name(leaf)
                )));
            };
            all = all.saturating_mul(steps);
        }
        if all > longest {
            return Err(bad(format!("{all} steps, where the longest run is {longest}")));
        }
        match inner.iter().find(|leaf| stage.kind_of(leaf) == LoopKind::Parallel) {
            Some(parallel) => Err(bad(format!("the parallel loop `{}` in it", stage.axis_name(parallel)))),
            None => Ok(()),
        }
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id_mut(self.stage);
        stage.attrs.values_mut().for_each(|attr| attr.is_run = false);
        stage.attrs.entry(self.axis.var().clone()).or_default().is_run = true;
        Ok(())
    }
}
