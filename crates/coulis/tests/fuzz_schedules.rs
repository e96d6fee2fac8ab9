//! Random programs under random legal schedules give the reference's answers.
//!
//! A case is a seed: it picks a program (inputs, a stage before, a reduction, a stage after) and a list of primitives,
//! of which the refused ones are skipped. What is left is built, lowered and run; a schedule may be refused when it is
//! built, for the reasons that show only then. A failure prints its seed, and `COULIS_FUZZ_SEED` runs that one alone;
//! `COULIS_FUZZ_CASES` says how many cases a test runs, from that seed on where both are set.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/everywhere.rs"]
mod everywhere;
#[path = "common/random_te.rs"]
mod random_te;

use coulis::te::ScheduleError;
use coulis_runtime::{Cpu, CpuKind, CpuOptions};
use everywhere::{Tolerance, run_as_scheduled, run_compiled_together, run_on_threads, small};
use random_te::{Case, Dice, case, case_on_threads};

/// Cases of one test; there are four, so that a test run has 2,000.
const CASES: u64 = 500;
/// Cases on threads of one test; there are two.
const ON_THREADS: u64 = 150;
/// Cases that go through the C compiler, and how many of them share a translation unit.
const COMPILED: usize = 200;
const TOGETHER: usize = 25;

/// Says which case failed.
struct Witness(u64);

impl Drop for Witness {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the case of seed {0}; run it alone with COULIS_FUZZ_SEED={0}", self.0);
        }
    }
}

/// The case, if its schedule is legal.
fn legal(seed: u64, case: Case) -> Option<Case> {
    match coulis::te::build_nest(&case.schedule, case.schedule.program().args(), "main") {
        Ok(_) => Some(case),
        Err(error) => {
            let late = matches!(
                error,
                ScheduleError::NonConstantExtent { .. }
                    | ScheduleError::AttachInside { .. }
                    | ScheduleError::OutsideConsumers { .. }
                    | ScheduleError::ReadOutsideAttach { .. }
                    | ScheduleError::HoldsStages { .. }
                    | ScheduleError::ArgumentAttached { .. }
                    | ScheduleError::Thread(_)
                    | ScheduleError::Unsupported { .. }
            );
            assert!(late, "seed {seed}: {error}\n{}", case.schedule.trace());
            None
        }
    }
}

fn env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs cases from `first` on until that many of them had a legal schedule.
fn run(first: u64, cases: u64, check: fn(u64) -> bool) {
    let (from, asked) = (env("COULIS_FUZZ_SEED"), env("COULIS_FUZZ_CASES"));
    if let (Some(seed), None) = (from, asked) {
        let _witness = Witness(seed);
        println!("seed {seed} has a legal schedule: {}", check(seed));
        return;
    }
    let (first, cases) = (from.unwrap_or(first), asked.unwrap_or(cases));
    let (mut done, mut seed) = (0, first);
    while done < cases {
        let _witness = Witness(seed);
        done += u64::from(check(seed));
        seed += 1;
    }
    println!("{done} schedules, seeds {first} to {}", seed - 1);
}

/// Runs the case of a seed on the executor, and in the simulator as one thread; whether it has a legal schedule.
fn check(seed: u64) -> bool {
    let Some(case) = legal(seed, case(&mut Dice::new(seed))) else { return false };
    run_as_scheduled(&case.schedule, &[&case.sizes()], &small, Tolerance::Exact);
    true
}

/// Runs the case of a seed on threads in the simulator; whether it has a legal schedule.
fn check_on_threads(seed: u64) -> bool {
    let Some(case) = legal(seed, case_on_threads(&mut Dice::new(seed))) else { return false };
    let warp = if seed.is_multiple_of(3) { 64 } else { 32 };
    run_on_threads(&case.schedule, &case.sizes(), warp)
}

#[test]
fn random_schedules_give_the_references_answers_1() {
    run(1_000_000, CASES, check);
}

#[test]
fn random_schedules_give_the_references_answers_2() {
    run(2_000_000, CASES, check);
}

#[test]
fn random_schedules_give_the_references_answers_3() {
    run(3_000_000, CASES, check);
}

#[test]
fn random_schedules_give_the_references_answers_4() {
    run(4_000_000, CASES, check);
}

#[test]
fn random_schedules_on_threads_give_the_references_answers_1() {
    run(6_000_000, ON_THREADS, check_on_threads);
}

#[test]
fn random_schedules_on_threads_give_the_references_answers_2() {
    run(7_000_000, ON_THREADS, check_on_threads);
}

#[test]
fn random_schedules_give_the_references_answers_when_compiled() {
    let options = CpuOptions {
        kind: CpuKind::Compiled,
        n_threads: Some(2),
        cache_dir: Some(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz_schedules")),
        ..CpuOptions::default()
    };
    let device = match Cpu::open(&options) {
        Ok((device, _)) => device,
        Err(error) => {
            println!("SKIP random_schedules_give_the_references_answers_when_compiled: {error}");
            return;
        }
    };
    let mut seed = 5_000_000;
    let mut next = || {
        loop {
            seed += 1;
            if let Some(case) = legal(seed, case(&mut Dice::new(seed))) {
                return (seed, case);
            }
        }
    };
    for _ in 0..COMPILED / TOGETHER {
        let (seeds, cases): (Vec<u64>, Vec<Case>) = (0..TOGETHER).map(|_| next()).unzip();
        let schedules: Vec<_> = cases.iter().map(|case| (&case.schedule, case.sizes())).collect();
        if let Err((at, what)) = run_compiled_together(&device, &schedules) {
            panic!("the case of seed {}: {what}", seeds[at]);
        }
    }
}
