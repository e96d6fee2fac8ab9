//! `coulis bench -D LIST [-v 0|1] [INIT] [TIME] [...]`: times reductions of made-up data, or of a suite file. Not built yet.

use std::path::PathBuf;

use coulis::{DType, DeviceChoice};

use crate::failure::{Failure, not_built};
use crate::values::{Integers, Names, device, dtype, integers, names};

const EXAMPLES: &str = "\
Examples:
  coulis bench -D 600,28,28,256                     mean and meansq over axes 1,2,3, verified
  coulis bench -D 4096,4096 --axis 1 --ops sum --dtype f32 -v 0 3 1
  coulis bench --suite workloads.json --format json";

/// How the report is written.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Lines for people.
    Text,
    /// A JSON list.
    Json,
}

/// Arguments of `bench`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Lengths of the axes
    #[arg(short = 'D', long = "shape", value_name = "LIST", value_parser = integers, required_unless_present = "suite")]
    shape: Option<Integers>,
    /// Verify the result: 0 or 1
    #[arg(short = 'v', value_name = "0|1", value_parser = ["0", "1"])]
    verify: Option<String>,
    /// Input: 0 none, 1 ones, 2 integers from -5 to 4, 3 uniform in [-5, 5]
    #[arg(value_name = "INIT", value_parser = clap::value_parser!(u8).range(0..=3))]
    init: Option<u8>,
    /// Whether to time: 0 or 1
    #[arg(value_name = "TIME", value_parser = clap::value_parser!(u8).range(0..=1))]
    time: Option<u8>,
    /// Reduced axes
    #[arg(long, value_name = "LIST", value_parser = integers, allow_hyphen_values = true)]
    axis: Option<Integers>,
    /// Statistics
    #[arg(long, value_name = "LIST", value_parser = names)]
    ops: Option<Names>,
    /// Dtype of the input
    #[arg(long, value_name = "T", value_parser = dtype)]
    dtype: Option<DType>,
    /// Where to run: auto, cpu, cuda or cuda:N
    #[arg(long, value_name = "D", value_parser = device, default_value = "auto")]
    device: DeviceChoice,
    /// Workloads to run
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["shape", "init", "time", "axis", "ops", "dtype"])]
    suite: Option<PathBuf>,
    /// How the report is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Refuses: not built yet.
pub fn run(_args: &Args) -> Result<(), Failure> {
    Err(not_built("bench"))
}
