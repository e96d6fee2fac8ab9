//! `coulis explain FILE.py [--target] [--arch] [--format json]` for the tile calls of a kernel: a table of variants, each
//! chosen, accepted or declined, with every need that failed. `coulis explain` with the flags of `reduce`: the plan, why it was
//! picked, and the bytes that it has to move. Predicted times are not built yet.

use coulis::reduce::{array_info, plan, predicted_bytes};
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
    let bytes = predicted_bytes(&inputs, &request)?;
    answer(&match args.format {
        Format::Text => as_text(&chosen, bytes),
        Format::Json => as_json(&chosen, bytes),
    })
}

fn as_text(plan: &PlanInfo, bytes: u64) -> String {
    let reasons: String = plan.reasons.iter().map(|reason| format!("  {reason}\n")).collect();
    format!(
        "plan {}\n{reasons}bytes {bytes}\ntrace\n{}",
        plan.name,
        plan.trace.lines().map(|line| format!("  {line}\n")).collect::<String>()
    )
}

fn as_json(plan: &PlanInfo, bytes: u64) -> String {
    let value = serde_json::json!({ "plan": plan.name, "reasons": plan.reasons, "bytes": bytes, "trace": plan.trace });
    format!("{value}\n")
}
