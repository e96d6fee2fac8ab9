//! Functions in Python: of schedules and of texts, compiled where they first run, called with arrays.
//!
//! A call takes one argument a parameter and writes its outputs where they are. Arrays of the host are read and written
//! there; a GPU's are too, and nothing waits for them but what their library makes wait. What does not fit is an
//! exception before anything runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use coulis::te::{self, Schedule, Tensor};
use coulis::{
    ArrayInfo, CompileOptions, DevicePointer, Function as Compiled, InPlace, OnDevice, Owner, Parameter,
    StreamHandle, text,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList, PyMemoryView, PyTuple};

use crate::array::{Given, is_array};
use crate::dlpack::Place;
use crate::error::OrRaise;
use crate::expr::int64;
use crate::outside;
use crate::schedule::{IRModule, Schedule as PySchedule, args_of};
use crate::target::{Target, check_device};

/// Registers the classes and functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Function>()?;
    m.add_class::<Module>()?;
    m.add_function(wrap_pyfunction!(build, m)?)?;
    m.add_function(wrap_pyfunction!(compile_text, m)?)?;
    m.add_function(wrap_pyfunction!(canonical, m)?)?;
    m.add_function(wrap_pyfunction!(check_device, m)?)
}

/// What a function is made from.
#[derive(Clone)]
enum Origin {
    /// A schedule and its parameters.
    Schedule(Box<(Schedule, Vec<Tensor>)>),
    /// A text with one kernel.
    Text(String),
}

/// A function: called with one array or integer a parameter, in order. Outputs are written in place.
#[pyclass(frozen, module = "coulis")]
pub struct Function {
    name: String,
    origin: Origin,
    target: Target,
    /// Made functions by the number of their device.
    made: Mutex<BTreeMap<usize, Arc<Compiled>>>,
    /// The text of the target's code, where there is one.
    code: Option<String>,
}

/// The code of a function for its device.
#[pyclass(frozen, module = "coulis")]
pub struct Module {
    kind: &'static str,
    code: String,
}

#[pymethods]
impl Module {
    /// The text.
    #[pyo3(signature = (fmt=""))]
    fn get_source(&self, fmt: &str) -> String {
        let _ = fmt;
        self.code.clone()
    }

    /// The language: `cuda`.
    #[getter]
    fn type_key(&self) -> &'static str {
        self.kind
    }
}

impl Function {
    /// The function, compiled for a device; `ordinal` counts GPUs.
    fn compiled(&self, ordinal: usize) -> Result<Arc<Compiled>, coulis::Error> {
        let made = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = made().get(&ordinal) {
            return Ok(found.clone());
        }
        let options = CompileOptions { device: self.target.device(ordinal), ..CompileOptions::default() };
        let function = match &self.origin {
            Origin::Schedule(parts) => te::build_with(&parts.0, &parts.1, &self.name, &options)?,
            Origin::Text(text) => text::compile_one(text, &options)?,
        };
        let function = Arc::new(function);
        Ok(made().entry(ordinal).or_insert(function).clone())
    }

    fn of(py: Python<'_>, name: &str, origin: Origin, target: Target) -> PyResult<Function> {
        outside::at_length(py, || {
            let mut function =
                Function { name: name.to_owned(), origin, target, made: Mutex::default(), code: None };
            match (&function.target, &function.origin) {
                (Target::Cuda(_), Origin::Schedule(parts)) => {
                    let choice = function.target.choice();
                    function.code = Some(te::device_source(&parts.0, &parts.1, name, &choice)?);
                }
                (Target::Cuda(_), Origin::Text(text)) => {
                    function.code = Some(text::emit_cuda(text, &function.target.choice())?);
                }
                (Target::Cpu | Target::Sim(_), _) => {
                    function.code = function.compiled(0)?.source().map(str::to_owned);
                }
            }
            Ok::<_, coulis::Error>(function)
        })
    }

    /// The text of the kernel as it runs on its target.
    fn lowered(&self) -> Result<String, coulis::Error> {
        let choice = self.target.choice();
        match &self.origin {
            Origin::Schedule(parts) => te::listing_partitioned(&parts.0, &parts.1, &self.name, Some(&choice)),
            Origin::Text(text) => text::lower(text, None, Some(&choice)),
        }
    }
}

/// An argument of a call.
enum Argument<'py> {
    Int(i64),
    Array(Box<Given<'py>>),
}

/// Where the memory of an argument is, for the time of a call without the interpreter's lock.
enum Held {
    Int(i64),
    Array { info: ArrayInfo, low: usize, high: usize, first: usize, is_written: bool },
}

impl Held {
    fn of(argument: &Argument<'_>, facts: &Parameter) -> PyResult<Held> {
        match argument {
            Argument::Int(value) => Ok(Held::Int(*value)),
            Argument::Array(given) => {
                let ArrayInfo { dtype, shape, strides } = &given.info;
                let first = given.address;
                let (before, after) = coulis::bytes_around(*dtype, shape, strides, first).or_raise()?;
                let (low, high) = (first - before, first + after);
                let is_written = facts.is_written && !given.is_readonly;
                Ok(Held::Array { info: given.info.clone(), low, high, first, is_written })
            }
        }
    }
}

/// Refuses an output whose stretch of memory, from the first of its elements to the last, is not its own: kernels are told
/// that it is, so elements that lie between those of another array do not count as apart.
fn check_apart(parameters: &[Parameter], held: &[Held]) -> PyResult<()> {
    for (at, one) in held.iter().enumerate() {
        let Held::Array { low, high, .. } = one else { continue };
        // What is no array parameter is refused by its kind.
        if !parameters[at].is_written || parameters[at].rank.is_none() || low == high {
            continue;
        }
        for (other_at, other) in held.iter().enumerate() {
            if let Held::Array { low: from, high: to, .. } = other
                && other_at != at
                && parameters[other_at].rank.is_some()
                && from < high
                && low < to
            {
                return Err(PyValueError::new_err(format!(
                    "the output `{}` shares memory with `{}`, counted from the first element of each to its last; give each \
                     array memory of its own",
                    parameters[at].name, parameters[other_at].name
                )));
            }
        }
    }
    Ok(())
}

/// Whether what is written for an object is written to its own memory: an array's, or that of a buffer.
fn shares_memory(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(is_array(object)? || PyMemoryView::from(object).is_ok())
}

/// The array that a call reads, of an object that may be an array of `coulis.nd`.
fn unwrapped<'py>(object: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Option<usize>)> {
    match object.getattr_opt("_coulis_array")? {
        Some(array) => {
            let device = object.getattr("device")?;
            let ordinal = device.getattr("index")?.extract()?;
            let kind: String = device.getattr("kind")?.extract()?;
            Ok((array, (kind == "cuda").then_some(ordinal)))
        }
        None => Ok((object.clone(), None)),
    }
}

#[pymethods]
impl Function {
    #[pyo3(signature = (*args))]
    fn __call__(&self, py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        let mut arguments = Vec::with_capacity(args.len());
        let mut ordinal = None;
        for (at, arg) in args.iter().enumerate() {
            if arg.is_instance_of::<PyInt>()
                && let Some(value) = int64(&arg)?
            {
                arguments.push(Argument::Int(value));
                continue;
            }
            let (array, on) = unwrapped(&arg)?;
            let given = Given::of(&array, &format!("argument {at}"))?;
            if given.valid.is_some() {
                let message =
                    format!("argument {at} has nulls, for which there is no value; fill them first");
                return Err(PyValueError::new_err(message));
            }
            let on = match given.place {
                Place::Host => on,
                Place::Cuda(device) => Some(device),
            };
            if let (Some(first), Some(second)) = (ordinal, on)
                && first != second
            {
                return Err(PyValueError::new_err(format!(
                    "the arrays of a call are on one device, and these are on cuda:{first} and cuda:{second}"
                )));
            }
            ordinal = ordinal.or(on);
            arguments.push(Argument::Array(Box::new(given)));
        }
        if let (Some(device), Target::Cpu | Target::Sim(_)) = (ordinal, &self.target) {
            return Err(PyValueError::new_err(format!(
                "`{}` is built for {}, and an array is on cuda:{device}; build it for cuda, or give arrays of the CPU",
                self.name,
                self.target.kind()
            )));
        }
        let compiled = outside::at_length(py, || self.compiled(ordinal.unwrap_or(0)))?;
        let parameters = compiled.parameters();
        if parameters.len() != arguments.len() {
            let names: Vec<&str> = parameters.iter().map(|p| p.name.as_str()).collect();
            return Err(PyTypeError::new_err(format!(
                "`{}` takes {} arguments ({}), got {}",
                self.name,
                parameters.len(),
                names.join(", "),
                arguments.len()
            )));
        }
        for ((arg, argument), facts) in args.iter().zip(&arguments).zip(parameters) {
            let given = unwrapped(&arg)?.0;
            if facts.is_written && matches!(argument, Argument::Array(_)) && !shares_memory(&given)? {
                let kind = match given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
                    true => "lists are".to_owned(),
                    false => format!("an object of type `{}` is", given.get_type().name()?),
                };
                return Err(PyTypeError::new_err(format!(
                    "`{}` is an output, and {kind} copied, so that nobody would see it; give an array",
                    facts.name
                )));
            }
        }
        let places = arguments.iter().zip(parameters).map(|(argument, facts)| Held::of(argument, facts));
        let held: Vec<Held> = places.collect::<PyResult<_>>()?;
        check_apart(parameters, &held)?;
        for ((arg, argument), facts) in args.iter().zip(&arguments).zip(parameters) {
            if let (true, Argument::Array(given)) = (facts.is_written, argument) {
                given.library.written(&unwrapped(&arg)?.0, &format!("the output `{}`", facts.name))?;
            }
        }
        let is_on_host = arguments.iter().all(|argument| match argument {
            Argument::Int(_) => true,
            Argument::Array(given) => given.place == Place::Host,
        });
        if !is_on_host {
            return self.call_on_device(py, &compiled, &arguments);
        }
        outside::at_length(py, || {
            // SAFETY: the arguments keep this memory; outputs share theirs with nothing, which was looked at.
            let mut places: Vec<InPlace<'_>> = held.iter().map(|held| unsafe { in_place(held) }).collect();
            compiled.call_in_place(&mut places)
        })
    }

    /// The code for the device, where it has code of its own: one module with `get_source()`.
    #[getter]
    fn imported_modules(&self) -> Vec<Module> {
        match (&self.target, &self.code) {
            (Target::Cuda(_), Some(code)) => vec![Module { kind: "cuda", code: code.clone() }],
            _ => Vec::new(),
        }
    }

    /// The code for the target, as text; empty where nothing is compiled.
    #[pyo3(signature = (fmt=""))]
    fn get_source(&self, fmt: &str) -> String {
        let _ = fmt;
        self.code.clone().unwrap_or_default()
    }

    /// The code of a kind: `tir` (the kernel as it runs), `c`, `cuda`, `ptx`, `sass` as text, `cubin` as bytes.
    #[pyo3(signature = (kind=None))]
    fn source<'py>(&self, py: Python<'py>, kind: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let kind = kind.unwrap_or(match self.target {
            Target::Cpu => "c",
            Target::Cuda(_) => "cuda",
            Target::Sim(_) => "tir",
        });
        let binary = match kind {
            "ptx" => Some(text::CudaBinary::Ptx),
            "cubin" => Some(text::CudaBinary::Cubin),
            "sass" => Some(text::CudaBinary::Sass),
            _ => None,
        };
        if let Some(to) = binary {
            let Origin::Text(text) = &self.origin else {
                return Err(PyValueError::new_err(format!(
                    "`{kind}` is made of texts; legal for a schedule are tir, c, cuda"
                )));
            };
            let choice = match &self.target {
                Target::Cuda(_) => self.target.choice(),
                Target::Cpu | Target::Sim(_) => coulis::TargetChoice::Cuda { arch: None },
            };
            let code = py.detach(|| text::emit_cuda_binary(text, &choice, to)).or_raise()?;
            return match String::from_utf8(code) {
                Ok(text) if kind != "cubin" => Ok(text.into_pyobject(py)?.into_any()),
                Ok(text) => Ok(PyBytes::new(py, text.as_bytes()).into_any()),
                Err(error) => Ok(PyBytes::new(py, error.as_bytes()).into_any()),
            };
        }
        let made = py.detach(|| match (kind, &self.origin) {
            ("tir", _) => self.lowered(),
            ("c", Origin::Text(text)) => text::emit_c(text),
            ("c", Origin::Schedule(parts)) => {
                let choice = coulis::TargetChoice::Cpu;
                te::listing_partitioned(&parts.0, &parts.1, &self.name, Some(&choice))
                    .and_then(|text| text::emit_c(&text))
            }
            ("cuda", Origin::Text(text)) => text::emit_cuda(text, &self.cuda_choice()),
            ("cuda", Origin::Schedule(parts)) => {
                te::device_source(&parts.0, &parts.1, &self.name, &self.cuda_choice())
            }
            (other, _) => Err(coulis::Error::user(
                "source/kind",
                format!("there is no source of the kind `{other}`; legal are tir, c, cuda, ptx, cubin, sass"),
            )),
        });
        Ok(made.or_raise()?.into_pyobject(py)?.into_any())
    }

    /// What was done to the schedule, as code; empty for a function of a text.
    #[getter]
    fn trace(&self) -> String {
        match &self.origin {
            Origin::Schedule(parts) => parts.0.trace().to_string(),
            Origin::Text(_) => String::new(),
        }
    }

    /// The stages of a schedule, or the variants of each tile call of a text; then where the function runs, what it went
    /// through on its way there, and what there is to know of it.
    fn explain(&self, py: Python<'_>) -> PyResult<String> {
        let explained = py.detach(|| {
            let mut lines = match (&self.origin, &self.target) {
                (Origin::Schedule(parts), _) => parts.0.explain(),
                (Origin::Text(_), Target::Cpu) => String::new(),
                (Origin::Text(text), Target::Cuda(_) | Target::Sim(_)) => {
                    shown(&text::explain(text, &self.target.choice())?)
                }
            };
            match self.compiled(0) {
                Ok(made) => {
                    let (name, device) = (&self.name, made.device());
                    lines.push_str(&format!("{name} on {device}: {}\n", made.route().join(", ")));
                    for notice in made.notices() {
                        lines.push_str(&format!("note: {notice}\n"));
                    }
                }
                // Code is made for devices that are not there, too.
                Err(error) if error.owner == Owner::Unsupported => {
                    lines.push_str(&format!("note: {error}\n"))
                }
                Err(error) => return Err(error),
            }
            Ok(lines)
        });
        explained.or_raise()
    }

    /// Names of the parameters, in order.
    #[getter]
    fn parameters(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        match &self.origin {
            Origin::Schedule(parts) => Ok(parts.1.iter().map(|tensor| tensor.name().to_owned()).collect()),
            Origin::Text(_) => {
                let compiled = outside::at_length(py, || self.compiled(0))?;
                Ok(compiled.parameters().iter().map(|p| p.name.clone()).collect())
            }
        }
    }

    /// Name of the function.
    #[getter(__name__)]
    fn name(&self) -> &str {
        &self.name
    }

    /// The same, as `time_evaluator` is given it.
    #[getter]
    fn entry_name(&self) -> &str {
        &self.name
    }

    /// Times calls: `f.time_evaluator(f.entry_name, device, number=10)(*arguments).mean` is the seconds of one.
    #[pyo3(signature = (func_name, dev, number=10, repeat=1, min_repeat_ms=0))]
    fn time_evaluator<'py>(
        slf: &Bound<'py, Self>,
        func_name: &str,
        dev: &Bound<'py, PyAny>,
        number: usize,
        repeat: usize,
        min_repeat_ms: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let evaluator = slf.py().import("coulis._timing")?.getattr("Evaluator")?;
        evaluator.call1((slf, func_name, dev, number, repeat, min_repeat_ms))
    }

    /// The machine that it is built for.
    #[getter]
    fn target(&self) -> &'static str {
        self.target.kind()
    }

    fn __repr__(&self) -> String {
        format!("<coulis function {} for {}>", self.name, self.target.kind())
    }
}

impl Function {
    /// A call with arrays of a GPU, on their library's stream.
    fn call_on_device(
        &self,
        py: Python<'_>,
        compiled: &Compiled,
        arguments: &[Argument<'_>],
    ) -> PyResult<()> {
        let mut stream = None;
        let mut places = Vec::with_capacity(arguments.len());
        for (argument, facts) in arguments.iter().zip(compiled.parameters()) {
            match argument {
                Argument::Int(value) => places.push(OnDevice::Int(*value)),
                Argument::Array(given) if given.place == Place::Host => {
                    return Err(PyValueError::new_err(format!(
                        "`{}` is on the CPU, and other arrays of the call are on a GPU; give all of them there",
                        facts.name
                    )));
                }
                Argument::Array(given) if given.is_readonly && facts.is_written => {
                    return Err(PyValueError::new_err(format!(
                        "`{}` is an output, and its array may not be written",
                        facts.name
                    )));
                }
                Argument::Array(given) => {
                    if stream.is_none() {
                        stream = Some(given.current_stream(py)?);
                    }
                    // SAFETY: the library keeps the memory, and reuses it in the order of its stream, which this call
                    // is put on, or is waited for; outputs share theirs with nothing, which was looked at.
                    let pointer = unsafe { DevicePointer::new(given.address) };
                    places.push(OnDevice::Array(given.info.clone(), pointer));
                }
            }
        }
        let (handle, waits) = stream.unwrap_or((0, true));
        outside::briefly(py, || {
            // SAFETY: the library says that this stream is alive, or it is the default one.
            let stream = unsafe { StreamHandle::new(handle) };
            compiled.call_on_stream(&places, stream)?;
            if waits { compiled.wait(stream) } else { Ok(()) }
        })
    }

    fn cuda_choice(&self) -> coulis::TargetChoice {
        match &self.target {
            Target::Cuda(_) => self.target.choice(),
            Target::Cpu | Target::Sim(_) => coulis::TargetChoice::Cuda { arch: None },
        }
    }
}

/// Tables of variants, one after another.
fn shown(tables: &[text::CallTable]) -> String {
    tables.iter().map(ToString::to_string).collect()
}

/// The argument over the memory of a held one.
///
/// # Safety
/// The memory lives as long as the result, and nobody else touches it where it is written.
unsafe fn in_place<'a>(held: &Held) -> InPlace<'a> {
    match held {
        Held::Int(value) => InPlace::Int(*value),
        Held::Array { info, low, high, is_written: true, .. } if low == high => {
            InPlace::Write { info: info.clone(), bytes: &mut [], offset: 0 }
        }
        Held::Array { info, low, high, .. } if low == high => {
            InPlace::Read { info: info.clone(), bytes: &[], offset: 0 }
        }
        Held::Array { info, low, high, first, is_written: true } => {
            let pointer = std::ptr::with_exposed_provenance_mut::<u8>(*low);
            // SAFETY: the caller's promise.
            let bytes = unsafe { std::slice::from_raw_parts_mut(pointer, high - low) };
            InPlace::Write { info: info.clone(), bytes, offset: first - low }
        }
        Held::Array { info, low, high, first, is_written: false } => {
            let pointer = std::ptr::with_exposed_provenance::<u8>(*low);
            // SAFETY: the caller's promise.
            let bytes = unsafe { std::slice::from_raw_parts(pointer, high - low) };
            InPlace::Read { info: info.clone(), bytes, offset: first - low }
        }
    }
}

/// The function of a schedule, or of what it was lowered to.
#[pyfunction]
#[pyo3(signature = (inputs, args, target, name))]
fn build(
    py: Python<'_>,
    inputs: &Bound<'_, PyAny>,
    args: Option<&Bound<'_, PyAny>>,
    target: &str,
    name: &str,
) -> PyResult<Function> {
    let target = Target::named(target, None)?;
    let parts = match (inputs.cast::<PySchedule>(), inputs.cast::<IRModule>(), args) {
        (Ok(schedule), _, Some(args)) => (schedule.try_borrow()?.inner.clone(), args_of(args)?),
        (Ok(_), _, None) => {
            return Err(PyTypeError::new_err("a schedule is built with its parameters: build(s, [A, B])"));
        }
        (_, Ok(module), None) => (module.get().schedule.clone(), module.get().args.clone()),
        (_, Ok(_), Some(_)) => {
            return Err(PyTypeError::new_err("what was lowered has its parameters; build(lowered)"));
        }
        (Err(_), Err(_), _) => {
            let found = inputs.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "a schedule is built, or what it was lowered to, got {found}"
            )));
        }
    };
    Function::of(py, name, Origin::Schedule(Box::new(parts)), target)
}

/// A text as coulis prints it.
#[pyfunction]
fn canonical(text: &str) -> PyResult<String> {
    text::canonical(text).or_raise()
}

/// The function of that name of a text; without a name, that of a text with one kernel.
#[pyfunction]
#[pyo3(signature = (text, target, arch, name))]
fn compile_text(
    py: Python<'_>,
    text: String,
    target: &str,
    arch: Option<&str>,
    name: Option<&str>,
) -> PyResult<Function> {
    let target = Target::named(target, arch)?;
    let kernel = text::one(&text, name).or_raise()?;
    let text = if name.is_some() { text::print_kernel(&kernel) } else { text };
    Function::of(py, &kernel.name, Origin::Text(text), target)
}
