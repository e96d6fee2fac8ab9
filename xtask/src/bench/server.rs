//! A program that answers each line with a line of JSON.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::step::Failure;

/// The least time that a program rests, and the most.
const REST: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));

/// A running program.
pub struct Server {
    child: Child,
    name: String,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Server {
    /// Starts a program that goes by a name in errors.
    pub fn start(command: &mut Command, name: &str) -> Result<Server, Failure> {
        let no_program = |source| Failure::NoProgram { program: name.to_owned(), source };
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(no_program)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (questions, answers) = pipes.ok_or_else(|| no_program(std::io::ErrorKind::BrokenPipe.into()))?;
        let answers = BufReader::new(answers);
        Ok(Server { child, name: name.to_owned(), questions: Some(questions), answers })
    }

    /// The answer to a line.
    pub fn ask(&mut self, question: &str) -> Result<Value, Failure> {
        let asked = match &mut self.questions {
            Some(pipe) => writeln!(pipe, "{question}").and_then(|()| pipe.flush()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        match asked {
            Ok(()) => self.next(),
            Err(error) => Err(Failure::Answer { program: self.name.clone(), said: error.to_string() }),
        }
    }

    /// Waits until none of its threads runs, as far as the system tells. Threads that wait for work by
    /// spinning do so for some milliseconds: 8 to 9 those of GNU OpenMP, which PyTorch uses.
    pub fn rest(&self) {
        let start = Instant::now();
        loop {
            sleep(REST.0);
            if start.elapsed() > REST.1 || !is_running(self.child.id()) {
                return;
            }
        }
    }

    /// The next line that it says by itself.
    pub fn next(&mut self) -> Result<Value, Failure> {
        let failed = |said: String| Failure::Answer { program: self.name.clone(), said };
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|error| failed(error.to_string()))?;
        serde_json::from_str(&line).map_err(|_| failed(line))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends where its questions end.
        self.questions = None;
        let _ = self.child.wait();
    }
}

/// Whether a thread of a process runs or waits for a core; `false` where the system does not tell.
fn is_running(process: u32) -> bool {
    let tasks = std::fs::read_dir(Path::new("/proc").join(process.to_string()).join("task"));
    tasks.into_iter().flatten().flatten().any(|task| {
        let line = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        // The state follows the name, which is in parentheses and may hold some.
        line.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'))
    })
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_program_rests_when_it_waits_for_a_question_and_not_while_it_computes() {
        let start = |script: &str| Server::start(Command::new("sh").args(["-c", script]), "sh").unwrap();
        let until = |wanted: bool, server: &Server| {
            let start = Instant::now();
            while is_running(server.child.id()) != wanted {
                assert!(start.elapsed() < Duration::from_secs(60));
            }
        };
        let waits = start("read line");
        until(false, &waits);
        waits.rest();
        let mut computes = start("while :; do :; done");
        until(true, &computes);
        computes.child.kill().unwrap();
    }
}
