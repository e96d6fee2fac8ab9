//! `cargo xtask test`: all set-up and every test.
//!
//! The last step runs the suites that reach a run time once more as if no C compiler existed, because the executor
//! must carry the whole product alone.

use super::python::{Profile, Pythons, python};
use super::setup::{has_nextest, setup, setup_cuda};
use super::{Command, no_words};
use crate::step::{Failure, Step};
use crate::tidy;

/// The command.
pub const COMMAND: Command = Command {
    name: "test",
    about: "set up, then fmt, clippy, tidy, all tests, doc tests, the Python package, and the run-time suites \
            without a compiler and with less of the CPU",
    run: |words| {
        no_words(words)?;
        test()
    },
};

/// Crates whose tests run kernels.
const RUN_TIME: [&str; 3] = ["coulis-runtime", "coulis", "coulis-cli"];

/// Of their tests, those that another compiler may change. The others only run kernels that are executed or
/// simulated, or run each of them so next to a compiled one.
const MEETS_A_COMPILER: &str =
    "not (binary(fuzz_schedules) | binary(multi_reduce) | binary(mutants) | binary(/^tile_/))";

/// Tests that compare results of kernels on the CPU with exact ones.
const OF_VALUES: &str = "binary(normalizations) | binary(narrow_shapes) | binary(own_reducers) | binary(positions) | binary(prologues) | binary(properties) \
    | binary(reduce) | binary(short_rows) | binary(te_cpu) | binary(te_expressions)";

fn test() -> Result<(), Failure> {
    if let Err(failure) = setup() {
        eprintln!("xtask test: {failure}; going on with what is there");
    }
    if let Err(failure) = setup_cuda() {
        eprintln!("xtask test: {failure}; tests that need NVRTC and find none print SKIP");
    }
    Step::cargo(&["fmt", "--all", "--check"]).run()?;
    Step::cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run()?;
    tidy::check()?;
    tests(&["--workspace".to_owned()]).run()?;
    Step::cargo(&["test", "--workspace", "--doc"]).run()?;
    python(Profile::Dev, Pythons::Newest)?;
    some_tests(&RUN_TIME, MEETS_A_COMPILER).variable("COULIS_CC", "/nonexistent").run()?;
    // Machine code of the executor is made for two levels, and a CPU that has both runs the better one.
    if has_avx512() && has_nextest() {
        let half = some_tests(&["coulis"], OF_VALUES);
        return half.variable("COULIS_CC", "/nonexistent").variable("COULIS_CPU", "avx2").run();
    }
    Ok(())
}

/// The tests of some packages that a filter of nextest lets through; all of theirs where it is not installed.
///
/// The filter names the packages, not `--package`: features are unified over what is built, so a part of the
/// workspace would be compiled anew, with its libraries.
fn some_tests(packages: &[&str], filter: &str) -> Step {
    if has_nextest() {
        let packages: Vec<String> = packages.iter().map(|name| format!("package({name})")).collect();
        let filter = format!("({}) & ({filter})", packages.join(" | "));
        tests(&["--workspace".to_owned()]).words(&["--filterset".to_owned(), filter])
    } else {
        let packages: Vec<String> = packages.iter().map(|name| format!("--package={name}")).collect();
        tests(&packages)
    }
}

fn has_avx512() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(" avx512vl"))
}

/// Every test of some packages but the doc tests; by nextest where it is installed.
pub fn tests(packages: &[String]) -> Step {
    if has_nextest() {
        Step::cargo(&["nextest", "run", "--no-tests=pass", "--no-fail-fast"]).words(packages)
    } else {
        Step::cargo(&["test", "--lib", "--bins", "--tests", "--examples", "--no-fail-fast"]).words(packages)
    }
}
