//! What a GPU emitter hands to a launcher: one text, the kernels in it, and how each is launched.
//!
//! A CPU kernel is one function that is called ([`crate::Source`]). A verified GPU kernel may be several launches that
//! share temporary memory, with a grid that follows from the sizes of a call. Everything that depends on sizes is an
//! expression over the variables that [`coulis_ir::args::bind_args`] binds, and is evaluated on the host by
//! [`coulis_ir::args::eval_index`], so that nothing about a launch is decided twice.

use std::ops::Range;

use coulis_ir::{Buffer, DType, Expr};

/// Emitted text of a GPU dialect, and how to launch it.
#[derive(Clone, Debug)]
pub struct Module {
    /// The translation unit.
    pub text: String,
    /// Where in the text the functions of [`Module::kernels`] stand, in bytes and in order; what stands before the first is
    /// for all of them. Empty where that is not known.
    pub functions: Vec<Range<usize>>,
    /// The kernels in the order of their launches. Each but the first waits for the one before by itself, where the machine
    /// has an instruction for that, and may be launched while that one runs.
    pub kernels: Vec<KernelLaunch>,
    /// Device memory that the launches share and the caller does not see.
    pub temporaries: Vec<Temporary>,
    /// Bytes by which the data pointer of each buffer parameter is to be aligned, by position; checked before a launch.
    pub alignments: Vec<u32>,
}

impl Module {
    /// The text as parts that a compiler may be given side by side, one a kernel: all but the other functions, whose
    /// lines are empty, so that lines have their numbers. The whole text where there is one function, or none is known.
    pub fn parts(&self) -> Vec<String> {
        if self.functions.len() < 2 {
            return vec![self.text.clone()];
        }
        let lines = |range: &Range<usize>| "\n".repeat(self.text[range.clone()].matches('\n').count());
        let part = |own: usize| {
            let mut part = self.text[..self.functions[0].start].to_owned();
            part.extend(self.functions[..own].iter().map(lines));
            part.push_str(&self.text[self.functions[own].clone()]);
            part
        };
        (0..self.functions.len()).map(part).collect()
    }
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
    /// The data pointer of a buffer parameter, by its position among the buffer parameters of the kernel.
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
