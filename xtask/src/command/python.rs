//! The tests of the Python package: its wheel in an environment of its own, and pytest there.
//!
//! The wheel is built with the profile of the other tests, so that what they compiled is used again; `--release` optimises it,
//! as `pip install .` does, and leaves it in `dist/` for timings and for machines without cargo. Where there is no Python
//! 3.10 or newer with pip, or no package index, the step prints SKIP and why.

use std::path::{Path, PathBuf};

use super::Command;
use crate::step::{Failure, Step, root};

/// The command.
pub const COMMAND: Command = Command {
    name: "python",
    about: "build the wheel of the Python package into an environment of its own and run its tests there; --release optimises it and keeps it in dist/",
    run: |words| match words {
        [] => python(Profile::Dev),
        [word] if word == "--release" => python(Profile::Release),
        [word, ..] => Err(Failure::Argument { argument: word.clone(), legal: "--release" }),
    },
};

/// How the wheel is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// As the other tests are.
    Dev,
    /// Optimised.
    Release,
}

/// Pythons by the names under which systems have them, newest first.
const PYTHONS: [&str; 6] = ["python3.14", "python3.13", "python3.12", "python3.11", "python3.10", "python3"];

/// Whether a Python is new enough and can make environments.
const IS_USABLE: &str = "import sys, venv, ensurepip; assert sys.version_info >= (3, 10)";

/// What the tests need. Libraries that are large are not among them; their tests print SKIP where they are not there.
const PACKAGES: [&str; 8] = [
    "maturin>=1.16,<2",
    "numpy",
    "pytest",
    "hypothesis",
    "array-api-strict",
    "ml_dtypes",
    "pyarrow",
    "dask[array]",
];

/// Builds, installs and tests.
pub fn python(profile: Profile) -> Result<(), Failure> {
    let Some(python) = PYTHONS.iter().find(|name| Step::program(name, &["-c", IS_USABLE]).output().is_ok())
    else {
        eprintln!("SKIP python: there is no Python 3.10 or newer that makes environments");
        return Ok(());
    };
    let environment = root().join("target/python");
    let own = |name: &str| -> String {
        let folder: PathBuf = environment.join(if cfg!(windows) { "Scripts" } else { "bin" });
        folder.join(name).display().to_string()
    };
    let stamp = environment.join("packages.txt");
    let packages = PACKAGES.join("\n");
    if !std::fs::read_to_string(&stamp).is_ok_and(|found| found == packages) {
        let path = environment.display().to_string();
        let made = Step::program(python, &["-m", "venv", "--clear", &path]).run();
        let words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let installed = made
            .and_then(|()| Step::program(&own("python"), &words).words(&PACKAGES.map(str::to_owned)).run());
        if let Err(failure) = installed {
            eprintln!("SKIP python: {failure}; the tests need pip and its index");
            return Ok(());
        }
        std::fs::write(&stamp, &packages).map_err(|source| Failure::File { path: stamp, source })?;
    }
    let (wheels, name) = match profile {
        Profile::Dev => (environment.join("wheels"), "dev"),
        Profile::Release => (root().join("dist"), "release"),
    };
    let is_wheel = |path: &Path| path.extension().is_some_and(|extension| extension == "whl");
    let found = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&wheels).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| is_wheel(path)).collect()
    };
    for path in found() {
        std::fs::remove_file(&path).map_err(|source| Failure::File { path: path.clone(), source })?;
    }
    let folder = wheels.display().to_string();
    let words = ["build", "--profile", name, "--interpreter", &own("python"), "--out", &folder];
    Step::program(&own("maturin"), &words).run()?;
    let wheel: Vec<String> = found().iter().map(|path| path.display().to_string()).collect();
    let words =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-deps"];
    Step::program(&own("python"), &words).words(&wheel).run()?;
    Step::program(&own("python"), &["-m", "pytest", "-p", "no:cacheprovider"]).run()
}
