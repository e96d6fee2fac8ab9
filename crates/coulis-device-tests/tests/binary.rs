//! The binary as `xtask gpu` uses it, with or without a GPU.

use std::process::Command;

fn run(words: &[&str]) -> (Option<i32>, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_device-tests")).args(words).output().expect("the binary runs");
    (output.status.code(), String::from_utf8(output.stdout).expect("it prints text"))
}

#[test]
fn every_test_is_named_and_runs_or_is_skipped() {
    let (code, list) = run(&["--list"]);
    assert_eq!(code, Some(0));
    let (code, said) = run(&["--small"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!list.is_empty());
    for name in list.lines() {
        let marks = [format!("ok {name} "), format!("SKIP {name}: ")];
        assert!(said.lines().any(|line| marks.iter().any(|mark| line.starts_with(mark))), "{name}: {said}");
    }
}

#[test]
fn an_unknown_test_is_refused() {
    assert_eq!(run(&["nothing_of_that_name"]), (Some(2), String::new()));
}
