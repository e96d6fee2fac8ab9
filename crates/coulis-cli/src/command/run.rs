//! `coulis run FILE.py --device sim|cpu|cuda [--arg NAME=FILE.npy|NUMBER ...] [...]`: runs a kernel file on arrays.
//!
//! A file with several functions runs the one that `--function` names. Every buffer that the kernel stores to is shown
//! after the run; `--out` keeps every buffer. An integer may be given for an integer parameter and for a size that occurs in
//! a shape. The simulator reports violations on
//! standard error, and the exit code is 1; it stops one that does not come to an end after `--max-steps`
//! statements, and the exit code is 2. Ctrl-C ends the command at any time.

use std::path::{Path, PathBuf};

use coulis::text::{one, read as read_text};
use coulis::{
    Arguments, Array, Called, CompileOptions, DeviceChoice, Error, Function, NamedArray, ReadOptions,
    SIM_WARP, Value, check_mapped, read, write_npz,
};

use crate::command::{Command, Entry};
use crate::failure::Failure;
use crate::numbers::short;
use crate::output::{answer, note};

/// Elements of an output that are shown.
const MAX_SHOWN: usize = 8;

/// Orders of warps that the simulator tries where nobody says.
const DEFAULT_ORDERS: u32 = 2;

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

/// The command.
pub const COMMAND: Entry = Entry::new::<Args>("run", |words| Command::read(words, run));

/// Run a kernel file on arrays.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
struct Args {
    /// Kernel text
    #[arg(value_name = "FILE.py")]
    file: PathBuf,
    /// The function that runs, where the file has several
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// Where to run
    #[arg(long, value_enum)]
    device: Device,
    /// Value of a parameter: an array file or an integer; a buffer is named without a trailing _ptr
    #[arg(long = "arg", value_name = "NAME=FILE.npy|NUMBER")]
    args: Vec<String>,
    /// Fill the buffers that the kernel reads and that are not given
    #[arg(long, value_name = "SEED")]
    random: Option<u64>,
    /// Orders of warps that the simulator tries
    #[arg(long, value_name = "N")]
    warp_orders: Option<u32>,
    /// Statements that the simulator may execute in one order of warps, all threads together; 8589934592
    /// where it is not given
    #[arg(long, value_name = "N")]
    max_steps: Option<u64>,
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

fn run(args: &Args) -> Result<(), Failure> {
    let simulated = args.device == Device::Sim;
    let is_for_simulator =
        args.warp_orders.is_some() || args.warp_width.is_some() || args.max_steps.is_some() || args.report;
    if !simulated && is_for_simulator {
        let message = "--warp-orders, --warp-width, --max-steps and --report belong to --device sim";
        return Err(Error::user("cli/device", message).into());
    }
    let device = match args.device {
        Device::Cpu => DeviceChoice::Cpu,
        Device::Cuda => DeviceChoice::Cuda(0),
        Device::Sim => DeviceChoice::Sim {
            warp: if args.warp_width.as_deref() == Some("64") { 64 } else { SIM_WARP },
            orders: args.warp_orders.unwrap_or(DEFAULT_ORDERS),
        },
    };
    if let Some(path) = args.out.as_ref().filter(|path| path.extension().is_none_or(|e| e != "npz")) {
        let message =
            format!("cannot write `{}`: buffers are written by name, to a .npz file", path.display());
        return Err(Error::user("write/results", message).into());
    }
    let options = CompileOptions { device, threads: None, max_steps: args.max_steps };
    let function = Function::of_kernel(one(&read_text(&args.file)?, args.function.as_deref())?, &options)?;
    let mut arguments = Arguments { random: args.random, ..Arguments::default() };
    for text in &args.args {
        let (name, value) = argument(text)?;
        if arguments.values.insert(name.clone(), value).is_some() {
            return Err(Error::user("cli/arg", format!("`{name}` is given twice")).into());
        }
    }
    function.notices().iter().for_each(|notice| note(notice));
    let Called { buffers, report } = function.call_named(&arguments)?;
    if let Some(report) = report.as_ref().filter(|report| !report.is_clean()) {
        return Err(Failure::Violated(format!("{}{report}", report.listing)));
    }
    if let Some(report) = report.filter(|_| args.report) {
        report.to_string().lines().for_each(note);
    }
    match &args.out {
        Some(path) => write_buffers(path, buffers),
        None => {
            let is_written =
                |name: &str| function.parameters().iter().any(|p| p.name == name && p.is_written);
            answer(&buffers.iter().filter(|b| is_written(&b.name)).map(shown).collect::<String>())
        }
    }
}

/// Reads `NAME=FILE.npy` or `NAME=NUMBER`.
fn argument(text: &str) -> Result<(String, Value), Failure> {
    let Some((name, value)) =
        text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty())
    else {
        let message = format!("an argument is NAME=FILE.npy or NAME=NUMBER, got `{text}`");
        return Err(Error::user("cli/arg", message).into());
    };
    let value = match value.parse::<i64>() {
        Ok(number) => Value::Int(number),
        Err(_) if value.parse::<f64>().is_ok() && !Path::new(value).exists() => {
            let message =
                format!("the number of an argument is an integer, or a file of one element; got `{text}`");
            return Err(Error::user("cli/arg", message).into());
        }
        Err(_) => Value::Array(read(value, &ReadOptions::default())?),
    };
    Ok((name.to_owned(), value))
}

fn write_buffers(path: &Path, buffers: Vec<NamedArray>) -> Result<(), Failure> {
    check_mapped()?;
    let members: Vec<(String, Array)> = buffers.into_iter().map(|b| (b.name, b.array)).collect();
    Ok(write_npz(path, &members)?)
}

/// `B float32 [3]: 1 2 3`, cut after some elements.
fn shown(buffer: &NamedArray) -> String {
    let array = &buffer.array;
    let mut words: Vec<String> = array.scalars().take(MAX_SHOWN).map(|s| short(s, array.dtype())).collect();
    if array.len() > MAX_SHOWN {
        words.push("...".to_owned());
    }
    format!("{} {} {:?}: {}\n", buffer.name, array.dtype(), array.shape(), words.join(" "))
}
