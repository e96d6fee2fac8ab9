//! Devices and what they make of kernels.

pub mod cpu_c;
pub mod cpu_exec;
pub mod elsewhere;
pub mod sim;

use std::ffi::{OsString, c_void};
use std::path::PathBuf;
use std::sync::Arc;

use coulis_ir::args::Bindings;
use coulis_ir::visit::written_memory;
use coulis_ir::{Buffer, Checked, DType, Kernel, Target};
use coulis_sim::SimReport;

use crate::cuda::memory::DeviceMemory;
use crate::environment::Environment;
use crate::error::{Notice, RuntimeError};
use crate::features;

/// Something that runs kernels.
pub trait Device: Send + Sync {
    /// `cpu_c`, `cpu_exec`, `sim` or `cuda`.
    fn name(&self) -> &'static str;

    /// Facts that kernels for this device are planned with.
    fn target(&self) -> Target;

    /// Bytes that its memory delivers a second at most, by its maker's numbers; `None` where nothing says.
    fn memory_bytes_per_second(&self) -> Option<u64> {
        None
    }

    /// Makes a kernel ready to run. A kernel that was compiled before is found again.
    fn compile(&self, kernel: &Checked) -> Result<Arc<dyn Executable>, RuntimeError>;

    /// As [`Device::compile`]; the result is kept so that [`Device::restore`] finds it under `plan`, with a note of the
    /// caller's. `plan` is everything that the kernel was made from, but for this device and this version of coulis.
    fn compile_as(
        &self,
        kernel: &Checked,
        plan: &str,
        note: &str,
    ) -> Result<Arc<dyn Executable>, RuntimeError> {
        let _ = (plan, note);
        self.compile(kernel)
    }

    /// What this process or another one compiled under `plan`; `None` where nothing was kept.
    fn restore(&self, plan: &str) -> Option<Restored> {
        let _ = plan;
        None
    }

    /// What users should hear and have not been told, since the last call.
    fn take_notices(&self) -> Vec<Notice> {
        Vec::new()
    }
}

/// A kernel that was found without being made.
pub struct Restored {
    /// The kernel, ready to run.
    pub executable: Arc<dyn Executable>,
    /// Its name and parameters; the body is empty.
    pub signature: Kernel,
    /// Words of the caller.
    pub note: String,
}

/// What a launch gives: what was found in it where the simulator ran it, nothing on other devices.
pub type Launched = Result<Option<SimReport>, RuntimeError>;

/// A kernel that is ready to run, from any number of threads.
pub trait Executable: Send + Sync {
    /// What it is and how it came to be.
    fn info(&self) -> &Info;

    /// Its buffer parameters, in order.
    fn parameters(&self) -> &[Parameter];

    /// Runs the kernel once and waits for its end.
    ///
    /// `bindings` give the free variables of the parameters, as [`coulis_ir::args::bind_args`] makes them;
    /// `buffers` hold one pointer for each buffer parameter, to its element `[0, ..., 0]`.
    ///
    /// # Safety
    /// Each pointer is valid for reads of all elements of the buffer's declared type, shape and strides under
    /// `bindings`, and for writes where the kernel stores to it; no other thread writes to what is read or touches
    /// what is written during the call; and buffers that are written do not overlap other buffers.
    unsafe fn launch(&self, bindings: &Bindings, buffers: &[*mut u8]) -> Launched;

    /// As [`Executable::launch`] for arrays in host memory: a device with memory of its own copies them there and copies
    /// back what may be written.
    ///
    /// # Safety
    /// As for [`Executable::launch`], for all bytes of the spans.
    unsafe fn launch_on_host(&self, bindings: &Bindings, spans: &[Span]) -> Launched {
        let pointers: Vec<*mut u8> = spans.iter().map(|span| span.first).collect();
        // SAFETY: the caller's promise.
        unsafe { self.launch(bindings, &pointers) }
    }

    /// As [`Executable::launch`] for memory of the device, in the order of a stream of the caller's (0 is the default
    /// one); does not wait. Devices whose memory is the host's have no streams and wait.
    ///
    /// # Safety
    /// As for [`Executable::launch`], until the work on the stream is done; the stream is alive and of this device.
    unsafe fn launch_on_stream(&self, bindings: &Bindings, buffers: &[*mut u8], stream: usize) -> Launched {
        let _ = stream;
        // SAFETY: the caller's promise.
        unsafe { self.launch(bindings, buffers) }
    }

    /// Waits until everything on a stream of the caller's is done.
    ///
    /// # Safety
    /// The stream is alive and of this device, or 0.
    unsafe fn wait_for_stream(&self, stream: usize) -> Result<(), RuntimeError> {
        let _ = stream;
        Ok(())
    }

    /// Memory of the device, unwritten; `None` where that is the host's.
    fn allocate(&self, bytes: usize) -> Result<Option<DeviceMemory>, RuntimeError> {
        let _ = bytes;
        Ok(None)
    }

    /// As [`Executable::launch_on_host`]; then launches over the same arrays, which stay where the device has them, are
    /// timed by the device's own clock. `None`, and nothing is run, where it has none.
    ///
    /// # Safety
    /// As for [`Executable::launch_on_host`].
    unsafe fn time_on_host(
        &self,
        bindings: &Bindings,
        spans: &[Span],
        amount: &TimeAmount,
    ) -> Result<Option<DeviceTimes>, RuntimeError> {
        let _ = (bindings, spans, amount);
        Ok(None)
    }

    /// Blocks and threads of a block of the first launch, where kernels are launched.
    fn grid(&self, bindings: &Bindings) -> Option<([u32; 3], [u32; 3])> {
        let _ = bindings;
        None
    }

    /// Whether an interrupt ends a launch; else it runs to its end.
    fn hears_interrupts(&self) -> bool {
        true
    }

    /// The emitted text, where there is one.
    fn source(&self) -> Option<&str>;
}

/// How long launches are timed, and what they are measured against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeAmount {
    /// Launches; else as many as fit into about `seconds`.
    pub launches: Option<usize>,
    /// Seconds, where the number of launches is not given.
    pub seconds: f64,
    /// Bytes that a copy on the device moves, half of them read and half of them written, and that a bare read reads.
    pub bytes: u64,
}

/// Launches that are put on a stream before the host waits for the last, for [`DeviceTimes::queued`].
pub const QUEUED: usize = 20;

/// Launches timed by the device's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceTimes {
    /// Seconds of each launch, in order.
    pub launches: Vec<f64>,
    /// Median seconds of the copy.
    pub copy: f64,
    /// Median seconds of a read of as many bytes that does nothing with them.
    pub read: f64,
    /// Seconds of one of [`QUEUED`] launches by the host's clock, as a library without events is timed: put
    /// on the stream one after another, over two copies of what is read in turn, and waited for at the end.
    /// `None` where the device has no memory for a second copy.
    pub queued: Option<f64>,
    /// Bytes of temporaries of a launch.
    pub workspace_bytes: u64,
}

/// A buffer parameter, as a launch needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Buffer name.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Whether the kernel stores to it.
    pub is_written: bool,
}

impl Parameter {
    /// The buffer parameters of a kernel, in order.
    pub fn all_of(kernel: &Kernel) -> Vec<Parameter> {
        let written = written_memory(&kernel.body);
        let parameter = |buffer: &Buffer| Parameter {
            name: buffer.name.clone(),
            dtype: buffer.dtype,
            is_written: written.contains(&buffer.data.id()),
        };
        kernel.param_buffers().map(parameter).collect()
    }

    /// Refuses as many buffers as no call takes.
    pub(crate) fn check_count(
        kernel: &str,
        parameters: &[Parameter],
        found: usize,
    ) -> Result<(), RuntimeError> {
        if found == parameters.len() {
            return Ok(());
        }
        Err(RuntimeError::BufferCount { kernel: kernel.to_owned(), wanted: parameters.len(), found })
    }

    /// Refuses spans that are not one a parameter, and one that may only be read where the kernel stores to it.
    pub(crate) fn check_spans(
        kernel: &str,
        parameters: &[Parameter],
        spans: &[Span],
    ) -> Result<(), RuntimeError> {
        Parameter::check_count(kernel, parameters, spans.len())?;
        match parameters.iter().zip(spans).find(|(parameter, span)| parameter.is_written && !span.is_written)
        {
            Some((parameter, _)) => {
                let (kernel, buffer) = (kernel.to_owned(), parameter.name.clone());
                Err(RuntimeError::ReadOnly { kernel, buffer })
            }
            None => Ok(()),
        }
    }

    /// Data pointers of the buffers whose elements `[0, ..., 0]` are at `first`: the same, as Flat kernels have no offsets.
    pub(crate) fn data_pointers(
        kernel: &str,
        parameters: &[Parameter],
        first: &[*mut u8],
    ) -> Result<Vec<*mut c_void>, RuntimeError> {
        Parameter::check_count(kernel, parameters, first.len())?;
        let mut pointers = Vec::with_capacity(first.len());
        for (parameter, pointer) in parameters.iter().zip(first) {
            let bytes = parameter.dtype.bytes();
            if !pointer.addr().is_multiple_of(bytes) {
                return Err(RuntimeError::Misaligned { buffer: parameter.name.clone(), bytes });
            }
            pointers.push(pointer.cast());
        }
        Ok(pointers)
    }
}

/// Host memory of one buffer parameter.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Element `[0, ..., 0]`.
    pub first: *mut u8,
    /// Bytes of the array's elements that lie before `first`.
    pub before: usize,
    /// Bytes of the array's elements from `first` on.
    pub after: usize,
    /// Whether the kernel may write there.
    pub is_written: bool,
}

impl Span {
    /// Bytes of the array's elements.
    pub fn bytes(&self) -> usize {
        self.before + self.after
    }
}

/// Where an executable came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Compiled now.
    Compiled,
    /// Found in the disk cache.
    Disk,
    /// Loaded in this process before.
    Memory,
}

/// Facts about an executable.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// Kernel name.
    pub kernel: String,
    /// Name of the device.
    pub device: &'static str,
    /// Where it came from.
    pub origin: Origin,
    /// Seconds that the compiler took, or finding and loading what it made; those of the text before it aside.
    pub seconds: f64,
}

/// Which way the CPU runs kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuKind {
    /// Compiled where there is a compiler that takes the kernel, else executed.
    #[default]
    Auto,
    /// Compiled, or an error.
    Compiled,
    /// Executed.
    Executed,
}

/// How the CPU is opened.
#[derive(Clone, Debug, Default)]
pub struct CpuOptions {
    /// Which way kernels run.
    pub kind: CpuKind,
    /// The C compiler; else it is looked for.
    pub compiler: Option<OsString>,
    /// The cache folder of compiled kernels; else `cpu` in the user's cache folder of coulis.
    pub cache_dir: Option<PathBuf>,
    /// Threads; else as many as the system gives this process.
    pub n_threads: Option<usize>,
    /// The environment; else that of this process.
    pub environment: Option<Environment>,
}

/// The CPU.
pub struct Cpu;

impl Cpu {
    /// Opens the CPU. The notice says why it is slower than it could be.
    pub fn open(options: &CpuOptions) -> Result<(Arc<dyn Device>, Option<Notice>), RuntimeError> {
        let environment = options.environment.clone().unwrap_or_else(Environment::of_process);
        let level = features::level(&environment)?;
        if options.kind == CpuKind::Executed {
            return Ok((Arc::new(cpu_exec::CpuExec::open(options, level)), None));
        }
        match cpu_c::CpuC::open(options, &environment, level) {
            Ok((device, notice)) => Ok((Arc::new(device), notice)),
            Err(RuntimeError::NoCompiler(error)) if options.kind == CpuKind::Auto => {
                Ok((Arc::new(cpu_exec::CpuExec::open(options, level)), Some(Notice::NoCompiler(error))))
            }
            Err(error) => Err(error),
        }
    }
}

/// Threads of the options, or those that the system gives.
fn n_threads(options: &CpuOptions) -> usize {
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    options.n_threads.unwrap_or_else(available).max(1)
}
