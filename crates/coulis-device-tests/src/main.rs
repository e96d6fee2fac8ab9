//! `device-tests [--small] [--list] [NAME...]`: tests that need a GPU, for machines that have one and no cargo.
//!
//! Prints `ok NAME`, `FAILED NAME: why`, or `SKIP NAME: why` where there is no GPU; exits with 1 where a test failed.
//! `--small` is for tools that slow a program down. `xtask gpu` runs it plainly and under each tool of
//! compute-sanitizer.

#![forbid(unsafe_code)]

mod probes;
mod tests;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use coulis_runtime::{Cuda, CudaOptions};

/// How much a test may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Everything.
    Full,
    /// A few small sizes, under a tool that slows kernels down a hundred times.
    Small,
}

/// What a test gets.
pub struct Machine {
    /// The GPU.
    pub cuda: Arc<Cuda>,
    /// How much it may do.
    pub effort: Effort,
}

/// What became of a test that is not wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It ran.
    Passed,
    /// The machine lacks what it needs.
    Skipped(String),
}

/// A test.
pub struct DeviceTest {
    /// Its name: a sentence with underscores.
    pub name: &'static str,
    /// Runs it; the error says what was wrong.
    pub run: fn(&Machine) -> Result<Verdict, String>,
}

fn main() -> ExitCode {
    let mut effort = Effort::Full;
    let mut wanted: Vec<String> = Vec::new();
    for word in std::env::args().skip(1) {
        match word.as_str() {
            "--small" => effort = Effort::Small,
            "--list" => {
                tests::all().for_each(|test| println!("{}", test.name));
                return ExitCode::SUCCESS;
            }
            name if tests::all().any(|test| test.name == name) => wanted.push(word),
            other => {
                eprintln!(
                    "device-tests: no test or option `{other}`; legal: --small, --list, names of --list"
                );
                return ExitCode::from(2);
            }
        }
    }
    let chosen = tests::all().filter(|test| wanted.is_empty() || wanted.iter().any(|name| name == test.name));
    let machine = match Cuda::open(0, &CudaOptions::default()) {
        Ok((cuda, _)) => Machine { cuda, effort },
        Err(error) => {
            chosen.for_each(|test| println!("SKIP {}: {error}", test.name));
            return ExitCode::SUCCESS;
        }
    };
    println!("on {}, {}", machine.cuda.facts().name, machine.cuda.facts().arch);
    let mut n_failed = 0;
    for test in chosen {
        let start = Instant::now();
        match (test.run)(&machine) {
            Ok(Verdict::Passed) => println!("ok {} ({:.3} s)", test.name, start.elapsed().as_secs_f64()),
            Ok(Verdict::Skipped(why)) => println!("SKIP {}: {why}", test.name),
            Err(why) => {
                println!("FAILED {}: {why}", test.name);
                n_failed += 1;
            }
        }
    }
    ExitCode::from(u8::from(n_failed > 0))
}
