//! The catalogue of primitives.
//!
//! A primitive is an argument struct in a file of its own: read from a step, written as a step, checked, applied.
//! Everything else (traces, replay, scripts) follows from the struct and its line in [`PRIMITIVES`].

use coulis_ir::{Attr, DType, Expr, Node};
use coulis_tensor::{IterVar, operators};

use crate::error::ScheduleError;
use crate::schedule::{Schedule, StageRef, Value};
use crate::sizes::{in_trace, size_of_name};
use crate::stage::StageId;
use crate::trace::{Arg, Step, spelling};

pub mod begin;
pub mod bind;
pub mod cache_read;
pub mod cache_write;
pub mod clamp;
pub mod compute_at;
pub mod compute_inline;
pub mod compute_root;
pub mod cut;
pub mod double_buffer;
pub mod filled;
pub mod from_boundary;
pub mod from_first;
pub mod fuse;
pub mod grid_finish;
pub mod in_runs;
pub mod join;
pub mod overlap;
pub mod parallel;
pub mod peel;
pub mod pragma;
pub mod reorder;
pub mod rfactor;
pub mod set_scope;
pub mod set_store_predicate;
pub mod split;
pub mod storage_align;
pub mod tile;
pub mod unroll;
pub mod until_settled;
pub mod vectorize;
pub mod zip;

/// What the catalogue says of a primitive.
#[derive(Debug)]
pub struct PrimitiveEntry {
    /// Name in traces.
    pub name: &'static str,
    /// How it is called.
    pub signature: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// The schedule of its example.
    pub example: fn() -> Schedule,
    /// The loops of the example before the call.
    pub before: &'static str,
    /// The call.
    pub call: &'static str,
    /// The loops after it.
    pub after: &'static str,
    /// Does a step.
    pub apply: fn(&mut Schedule, &Step) -> Result<Vec<Value>, ScheduleError>,
}

/// Every primitive.
pub const PRIMITIVES: &[&PrimitiveEntry] = &[
    &split::ENTRY,
    &tile::ENTRY,
    &fuse::ENTRY,
    &reorder::ENTRY,
    &unroll::ENTRY,
    &vectorize::ENTRY,
    &parallel::ENTRY,
    &bind::ENTRY,
    &clamp::ENTRY,
    &compute_at::ENTRY,
    &compute_inline::ENTRY,
    &compute_root::ENTRY,
    &cache_read::ENTRY,
    &from_boundary::ENTRY,
    &filled::ENTRY,
    &cache_write::ENTRY,
    &rfactor::ENTRY,
    &cut::ENTRY,
    &begin::ENTRY,
    &overlap::ENTRY,
    &peel::ENTRY,
    &zip::ENTRY,
    &join::ENTRY,
    &in_runs::ENTRY,
    &from_first::ENTRY,
    &until_settled::ENTRY,
    &set_scope::ENTRY,
    &set_store_predicate::ENTRY,
    &grid_finish::ENTRY,
    &double_buffer::ENTRY,
    &storage_align::ENTRY,
    &pragma::ENTRY,
];

/// The argument struct of a primitive.
pub(crate) trait Primitive: Sized {
    /// What it gives back.
    type Output: Results;
    /// Its line in the catalogue.
    const ENTRY: &'static PrimitiveEntry;

    /// Reads the arguments of a step.
    fn read(call: &Call) -> Result<Self, ScheduleError>;
    /// The step, with canonical names and without results.
    fn step(&self, schedule: &Schedule) -> Step;
    /// Whether it may be applied now.
    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError>;
    /// Applies it after a successful check.
    fn apply(self, schedule: &mut Schedule) -> Result<Self::Output, ScheduleError>;
}

/// Reads, checks, applies and records a step.
pub(crate) fn apply<P: Primitive>(schedule: &mut Schedule, step: &Step) -> Result<Vec<Value>, ScheduleError> {
    let call = Call { schedule, step, entry: P::ENTRY };
    call.check_options()?;
    let primitive = P::read(&call)?;
    Ok(schedule.run(primitive, &step.results)?.1)
}

/// What a primitive gives back, as values that steps can name.
pub(crate) trait Results {
    /// The values, in order.
    fn values(&self) -> Vec<Value>;
}

impl Results for () {
    fn values(&self) -> Vec<Value> {
        Vec::new()
    }
}

impl Results for IterVar {
    fn values(&self) -> Vec<Value> {
        vec![Value::Axis(self.clone())]
    }
}

impl Results for (IterVar, IterVar) {
    fn values(&self) -> Vec<Value> {
        vec![Value::Axis(self.0.clone()), Value::Axis(self.1.clone())]
    }
}

impl Results for [IterVar; 4] {
    fn values(&self) -> Vec<Value> {
        self.iter().cloned().map(Value::Axis).collect()
    }
}

impl Results for StageId {
    fn values(&self) -> Vec<Value> {
        vec![Value::Stage(*self)]
    }
}

impl Results for (StageId, StageId) {
    fn values(&self) -> Vec<Value> {
        vec![Value::Stage(self.0), Value::Stage(self.1)]
    }
}

/// A step that is being read.
pub(crate) struct Call<'a> {
    pub schedule: &'a Schedule,
    step: &'a Step,
    entry: &'static PrimitiveEntry,
}

impl Call<'_> {
    pub fn bad(&self, problem: impl Into<String>) -> ScheduleError {
        ScheduleError::BadCall {
            primitive: self.entry.name,
            signature: self.entry.signature,
            problem: problem.into(),
        }
    }

    /// Refuses options that the signature does not show.
    fn check_options(&self) -> Result<(), ScheduleError> {
        let shown = |name: &str| {
            self.entry.signature.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
        };
        match self.step.options.iter().find(|(name, _)| !shown(name)) {
            Some((name, _)) => Err(self.bad(format!("`{name}` is no option of it"))),
            None => Ok(()),
        }
    }

    /// The stage of `s[B].f(...)`.
    pub fn object(&self) -> Result<StageId, ScheduleError> {
        match &self.step.object {
            Some(name) => self.schedule.find(&StageRef::Name(name.clone())),
            None => Err(self.bad("it is called on a stage")),
        }
    }

    /// Argument `position`, which may be given by name.
    pub fn maybe(&self, position: usize, name: &str) -> Option<&Arg> {
        let named = || self.step.options.iter().find(|(n, _)| n == name).map(|(_, arg)| arg);
        self.step.args.get(position).or_else(named)
    }

    pub fn arg(&self, position: usize, name: &str) -> Result<&Arg, ScheduleError> {
        self.maybe(position, name).ok_or_else(|| self.bad(format!("`{name}` is missing")))
    }

    /// Refuses more positional arguments than `at_most`.
    pub fn at_most(&self, at_most: usize) -> Result<(), ScheduleError> {
        if self.step.args.len() <= at_most {
            return Ok(());
        }
        Err(self.bad(format!("{} arguments were given", self.step.args.len())))
    }

    /// All positional arguments as axes of `stage`.
    pub fn axes(&self, stage: StageId) -> Result<Vec<IterVar>, ScheduleError> {
        self.step.args.iter().map(|arg| self.as_axis(stage, arg, "axis")).collect()
    }

    pub fn axis(&self, stage: StageId, position: usize, name: &str) -> Result<IterVar, ScheduleError> {
        self.as_axis(stage, self.arg(position, name)?, name)
    }

    fn as_axis(&self, stage: StageId, arg: &Arg, what: &str) -> Result<IterVar, ScheduleError> {
        match arg {
            Arg::Name(name) => self.schedule.find_axis(self.entry.name, stage, name),
            Arg::Axis(axis) => Ok(axis.clone()),
            other => Err(self.bad(format!("`{what}` is to be an axis, got {other}"))),
        }
    }

    pub fn stage(&self, position: usize, name: &str) -> Result<StageId, ScheduleError> {
        self.as_stage(self.arg(position, name)?, name)
    }

    pub fn as_stage(&self, arg: &Arg, what: &str) -> Result<StageId, ScheduleError> {
        match arg {
            Arg::Name(name) | Arg::Stage(name) => self.schedule.find(&StageRef::Name(name.clone())),
            Arg::Tensor(buffer) => self.schedule.find(&StageRef::Tensor(buffer.clone())),
            // The components of a tuple are of one stage, which any of them or all of them name.
            Arg::List(items) if !items.is_empty() => {
                let stages =
                    items.iter().map(|item| self.as_stage(item, what)).collect::<Result<Vec<_>, _>>()?;
                match stages.iter().all(|stage| *stage == stages[0]) {
                    true => Ok(stages[0]),
                    false => Err(self.bad(format!("`{what}` is to be one stage, got {arg}"))),
                }
            }
            other => Err(self.bad(format!("`{what}` is to be a stage, got {other}"))),
        }
    }

    pub fn as_int(&self, arg: &Arg, what: &str) -> Result<i64, ScheduleError> {
        match arg {
            Arg::Int(value) => Ok(*value),
            other => Err(self.bad(format!("`{what}` is to be an integer, got {other}"))),
        }
    }

    pub fn string(&self, position: usize, name: &str) -> Result<String, ScheduleError> {
        match self.arg(position, name)? {
            Arg::Str(value) => Ok(value.clone()),
            other => Err(self.bad(format!("`{name}` is to be a string, got {other}"))),
        }
    }

    pub fn attr(&self, arg: &Arg, what: &str) -> Result<Attr, ScheduleError> {
        match arg {
            Arg::Int(value) => Ok(Attr::Int(*value)),
            Arg::Bool(value) => Ok(Attr::Bool(*value)),
            Arg::Str(value) => Ok(Attr::Str(value.clone())),
            other => Err(self.bad(format!("`{what}` is to be an integer, a bool or a string, got {other}"))),
        }
    }

    /// The arguments of the program, by name.
    fn args(&self) -> String {
        let args = self.schedule.program().args().iter();
        args.map(|arg| format!("`{}`", arg.name())).collect::<Vec<_>>().join(", ")
    }

    /// An integer, or an expression of integers and sizes of the program by name.
    pub fn size(&self, arg: &Arg, what: &str) -> Result<Size, ScheduleError> {
        match arg {
            Arg::Int(value) => Ok(Size::Int(*value)),
            arg => Ok(Size::Expr(self.size_expr(arg, what)?)),
        }
    }

    fn size_expr(&self, arg: &Arg, what: &str) -> Result<Expr, ScheduleError> {
        match arg {
            Arg::Int(value) => i32::try_from(*value)
                .map(Expr::int)
                .map_err(|_| self.bad(format!("{value} is no 32-bit integer"))),
            Arg::Expr(expr) => Ok(expr.clone()),
            Arg::Name(name) => {
                let var = size_of_name(self.schedule, name, &[]);
                let var = var.ok_or_else(|| {
                    self.bad(format!("`{name}` is no size of the program, whose arguments are {}", self.args()))
                })?;
                Ok(var.expr())
            }
            // As the doors build what they are given, so that the text of an expression is read as that expression.
            Arg::Binary(op, a, b) => {
                let (a, b) = (self.size_expr(a, what)?, self.size_expr(b, what)?);
                operators::binary(*op, a, b).map_err(|error| self.bad(format!("in `{what}`, {error}")))
            }
            other => Err(self.bad(format!(
                "`{what}` is to be an integer, a size, or these joined by +, -, *, //, %, T.max and T.min, got {other}"
            ))),
        }
    }
}

/// A factor.
pub(crate) enum Size {
    /// A constant.
    Int(i64),
    /// An expression of sizes.
    Expr(Expr),
}

/// How a size is written in a step.
pub(crate) fn size_arg(schedule: &Schedule, expr: &Expr) -> Arg {
    let shown = in_trace(schedule, expr, &[]);
    match shown.as_int() {
        Some(value) => i64::try_from(value).map_or_else(|_| Arg::Expr(shown.clone()), Arg::Int),
        // A variable under another name is none of the program's, so that it is by its name that it is found again.
        None if shown != *expr || shown.as_var().is_some() => spelled(&shown),
        None => Arg::Expr(shown),
    }
}

/// The expression as code, where its parts have a spelling there.
fn spelled(expr: &Expr) -> Arg {
    let whole = || Arg::Expr(expr.clone());
    match expr.node() {
        Node::Var(var) => Arg::Name(var.name().to_owned()),
        Node::Int(value) if expr.dtype() == DType::I32 => {
            i64::try_from(*value).map_or_else(|_| whole(), Arg::Int)
        }
        Node::Binary(op, a, b) if spelling(*op).is_some() => match (spelled(a), spelled(b)) {
            (Arg::Expr(_), _) | (_, Arg::Expr(_)) => whole(),
            (a, b) => Arg::Binary(*op, Box::new(a), Box::new(b)),
        },
        _ => whole(),
    }
}

/// How an axis is written in a step.
pub(crate) fn axis_arg(schedule: &Schedule, stage: StageId, axis: &IterVar) -> Arg {
    Arg::Name(schedule.by_id(stage).axis_name(axis))
}
