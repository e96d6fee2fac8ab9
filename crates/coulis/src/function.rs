//! Functions: kernels of the `te` and text doors, ready to be called with arrays.
//!
//! A call is safe. The arguments are bound and checked by the one binder (`coulis_ir::args`), memory is
//! checked against what the kernel assumes of it, outputs are memory of their own, and a kernel whose
//! accesses cannot be shown to stay inside its buffers runs on the executor, which looks at each index, and
//! not as compiled code.

mod arguments;
mod in_place;
mod memory;
mod simulate;
mod within_int32;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use coulis_io::Array;
use coulis_ir::args::{ArgInfo, BindError, Bindings, bind_args};
use coulis_ir::device::has_launches;
use coulis_ir::visit::{any_stmt, for_each_expr, for_each_stmt, stmt_exprs, written_memory};
use coulis_ir::{Checked, DType, Form, Kernel, Node, Param, Stmt, Target, Var};
use coulis_lower::Options;
use coulis_runtime::{CpuKind, Executable, Window};
use coulis_schedule::{Schedule, build_nest};
use coulis_sim::SimReport;
use coulis_tensor::Tensor;

use self::arguments::{
    argument_info, check_given, check_own_memory, check_reach, check_sizes, known_sizes, reaches_with_int32,
    size_vars,
};
pub use self::in_place::{InPlace, OnDevice};
use self::memory::{Contents, Memory};
use self::within_int32::stays_within_int32;
use crate::device::{Opened, check_report, open_choice, open_cpu, sim_options};
use crate::error::{Error, Owner};
use crate::inside::{first_unproven, first_unproven_divisor, launched};
use crate::pipeline::{Lowered, Route, VERIFY, lower_kernel, lower_scheduled, permit_for, permit_given};
use crate::request::{DeviceChoice, NamedArray};

/// How a function is made.
#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    /// Where it runs.
    pub device: DeviceChoice,
    /// CPU threads; `None` is all.
    pub threads: Option<usize>,
    /// Statements that the simulator's threads may execute together in one order; `None` is 2^33.
    pub max_steps: Option<u64>,
}

/// A value for a parameter. Cloning an array shares its elements.
#[derive(Clone, Debug)]
pub enum Value {
    /// For a buffer.
    Array(Array),
    /// For a scalar.
    Int(i64),
}

impl From<&Array> for Value {
    fn from(array: &Array) -> Value {
        Value::Array(array.clone())
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int(value)
    }
}

/// Arguments by name.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Values of parameters, and of sizes (`n`) that occur in shapes.
    pub values: BTreeMap<String, Value>,
    /// Fills the buffers that the kernel reads and that are not given, from this seed.
    pub random: Option<u64>,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name by which its argument is given.
    pub name: String,
    /// Element type; that of the value for a scalar.
    pub dtype: DType,
    /// Number of dimensions; `None` for a scalar.
    pub rank: Option<usize>,
    /// Whether the kernel loads from it.
    pub is_read: bool,
    /// Whether the kernel stores to it: it is an output.
    pub is_written: bool,
}

/// A kernel that is ready to be called.
pub struct Function {
    checked: Checked,
    runner: Runner,
    parameters: Vec<Parameter>,
    /// Whether the kernel has memory of its own.
    allocates: bool,
    route: Route,
    notices: Vec<String>,
    narrow: Option<Narrow>,
}

/// What the 64-bit twin of a function with int32 sizes is made from, and the twin once it was needed.
struct Narrow {
    nest: Kernel,
    options: CompileOptions,
    twin: OnceLock<Box<Function>>,
    /// The sizes of the last call that was looked at, and whether int32 is enough for them.
    last: Mutex<Option<(Bindings, bool)>>,
}

/// A buffer after a call, behind whether the kernel stores to it.
type Written = (bool, NamedArray);

/// What runs a function.
enum Runner {
    /// A device.
    Executable(Arc<dyn Executable>),
    /// The simulator.
    Simulator(coulis_sim::Options),
}

/// What a call gave: every buffer after it, and what the simulator says where that is the device.
#[derive(Clone, Debug)]
pub struct Called {
    /// Every buffer parameter, in order.
    pub buffers: Vec<NamedArray>,
    /// Counters and violations.
    pub report: Option<SimReport>,
}

/// The function of a schedule on the CPU; `args` are its parameters in order.
pub fn build(schedule: &Schedule, args: &[Tensor], name: &str) -> Result<Function, Error> {
    build_with(schedule, args, name, &CompileOptions::default())
}

/// As [`build`], with options.
pub fn build_with(
    schedule: &Schedule,
    args: &[Tensor],
    name: &str,
    options: &CompileOptions,
) -> Result<Function, Error> {
    let nest = build_nest(schedule, args, name)?;
    let lower = |nest: Kernel, options: &Options| {
        lower_scheduled(schedule, nest.clone(), options, &mut |_, _| {}).map_err(|error| match error.owner {
            // A fault that was there before lowering is the program's.
            Owner::Bug => permit_given(nest).err().unwrap_or(error),
            Owner::User | Owner::Unsupported => error,
        })
    };
    let mut function = Function::of_lowered(nest.clone(), options, lower)?;
    function.route.insert(0, "schedule/build_nest".to_owned());
    let (options, twin, last) = (options.clone(), OnceLock::new(), Mutex::default());
    function.narrow = Some(Narrow { nest, options, twin, last });
    Ok(function)
}

impl Function {
    /// The function of a kernel.
    pub fn of_kernel(kernel: Kernel, options: &CompileOptions) -> Result<Function, Error> {
        match kernel.form {
            Form::Nest | Form::Tiled => {
                let nest = permit_given(kernel)?.kernel().clone();
                Function::of_nest(nest, options)
            }
            Form::Flat => {
                let place = Place::of(&kernel, options)?;
                let checked = permit_given(kernel)?;
                Function::new(Lowered { checked, route: vec![VERIFY.to_owned()] }, place)
            }
        }
    }

    fn of_nest(nest: Kernel, options: &CompileOptions) -> Result<Function, Error> {
        Function::of_lowered(nest, options, |nest, options| {
            lower_kernel(nest.clone(), options, &mut |_, _| {}).map_err(|error| {
                // A fault that was there before lowering is the program's.
                permit_given(nest).err().unwrap_or(error)
            })
        })
    }

    fn of_lowered(
        nest: Kernel,
        options: &CompileOptions,
        lower: impl FnOnce(Kernel, &Options) -> Result<Lowered, Error>,
    ) -> Result<Function, Error> {
        let place = Place::of(&nest, options)?;
        let lowering = Options { target: place.target(), simple_mode: false };
        let lowered = lower(nest, &lowering)?;
        Function::new(lowered, place)
    }

    fn new(lowered: Lowered, place: Place) -> Result<Function, Error> {
        let Lowered { checked, mut route } = lowered;
        if has_launches(&checked.kernel().body) && !place.target().has_threads() {
            let message = format!(
                "kernel `{}` is written for blocks of threads, and the CPU runs loops; legal devices are sim and cuda",
                checked.kernel().name
            );
            return Err(Error::unsupported("function/threads", message));
        }
        let scalars = checked.kernel().params.iter().filter_map(|p| match p {
            Param::Scalar(var) => Some(var),
            Param::Buffer { .. } => None,
        });
        if let Some(var) = scalars.into_iter().find(|var| !var.dtype().is_int()) {
            let message = format!(
                "scalar parameter `{}` of type {} cannot be given yet; legal are integers, or a buffer of one element",
                var.name(),
                var.dtype()
            );
            return Err(Error::unsupported("function/scalar", message));
        }
        let checked = match &place {
            Place::Device(device, _) => permit_for(checked, device.target())?,
            // The simulator shows such faults as they happen.
            Place::Simulator(..) => checked,
        };
        let parameters = parameters(checked.kernel());
        let (runner, notices) = match place {
            Place::Device(device, mut notices) => {
                let executable = device.compile(&checked)?;
                notices.extend(device.late_notices());
                route.push(format!("runtime/{}", executable.info().device));
                (Runner::Executable(executable), notices)
            }
            Place::Simulator(_, options) => {
                route.push("sim".to_owned());
                (Runner::Simulator(options), Vec::new())
            }
        };
        let allocates = any_stmt(&checked.kernel().body, &mut |s| matches!(s, Stmt::Allocate { .. }));
        Ok(Function { checked, runner, parameters, allocates, route, notices, narrow: None })
    }

    /// Parameters in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The kernel that runs, in Flat form.
    pub fn kernel(&self) -> &Kernel {
        self.checked.kernel()
    }

    /// The source that was compiled, where the device compiles source.
    pub fn source(&self) -> Option<&str> {
        match &self.runner {
            Runner::Executable(executable) => executable.source(),
            Runner::Simulator(_) => None,
        }
    }

    /// Name of the device.
    pub fn device(&self) -> &'static str {
        match &self.runner {
            Runner::Executable(executable) => executable.info().device,
            Runner::Simulator(_) => "sim",
        }
    }

    /// What the kernel went through on its way here.
    pub fn route(&self) -> &[String] {
        &self.route
    }

    /// What the caller should know: no compiler found, say, or why it is not compiled.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Calls the function. `inputs` are the values of the parameters that the kernel does not store to, in order; the
    /// results are the buffers that it stores to, in order.
    pub fn call(&self, inputs: &[Value]) -> Result<Vec<NamedArray>, Error> {
        let wanted: Vec<&Parameter> = self.parameters.iter().filter(|p| !p.is_written).collect();
        if wanted.len() != inputs.len() {
            let names: Vec<&str> = wanted.iter().map(|p| p.name.as_str()).collect();
            let message = format!(
                "`{}` takes {} inputs ({}), got {}",
                self.kernel().name,
                wanted.len(),
                names.join(", "),
                inputs.len()
            );
            return Err(Error::user("call/count", message));
        }
        let mut inputs = inputs.iter().cloned();
        let given = self.parameters.iter().map(|p| if p.is_written { None } else { inputs.next() }).collect();
        let (all, report) = self.execute(given, &BTreeMap::new(), None)?;
        // Values of a kernel with violations are not to be trusted.
        check_report(report.as_ref())?;
        Ok(all.into_iter().filter(|(written, _)| *written).map(|(_, array)| array).collect())
    }

    /// Calls the function with arguments by name, and gives every buffer as it is after the call. An array that is
    /// given for an output is what the output starts from; it is not changed itself.
    /// A kernel in which the simulator finds violations is no error here: its report says so.
    pub fn call_named(&self, arguments: &Arguments) -> Result<Called, Error> {
        let mut sizes = BTreeMap::new();
        let mut given: Vec<Option<Value>> = vec![None; self.parameters.len()];
        let is_size = |name: &str| size_vars(self.kernel()).iter().any(|v| v.name() == name);
        for (name, value) in &arguments.values {
            let mut places = (0..self.parameters.len()).filter(|at| self.parameters[*at].name == *name);
            let at = places.next();
            if places.next().is_some() {
                let message = format!(
                    "`{}` has several parameters named `{name}`, of which a name chooses none; rename all but one",
                    self.kernel().name
                );
                return Err(Error::user("call/name", message));
            }
            match (at, value) {
                (Some(at), value) => given[at] = Some(value.clone()),
                (None, Value::Int(value)) if is_size(name) => {
                    sizes.insert(name.clone(), *value);
                }
                (None, _) => {
                    let names: Vec<&str> = self.parameters.iter().map(|p| p.name.as_str()).collect();
                    let message = format!(
                        "`{}` has no parameter `{name}`; parameters are {}",
                        self.kernel().name,
                        names.join(", ")
                    );
                    return Err(Error::user("call/name", message));
                }
            }
        }
        let (all, report) = self.execute(given, &sizes, arguments.random)?;
        Ok(Called { buffers: all.into_iter().map(|(_, array)| array).collect(), report })
    }

    /// Whether int32 is enough for the arrays, and for all that the kernel computes of their sizes. Said of functions that
    /// have a twin: what a text computes in int32 is its writer's affair.
    fn fits_int32(&self, infos: &[ArgInfo], bindings: &Bindings) -> bool {
        let Some(narrow) = &self.narrow else { return true };
        if size_vars(self.kernel()).iter().all(|var| var.dtype() != DType::I32) {
            return true;
        }
        if !reaches_with_int32(infos) {
            return false;
        }
        let mut last = narrow.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((sizes, fits)) if sizes == bindings => *fits,
            _ => {
                let fits = stays_within_int32(self.kernel(), bindings);
                *last = Some((bindings.clone(), fits));
                fits
            }
        }
    }

    /// Refuses sizes for which memory of the kernel's own is not what its extents say.
    fn check_own_memory(&self, bindings: &Bindings) -> Result<(), Error> {
        if self.allocates { check_own_memory(self.kernel(), bindings) } else { Ok(()) }
    }

    /// The function with int64 sizes; made when it is first needed. `None` where there is none to make.
    fn twin(&self) -> Result<Option<&Function>, Error> {
        let Some(narrow) = &self.narrow else { return Ok(None) };
        if let Some(twin) = narrow.twin.get() {
            return Ok(Some(twin));
        }
        let Some(wide) = coulis_lower::widen_index_types(&narrow.nest) else { return Ok(None) };
        let made = Box::new(Function::of_nest(wide, &narrow.options)?);
        Ok(Some(narrow.twin.get_or_init(|| made)))
    }

    /// One call: every buffer after it, with whether it was written, and the simulator's report.
    fn execute(
        &self,
        given: Vec<Option<Value>>,
        sizes: &BTreeMap<String, i64>,
        random: Option<u64>,
    ) -> Result<(Vec<Written>, Option<SimReport>), Error> {
        let kernel = self.kernel();
        check_given(&self.parameters, &given)?;
        let known = known_sizes(kernel, &self.parameters, &given, sizes);
        let mut infos = Vec::new();
        for ((param, facts), given) in kernel.params.iter().zip(&self.parameters).zip(&given) {
            infos.push(argument_info(param, facts, given.as_ref(), &known, random.is_some())?);
        }
        let bindings = bind_args(kernel, &infos);
        let is_beyond = match &bindings {
            Ok(bindings) => !self.fits_int32(&infos, bindings),
            Err(error) => matches!(error, BindError::Range { dtype: DType::I32, .. }),
        };
        if is_beyond && let Some(twin) = self.twin()? {
            return twin.execute(given, sizes, random);
        }
        let bindings = bindings.map_err(|e| Error::user("call/arguments", e))?;
        check_sizes(kernel, sizes, &bindings)?;
        check_reach(kernel, &self.parameters, &infos)?;
        self.check_own_memory(&bindings)?;
        let mut memory: Vec<Memory> = Vec::new();
        for (at, ((facts, info), given)) in self.parameters.iter().zip(&infos).zip(given).enumerate() {
            if let ArgInfo::Array(info) = info {
                let seed = random.map(|seed| seed.wrapping_add(at as u64)).filter(|_| facts.is_read);
                memory.push(Memory::of(facts, info, given, seed)?);
            }
        }
        let report = match &self.runner {
            Runner::Executable(executable) => {
                let mut windows = Vec::with_capacity(memory.len());
                for piece in &mut memory {
                    let first = piece.first_byte();
                    windows.push(match &mut piece.contents {
                        Contents::Shared(array) => {
                            let (bytes, offset) = array.storage();
                            Window::read(bytes, offset, &piece.info)?
                        }
                        Contents::Owned { bytes, .. } => {
                            Window::write(bytes.as_mut_slice(), first, &piece.info)?
                        }
                    });
                }
                coulis_runtime::call(&**executable, &bindings, &mut windows)?
            }
            Runner::Simulator(options) => {
                Some(simulate::simulate(&self.checked, &infos, &mut memory, options)?)
            }
        };
        let arrays = memory.into_iter().map(Memory::into_array).collect::<Result<_, Error>>()?;
        Ok((arrays, report))
    }
}

/// Where a function runs.
enum Place {
    /// On a device, with what is to be said of it.
    Device(Arc<Opened>, Vec<String>),
    /// In the simulator.
    Simulator(Target, coulis_sim::Options),
}

impl Place {
    /// The place for a kernel.
    fn of(kernel: &Kernel, options: &CompileOptions) -> Result<Place, Error> {
        if let DeviceChoice::Sim { warp, orders } = options.device {
            let usual = sim_options(warp, orders)?;
            let max_steps = options.max_steps.unwrap_or(usual.max_steps);
            return Ok(Place::Simulator(Target::simulated(warp), coulis_sim::Options { max_steps, ..usual }));
        }
        let device = open_choice(&options.device, options.threads, CpuKind::Auto)?;
        let launched = launched(kernel, device.target());
        let (device, mut notices) = device_for(device, first_unproven(&launched), options)?;
        if device.target().has_threads()
            && let Some(quotient) = first_unproven_divisor(&launched)
        {
            notices.push(format!(
                "the divisor of {quotient} is not shown to be other than zero, and a GPU gives 0 there where a CPU \
                 refuses; `--device sim` reports it"
            ));
        }
        Ok(Place::Device(device, notices))
    }

    /// Facts that the kernel is lowered with.
    fn target(&self) -> &Target {
        match self {
            Place::Device(device, _) => device.target(),
            Place::Simulator(target, _) => target,
        }
    }
}

/// The device that may run a kernel, of which that access is not shown to stay inside, and what to say of it.
fn device_for(
    device: Arc<Opened>,
    unproven: Option<String>,
    options: &CompileOptions,
) -> Result<(Arc<Opened>, Vec<String>), Error> {
    let mut notices = device.notices();
    let Some(access) = unproven else { return Ok((device, notices)) };
    if device.target().has_threads() {
        notices.push(format!(
            "{access} is not shown to stay inside its buffer, and a GPU does not look; `--device sim` does"
        ));
        return Ok((device, notices));
    }
    let device = open_cpu(options.threads, CpuKind::Executed)?;
    let notice = format!(
        "not compiled but executed with a check of each index, since {access} is not shown to stay inside"
    );
    Ok((device, vec![notice]))
}

fn parameters(kernel: &Kernel) -> Vec<Parameter> {
    let mut read: HashSet<Var> = HashSet::new();
    let written = written_memory(&kernel.body);
    for_each_stmt(&kernel.body, &mut |stmt| {
        if let Stmt::Atom(call) = stmt
            && !call.atom.is_hint()
        {
            read.extend(call.memory.iter().map(|e| e.buffer.data.clone()));
        }
        for expr in stmt_exprs(stmt) {
            for_each_expr(expr, &mut |e| {
                if let Node::Load(buffer, _) = e.node() {
                    read.insert(buffer.data.clone());
                }
            });
        }
    });
    let of = |param: &Param| match param {
        Param::Buffer { handle, buffer } => Parameter {
            name: Kernel::argument_name(handle).to_owned(),
            dtype: buffer.dtype,
            rank: Some(buffer.rank()),
            is_read: read.contains(&buffer.data),
            is_written: written.contains(&buffer.data.id()),
        },
        Param::Scalar(var) => Parameter {
            name: var.name().to_owned(),
            dtype: var.dtype(),
            rank: None,
            is_read: true,
            is_written: false,
        },
    };
    kernel.params.iter().map(of).collect()
}
