//! The tests of the Python package: its wheel in an environment of its own, and pytest there.
//!
//! The wheel is built with the profile of the other tests, so that what they compiled is used again;
//! `--release` optimises it, as `pip install .` does, and leaves it in `dist/` for timings and for machines
//! without cargo. Where there is no Python 3.10 or newer with pip, or no package index, the step prints SKIP
//! and why.

use std::path::{Path, PathBuf};

use super::Command;
use crate::step::{Failure, Step, root};

/// The command.
pub const COMMAND: Command = Command {
    name: "python",
    about: "build the wheel of the Python package into an environment of its own and run its tests there; --release \
            optimises it and keeps it in dist/, --every tests it on every Python that is there",
    run: |words| {
        let (mut profile, mut pythons) = (Profile::Dev, Pythons::Newest);
        for word in words {
            match word.as_str() {
                "--release" => profile = Profile::Release,
                "--every" => pythons = Pythons::Every,
                _ => return Err(Failure::Argument { argument: word.clone(), legal: "--release, --every" }),
            }
        }
        python(profile, pythons)
    },
};

/// On which Pythons the tests run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pythons {
    /// The newest one.
    Newest,
    /// All that are there: the wheel is one for all of them.
    Every,
}

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
const PACKAGES: [&str; 9] = [
    "maturin>=1.16,<2",
    "numpy",
    "mypy",
    "pytest",
    "hypothesis",
    "array-api-strict",
    "ml_dtypes",
    "pyarrow",
    "dask[array]",
];

/// Builds, installs and tests.
pub fn python(profile: Profile, pythons: Pythons) -> Result<(), Failure> {
    let mut usable: Vec<&str> = Vec::new();
    for name in PYTHONS {
        if Step::program(name, &["-c", IS_USABLE]).output().is_ok() {
            usable.push(name);
        } else if pythons == Pythons::Every {
            eprintln!("SKIP {name}: it is not there, or makes no environments");
        }
    }
    // The last name is that of one of the others.
    if usable.len() > 1 {
        usable.retain(|name| *name != "python3");
    }
    if pythons == Pythons::Newest {
        usable.truncate(1);
    }
    let Some((newest, others)) = usable.split_first() else {
        eprintln!("SKIP python: there is no Python 3.10 or newer that makes environments");
        return Ok(());
    };
    let Some(first) = Environment::made(newest, "python")? else { return Ok(()) };
    let wheel = build(profile, &first)?;
    first.test(&wheel)?;
    for name in others {
        if let Some(other) = Environment::made(name, name)? {
            other.test(&wheel)?;
        }
    }
    Ok(())
}

/// A Python with the packages that the tests need.
struct Environment(PathBuf);

impl Environment {
    /// The environment of that name under `target/`, made from that Python; `None` where pip or its index are not there.
    fn made(python: &str, name: &str) -> Result<Option<Environment>, Failure> {
        let environment = Environment(root().join("target").join(name));
        let stamp = environment.0.join("packages.txt");
        let packages = PACKAGES.join("\n");
        if std::fs::read_to_string(&stamp).is_ok_and(|found| found == packages) {
            return Ok(Some(environment));
        }
        let path = environment.0.display().to_string();
        let made = Step::program(python, &["-m", "venv", "--clear", &path]).run();
        let packages_of = PACKAGES.map(str::to_owned);
        if let Err(failure) = made.and_then(|()| environment.pip(&[]).words(&packages_of).run()) {
            eprintln!("SKIP {python}: {failure}; the tests need pip and its index");
            return Ok(None);
        }
        std::fs::write(&stamp, &packages).map_err(|source| Failure::File { path: stamp, source })?;
        Ok(Some(environment))
    }

    fn program(&self, name: &str) -> String {
        self.0.join(if cfg!(windows) { "Scripts" } else { "bin" }).join(name).display().to_string()
    }

    fn pip(&self, words: &[&str]) -> Step {
        let quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        Step::program(&self.program("python"), &[&quiet, words].concat())
    }

    /// Installs the wheel and runs the tests.
    fn test(&self, wheel: &Path) -> Result<(), Failure> {
        self.pip(&["--force-reinstall", "--no-deps", &wheel.display().to_string()]).run()?;
        Step::program(&self.program("python"), &["-m", "pytest", "-p", "no:cacheprovider"]).run()
    }
}

/// The wheel, which replaces those that were there.
fn build(profile: Profile, environment: &Environment) -> Result<PathBuf, Failure> {
    let (wheels, name) = match profile {
        Profile::Dev => (environment.0.join("wheels"), "dev"),
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
    let (folder, python) = (wheels.display().to_string(), environment.program("python"));
    let words = ["build", "--profile", name, "--interpreter", &python, "--out", &folder];
    Step::program(&environment.program("maturin"), &words).run()?;
    let missing = || std::io::Error::new(std::io::ErrorKind::NotFound, "maturin left no wheel");
    found().pop().ok_or_else(|| Failure::File { path: wheels.clone(), source: missing() })
}
