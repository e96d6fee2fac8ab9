//! What every file of the project keeps to: a module comment, a bounded length, no panic outside tests, `unsafe` only
//! where the architecture has it, keys of remarks by their names, and no text that only makes sense on one machine.

use super::Fault;
use crate::step::{Failure, Step, read_text, root};

/// Lines of a file that raise the alarm.
const MAX_LINES: usize = 600;

/// Files that may be longer, with the reason.
const LONGER: &[(&str, &str)] = &[];

/// Crates that may contain `unsafe`; every other library forbids it.
const UNSAFE: [&str; 4] = ["coulis-runtime", "coulis-exec", "coulis-io", "coulis-py"];

/// Words that end a program where an error should be returned. Written in halves, so that this file is tidy itself.
const PANICS: [&str; 5] = [
    concat!(".unw", "rap()"),
    concat!("pan", "ic!("),
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("db", "g!("),
];

/// Beginnings of paths that exist on one machine only.
const MACHINE: [&str; 5] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("../sha", "red"),
];

/// Checks every file that git knows or would take.
pub fn check() -> Result<Vec<Fault>, Failure> {
    let mut faults = Vec::new();
    let mut n_long = 0;
    for path in Step::files()? {
        // A file that is listed and deleted, or is no text, has no lines to check.
        let Ok(text) = read_text(&path) else { continue };
        machine_paths(&path, &text, &mut faults);
        if path.ends_with(".rs") {
            n_long += usize::from(is_allowed_long(&path) && text.lines().count() > MAX_LINES);
            rust(&path, &text, &mut faults);
        }
    }
    if n_long != LONGER.len() {
        faults.push(Fault::new(file!(), "an entry of the list of longer files is not needed any more"));
    }
    Ok(faults)
}

impl Step {
    /// Paths under the root of files that git knows or would take.
    fn files() -> Result<Vec<String>, Failure> {
        let listing = std::process::Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(root())
            .output()
            .map_err(|source| Failure::NoProgram { program: "git".to_owned(), source })?;
        let mut files: Vec<String> =
            String::from_utf8_lossy(&listing.stdout).lines().map(str::to_owned).collect();
        files.sort();
        files.dedup();
        Ok(files)
    }
}

fn is_allowed_long(path: &str) -> bool {
    LONGER.iter().any(|(longer, _)| *longer == path)
}

/// Whether a file holds tests or examples only, which may panic.
fn is_test_file(path: &str) -> bool {
    path.contains("/tests/")
        || path.starts_with("tests/")
        || path.ends_with("/tests.rs")
        || path.starts_with("fuzz/")
}

fn rust(path: &str, text: &str, faults: &mut Vec<Fault>) {
    let n_lines = text.lines().count();
    if n_lines > MAX_LINES && !is_allowed_long(path) {
        faults.push(Fault::new(path, format!("has {n_lines} lines; {MAX_LINES} is the limit")));
    }
    if !text.starts_with("//!") {
        faults.push(Fault::new(path, "does not begin with a module comment (`//!`)"));
    }
    let crate_name = path.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/src/lib.rs"));
    let must_forbid = crate_name.is_some_and(|name| !UNSAFE.contains(&name));
    if must_forbid && !text.contains("#![forbid(unsafe_code)]") {
        faults.push(Fault::new(path, "lacks `#![forbid(unsafe_code)]`"));
    }
    if !is_test_file(path) {
        panics(path, text, faults);
        if path.starts_with("crates/") && path != KEYS {
            written_out_keys(path, text, faults);
        }
    }
}

/// The home of the keys of remarks.
const KEYS: &str = "crates/coulis-ir/src/remark.rs";

/// Where the key of a remark follows, up to the end of its expression.
const KEY_FOLLOWS: [(&str, char); 4] =
    [(".pragma(", ')'), ("key == ", ' '), ("key: ", ','), ("let key = ", ';')];

/// Keys of remarks that are written out above the tests at the end of the file.
fn written_out_keys(path: &str, text: &str, faults: &mut Vec<Fault>) {
    let code = text.find("#[cfg(test)]").map_or(text, |tests| &text[..tests]);
    for (mark, end) in KEY_FOLLOWS {
        for (at, _) in code.match_indices(mark) {
            let rest = &code[at + mark.len()..];
            let key = &rest[..rest.find(end).unwrap_or(rest.len())];
            let is_later = mark == ".pragma(" && [" \"", "\n\""].iter().any(|literal| key.contains(literal));
            let is_literal = is_later || key.starts_with('"');
            let line = code[..at].lines().count();
            let is_comment =
                code.lines().nth(line.saturating_sub(1)).is_some_and(|l| l.trim_start().starts_with("//"));
            if is_literal && !is_comment {
                faults.push(Fault::new(
                    format!("{path}:{line}"),
                    format!("writes out the key of a remark after `{mark}`; {KEYS} has its name"),
                ));
            }
        }
    }
}

/// Words that panic, outside comments and above the tests at the end of the file.
fn panics(path: &str, text: &str, faults: &mut Vec<Fault>) {
    for (line_idx, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("#[cfg(test)]") {
            return;
        }
        if line.trim_start().starts_with("//") {
            continue;
        }
        for word in PANICS.iter().filter(|word| line.contains(**word)) {
            faults.push(Fault::new(
                format!("{path}:{}", line_idx + 1),
                format!("`{word}` outside tests; return an error"),
            ));
        }
    }
}

fn machine_paths(path: &str, text: &str, faults: &mut Vec<Fault>) {
    for (line_idx, line) in text.lines().enumerate() {
        for word in MACHINE.iter().filter(|word| names_path(line, word)) {
            faults.push(Fault::new(
                format!("{path}:{}", line_idx + 1),
                format!("names `{word}`, which exists on one machine only"),
            ));
        }
    }
}

/// Whether `line` has `word` at the start of a path, and not inside one such as `a/work/b`.
fn names_path(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | ')'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(path: &str, text: &str) -> Vec<String> {
        let mut faults = Vec::new();
        machine_paths(path, text, &mut faults);
        rust(path, text, &mut faults);
        faults.into_iter().map(|fault| format!("{}: {}", fault.place, fault.what)).collect()
    }

    #[test]
    fn the_key_of_a_remark_is_not_written_out_elsewhere() {
        let fault = |mark: &str| {
            format!("crates/a/src/b.rs:2: writes out the key of a remark after `{mark}`; {KEYS} has its name")
        };
        let found = |line: &str| whats("crates/a/src/b.rs", &format!("//! B.\n{line}\n"));
        let call = ".pragma(axis, ";
        assert_eq!(found(&format!("s{call}\"stream\", 1)?;")), [fault(".pragma(")]);
        assert_eq!(found("if key == \"stream\" {"), [fault("key == ")]);
        assert_eq!(found("Annotate { key: \"stream\".to_owned(), value }"), [fault("key: ")]);
        for fine in [
            &format!("s{call}STREAM, 1)?; f(\"stream\");"),
            "if key == STREAM { \"stream\" }",
            &format!("call: \"s{call}\\\"stream\\\")\","),
            "// key: \"stream\"",
            "#[cfg(test)] key: \"stream\"",
        ] {
            assert_eq!(found(fine), Vec::<String>::new());
        }
    }

    #[test]
    fn a_file_without_a_module_comment_is_a_fault() {
        assert_eq!(whats("a.rs", "use std;\n"), ["a.rs: does not begin with a module comment (`//!`)"]);
    }

    #[test]
    fn the_limit_of_lines_is_legal_and_one_more_is_not() {
        let lines = |n: usize| "//!\n".repeat(n);
        assert_eq!(whats("a.rs", &lines(600)), [""; 0]);
        assert_eq!(whats("a.rs", &lines(601)), ["a.rs: has 601 lines; 600 is the limit"]);
    }

    #[test]
    fn panics_are_faults_above_the_tests_only() {
        let call = PANICS[0];
        let text =
            format!("//! x\nfn a() {{ b(){call} }}\n// c{call}\n#[cfg(test)]\nfn d() {{ e(){call} }}\n");
        assert_eq!(whats("a.rs", &text), [format!("a.rs:2: `{call}` outside tests; return an error")]);
        assert_eq!(whats("crates/a/tests/a.rs", &text), [""; 0]);
    }

    #[test]
    fn unsafe_is_forbidden_but_in_the_crates_that_touch_memory() {
        assert_eq!(whats("crates/coulis-io/src/lib.rs", "//! x\n"), [""; 0]);
        assert_eq!(
            whats("crates/coulis-ir/src/lib.rs", "//! x\n"),
            ["crates/coulis-ir/src/lib.rs: lacks `#![forbid(unsafe_code)]`"]
        );
    }

    #[test]
    fn a_path_of_one_machine_is_a_fault_and_the_same_letters_inside_a_path_are_not() {
        let word = MACHINE[0];
        assert_eq!(whats("a.rs", &format!("//! a{word}b\n")), [""; 0]);
        assert_eq!(
            whats("a.rs", &format!("//! `{word}b`\n")),
            [format!("a.rs:1: names `{word}`, which exists on one machine only")]
        );
    }
}
