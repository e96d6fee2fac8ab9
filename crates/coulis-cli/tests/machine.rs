//! What `devices`, `cache` and `reduce --verify` say.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod runner;

use std::path::Path;
use std::process::{Command, Output};

use runner::Folder;

fn coulis(words: &[&str], cache: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_coulis"))
        .args(words)
        .env("COULIS_CACHE_DIR", cache)
        .env("COULIS_CC", "/nonexistent")
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .unwrap()
}

#[track_caller]
fn answer(words: &[&str], cache: &Path) -> String {
    let output = coulis(words, cache);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_cache_lists_and_clears_compiled_kernels_and_nothing_else() {
    let folder = Folder::new("machine-cache");
    let root = folder.path("");
    let root = Path::new(&root);
    let (dir, of_gpus, tuned) = (root.join("cpu"), root.join("cuda"), root.join("tuned"));
    let folders = format!("{}\n{}\n{}\n", dir.display(), of_gpus.display(), tuned.display());
    assert_eq!(answer(&["cache", "path"], root), folders);
    assert_eq!(answer(&["cache"], root), "0 files, 0 bytes\n");
    std::fs::create_dir(&dir).unwrap();
    let kernel = dir.join(format!("{}.so", "0a".repeat(32)));
    std::fs::write(&kernel, b"12345").unwrap();
    std::fs::write(dir.join("notes.so"), b"mine").unwrap();
    std::fs::create_dir(&of_gpus).unwrap();
    let cubin = of_gpus.join(format!("{}.cubin", "1b".repeat(32)));
    std::fs::write(&cubin, b"123").unwrap();
    let listed = answer(&["cache", "ls"], root);
    for file in [&kernel, &cubin] {
        assert!(listed.contains(file.to_str().unwrap()), "{listed}");
    }
    assert!(listed.ends_with("2 files, 8 bytes\n"), "{listed}");
    assert_eq!(answer(&["cache", "clear"], root), "removed 2 files, 8 bytes\n");
    assert!(!kernel.exists() && !cubin.exists() && dir.join("notes.so").exists());
}

#[test]
fn devices_says_why_there_is_no_compiler_and_where_the_cache_is() {
    let folder = Folder::new("machine-devices");
    let root = folder.path("");
    let root = Path::new(&root);
    let text = answer(&["devices"], root);
    for want in [
        "cpu_exec",
        "`/nonexistent` of COULIS_CC does not run",
        "threads",
        "CUDA driver",
        "NVRTC",
        "CUDA_HOME",
    ] {
        assert!(text.contains(want), "{want}:\n{text}");
    }
    assert!(text.contains(root.to_str().unwrap().trim_end_matches('/')), "{text}");
}

#[test]
fn a_compiler_that_is_named_comes_before_the_environment_and_is_decisive() {
    let folder = Folder::new("machine-cc");
    let root = folder.path("");
    let root = Path::new(&root);
    let named = ["--cc", "/not/there"];
    let words = ["reduce", "examples/data/iris.npy", "--ops", "sum"];
    for words in [[&words[..], &named].concat(), [&named, &words[..]].concat()] {
        let output = coulis(&words, root);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("the C compiler `/not/there` of the options does not run"), "{said}");
    }
    let devices = answer(&["devices", "--cc", "/not/there"], root);
    assert!(devices.contains("`/not/there` of the options does not run"), "{devices}");
}

#[test]
fn an_explanation_predicts_bytes_and_time() {
    let folder = Folder::new("machine-explain");
    let root = folder.path("");
    let root = Path::new(&root);
    let words = ["explain", "examples/data/iris.npy", "--ops", "sum,max", "--axis", "0"];
    let text = answer(&words, root);
    // 150 rows of 4 elements of 8 bytes in, twice 4 of them out.
    assert!(text.contains("bytes 4864\ntime 0.0"), "{text}");
    // So few bytes may be in any cache.
    assert!(text.contains(" ms about, at the stream rate of"), "{text}");
    let json = answer(&[&words[..], &["--format", "json"]].concat(), root);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let (seconds, rate) = (value["seconds"].as_f64().unwrap(), value["bytes_per_second"].as_f64().unwrap());
    assert!(seconds > 0.0 && (seconds * rate / 4864.0 - 1.0).abs() < 1e-6, "{json}");
    assert_eq!(value["is_least"], false);
}

#[test]
fn a_plan_and_its_kernel_are_shown_for_a_machine_that_is_not_here() {
    let folder = Folder::new("machine-elsewhere");
    let root = folder.path("");
    let root = Path::new(&root);
    let call = ["examples/data/iris.npy", "--ops", "mean,argmax", "--axis", "0"];
    let explained = answer(&[&["explain"], &call[..], &["--arch", "sm_80"]].concat(), root);
    assert!(explained.starts_with("plan gpu_") && explained.contains("\nbytes 4864\ntrace\n"), "{explained}");
    let trace = answer(&[&["reduce"], &call[..], &["--plan", "--target", "cuda"]].concat(), root);
    assert!(trace.contains(", \"threadIdx.x\")"), "{trace}");
    // The kernel is text of the dialect: it goes through the passes by itself, and the simulator runs it.
    let kernel = answer(&[&["reduce"], &call[..], &["--kernel", "--target", "cuda"]].concat(), root);
    let file = folder.path("kernel.py");
    std::fs::write(&file, &kernel).unwrap();
    let cuda = answer(&["lower", &file, "--target", "cuda", "--arch", "sm_80", "--emit", "cuda"], root);
    assert!(cuda.contains("extern \"C\" __global__"), "{cuda}");
    let refused = coulis(&[&["reduce"], &call[..], &["--arch", "sm_90a"]].concat(), root);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("was made for sm_90a, which is named and not opened"), "{said}");
    for (words, part) in [
        (&["--target", "gpu"][..], "targets are cpu, cuda, hip"),
        (&["--arch", "sm_12"], "there is no architecture `sm_12`"),
        (&["--arch", "sm_90a", "--device", "cpu"], "give one of them"),
        (&["--target", "cpu", "--arch", "sm_90a"], "--arch belongs to --target cuda"),
    ] {
        let refused = coulis(&[&["explain"], &call[..], words].concat(), root);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && said.contains(part), "{words:?}: {said}");
    }
}

#[test]
fn a_verified_reduction_says_so_for_each_result() {
    let folder = Folder::new("machine-verify");
    let root = folder.path("");
    let root = Path::new(&root);
    let words = ["reduce", "examples/data/iris.npy", "--ops", "mean,maxloc", "--axis", "0", "--verify"];
    let output = coulis(&words, root);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    for name in ["mean", "maxloc.value", "maxloc.index"] {
        assert!(said.contains(&format!("verified {name}: 4 outputs")), "{said}");
    }
}

#[test]
fn a_folder_of_cuda_that_is_named_is_decisive() {
    let folder = Folder::new("machine-cuda");
    let root = folder.path("");
    let root = Path::new(&root);
    let devices = answer(&["devices", "--cuda-path", "/not/there"], root);
    assert!(devices.contains("NVRTC (`libnvrtc.so`) was not found"), "{devices}");
    assert!(devices.contains("looked in the option `/not/there`"), "{devices}");
    let kernel = "tests/files/emit/cuda/last_block.py";
    for emit in ["ptx", "cubin", "sass"] {
        let words = ["lower", kernel, "--emit", emit, "--cuda-path", "/not/there"];
        let output = coulis(&words, root);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with("error[emit]: NVRTC (`libnvrtc.so`) was not found"), "{said}");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    }
}
