//! What `coulis reduce` answers on the shipped data: every op at once, in every format, as NumPy computes it.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod runner;

use coulis::{ReadOptions, read, read_all};
use runner::{Folder, answer, npy, root};
use serde_json::Value;

const IRIS: &str = "examples/data/iris.npy";

fn json(words: &[&str]) -> Value {
    serde_json::from_str(&answer(&[words, &["--format", "json"]].concat())).unwrap()
}

/// Numbers, booleans and strings in a row, from a list or from the lists of an object.
fn flat(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.iter().flat_map(flat).collect(),
        Value::Object(fields) => fields.values().flat_map(flat).collect(),
        one => vec![one.clone()],
    }
}

/// Equal, or floats within NumPy's own worst error: one rounding a term, and 600 terms at most.
#[track_caller]
fn check_close(op: &str, found: &Value, want: &Value) {
    let (found, want) = (flat(found), flat(want));
    assert_eq!(found.len(), want.len(), "{op}");
    for (found, want) in found.iter().zip(&want) {
        match (found.as_f64(), want.as_f64()) {
            (Some(x), Some(y)) if want.is_f64() => {
                assert!((x - y).abs() <= 600.0 * f64::EPSILON * y.abs(), "{op}: {x} is not {y}");
            }
            _ => assert_eq!(found, want, "{op}"),
        }
    }
}

/// The answers of `data/make.py`, for each list of axes; a statistic without one there is compared with the catalogue's
/// exact answer in the tests of the facade.
fn numpys_answers() -> Vec<Value> {
    let text = std::fs::read_to_string(root().join("crates/coulis-cli/tests/data/iris.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_op_at_once_is_what_numpy_computes() {
    for case in numpys_answers() {
        let ops: Vec<&str> = case["results"].as_object().unwrap().keys().map(String::as_str).collect();
        assert!(ops.len() > 20);
        let axes: Vec<String> = case["axis"].as_array().into_iter().flatten().map(Value::to_string).collect();
        let listed = ops.join(",");
        let mut words = vec!["reduce", IRIS, "--ops", &listed];
        let list = axes.join(",");
        if !case["axis"].is_null() {
            words.extend(["--axis", &list]);
        }
        let found = json(&words);
        let results = found["results"].as_object().unwrap();
        assert_eq!(results.len(), ops.len());
        for (op, value) in results {
            check_close(op, value, &case["results"][op]);
        }
    }
}

/// Alone an op takes another plan than in company, and other code.
#[test]
fn every_op_alone_is_what_numpy_computes() {
    let cases = numpys_answers();
    let everything = cases.iter().find(|case| case["axis"].is_null()).unwrap();
    for (op, want) in everything["results"].as_object().unwrap() {
        let found = json(&["reduce", IRIS, "--ops", op]);
        check_close(op, &found["results"][op], want);
    }
}

#[test]
fn json_says_what_was_reduced_and_how() {
    let found = json(&["reduce", IRIS, "--ops", "max", "--axis", "-1"]);
    assert_eq!(found["shape"], serde_json::json!([150, 4]));
    assert_eq!(found["dtype"], "float64");
    assert_eq!(found["axes"], serde_json::json!([1]));
    assert_eq!(found["results"]["max"].as_array().unwrap().len(), 150);
    assert!(found["bytes"].as_u64().unwrap() >= 4800 + 1200);
    assert!(found["seconds"].as_f64().unwrap() >= 0.0);
    assert!(!found["plan"].as_str().unwrap().is_empty() && !found["device"].as_str().unwrap().is_empty());
}

#[test]
fn a_csv_file_gives_what_the_npy_file_gives() {
    let from_csv = json(&["reduce", "examples/data/iris.csv", "--ops", "sum,var", "--axis", "0"]);
    let from_npy = json(&["reduce", IRIS, "--ops", "sum,var", "--axis", "0"]);
    assert_eq!(from_csv["results"], from_npy["results"]);
}

#[test]
fn csv_answers_have_a_row_an_output_position() {
    assert_eq!(
        answer(&["reduce", IRIS, "--ops", "max,argmax", "--axis", "0", "--format", "csv"]),
        "i0,max,argmax\n0,7.9,131\n1,4.4,15\n2,6.9,118\n3,2.5,100\n"
    );
}

#[test]
fn a_table_is_for_people() {
    assert_eq!(
        answer(&["reduce", IRIS, "--ops", "max,argmax", "--axis", "0"]),
        " i0  max  argmax\n  0  7.9     131\n  1  4.4      15\n  2  6.9     118\n  3  2.5     100\n"
    );
}

#[test]
fn results_go_to_a_file_by_name_and_not_to_standard_output() {
    let folder = Folder::new("results");
    let (npz, one) = (folder.path("r.npz"), folder.path("r.npy"));
    assert_eq!(answer(&["reduce", IRIS, "--ops", "max,maxloc", "--axis", "0", "--out", &npz]), "");
    let names: Vec<String> = read_all(&npz).unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["max", "maxloc.index", "maxloc.value"]);
    assert_eq!(answer(&["reduce", IRIS, "--ops", "max", "--axis", "0", "--keepdims", "--out", &one]), "");
    let max = read(&one, &ReadOptions::default()).unwrap();
    assert_eq!((max.shape(), max.as_slice::<f64>().unwrap()), (&[1, 4][..], &[7.9, 4.4, 6.9, 2.5][..]));
    assert_eq!(folder.names(), ["r.npy", "r.npz"]);
}

#[test]
fn special_values_are_strings_in_json() {
    let folder = Folder::new("special");
    let bytes: Vec<u8> =
        [f32::NAN, f32::INFINITY, f32::NEG_INFINITY].iter().flat_map(|value| value.to_le_bytes()).collect();
    let path = folder.file("a.npy", &npy("<f4", "(3, 1)", &bytes));
    let found = json(&["reduce", &path, "--ops", "sum,any", "--axis", "1"]);
    assert_eq!(found["results"]["sum"], serde_json::json!(["NaN", "Infinity", "-Infinity"]));
    assert_eq!(found["results"]["any"], serde_json::json!([true, true, true]));
}

#[test]
fn a_printed_plan_replays_to_the_same_results() {
    let folder = Folder::new("replay");
    let words = ["reduce", IRIS, "--ops", "mean,var", "--axis", "0"];
    let trace = answer(&[&words[..], &["--plan"]].concat());
    let path = folder.file("plan.py", trace.as_bytes());
    let replayed = json(&[&words[..], &["--replay", &path]].concat());
    assert_eq!(replayed["results"], json(&words)["results"]);
}

#[test]
fn version_and_help_are_answers() {
    assert_eq!(answer(&["--version"]), format!("coulis {}\n", env!("CARGO_PKG_VERSION")));
    assert!(
        answer(&["reduce", "--help"]).contains("Examples:\n  coulis reduce a.npy --ops mean,var,min,max")
    );
    assert!(answer(&["completions", "bash"]).contains("complete"));
}

#[test]
fn the_help_names_every_statistic_and_every_format() {
    let help = answer(&["reduce", "--help"]);
    let words: Vec<&str> = help.split(|c: char| c.is_whitespace() || c == ',').collect();
    for entry in coulis::CATALOGUE {
        assert!(words.contains(&entry.name), "`{}`:\n{help}", entry.name);
    }
    let joined = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains(&coulis::extensions()), "{help}");
}
