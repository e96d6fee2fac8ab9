//! Why a kernel cannot be compiled to bytecode, or why a run stopped.

use coulis_ir::{DType, Ty};

use crate::pool::PoolError;

/// An error of the executor. A run that stops may have written part of its outputs.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExecError {
    /// The kernel is not in Flat form.
    #[error("the executor runs kernels in Flat form, `{kernel}` is in {form} form")]
    NotFlat {
        /// Kernel name.
        kernel: String,
        /// Its form.
        form: &'static str,
    },
    /// A statement of GPUs or of another form.
    #[error("the executor does not run `{stmt}`; it runs loops, branches, bindings, allocations and stores")]
    UnsupportedStmt {
        /// Row of the table of forms.
        stmt: &'static str,
    },
    /// An operation that is not defined on its type.
    #[error("the executor has no `{op}` on {ty}")]
    UnsupportedOp {
        /// Name of the operation.
        op: &'static str,
        /// Type of its first operand.
        ty: Ty,
    },
    /// An access with other than one index.
    #[error("an access of `{buffer}` has {found} indices, Flat form has 1")]
    IndexCount {
        /// Buffer name.
        buffer: String,
        /// Number of indices.
        found: usize,
    },
    /// Vectors of different lengths meet.
    #[error("a vector of {found} lanes stands where {wanted} are needed")]
    Lanes {
        /// Lanes needed.
        wanted: u32,
        /// Lanes found.
        found: u32,
    },
    /// A buffer that is neither a parameter nor allocated around its use.
    #[error("buffer `{buffer}` is neither a parameter nor allocated")]
    UnknownBuffer {
        /// Buffer name.
        buffer: String,
    },
    /// Two views of one memory with different element types.
    #[error("buffer `{buffer}` looks at memory of {wanted} as {found}; a view has the type of its memory")]
    AliasType {
        /// Name of the view.
        buffer: String,
        /// Element type of the memory.
        wanted: DType,
        /// Element type of the view.
        found: DType,
    },
    /// A variable that no argument determines.
    #[error("variable `{var}` has no value")]
    UnboundVar {
        /// Variable name.
        var: String,
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
    /// A pointer that is not a multiple of the element size.
    #[error("argument `{buffer}` is to be aligned to {bytes} bytes")]
    Misaligned {
        /// Buffer name.
        buffer: String,
        /// Element size.
        bytes: usize,
    },
    /// An access outside of a buffer.
    #[error("index {index} of `{buffer}` is outside of [{lo}, {hi})")]
    OutOfBounds {
        /// Buffer name.
        buffer: String,
        /// The element.
        index: i64,
        /// First element.
        lo: i64,
        /// One past the last element.
        hi: i64,
    },
    /// An integer division or remainder by zero.
    #[error("an integer is divided by zero")]
    DivisionByZero,
    /// The caller asked for it while the kernel ran.
    #[error("the kernel was interrupted")]
    Interrupted,
    /// An allocation of a negative or an unaffordable length.
    #[error("`{buffer}` cannot be allocated with {count} elements")]
    Allocation {
        /// Buffer name.
        buffer: String,
        /// Number of elements.
        count: i64,
    },
    /// A level that this machine does not have.
    #[error("this machine has no {level}")]
    Level {
        /// The level's name.
        level: &'static str,
    },
    /// A part of a parallel loop panicked.
    #[error(transparent)]
    Pool(#[from] PoolError),
}
