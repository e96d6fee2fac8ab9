//! Why a kernel cannot be simulated, or why a run stopped. Faults of the kernel's own are violations instead.

use coulis_ir::args::BindError;
use coulis_ir::device::DeviceError;
use coulis_ir::{DType, Ty};

/// An error of the simulator. Arguments are unchanged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimError {
    /// The kernel is not in Flat form.
    #[error("the simulator runs kernels in Flat form, `{kernel}` is in {form} form")]
    NotFlat {
        /// Kernel name.
        kernel: String,
        /// Its form.
        form: &'static str,
    },
    /// A kernel that is no program of launches.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Arguments that do not fit the kernel.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// An array whose elements are not all in its memory.
    #[error(
        "the memory of argument `{name}` holds {held} bytes, its elements reach from byte {first} to {last}"
    )]
    Memory {
        /// Parameter name.
        name: String,
        /// Bytes of the memory.
        held: usize,
        /// First byte of an element.
        first: i128,
        /// Byte after the last element.
        last: i128,
    },
    /// An argument that is written and was given to be read.
    #[error("argument `{name}` is written by the kernel, and its memory was given to be read only")]
    ReadOnly {
        /// Parameter name.
        name: String,
    },
    /// A warp of neither 32 nor 64 lanes.
    #[error("a warp has 32 or 64 lanes, got {found}")]
    Warp {
        /// Lanes asked for.
        found: u32,
    },
    /// A block with too many threads.
    #[error("a block has at most {limit} threads, got {found}")]
    BlockThreads {
        /// Threads of the launch.
        found: i128,
        /// Threads that a block may have.
        limit: u32,
    },
    /// A block with more shared memory than it can have.
    #[error(
        "a block of `{kernel}` has at most {limit} bytes of shared memory {kind}, and asks for {found}: {buffers}"
    )]
    SharedMemory {
        /// Kernel name.
        kernel: String,
        /// `whose size is known when it is compiled`, or `in all`.
        kind: &'static str,
        /// Bytes of the launch.
        found: i128,
        /// Bytes that a block may have.
        limit: u32,
        /// The buffers with their bytes.
        buffers: String,
    },
    /// A grid with more blocks than can be told apart.
    #[error("a launch of {found} blocks is more than the simulator tells apart ({limit})")]
    GridBlocks {
        /// Blocks of the launch.
        found: i128,
        /// Blocks that are told apart.
        limit: u32,
    },
    /// A grid that is not whole clusters, or clusters of a size that there is none of.
    #[error("clusters of {cluster:?} blocks, at most {limit} of them, do not make up a grid of {grid:?}")]
    Cluster {
        /// Blocks of a cluster along x, y and z.
        cluster: [u32; 3],
        /// Blocks of the grid.
        grid: [u32; 3],
        /// Blocks that a cluster may have.
        limit: i64,
    },
    /// An extent, or a value that the host computes, that is not known when the kernel starts.
    #[error(
        "{what} of `{name}` is to be made of the sizes of arguments, which are known when the kernel starts, and depends on `{reason}`"
    )]
    Unknown {
        /// `the size`, `the extent` or `the value`.
        what: &'static str,
        /// Buffer, index or variable.
        name: String,
        /// What it depends on, or the operation that has no index as a result.
        reason: String,
    },
    /// A negative or absurd size.
    #[error("buffer `{buffer}` is to hold {elements} elements, which does not fit in memory")]
    Size {
        /// Buffer name.
        buffer: String,
        /// Number of elements.
        elements: i128,
    },
    /// Memory of a scope that the simulator does not have.
    #[error(
        "the simulator has no memory of scope {scope}, which `{buffer}` asks for; legal are global, shared, \
         shared.dyn and local"
    )]
    Scope {
        /// Buffer name.
        buffer: String,
        /// The scope.
        scope: &'static str,
    },
    /// Two views of one memory with different element types.
    #[error(
        "buffer `{buffer}` looks at memory of {wanted} as {found}; the simulator keeps each memory as one type, so a \
         view is to have {wanted}"
    )]
    AliasType {
        /// Name of the view.
        buffer: String,
        /// Element type of the memory.
        wanted: DType,
        /// Element type of the view.
        found: DType,
    },
    /// A statement that Flat form does not have.
    #[error("the simulator does not run `{stmt}`")]
    UnsupportedStmt {
        /// Row of the table of forms.
        stmt: &'static str,
    },
    /// An operation that is not defined on its type.
    #[error("the simulator has no `{op}` on {ty}")]
    UnsupportedOp {
        /// Name of the operation.
        op: String,
        /// Type of its first operand.
        ty: Ty,
    },
    /// A buffer or variable that nothing declares.
    #[error("`{name}` is neither a parameter nor declared around its use")]
    Undeclared {
        /// Its name.
        name: String,
    },
    /// A kernel that does not come to an end.
    #[error(
        "kernel `{kernel}` was stopped after the {steps} statements that it may execute, at `{statement}` (line {line})"
    )]
    Steps {
        /// Kernel name.
        kernel: String,
        /// The limit of the options.
        steps: u64,
        /// The statement that was to be executed next.
        statement: String,
        /// Its line in the printed kernel.
        line: usize,
    },
    /// The caller asked for it while the kernel ran.
    #[error("kernel `{kernel}` was interrupted")]
    Interrupted {
        /// Kernel name.
        kernel: String,
    },
    /// A warp that meets more barriers and fences than are told apart.
    #[error("a warp of kernel `{kernel}` meets more than {limit} barriers and fences")]
    Barriers {
        /// Kernel name.
        kernel: String,
        /// How many are told apart.
        limit: u32,
    },
}
