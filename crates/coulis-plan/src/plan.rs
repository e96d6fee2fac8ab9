//! From a call to a schedule.

use coulis_ir::{Target, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Stage, Step};
use coulis_tensor::TensorError;

use crate::program::{Spec, Statement, build};
use crate::room::{Room, fits};
use crate::strategy::{Decline, Facts, Machine, STRATEGIES, Sketch, Strategy, copy_in_order, map_after};

/// A strategy that was taken, with what it decided.
pub struct Choice {
    /// The strategy.
    pub strategy: &'static Strategy,
    /// What it decided.
    pub sketch: Sketch,
    /// Those before it, with the need of each that was not met.
    pub declined: Vec<(&'static Strategy, Decline)>,
    /// What a thread may keep.
    pub room: Room,
}

/// A scheduled program.
pub struct Planned {
    /// The program and its stages.
    pub statement: Statement,
    /// The schedule.
    pub schedule: Schedule,
}

/// Why a plan cannot be made; a fault of the planner unless a trace was given.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The program is not well formed.
    #[error(transparent)]
    Program(#[from] TensorError),
    /// A trace that leaves results unwritten.
    #[error("the trace stores only some results of `{stage}`; `set_store_predicate` is legal in no plan")]
    Predicate {
        /// The stage.
        stage: String,
    },
    /// A trace for a machine of another kind.
    #[error(
        "the trace binds `{axis}` of `{stage}` to {tag}, and the CPU runs loops; legal devices are sim and cuda"
    )]
    Threads {
        /// The stage.
        stage: String,
        /// Its axis.
        axis: String,
        /// The index that it is bound to.
        tag: &'static str,
    },
    /// A primitive refused.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// A step of a trace that the problem does not take.
    #[error(
        "step {number} of {n_steps} of the plan does not fit this call, for which another may have to be made: {source}"
    )]
    Step {
        /// Counted from 1.
        number: usize,
        /// Steps of the trace.
        n_steps: usize,
        /// What the primitive says.
        source: ScheduleError,
    },
    /// A trace whose steps the problem takes, and of which no kernel is made.
    #[error("the plan does not fit this call, for which another may have to be made: {why}")]
    Misfit {
        /// What the schedule says.
        why: String,
    },
    /// No strategy of that name.
    #[error("unknown strategy `{name}`; legal ones are {legal}")]
    UnknownStrategy {
        /// The name that was asked for.
        name: String,
        /// The catalogue's names.
        legal: String,
    },
    /// No strategy accepts; the last one accepts everything, so this is a fault of the planner.
    #[error("no strategy accepts the problem")]
    NoStrategy,
    /// A reducer that needs its elements in order, where no plan keeps it.
    #[error(
        "reducer `{reducer}` does not claim to be associative and commutative, so its elements are to be folded in order, which {why}"
    )]
    Order {
        /// The reducer.
        reducer: String,
        /// Why that cannot be.
        why: &'static str,
    },
}

/// The first strategy that accepts, with the most room in which what a thread keeps fits into its registers.
pub fn choose(spec: &Spec, target: &Target) -> Result<Choice, PlanError> {
    let in_order = needs_order(spec, target)?;
    for room in Room::ALL {
        let choice = choose_in(&Facts { spec, target, room }, in_order)?;
        if !room.has_state() || fits(spec, &choice, target)? {
            return Ok(choice);
        }
    }
    Err(PlanError::NoStrategy)
}

/// The first strategy that accepts, `in_order` of those that keep it; without room for others the last one of the machine.
fn choose_in(facts: &Facts, in_order: bool) -> Result<Choice, PlanError> {
    let mut declined = Vec::new();
    let room = facts.room;
    let of_machine = STRATEGIES.iter().filter(|s| s.machine == Machine::of(facts.target));
    let last = of_machine.clone().next_back().filter(|_| !room.has_others());
    for strategy in of_machine.filter(|s| last.is_none_or(|last| last.name == s.name)) {
        if in_order && !strategy.keeps_order {
            continue;
        }
        match propose(strategy, facts) {
            Ok(sketch) => return Ok(Choice { strategy, sketch, declined, room }),
            Err(decline) => declined.push((*strategy, decline)),
        }
    }
    Err(PlanError::NoStrategy)
}

/// What a strategy decides. Where there are no elements there is nothing to decide, and all but the last one of the machine,
/// which takes everything, decline.
fn propose(strategy: &Strategy, facts: &Facts) -> Result<Sketch, Decline> {
    let problem = &facts.spec.problem;
    let last = STRATEGIES.iter().rfind(|s| s.machine == strategy.machine);
    if problem.n_outputs.min(problem.reduce_len) == 0 && last.is_some_and(|last| last.name != strategy.name) {
        return Err(Decline::new("at least one element", "none"));
    }
    (strategy.propose)(facts).map(|sketch| facts.with_copies(facts.with_map(sketch)))
}

/// Whether elements are to be folded in order.
///
/// Errors: they are, and no plan of the target does.
fn needs_order(spec: &Spec, target: &Target) -> Result<bool, PlanError> {
    if spec.reducer.claims.any_order() {
        return Ok(false);
    }
    let refused = |why| Err(PlanError::Order { reducer: spec.reducer.name.clone(), why });
    if Machine::of(target) == Machine::Threads {
        return refused("no plan for threads in blocks does; the CPU's do");
    }
    if !spec.problem.positions_ascend() {
        return refused("is not their order in memory here; reduce a row-major copy");
    }
    Ok(true)
}

/// Writes a sketch as primitives.
pub fn schedule(spec: &Spec, strategy: &Strategy, sketch: &Sketch) -> Result<Planned, PlanError> {
    let statement = build(spec, &sketch.constant, sketch.folds(), sketch.map.spreads())?;
    let mut schedule = Schedule::of(&statement.program);
    copy_in_order(&mut schedule, &statement, sketch, strategy.machine)?;
    (strategy.schedule)(&mut schedule, &statement, spec, sketch)?;
    if !sketch.map.inside {
        map_after(&mut schedule, &statement, spec, sketch, strategy.machine)?;
    }
    Ok(Planned { statement, schedule })
}

/// A schedule made by the steps of a trace instead of a strategy. `sketch` says which extents are constants, as the
/// trace may count on them. A `machine` without threads takes no trace that binds axes to them.
pub fn replay(spec: &Spec, sketch: &Sketch, machine: Machine, steps: &[Step]) -> Result<Planned, PlanError> {
    let statement = build(spec, &sketch.constant, sketch.folds(), sketch.map.spreads())?;
    let mut schedule = Schedule::of(&statement.program);
    for (position, step) in steps.iter().enumerate() {
        let misfit = |source| PlanError::Step { number: position + 1, n_steps: steps.len(), source };
        schedule.apply(step.clone()).map_err(misfit)?;
    }
    let tag_of = |stage: &Stage, axis| stage.thread_of(axis).filter(|tag| *tag != ThreadTag::VThread);
    let mut bound = schedule
        .stages()
        .iter()
        .filter_map(|stage| stage.leaves().iter().find_map(|axis| Some((stage, axis, tag_of(stage, axis)?))));
    if machine == Machine::Loops
        && let Some((stage, axis, tag)) = bound.next()
    {
        let (stage, axis) = (stage.name().to_owned(), stage.axis_name(axis));
        return Err(PlanError::Threads { stage, axis, tag: tag.name() });
    }
    if let Some(stage) = schedule.stages().iter().find(|stage| stage.stores_some()) {
        return Err(PlanError::Predicate { stage: stage.name().to_owned() });
    }
    Ok(Planned { statement, schedule })
}

/// The strategy of that name, and what it decides; or the need that is not met.
pub fn choose_named(
    spec: &Spec,
    target: &Target,
    name: &str,
) -> Result<Result<(&'static Strategy, Sketch), Decline>, PlanError> {
    let legal = || STRATEGIES.iter().filter(|s| s.machine == Machine::of(target));
    let strategy = legal().find(|s| s.name == name).ok_or_else(|| PlanError::UnknownStrategy {
        name: name.to_owned(),
        legal: legal().map(|s| s.name).collect::<Vec<_>>().join(", "),
    })?;
    let facts = Facts { spec, target, room: Room::Ample };
    Ok(propose(strategy, &facts).map(|sketch| (*strategy, sketch)))
}
