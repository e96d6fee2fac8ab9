//! Mistakes on the command line itself, one a test: the whole message, nothing on standard output, exit code 2.

mod runner;

use runner::{coulis, misused, refused};

const IRIS: &str = "examples/data/iris.npy";
const DTYPES: &str = "legal dtypes are bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, \
                      float8_e4m3, float8_e5m2, and short names of these such as i32, bf16 and f64";

#[test]
fn no_command_prints_the_help_and_is_refused() {
    let output = coulis(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: coulis [OPTIONS] <COMMAND>"));
}

#[test]
fn an_unknown_command_is_named() {
    misused(&["average"], "unrecognized subcommand 'average'\n\nUsage: coulis [OPTIONS] <COMMAND>");
}

#[test]
fn reduce_needs_ops() {
    misused(
        &["reduce", IRIS],
        "the following required arguments were not provided:\n  --ops <LIST>\n\nUsage: coulis reduce --ops <LIST> <FILE>...",
    );
}

#[test]
fn an_axis_is_an_integer() {
    misused(
        &["reduce", IRIS, "--ops", "sum", "--axis", "rows"],
        "invalid value 'rows' for '--axis <LIST>': `rows` is not an integer",
    );
}

#[test]
fn a_dtype_is_one_of_the_list() {
    misused(
        &["reduce", IRIS, "--ops", "sum", "--acc-dtype", "f128"],
        &format!("invalid value 'f128' for '--acc-dtype <T>': unknown dtype `f128`; {DTYPES}"),
    );
}

#[test]
fn a_value_per_op_is_given_once() {
    misused(
        &["reduce", IRIS, "--ops", "sum", "--alpha", "sum=1,sum=2"],
        "invalid value 'sum=1,sum=2' for '--alpha <X|OP=X,...>': `sum` is given twice",
    );
}

#[test]
fn a_device_is_one_of_the_list() {
    misused(
        &["reduce", IRIS, "--ops", "sum", "--device", "gpu"],
        "invalid value 'gpu' for '--device <D>': unknown device `gpu`; legal are auto, cpu, cuda and cuda:N",
    );
}

#[test]
fn no_threads_at_all_are_refused() {
    for found in ["0", "-1"] {
        let said = format!(
            "invalid value '{found}' for '--threads <N>': a count is an integer of at least 1, got `{found}`"
        );
        misused(&["reduce", IRIS, "--ops", "sum", "--threads", found], &said);
    }
}

#[test]
fn a_raw_shape_needs_a_raw_dtype() {
    misused(
        &["reduce", "a.bin", "--ops", "sum", "--raw-shape", "3"],
        "the following required arguments were not provided:\n  --raw-dtype <T>\n\nUsage: coulis reduce --ops <LIST> --raw-shape <LIST> --raw-dtype <T> <FILE>...",
    );
}

#[test]
fn a_plan_is_not_verified() {
    misused(
        &["reduce", IRIS, "--ops", "sum", "--plan", "--verify"],
        "the argument '--plan' cannot be used with '--verify'\n\nUsage: coulis reduce --ops <LIST> --plan <FILE>...",
    );
}

#[test]
fn more_keys_than_files_are_refused() {
    refused(
        &["reduce", IRIS, "--ops", "sum", "--key", "a", "--key", "b"],
        "error[cli/key]: --key is given 2 times for 1 files",
    );
}

#[test]
fn an_array_is_explained_for_given_ops_only() {
    refused(
        &["explain", IRIS],
        "error[cli/ops]: an array file is explained for given statistics or a normalization; add --ops LIST or --op NAME, or give one kernel's .py file",
    );
}

#[test]
fn flags_of_a_suite_and_of_one_workload_do_not_mix() {
    let shape: &[&str] = &["bench", "-D", "4,4", "--axis", "1", "--ops", "sum"];
    let latency: &[&str] = &["bench", "--latency"];
    let tuned: &[&str] = &["tune", "-D", "4,4", "--ops", "sum"];
    for (words, flag) in [
        (shape, &["--turns"][..]),
        (shape, &["--seconds", "1"]),
        (shape, &["--max-bytes", "4"]),
        (latency, &["--turns"]),
        (latency, &["--seconds", "1"]),
        (latency, &["--rep", "3"]),
        (latency, &["-v", "0"]),
        (latency, &["3", "1"]),
        (tuned, &["--max-bytes", "4"]),
        (&["tune", "--suite", "s.json"], &["--dtype", "f64"]),
    ] {
        let words = [words, flag].concat();
        let found = coulis(&words);
        let said = String::from_utf8_lossy(&found.stderr).into_owned();
        assert!(found.status.code() == Some(2) && said.contains("cannot be used with"), "{words:?}: {said}");
    }
}

#[test]
fn commands_that_are_not_built_yet_say_so() {
    for (words, command) in [
        (&["lower", "a.py", "--target", "hip"][..], "lower --target hip"),
        (&["explain", "a.py", "--target", "hip"], "explain --target hip"),
    ] {
        refused(words, &format!("error[cli/not-built]: `coulis {command}` is not built yet"));
    }
}
