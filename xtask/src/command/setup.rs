//! `cargo xtask setup [cuda]`: what the tests need and a bare Rust does not have.
//!
//! `cuda` fetches NVIDIA's compiler library and disassembler as wheels, by pip, into the folder where coulis looks for
//! them. Versions and hashes are fixed here, so that pip refuses any other file.

use std::fs;
use std::path::{Path, PathBuf};

use super::Command;
use crate::step::{Failure, Step};

/// The command.
pub const COMMAND: Command = Command {
    name: "setup",
    about: "install what the tests need: rustfmt, clippy, cargo-nextest; `setup cuda`: NVRTC and the disassembler",
    run: |words| match words {
        [] => setup(),
        [word] if word == "cuda" => setup_cuda(),
        [other, ..] => Err(Failure::Argument { argument: other.clone(), legal: "cuda, or none" }),
    },
};

/// Wheels with the hashes that the package index gives them: of x86-64 and of 64-bit Arm.
///
/// NVRTC is of the CUDA 13.0 line, the oldest that knows every architecture; the disassembler exists from 13.2 on.
const WHEELS: &str = "\
nvidia-cuda-nvrtc==13.0.88 \
 --hash=sha256:ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575 \
 --hash=sha256:d27f20a0ca67a4bb34268a5e951033496c5b74870b868bacd046b1b8e0c3267b
nvidia-cuda-nvdisasm==13.5.37 \
 --hash=sha256:d3fdbdd49fa53e2e4aacd3db8259d052bd2b049ececdcb69e92e083c6728e7ca \
 --hash=sha256:a3a8248074edb9fba63b74c38a5416b712a91ab09e70b8ab37186c3d293fc605
nvidia-cuda-cuobjdump==13.5.37 \
 --hash=sha256:38780fee50863252a0b8926357faa91615ca1c8346490563f33a06100cd73f58 \
 --hash=sha256:f48e3148535365161a268547b285fd01d92c80e4b457275375933825b5fc26b2
";

/// Names in the folder of libraries that nothing needs: a second build of each library.
const SECOND_BUILD: &str = ".alt.so";

/// Whether `cargo nextest` answers.
pub fn has_nextest() -> bool {
    Step::cargo(&["nextest", "--version"]).output().is_ok()
}

/// Installs what is missing. The parts of the toolchain are only asked for, because not every Rust comes from rustup.
pub fn setup() -> Result<(), Failure> {
    Step::cargo(&["fmt", "--version"]).output()?;
    Step::cargo(&["clippy", "--version"]).output()?;
    if has_nextest() {
        return Ok(());
    }
    Step::cargo(&["install", "--locked", "cargo-nextest"]).run()
}

/// Fetches NVRTC and the disassembler where they are not there yet.
pub fn setup_cuda() -> Result<(), Failure> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let Some(toolchain) = toolchain_dir(variable) else {
        let path = PathBuf::from("coulis/toolchain");
        let why = "none of COULIS_CACHE_DIR, XDG_CACHE_HOME and HOME says where";
        return Err(Failure::File { path, source: std::io::Error::other(why) });
    };
    let target = toolchain.join("cuda");
    let stamp = target.join("wheels.txt");
    if fs::read_to_string(&stamp).is_ok_and(|wheels| wheels == WHEELS) {
        return Ok(());
    }
    // Built next to the target and renamed, so that what is there is whole.
    let new = toolchain.join(format!(".cuda-{}", std::process::id()));
    let outcome = fetch(&new).and_then(|()| replace(&new, &target));
    if outcome.is_err() {
        // What is left of a failed attempt is of no use; that it cannot be removed says nothing new.
        let _ = fs::remove_dir_all(&new);
    }
    outcome
}

fn fetch(folder: &Path) -> Result<(), Failure> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| Failure::File { path, source }
    };
    fs::create_dir_all(folder).map_err(at(folder))?;
    let wheels = folder.join("wheels.txt");
    fs::write(&wheels, WHEELS).map_err(at(&wheels))?;
    let (target, list) = (folder.display().to_string(), wheels.display().to_string());
    Step::program(
        "python3",
        &[
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--root-user-action=ignore",
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
            "--target",
            &target,
            "--requirement",
            &list,
        ],
    )
    .run()?;
    let libraries = folder.join("nvidia/cu13/lib");
    for entry in fs::read_dir(&libraries).map_err(at(&libraries))?.flatten() {
        if entry.file_name().to_string_lossy().contains(SECOND_BUILD) {
            fs::remove_file(entry.path()).map_err(at(&entry.path()))?;
        }
    }
    Ok(())
}

fn replace(new: &Path, target: &Path) -> Result<(), Failure> {
    let at = |source| Failure::File { path: target.to_owned(), source };
    if target.exists() {
        fs::remove_dir_all(target).map_err(at)?;
    }
    fs::rename(new, target).map_err(at)
}

/// The folder where coulis looks for what is fetched; the same as `Environment::toolchain_dir` of coulis-runtime.
fn toolchain_dir(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let cache = variable("COULIS_CACHE_DIR")
        .or_else(|| variable("XDG_CACHE_HOME").filter(|dir| dir.is_absolute()).map(|dir| dir.join("coulis")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/coulis")))?;
    Some(cache.join("toolchain"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use coulis_runtime::Environment;

    #[test]
    fn wheels_go_where_coulis_looks_for_them() {
        for set in [
            &[("COULIS_CACHE_DIR", "/c"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")][..],
            &[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")],
            &[("XDG_CACHE_HOME", "relative"), ("HOME", "/h")],
            &[("HOME", "/h")],
            &[],
        ] {
            let get = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
            let environment = Environment {
                coulis_cache_dir: get("COULIS_CACHE_DIR").map(Into::into),
                xdg_cache_home: get("XDG_CACHE_HOME").map(Into::into),
                home: get("HOME").map(Into::into),
                ..Environment::default()
            };
            assert_eq!(toolchain_dir(|name| get(name).map(PathBuf::from)), environment.toolchain_dir());
        }
    }

    #[test]
    fn every_wheel_has_a_version_and_two_hashes() {
        assert_eq!(WHEELS.lines().count(), 3);
        for line in WHEELS.lines() {
            assert!(line.contains("==") && line.matches("--hash=sha256:").count() == 2, "{line}");
        }
    }
}
