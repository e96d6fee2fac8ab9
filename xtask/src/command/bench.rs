//! `cargo xtask bench cpu [--max-bytes N] [--seconds S] [--only WORD]`: coulis beside NumPy and JAX, in turn.
//!
//! Each workload is run by coulis (a process of its own, as a user has it), then by each peer, then all once more, and
//! the best time of each counts. The report is written to `bench/results/`.

use super::Command;
use crate::bench::{Options, Outcome, Peers, coulis, latency, report, workload};
use crate::step::{Failure, Step, read_text};

/// The command.
pub const COMMAND: Command = Command {
    name: "bench",
    about: "time coulis beside NumPy and JAX: bench cpu [--max-bytes N] [--seconds S] [--only WORD]",
    run: |words| match words {
        [device, rest @ ..] if device == "cpu" => cpu(&options(rest)?),
        [other, ..] => Err(Failure::Argument { argument: other.clone(), legal: "cpu" }),
        [] => Err(Failure::Argument { argument: String::new(), legal: "cpu" }),
    },
};

/// Files of workloads.
const SUITES: [&str; 2] = ["bench/workloads.json", "bench/cache_workloads.json"];

fn options(words: &[String]) -> Result<Options, Failure> {
    let mut options = Options::default();
    for pair in words.chunks(2) {
        let wrong = || Failure::Argument {
            argument: pair.join(" "),
            legal: "--max-bytes N, --seconds S and --only WORD",
        };
        let [name, value] = pair else { return Err(wrong()) };
        match name.as_str() {
            "--max-bytes" => options.max_bytes = value.parse().map_err(|_| wrong())?,
            "--seconds" => options.seconds = value.parse().map_err(|_| wrong())?,
            "--only" => options.only = value.clone(),
            _ => return Err(wrong()),
        }
    }
    Ok(options)
}

fn cpu(options: &Options) -> Result<(), Failure> {
    Step::cargo(&["build", "--release", "--package", "coulis-cli"]).run()?;
    let coulis = coulis()?;
    let mut peers = Peers::start()?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for path in SUITES {
        for entry in workload::list(&read_text(path)?)? {
            if entry.id().contains(&options.only) {
                let outcome = workload::measure(&entry, options, &coulis, &mut peers)?;
                eprintln!("{}", report::line(&outcome));
                outcomes.push(outcome);
            }
        }
    }
    let latency = latency::measure(&coulis)?;
    let files = report::write(&outcomes, &latency, options, &peers)?;
    files.iter().for_each(|file| eprintln!("wrote {file}"));
    Ok(())
}
