//! `coulis tune -D LIST --ops LIST [--axis LIST] [--dtype T] [...]`, `coulis tune --suite FILE.json`:
//! searches plans that are faster on this machine.
//!
//! The parameters of the plan that a reduction takes (parts, threads, vectors side by side, ...) are changed
//! one after the other. Each candidate has to be right on a small shape before it is timed. What is found is
//! kept in the cache folder for the device and all shapes of the class (extents up to the next power of two);
//! `reduce` uses it and says so in `--plan`, and `--untuned` ignores it. A search may be interrupted at any
//! time: the same command goes on where it was.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::ArgGroup;
use coulis::bench::{Workload, parse_suite};
use coulis::tune::{TuneOptions, TuneOutcome, TuneProgress, tune};
use coulis::{DType, DeviceChoice, Error, read_text};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::command::{Command, Entry};
use crate::failure::Failure;
use crate::output::{answer, note};
use crate::values::{Integers, Names, count, device, dtype, integers, names};

const EXAMPLES: &str = "\
Examples:
  coulis tune -D 4096,4096 --axis 1 --ops sum,max
  coulis tune --suite bench/workloads.json --device cuda
  coulis tune -D 4096,4096 --axis 1 --ops sum --again    search anew
  coulis cache clear                                     forget everything that was found";

/// How the report is written.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Lines for people.
    Text,
    /// A JSON list.
    Json,
}

/// The command.
pub const COMMAND: Entry = Entry::new::<Args>("tune", |words| Command::read(words, run));

/// Search better plans for this machine.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("tuned").required(true).args(["shape", "suite"]))]
struct Args {
    /// Lengths of the axes of an input
    #[arg(short = 'D', long = "shape", value_name = "LIST", value_parser = integers, allow_hyphen_values = true, requires = "ops")]
    shape: Option<Integers>,
    /// Reduced axes; all axes without it
    #[arg(long, value_name = "LIST", value_parser = integers, allow_hyphen_values = true)]
    axis: Option<Integers>,
    /// Statistics
    #[arg(long, value_name = "LIST", value_parser = names)]
    ops: Option<Names>,
    /// Dtype of the input
    #[arg(long, value_name = "T", value_parser = dtype, default_value = "float32")]
    dtype: DType,
    /// Workloads to tune
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["shape", "axis", "ops", "dtype"])]
    suite: Option<PathBuf>,
    /// Largest input of a suite, in bytes; first axes are halved until it fits
    #[arg(long, value_name = "N", default_value_t = 1 << 30, value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "shape")]
    max_bytes: u64,
    /// Where to run: auto (where the data lies, which for files is the CPU), cpu, cuda or cuda:N
    #[arg(long, value_name = "D", value_parser = device, default_value = "auto")]
    device: DeviceChoice,
    /// CPU threads; all by default
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Seconds to time each candidate, about
    #[arg(long, value_name = "S", default_value_t = 0.2, allow_hyphen_values = true)]
    seconds: f64,
    /// Stop after so many new candidates of each workload; the same command goes on
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    most: Option<usize>,
    /// Search again what was searched to the end
    #[arg(long)]
    again: bool,
    /// How the report is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

fn run(args: &Args) -> Result<(), Failure> {
    if !(0.0..=3600.0).contains(&args.seconds) {
        let message = format!("--seconds is to be from 0 to 3600, got {}", args.seconds);
        return Err(Error::user("tune/seconds", message).into());
    }
    let options = TuneOptions {
        device: args.device.clone(),
        threads: args.threads,
        seconds: args.seconds,
        again: args.again,
        most: args.most,
    };
    let workloads = workloads(args)?;
    let n_workloads = workloads.len();
    let mut list = Vec::new();
    for workload in workloads {
        let bar = Bar::new(&workload.id);
        match tune(&workload, &options, &mut |progress| bar.show(progress)) {
            Ok(outcome) => {
                drop(bar);
                if !outcome.is_kept {
                    note("there is no cache folder that keeps what was found");
                }
                if args.format == Format::Text {
                    answer(&line(&outcome))?;
                }
                list.push(entry(&outcome));
            }
            Err(error) if n_workloads == 1 => return Err(error.into()),
            Err(error) => {
                drop(bar);
                note(&format!("`{}` is left out: {error}", workload.id));
            }
        }
    }
    let is_any_tuned = !list.is_empty();
    if args.format == Format::Json {
        answer(&format!("{:#}\n", Value::Array(list)))?;
    }
    if !is_any_tuned {
        let message = format!("nothing was tuned: each workload is left out, {n_workloads} in all");
        return Err(Error::user("tune/suite", message).into());
    }
    Ok(())
}

fn workloads(args: &Args) -> Result<Vec<Workload>, Failure> {
    if let Some(path) = &args.suite {
        let text = read_text(path).map_err(|error| {
            let why = error.to_string().to_lowercase();
            Error::user("read/suite", format!("cannot read the suite `{}`: {why}", path.display()))
        })?;
        let list = parse_suite(&text).map_err(Error::from)?;
        return Ok(list.into_iter().map(|workload| workload.halved(args.max_bytes)).collect());
    }
    let shape = args.shape.as_ref().map(|shape| shape.0.clone()).unwrap_or_default();
    let id = shape.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
    let axes = args.axis.as_ref().map(|axes| axes.0.clone());
    let ops = args.ops.as_ref().map(|ops| ops.0.clone()).unwrap_or_default();
    Ok(vec![Workload::new(id, args.dtype, shape, axes, ops)])
}

/// The bar of a workload, where someone looks on.
struct Bar(Option<ProgressBar>);

impl Bar {
    fn new(id: &str) -> Bar {
        if !std::io::stderr().is_terminal() {
            return Bar(None);
        }
        let bar = ProgressBar::new(1).with_prefix(id.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:24}] {pos}/{len} {msg} [{elapsed}]") {
            bar.set_style(style.progress_chars("=> "));
        }
        Bar(Some(bar))
    }

    fn show(&self, progress: &TuneProgress) {
        let Some(bar) = &self.0 else { return };
        let best = progress.ms.map(|(untuned, best)| format!("{untuned:.4} ms, best {best:.4} ms; "));
        bar.set_length(progress.expected as u64);
        bar.set_position(progress.tried as u64);
        bar.set_message(best.unwrap_or_default() + &progress.candidate);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn words(outcome: &TuneOutcome) -> String {
    let words: Vec<String> = outcome.changes.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if words.is_empty() { "the planner's plan stays".to_owned() } else { words.join(" ") }
}

fn line(outcome: &TuneOutcome) -> String {
    let state = if outcome.is_done { "" } else { ", to be gone on with" };
    format!(
        "{:24} {:12} {:.6} ms -> {:.6} ms  {}  ({} candidates timed, {} passed over{state})\n",
        outcome.id,
        outcome.strategy,
        outcome.untuned_ms,
        outcome.ms,
        words(outcome),
        outcome.n_timed,
        outcome.n_refused
    )
}

fn entry(outcome: &TuneOutcome) -> Value {
    let changes: serde_json::Map<String, Value> =
        outcome.changes.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    json!({
        "id": outcome.id,
        "strategy": outcome.strategy,
        "changes": changes,
        "untuned_ms": outcome.untuned_ms,
        "ms": outcome.ms,
        "timed": outcome.n_timed,
        "passed_over": outcome.n_refused,
        "new": outcome.n_new,
        "done": outcome.is_done,
    })
}
