//! `coulis normalize FILE --op NAME [--axis LIST] [...]`: softmax, the norms, and what else maps each element by the
//! statistics of its row.
//!
//! The result has the shape of the input. It goes to standard output as a table, JSON or CSV; with `--out` it goes to a
//! .npy file, and to standard output only when `--format` asks for it.

use std::path::PathBuf;

use coulis::reduce::run as reduce;
use coulis::{Along, Array, Outcome};

use crate::command::reduce::{OutFile, ShownArgs, input_of};
use crate::command::{Command, Entry};
use crate::failure::Failure;
use crate::output::{answer, note};
use crate::present::{Format, present};
use crate::progress::with_progress;
use crate::request::{NormalizationArgs, RequestArgs, TargetArgs};
use crate::values::Names;

const EXAMPLES: &str = "\
Examples:
  coulis normalize x.npy --op softmax --axis -1 --out y.npy
  coulis normalize x.npy --op layer_norm --axis -1 --set eps=1e-6 --beside weight=w.npy
  coulis normalize scores.npy --op softmax --axis -1 --where mask.npy --out y.npy
  coulis normalize images.npy --op batch_norm --axis 0,2,3 --format json
  coulis normalize x.npy --op rms_norm --axis -1 --plan    the schedule, to be edited
  coulis normalize x.npy --op softmax --axis -1 --kernel --arch sm_90a | coulis lower - --arch sm_90a --target cuda --emit cuda";

/// The command.
pub const COMMAND: Entry = Entry::new::<Args>("normalize", |words| Command::read(words, run));

/// Normalize the rows of an array file: softmax and the norms.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
struct Args {
    #[command(flatten)]
    request: RequestArgs,
    #[arg(long, value_name = "NAME", help = ops())]
    op: String,
    #[command(flatten)]
    normalization: NormalizationArgs,
    /// How the result is written: table unless --out is given
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write the result to a file
    #[arg(long, value_name = "FILE.npy|.npz")]
    out: Option<PathBuf>,
    #[command(flatten)]
    shown: ShownArgs,
    #[command(flatten)]
    target: TargetArgs,
}

/// The help of `--op`: each name with the numbers and arrays that it takes.
pub(super) fn ops() -> String {
    let one = |entry: &&coulis::NormalizationEntry| {
        let numbers = entry.parameters.iter().map(|p| p.name.to_owned());
        let arrays = entry.beside.iter().map(|array| match array.along {
            Along::Reduced => format!("{} of the reduced axes", array.name),
            Along::Kept => format!("{} of the kept axes", array.name),
            Along::All => format!("{} of all axes", array.name),
        });
        let takes: Vec<String> = numbers.chain(arrays).collect();
        if takes.is_empty() {
            entry.name.to_owned()
        } else {
            format!("{} ({})", entry.name, takes.join(", "))
        }
    };
    let listed: Vec<String> = coulis::NORMALIZATIONS.iter().map(one).collect();
    format!("What becomes of the elements: {}", listed.join("; "))
}

fn run(args: &Args) -> Result<(), Failure> {
    let target = args.out.as_deref().map(OutFile::of).transpose()?;
    let request = args.normalization.on(args.request.request(&Names(Vec::new()))?, &args.op)?;
    let request = args.target.on(request, "normalize")?;
    let mut inputs = args.request.inputs()?;
    inputs.extend(args.normalization.inputs()?);
    if let Some(text) = args.shown.text(&inputs, &request)? {
        return answer(&text);
    }
    let outcome = with_progress("normalizing", &inputs, || reduce(&inputs, &request))?;
    outcome.notices.iter().for_each(|notice| note(notice));
    let format = match target {
        Some(target) => {
            target.write(&outcome)?;
            args.format
        }
        None => Some(args.format.unwrap_or(Format::Table)),
    };
    format.map_or(Ok(()), |format| show(format, &inputs, outcome))
}

/// Writes the result to standard output. The rows of tables and CSV are the elements: no axis is gone.
fn show(format: Format, inputs: &[Array], outcome: Outcome) -> Result<(), Failure> {
    let shown = match format {
        Format::Json => outcome,
        Format::Table | Format::Csv => Outcome { axes: Vec::new(), ..outcome },
    };
    answer(&present(format, &input_of(inputs), &shown))
}
