//! `coulis explain FILE.py [--target] [--arch] [--format json]` for the tile calls of a kernel: a table of variants, each
//! chosen, accepted or declined, with every need that failed. `coulis explain` with the flags of `reduce`: the plan, why it was
//! picked, the bytes that it has to move, and how long that takes at the stream rate.

use coulis::reduce::{Prediction, array_info, plan, predict};
use coulis::{ArrayInfo, Error, PlanInfo};

use crate::failure::{Failure, not_built};
use crate::output::answer;
use crate::request::RequestArgs;
use crate::values::{Names, names};

const EXAMPLES: &str = "\
Examples:
  coulis explain a.npy --ops mean,var --axis 0            the plan of a reduction
  coulis explain kernel.py --target cuda --arch sm_90a    the variants of each tile call";

/// How the explanation is written.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Lines for people.
    Text,
    /// One JSON object.
    Json,
}

/// Arguments of `explain`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    request: RequestArgs,
    /// Statistics, for the plan of a reduction
    #[arg(long, value_name = "LIST", value_parser = names)]
    ops: Option<Names>,
    /// Target of a kernel's tile calls: cpu, cuda or hip
    #[arg(long, value_name = "T", conflicts_with = "ops")]
    target: Option<String>,
    /// Architecture of the target, as sm_90a
    #[arg(long, value_name = "A", conflicts_with = "ops")]
    arch: Option<String>,
    /// How the explanation is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let is_kernel = args.request.files.iter().any(|path| path.extension().is_some_and(|e| e == "py"));
    let Some(ops) = &args.ops else {
        return Err(if is_kernel {
            not_built("explain FILE.py")
        } else {
            let message = "an array file is explained for given statistics; add --ops LIST, or give a kernel's .py file";
            Error::user("cli/ops", message).into()
        });
    };
    let request = args.request.request(ops)?;
    let inputs: Vec<ArrayInfo> = args.request.inputs()?.iter().map(array_info).collect();
    let chosen = plan(&inputs, &request)?;
    let predicted = predict(&inputs, &request)?;
    answer(&match args.format {
        Format::Text => as_text(&chosen, &predicted),
        Format::Json => as_json(&chosen, &predicted),
    })
}

fn as_text(plan: &PlanInfo, predicted: &Prediction) -> String {
    let reasons: String = plan.reasons.iter().map(|reason| format!("  {reason}\n")).collect();
    format!(
        "plan {}\n{reasons}bytes {}\ntime {:.6} ms at least, at the stream rate of {:.1} GB/s\ntrace\n{}",
        plan.name,
        predicted.bytes,
        predicted.seconds * 1e3,
        predicted.bytes_per_second / 1e9,
        plan.trace.lines().map(|line| format!("  {line}\n")).collect::<String>()
    )
}

fn as_json(plan: &PlanInfo, predicted: &Prediction) -> String {
    let value = serde_json::json!({ "plan": plan.name, "reasons": plan.reasons, "bytes": predicted.bytes, "seconds": predicted.seconds, "bytes_per_second": predicted.bytes_per_second, "trace": plan.trace });
    format!("{value}\n")
}
