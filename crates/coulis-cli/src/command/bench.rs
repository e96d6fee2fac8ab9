//! `coulis bench -D LIST [-v 0|1] [INIT] [TIME] [...]`: times reductions and normalizations of made-up data, or of a
//! suite file.
//!
//! INIT is 0 none, 1 ones, 2 integers from -5 to 4, 3 uniform in [-5, 5]; TIME is 0 or 1; without them `2 1`.
//! Four lengths without `--axis` reduce axes 1,2,3; other ranks name their axes. `--suite FILE.json` runs the
//! workloads of a file, each of which may be a view by `strides` and a `start`, with the first axis halved until
//! the input fits `--max-bytes`; `floor_ms` is a read of the input where it lies, which also writes as many bytes
//! as the results have where these are a sixteenth of the input or more, and `share` is what it takes for as many bytes over a launch of the same
//! turn, the median of all turns. On a GPU the floor is a copy that moves as many bytes in all, `read_ms` is
//! a read of as many that does nothing with them, and `queued_ms` is one of 20 launches that are put on its
//! stream at once, over two copies of the input in turn, by the host's clock. `--latency` tells what the
//! first call of a process costs. `--turns` is for a program that times others as well: the workloads, of one
//! dtype and shape, are checked and answered as a list in one line, and then each line on standard input is a
//! turn of one launch each and a floor, answered by one line with their milliseconds, in which `memory_ms` is
//! what memory that no cache holds takes to move as many bytes as the first workload. Exit code 1 says that a
//! result is wrong; 2, of a suite, that each of its workloads was left out.

use std::path::{Path, PathBuf};

use clap::ArgGroup;
use coulis::bench::{
    Amount, Init, Options, Report, Turn, Verdict, Workload, in_turns, latency, measure, parse_suite,
};
use coulis::{DType, DeviceChoice, Error, Tuned, read_text};
use serde_json::{Value, json};

use crate::command::{Command, Entry};
use crate::failure::Failure;
use crate::output::{answer, note};
use crate::values::{Integers, Names, count, device, dtype, integers, names};

const EXAMPLES: &str = "\
Examples:
  coulis bench -D 600,28,28,256                     mean and meansq over axes 1,2,3, verified
  coulis bench -D 4096,4096 --axis 1 --ops sum --dtype f32 -v 0 3 1
  coulis bench -D 4096,4096 --axis 1 --ops softmax --dtype f32 3
  coulis bench --suite workloads.json --format json
  coulis bench --latency                            what a first call costs";

/// What stands in the place of a suite, to which some flags belong.
const OF_NO_SUITE: [&str; 2] = ["shape", "latency"];

/// How the report is written.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Lines for people.
    Text,
    /// A JSON list.
    Json,
}

/// The command.
pub const COMMAND: Entry = Entry::new::<Args>("bench", |words| Command::read(words, run));

/// Time reductions.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("timed").required(true).args(["shape", "suite", "latency"]))]
struct Args {
    /// Lengths of the axes
    #[arg(short = 'D', long = "shape", value_name = "LIST", value_parser = integers, allow_hyphen_values = true)]
    shape: Option<Integers>,
    /// Verify the result: 0 or 1 [default: 1]
    #[arg(short = 'v', value_name = "0|1", value_parser = ["0", "1"])]
    verify: Option<String>,
    /// Input: 0 none, 1 ones, 2 integers from -5 to 4, 3 uniform in [-5, 5] [default: 2; of a suite: 3]
    #[arg(value_name = "INIT", value_parser = clap::value_parser!(u8).range(0..=3))]
    init: Option<u8>,
    /// Whether to time: 0 or 1 [default: 1]
    #[arg(value_name = "TIME", value_parser = clap::value_parser!(u8).range(0..=1))]
    time: Option<u8>,
    /// Reduced axes
    #[arg(long, value_name = "LIST", value_parser = integers, allow_hyphen_values = true)]
    axis: Option<Integers>,
    /// Statistics, or one normalization as softmax [default: mean,meansq, with float32 results of 16-bit floats]
    #[arg(long, value_name = "LIST", value_parser = names)]
    ops: Option<Names>,
    /// Dtype of the input [default: float16]
    #[arg(long, value_name = "T", value_parser = dtype)]
    dtype: Option<DType>,
    /// Where to run: auto (where the data lies, which for files is the CPU), cpu, cuda or cuda:N
    #[arg(long, value_name = "D", value_parser = device, default_value = "auto")]
    device: DeviceChoice,
    /// CPU threads; all by default
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Launches that are timed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    rep: u32,
    /// Workloads to run
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["shape", "init", "time", "axis", "ops", "dtype", "rep"])]
    suite: Option<PathBuf>,
    /// Largest input of a suite, in bytes; first axes are halved until it fits
    #[arg(long, value_name = "N", default_value_t = 1 << 30, value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = OF_NO_SUITE)]
    max_bytes: u64,
    /// Seconds to time each workload of a suite, about
    #[arg(long, value_name = "S", default_value_t = 0.5, allow_hyphen_values = true, conflicts_with_all = OF_NO_SUITE)]
    seconds: f64,
    /// Time one turn of the suite for each line on standard input
    #[arg(long, conflicts_with_all = OF_NO_SUITE, conflicts_with = "seconds")]
    turns: bool,
    /// Time the parts of a first call on an array of 16 numbers
    #[arg(long, conflicts_with_all = ["shape", "suite", "verify", "init", "time", "axis", "ops", "dtype", "rep"])]
    latency: bool,
    /// Plan as if `coulis tune` had found nothing
    #[arg(long)]
    untuned: bool,
    /// How the report is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

impl Args {
    fn options(&self, init: Init, amount: Option<Amount>) -> Options {
        Options {
            init,
            verify: self.verify.as_deref() != Some("0"),
            amount,
            threads: self.threads,
            device: self.device.clone(),
            tuned: if self.untuned { Tuned::Ignored } else { Tuned::Recorded },
        }
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    if args.latency {
        return first_call(args);
    }
    match (&args.suite, &args.shape) {
        (Some(path), _) if args.turns => by_turns(args, path),
        (Some(path), _) => suite(args, path),
        (None, shape) => one(args, shape.as_ref().map_or(&[], |shape| &shape.0)),
    }
}

/// One workload, given by flags.
fn one(args: &Args, shape: &[i64]) -> Result<(), Failure> {
    let axes = match &args.axis {
        Some(axes) => axes.0.clone(),
        None if shape.len() == 4 => vec![1, 2, 3],
        None => {
            let message =
                format!("axes are known without --axis for 4 lengths only, and there are {}", shape.len());
            return Err(Error::user("bench/axis", message).into());
        }
    };
    let input = args.dtype.unwrap_or(DType::F16);
    let is_half = matches!(input, DType::F16 | DType::BF16);
    let id = shape.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
    let ops = args.ops.as_ref().map_or_else(|| vec!["mean".into(), "meansq".into()], |ops| ops.0.clone());
    let workload = Workload {
        out_dtype: (is_half && args.ops.is_none()).then_some(DType::F32),
        ..Workload::new(id, input, shape.to_vec(), Some(axes), ops)
    };
    let init = match args.init {
        Some(0) => Init::Zeros,
        Some(1) => Init::Ones,
        Some(3) => Init::Uniform,
        _ => Init::Integers,
    };
    let amount = (args.time != Some(0)).then_some(Amount::Launches(args.rep as usize));
    let report = measure(&workload, &args.options(init, amount))?;
    report.notices.iter().for_each(|notice| note(notice));
    match args.format {
        Format::Json => answer(&format!("{:#}\n", json!([entry(&report)])))?,
        Format::Text => answer(&lines(&report, args.rep))?,
    }
    judged([&report])
}

/// What the reference example prints, and the name of the plan.
fn lines(report: &Report, rep: u32) -> String {
    let launched = match report.grid {
        Some(([a, b, c], [x, y, z])) => format!("grid_dim {{{a}, {b}, {c}}}, block_dim {{{x}, {y}, {z}}}"),
        None => format!("threads {}", report.n_threads),
    };
    let mut text = format!("launch_and_time_kernel: {launched}\n");
    if let Some(timing) = report.timing {
        text += &format!("Warm up 1 time\nStart running {rep} times...\n");
        let rate = report.gb_per_second(timing.mean);
        text += &format!("Perf: {} ms, {} GB/s, {}\n", digits(timing.mean * 1e3), digits(rate), report.plan);
    }
    text
}

/// A number without exponent, with at least four digits that say something where it is not tiny.
fn digits(value: f64) -> String {
    if value < 1.0 { format!("{value:.6}") } else { format!("{value:.3}") }
}

/// The workloads of a file, as they fit the largest input.
fn workloads(args: &Args, path: &Path) -> Result<Vec<Workload>, Failure> {
    let text = read_text(path).map_err(|error| {
        let why = error.to_string().to_lowercase();
        Error::user("read/suite", format!("cannot read the suite `{}`: {why}", path.display()))
    })?;
    let list = parse_suite(&text).map_err(Error::from)?;
    Ok(list.into_iter().map(|workload| workload.halved(args.max_bytes)).collect())
}

/// One turn for each line on standard input.
fn by_turns(args: &Args, path: &Path) -> Result<(), Failure> {
    let workloads = workloads(args, path)?;
    let mut lines = std::io::stdin().lines();
    let mut checked: Vec<Report> = Vec::new();
    let mut written = Ok(());
    let mut next = |reports: &[Report], turn: Option<&Turn>| {
        let said = match turn {
            None => {
                checked = reports.to_vec();
                Value::Array(reports.iter().map(entry).collect())
            }
            Some(turn) => json!({
                "ms": turn.launches.iter().copied().map(ms).collect::<Vec<_>>(),
                "floor_ms": ms(turn.floor),
                "memory_ms": ms(turn.memory),
            }),
        };
        written = answer(&format!("{said}\n"));
        written.is_ok() && matches!(lines.next(), Some(Ok(_)))
    };
    in_turns(&workloads, &args.options(Init::Uniform, None), &mut next)?;
    written?;
    judged(&checked)
}

/// All workloads of a file, one after another.
fn suite(args: &Args, path: &Path) -> Result<(), Failure> {
    if !(0.0..=3600.0).contains(&args.seconds) {
        let message = format!("--seconds is to be from 0 to 3600, got {}", args.seconds);
        return Err(Error::user("bench/seconds", message).into());
    }
    let options = args.options(Init::Uniform, Some(Amount::Seconds(args.seconds)));
    let mut reports = Vec::new();
    let mut list = Vec::new();
    let workloads = workloads(args, path)?;
    for workload in &workloads {
        match measure(workload, &options) {
            Ok(report) => {
                if reports.is_empty() {
                    report.notices.iter().for_each(|notice| note(notice));
                }
                if args.format == Format::Text {
                    answer(&row(&report))?;
                }
                list.push(entry(&report));
                reports.push(report);
            }
            Err(error) => {
                note(&format!("`{}` is left out: {error}", workload.id));
                list.push(json!({ "id": workload.id, "skipped": error.message }));
            }
        }
    }
    if args.format == Format::Json {
        answer(&format!("{:#}\n", Value::Array(list)))?;
    }
    if reports.is_empty() {
        let n = workloads.len();
        let message =
            format!("nothing was timed: each workload of `{}` is left out, {n} in all", path.display());
        return Err(Error::user("bench/suite", message).into());
    }
    judged(&reports)
}

/// One line for people.
fn row(report: &Report) -> String {
    let ms = report.timing.map_or(0.0, |timing| timing.median);
    let share = report.share.or(report.floor.map(|floor| floor / ms)).unwrap_or(0.0);
    format!(
        "{:24} {:>12} ms  {:>10} GB/s  {:>4.0} % of the stream rate  {}\n",
        report.workload.id,
        digits(ms * 1e3),
        digits(report.gb_per_second(ms)),
        100.0 * share,
        report.plan
    )
}

/// Milliseconds, to the nanosecond.
fn ms(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e6
}

/// The JSON of one workload: milliseconds of a launch (the median), of the floor, and of what went before.
fn entry(report: &Report) -> Value {
    let workload = &report.workload;
    let verified = match &report.verdict {
        None | Some(Verdict::OutOfReach { .. }) => Value::Null,
        Some(verdict) => Value::Bool(verdict.is_verified()),
    };
    json!({
        "id": workload.id,
        "dtype": workload.dtype.name(),
        "shape": workload.shape,
        "strides": workload.strides,
        "axes": workload.axes,
        "ops": workload.ops,
        "ms": report.timing.map(|timing| ms(timing.median)),
        "best_ms": report.timing.map(|timing| ms(timing.best)),
        "mean_ms": report.timing.map(|timing| ms(timing.mean)),
        "launches": report.timing.map(|timing| timing.n_launches),
        "bytes": report.bytes,
        "floor_ms": report.floor.map(ms),
        "share": report.share.map(|share| (share * 1e4).round() / 1e4),
        "read_ms": report.read.map(ms),
        "queued_ms": report.queued.map(ms),
        "plan": report.plan,
        "compile_ms": ms(report.compile),
        "planning_ms": ms(report.planning),
        "verified": verified,
        "device": report.device,
        "threads": report.n_threads,
    })
}

/// Says what could not be checked, and ends with exit code 1 where a result is wrong.
fn judged<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Result<(), Failure> {
    let mut wrong = Vec::new();
    for report in reports {
        let id = &report.workload.id;
        match &report.verdict {
            None | Some(Verdict::Verified { .. }) => {}
            Some(Verdict::OutOfReach { why }) => note(&format!("`{id}` is not verified: {why}")),
            Some(Verdict::Refuted { result, output, why }) => {
                wrong.push(format!("`{result}` of `{id}` is wrong at output {output}: {why}"));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::Refuted(wrong.join("\n"))) }
}

/// What a first call costs.
fn first_call(args: &Args) -> Result<(), Failure> {
    let found = latency(args.threads)?;
    match args.format {
        Format::Json => answer(&format!(
            "{:#}\n",
            json!({
                "origin": found.origin,
                "first_call_ms": ms(found.first_call),
                "compile_ms": ms(found.compile),
                "prepare_again_ms": ms(found.prepare_again),
                "launch_ms": ms(found.launch),
                "elements": found.n_elements,
            })
        )),
        Format::Text => answer(&format!(
            "first call     {} ms, of which {} ms to compile or load (kernel from: {})\nprepare again  {} ms\nlaunch         {} ms\n",
            digits(found.first_call * 1e3),
            digits(found.compile * 1e3),
            found.origin,
            digits(found.prepare_again * 1e3),
            digits(found.launch * 1e3),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::digits;

    #[test]
    fn numbers_have_no_exponent() {
        assert_eq!(digits(1e-5), "0.000010");
        assert_eq!(digits(0.25), "0.250000");
        assert_eq!(digits(1234567.0), "1234567.000");
    }
}
