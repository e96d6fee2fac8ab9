//! What can go wrong between a checked kernel and its results, and what users should hear though all went well.

use std::path::PathBuf;

use coulis_codegen::EmitError;

use crate::compiler::CompilerError;

/// An error of a device.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The kernel has no text in the device's dialect.
    #[error("kernel `{kernel}` cannot be emitted: {error}")]
    Emit {
        /// Kernel name.
        kernel: String,
        /// Why.
        error: EmitError,
    },
    /// The kernel is of a machine that is not here.
    #[error(
        "kernel `{kernel}` was made for {arch}, which is named and not opened: its plan and its texts may be asked for; \
         results come from devices that are here, of cuda, sim and cpu"
    )]
    Elsewhere {
        /// Kernel name.
        kernel: String,
        /// The architecture.
        arch: String,
    },
    /// `COULIS_CPU` names nothing that a CPU may have.
    #[error(
        "COULIS_CPU is to be `baseline`, `avx2` or `avx512`, the most that kernels may use of the CPU; got `{found}`"
    )]
    NoSuchLevel {
        /// What it says.
        found: String,
    },
    /// No compiler was found.
    #[error(transparent)]
    NoCompiler(#[from] CompilerError),
    /// The compiler refused the text.
    #[error("`{compiler}` failed on kernel `{kernel}` ({status}): {stderr}")]
    CompileFailed {
        /// Kernel name.
        kernel: String,
        /// The compiler's command.
        compiler: String,
        /// Its exit status.
        status: String,
        /// What it wrote to standard error.
        stderr: String,
    },
    /// The compiler could not be started, or its input or output failed.
    #[error("compiling kernel `{kernel}` failed: {source}")]
    CompileIo {
        /// Kernel name.
        kernel: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A compiled file that the system does not load.
    #[error("the compiled file of kernel `{kernel}` cannot be loaded: {message}")]
    Load {
        /// Kernel name.
        kernel: String,
        /// What the system says.
        message: String,
    },
    /// Wrong number of buffers.
    #[error("`{kernel}` takes {wanted} buffers, got {found}")]
    BufferCount {
        /// Kernel name.
        kernel: String,
        /// Number of buffer parameters.
        wanted: usize,
        /// Number of pointers.
        found: usize,
    },
    /// Memory that may only be read, for a parameter that is stored to.
    #[error("`{kernel}` writes `{buffer}`, and its memory is given to be read only")]
    ReadOnly {
        /// Kernel name.
        kernel: String,
        /// Buffer name.
        buffer: String,
    },
    /// A pointer that is not a multiple of the element size.
    #[error("argument `{buffer}` is to be aligned to {bytes} bytes")]
    Misaligned {
        /// Buffer name.
        buffer: String,
        /// Element size.
        bytes: usize,
    },
    /// A variable that no argument determines.
    #[error("variable `{var}` has no value")]
    UnboundVar {
        /// Variable name.
        var: String,
    },
    /// Memory for temporaries ran out.
    #[error("kernel `{kernel}` ran out of memory for its temporaries")]
    OutOfMemory {
        /// Kernel name.
        kernel: String,
    },
    /// A temporary of less than no elements.
    #[error("an allocation of kernel `{kernel}` has a negative number of elements")]
    NegativeLength {
        /// Kernel name.
        kernel: String,
    },
    /// An integer division or remainder by zero.
    #[error("an integer is divided by zero in kernel `{kernel}`")]
    DivisionByZero {
        /// Kernel name.
        kernel: String,
    },
    /// The caller asked for it while the kernel was compiled or ran.
    #[error("kernel `{kernel}` was interrupted")]
    Interrupted {
        /// Kernel name.
        kernel: String,
    },
    /// The executor refused the kernel, or stopped.
    #[error(transparent)]
    Exec(#[from] coulis_exec::ExecError),
    /// The simulator refused the kernel, or stopped.
    #[error(transparent)]
    Sim(#[from] coulis_sim::SimError),
    /// A GPU, its driver or its compiler failed.
    #[error(transparent)]
    Cuda(#[from] crate::cuda::CudaError),
    /// The thread pool failed.
    #[error(transparent)]
    Pool(#[from] coulis_exec::PoolError),
}

/// What users should hear once: nothing failed, but something is slower than it could be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    /// No compiler: kernels run on the executor.
    #[error("kernels are not compiled but executed, which is slower: {0}")]
    NoCompiler(CompilerError),
    /// The compiler refused a kernel, which runs on the executor.
    #[error("a kernel is not compiled but executed, which is slower: {0}")]
    NotCompiled(String),
    /// The cache cannot be used: kernels are compiled anew in each process.
    #[error("compiled kernels are not kept, since {} cannot be used: {reason}", dir.display())]
    CacheUnusable {
        /// The folder.
        dir: PathBuf,
        /// Why.
        reason: String,
    },
}

impl RuntimeError {
    /// Whether nothing went wrong but that the caller asked for an end.
    pub fn is_interrupt(&self) -> bool {
        use coulis_exec::ExecError;
        use coulis_sim::SimError;
        matches!(
            self,
            RuntimeError::Interrupted { .. }
                | RuntimeError::Exec(ExecError::Interrupted)
                | RuntimeError::Sim(SimError::Interrupted { .. })
        )
    }

    /// Whether memory of a caller is not aligned as the kernel wants it, so that nothing was run.
    pub fn is_of_alignment(&self) -> bool {
        use crate::cuda::{CudaError, LaunchError};
        matches!(self, RuntimeError::Cuda(CudaError::Launch(LaunchError::Misaligned { .. })))
    }
}
