//! in_runs: each execution of a reduce loop folds a short run by the reducer's quick step, then closes it into the total.
//!
//! This is the first of the two levels of contract N12: up to `max_steps` elements are folded in a narrower type, in
//! registers of their own, and the state of the stage changes once a run. Source: contract N12.

use std::slice::from_ref;

use coulis_ir::chains::joined;
use coulis_ir::{DType, Expr, Lambda, LoopKind, QuickStep, Reducer, Var};
use coulis_tensor::{Body, IterKind, IterVar, compute, placeholder, reduce_at, reduce_axis};

use crate::error::ScheduleError;
use crate::example::{LEGAL, after, scheduled, size};
use crate::primitive::split::Split;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::ranges;
use crate::schedule::{Schedule, StageRef};
use crate::stage::StageId;
use crate::trace::Step;

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "in_runs",
    signature: "s[B].in_runs(axis, chains=None)",
    summary: "each execution of the reduce loop, with the reduce loops in it, folds a short run by the reducer's \
              quick step, closed into the total; iterations of a loop `chains` in it fold chains of the run, each of \
              them as long as a run may be, that share the closing; under a condition on elements it has no effect",
    before: "\
for i in range(n):
    B[i] = T.float64(0)
    for k_outer, k_inner in T.grid((m + 15) // 16, 16):
        if T.likely(k_outer * 16 + k_inner < m):
            B[i] = B[i] + T.Cast(\"float64\", T.Cast(\"float32\", A[i, k_outer * 16 + k_inner]))",
    call: "s[B].in_runs(k_inner)",
    after: "\
for i in range(n):
    B[i] = T.float64(0)
    for k_outer in range((m + 15) // 16):
        B_run = T.allocate([1], \"float32\", \"local\")
        B_run[0] = T.float32(0)
        if T.likely(k_outer * 16 + 0 < m):
            B_run[0] = T.Cast(\"float32\", A[i, k_outer * 16 + 0])
        for k_inner in range(15):
            if T.likely(k_outer * 16 + (k_inner + 1) < m):
                B_run[0] = B_run[0] + T.Cast(\"float32\", A[i, k_outer * 16 + (k_inner + 1)])
        B[i] = B[i] + T.Cast(\"float64\", B_run[0])",
    example: || {
        after(halves_in_runs(), |s| {
            let k = s.stage("B")?.reduce_axes()[0].clone();
            s.split("B", &k, Split::Factor(16)).map(|_| ())
        })
    },
    apply: apply::<InRuns>,
};

/// `B`, the sums of the rows of `A`, of halves that runs of up to 16 add in `float32` and the total in `float64`.
fn halves_in_runs() -> Schedule {
    fn lambda<const N: usize>(params: [DType; N], body: impl FnOnce([Expr; N]) -> Expr) -> Lambda {
        let params = params.map(|dtype| Var::new("x", dtype));
        Lambda { body: vec![body(params.each_ref().map(Var::expr))], params: params.into() }
    }
    let (run, total) = (DType::F32, DType::F64);
    let in_run = |x: Expr| x.cast(run);
    let add = lambda([total, total], |[a, b]| a + b);
    let in_total = lambda([DType::F16], |[x]| in_run(x).cast(total));
    let quick = QuickStep {
        identity: vec![Expr::float(0.0, run)],
        lift: lambda([DType::F16, DType::I64], |[x, _]| in_run(x)),
        step: lambda([run, run], |[a, b]| a + b),
        close: lambda([total, run], |[a, b]| a + b.cast(total)),
        max_steps: 16,
        max_joined: 32,
        rewalks: Vec::new(),
        spoilt: None,
        nan_witness: None,
    };
    let sum = Reducer::plain(add, vec![Expr::float(0.0, total)]).of_mapped(&in_total);
    let sum = Reducer { quick: Some(quick), ..sum };
    let (n, m) = (size("n"), size("m"));
    let a = placeholder(&[n.clone(), m.clone()], DType::F16, "A").expect(LEGAL);
    let k = reduce_axis(m, "k");
    let b = compute(&[n], "B", |i| reduce_at(&sum, &[a.at((&i[0], &k))], k.expr(), from_ref(&k)));
    scheduled(a, b.expect(LEGAL))
}

/// Arguments of in_runs.
#[derive(Clone, Debug)]
pub(crate) struct InRuns {
    pub stage: StageId,
    pub axis: IterVar,
    pub chains: Option<IterVar>,
}

impl Schedule {
    /// The reduce loop and those in it fold short runs by the reducer's quick step.
    pub fn in_runs(&mut self, stage: impl Into<StageRef>, axis: &IterVar) -> Result<(), ScheduleError> {
        self.in_runs_of_chains(stage, axis, None)
    }

    /// The same with iterations of a loop in it that fold chains of the run.
    pub fn in_runs_of_chains(
        &mut self,
        stage: impl Into<StageRef>,
        axis: &IterVar,
        chains: Option<&IterVar>,
    ) -> Result<(), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(InRuns { stage, axis: axis.clone(), chains: chains.cloned() })
    }
}

impl Primitive for InRuns {
    type Output = ();
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<InRuns, ScheduleError> {
        call.at_most(2)?;
        let stage = call.object()?;
        let chains = call.maybe(1, "chains").map(|_| call.axis(stage, 1, "chains")).transpose()?;
        Ok(InRuns { stage, axis: call.axis(stage, 0, "axis")?, chains })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let axes = [Some(&self.axis), self.chains.as_ref()].into_iter().flatten();
        let args = axes.map(|axis| axis_arg(schedule, self.stage, axis)).collect();
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
        let mut longest = i128::from(quick.max_steps);
        if let Some(chains) = &self.chains {
            let n_chains = inner.iter().find(|leaf| *leaf == chains && stage.origin(leaf).reduce);
            let n_chains = n_chains.and_then(|leaf| extents.get(leaf.var())).and_then(Expr::as_int);
            let has_form = joined(&quick.identity, &quick.step, &quick.rewalks).is_some();
            let Some(n_chains) = n_chains.filter(|n| *n > 0 && has_form) else {
                let what = if has_form { "no reduce loop in it" } else { "a loop over what does not add up" };
                return Err(bad(format!("for chains {what}")));
            };
            longest = (longest * n_chains).min(quick.max_joined.into());
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
        stage.attrs.values_mut().for_each(|attr| (attr.is_run, attr.is_chain) = (false, false));
        stage.attrs.entry(self.axis.var().clone()).or_default().is_run = true;
        if let Some(chains) = self.chains {
            stage.attrs.entry(chains.var().clone()).or_default().is_chain = true;
        }
        Ok(())
    }
}
