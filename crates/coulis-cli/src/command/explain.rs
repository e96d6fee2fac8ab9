//! `coulis explain FILE.py [--target] [--arch] [--format json]` for the tile calls of a kernel: a table of
//! variants, each chosen, accepted or declined, with the error that its numbers may have or every need that
//! failed. `coulis explain` with the flags of `reduce` or `normalize`: the plan, why it was picked, the bytes that it has to
//! move, and how long that takes at the stream rate; for a machine that is not here, without the time.

use std::path::Path;

use clap::FromArgMatches;
use coulis::reduce::{Prediction, array_info, plan, predict};
use coulis::text::{Accuracy, CallTable, Verdict, explain, read};
use coulis::{ArrayInfo, Error, PlanInfo, TargetChoice};

use crate::command::{Command, Entry};
use crate::failure::Failure;
use crate::output::answer;
use crate::request::{NormalizationArgs, ReductionArgs, RequestArgs, TargetArgs, first_flag};
use crate::values::{Names, names};

const EXAMPLES: &str = "\
Examples:
  coulis explain a.npy --ops mean,var --axis 0            the plan of a reduction
  coulis explain a.npy --ops mean,var --arch sm_90a       the plan for a GPU that need not be here
  coulis explain a.npy --op softmax --axis -1             the plan of a normalization
  coulis explain kernel.py --target cuda --arch sm_90a    the variants of each tile call";

/// How the explanation is written.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Lines for people.
    Text,
    /// One JSON object.
    Json,
}

/// The command.
pub const COMMAND: Entry = Entry::new::<Args>("explain", |words| {
    let of_arrays = first_flag::<RequestArgs>(words).or_else(|| first_flag::<ReductionArgs>(words));
    let args = Args { of_arrays, ..Args::from_arg_matches(words)? };
    Ok(Command(Box::new(move || run(&args))))
});

/// Say which plan or variant a call takes, and why.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
struct Args {
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    reduction: ReductionArgs,
    /// Statistics, for the plan of a reduction
    #[arg(long, value_name = "LIST", value_parser = names)]
    ops: Option<Names>,
    #[arg(long, value_name = "NAME", conflicts_with_all = ["ops", "keepdims"], help = super::normalize::ops())]
    op: Option<String>,
    #[command(flatten)]
    normalization: NormalizationArgs,
    #[command(flatten)]
    target: TargetArgs,
    /// How the explanation is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The first flag given that describes a call of arrays.
    #[arg(skip)]
    of_arrays: Option<String>,
}

fn run(args: &Args) -> Result<(), Failure> {
    let is_kernel = args.request.files.iter().any(|path| path.extension().is_some_and(|e| e == "py"));
    if let (None, Some(flag)) = (&args.op, args.normalization.given()) {
        return Err(Error::user("cli/op", format!("{flag} belongs to --op NAME, which is not given")).into());
    }
    let request = match (&args.ops, &args.op) {
        (Some(ops), _) => args.reduction.on(args.request.request(ops)?),
        (None, Some(op)) => args.normalization.on(args.request.request(&Names(Vec::new()))?, op)?,
        (None, None) => {
            if let ([file], true) = (&args.request.files[..], is_kernel) {
                return kernel(file, args);
            }
            let message = "an array file is explained for given statistics or a normalization; add --ops LIST or --op NAME, or \
                           give one kernel's .py file";
            return Err(Error::user("cli/ops", message).into());
        }
    };
    let request = args.target.on(request, "explain")?;
    let arrays = [args.request.inputs()?, args.normalization.inputs()?].concat();
    let inputs: Vec<ArrayInfo> = arrays.iter().map(array_info).collect();
    let chosen = plan(&inputs, &request)?;
    let predicted = predict(&inputs, &request)?;
    answer(&match args.format {
        Format::Text => as_text(&chosen, &predicted),
        Format::Json => as_json(&chosen, &predicted),
    })
}

/// The tables of a kernel's tile calls.
fn kernel(file: &Path, args: &Args) -> Result<(), Failure> {
    if let Some(flag) = &args.of_arrays {
        let message = format!(
            "{flag} belongs to array files with --ops or --op, and `{}` is a kernel; legal with one are --target, --arch and \
             --format",
            file.display()
        );
        return Err(Error::user("cli/kernel", message).into());
    }
    let target = args.target.choice("explain")?.unwrap_or(TargetChoice::Cuda { arch: None });
    let tables = explain(&read(file)?, &target)?;
    answer(&match args.format {
        Format::Text if tables.is_empty() => "no tile calls\n".to_owned(),
        Format::Text => tables.iter().map(CallTable::to_string).collect(),
        Format::Json => {
            format!("{}\n", serde_json::Value::from(tables.iter().map(as_value).collect::<Vec<_>>()))
        }
    })
}

fn as_value(table: &CallTable) -> serde_json::Value {
    let needs = |verdict: &Verdict| match verdict {
        Verdict::Chosen | Verdict::Accepts => Vec::new(),
        Verdict::Declined(declines) => declines
            .iter()
            .map(|d| serde_json::json!({ "need": d.need, "wanted": d.wanted, "found": d.found }))
            .collect(),
    };
    let variants: Vec<serde_json::Value> = table
        .rows
        .iter()
        .map(|row| {
            let (verdict, needs) = (row.verdict.name(), needs(&row.verdict));
            let accuracy = row.accuracy.as_ref().map(accuracy);
            serde_json::json!({
                "name": row.name,
                "priority": row.priority,
                "verdict": verdict,
                "needs": needs,
                "accuracy": accuracy,
            })
        })
        .collect();
    serde_json::json!({ "kernel": table.kernel, "call": table.call, "arch": table.arch, "variants": variants })
}

/// The longest chain of combinations and the bound of the error, `factor` times what `of` says.
fn accuracy(of: &Accuracy) -> serde_json::Value {
    serde_json::json!({
        "longest_chain": of.steps.longest,
        "factor": of.factor(),
        "of": of.scale(),
        "stored": of.stored.map(|dtype| dtype.name()),
        "text": of.to_string(),
    })
}

fn as_text(plan: &PlanInfo, predicted: &Prediction) -> String {
    let reasons: String = plan.reasons.iter().map(|reason| format!("  {reason}\n")).collect();
    let time = predicted.time.map(|time| {
        let (ms, rate) = (time.seconds * 1e3, time.bytes_per_second / 1e9);
        let word = if time.is_least { "at least" } else { "about" };
        format!("time {ms:.6} ms {word}, at the stream rate of {rate:.1} GB/s\n")
    });
    format!(
        "plan {}\n{reasons}bytes {}\n{}trace\n{}",
        plan.name,
        predicted.bytes,
        time.unwrap_or_default(),
        plan.trace.lines().map(|line| format!("  {line}\n")).collect::<String>()
    )
}

fn as_json(plan: &PlanInfo, predicted: &Prediction) -> String {
    let time = predicted.time;
    let value = serde_json::json!({
        "plan": plan.name,
        "reasons": plan.reasons,
        "bytes": predicted.bytes,
        "seconds": time.map(|t| t.seconds),
        "bytes_per_second": time.map(|t| t.bytes_per_second),
        "is_least": time.map(|t| t.is_least),
        "trace": plan.trace,
    });
    format!("{value}\n")
}
