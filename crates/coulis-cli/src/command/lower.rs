//! `coulis lower FILE.py [--target] [--arch] [--emit] [--after PASS] [--passes]`: a kernel after its passes, or the text that
//! is made of it. FILE.py is parsed, never executed. Not built yet.

use std::path::PathBuf;

use crate::failure::{Failure, not_built};

const EXAMPLES: &str = "\
Examples:
  coulis lower kernel.py                            the flat kernel
  coulis lower kernel.py --passes                   the passes, in order
  coulis lower kernel.py --after flatten_buffers    the kernel after one pass
  coulis lower kernel.py --target cpu --emit c      the C text";

/// What is printed.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Emit {
    /// The kernel.
    Tir,
    /// C text.
    C,
    /// CUDA text.
    Cuda,
    /// HIP text.
    Hip,
    /// PTX text.
    Ptx,
    /// A cubin.
    Cubin,
    /// Disassembly.
    Sass,
}

/// A kind of target.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Target {
    /// The CPU.
    Cpu,
    /// NVIDIA GPUs.
    Cuda,
    /// AMD GPUs.
    Hip,
}

/// Arguments of `lower`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Kernel text
    #[arg(value_name = "FILE.py")]
    file: PathBuf,
    /// Kind of target
    #[arg(long, value_enum)]
    target: Option<Target>,
    /// Architecture; the device's without it, else sm_90a
    #[arg(long, value_name = "A")]
    arch: Option<String>,
    /// What is printed
    #[arg(long, value_enum)]
    emit: Option<Emit>,
    /// Print the kernel after this pass
    #[arg(long, value_name = "PASS")]
    after: Option<String>,
    /// List the passes in order
    #[arg(long)]
    passes: bool,
}

/// Refuses: not built yet.
pub fn run(_args: &Args) -> Result<(), Failure> {
    Err(not_built("lower"))
}
