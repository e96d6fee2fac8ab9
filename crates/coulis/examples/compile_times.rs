//! How long coulis takes from a call to a kernel's text: `compile_times cuda|cpu SUITE.json... [--runs N]
//! [--stages] [--traces] [--texts DIR] [--only ID]`.
//!
//! A line a workload, in microseconds of the fastest of some runs: the plan (with the check of the call), the nest, the
//! passes, the verifier, the text, and all of them; then the steps of analysis, the lines of the text, and
//! the plan's name. `--stages` prints every pass beside it, `--traces` its schedule, `--texts` keeps the texts.

use coulis::TargetChoice;
use coulis::bench::{Stages, parse_suite, stages};

/// That of the command line.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let target = match words.next().as_deref() {
        Some("cuda") => TargetChoice::Cuda { arch: None },
        Some("cpu") => TargetChoice::Cpu,
        _ => return Err("the first word is to be `cuda` or `cpu`".into()),
    };
    let (mut files, mut runs, mut texts, mut only) = (Vec::new(), 20usize, None, None);
    let (mut in_stages, mut with_traces) = (false, false);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("`{word}` takes a value"));
        match word.as_str() {
            "--runs" => runs = value()?.parse()?,
            "--stages" => in_stages = true,
            "--traces" => with_traces = true,
            "--texts" => texts = Some(value()?),
            "--only" => only = Some(value()?),
            _ => files.push(word),
        }
    }
    println!(
        "{:24} {:>7} {:>7} {:>7} {:>7} {:>7} {:>8} {:>8} {:>6}  plan",
        "us of", "plan", "nest", "passes", "verify", "emit", "all", "steps", "lines"
    );
    for file in &files {
        for workload in parse_suite(&std::fs::read_to_string(file)?)? {
            if only.as_ref().is_some_and(|id| *id != workload.id) {
                continue;
            }
            let mut best = match stages(&workload, &target) {
                Ok(found) => found,
                Err(error) => {
                    println!("{:24} {error}", workload.id);
                    continue;
                }
            };
            for _ in 1..runs {
                let found = stages(&workload, &target)?;
                if found.seconds() < best.seconds() {
                    best = found;
                }
            }
            println!("{}", row(&workload.id, &best));
            if in_stages {
                for stage in &best.stages {
                    println!("    {:32} {:>8.0} {:>8}", stage.name, stage.seconds * 1e6, stage.n_steps);
                }
            }
            if with_traces {
                println!("{}", best.trace);
            }
            if let Some(folder) = &texts {
                std::fs::write(format!("{folder}/{}.txt", workload.id), &best.text)?;
            }
        }
    }
    Ok(())
}

fn row(id: &str, found: &Stages) -> String {
    let of = |wanted: &[&str]| -> f64 {
        let those = found.stages.iter().filter(|stage| wanted.contains(&stage.name));
        1e6 * those.map(|stage| stage.seconds).sum::<f64>()
    };
    let (plan, nest) = (of(&["check", "plan"]), of(&["nest"]));
    let (verify, emit, all) = (of(&["verify"]), of(&["emit"]), 1e6 * found.seconds());
    format!(
        "{id:24} {plan:7.0} {nest:7.0} {:7.0} {verify:7.0} {emit:7.0} {all:8.0} {:8} {:6}  {}",
        all - plan - nest - verify - emit,
        found.n_steps(),
        found.text.lines().count(),
        found.plan
    )
}
