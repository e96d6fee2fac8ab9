//! Wrong files, one mistake a test: the whole message, nothing on standard output, nothing written, exit code 2.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod runner;

use std::process::{Command, Stdio};

use runner::{Folder, answer, coulis, misused, npy, refused, root};

const IRIS: &str = "examples/data/iris.npy";

/// Refuses `reduce PATH --ops sum` with this text, in which FILE stands for the path.
#[track_caller]
fn check(path: &str, more: &[&str], want: &str) {
    let words: Vec<&str> = ["reduce", path, "--ops", "sum"].iter().chain(more).copied().collect();
    refused(&words, &want.replace("FILE", path));
}

#[test]
fn a_missing_file_is_named() {
    check("no/such.npy", &[], "error[read]: no file at `FILE`");
}

#[test]
fn a_folder_is_not_a_file() {
    check("examples", &[], "error[read]: `FILE` is a folder, a file was expected");
}

#[test]
fn an_unknown_extension_lists_the_known_ones() {
    check(
        "README.md",
        &[],
        &format!(
            "error[read]: cannot tell the format of `FILE` from its extension; read are {}, and any file when a raw \
             shape and dtype are given",
            coulis::extensions()
        ),
    );
}

#[test]
fn a_truncated_file_is_not_read() {
    let folder = Folder::new("truncated");
    let path = folder.file("a.npy", &npy("<f4", "(2, 3)", &[0; 23]));
    check(&path, &[], "error[read]: `FILE` is truncated: its header promises 24 bytes of data, 23 are there");
}

/// Runs a call on a file of 128 MiB without blocks, which becomes `left` bytes long as soon as it is mapped, and gives what is
/// said and the exit code.
#[cfg(target_os = "linux")]
fn cut_short(test: &str, left: u64, more: &[&str]) -> (String, Option<i32>) {
    const BYTES: u64 = 128 << 20;
    let folder = Folder::new(test);
    let path = folder.file("big.bin", b"");
    let resize = |n| std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(n).unwrap();
    resize(BYTES);
    let shape = BYTES.to_string();
    let words =
        ["reduce", &path, "--raw-shape", &shape, "--raw-dtype", "u8", "--ops", "sum", "--device", "cpu"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_coulis"));
    command.args(words).args(more).current_dir(root()).env("COULIS_CC", "/nonexistent");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let maps = format!("/proc/{}/maps", child.id());
    let is_mapped = || std::fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("big.bin"));
    while !is_mapped() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    resize(left);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("note: ")).collect();
    assert_eq!(folder.names(), ["big.bin"]);
    (lines.join("\n").replace(&path, "FILE"), output.status.code())
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_is_cut_short_while_it_is_read_is_an_error_and_gives_no_number() {
    for (left, threads) in
        [(0, "1"), (0, "4"), (4096, "2"), ((128 << 20) - 5000, "1"), ((128 << 20) - 1, "1")]
    {
        let want = format!(
            "error[read]: `FILE` was cut short while it was in use: it had 134217728 bytes, {left} are there"
        );
        assert_eq!(cut_short("cut-short", left, &["--threads", threads]), (want, Some(2)), "{left}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_written_of_a_file_that_is_cut_short() {
    let folder = Folder::new("cut-out");
    let out = folder.path("out.npz");
    let (said, code) = cut_short("cut-out-of", (128 << 20) - 1, &["--out", &out]);
    assert!(said.starts_with("error[read]: `FILE` was cut short"), "{said}");
    assert_eq!((code, folder.names()), (Some(2), Vec::new()));
}

#[test]
fn a_shape_whose_size_overflows_is_not_read() {
    let folder = Folder::new("overflow");
    let path = folder.file("a.npy", &npy("<f4", "(4294967296, 4294967296)", &[0; 4]));
    check(
        &path,
        &[],
        "error[read]: `FILE` has an impossible shape: the shape [4294967296, 4294967296] of float32 has more than \
         2^63 - 1 bytes",
    );
}

#[test]
fn complex_elements_are_unsupported() {
    let folder = Folder::new("complex");
    let path = folder.file("a.npy", &npy("<c8", "(1,)", &[0; 8]));
    check(
        &path,
        &[],
        "error[read]: `FILE` holds elements of type `<c8`, which is unsupported; supported are bool, int8 to int64, \
         uint8 to uint64, float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2",
    );
}

#[test]
fn a_key_for_a_file_of_one_array_is_refused() {
    check(
        IRIS,
        &["--key", "a"],
        "error[read]: a key (`a`) was given, but `FILE` is a .npy file, which holds one array",
    );
}

#[test]
fn a_raw_file_of_another_size_is_refused() {
    let folder = Folder::new("raw");
    let path = folder.file("a.bin", &[0; 12]);
    check(
        &path,
        &["--raw-shape", "2,2", "--raw-dtype", "f32"],
        "error[read]: `FILE` has 12 bytes; float32 of shape [2, 2] needs exactly 16",
    );
}

#[test]
fn a_table_with_a_word_in_it_is_refused() {
    let folder = Folder::new("table");
    let path = folder.file("a.csv", b"x,y\n1,two\n");
    check(
        &path,
        &[],
        "error[read]: `FILE` is not a table of numbers: line 2, field 2 is `two`, which is not a number",
    );
}

#[test]
fn a_missing_trace_is_named() {
    check(
        IRIS,
        &["--replay", "no.py"],
        "error[read/trace]: cannot read the trace `no.py`: no such file or directory (os error 2)",
    );
}

#[test]
fn results_go_to_npy_and_npz_only() {
    let folder = Folder::new("out");
    let out = folder.path("a.txt");
    check(IRIS, &["--out", &out], &format!("error[write]: cannot write `{out}`: written are .npy and .npz"));
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn an_unknown_op_names_a_near_one() {
    refused(
        &["reduce", IRIS, "--ops", "summ"],
        "error[reduce/op]: unknown reducer `summ`; legal names near it are sum, sumsq",
    );
}

#[test]
fn an_axis_beyond_the_shape_says_the_legal_ones() {
    check(
        IRIS,
        &["--axis", "2"],
        "error[reduce/axis]: axis 2 is out of range: the array has 2 dimensions, legal axes are -2 to 1",
    );
    check(
        IRIS,
        &["--axis", "-3"],
        "error[reduce/axis]: axis -3 is out of range: the array has 2 dimensions, legal axes are -2 to 1",
    );
}

#[test]
fn an_axis_given_twice_is_refused() {
    check(IRIS, &["--axis", "0,-2"], "error[reduce/shape]: axis 0 is given twice (as 0 and -2)");
}

#[test]
fn an_op_given_twice_is_refused() {
    refused(
        &["reduce", IRIS, "--ops", "sum,sum"],
        "error[reduce/op]: `sum` is asked for twice; names in one call are unique",
    );
}

#[test]
fn a_dtype_that_an_op_refuses_is_named() {
    check(
        IRIS,
        &["--acc-dtype", "bool"],
        "error[reduce/op]: `sum` of float64 cannot accumulate in bool; legal accumulators are float32, float64",
    );
}

#[test]
fn the_maximum_of_nothing_is_refused_and_its_sum_is_not() {
    let folder = Folder::new("nothing");
    let path = folder.file("a.npy", &npy("<f4", "(0, 3)", &[]));
    refused(
        &["reduce", &path, "--ops", "sum,max", "--axis", "0"],
        "error[reduce/empty]: `max` of an empty set has no value: the reduced axes [0] of shape [0, 3] hold no elements",
    );
    assert_eq!(runner::answer(&["reduce", &path, "--ops", "sum"]), " sum  0.0\n");
}

#[test]
fn a_where_that_is_not_bool_is_refused() {
    check(
        IRIS,
        &["--where", IRIS],
        "error[reduce/where]: `where` is to be of bool, which elements take part, got float64 of shape [150, 4]; a \
         comparison gives bool, as `x != 0` does",
    );
}

#[test]
fn a_where_of_another_shape_is_refused() {
    let folder = Folder::new("where");
    let path = folder.file("mask.npy", &npy("|b1", "(4, 150)", &[1; 600]));
    check(
        IRIS,
        &["--where", &path],
        "error[reduce/shape]: `where` of shape [4, 150] does not broadcast to the input's shape [150, 4]: from the last \
         on, each extent is to be 1 or the input's",
    );
}

#[test]
fn a_number_beyond_float64_is_refused_and_an_infinity_is_not() {
    for (flag, takes) in [("--alpha", "X|OP=X,..."), ("--beta", "X|OP=X,..."), ("--ddof", "N")] {
        check(
            IRIS,
            &[flag, "-1e400"],
            &format!(
                "error: invalid value '-1e400' for '{flag} <{takes}>': `-1e400` is beyond the largest finite number, \
                 1.7976931348623157e308; an infinity is written inf\n\nFor more information, try '--help'."
            ),
        );
    }
}

#[test]
fn a_factor_for_an_op_that_is_not_asked_for_is_refused() {
    check(
        IRIS,
        &["--alpha", "mean=2"],
        "error[reduce/option]: `mean` is not among the statistics asked for: sum",
    );
}

#[test]
fn a_beta_needs_a_prior() {
    check(
        IRIS,
        &["--beta", "1"],
        "error[reduce/prior]: beta of `sum` is 1, and no prior of that name is given",
    );
}

#[test]
fn a_prior_needs_a_beta_and_a_result() {
    let folder = Folder::new("prior-of-none");
    let priors = folder.path("priors.npz");
    assert_eq!(answer(&["reduce", IRIS, "--ops", "mean,max", "--out", &priors]), "");
    misused(
        &["reduce", IRIS, "--ops", "sum", "--prior", &priors],
        "the following required arguments were not provided:\n  --beta <X|OP=X,...>\n\nUsage: coulis reduce --ops <LIST> --beta \
         <X|OP=X,...> --prior <FILE.npz> <FILE>...",
    );
    check(
        IRIS,
        &["--beta", "1", "--prior", &priors],
        "error[reduce/prior]: a prior is given for `max`, which is no result; results are sum",
    );
    let unnamed = folder.path("prior.npy");
    assert_eq!(answer(&["reduce", IRIS, "--ops", "sum", "--out", &unnamed]), "");
    // That of the only result.
    let twice =
        answer(&["reduce", IRIS, "--ops", "sum", "--beta", "1", "--prior", &unnamed, "--format", "csv"]);
    let once = answer(&["reduce", IRIS, "--ops", "sum", "--alpha", "2", "--format", "csv"]);
    assert_eq!(twice, once);
    refused(
        &["reduce", IRIS, "--ops", "sum,max", "--beta", "sum=1", "--prior", &unnamed],
        "error[reduce/prior]: a prior is given without a name, as a .npy has none, of a call with several results; \
         results are sum, max",
    );
}

#[cfg(target_os = "linux")]
fn full() -> std::fs::File {
    std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn standard_error_that_cannot_be_written_leaves_the_exit_code() {
    for (words, code) in [
        (&["reduce", IRIS, "--ops", "sum"][..], 0),
        (&["reduce", IRIS, "--ops", "sum", "--verify"], 0),
        (&["reduce", IRIS, "--ops", "nonsense"], 2),
        (&["reduce", IRIS], 2),
        (&[], 2),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coulis"));
        command.args(words).current_dir(root()).env("COULIS_CC", "/nonexistent");
        command.stdout(Stdio::null()).stderr(full());
        assert_eq!(command.status().unwrap().code(), Some(code), "{words:?}");
    }
}

/// Answers of every kind: those of commands, and those that the reader of the command line gives.
#[cfg(target_os = "linux")]
const ANSWERS: [&[&str]; 7] = [
    &["reduce", IRIS, "--ops", "sum"],
    &["--help"],
    &["help", "reduce"],
    &["reduce", "--help"],
    &["-h"],
    &["--version"],
    &["completions", "bash"],
];

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    for words in ANSWERS {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coulis"));
        command.args(words).current_dir(root()).env("COULIS_CC", "/nonexistent").stdout(full());
        let output = command.stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("note: ")).collect();
        let want = "error[write/stdout]: cannot write to standard output: ";
        assert!(matches!(&lines[..], [one] if one.starts_with(want)), "{words:?}: {said}");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_reader_that_closes_the_pipe_has_what_it_wanted() {
    for words in ANSWERS {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coulis"));
        command.args(words).current_dir(root()).env("COULIS_CC", "/nonexistent");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.lines().all(|line| line.starts_with("note: ")), "{words:?}: {said}");
        assert_eq!(output.status.code(), Some(0), "{words:?}");
    }
}

#[test]
fn a_device_that_is_not_there_is_refused() {
    // Which part is missing depends on the machine; that something is, and that it is told, does not.
    let output = coulis(&["reduce", IRIS, "--ops", "sum", "--device", "cuda:99"]);
    let said = String::from_utf8(output.stderr).unwrap();
    let wants = [
        "error[device]: the CUDA driver (`libcuda.so.1`) was not found; it comes with the driver of an NVIDIA GPU; \
         looked in ",
        "error[device]: there is no CUDA device 99; ",
        "error[device]: `cuInit` answered ",
    ];
    assert!(wants.iter().any(|want| said.starts_with(want)), "{said}");
    assert_eq!((output.status.code(), output.stdout), (Some(2), Vec::new()));
}

#[test]
fn a_file_that_cannot_be_written_to_its_end_is_an_error_and_nothing_else() {
    let folder = Folder::new("full");
    let (out, ops) =
        (folder.path("r.npz"), "sum,mean,var,std,sumsq,norm1,norm2,meansq,logsumexp,min,max,absmax");
    let limited = |blocks: u32| {
        let command = format!(
            "trap '' XFSZ; ulimit -f {blocks}; exec '{}' reduce {IRIS} --ops {ops} --axis 1 --out '{out}' --device cpu",
            env!("CARGO_BIN_EXE_coulis")
        );
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &command]).current_dir(root()).env("COULIS_CC", "/nonexistent").output().unwrap()
    };
    for blocks in [0, 1, 9, 17] {
        let output = limited(blocks);
        let said = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("note: ")).collect();
        let want = format!("error[write]: cannot write `{out}`: ");
        assert!(matches!(&lines[..], [one] if one.starts_with(&want)), "{blocks}: {said}");
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(folder.names(), [""; 0]);
    }
    assert_eq!(limited(1000).status.code(), Some(0));
}

#[test]
fn several_results_do_not_fit_an_npy_file() {
    let folder = Folder::new("several");
    let out = folder.path("r.npy");
    refused(
        &["reduce", IRIS, "--ops", "maxloc", "--out", &out],
        &format!(
            "error[write/results]: `{out}` takes one result, and there are 2: maxloc.value, maxloc.index; a .npz \
             file takes them all"
        ),
    );
    assert_eq!(folder.names(), [""; 0]);
}
