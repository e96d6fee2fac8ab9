//! Choosing and holding devices.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use coulis_ir::{Checked, Target};
use coulis_runtime::{
    Cpu, CpuKind, CpuOptions, Cuda, CudaOptions, Device, Executable, Restored, RuntimeError,
};

use crate::error::Error;
use crate::request::{DeviceChoice, Request};

/// A device that was opened, and what the caller should know of it.
pub struct Opened {
    device: Arc<dyn Device>,
    target: Target,
    notices: Vec<String>,
}

impl Opened {
    /// Name in answers.
    pub fn name(&self) -> &str {
        self.device.name()
    }

    /// Facts for the planner.
    pub fn target(&self) -> &Target {
        &self.target
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

/// Devices that were opened, by the way to run, the number of threads, and the compiler that was named.
type Table = Vec<((CpuKind, usize, Option<OsString>), Arc<Opened>)>;

fn named_compiler() -> MutexGuard<'static, Option<OsString>> {
    static COMPILER: Mutex<Option<OsString>> = Mutex::new(None);
    COMPILER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Names the C compiler of the devices that are opened from now on: a file, a name in `PATH`, or either with arguments
/// after spaces. It comes before all others, and where it does not run there is none. `None` looks for one again.
pub fn use_compiler(command: Option<&OsStr>) {
    *named_compiler() = command.map(OsStr::to_owned);
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
/// not in it there is none. `None` looks for one again.
pub fn use_cuda(folder: Option<&Path>) {
    *named_cuda() = folder.map(Path::to_owned);
}

/// How GPUs are opened.
pub(crate) fn cuda_options() -> CudaOptions {
    CudaOptions { cuda_path: named_cuda().clone(), ..CudaOptions::default() }
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
    let opened = Arc::new(Opened { target: device.target(), device, notices });
    table.push((key, opened.clone()));
    Ok(opened)
}

/// The device of a request; opened once a process for each way to run and number of threads.
pub fn open(request: &Request) -> Result<Arc<Opened>, Error> {
    let kind = match request.device {
        DeviceChoice::Auto | DeviceChoice::Cpu | DeviceChoice::Cuda(_) | DeviceChoice::Sim { .. } => {
            CpuKind::Auto
        }
        DeviceChoice::CpuCompiled => CpuKind::Compiled,
        DeviceChoice::CpuExecuted => CpuKind::Executed,
    };
    open_cpu(&request.device, request.threads, kind)
}

/// The CPU, or the GPU that is chosen; opened once a process for each kind and number of threads.
pub fn open_cpu(choice: &DeviceChoice, threads: Option<usize>, kind: CpuKind) -> Result<Arc<Opened>, Error> {
    if let DeviceChoice::Cuda(ordinal) = choice {
        let opened = open_cuda(*ordinal)?;
        if kind == CpuKind::Executed {
            let message = "a GPU looks at no index, and an access is not shown to stay inside; legal devices are cpu and sim";
            return Err(Error::unsupported("device", message));
        }
        return Ok(opened);
    }
    if let DeviceChoice::Sim { .. } = choice {
        let message = "the simulator runs functions, not requests; legal devices are auto and cpu";
        return Err(Error::unsupported("device", message));
    }
    if threads == Some(0) {
        return Err(Error::user("reduce/threads", "the number of threads is to be at least 1, got 0"));
    }
    static TABLE: OnceLock<Mutex<Table>> = OnceLock::new();
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or_else(cores);
    let mut table = TABLE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let key = (kind, threads, compiler());
    if let Some((_, found)) = table.iter().find(|(k, _)| *k == key) {
        return Ok(found.clone());
    }
    let options =
        CpuOptions { kind, n_threads: Some(threads), compiler: key.2.clone(), ..CpuOptions::default() };
    let (device, notice) = Cpu::open(&options)?;
    let notices = notice.iter().map(ToString::to_string).collect();
    let opened = Arc::new(Opened { target: device.target(), device, notices });
    table.push((key, opened.clone()));
    Ok(opened)
}
