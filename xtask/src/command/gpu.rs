//! `xtask gpu [--bin-dir DIR] [--tools LIST]`: the tests on a GPU, plainly and under each tool of compute-sanitizer.
//!
//! Needs neither cargo nor the sources: `dist/xtask gpu --bin-dir dist/` runs `dist/device-tests` and what is in
//! `dist/tests`. Without a GPU, and
//! without the sanitizer, each thing that does not run is named after the word SKIP.

use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use super::Command;
use crate::step::Failure;

/// The command.
pub const COMMAND: Command = Command {
    name: "gpu",
    about: "run the tests on a GPU, plainly and under compute-sanitizer: gpu [--bin-dir DIR] [--tools LIST]",
    run: gpu,
};

/// Tools of compute-sanitizer.
const TOOLS: [&str; 4] = ["memcheck", "racecheck", "synccheck", "initcheck"];

/// The binary of the tests.
const TESTS: &str = "device-tests";

/// The folder of test programs next to it, of which each compares a GPU with the reference.
const OTHERS: &str = "tests";

/// Exit code of the sanitizer where it has something to say.
const ERRORS_FOUND: &str = "86";

/// One test at a time. Under racecheck, launches by several threads of the host end in "Internal Sanitizer
/// Error: Detected a failure to track a kernel launch", which its summary counts as a hazard, or never end.
const ONE_BY_ONE: (&str, &str) = ("RUST_TEST_THREADS", "1");

fn gpu(words: &[String]) -> Result<(), Failure> {
    let legal = "--bin-dir DIR, --tools memcheck,racecheck,synccheck,initcheck or none";
    let refused = |word: &str| Failure::Argument { argument: word.to_owned(), legal };
    let mut folder = own_folder();
    let mut tools: Vec<&str> = TOOLS.to_vec();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match (word.as_str(), words.next()) {
            ("--bin-dir", Some(dir)) => folder = PathBuf::from(dir),
            ("--tools", Some(list)) if list == "none" => tools.clear(),
            ("--tools", Some(list)) => {
                let known = |name: &str| TOOLS.into_iter().find(|tool| *tool == name);
                let named = list.split(',').map(|name| known(name).ok_or_else(|| refused(name)));
                tools = named.collect::<Result<_, _>>()?;
            }
            _ => return Err(refused(word)),
        }
    }
    let tests = folder.join(TESTS);
    println!("== {TESTS}");
    let found = run(&tests, &[], None)?;
    let others = test_files(&folder.join(OTHERS));
    if !found {
        tools.iter().for_each(|tool| println!("SKIP {tool}: no GPU"));
        return Ok(());
    }
    for file in &others {
        println!("== {}", file.display());
        run(file, &[], None)?;
    }
    let Some(sanitizer) = find_sanitizer() else {
        let looked = "PATH, CUDA_HOME, CUDA_PATH and /usr/local/cuda";
        tools.iter().for_each(|tool| println!("SKIP {tool}: compute-sanitizer is not in {looked}"));
        return Ok(());
    };
    for tool in tools {
        println!("== {tool}");
        let tests = tests.display().to_string();
        let setting = (tool == "racecheck").then_some(ONE_BY_ONE);
        run(&sanitizer, &["--tool", tool, "--error-exitcode", ERRORS_FOUND, &tests, "--small"], setting)?;
        for file in others.iter().map(|file| file.display().to_string()) {
            println!("== {tool} {file}");
            run(&sanitizer, &["--tool", tool, "--error-exitcode", ERRORS_FOUND, &file], setting)?;
        }
    }
    Ok(())
}

/// Runs the tests, with that variable in their environment, and shows what they print; whether a GPU was there, that is,
/// whether any of them ran.
fn run(program: &Path, words: &[&str], setting: Option<(&str, &str)>) -> Result<bool, Failure> {
    let mut command = Process::new(program);
    command.args(words).envs(setting).stdin(Stdio::null()).stderr(Stdio::inherit());
    let no_program = |source| Failure::NoProgram { program: program.display().to_string(), source };
    let output = command.output().map_err(no_program)?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    if !output.status.success() {
        let line =
            std::iter::once(program.display().to_string()).chain(words.iter().map(|w| (*w).to_owned()));
        return Err(Failure::Program { line: line.collect::<Vec<_>>().join(" ") });
    }
    Ok(text.lines().any(|line| line.starts_with("ok ")))
}

/// The programs of a folder by name; none where there is no such folder.
fn test_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// The folder of this very program.
fn own_folder() -> PathBuf {
    let own = std::env::current_exe().ok();
    own.as_deref().and_then(Path::parent).map_or_else(|| PathBuf::from("."), Path::to_owned)
}

fn find_sanitizer() -> Option<PathBuf> {
    let name = "compute-sanitizer";
    let path = std::env::var_os("PATH").unwrap_or_default();
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let toolkits = toolkits.chain([PathBuf::from("/usr/local/cuda")]);
    let below = toolkits.flat_map(|folder| [folder.join("bin"), folder.join(name)]);
    let mut files = std::env::split_paths(&path).chain(below).map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_not_known_are_refused() {
        for words in [&["--what"][..], &["--bin-dir"], &["--tools", "memchk"]] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert!(matches!(gpu(&words), Err(Failure::Argument { .. })), "{words:?}");
        }
    }

    #[test]
    fn a_folder_without_the_tests_is_told() {
        let words = ["--bin-dir", "/nonexistent"].map(str::to_owned);
        let Err(Failure::NoProgram { program, .. }) = gpu(&words) else { panic!("it ran") };
        assert_eq!(program, "/nonexistent/device-tests");
    }
}
