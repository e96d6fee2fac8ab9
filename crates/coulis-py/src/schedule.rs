//! Schedules in Python: `te.create_schedule`, `s[B].split(...)`, and the listing of what they make.
//!
//! Primitives are not spelled here: a method of a stage or a schedule is looked up in the catalogue, its arguments
//! become a step, and the step is applied. A primitive that is added to the catalogue is a method in Python.

use std::borrow::Cow;

use coulis::te::{
    Arg, PRIMITIVES, PrimitiveEntry, Program, Schedule as TeSchedule, StageId, Step, Tensor as TeTensor,
    Value, listing, listing_partitioned,
};
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple};

use crate::axis::{Axis, AxisKind};
use crate::error::OrRaise;
use crate::expr::{items_of, maybe_expr};
use crate::tensor::{Operation, OperationSource, Source, Tensor, stage_ref};

/// Registers the classes, and the functions as a part of `te`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Schedule>()?;
    m.add_class::<Stage>()?;
    m.add_class::<Primitive>()?;
    m.add_class::<IRModule>()?;
    m.add_function(wrap_pyfunction!(create_schedule, m)?)?;
    m.add_function(wrap_pyfunction!(replay, m)?)?;
    m.add_function(wrap_pyfunction!(lower, m)?)?;
    m.add_function(wrap_pyfunction!(primitives, m)?)
}

/// The primitives: name, signature and summary.
#[pyfunction]
fn primitives() -> Vec<(&'static str, &'static str, &'static str)> {
    PRIMITIVES.iter().map(|entry| (entry.name, entry.signature, entry.summary)).collect()
}

/// Names of arguments in the reference that differ from those of the catalogue: primitive, theirs, ours.
const ALIASES: &[(&str, &str, &str)] = &[
    ("split", "parent", "axis"),
    ("tile", "x_parent", "x"),
    ("tile", "y_parent", "y"),
    ("bind", "ivar", "axis"),
    ("bind", "thread_ivar", "tag"),
    ("unroll", "var", "axis"),
    ("vectorize", "var", "axis"),
    ("parallel", "var", "axis"),
    ("compute_at", "scope", "axis"),
    ("set_store_predicate", "predicate", "condition"),
    ("pragma", "var", "axis"),
    ("pragma", "pragma_type", "key"),
    ("pragma", "pragma_value", "value"),
    ("cache_write", "tensor", "stage"),
    ("rfactor", "tensor", "stage"),
];

/// A schedule: the stages of a program, and what was done to them. A refused call leaves it as it was.
#[pyclass(module = "coulis.te")]
pub struct Schedule {
    /// The schedule.
    pub inner: TeSchedule,
}

/// The schedule of some operations, each in a loop nest of its own.
#[pyfunction]
fn create_schedule(ops: &Bound<'_, PyAny>) -> PyResult<Schedule> {
    Ok(Schedule { inner: TeSchedule::of(&program_of(ops)?) })
}

/// The schedule of some operations after the steps of a trace, which may name sizes of `args`.
#[pyfunction]
fn replay(ops: &Bound<'_, PyAny>, trace: &str, args: Option<&Bound<'_, PyAny>>) -> PyResult<Schedule> {
    let steps = coulis::parse_trace(trace).or_raise()?;
    let args = args.map(args_of).transpose()?.unwrap_or_default();
    let program = program_of(ops)?.with_args(&args).or_raise()?;
    Ok(Schedule { inner: TeSchedule::replay(&program, &steps).or_raise()? })
}

/// The program that computes some operations.
fn program_of(ops: &Bound<'_, PyAny>) -> PyResult<Program> {
    let mut outputs: Vec<TeTensor> = Vec::new();
    for item in items_of(ops)? {
        let found = if let Ok(op) = item.cast::<Operation>() {
            match &op.get().source {
                OperationSource::Program(op) => op.tensors(),
                OperationSource::Stage(..) => {
                    return Err(PyValueError::new_err(
                        "a stage of a schedule is no output of another one; give the operation of a computed tensor",
                    ));
                }
            }
        } else if let Ok(tensor) = item.cast::<Tensor>() {
            tensor.get().of_program()?.op().tensors()
        } else {
            let found = item.get_type().name()?;
            return Err(PyTypeError::new_err(format!("a schedule is of operations, `B.op`, got {found}")));
        };
        for tensor in found {
            if !outputs.contains(&tensor) {
                outputs.push(tensor);
            }
        }
    }
    Program::of_outputs(&outputs).or_raise()
}

#[pymethods]
impl Schedule {
    fn __getitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<Stage> {
        let stage = slf.borrow().inner.stage(stage_ref(key)?).or_raise()?.id();
        Ok(Stage { schedule: slf.clone().unbind(), stage })
    }

    /// The stages, producers first.
    #[getter]
    fn stages(slf: &Bound<'_, Self>) -> Vec<Stage> {
        let ids: Vec<StageId> = slf.borrow().inner.stages().iter().map(|stage| stage.id()).collect();
        ids.into_iter().map(|stage| Stage { schedule: slf.clone().unbind(), stage }).collect()
    }

    /// The operations whose results the program gives.
    #[getter]
    fn outputs(&self) -> Vec<Operation> {
        let mut ops = Vec::new();
        for tensor in self.inner.program().outputs() {
            if !ops.contains(tensor.op()) {
                ops.push(tensor.op().clone());
            }
        }
        ops.into_iter().map(|op| Operation { source: OperationSource::Program(op) }).collect()
    }

    /// What was done so far, as code.
    #[getter]
    fn trace(&self) -> String {
        self.inner.trace().to_string()
    }

    /// Each stage with its place, its memory and its loops.
    fn explain(&self) -> String {
        self.inner.explain()
    }

    /// The same schedule, to be scheduled further on its own.
    fn copy(&self) -> Schedule {
        Schedule { inner: self.inner.clone() }
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<Primitive> {
        Primitive::of(slf, None, name)
    }

    fn __dir__(slf: &Bound<'_, Self>) -> PyResult<Vec<String>> {
        names_of(slf.as_any(), "s.")
    }
}

/// One stage of a schedule: an operation and its loops.
#[pyclass(frozen, module = "coulis.te")]
pub struct Stage {
    /// The schedule.
    pub schedule: Py<Schedule>,
    /// Which stage.
    pub stage: StageId,
}

#[pymethods]
impl Stage {
    /// The operation as it is defined now.
    #[getter]
    fn op(&self, py: Python<'_>) -> Operation {
        Operation { source: OperationSource::Stage(self.schedule.clone_ref(py), self.stage) }
    }

    /// The loops, outermost first.
    #[getter]
    fn leaf_iter_vars<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, Axis>>> {
        let leaves =
            self.schedule.bind(py).try_borrow()?.inner.stage(self.stage).or_raise()?.leaves().to_vec();
        leaves.into_iter().map(|axis| Axis::wrap(py, axis)).collect()
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<Primitive> {
        let this = slf.get();
        Primitive::of(this.schedule.bind(slf.py()), Some(this.stage), name)
    }

    fn __dir__(slf: &Bound<'_, Self>) -> PyResult<Vec<String>> {
        names_of(slf.as_any(), "s[")
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Stage({})", self.schedule.bind(py).try_borrow()?.inner.stage_name(self.stage)))
    }
}

/// What `dir` lists: the attributes of the class, and the primitives whose signature begins so.
fn names_of(object: &Bound<'_, PyAny>, call: &str) -> PyResult<Vec<String>> {
    let own = object.get_type().dir()?;
    let mut names: Vec<String> = own.iter().map(|name| name.extract()).collect::<PyResult<_>>()?;
    names.extend(PRIMITIVES.iter().filter(|e| e.signature.starts_with(call)).map(|e| e.name.to_owned()));
    names.sort_unstable();
    Ok(names)
}

/// A primitive of a stage or of a schedule, to be called.
#[pyclass(frozen, module = "coulis.te")]
pub struct Primitive {
    schedule: Py<Schedule>,
    stage: Option<StageId>,
    entry: &'static PrimitiveEntry,
}

impl Primitive {
    fn of(schedule: &Bound<'_, Schedule>, stage: Option<StageId>, name: &str) -> PyResult<Primitive> {
        let call = if stage.is_some() { "s[" } else { "s." };
        let entry = PRIMITIVES.iter().find(|e| e.name == name && e.signature.starts_with(call));
        match entry {
            Some(entry) => Ok(Primitive { schedule: schedule.clone().unbind(), stage, entry }),
            None => {
                let what = if stage.is_some() { "a stage" } else { "a schedule" };
                let legal: Vec<&str> =
                    PRIMITIVES.iter().filter(|e| e.signature.starts_with(call)).map(|e| e.name).collect();
                Err(PyAttributeError::new_err(format!(
                    "{what} has no primitive `{name}`; legal are {}",
                    legal.join(", ")
                )))
            }
        }
    }

    /// The argument that a Python object is.
    fn arg(&self, schedule: &TeSchedule, object: &Bound<'_, PyAny>) -> PyResult<Arg> {
        let py = object.py();
        if let Ok(axis) = object.cast::<Axis>() {
            return Ok(match &axis.get().kind {
                AxisKind::Iter(axis) => Arg::Axis(axis.clone()),
                AxisKind::Thread(tag) => Arg::Str(tag.name().to_owned()),
            });
        }
        if let Ok(stage) = object.cast::<Stage>() {
            return Ok(Arg::Stage(schedule.stage_name(stage.get().stage)));
        }
        if let Ok(tensor) = object.cast::<Tensor>() {
            return Ok(Arg::Tensor(tensor.get().buffer(py)?));
        }
        if let Ok(op) = object.cast::<Operation>() {
            return Ok(Arg::Tensor(op.get().buffer(py)?));
        }
        if let Ok(value) = object.cast::<PyBool>() {
            return Ok(Arg::Bool(value.is_true()));
        }
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Arg::Str(text.to_str()?.to_owned()));
        }
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            let items = items_of(object)?;
            return Ok(Arg::List(
                items.iter().map(|item| self.arg(schedule, item)).collect::<PyResult<_>>()?,
            ));
        }
        match maybe_expr(object)? {
            Some(expr) => Ok(match expr.as_int().and_then(|value| i64::try_from(value).ok()) {
                Some(value) if expr.dtype() == coulis::DType::Bool => Arg::Bool(value != 0),
                Some(value) => Arg::Int(value),
                None => Arg::Expr(expr),
            }),
            None => Err(PyTypeError::new_err(format!(
                "{} takes axes, tensors, stages, numbers, strings and conditions, got {}",
                self.entry.name,
                object.get_type().name()?
            ))),
        }
    }

    fn name_of<'a>(&self, given: &'a str) -> Cow<'a, str> {
        let found =
            ALIASES.iter().find(|(primitive, theirs, _)| *primitive == self.entry.name && *theirs == given);
        found.map_or(Cow::Borrowed(given), |(_, _, ours)| Cow::Borrowed(*ours))
    }
}

/// A value of a step as a Python object.
fn value_object<'py>(
    py: Python<'py>,
    schedule: &Py<Schedule>,
    inner: &TeSchedule,
    value: Value,
) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Axis(axis) => Ok(Axis::wrap(py, axis)?.into_any()),
        Value::Stage(stage) => {
            let count = inner.stage(stage).or_raise()?.outputs().len();
            let tensors = (0..count)
                .map(|index| {
                    Bound::new(py, Tensor { source: Source::Stage(schedule.clone_ref(py), stage, index) })
                })
                .collect::<PyResult<Vec<_>>>()?;
            match tensors.as_slice() {
                [one] => Ok(one.clone().into_any()),
                _ => Ok(PyList::new(py, tensors)?.into_any()),
            }
        }
    }
}

#[pymethods]
impl Primitive {
    #[pyo3(signature = (*args, **options))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // Arguments that are tensors of this schedule look into it too, so it is held to be changed only after them.
        let before = self.schedule.bind(py).try_borrow()?;
        let inner = &before.inner;
        let given: Vec<Arg> = args.iter().map(|arg| self.arg(inner, &arg)).collect::<PyResult<_>>()?;
        let mut named = Vec::new();
        for (name, value) in options.into_iter().flatten() {
            // None is what an argument is that is not given.
            if !value.is_none() {
                let name: String = name.extract()?;
                named.push((self.name_of(&name).into_owned(), self.arg(inner, &value)?));
            }
        }
        let object = self.stage.map(|stage| inner.stage_name(stage));
        let step = Step::new(Vec::new(), object, self.entry.name, given, named);
        drop(before);
        let mut schedule = self.schedule.bind(py).try_borrow_mut()?;
        let values = schedule.inner.apply(step).or_raise()?;
        let inner = &schedule.inner;
        let mut objects = values
            .into_iter()
            .map(|value| value_object(py, &self.schedule, inner, value))
            .collect::<PyResult<Vec<_>>>()?;
        match objects.len() {
            0 => Ok(py.None().into_bound(py)),
            1 => Ok(objects.swap_remove(0)),
            _ => Ok(PyTuple::new(py, objects)?.into_any()),
        }
    }

    /// The signature, what it does, and an example: loops before and after.
    #[getter]
    fn about(&self) -> String {
        let PrimitiveEntry { signature, summary, before, call, after, .. } = self.entry;
        format!("{signature}: {summary}.\n\nBefore:\n{before}\n\nAfter `{call}`:\n{after}\n")
    }

    fn __repr__(&self) -> String {
        format!("<primitive {}>", self.entry.signature)
    }
}

/// The tensors that are the parameters of a function.
pub fn args_of(args: &Bound<'_, PyAny>) -> PyResult<Vec<TeTensor>> {
    items_of(args)?
        .iter()
        .map(|arg| match arg.cast::<Tensor>() {
            Ok(tensor) => tensor.get().of_program().cloned(),
            Err(_) => {
                let found = arg.get_type().name()?;
                Err(PyTypeError::new_err(format!("the parameters of a function are tensors, got {found}")))
            }
        })
        .collect()
}

/// What a schedule was lowered to. Prints as text that coulis reads back.
#[pyclass(frozen, module = "coulis.tir")]
pub struct IRModule {
    /// The schedule, as it was.
    pub schedule: TeSchedule,
    /// The parameters.
    pub args: Vec<TeTensor>,
    /// The text.
    pub text: String,
}

#[pymethods]
impl IRModule {
    /// The text.
    fn script(&self) -> String {
        const HEADER: &str = "# from tvm.script import ir as I\n# from tvm.script import tir as T\n\n";
        format!("{HEADER}{}", self.text.trim_end())
    }

    fn __repr__(&self) -> String {
        self.script()
    }
}

/// The loops that a schedule makes for those parameters; whole loops where `is_simple`, else in parts as compiled.
#[pyfunction]
fn lower(
    py: Python<'_>,
    schedule: &Bound<'_, Schedule>,
    args: &Bound<'_, PyAny>,
    name: &str,
    is_simple: bool,
) -> PyResult<IRModule> {
    let (schedule, args) = (schedule.try_borrow()?.inner.clone(), args_of(args)?);
    let text = py.detach(|| {
        if is_simple {
            listing(&schedule, &args, name)
        } else {
            listing_partitioned(&schedule, &args, name, None)
        }
    });
    Ok(IRModule { text: text.or_raise()?, schedule, args })
}
