//! Emits C-family text from checked Flat kernels.
//!
//! One walker ([`c`]) turns statements and expressions into text; a [`Dialect`] spells types, memory, helper
//! functions and parallel loops. The walker decides what is computed and in which order, a dialect only how it is
//! written, so that every dialect runs the same algorithm. Output depends on nothing but the kernel, the dialect
//! and [`Options`]: the same input gives the same text.
#![forbid(unsafe_code)]

pub mod c;
pub mod dialect;
pub mod module;

pub use dialect::cuda::COMPILER_OPTIONS as CUDA_OPTIONS;
pub use dialect::cuda::bounds::{WITHOUT_RESIDENT as CUDA_WITHOUT_RESIDENT, asks_for_resident};
pub use dialect::{DIALECTS, Dialect};
pub use module::{KernelArg, KernelLaunch, Module, Temporary};

use coulis_ir::{Checked, Form, Target, Var};

/// What an emitter may assume of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of the largest vector value in the text: a power of two, 8 to 64. Wider vectors are split.
    pub vector_bytes: u32,
    /// Whether a half of a vector is widened faster from memory than where it is.
    pub widens_from_memory: bool,
    /// Whether loops around loops end early where the caller asks for it: then the entry's `pool` points to
    /// the address of a byte that is not 0 once it does. What was computed until then means nothing.
    pub ends_early: bool,
}

impl Options {
    /// The options for a target: its vector width, brought to a power of two from 8 to 64.
    pub fn for_target(target: &Target) -> Options {
        let bytes = target.vector_bytes.clamp(8, 64);
        let widens_from_memory = target.widens_from_memory;
        Options { vector_bytes: 1 << bytes.ilog2(), widens_from_memory, ends_early: false }
    }
}

/// Emitted text, and how to call it.
#[derive(Clone, Debug)]
pub struct Source {
    /// The translation unit.
    pub text: String,
    /// Name of the entry function.
    pub entry: String,
    /// Names of the buffer parameters, in the order of the entry's pointers.
    pub buffers: Vec<String>,
    /// The variables whose values the entry takes, in the order of its scalars.
    pub scalars: Vec<Var>,
    /// Whether its loops end early where the caller asks for it.
    pub ends_early: bool,
}

/// Why a kernel was not emitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// The kernel is not in Flat form.
    #[error("kernel `{kernel}` is in {found} form; emission takes Flat form")]
    Form {
        /// Kernel name.
        kernel: String,
        /// Its form.
        found: &'static str,
    },
    /// The dialect has no spelling for a construct.
    #[error("dialect `{dialect}` has no {what}")]
    Unsupported {
        /// Dialect name.
        dialect: &'static str,
        /// The construct.
        what: String,
    },
    /// A kernel that is no list of launches.
    #[error(transparent)]
    Device(#[from] coulis_ir::device::DeviceError),
    /// A variable that nothing binds.
    #[error("variable `{name}` is used where nothing binds it")]
    Unbound {
        /// Name hint.
        name: String,
    },
    /// An access to memory that is neither a parameter nor allocated around it.
    #[error("buffer `{name}` is accessed where it is neither a parameter nor allocated")]
    UnknownBuffer {
        /// Name hint.
        name: String,
    },
    /// An expression of a shape that Flat form does not have.
    #[error("{what} in kernel `{kernel}` is not what Flat form allows: {found}")]
    Shape {
        /// Kernel name.
        kernel: String,
        /// Which construct.
        what: &'static str,
        /// What was found.
        found: String,
    },
    /// No dialect of that name.
    #[error("no dialect `{name}`; dialects are {legal}")]
    NoDialect {
        /// The name that was given.
        name: String,
        /// Names of all dialects.
        legal: String,
    },
}

/// Emits `kernel` in `dialect`.
pub fn emit(kernel: &Checked, dialect: &dyn Dialect, options: Options) -> Result<Source, EmitError> {
    let kernel = kernel.kernel();
    if kernel.form != Form::Flat {
        return Err(EmitError::Form { kernel: kernel.name.clone(), found: kernel.form.name() });
    }
    c::emit_kernel(kernel, dialect, options)
}

/// Emits a kernel of launches in `dialect`, which is one of a GPU. Compile the text of `cuda` with [`CUDA_OPTIONS`].
pub fn emit_module(kernel: &Checked, dialect: &dyn Dialect) -> Result<Module, EmitError> {
    let kernel = kernel.kernel();
    if kernel.form != Form::Flat {
        return Err(EmitError::Form { kernel: kernel.name.clone(), found: kernel.form.name() });
    }
    c::emit_module(kernel, dialect)
}

/// The dialect of that name.
pub fn dialect_named(name: &str) -> Result<&'static dyn Dialect, EmitError> {
    DIALECTS.iter().copied().find(|d| d.name() == name).ok_or_else(|| EmitError::NoDialect {
        name: name.to_owned(),
        legal: DIALECTS.iter().map(|d| d.name()).collect::<Vec<_>>().join(", "),
    })
}
