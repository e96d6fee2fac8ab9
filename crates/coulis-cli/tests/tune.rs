//! What `tune` finds, keeps and goes on with, and how `reduce` uses it.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod runner;

use std::process::Command;

use runner::{Folder, misused, npy, refused};
use serde_json::Value;

/// Standard output of a call with a cache folder of its own and no compiler.
#[track_caller]
fn answer(words: &[&str], cache: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_coulis"))
        .args(words)
        .env("COULIS_CACHE_DIR", cache)
        .env("COULIS_CC", "/nonexistent")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const SEARCH: [&str; 12] = [
    "tune",
    "-D",
    "300,400",
    "--axis",
    "1",
    "--ops",
    "sum",
    "--seconds",
    "0",
    "--format",
    "json",
    "--threads",
];

#[test]
fn a_search_goes_on_where_it_was_cut_off_and_its_choice_is_used() {
    let folder = Folder::new("tune");
    let cache = folder.path("cache");
    let search = |more: &[&str]| -> Value {
        let words = [&SEARCH[..], &["1"], more].concat();
        serde_json::from_str::<Value>(&answer(&words, &cache)).unwrap()[0].clone()
    };
    let cut = search(&["--most", "2"]);
    assert_eq!((cut["new"].as_u64(), cut["done"].as_bool()), (Some(2), Some(false)));
    let whole = search(&[]);
    let tried = |found: &Value| found["timed"].as_u64().unwrap() + found["passed_over"].as_u64().unwrap();
    assert_eq!(whole["done"], true);
    assert_eq!(whole["new"].as_u64().unwrap(), tried(&whole) - 2);
    assert_eq!(whole["strategy"], "rows");
    let known = search(&[]);
    assert_eq!((known["new"].as_u64(), &known["changes"]), (Some(0), &whole["changes"]));
    assert!(search(&["--again"])["new"].as_u64().unwrap() > 0);
    let chosen = search(&[])["changes"].as_object().unwrap().clone();

    // Another shape of the same class, whose rows are as long: those that are no whole vectors may have no plan without runs, which
    // a search on a busy machine may choose. It holds the numbers from 0 on.
    let numbers: Vec<u8> = (0..290 * 400).flat_map(|v| (v as f32).to_le_bytes()).collect();
    let file = folder.file("a.npy", &npy("<f4", "(290, 400)", &numbers));
    let plan = |more: &[&str]| {
        let words = ["reduce", &file, "--ops", "sum", "--axis", "1", "--threads", "1"];
        answer(&[&words[..], more].concat(), &cache)
    };
    assert_eq!(plan(&["--plan"]).starts_with("# tuned: "), !chosen.is_empty(), "{chosen:?}");
    assert!(!plan(&["--plan", "--untuned"]).starts_with('#'));
    let replayed = folder.file("plan.py", plan(&["--plan"]).as_bytes());
    let sums = plan(&["--verify", "--format", "csv"]);
    assert_eq!(plan(&["--verify", "--format", "csv", "--replay", &replayed]), sums);
    assert!(answer(&["cache", "ls"], &cache).contains("tuned"));
}

#[test]
fn a_search_needs_statistics_and_time_within_bounds() {
    misused(
        &["tune"],
        "the following required arguments were not provided:\n  <--shape <LIST>|--suite <FILE.json>>\n\nUsage: coulis tune <--shape <LIST>|--suite <FILE.json>>",
    );
    refused(
        &["tune", "-D", "8", "--ops", "sum", "--seconds", "-1"],
        "error[tune/seconds]: --seconds is to be from 0 to 3600, got -1",
    );
    refused(
        &["tune", "--suite", "/nonexistent"],
        "error[read/suite]: cannot read the suite `/nonexistent`: no such file or directory (os error 2)",
    );
    refused(
        &["tune", "-D", "0,100", "--ops", "sum"],
        "error[tune/shape]: an array of shape [0, 100] has no elements to time",
    );
    misused(
        &["tune", "-D", "8", "--ops", "sum", "--most", "0"],
        "invalid value '0' for '--most <N>': a count is an integer of at least 1, got `0`",
    );
}
