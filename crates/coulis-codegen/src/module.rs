//! What a GPU emitter hands to a launcher: one text, the kernels in it, and how each is launched.
//!
//! A CPU kernel is one function that is called ([`crate::Source`]). A verified GPU kernel may be several launches that
//! share temporary memory, with a grid that follows from the sizes of a call. Everything that depends on sizes is an
//! expression over the variables that [`coulis_ir::args::bind_args`] binds, and is evaluated on the host by
//! [`coulis_ir::args::eval_index`], so that nothing about a launch is decided twice.

use coulis_ir::{Buffer, DType, Expr};

/// Emitted text of a GPU dialect, and how to launch it.
#[derive(Clone, Debug)]
pub struct Module {
    /// The translation unit.
    pub text: String,
    /// The kernels in the order of their launches. Each but the first waits for the one before by itself, where the machine
    /// has an instruction for that, and may be launched while that one runs.
    pub kernels: Vec<KernelLaunch>,
    /// Device memory that the launches share and the caller does not see.
    pub temporaries: Vec<Temporary>,
    /// Bytes by which the data pointer of each buffer parameter is to be aligned, by position; checked before a launch.
    pub alignments: Vec<u32>,
}

/// One launch.
#[derive(Clone, Debug)]
pub struct KernelLaunch {
    /// Name of the `extern "C"` function.
    pub name: String,
    /// Blocks along x, y and z. Where one of them is 0, nothing is launched.
    pub grid: [Expr; 3],
    /// Blocks of a cluster along x, y and z, of which the grid is whole ones; the text fixes them. 1 where there are none.
    pub cluster: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [Expr; 3],
    /// Arguments in the order of the function's parameters.
    pub args: Vec<KernelArg>,
    /// Bytes of shared memory that is sized at launch, that of arrays declared in the text aside.
    pub dynamic_shared_bytes: Expr,
}

/// An argument of a GPU function.
#[derive(Clone, Debug)]
pub enum KernelArg {
    /// The data pointer of a buffer parameter, by its position among the buffer parameters of the kernel. As in C
    /// text, element `[0, ..., 0]` is `elem_offset` elements behind it.
    Parameter(usize),
    /// The pointer of a temporary, by its position in [`Module::temporaries`].
    Temporary(usize),
    /// A number, passed by value in the bytes of `dtype`, an integer type or bool.
    Scalar {
        /// The number, over variables that the arguments bind.
        value: Expr,
        /// Its type in the function's signature.
        dtype: DType,
    },
}

/// Device memory that lives as long as the launches of one call.
#[derive(Clone, Debug)]
pub struct Temporary {
    /// The buffer that it is in the kernel; for messages and for its type.
    pub buffer: Buffer,
    /// Its size.
    pub bytes: Expr,
    /// Whether it is all zero bytes before the first launch of each call.
    pub zeroed: bool,
    /// Whether the launches of a call leave it all zero bytes again; only of memory that is zero before them.
    pub left_zero: bool,
}
