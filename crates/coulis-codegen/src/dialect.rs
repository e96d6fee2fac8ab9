//! Dialects: how each target spells what the walker decides.
//!
//! What every C-like text has is in [`Dialect`]. What a kernel is differs between a CPU, where it is one function that
//! is called, and a GPU, where it is a list of launches; each dialect gives one of the two halves in [`DialectKind`].

mod c;
pub mod cuda;

use coulis_ir::{Atom, DType, SyncKind, ThreadTag};

use crate::EmitError;
use crate::c::code::Code;
use crate::c::helper::{Helper, Needs};
use crate::c::style::Style;
use crate::c::types::{CTy, VTy};

/// Every dialect. One file each.
pub static DIALECTS: &[&dyn Dialect] = &[&c::C, &cuda::Cuda];

/// A target's spelling.
pub trait Dialect: Sync {
    /// Name in options and listings.
    fn name(&self) -> &'static str;

    /// Words that names must not take: keywords, and what the prelude defines.
    fn reserved(&self) -> &'static [&'static str];

    /// How text is laid out, and what is left to the compiler.
    fn style(&self) -> &'static Style;

    /// The name of a type in functions; in the definitions of helpers every dialect has [`CTy::name`].
    fn type_name(&self, ty: CTy) -> &'static str;

    /// The type of a variable that holds values of the type.
    fn held(&self, ty: CTy) -> CTy {
        ty
    }

    /// How the definition of a helper begins.
    fn function(&self) -> &'static str;

    /// A constant of an integer type or bool.
    fn int_literal(&self, value: i128, dtype: DType) -> Code;

    /// A constant of a float type, exactly.
    fn float_literal(&self, value: f64, ty: CTy) -> Code;

    /// The bits of a value of one type as another type of the same size.
    fn reinterpret(&self, value: &str, from: VTy, to: VTy) -> String;

    /// The definition of a helper.
    fn helper(&self, helper: Helper, needs: &mut dyn Needs) -> Result<String, EmitError>;

    /// The declaration of an array of one thread.
    fn local_array(&self, element: &str, name: &str, length: u64) -> String;

    /// The hint that memory at an address will be read soon; `None` drops it.
    fn prefetch(&self, hint: Atom, address: &str) -> Option<String>;

    /// What a kernel is in it.
    fn kind(&self) -> DialectKind<'_>;
}

/// The two kinds of dialect.
pub enum DialectKind<'a> {
    /// A kernel is a function that runs its parallel loops on a pool of threads.
    Cpu(&'a dyn CpuDialect),
    /// A kernel is a list of launches of functions.
    Gpu(&'a dyn GpuDialect),
}

/// The spelling of CPU kernels.
pub trait CpuDialect: Sync {
    /// Definitions of the scalar type names and of the entry's parameter types.
    fn prelude(&self) -> &'static str;

    /// The declaration of a vector type's name.
    fn vector_type(&self, ty: VTy) -> String;

    /// The declaration of `name`, the same type aligned to its lanes only and allowed to alias others.
    fn unaligned_type(&self, ty: VTy, name: &str) -> String;

    /// The head of the entry function, without the brace. Pointers are in `buf`, scalars in `scalar`.
    fn entry_head(&self, name: &str) -> String;

    /// The head of a function that runs iterations `begin..end` of a parallel loop, without the brace.
    fn body_head(&self, name: &str) -> String;

    /// The call that runs `body` for iterations `0..extent` with the context `context`, on all threads.
    fn parallel_call(&self, body: &str, extent: &str, context: &str) -> String;
}

/// The spelling of GPU kernels.
pub trait GpuDialect: Sync {
    /// Definitions of those names that the text uses.
    fn prelude(&self, text: &str) -> String;

    /// The head of a kernel, without the brace. `threads`: those of a block, where that is a constant. `blocks`: how many
    /// of them a multiprocessor is to hold, where the registers are to leave room for that. `cluster`: blocks of a cluster
    /// along x, y and z.
    fn kernel_head(
        &self,
        name: &str,
        threads: Option<i128>,
        blocks: Option<i64>,
        cluster: Option<[i128; 3]>,
        parameters: &[String],
    ) -> String;

    /// A parameter that points to memory. `alone`: nothing else refers to that memory while the kernel runs.
    fn pointer(&self, element: &str, name: &str, alone: bool) -> String;

    /// The position of the executing thread or block; not of a block in its cluster, which follows from the block's.
    fn thread_index(&self, tag: ThreadTag, ty: CTy) -> Code;

    /// The declaration of an array of a block, of a size known when the text is compiled, aligned to so many bytes.
    fn shared_array(&self, element: &str, name: &str, length: u64, align: u32) -> String;

    /// The declaration of the block's memory that is sized at launch, as bytes, and its name.
    fn dynamic_shared(&self) -> (&'static str, &'static str);

    /// The type of a mask: one bit a lane of a warp.
    fn mask(&self) -> DType;

    /// A barrier.
    fn barrier(&self, kind: SyncKind) -> Result<String, EmitError>;

    /// The value of an atom whose memory is at that address and holds that type. The arguments are those of its
    /// [`coulis_ir::Signature`]; `dtype` is that of the value that a shuffle moves or of the memory.
    fn atom(
        &self,
        atom: Atom,
        dtype: DType,
        address: Option<&Code>,
        args: &[Code],
        needs: &mut dyn Needs,
    ) -> Result<Code, EmitError>;

    /// The type that holds that many elements as they are in memory, for one access of 4, 8 or 16 bytes.
    fn word(&self, memory: CTy, lanes: u32) -> Option<Word>;
}

/// A vector of memory for one access, of at most 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Its name.
    pub name: &'static str,
    /// The function that makes one of its fields.
    pub make: &'static str,
    /// Its fields' type.
    pub field: CTy,
    /// Number of fields; where it is 1 the type is a scalar.
    pub fields: u32,
}

impl Word {
    /// One of the fields of a word of that name.
    pub fn part(&self, name: &str, field: u32) -> Code {
        Code::primary(match self.fields {
            1 => name.to_owned(),
            _ => format!("{name}.{}", ["x", "y", "z", "w"][field as usize]),
        })
    }
}
