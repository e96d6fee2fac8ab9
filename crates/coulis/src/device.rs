//! Choosing and holding devices.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use coulis_ir::{Checked, Target, counted};
use coulis_runtime::cuda::Driver;
use coulis_runtime::{
    Cpu, CpuKind, CpuOptions, Cuda, CudaOptions, Device, Elsewhere, Executable, Restored, RuntimeError, Sim,
    SimOptions,
};
use coulis_sim::SimReport;

use crate::error::Error;
use crate::reduce::forget_prepared;
use crate::request::{DeviceChoice, Request};
use crate::target::TargetChoice;

/// A device that was opened, and what the caller should know of it.
pub struct Opened {
    device: Arc<dyn Device>,
    target: Target,
    notices: Vec<String>,
    identity: String,
}

impl Opened {
    /// Name in answers.
    pub fn name(&self) -> &str {
        self.device.name()
    }

    /// What kernels depend on in addition to their plan: two devices of one identity run the same kernels.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Facts for the planner.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Bytes that its memory delivers a second at most; `None` where nothing says.
    pub fn memory_bytes_per_second(&self) -> Option<u64> {
        self.device.memory_bytes_per_second()
    }

    /// What was found out at opening, and while kernels were compiled since this was last asked: that the cache
    /// cannot be written, say.
    pub fn notices(&self) -> Vec<String> {
        self.notices.iter().cloned().chain(self.late_notices()).collect()
    }

    /// What was found out while kernels were compiled since this was last asked.
    pub fn late_notices(&self) -> Vec<String> {
        self.device.take_notices().iter().map(ToString::to_string).collect()
    }

    /// As [`Opened::compile`], and kept under a plan's key with a note.
    pub fn compile_as(&self, kernel: &Checked, plan: &str, note: &str) -> Result<Arc<dyn Executable>, Error> {
        Ok(self.device.compile_as(kernel, plan, note)?)
    }

    /// What was compiled under a plan's key before.
    pub fn restore(&self, plan: &str) -> Option<Restored> {
        self.device.restore(plan)
    }

    /// Makes a kernel executable.
    pub fn compile(&self, kernel: &Checked) -> Result<Arc<dyn Executable>, Error> {
        Ok(self.device.compile(kernel)?)
    }
}

/// To be called in the child of a fork, which has no other threads: its kernels run on the thread that calls them. No
/// call may be under way at the fork. GPUs cannot be used in a child whose parent used them.
pub fn forked() {
    coulis_exec::forked();
}

/// Devices that were opened, by the way to run, the number of threads, and the compiler that was named.
type Table = Vec<((CpuKind, usize, Option<OsString>), Arc<Opened>)>;

fn named_compiler() -> MutexGuard<'static, Option<OsString>> {
    static COMPILER: Mutex<Option<OsString>> = Mutex::new(None);
    COMPILER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Names the C compiler of the devices that are opened from now on: a file, a name in `PATH`, or either with arguments
/// after spaces. It comes before all others, and where it does not run there is none. `None` looks for one again.
/// Calls that were prepared before are prepared anew where they are made again.
pub fn use_compiler(command: Option<&OsStr>) {
    *named_compiler() = command.map(OsStr::to_owned);
    forget_prepared();
}

/// The compiler that was named.
pub(crate) fn compiler() -> Option<OsString> {
    named_compiler().clone()
}

fn named_cuda() -> MutexGuard<'static, Option<PathBuf>> {
    static CUDA: Mutex<Option<PathBuf>> = Mutex::new(None);
    CUDA.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Names the folder of CUDA for the devices that are opened from now on. It comes before all others, and where NVRTC is
/// not in it there is none. `None` looks for one again. Calls that were prepared before are prepared anew where they are
/// made again.
pub fn use_cuda(folder: Option<&Path>) {
    *named_cuda() = folder.map(Path::to_owned);
    forget_prepared();
}

/// How GPUs are opened.
pub(crate) fn cuda_options() -> CudaOptions {
    CudaOptions { cuda_path: named_cuda().clone(), ..CudaOptions::default() }
}

/// The number of the GPU whose memory an address is in; `None` where there is no driver, or it knows none.
pub fn cuda_device_of(address: usize) -> Option<usize> {
    Driver::load(&cuda_options().search()).ok()?.device_of(address as u64)
}

/// The GPU of that number; opened once a process for each folder of CUDA that was named.
fn open_cuda(ordinal: usize) -> Result<Arc<Opened>, Error> {
    type Gpus = Vec<((usize, Option<PathBuf>), Arc<Opened>)>;
    static TABLE: Mutex<Gpus> = Mutex::new(Vec::new());
    let options = cuda_options();
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (ordinal, options.cuda_path.clone());
    if let Some((_, found)) = table.iter().find(|(k, _)| *k == key) {
        return Ok(found.clone());
    }
    let refused = |error| Error::unsupported("device", RuntimeError::Cuda(error));
    let (device, notice) = Cuda::open(ordinal, &options).map_err(refused)?;
    let notices = notice.iter().map(ToString::to_string).collect();
    let target = device.target();
    let plain = format!("{}:{ordinal}:{}", device.name(), target.arch);
    let identity = with_named(plain, key.1.as_ref().map(|folder| folder.as_os_str()));
    let opened = Arc::new(Opened { target, device, notices, identity });
    table.push((key, opened.clone()));
    Ok(opened)
}

/// The identity of a device, with what compiles for it where that was named.
fn with_named(identity: String, named: Option<&OsStr>) -> String {
    match named {
        Some(named) => format!("{identity}:{}", named.display()),
        None => identity,
    }
}

/// The device of a request; opened once a process for each way to run and number of threads.
pub fn open(request: &Request) -> Result<Arc<Opened>, Error> {
    open_choice(&request.device, request.threads, CpuKind::Auto)
}

/// The device of a choice; `kind` says which way the CPU runs where the choice leaves that open.
pub fn open_choice(
    choice: &DeviceChoice,
    threads: Option<usize>,
    kind: CpuKind,
) -> Result<Arc<Opened>, Error> {
    match choice {
        DeviceChoice::Auto | DeviceChoice::Cpu => open_cpu(threads, kind),
        DeviceChoice::CpuCompiled => open_cpu(threads, CpuKind::Compiled),
        DeviceChoice::CpuExecuted => open_cpu(threads, CpuKind::Executed),
        DeviceChoice::Cuda(ordinal) => open_cuda(*ordinal),
        DeviceChoice::Sim { warp, orders } => open_sim(*warp, *orders),
        DeviceChoice::Elsewhere { arch } => open_elsewhere(arch),
    }
}

/// A GPU of that architecture, for which things are planned and nothing runs.
fn open_elsewhere(arch: &str) -> Result<Arc<Opened>, Error> {
    let device = Elsewhere::new(TargetChoice::Cuda { arch: Some(arch.to_owned()) }.facts()?);
    let identity = format!("{}:{arch}", device.name());
    let target = device.target();
    Ok(Arc::new(Opened { target, device: Arc::new(device), notices: Vec::new(), identity }))
}

/// Whether a device is there to run on, else why not.
pub fn check(choice: &DeviceChoice) -> Result<(), Error> {
    open_choice(choice, None, CpuKind::Auto).map(drop)
}

/// Simulators that were opened, by what is simulated.
type Simulators = Vec<(coulis_sim::Options, Arc<Opened>)>;

fn open_sim(warp: u32, orders: u32) -> Result<Arc<Opened>, Error> {
    static TABLE: OnceLock<Mutex<Simulators>> = OnceLock::new();
    let run = sim_options(warp, orders)?;
    let mut table = TABLE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, found)) = table.iter().find(|(options, _)| *options == run) {
        return Ok(found.clone());
    }
    let device = Sim::open(&SimOptions { run: run.clone(), ..SimOptions::default() });
    let identity = format!("{}:{warp}:{orders}", device.name());
    let opened =
        Arc::new(Opened { target: device.target(), device: Arc::new(device), notices: Vec::new(), identity });
    table.push((run, opened.clone()));
    Ok(opened)
}

/// How the simulator runs.
pub fn sim_options(warp: u32, orders: u32) -> Result<coulis_sim::Options, Error> {
    if matches!(warp, 32 | 64) && orders > 0 {
        return Ok(coulis_sim::Options { warp, warp_orders: orders, ..Default::default() });
    }
    let message = format!(
        "the simulator has warps of 32 or 64 lanes and tries at least 1 order, got {warp} and {orders}"
    );
    Err(Error::user("sim/options", message))
}

/// Most threads that may be asked for, where the machine has fewer cores.
const MAX_THREADS: usize = 1024;

/// The CPU; opened once a process for each kind and number of threads.
pub fn open_cpu(threads: Option<usize>, kind: CpuKind) -> Result<Arc<Opened>, Error> {
    static TABLE: OnceLock<Mutex<Table>> = OnceLock::new();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or(cores);
    let most = cores.max(MAX_THREADS);
    if !(1..=most).contains(&threads) {
        let message = format!("the number of threads is to be 1 to {most}, got {threads}");
        return Err(Error::user("reduce/threads", message));
    }
    let mut table = TABLE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let key = (kind, threads, compiler());
    if let Some((_, found)) = table.iter().find(|(k, _)| *k == key) {
        return Ok(found.clone());
    }
    let options =
        CpuOptions { kind, n_threads: Some(threads), compiler: key.2.clone(), ..CpuOptions::default() };
    let (device, notice) = Cpu::open(&options)?;
    let notices = notice.iter().map(ToString::to_string).collect();
    let target = device.target();
    let identity = with_named(format!("{}:{}", device.name(), target.n_threads), key.2.as_deref());
    let opened = Arc::new(Opened { target, device, notices, identity });
    table.push((key, opened.clone()));
    Ok(opened)
}

/// Refuses results of a kernel in which the simulator found violations. Kernels of other devices have none.
pub fn check_report(report: Option<&SimReport>) -> Result<(), Error> {
    match report {
        Some(report) if !report.is_clean() => Err(violated(report)),
        Some(_) | None => Ok(()),
    }
}

/// The error of a kernel in which violations were found.
fn violated(report: &SimReport) -> Error {
    let found = counted(report.violations.len(), "violation");
    let message = format!("the simulator finds {found} in kernel `{}`", report.kernel);
    let error = Error::user("sim/violation", message);
    let error = report.violations.iter().fold(error, |error, one| error.with_help(one.to_string()));
    error.with_help(report.listing.trim_end())
}
