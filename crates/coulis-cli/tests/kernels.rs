//! `coulis lower`, `coulis run` and `coulis explain`: what they answer on kernel files, and what they refuse.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod runner;

use coulis::{ReadOptions, read_all};
use runner::{Folder, answer, npy, refused};

const NEST: &str = "\
@T.prim_func
def row_sum(A_ptr: T.handle, B_ptr: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(A_ptr, (n, m), \"float32\")
    B = T.match_buffer(B_ptr, (n,), \"float32\")
    for i in range(n):
        B[i] = T.float32(0)
        for k in range(m):
            B[i] = B[i] + A[i, k]
";

/// The row sum as seed 003 prints it, and a 2 by 3 array of float32 that counts from 0.
fn files(folder: &Folder) -> (String, String, String) {
    let listing = "tests/files/parse/seed003_1_default.py".to_owned();
    let bytes: Vec<u8> = (0..6).flat_map(|v| (v as f32).to_le_bytes()).collect();
    let array = folder.file("a.npy", &npy("<f4", "(2, 3)", &bytes));
    (listing, folder.file("nest.py", NEST.as_bytes()), array)
}

#[test]
fn a_lowered_kernel_reads_back_and_lowers_to_itself() {
    let folder = Folder::new("lower");
    let (listing, nest, _) = files(&folder);
    for file in [&listing, &nest] {
        let flat = answer(&["lower", file]);
        let again = folder.file("flat.py", flat.as_bytes());
        assert_eq!(answer(&["lower", &again, "--emit", "tir"]), flat);
    }
}

#[test]
fn a_function_of_several_is_run_and_lowered_by_its_name() {
    let folder = Folder::new("several");
    let (_, _, array) = files(&folder);
    let doubled = NEST.replace("row_sum", "twice").replace("A[i, k]", "A[i, k] + A[i, k]");
    let file = folder.file("several.py", format!("{NEST}\n{doubled}").as_bytes());
    for (name, sums) in [("row_sum", "3.0 12.0"), ("twice", "6.0 24.0")] {
        let given = format!("A={array}");
        let found = answer(&["run", &file, "--device", "cpu", "--arg", &given, "--function", name]);
        assert_eq!(found, format!("B float32 [2]: {sums}\n"));
        let lowered = answer(&["lower", &file, "--function", name]);
        assert!(
            lowered.contains(&format!("def {name}(")) && lowered.matches("def ").count() == 1,
            "{lowered}"
        );
    }
    assert_eq!(answer(&["lower", &file]).matches("def ").count(), 2);
}

#[test]
fn passes_are_listed_and_each_can_be_looked_behind() {
    let folder = Folder::new("passes");
    let (listing, nest, _) = files(&folder);
    let list = answer(&["lower", "--passes"]);
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"flatten_buffers") && names.contains(&"vectorize_loops"), "{list}");
    for name in &names {
        assert!(answer(&["lower", &nest, "--after", name]).contains("def row_sum("), "{name}");
    }
    let wanted = format!("error[lower/pass]: there is no pass `fold`; passes are {}", names.join(", "));
    refused(&["lower", &nest, "--after", "fold"], &wanted);
    refused(
        &["lower", &listing, "--after", names[0]],
        &format!(
            "error[lower/form]: kernel `main` is in Flat form already, and pass `{}` is not run",
            names[0]
        ),
    );
    assert!(answer(&["lower", &nest, "--target", "cpu", "--emit", "c"]).contains("row_sum"));
    for (target, emit, legal) in [("cpu", "ptx", "cuda"), ("cuda", "c", "cpu"), ("cpu", "hip", "hip")] {
        refused(
            &["lower", &nest, "--target", target, "--emit", emit],
            &format!("error[cli/emit]: --emit {emit} is for --target {legal}, got --target {target}"),
        );
    }
}

#[test]
fn kernels_run_on_array_files() {
    let folder = Folder::new("run");
    let (listing, nest, array) = files(&folder);
    let arg = format!("A={array}");
    for file in [&listing, &nest] {
        let words = ["run", file, "--device", "cpu", "--arg", &arg];
        assert_eq!(answer(&words), "B float32 [2]: 3.0 12.0\n");
        let out = folder.path("out.npz");
        assert_eq!(answer(&[&words[..], &["--out", &out]].concat()), "");
        let members = read_all(&out).unwrap();
        let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["A", "B"]);
        assert_eq!(members[1].1.as_slice::<f32>(), Some(&[3.0f32, 12.0][..]));
    }
}

#[test]
fn random_arguments_take_their_shape_from_sizes() {
    let folder = Folder::new("random");
    let (_, nest, _) = files(&folder);
    let words = ["run", &nest, "--device", "cpu", "--arg", "n=3", "--arg", "m=4", "--random", "7"];
    let found = answer(&words);
    assert!(found.starts_with("B float32 [3]: "), "{found}");
    assert_eq!(found, answer(&words));
}

#[test]
fn arguments_of_a_run_are_checked() {
    let folder = Folder::new("arguments");
    let (_, nest, array) = files(&folder);
    let run = |args: &[&str], want: &str| {
        refused(&[&["run", &nest, "--device", "cpu"][..], args].concat(), want);
    };
    run(&[], "error[call/missing]: parameter `A` is read and has no value");
    run(&["--arg", "A"], "error[cli/arg]: an argument is NAME=FILE.npy or NAME=NUMBER, got `A`");
    run(
        &["--arg", "n=1.5"],
        "error[cli/arg]: the number of an argument is an integer, or a file of one element; got `n=1.5`",
    );
    run(&["--arg", "A=3"], "error[call/arguments]: argument `A` is to be an array");
    run(&["--arg", "n=3", "--arg", "n=4"], "error[cli/arg]: `n` is given twice");
    run(&["--arg", "q=3"], "error[call/name]: `row_sum` has no parameter `q`; parameters are A, B");
    run(
        &["--arg", &format!("A={array}"), "--arg", "n=5"],
        "error[call/size]: size `n` is given as 5, and the arguments make it 2",
    );
    let given = format!("A={array}");
    for name in ["out.npy", "out"] {
        run(
            &["--arg", &given, "--out", name],
            &format!(
                "error[write/results]: cannot write `{name}`: buffers are written by name, to a .npz file"
            ),
        );
    }
    let text = "@T.prim_func\ndef fill(B: T.Buffer((1,), \"int32\"), n: T.int32):\n    B[0] = n\n";
    refused(
        &["run", &folder.file("fill.py", text.as_bytes()), "--device", "cpu", "--arg", "n=99999999999"],
        "error[call/arguments]: argument `n` is 99999999999, which does not fit `n` of type int32",
    );
    let two = folder.file("two.py", format!("{NEST}\n{}", NEST.replace("row_sum", "other")).as_bytes());
    refused(
        &["run", &two, "--device", "cpu"],
        "error[text]: the text is to hold one function, got 2, of which one is to be named: row_sum, other",
    );
    refused(
        &["run", &two, "--device", "cpu", "--function", "both"],
        "error[text]: the text has no function `both`; legal are row_sum, other",
    );
    refused(
        &["run", &two, "--device", "cpu", "--function", "other"],
        "error[call/missing]: parameter `A` is read and has no value",
    );
    let twice = folder.file("twice.py", format!("{NEST}\n{NEST}").as_bytes());
    refused(
        &["run", &twice, "--device", "cpu", "--function", "row_sum"],
        "error[text]: the text has 2 functions `row_sum`; give each a name of its own",
    );
    refused(
        &["run", "missing.py", "--device", "cpu"],
        "error[read/text]: cannot read the text `missing.py`: no such file or directory (os error 2)",
    );
    #[cfg(unix)]
    refused(
        &["lower", "/dev/zero"],
        "error[read/text]: cannot read the text `/dev/zero`: it is longer than 67108864 bytes",
    );
}

#[test]
fn a_reduction_is_explained_with_its_bytes() {
    let text = answer(&["explain", "examples/data/iris.npy", "--ops", "sum,max", "--axis", "0"]);
    let json =
        answer(&["explain", "examples/data/iris.npy", "--ops", "sum,max", "--axis", "0", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let bytes = value["bytes"].as_u64().unwrap();
    assert!(text.contains(&format!("\nbytes {bytes}\ntime ")), "{text}");
    let array = coulis::read(runner::root().join("examples/data/iris.npy"), &ReadOptions::default()).unwrap();
    let outputs = 2 * (array.n_bytes() / array.shape()[0] as u64);
    assert_eq!(bytes, array.n_bytes() + outputs);
    assert!(text.starts_with("plan ") && value["reasons"].as_array().is_some_and(|r| !r.is_empty()));
}

#[test]
fn the_verdicts_of_strategies_stand_one_below_the_other() {
    let words = ["explain", "examples/data/iris.npy", "--ops", "sum", "--axis", "1", "--arch", "sm_90a"];
    let text = answer(&words);
    let lines = text.lines().skip(1).take_while(|line| line.starts_with("  "));
    let columns: Vec<Option<usize>> =
        lines.map(|line| line.find("  declined  ").or_else(|| line.find("  chosen    "))).collect();
    assert!(
        columns.len() > 2 && columns[0].is_some() && columns.iter().all(|at| *at == columns[0]),
        "{text}"
    );
}

const TILES: &str = "examples/tile_rows.py";

#[test]
fn a_tile_program_goes_from_text_to_an_answer_and_to_cuda() {
    let folder = Folder::new("tiles");
    let bytes: Vec<u8> = (0..6).flat_map(|v| (v as f32).to_le_bytes()).collect();
    let given = format!("A={}", folder.file("a.npy", &npy("<f4", "(2, 3)", &bytes)));
    let words = ["run", TILES, "--device", "sim", "--arg", &given, "--warp-orders", "4"];
    assert_eq!(answer(&words), "B float32 [2]: 3.0 12.0\n");
    let cuda = answer(&["lower", TILES, "--target", "cuda", "--arch", "sm_100a", "--emit", "cuda"]);
    assert!(cuda.contains("__shfl_down_sync(") && cuda.contains("__launch_bounds__(64)"), "{cuda}");
    assert_eq!(answer(&["lower", TILES, "--arch", "sm_100a", "--emit", "cuda"]), cuda);
    for shown in [&[][..], &["--after", "dispatch_tiles"]] {
        let lowered = |on: &[&str]| answer(&[&["lower", TILES][..], on, shown].concat());
        assert_eq!(lowered(&[]), lowered(&["--target", "cuda"]));
    }
}

#[test]
fn a_kernel_that_does_not_come_to_an_end_is_stopped_in_the_simulator() {
    let folder = Folder::new("endless");
    let text = "@T.prim_func\ndef long(B: T.Buffer((1,), \"int32\")):\n    for i in range(2000000000):\n        B[0] = i\n";
    let file = folder.file("long.py", text.as_bytes());
    let words = ["run", &file, "--device", "sim", "--max-steps", "5000"];
    let wanted = "error[sim]: kernel `long` was stopped after the 5000 statements that it may execute, at `B[0] = i` \
                  (line 4)";
    refused(&words, wanted);
    let words = ["run", &file, "--device", "cpu", "--max-steps", "5000"];
    refused(
        &words,
        "error[cli/device]: --warp-orders, --warp-width, --max-steps and --report belong to --device sim",
    );
}

#[test]
fn the_tile_calls_of_a_kernel_are_explained_as_a_table_and_as_json() {
    let text = answer(&["explain", TILES, "--target", "cuda", "--arch", "sm_100a"]);
    assert!(text.starts_with("tile_rows on sm_100a: Tx.warp.sum("), "{text}");
    assert!(text.contains("  warp_shuffle            20  chosen    at most 5 additions in a chain, |error| <= 3.0e-7 * sum|x|\n"), "{text}");
    let wanted = "group: wanted groups of 1 thread, found 32 threads";
    assert!(text.contains(wanted), "{text}");
    let json = answer(&["explain", TILES, "--format", "json"]);
    for part in [
        "\"kernel\":\"tile_rows\"",
        "\"arch\":\"sm_90a\"",
        "\"verdict\":\"chosen\"",
        "\"found\":\"32 threads\"",
        "\"longest_chain\":5",
        "\"of\":\"sum|x|\"",
        "\"accuracy\":null",
    ] {
        assert!(json.contains(part), "{part}\n{json}");
    }
    assert_eq!(answer(&["explain", "tests/files/parse/seed003_1_default.py"]), "no tile calls\n");
    for flag in [
        &["--axis", "0"][..],
        &["--raw-shape", "3", "--raw-dtype", "f32"],
        &["--ddof", "0"],
        &["--nan", "propagate"],
        &["--device", "auto"],
        &["--untuned"],
        &["--keepdims"],
        &["--where", "mask.npy"],
    ] {
        refused(
            &[&["explain", TILES][..], flag].concat(),
            &format!(
                "error[cli/kernel]: {} belongs to array files with --ops or --op, and `{TILES}` is a kernel; legal with \
                 one are --target, --arch and --format",
                flag[0]
            ),
        );
    }
    refused(
        &["explain", TILES, "--target", "cpu"],
        "error[lower]: kernels with scope ids run in blocks of threads, which the cpu has not",
    );
    refused(
        &["explain", TILES, "--target", "gpu"],
        "error[cli/target]: there is no target `gpu`; targets are cpu, cuda, hip",
    );
}
