//! The other libraries, behind the server `bench/peers_cpu.py`: one question a line, one answer a line.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::server::Server;
use super::target_folder;
use crate::step::{Failure, Step, root};

/// The server.
const SERVER: &str = "bench/peers_cpu.py";

/// What the server times, where it is installed.
const PACKAGES: [&str; 3] = ["numpy", "jax", "ml_dtypes"];

/// A running server.
pub struct Peers {
    server: Server,
    versions: Vec<(String, String)>,
}

/// Milliseconds of a peer's call, or why it cannot make the call.
pub type Timed = Result<f64, String>;

impl Peers {
    /// Starts the server with the Python of `COULIS_BENCH_PYTHON`, or with one that is set up under the target folder.
    pub fn start() -> Result<Peers, Failure> {
        let mut command = Command::new(python()?);
        let server = Server::start(command.arg(root().join(SERVER)), SERVER)?;
        let mut peers = Peers { server, versions: Vec::new() };
        let hello = peers.ask(&json!({ "do": "hello" }))?;
        if let Some(found) = hello["peers"].as_object() {
            let version = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            peers.versions = found.iter().map(|(name, value)| (name.clone(), version(value))).collect();
        }
        Ok(peers)
    }

    /// Names and versions of the libraries.
    pub fn versions(&self) -> &[(String, String)] {
        &self.versions
    }

    /// Makes the input of a workload.
    pub fn make(&mut self, dtype: &Value, shape: &Value, axes: &Value, ops: &Value) -> Result<(), Failure> {
        let question = json!({ "do": "make", "dtype": dtype, "shape": shape, "axes": axes, "ops": ops });
        self.ask(&question).map(|_| ())
    }

    /// Times one library in a turn: the best of a few samples. The first time of a workload, the call is made ready.
    pub fn time(&mut self, peer: &str) -> Result<Timed, Failure> {
        let answer = self.ask(&json!({ "do": "time", "peer": peer }))?;
        let why = || answer["error"].as_str().unwrap_or("no answer").to_owned();
        Ok(answer["ms"].as_f64().ok_or_else(why))
    }

    /// Waits until none of their threads runs.
    pub fn rest(&self) {
        self.server.rest();
    }

    /// Frees the input.
    pub fn drop_input(&mut self) -> Result<(), Failure> {
        self.ask(&json!({ "do": "drop" })).map(|_| ())
    }

    fn ask(&mut self, question: &Value) -> Result<Value, Failure> {
        self.server.ask(&question.to_string())
    }
}

/// The Python that has the libraries.
fn python() -> Result<PathBuf, Failure> {
    if let Some(given) = std::env::var_os("COULIS_BENCH_PYTHON") {
        return Ok(PathBuf::from(given));
    }
    let folder = target_folder().join("bench-venv");
    let python = folder.join("bin/python");
    if !python.exists() {
        let folder = folder.to_string_lossy().into_owned();
        Step::program("python3", &["-m", "venv", &folder]).run()?;
    }
    let program = python.to_string_lossy().into_owned();
    let imports = format!("import {}", PACKAGES.join(", "));
    if Step::program(&program, &["-c", &imports]).output().is_err() {
        let words: Vec<&str> = ["-m", "pip", "install", "--quiet"].into_iter().chain(PACKAGES).collect();
        Step::program(&program, &words).run()?;
    }
    Ok(python)
}
