//! How long coulis itself takes from a call to a kernel's text, stage by stage, for a machine that need not be here.
//!
//! The stages are those of [`crate::reduce::prepare`] without the memory of kernels and the compiler behind:
//! the check, the plan, the nest, each pass, the verifier, and the text. Times are of this machine; the
//! counts next to them are not, so a test can hold on to those.

use std::time::Instant;

use coulis_codegen::{dialect_named, emit, emit_module};
use coulis_ir::simplify::n_steps;
use coulis_schedule::build_nest;

use super::Workload;
use crate::error::Error;
use crate::pipeline::lower_for;
use crate::reduce::{check, planned_for};
use crate::request::{DeviceChoice, Request, Tuned};
use crate::target::TargetChoice;

/// One step on the way to a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// `check`, `plan`, `nest`, the name of a pass, `verify`, or `emit`.
    pub name: &'static str,
    /// How long it took.
    pub seconds: f64,
    /// Steps of analysis: see [`n_steps`].
    pub n_steps: u64,
}

/// The way of one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages {
    /// Name of the plan.
    pub plan: String,
    /// Its schedule as text.
    pub trace: String,
    /// In order.
    pub stages: Vec<Stage>,
    /// What comes out: CUDA text, or C.
    pub text: String,
}

impl Stages {
    /// Of all stages together.
    pub fn seconds(&self) -> f64 {
        self.stages.iter().map(|stage| stage.seconds).sum()
    }

    /// Of all stages together.
    pub fn n_steps(&self) -> u64 {
        self.stages.iter().map(|stage| stage.n_steps).sum()
    }
}

/// Times one stage after another.
struct Watch {
    stages: Vec<Stage>,
    start: Instant,
    simplified: u64,
}

impl Watch {
    fn lap(&mut self, name: &'static str) {
        let (now, simplified) = (Instant::now(), n_steps());
        let seconds = (now - self.start).as_secs_f64();
        self.stages.push(Stage { name, seconds, n_steps: simplified - self.simplified });
        (self.start, self.simplified) = (now, simplified);
    }
}

/// Goes from a workload to its kernel's text once. Nothing is looked up and nothing is kept.
///
/// # Errors
/// Those of the call, and that of a plan which the target has no room for.
pub fn stages(workload: &Workload, target: &TargetChoice) -> Result<Stages, Error> {
    let facts = target.facts()?;
    let device = match facts.has_threads() {
        true => DeviceChoice::Sim { warp: facts.warp, orders: 1 },
        false => DeviceChoice::Cpu,
    };
    let request = Request { device, tuned: Tuned::Ignored, ..workload.request()? };
    let mut watch = Watch { stages: Vec::new(), start: Instant::now(), simplified: n_steps() };
    let call = check(&[workload.array_info()], &request)?;
    watch.lap("check");
    let planned = planned_for(&call, &request, &facts)?;
    watch.lap("plan");
    let nest = build_nest(&planned.schedule, &planned.args, "reduce")?;
    watch.lap("nest");
    let checked = lower_for(nest, &facts, &mut |pass, _| watch.lap(pass.name))?.checked;
    watch.lap("verify");
    let unsupported = |error| Error::unsupported("emit", error);
    let text = match facts.has_threads() {
        true => dialect_named("cuda").and_then(|d| emit_module(&checked, d)).map_err(unsupported)?.text,
        false => {
            let options = coulis_codegen::Options::for_target(&facts);
            dialect_named("c").and_then(|d| emit(&checked, d, options)).map_err(unsupported)?.text
        }
    };
    watch.lap("emit");
    Ok(Stages { plan: planned.info.name, trace: planned.info.trace, stages: watch.stages, text })
}
