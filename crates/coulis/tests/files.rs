//! The file tests: every file under `tests/files/{parse,verify,schedule,lower,run,simulate}` does what its comments say.
//!
//! A file is text of the dialect. Its comments say what it is a test of, and what is expected:
//!
//! | comment | where | meaning |
//! |---|---|---|
//! | `# test: KIND WORDS` | before the code | what is done with the file; several lines do several things |
//! | `# given: A[2, 3] = 1 2 3 4 5 6` | before the code | the elements of a parameter, row-major; for kinds that run |
//! | `# error CODE: MESSAGE` | behind a line of code | this line is at fault, with exactly this text |
//! | `# error CODE: MESSAGE` | by itself | as above for the line before it; before the code: a fault without a line |
//! | `# check: TEXT` | anywhere by itself | a line of the printed text holds TEXT, after the line of the check before |
//! | `# check-not: TEXT` | anywhere by itself | no line of the printed text holds TEXT |
//! | `# prints:` | behind the code | the whole printed text follows, each line behind `#   ` |
//!
//! A file without a `# test:` line is one that another test froze, and is read back: `# test: parse canonical`.
//!
//! Every fault has to be expected, and every expected one has to be found. What a kind prints and which words it takes
//! says the file of the kind (`filetest/kind/`); a kind is a file there and a line in `KINDS`.
//!
//! `BLESS=1` rewrites faults and `prints` blocks (and the text of kinds that ask for canonical text) with what is found;
//! `check` lines are written by hand only. `cargo xtask bless --package=coulis` sets it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod filetest;
mod simulated;

use std::path::{Path, PathBuf};

use filetest::{KINDS, blessed, check};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/files")
}

/// The `.py` files of a folder and the folders in it, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "py") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Runs the files of one folder. A folder is a test of its own, so that they run side by side.
#[track_caller]
fn folder(name: &str) {
    let files = files(&root().join(name));
    assert!(!files.is_empty(), "tests/files/{name} holds no file");
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let mut failures = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        if bless
            && let Ok(new) = blessed(&text)
            && new != text
        {
            std::fs::write(&path, &new).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        if let Err(why) = check(&text) {
            let shown = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
            failures.push(format!("tests/files/{shown}: {why}"));
        }
    }
    let command = "BLESS=1 rewrites expectations: cargo xtask bless --package=coulis";
    assert!(failures.is_empty(), "{}\n{command}", failures.join("\n"));
}

#[test]
fn files_that_are_read() {
    folder("parse");
}

#[test]
fn files_that_are_simulated() {
    folder("simulate");
}

#[test]
fn files_that_are_verified() {
    folder("verify");
}

#[test]
fn files_that_are_scheduled() {
    folder("schedule");
}

#[test]
fn files_that_are_lowered() {
    folder("lower");
}

#[test]
fn files_that_are_run() {
    folder("run");
}

#[test]
fn no_file_is_outside_of_the_folders_that_are_tested() {
    // What is emitted from a kernel is compared by the tests of the emitter, and what a variant makes of its program by
    // the test of the variants' pages.
    let tested = ["parse", "verify", "schedule", "lower", "run", "emit", "simulate", "variants"];
    for path in files(&root()) {
        let inside = path.strip_prefix(root()).unwrap().to_owned();
        let first = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        assert!(tested.contains(&first.as_str()), "{}", inside.display());
    }
}

#[test]
fn kinds_have_names_of_their_own() {
    let mut names: Vec<&str> = KINDS.iter().map(|k| k.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), KINDS.len());
}

const OUTSIDE: &str = "\
# test: verify
@T.prim_func
def past_the_end(A: T.Buffer((4,), \"float32\")):
    A[4] = T.float32(0)
";

#[test]
fn a_fault_that_is_not_expected_fails_and_is_blessed_onto_its_line() {
    let why = check(OUTSIDE).unwrap_err();
    assert!(why.contains("line 4 has the fault `V12: "), "{why}");
    let new = blessed(OUTSIDE).unwrap();
    assert!(new.lines().nth(3).unwrap().starts_with("    A[4] = T.float32(0)  # error V12: "), "{new}");
    assert_eq!(check(&new), Ok(()));
    assert_eq!(blessed(&new).unwrap(), new);
}

#[test]
fn a_fault_that_is_expected_and_not_found_fails() {
    let inside = OUTSIDE.replace("A[4] = T.float32(0)", "A[3] = T.float32(0)  # error V12: gone");
    let why = check(&inside).unwrap_err();
    assert!(why.contains("line 4 lacks the fault `V12: gone`"), "{why}");
    assert!(!blessed(&inside).unwrap().contains("gone"));
    let moved = OUTSIDE.replace("# test: verify\n", "# test: verify\n# error V12: elsewhere\n");
    assert!(check(&moved).unwrap_err().contains("lacks the fault `V12: elsewhere`"));
}

#[test]
fn checks_are_looked_for_in_order() {
    let parse = |checks: &str| {
        check(&format!(
            "# test: parse\n{checks}@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\")):\n    for i in range(4):\n        A[i] = T.float32(0)\n"
        ))
    };
    assert_eq!(parse("# check: for i in range(4)\n# check: A[i] =\n"), Ok(()));
    assert!(
        parse("# check: A[i] =\n# check: for i in range(4)\n").unwrap_err().contains("for i in range(4)")
    );
    assert!(parse("# check-not: A[i]\n").unwrap_err().contains("check-not"));
    assert_eq!(parse("# check-not: A[j]\n"), Ok(()));
}

#[test]
fn a_printed_block_is_compared_and_blessed() {
    let text = "# test: lower\n@T.prim_func(form=\"Nest\")\ndef f(A: T.Buffer((4,), \"float32\")):\n    for i in range(4):\n        A[i] = T.float32(0)\n\n# prints:\n#   old\n";
    assert!(check(text).unwrap_err().contains("prints"));
    let new = blessed(text).unwrap();
    assert_eq!(check(&new), Ok(()));
    assert!(new.contains("#   @T.prim_func") && !new.contains("old"), "{new}");
}

#[test]
fn headers_that_say_nothing_known_are_refused() {
    let body = "@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\")):\n    A[0] = 0\n";
    let cases = [
        ("# nothing\n", "the text is not as it is printed"),
        ("# test: sing\n", "there is no kind `sing`; kinds are "),
        ("# test: lower loudly\n# check: A\n", "`lower` takes no word `loudly`; it takes "),
        ("# test: lower after=nothing\n# check: A\n", "there is no pass `nothing`"),
        ("# test: lower\n", "expects nothing"),
        ("# test: run device=moon\n# check: A\n", "there is no device `moon`; devices are "),
        ("# test: parse\n# chek: A\n", "`# chek:` is no directive"),
    ];
    for (header, wanted) in cases {
        let why = check(&format!("{header}{body}")).unwrap_err();
        assert!(why.contains(wanted), "{why}");
    }
}
