//! `cargo xtask dist`: the binaries that a machine without cargo needs, in `dist/`.

use std::fs;
use std::path::PathBuf;

use super::{Command, no_words};
use crate::step::{Failure, Step, root};

/// The command.
pub const COMMAND: Command = Command {
    name: "dist",
    about: "build the binaries for machines without cargo, in dist/",
    run: |words| {
        no_words(words)?;
        dist()
    },
};

/// Binaries, under the folder of release builds.
const BINARIES: [&str; 4] = ["coulis", "xtask", "device-tests", "examples/reduction_tutorial"];

/// Packages and test files whose tests also run on a GPU, for `dist/tests`.
const TESTS: [(&str, &str); 14] = [
    ("coulis-runtime", "device_kernels"),
    ("coulis", "device_memory"),
    ("coulis", "fuzz_schedules"),
    ("coulis", "multi_reduce"),
    ("coulis", "te_bounds"),
    ("coulis", "te_clusters"),
    ("coulis", "te_cpu"),
    ("coulis", "te_expressions"),
    ("coulis", "te_faults"),
    ("coulis", "te_gpu"),
    ("coulis", "te_gpu_faults"),
    ("coulis", "te_gpu_schedule"),
    ("coulis", "te_schedule"),
    ("coulis", "tile_reductions"),
];

/// Bytes of all binaries at most: packed they are a quarter of it, which is easily carried to another machine.
const MAX_BYTES: u64 = 180 << 20;

fn dist() -> Result<(), Failure> {
    let packages = ["--package=coulis-cli", "--package=xtask", "--package=coulis-device-tests"];
    Step::cargo(&["build", "--release", "--bins"]).words(&packages.map(str::to_owned)).run()?;
    Step::cargo(&["build", "--release", "--package=coulis", "--example=reduction_tutorial"]).run()?;
    let built = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let (built, dist) = (built.join("release"), root().join("dist"));
    fs::create_dir_all(&dist).map_err(|source| Failure::File { path: dist.clone(), source })?;
    let tests = dist.join("tests");
    fs::create_dir_all(&tests).map_err(|source| Failure::File { path: tests.clone(), source })?;
    let mut copies: Vec<(PathBuf, PathBuf)> = Vec::new();
    for binary in BINARIES {
        let from = built.join(binary);
        let to = dist.join(from.file_name().unwrap_or_default());
        copies.push((from, to));
    }
    for (from, name) in test_binaries()? {
        copies.push((from, tests.join(name)));
    }
    let mut total = 0;
    for (from, to) in copies {
        let bytes = fs::copy(&from, &to).map_err(|source| Failure::File { path: from.clone(), source })?;
        let shown = to.strip_prefix(root()).unwrap_or(&to).display();
        println!("{:>6.1} MiB  {shown}", bytes as f64 / (1 << 20) as f64);
        total += bytes;
    }
    if total > MAX_BYTES {
        return Err(Failure::TooLarge { total, limit: MAX_BYTES });
    }
    Ok(())
}

/// Builds the binaries of the tests; where they are, and the names of their files.
fn test_binaries() -> Result<Vec<(PathBuf, String)>, Failure> {
    let mut found = Vec::new();
    for (package, test) in TESTS {
        let words =
            ["test", "--release", "--no-run", "--message-format=json", "--package", package, "--test", test];
        let said = Step::cargo(&words).output()?;
        let missing = Failure::Metadata { missing: "an executable" };
        let path = executable(&said, test).ok_or(missing)?;
        found.push((path, test.to_owned()));
    }
    Ok(found)
}

/// The executable of a test among what cargo says of what it built, one object a line.
fn executable(said: &str, test: &str) -> Option<PathBuf> {
    let own = |path: &&str| {
        let file = path.rsplit('/').next().unwrap_or_default();
        file.rsplit_once('-').is_some_and(|(name, _)| name == test)
    };
    let paths = said.lines().filter_map(|line| line.split_once("\"executable\":\"")?.1.split('"').next());
    paths.filter(own).map(PathBuf::from).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_found_among_others() {
        let said = "{\"reason\":\"compiler-artifact\",\"executable\":null}\n\
                    {\"executable\":\"/t/release/coulis\",\"fresh\":true}\n\
                    {\"executable\":\"/t/release/deps/te_gpu_faults-0a1\",\"fresh\":true}\n\
                    {\"executable\":\"/t/release/deps/te_gpu-0a2\",\"fresh\":true}\n";
        assert_eq!(executable(said, "te_gpu"), Some(PathBuf::from("/t/release/deps/te_gpu-0a2")));
        assert_eq!(executable(said, "te_cpu"), None);
    }
}
