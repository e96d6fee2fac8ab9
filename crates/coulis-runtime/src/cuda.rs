//! NVIDIA GPUs: libraries found and loaded at run time, cubins compiled by NVRTC and kept on disk, launches on the
//! caller's stream.
//!
//! Nothing of CUDA is linked. The driver and NVRTC are opened when they are first needed, by absolute path where
//! coulis found them, and each call first looks whether its function is there ([`table`]), so that a machine without
//! CUDA, or with an old one, gets a [`CudaError`] that names what is missing and where it was looked for, and nothing
//! can panic. What is decided about a launch is decided on the host by [`plan`], which needs no GPU.
//!
//! [`Cuda::open`] gives a device. Memory and streams of the caller come in as raw `CUdeviceptr` and `CUstream`.

mod bare_read;
mod by_hand;
pub mod compile;
pub mod context;
mod counters;
mod device;
pub mod disassemble;
pub mod driver;
mod error;
mod executable;
pub mod memory;
pub mod nvrtc;
pub mod plan;
pub mod probe;
pub mod search;
pub mod stream;
mod table;
mod timing;

pub use compile::CudaCompiler;
pub use context::{Context, Facts, Limits};
pub use device::{Cuda, CudaOptions};
pub use disassemble::disassemble;
pub use driver::Driver;
pub use error::{CudaError, LibraryName};
pub use executable::CudaExecutable;
pub use memory::{DeviceMemory, Workspace};
pub use nvrtc::{Format, Nvrtc};
pub use plan::{LaunchError, Plan};
pub use search::{Found, Looked, Search};
pub use stream::{Event, Graph, RawStream, Stream};
