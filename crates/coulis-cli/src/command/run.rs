//! `coulis run FILE.py --device sim|cpu|cuda [--arg NAME=FILE.npy|NUMBER ...] [...]`: runs a kernel file on arrays. Not built
//! yet.

use std::path::PathBuf;

use crate::failure::{Failure, not_built};

const EXAMPLES: &str = "\
Examples:
  coulis run kernel.py --device cpu --arg A=a.npy --arg n=128 --out result.npz
  coulis run kernel.py --device sim --random 7 --warp-orders 8 --report";

/// Where a kernel runs.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Device {
    /// The simulator.
    Sim,
    /// The CPU.
    Cpu,
    /// A CUDA device.
    Cuda,
}

/// Arguments of `run`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Kernel text
    #[arg(value_name = "FILE.py")]
    file: PathBuf,
    /// Where to run
    #[arg(long, value_enum)]
    device: Device,
    /// Value of a parameter: an array file or a number; a buffer is named without a trailing _ptr
    #[arg(long = "arg", value_name = "NAME=FILE.npy|NUMBER")]
    args: Vec<String>,
    /// Fill the buffers that the kernel reads and that are not given
    #[arg(long, value_name = "SEED")]
    random: Option<u64>,
    /// Orders of warps that the simulator tries
    #[arg(long, value_name = "N")]
    warp_orders: Option<u32>,
    /// Lanes of a warp in the simulator
    #[arg(long, value_parser = ["32", "64"])]
    warp_width: Option<String>,
    /// Write every buffer parameter after the run
    #[arg(long, value_name = "FILE.npz")]
    out: Option<PathBuf>,
    /// Print the simulator's counters
    #[arg(long)]
    report: bool,
}

/// Refuses: not built yet.
pub fn run(_args: &Args) -> Result<(), Failure> {
    Err(not_built("run"))
}
