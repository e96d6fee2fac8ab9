//! A program that answers each line with a line of JSON.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::step::Failure;

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
