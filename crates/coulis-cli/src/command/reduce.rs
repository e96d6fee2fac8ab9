//! `coulis reduce FILE --ops LIST [--axis LIST] [...]`: statistics of an array file, in one read.
//!
//! The results go to standard output as a table, JSON or CSV; with `--out` they go to a .npy or .npz file,
//! and to standard output only when `--format` asks for it. `--verify` compares each output with the exact
//! one. `--plan` prints the schedule trace and runs nothing; an edited trace runs by `--replay`. `--kernel`
//! prints the kernel that the schedule makes, which `coulis lower` takes. Parameters that `coulis tune` found
//! are used and named by `--plan`; `--untuned` ignores them.
//!
//! In a .csv file the first line may name the columns: it is left out where a field has text and none looks like a
//! number, as `1,234` in quotes does, and then or in a later line a field that is no number is refused. A .npy file
//! of bfloat16 says `<V2`, as ml_dtypes writes it; `|V2`, which is what NumPy writes of two bytes that it knows nothing
//! of, is refused, and so is `<V1`.

use std::path::{Path, PathBuf};

use coulis::reduce::{array_info, kernel, plan, run as reduce, verify_outcome};
use coulis::text::print_kernel;
use coulis::{Array, ArrayInfo, Error, Outcome, Request, VerifyReport, check_mapped, write_npy, write_npz};

use crate::command::{Command, Entry};
use crate::failure::Failure;
use crate::output::{answer, note, remark};
use crate::present::{Format, Input, present};
use crate::progress::with_progress;
use crate::request::{ReductionArgs, RequestArgs, TargetArgs};
use crate::values::{Names, names, statistics};

const EXAMPLES: &str = "\
Examples:
  coulis reduce a.npy --ops mean,var,min,max              everything, as a table
  coulis reduce a.npy --ops sum --axis -1 --format json   the last axis
  coulis reduce a.npz --key weights --ops absmax          one member of an archive
  coulis reduce a.bin --raw-shape 3,4 --raw-dtype f32 --ops argmax
  coulis reduce a.npy --ops sum,max --out result.npz      results by name in a file
  coulis reduce a.npy --ops sum --plan > plan.py          the schedule, to be edited
  coulis reduce a.npy --ops sum --replay plan.py
  coulis reduce a.npy --ops sum --kernel --arch sm_90a | coulis lower - --arch sm_90a --target cuda --emit sass";

/// The command.
pub const COMMAND: Entry = Entry::new::<Args>("reduce", |words| Command::read(words, run));

/// Compute statistics of an array file.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
struct Args {
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    reduction: ReductionArgs,
    #[arg(long, value_name = "LIST", value_parser = names, required = true, help = statistics())]
    ops: Names,
    /// How results are written: table unless --out is given
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write the results to a file; .npy takes one result, .npz any number by name
    #[arg(long, value_name = "FILE.npy|.npz")]
    out: Option<PathBuf>,
    /// Compare every output with the exact one; exit code 1 when one is wrong
    #[arg(long, conflicts_with_all = ["plan", "kernel"])]
    verify: bool,
    #[command(flatten)]
    shown: ShownArgs,
    #[command(flatten)]
    target: TargetArgs,
}

/// What is printed of a call in place of its results.
#[derive(clap::Args)]
pub(super) struct ShownArgs {
    /// Print the schedule trace and run nothing
    #[arg(long, conflicts_with_all = ["out", "format"])]
    plan: bool,
    /// Print the kernel before its passes, as `lower` takes it, and run nothing
    #[arg(long, conflicts_with_all = ["out", "format", "plan"])]
    kernel: bool,
}

impl ShownArgs {
    /// The text that is wanted in place of a run, if one is.
    pub(super) fn text(&self, inputs: &[Array], request: &Request) -> Result<Option<String>, Failure> {
        if !self.plan && !self.kernel {
            return Ok(None);
        }
        let infos: Vec<ArrayInfo> = inputs.iter().map(array_info).collect();
        if self.kernel {
            return Ok(Some(print_kernel(&kernel(&infos, request)?.0)));
        }
        let plan = plan(&infos, request)?;
        let tuned = plan.tuned.map(|words| format!("# tuned: {words} (--untuned ignores it)\n"));
        Ok(Some(tuned.unwrap_or_default() + &plan.trace))
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    let target = args.out.as_deref().map(OutFile::of).transpose()?;
    let request = args.target.on(args.reduction.on(args.request.request(&args.ops)?), "reduce")?;
    let inputs = args.request.inputs()?;
    if let Some(text) = args.shown.text(&inputs, &request)? {
        return answer(&text);
    }
    let outcome = with_progress("reducing", &inputs, || reduce(&inputs, &request))?;
    outcome.notices.iter().for_each(|notice| note(notice));
    match target {
        Some(target) => {
            target.write(&outcome)?;
            if let Some(format) = args.format {
                answer(&present(format, &input_of(&inputs), &outcome))?;
            }
        }
        None => answer(&present(args.format.unwrap_or(Format::Table), &input_of(&inputs), &outcome))?,
    }
    if args.verify {
        let report = with_progress("verifying", &inputs, || verify_outcome(&inputs, &request, &outcome))?;
        remark(verified(&report).trim_end());
        if !report.is_right() {
            let text = "a result is further from the exact one than its bound allows";
            return Err(Failure::Refuted(text.to_owned()));
        }
    }
    Ok(())
}

/// A line a result: its largest error, and the first output that is wrong.
fn verified(report: &VerifyReport) -> String {
    let mut text = String::new();
    for result in &report.results {
        let distance = match result.max_ulp {
            u64::MAX => "beyond every number of ulp".to_owned(),
            ulp => format!("at most {ulp} ulp"),
        };
        text += &format!(
            "verified {}: {} outputs, {distance}, {:.3} of the bound ({})\n",
            result.name, result.n_checked, result.worst, result.bound
        );
        if let Some(wrong) = &result.refuted {
            text += &format!(
                "refuted {}: output {} is {}, exact {}, allowed error {:e}\n",
                result.name, wrong.output, wrong.found, wrong.exact, wrong.allowed
            );
        }
    }
    text + &report.notes.iter().map(|note| format!("note: {note}\n")).collect::<String>()
}

/// What the presentation needs of the first input.
pub(super) fn input_of(inputs: &[Array]) -> Input {
    let first = inputs.first();
    Input {
        shape: first.map(|array| array.shape().to_vec()).unwrap_or_default(),
        dtype: first.map_or(coulis::DType::F64, Array::dtype),
    }
}

/// A file for results; its extension is checked before anything runs.
pub(super) enum OutFile<'a> {
    Npy(&'a Path),
    Npz(&'a Path),
}

impl OutFile<'_> {
    pub(super) fn of(path: &Path) -> Result<OutFile<'_>, Failure> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("npy") => Ok(OutFile::Npy(path)),
            Some("npz") => Ok(OutFile::Npz(path)),
            _ => Err(coulis::WriteError::UnknownExtension { path: path.to_owned() }.into()),
        }
    }

    pub(super) fn write(&self, outcome: &Outcome) -> Result<(), Failure> {
        check_mapped()?;
        match self {
            OutFile::Npz(path) => {
                let members: Vec<(String, Array)> = outcome
                    .results
                    .iter()
                    .map(|result| (result.name.clone(), result.array.clone()))
                    .collect();
                Ok(write_npz(path, &members)?)
            }
            OutFile::Npy(path) => match &outcome.results[..] {
                [only] => Ok(write_npy(path, &only.array)?),
                several => {
                    let names: Vec<&str> = several.iter().map(|result| result.name.as_str()).collect();
                    let message = format!(
                        "`{}` takes one result, and there are {}: {}; a .npz file takes them all",
                        path.display(),
                        names.len(),
                        names.join(", ")
                    );
                    Err(Error::user("write/results", message).into())
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use coulis::Verified;

    use super::*;

    #[test]
    fn a_nan_is_no_number_of_units_away() {
        let of = |max_ulp, worst| {
            let (name, bound) = ("mean".to_owned(), "exact".to_owned());
            let result = Verified { name, n_checked: 2, max_ulp, worst, bound, refuted: None };
            verified(&VerifyReport { results: vec![result], notes: Vec::new() })
        };
        assert_eq!(of(3, 0.5), "verified mean: 2 outputs, at most 3 ulp, 0.500 of the bound (exact)\n");
        let beyond = "verified mean: 2 outputs, beyond every number of ulp, inf of the bound (exact)\n";
        assert_eq!(of(u64::MAX, f64::INFINITY), beyond);
    }
}
