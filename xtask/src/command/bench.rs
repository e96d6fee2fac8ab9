//! `cargo xtask bench cpu [--max-bytes N] [--seconds S] [--only WORD]`: coulis, NumPy, JAX and PyTorch, in
//! turn.
//!
//! Each workload is run by coulis (a process of its own, as a user has it), and by the peers, in many short
//! turns; ratios are those of the turns. The report is written to `bench/results/`.
//!
//! `xtask bench gpu [--bin-dir DIR] [--peers LIST|none] [--only LIST] [--limit S] [--budget S] [--out DIR]
//! [--suite FILE] [--seconds S] [--fresh yes]`: coulis next to PyTorch, torch.compile, CuPy, JAX and CUB on a
//! GPU, without cargo if `--bin-dir` names the folder of `coulis`. A run that was cut off goes on with what is
//! missing. `--pages FILE.json` writes page and plot of a run again.

use std::path::PathBuf;
use std::time::Duration;

use super::Command;
use crate::bench::{Options, Outcome, Peers, coulis, gpu, latency, report, workload};
use crate::step::{Failure, Step, read_text};

/// The command.
pub const COMMAND: Command = Command {
    name: "bench",
    about: "time coulis beside other libraries: bench cpu [--only WORD] ..., bench gpu [--bin-dir DIR] [--peers LIST] ...",
    run: |words| match words {
        [device, rest @ ..] if device == "cpu" => cpu(&options(rest)?),
        [device, rest @ ..] if device == "gpu" => gpu::run(&gpu_options(rest)?),
        [other, ..] => Err(Failure::Argument { argument: other.clone(), legal: "cpu and gpu" }),
        [] => Err(Failure::Argument { argument: String::new(), legal: "cpu and gpu" }),
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

fn gpu_options(words: &[String]) -> Result<gpu::Options, Failure> {
    let mut options = gpu::Options::default();
    for pair in words.chunks(2) {
        let wrong = || Failure::Argument {
            argument: pair.join(" "),
            legal: "--bin-dir DIR, --peers LIST of torch,cupy,jax,cub,compile or none, --only LIST, --limit S, \
                    --budget S, --out DIR, --suite FILE, --seconds S, --fresh yes and --pages FILE.json",
        };
        let [name, value] = pair else { return Err(wrong()) };
        let seconds =
            || value.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok()).ok_or_else(wrong);
        match name.as_str() {
            "--bin-dir" => options.bin_dir = Some(PathBuf::from(value)),
            "--peers" if value == "none" => options.peers.clear(),
            "--peers" => {
                let known = |word: &str| gpu::PEERS.into_iter().find(|peer| *peer == word).ok_or_else(wrong);
                options.peers = value.split(',').map(known).collect::<Result<_, _>>()?;
            }
            "--only" => options.only = value.split(',').map(str::to_owned).collect(),
            "--limit" => options.limit = seconds()?,
            "--budget" => options.budget = seconds()?,
            "--out" => options.out = PathBuf::from(value),
            "--suite" => options.suite = PathBuf::from(value),
            "--seconds" => options.seconds = seconds()?.as_secs_f64(),
            "--fresh" if value == "yes" => options.fresh = true,
            "--pages" => options.pages = Some(PathBuf::from(value)),
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
                eprintln!("{}", report::line(&outcome, &peers));
                outcomes.push(outcome);
            }
        }
    }
    let latency = latency::measure(&coulis)?;
    let files = report::write(&outcomes, &latency, options, &peers)?;
    files.iter().for_each(|file| eprintln!("wrote {file}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_run_on_a_gpu_are_read_and_wrong_ones_refused() {
        let of = |text: &str| gpu_options(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let found = of("--peers jax,cub --only sum,max --limit 2.5 --bin-dir d").unwrap();
        assert_eq!(found.peers, ["jax", "cub"]);
        assert_eq!(found.only, ["sum", "max"]);
        assert_eq!(found.limit, Duration::from_millis(2500));
        assert!(of("--peers none").unwrap().peers.is_empty());
        for wrong in ["--peers numpy", "--limit -1", "--limit x", "--fresh no", "--only", "--what 1"] {
            assert!(matches!(of(wrong), Err(Failure::Argument { .. })), "{wrong}");
        }
    }
}
