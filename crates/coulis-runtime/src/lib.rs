//! Devices: compile cache, buffers, launches.
//!
//! A [`Device`] turns a checked kernel into an [`Executable`], and an executable runs on raw buffers. The CPU has two
//! devices: compiled C where a C compiler is found ([`device::cpu_c`]), else the executor ([`device::cpu_exec`]).
//! [`Cpu::open`] picks. [`Cuda::open`] opens a GPU, where there is one, and [`Sim`] is the simulated GPU. Nothing here
//! prints: what a user should hear is returned as a [`Notice`].

pub mod cache;
mod call;
pub mod compiler;
pub mod cuda;
pub mod device;
mod environment;
mod error;
mod features;
mod interrupt;
mod library;
mod median;
mod rate;
mod recipe;
pub mod stream;

pub use cache::Cache;
pub use call::{
    DevicePointer, StreamHandle, Window, WindowError, call, call_on_stream, time, wait_for_stream,
};
pub use compiler::{Compiler, CompilerError};
pub use cuda::{Cuda, CudaError, CudaOptions};
pub use device::elsewhere::Elsewhere;
pub use device::sim::{Outputs, Sim, SimOptions};
pub use device::{
    Cpu, CpuKind, CpuOptions, Device, DeviceTimes, Executable, Info, Launched, Origin, Parameter, QUEUED,
    Restored, Span, TimeAmount,
};
pub use environment::Environment;
pub use error::{Notice, RuntimeError};
pub use interrupt::interruptible;
pub use median::median;
pub use rate::Rates;
pub use recipe::signature;
