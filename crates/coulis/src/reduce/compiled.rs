//! Kernels of `reduce`: planned, lowered and compiled once for all calls that they fit, and found again.
//!
//! A kernel is known by its plan before it is made: the strategy, what that decided, and what of the problem is written
//! into the kernel. Under that key it is looked for in this process, then on the disk, where a hit spares planning,
//! lowering and emission; else it is made.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use coulis_ir::{Kernel, Target};
use coulis_plan::tuned::changed;
use coulis_plan::{Choice, Constants, PlanError, Role, Room};
use coulis_runtime::{Executable, Restored, signature};
use coulis_schedule::Schedule;
use coulis_tensor::Tensor;

use super::Call;
use crate::device::Opened;
use crate::error::Error;
use crate::pipeline::{Lowered, Route, compile_schedule};
use crate::request::{PlanInfo, Request, Tuned};
use crate::statistic::Statistic;
use crate::tune::record::{self, Record};

/// A kernel in memory, shared by all calls that it fits.
pub(crate) struct Compiled {
    pub(crate) info: PlanInfo,
    /// The kernel's name and parameters.
    pub(crate) signature: Kernel,
    pub(crate) executable: Arc<dyn Executable>,
    pub(crate) route: Route,
}

/// Name of the kernels.
const KERNEL: &str = "reduce";

/// A plan as it is written down and scheduled.
pub(crate) struct Planned {
    pub(crate) info: PlanInfo,
    pub(crate) schedule: Schedule,
    pub(crate) args: Vec<Tensor>,
    /// Whether a caller gave it, as one that was made for another call.
    is_given: bool,
}

impl Planned {
    /// The kernel as the schedule makes it, before any pass.
    pub(super) fn nest(&self) -> Result<Kernel, Error> {
        Ok(coulis_schedule::build_nest(&self.schedule, &self.args, KERNEL)?)
    }

    /// The kernel of the plan.
    pub(super) fn lower(&self, device: &Opened) -> Result<Lowered, Error> {
        let lowered = compile_schedule(&self.schedule, &self.args, KERNEL, device.target());
        lowered.map_err(|error| match self.is_given && error.code == "schedule" {
            true => Error::user("plan", PlanError::Misfit { why: error.message }),
            false => error,
        })
    }
}

/// A strategy with its decisions, and what of them is not the planner's.
pub(crate) struct Chosen {
    pub(crate) choice: Choice,
    tuned: Option<String>,
}

impl Chosen {
    /// What the planner decides by itself for a machine.
    pub(crate) fn own(call: &Call, target: &Target) -> Result<Chosen, Error> {
        Ok(Chosen { choice: choose_for(call, target)?, tuned: None })
    }
}

/// The strategy that takes a call on a device, with the parameters that the request asks for.
pub(crate) fn choose(call: &Call, request: &Request, device: &Opened) -> Result<Chosen, Error> {
    choose_with(call, request, device.target(), || record::load(&record::class(call, device)))
}

/// The same for a machine; `recorded` gives what a search there found.
fn choose_with(
    call: &Call,
    request: &Request,
    target: &Target,
    recorded: impl FnOnce() -> Option<Record>,
) -> Result<Chosen, Error> {
    let mut choice = choose_for(call, target)?;
    let name = choice.strategy.name;
    let mut given = None;
    let changes = match &request.tuned {
        // A trace has its own parameters.
        _ if request.plan.is_some() => Vec::new(),
        Tuned::Ignored => Vec::new(),
        // Maps before and after the statistics are of no class.
        Tuned::Recorded if call.normalization.is_some() || call.prologue.is_some() => Vec::new(),
        Tuned::Recorded => {
            let known = recorded().filter(|known| known.strategy == name);
            known.map(|known| known.chosen).unwrap_or_default()
        }
        Tuned::As { strategy, changes } => {
            if strategy != name {
                choice = choose_named(call, target, strategy)?;
                given = Some(choice.strategy.name);
            }
            changes.clone()
        }
    };
    if changes.is_empty() {
        return Ok(Chosen { choice, tuned: given.map(str::to_owned) });
    }
    let name = choice.strategy.name;
    let words = record::in_words(&changes);
    match changed(target, &choice.sketch, &changes) {
        Some(sketch) => choice.sketch = sketch,
        None if request.tuned == Tuned::Recorded => return Ok(Chosen { choice, tuned: None }),
        None => return Err(no_plan(name, &words, None)),
    }
    Ok(Chosen { choice, tuned: Some(words) })
}

/// The refusal of parameters with which a strategy makes no plan, and of what a primitive says of them.
fn no_plan(strategy: &str, words: &str, why: Option<&PlanError>) -> Error {
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    Error::user("plan/tuned", format!("`{strategy}` with {words} is no plan of this call{why}"))
}

/// What `make` gives; where that fails with recorded parameters, as those of another version of the planner
/// may, what it gives with the planner's own.
pub(super) fn recorded_or_own<T>(
    request: &Request,
    make: impl Fn(&Request) -> Result<T, Error>,
) -> Result<T, Error> {
    let own = || Request { tuned: Tuned::Ignored, ..request.clone() };
    match make(request) {
        Err(error) if request.tuned == Tuned::Recorded && error.code != "interrupted" => make(&own()),
        other => other,
    }
}

/// The strategy of that name instead of the planner's.
fn choose_named(call: &Call, target: &Target, name: &str) -> Result<Choice, Error> {
    let found = coulis_plan::choose_named(&call.spec, target, name);
    let (strategy, sketch) = found.map_err(|e| Error::user("plan/tuned", e))?.map_err(|why| {
        let message = format!("`{name}` is no plan of this call: wanted {}, found {}", why.wanted, why.found);
        Error::user("plan/tuned", message)
    })?;
    Ok(Choice { strategy, sketch, declined: Vec::new(), room: Room::Ample })
}

fn choose_for(call: &Call, target: &Target) -> Result<Choice, Error> {
    coulis_plan::choose(&call.spec, target).map_err(|error| match error {
        PlanError::Order { .. } => Error::unsupported("reduce/order", error.to_string()),
        _ => Error::bug("plan", error),
    })
}

/// Why each strategy was taken or passed over, a line each.
fn reasons(chosen: &Chosen) -> Vec<String> {
    let Chosen { choice, tuned } = chosen;
    let names = choice.declined.iter().map(|(s, _)| s.name).chain([choice.strategy.name]);
    let width = names.map(str::len).max().unwrap_or(0);
    let declined = choice
        .declined
        .iter()
        .map(|(s, d)| format!("{:width$}  declined  wanted {}, found {}", s.name, d.wanted, d.found));
    let chosen = format!("{:width$}  chosen    {}", choice.strategy.name, choice.strategy.summary);
    let tuned = tuned.iter().map(|words| format!("{:width$}  tuned     {words}", choice.strategy.name));
    let narrowed =
        choice.room.remark().map(|why| format!("{:width$}  narrowed  {why}", choice.strategy.name));
    declined.chain([chosen]).chain(narrowed).chain(tuned).collect()
}

/// The plan of a choice, or the trace that the request asks for instead.
pub(super) fn schedule(call: &Call, request: &Request, chosen: Chosen) -> Result<Planned, Error> {
    let reasons = reasons(&chosen);
    let Chosen { choice: Choice { strategy, sketch, .. }, tuned } = chosen;
    let planned = match &request.plan {
        None => coulis_plan::schedule(&call.spec, strategy, &sketch).map_err(|error| match &tuned {
            Some(words) => no_plan(strategy.name, words, Some(&error)),
            None => Error::bug("plan", error),
        })?,
        Some(text) => {
            let steps = crate::trace::parse(text)?;
            coulis_plan::replay(&call.spec, &sketch, strategy.machine, &steps)?
        }
    };
    let is_given = request.plan.is_some();
    let name = if is_given { "replayed" } else { strategy.name };
    let trace = planned.schedule.trace().to_string();
    let info = PlanInfo { name: name.to_owned(), trace, reasons, tuned };
    let args = planned.statement.program.args().to_vec();
    Ok(Planned { info, schedule: planned.schedule, args, is_given })
}

/// The plan of a call for a machine, which need not be here and of which nothing is recorded.
pub(crate) fn planned_for(call: &Call, request: &Request, target: &Target) -> Result<Planned, Error> {
    schedule(call, request, choose_with(call, request, target, || None)?)
}

type Table = HashMap<String, Arc<Compiled>>;

fn table() -> std::sync::MutexGuard<'static, Table> {
    static TABLE: OnceLock<Mutex<Table>> = OnceLock::new();
    TABLE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kernel of a call.
pub(super) fn compile(call: &Call, request: &Request, device: &Opened) -> Result<Arc<Compiled>, Error> {
    recorded_or_own(request, |request| compile_choice(call, request, device, choose(call, request, device)?))
}

/// The kernel of a call by the planner's own plan, whatever is asked for or recorded.
pub(super) fn compile_own(call: &Call, request: &Request, device: &Opened) -> Result<Arc<Compiled>, Error> {
    compile_choice(call, request, device, Chosen::own(call, device.target())?)
}

/// A kernel of the call that reads and writes element by element, for memory that is aligned to no more than that.
pub(super) fn compile_by_elements(
    call: &Call,
    request: &Request,
    device: &Opened,
) -> Result<Arc<Compiled>, Error> {
    let target = Target { vector_bytes: 1, ..device.target().clone() };
    compile_choice(call, request, device, Chosen::own(call, &target)?)
}

fn compile_choice(
    call: &Call,
    request: &Request,
    device: &Opened,
    chosen: Chosen,
) -> Result<Arc<Compiled>, Error> {
    let choice = &chosen.choice;
    let key = format!(
        "{}|{}|{:?}|{}|{:?}",
        device.identity(),
        choice.strategy.name,
        choice.sketch,
        kernel_key(call, &choice.sketch.constant),
        request.plan
    );
    let found = table().get(&key).cloned();
    if let Some(found) = found {
        return Ok(found);
    }
    let compiled = match device.restore(&key).and_then(|found| restored(found, &chosen)) {
        Some(found) => found,
        None => make(call, request, device, chosen, &key)?,
    };
    let compiled = Arc::new(compiled);
    table().insert(key, compiled.clone());
    Ok(compiled)
}

fn make(
    call: &Call,
    request: &Request,
    device: &Opened,
    chosen: Chosen,
    key: &str,
) -> Result<Compiled, Error> {
    let planned = schedule(call, request, chosen)?;
    let Lowered { checked, mut route } = planned.lower(device)?;
    route.push(format!("runtime/{}", device.name()));
    let note = serde_json::json!({ "name": planned.info.name, "trace": planned.info.trace, "route": route });
    let executable = device.compile_as(&checked, key, &note.to_string())?;
    Ok(Compiled { info: planned.info, signature: signature(checked.kernel()), executable, route })
}

/// A kernel from the disk. Why strategies declined is a matter of the call, and so not in the note.
fn restored(found: Restored, chosen: &Chosen) -> Option<Compiled> {
    let note: serde_json::Value = serde_json::from_str(&found.note).ok()?;
    let text = |key: &str| Some(note.get(key)?.as_str()?.to_owned());
    let route = note.get("route")?.as_array()?.iter().map(|step| Some(step.as_str()?.to_owned()));
    let (reasons, tuned) = (reasons(chosen), chosen.tuned.clone());
    let info = PlanInfo { name: text("name")?, trace: text("trace")?, reasons, tuned };
    let route = route.collect::<Option<Route>>()?;
    Some(Compiled { info, signature: found.signature, executable: found.executable, route })
}

/// Everything of a call that its kernel depends on, the sketch aside.
fn kernel_key(call: &Call, constant: &Constants) -> String {
    let spec = &call.spec;
    let mut key = String::new();
    let dims = &spec.problem.given_dims();
    for (d, (dim, is_constant)) in dims.iter().zip(&constant.extents).enumerate() {
        let classes: Vec<Option<i64>> =
            (0..dim.strides.len()).map(|array| constant.stride(dims, array, d)).collect();
        let (kind, stride) = match dim.role {
            Role::Kept { .. } => ('i', constant.result_stride(dims, d)),
            Role::Reduced { position_stride } => ('k', Some(position_stride)),
        };
        let extent = if *is_constant { dim.extent } else { -1 };
        let _ = write!(key, "{kind}{extent}{classes:?}{stride:?};");
    }
    let ops: Vec<&str> = call.statistics.iter().map(Statistic::key).collect();
    let _ = write!(
        key,
        "{:?}|{:?}|{:?}|{:?}|{:?}|{:?}|{}|{ops:?}|{:?}|{:?}|{}",
        spec.problem.parts,
        (0..spec.n_read()).map(|array| spec.problem.dims_in_order(array)).collect::<Vec<_>>(),
        spec.inputs,
        spec.offsets,
        call.reducer_request,
        call.inits,
        spec.mask,
        spec.outputs,
        spec.reducer.nan,
        spec.reducer.step.is_some()
    );
    if let Some(map) = &call.prologue {
        let _ = write!(key, "|{}", crate::normalization::lambda_key(map));
    }
    if let Some(normalization) = &call.normalization {
        let _ = write!(key, "|{}", crate::normalization::key(normalization));
    }
    key
}
