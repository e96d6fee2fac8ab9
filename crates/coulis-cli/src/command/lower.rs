//! `coulis lower FILE.py [--target] [--arch] [--emit] [--after PASS] [--passes]`: a kernel after its passes,
//! or the text that is made of it. FILE.py is parsed, never executed. Without a target a kernel of threads is lowered
//! for a GPU and any other for this CPU; `--arch` names a GPU. A kernel in Flat form has no passes
//! before it and is checked as it stands. Of a file with several functions `--function` takes one; PTX, cubin and
//! SASS are of one. CUDA text needs nothing but coulis; PTX, cubin and SASS need NVRTC,
//! and SASS the disassembler. HIP is not built yet.

use std::path::PathBuf;

use coulis::text::{CudaBinary, emit_c, emit_cuda, emit_cuda_binary, lower, one, passes, print_kernel, read};
use coulis::{Error, TargetChoice};

use crate::command::{Command, Entry};
use crate::failure::{Failure, not_built};
use crate::output::{answer, answer_bytes};
use crate::request::TargetArgs;

const EXAMPLES: &str = "\
Examples:
  coulis lower kernel.py                            the flat kernel
  coulis lower --passes                             the passes, in order
  coulis lower kernel.py --after flatten_buffers    the kernel after one pass
  coulis lower kernel.py --target cpu --emit c      the C text
  coulis lower kernel.py --emit sass --arch sm_90a --target cuda    the machine code";

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

impl Emit {
    /// The target that it is the text of; the kernel is shown for any.
    fn target(self) -> Option<&'static str> {
        match self {
            Emit::Tir => None,
            Emit::C => Some("cpu"),
            Emit::Cuda | Emit::Ptx | Emit::Cubin | Emit::Sass => Some("cuda"),
            Emit::Hip => Some("hip"),
        }
    }
}

/// The command.
pub const COMMAND: Entry = Entry::new::<Args>("lower", |words| Command::read(words, run));

/// Print a kernel after its passes, or the text that is made of it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
struct Args {
    /// Kernel text; - for standard input
    #[arg(value_name = "FILE.py", required_unless_present = "passes")]
    file: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// The function that is taken of several
    #[arg(long, value_name = "NAME", conflicts_with = "passes")]
    function: Option<String>,
    /// What is printed
    #[arg(long, value_enum)]
    emit: Option<Emit>,
    /// Print the kernel after this pass
    #[arg(long, value_name = "PASS", conflicts_with_all = ["emit", "passes"])]
    after: Option<String>,
    /// List the passes in order
    #[arg(long)]
    passes: bool,
}

fn run(args: &Args) -> Result<(), Failure> {
    let target = args.target.choice("lower")?;
    let asked = target.as_ref().map(|target| match target {
        TargetChoice::Cpu => "cpu",
        TargetChoice::Cuda { .. } => "cuda",
        TargetChoice::Sim { .. } => "sim",
    });
    if let (Some(asked), Some(emit)) = (asked, args.emit)
        && let Some(legal) = emit.target().filter(|legal| *legal != asked)
    {
        let message = format!("--emit {} is for --target {legal}, got --target {asked}", name_of(emit));
        return Err(Error::user("cli/emit", message).into());
    }
    let Some(file) = args.file.as_ref().filter(|_| !args.passes) else {
        return answer(&passes());
    };
    if args.emit == Some(Emit::Hip) {
        return Err(not_built("lower --emit hip"));
    }
    let whole = read(file)?;
    let text = match &args.function {
        Some(name) => print_kernel(&one(&whole, Some(name))?),
        None => whole,
    };
    // What is emitted for GPUs is emitted for one where no target is named.
    let gpu = || target.clone().unwrap_or(TargetChoice::Cuda { arch: None });
    let binary = |to| answer_bytes(&emit_cuda_binary(&text, &gpu(), to)?);
    match args.emit {
        None | Some(Emit::Tir | Emit::Hip) => answer(&lower(&text, args.after.as_deref(), target.as_ref())?),
        Some(Emit::C) => answer(&emit_c(&text)?),
        Some(Emit::Cuda) => answer(&emit_cuda(&text, &gpu())?),
        Some(Emit::Ptx) => binary(CudaBinary::Ptx),
        Some(Emit::Cubin) => binary(CudaBinary::Cubin),
        Some(Emit::Sass) => binary(CudaBinary::Sass),
    }
}

/// How a value of a flag is written.
fn name_of(value: impl clap::ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
