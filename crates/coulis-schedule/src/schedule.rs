//! The schedule: the stages of a program, and what was done to them.

use coulis_ir::hash::FastMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use coulis_ir::simplify::Analyzer;
use coulis_ir::{Buffer, BufferId, Expr, Var, VarKind};
use coulis_tensor::{IterVar, OpKind, Program, Tensor};

use crate::error::ScheduleError;
use crate::names::{identifier, name_of};
use crate::primitive::{self, PRIMITIVES};
use crate::stage::{Attach, Stage, StageId};
use crate::trace::{Step, Trace};

/// What a step gave a name to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// An axis.
    Axis(IterVar),
    /// A stage.
    Stage(StageId),
}

/// How callers name a stage.
#[derive(Clone, Debug)]
pub enum StageRef {
    /// By identity.
    Id(StageId),
    /// By a tensor that it computes.
    Tensor(Buffer),
    /// By its name in traces.
    Name(String),
}

impl From<StageId> for StageRef {
    fn from(id: StageId) -> StageRef {
        StageRef::Id(id)
    }
}

impl From<&StageId> for StageRef {
    fn from(id: &StageId) -> StageRef {
        StageRef::Id(*id)
    }
}

impl From<&Tensor> for StageRef {
    fn from(tensor: &Tensor) -> StageRef {
        StageRef::Tensor(tensor.buffer().clone())
    }
}

impl From<&Buffer> for StageRef {
    fn from(buffer: &Buffer) -> StageRef {
        StageRef::Tensor(buffer.clone())
    }
}

impl From<&Stage> for StageRef {
    fn from(stage: &Stage) -> StageRef {
        StageRef::Id(stage.id)
    }
}

impl From<&str> for StageRef {
    fn from(name: &str) -> StageRef {
        StageRef::Name(name.to_owned())
    }
}

/// The stages of a program, producers first, and the trace of what was done to them.
#[derive(Clone, Debug)]
pub struct Schedule {
    program: Program,
    /// Copies of a schedule share a stage until one of them changes it.
    pub(crate) stages: Vec<Arc<Stage>>,
    pub(crate) trace: Trace,
    next_id: u32,
    /// Names that steps gave to their results, latest last.
    bound: Vec<(String, Value)>,
    /// Tensors that a stage made before it was given dimensions of another number, by which it is still asked for.
    pub(crate) former: Vec<(BufferId, StageId)>,
    /// Stages that primitives took away.
    gone: Vec<Gone>,
}

/// A stage that a primitive took away, by which callers may still ask for it.
#[derive(Clone, Debug)]
struct Gone {
    id: StageId,
    /// Its name in traces.
    name: String,
    outputs: Vec<Buffer>,
    primitive: &'static str,
    /// The stage that it is a part of.
    into: StageId,
}

impl Schedule {
    /// The default schedule of the program that computes `outputs`; see [`Program::new`] for `args`.
    pub fn new(outputs: &[Tensor], args: &[Tensor]) -> Result<Schedule, ScheduleError> {
        Ok(Schedule::of(&Program::new(outputs, args)?))
    }

    /// The default schedule of a program: each operation in a loop nest of its own.
    pub fn of(program: &Program) -> Schedule {
        let mut schedule = Schedule {
            program: program.clone(),
            stages: Vec::new(),
            trace: Trace::default(),
            next_id: 0,
            bound: Vec::new(),
            former: Vec::new(),
            gone: Vec::new(),
        };
        for op in program.ops() {
            let OpKind::Compute { axes, body } = op.kind() else { continue };
            let id = schedule.fresh_id();
            let mut stage =
                Stage::new(id, op.name().to_owned(), op.outputs().to_vec(), axes.clone(), body.clone());
            stage.is_output = program.outputs().iter().any(|t| t.op() == op);
            stage.note_args(program);
            schedule.stages.push(Arc::new(stage));
        }
        schedule
    }

    /// The schedule of a program after the steps.
    pub fn replay(program: &Program, steps: &[Step]) -> Result<Schedule, ScheduleError> {
        let mut schedule = Schedule::of(program);
        for step in steps {
            schedule.apply(step.clone())?;
        }
        Ok(schedule)
    }

    /// Does one step; its results, in order. On an error the schedule is as before.
    pub fn apply(&mut self, step: Step) -> Result<Vec<Value>, ScheduleError> {
        let entry = PRIMITIVES.iter().find(|entry| entry.name == step.primitive);
        let entry = entry.ok_or_else(|| ScheduleError::UnknownPrimitive {
            asked: step.primitive.clone(),
            legal: PRIMITIVES.iter().map(|entry| entry.name.to_owned()).collect(),
        })?;
        (entry.apply)(self, &step)
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What was done so far.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The stages, producers first.
    pub fn stages(&self) -> &[Arc<Stage>] {
        &self.stages
    }

    /// A stage.
    pub fn stage(&self, stage: impl Into<StageRef>) -> Result<&Stage, ScheduleError> {
        let id = self.find(&stage.into())?;
        Ok(&self.stages[self.position(id)])
    }

    /// The refusal of a value that a primitive was given for a stage.
    pub(crate) fn bad_value<T>(
        &self,
        primitive: &'static str,
        stage: StageId,
        what: &'static str,
        wanted: &'static str,
        found: String,
    ) -> Result<T, ScheduleError> {
        let stage = self.stage_name(stage);
        Err(ScheduleError::BadValue { primitive, stage, what, wanted, found })
    }

    /// The name of a stage in traces: its own as an identifier, made unique by `_1`, `_2`, …. One that a primitive took away
    /// keeps the name that it had. An id that no stage of this schedule ever had is written as it stands, `StageId(7)`.
    pub fn stage_name(&self, id: StageId) -> String {
        if let Some(gone) = self.gone.iter().find(|gone| gone.id == id) {
            return gone.name.clone();
        }
        let mut order: Vec<&Arc<Stage>> = self.stages.iter().collect();
        order.sort_by_key(|s| s.id);
        name_of(&order, |s| &s.name, |s| s.id == id).unwrap_or_else(|| format!("{id:?}"))
    }

    /// What is known of the sizes of the arguments: extents are at least 0.
    pub(crate) fn analyzer(&self) -> Analyzer {
        let mut analyzer = Analyzer::new();
        let shapes = self.program.args().iter().flat_map(|a| a.shape());
        let sizes: BTreeSet<&Var> = shapes.filter_map(Expr::as_var).collect();
        for size in sizes.into_iter().filter(|v| v.kind() == VarKind::Plain) {
            analyzer.assume(&size.expr().ge(Expr::int_of(0, size.dtype())));
        }
        analyzer
    }

    pub(crate) fn fresh_id(&mut self) -> StageId {
        self.next_id += 1;
        StageId(self.next_id)
    }

    /// The name, with as many times `.d` behind it as leave it to no other stage.
    pub(crate) fn free_name(&self, mut name: String) -> String {
        while self.stages.iter().any(|stage| stage.name == name) {
            name.push_str(".d");
        }
        name
    }

    /// Takes a stage away that is a part of another one now.
    pub(crate) fn take_away(&mut self, id: StageId, primitive: &'static str, into: StageId) {
        let name = self.stage_name(id);
        let stage = self.stages.remove(self.position(id));
        self.gone.push(Gone { id, name, outputs: stage.outputs.clone(), primitive, into });
    }

    /// Index of a stage in the order. Ids from outside pass through [`Schedule::find`], which knows those that are gone, so every id has one; one without is a bug of coulis.
    pub(crate) fn position(&self, id: StageId) -> usize {
        self.stages.iter().position(|s| s.id == id).expect("every id is that of a stage of this schedule")
    }

    pub(crate) fn by_id(&self, id: StageId) -> &Stage {
        &self.stages[self.position(id)]
    }

    pub(crate) fn by_id_mut(&mut self, id: StageId) -> &mut Stage {
        let position = self.position(id);
        Arc::make_mut(&mut self.stages[position])
    }

    /// The stage that makes a buffer; none for an input.
    pub(crate) fn producer(&self, buffer: BufferId) -> Option<&Stage> {
        self.stages.iter().find(|s| s.outputs.iter().any(|o| o.id == buffer)).map(|s| &**s)
    }

    /// The stages that read a result of `stage`.
    pub(crate) fn consumers(&self, stage: &Stage) -> Vec<&Stage> {
        let reads = |s: &&Stage| s.reads().iter().any(|b| stage.outputs.contains(b));
        self.stages.iter().map(|s| &**s).filter(reads).collect()
    }

    /// The stages that are attached at loops of `stage`.
    pub(crate) fn attached_at(&self, stage: StageId) -> Vec<StageId> {
        let at = |s: &&Arc<Stage>| matches!(&s.attach, Attach::At(parent, _) if *parent == stage);
        self.stages.iter().filter(at).map(|s| s.id).collect()
    }

    /// Refuses to replace the axes of a stage at which others are attached.
    pub(crate) fn check_holds_none(&self, primitive: &'static str, id: StageId) -> Result<(), ScheduleError> {
        let attached: Vec<String> = self.attached_at(id).into_iter().map(|s| self.stage_name(s)).collect();
        if attached.is_empty() {
            return Ok(());
        }
        Err(ScheduleError::HoldsStages { primitive, stage: self.stage_name(id), attached })
    }

    pub(crate) fn find(&self, stage: &StageRef) -> Result<StageId, ScheduleError> {
        let unknown = |asked: &str| {
            let legal: Vec<String> = self.stages.iter().map(|s| self.stage_name(s.id)).collect();
            let asked = asked.to_owned();
            match (stage, legal.contains(&asked)) {
                (StageRef::Tensor(_), true) => ScheduleError::OtherTensor { asked, legal },
                _ => ScheduleError::UnknownStage { asked, legal },
            }
        };
        let or_gone = |is_it: &dyn Fn(&Gone) -> bool, asked: &str| match self.gone.iter().find(|g| is_it(g)) {
            None => unknown(asked),
            Some(gone) => ScheduleError::GoneStage {
                asked: gone.name.clone(),
                primitive: gone.primitive,
                into: self.stage_name(gone.into),
                legal: self.stages.iter().map(|s| self.stage_name(s.id)).collect(),
            },
        };
        let is_here = |id: &StageId| self.stages.iter().any(|s| s.id == *id);
        match stage {
            StageRef::Id(id) => {
                Some(*id).filter(is_here).ok_or_else(|| or_gone(&|gone| gone.id == *id, &format!("{id:?}")))
            }
            StageRef::Tensor(buffer) => {
                let made = self.producer(buffer.id).map(|s| s.id);
                let once = || self.former.iter().find(|(id, _)| *id == buffer.id).map(|(_, stage)| *stage);
                made.or_else(|| once().filter(is_here))
                    .ok_or_else(|| or_gone(&|gone| gone.outputs.contains(buffer), &buffer.name))
            }
            StageRef::Name(name) => {
                let bound = self.bound.iter().rev().find_map(|(n, value)| match value {
                    Value::Stage(id) if n == name && is_here(id) => Some(*id),
                    Value::Stage(_) | Value::Axis(_) => None,
                });
                let named = || self.stages.iter().map(|s| s.id).find(|id| self.stage_name(*id) == *name);
                let of_tensor = || {
                    let makes = |s: &&Arc<Stage>| s.outputs.iter().any(|o| identifier(&o.name) == *name);
                    self.stages.iter().find(makes).map(|s| s.id)
                };
                let found = bound.or_else(named).or_else(of_tensor);
                found.ok_or_else(|| or_gone(&|gone| gone.name == *name, name))
            }
        }
    }

    /// The axis that `name` stands for in a step about `stage`: the latest result of that name that is an axis of
    /// the stage, else the axis of that name.
    pub(crate) fn find_axis(
        &self,
        primitive: &'static str,
        stage: StageId,
        name: &str,
    ) -> Result<IterVar, ScheduleError> {
        let stage = self.by_id(stage);
        let bound = self.bound.iter().rev().find_map(|(n, value)| match value {
            Value::Axis(axis) if n == name && stage.all_axes.contains(axis) => Some(axis.clone()),
            Value::Axis(_) | Value::Stage(_) => None,
        });
        bound.or_else(|| stage.axis_named(name)).ok_or_else(|| ScheduleError::ForeignAxis {
            primitive,
            stage: stage.name.clone(),
            axis: name.to_owned(),
            legal: stage.names(&stage.leaves),
        })
    }

    /// The name by which steps write a result.
    pub(crate) fn value_name(&self, value: &Value) -> String {
        match value {
            Value::Stage(id) => self.stage_name(*id),
            Value::Axis(axis) => {
                let owner = self.stages.iter().find(|s| s.all_axes.contains(axis));
                owner.map_or_else(|| axis.name().to_owned(), |s| s.axis_name(axis))
            }
        }
    }

    pub(crate) fn bind_names(&mut self, names: &[String], values: &[Value]) {
        self.bound.extend(names.iter().cloned().zip(values.iter().cloned()));
    }

    /// Runs a primitive that Rust called.
    pub(crate) fn call<P: primitive::Primitive>(&mut self, call: P) -> Result<P::Output, ScheduleError> {
        self.run(call, &[]).map(|(output, _)| output)
    }

    /// Runs a primitive and records it. Where it fails, all is as before.
    pub(crate) fn run<P: primitive::Primitive>(
        &mut self,
        call: P,
        given: &[String],
    ) -> Result<(P::Output, Vec<Value>), ScheduleError> {
        call.check(self)?;
        let mut step = call.step(self);
        let before = Before {
            stages: self.stages.clone(),
            next_id: self.next_id,
            n_bound: self.bound.len(),
            n_steps: self.trace.len(),
            n_gone: self.gone.len(),
        };
        let output = match call.apply(self) {
            Ok(output) => output,
            Err(error) => {
                self.restore(before);
                return Err(error);
            }
        };
        let values = primitive::Results::values(&output);
        if let Some(names) = misnamed(given, values.len()) {
            self.restore(before);
            return Err(ScheduleError::Names { primitive: P::ENTRY.name, names, n_values: values.len() });
        }
        step.results = values.iter().map(|v| self.value_name(v)).collect();
        self.bind_names(&step.results, &values);
        self.bind_names(given, &values);
        self.trace.push(step);
        Ok((output, values))
    }
}

/// What a step that is refused leaves as it was.
struct Before {
    stages: Vec<Arc<Stage>>,
    next_id: u32,
    n_bound: usize,
    n_steps: usize,
    n_gone: usize,
}

impl Schedule {
    fn restore(&mut self, before: Before) {
        (self.stages, self.next_id) = (before.stages, before.next_id);
        self.bound.truncate(before.n_bound);
        self.trace.truncate(before.n_steps);
        self.gone.truncate(before.n_gone);
    }
}

/// The names in words, where they are not one for each of so many values, each another.
fn misnamed(given: &[String], n_values: usize) -> Option<String> {
    let is_twice = |(at, name): (usize, &String)| given[..at].contains(name);
    let is_wrong = given.len() != n_values || given.iter().enumerate().any(is_twice);
    (!given.is_empty() && is_wrong).then(|| given.join(", "))
}

/// Values of variables, by variable.
pub(crate) type Values = FastMap<coulis_ir::Var, coulis_ir::Expr>;

#[cfg(test)]
mod tests {
    use super::*;
    use coulis_tensor::{compute, placeholder};

    #[test]
    #[should_panic(expected = "every id is that of a stage of this schedule")]
    fn an_id_that_no_stage_has_is_never_taken_for_another_stage() {
        let extent = [coulis_ir::Expr::int(4)];
        let a = placeholder(&extent, coulis_ir::DType::F32, "A").unwrap();
        let b = compute(&extent, "B", |i| a.at(i)).unwrap();
        Schedule::new(std::slice::from_ref(&b), &[a, b.clone()]).unwrap().by_id(StageId(99));
    }
}
