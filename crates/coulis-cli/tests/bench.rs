//! `coulis bench` as a user sees it: the reference example's lines, the suite's list, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod runner;

use runner::{Folder, answer, answer_to, coulis, refused};
use serde_json::Value;

#[test]
fn four_lengths_print_the_lines_of_the_reference_example() {
    let text = answer(&["bench", "-D", "6,4,4,5", "--threads", "2", "--rep", "3"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..3],
        ["launch_and_time_kernel: threads 2", "Warm up 1 time", "Start running 3 times..."]
    );
    let perf: Vec<&str> = lines[3].strip_prefix("Perf: ").unwrap().split(", ").collect();
    for (part, unit) in perf.iter().zip([" ms", " GB/s"]) {
        let number = part.strip_suffix(unit).unwrap();
        assert!(number.parse::<f64>().unwrap() > 0.0 && !number.contains(['e', 'E']), "{text}");
    }
    assert_eq!((perf.len(), lines.len()), (3, 4), "{text}");
}

#[test]
fn every_init_is_right_and_nothing_is_timed_when_time_is_0() {
    for init in ["0", "1", "2", "3"] {
        let words = [
            "bench", "-D", "30,7", "--axis", "-1", "--ops", "sum,max", "--dtype", "i8", "-v", "1", init, "0",
        ];
        assert!(answer(&words).starts_with("launch_and_time_kernel: threads "));
    }
}

#[test]
fn a_suite_gives_a_list_and_says_what_it_leaves_out() {
    let folder = Folder::new("bench-suite");
    let suite = r#"{"workloads": [
        {"id": "rows", "dtype": "float32", "shape": [64, 32], "axes": [1], "ops": ["sum", "var"]},
        {"id": "softmax", "dtype": "float32", "shape": [8, 96], "axes": [1], "ops": ["softmax"]},
        {"id": "both", "dtype": "float32", "shape": [64], "axes": [0], "ops": ["softmax", "sum"]},
        {"id": "strange", "dtype": "float32", "shape": [64], "axes": [0], "ops": ["softmin"]}]}"#;
    let file = folder.file("suite.json", suite.as_bytes());
    let words = ["bench", "--suite", &file, "--format", "json", "--seconds", "0.01", "--max-bytes", "4096"];
    let list: Value = serde_json::from_str(&answer(&words)).unwrap();
    let rows = &list[0];
    assert_eq!((rows["id"].as_str(), rows["verified"].as_bool()), (Some("rows"), Some(true)));
    assert_eq!(rows["shape"], serde_json::json!([32, 32]), "halved to 4096 bytes");
    assert_eq!(rows["bytes"], 32 * 32 * 4 + 2 * 32 * 4);
    for number in ["ms", "floor_ms", "share", "compile_ms", "planning_ms"] {
        assert!(rows[number].as_f64().unwrap() > 0.0, "{rows}");
    }
    assert!(rows["plan"].is_string());
    for of_devices in ["read_ms", "queued_ms"] {
        assert!(rows[of_devices].is_null(), "`{of_devices}` of the CPU: {rows}");
    }
    let softmax = &list[1];
    assert_eq!(
        (softmax["verified"].as_bool(), softmax["bytes"].as_i64()),
        (Some(true), Some(2 * 8 * 96 * 4)),
        "{softmax}"
    );
    assert!(softmax["ms"].as_f64().unwrap() > 0.0, "{softmax}");
    assert!(list[2]["skipped"].as_str().unwrap().starts_with("`softmax` stands alone"), "{list}");
    assert!(list[3]["skipped"].as_str().unwrap().contains("unknown reducer `softmin`"), "{list}");
}

#[test]
fn a_suite_of_which_everything_is_left_out_is_refused() {
    let folder = Folder::new("bench-none");
    let workload = |id: &str| {
        format!(r#"{{"id": "{id}", "dtype": "float32", "shape": [64], "axes": [0], "ops": ["softmin"]}}"#)
    };
    let file = folder.file("suite.json", format!("[{}, {}]", workload("a"), workload("b")).as_bytes());
    let want =
        format!("error[bench/suite]: nothing was timed: each workload of `{file}` is left out, 2 in all");
    refused(&["bench", "--suite", &file], &want);
    let output = coulis(&["bench", "--suite", &file, "--format", "json"]);
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(list[1]["skipped"].as_str().unwrap().contains("unknown reducer `softmin`"), "{list}");
    assert_eq!((list.as_array().unwrap().len(), output.status.code()), (2, Some(2)));
    refused(
        &["tune", "--suite", &file],
        "error[tune/suite]: nothing was tuned: each workload is left out, 2 in all",
    );
}

#[test]
fn each_line_on_standard_input_is_a_turn() {
    let folder = Folder::new("bench-turns");
    let one = r#"{"id": "A", "dtype": "float32", "shape": [64, 32], "axes": [1], "ops": ["sum", "var"]}"#;
    let other = r#"{"id": "sum", "dtype": "float32", "shape": [64, 32], "axes": [1], "ops": ["sum"]}"#;
    let file = folder.file("suite.json", format!("[{one}, {other}]").as_bytes());
    let text = answer_to(&["bench", "--suite", &file, "--turns"], "\n\n");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "the list, and two turns: {text}");
    for (entry, id) in lines[0].as_array().unwrap().iter().zip(["A", "sum"]) {
        assert_eq!((entry["id"].as_str(), entry["verified"].as_bool()), (Some(id), Some(true)), "{text}");
    }
    for turn in &lines[1..] {
        assert_eq!(turn["ms"].as_array().unwrap().len(), 2, "{text}");
        let times = [&turn["ms"][0], &turn["ms"][1], &turn["floor_ms"], &turn["memory_ms"]];
        assert!(times.iter().all(|ms| ms.as_f64().unwrap() > 0.0), "{text}");
    }
    let file = folder.file("two.json", format!("[{one}, {}]", other.replace("64", "65")).as_bytes());
    refused(
        &["bench", "--suite", &file, "--turns"],
        "error[bench/turns]: calls in turns have one input; `A` has float32 of [64, 32], `sum` has float32 of [65, 32]",
    );
}

#[test]
fn mistakes_are_refused() {
    refused(
        &["bench", "-D", "0,2,2,25"],
        "error[bench/shape]: an array of shape [0, 2, 2, 25] has no results to time over these axes",
    );
    refused(
        &["bench", "-D", "3,4"],
        "error[bench/axis]: axes are known without --axis for 4 lengths only, and there are 2",
    );
    refused(
        &["bench", "-D", "-3,4", "--axis", "1"],
        "error[bench/shape]: the shape [-3, 4] of float16 is too large or negative",
    );
    refused(
        &["bench", "--suite", "no-such.json"],
        "error[read/suite]: cannot read the suite `no-such.json`: no such file or directory (os error 2)",
    );
}

#[test]
fn the_latency_names_where_the_kernel_came_from() {
    let found: Value = serde_json::from_str(&answer(&["bench", "--latency", "--format", "json"])).unwrap();
    let origin = found["origin"].as_str().unwrap();
    assert!(["compiled", "disk", "memory", "executor"].contains(&origin), "{found}");
    assert!(found["first_call_ms"].as_f64().unwrap() >= found["launch_ms"].as_f64().unwrap());
}
