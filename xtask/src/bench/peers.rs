//! The other libraries, behind the server `bench/peers_cpu.py`: one question a line, one answer a line.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::target_folder;
use crate::step::{Failure, Step, root};

/// What the server times, where it is installed.
const PACKAGES: [&str; 3] = ["numpy", "jax", "ml_dtypes"];

/// A running server.
pub struct Peers {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    versions: Vec<(String, String)>,
}

/// Best and median milliseconds of a peer's call, or why it cannot make the call.
pub type Timed = Result<(f64, f64), String>;

impl Peers {
    /// Starts the server with the Python of `COULIS_BENCH_PYTHON`, or with one that is set up under the target folder.
    pub fn start() -> Result<Peers, Failure> {
        let python = python()?;
        let program = python.to_string_lossy().into_owned();
        let no_program = |source| Failure::NoProgram { program: program.clone(), source };
        let mut child = Command::new(&python)
            .arg(root().join("bench/peers_cpu.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(no_program)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (questions, answers) = pipes.ok_or_else(|| no_program(std::io::ErrorKind::BrokenPipe.into()))?;
        let answers = BufReader::new(answers);
        let mut peers = Peers { child, questions: Some(questions), answers, versions: Vec::new() };
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

    /// Times one library for about so many seconds.
    pub fn time(&mut self, peer: &str, seconds: f64) -> Result<Timed, Failure> {
        let answer = self.ask(&json!({ "do": "time", "peer": peer, "seconds": seconds }))?;
        Ok(match (answer["ms"].as_f64(), answer["median_ms"].as_f64()) {
            (Some(best), Some(median)) => Ok((best, median)),
            _ => Err(answer["error"].as_str().unwrap_or("no answer").to_owned()),
        })
    }

    /// Frees the input.
    pub fn drop_input(&mut self) -> Result<(), Failure> {
        self.ask(&json!({ "do": "drop" })).map(|_| ())
    }

    fn ask(&mut self, question: &Value) -> Result<Value, Failure> {
        let failed = |said: String| Failure::Answer { program: "bench/peers_cpu.py".to_owned(), said };
        let mut line = String::new();
        let asked = match &mut self.questions {
            Some(pipe) => writeln!(pipe, "{question}").and_then(|()| pipe.flush()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        let read = asked.and_then(|()| self.answers.read_line(&mut line));
        read.map_err(|error| failed(error.to_string()))?;
        serde_json::from_str(&line).map_err(|_| failed(line))
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // The server ends where its questions end.
        self.questions = None;
        let _ = self.child.wait();
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
