//! Steps: programs run in the project's root, announced before and timed after.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Why a command of xtask stops.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A program ran and said no.
    #[error("`{line}` failed")]
    Program {
        /// The command line.
        line: String,
    },
    /// A program that could not be started.
    #[error("`{program}` could not be started: {source}")]
    NoProgram {
        /// The program.
        program: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file that could not be read or written.
    #[error("`{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file of a primitive without the parts of its example, or in another order of words than is read.
    #[error("`{}` holds no `before`, `call` and `after` as string literals", path.display())]
    Example {
        /// The file.
        path: PathBuf,
    },
    /// Tidy found faults; they are printed already.
    #[error("{count} faults; each line above names the file and the rule")]
    Untidy {
        /// How many.
        count: usize,
    },
    /// An argument that the command does not take.
    #[error("unknown argument `{argument}`; legal: {legal}")]
    Argument {
        /// The argument.
        argument: String,
        /// What is legal.
        legal: &'static str,
    },
    /// What cargo says about the workspace is not as expected.
    #[error("`cargo metadata` answered without `{missing}`")]
    Metadata {
        /// The missing part.
        missing: &'static str,
    },
    /// Files that are larger together than allowed.
    #[error("the files have {total} bytes together; {limit} are allowed")]
    TooLarge {
        /// Bytes of all.
        total: u64,
        /// Bytes at most.
        limit: u64,
    },
    /// A program that ran and answered something else than expected.
    #[error("`{program}` answered `{}`", said.trim())]
    Answer {
        /// The program.
        program: String,
        /// Its answer.
        said: String,
    },
}

/// The project's root folder: the one that this was built in, or the current one on a machine that does not have it.
/// A folder of that name is not enough: tests that were built there may have made it.
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = own.parent().unwrap_or(own);
    if built.join("Cargo.toml").is_file() {
        built.to_owned()
    } else {
        std::env::current_dir().unwrap_or_default()
    }
}

/// One program to run.
pub struct Step {
    words: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

impl Step {
    /// The cargo that runs xtask, with these words.
    pub fn cargo(words: &[&str]) -> Step {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let words = std::iter::once(cargo).chain(words.iter().map(|&word| word.to_owned())).collect();
        Step { words, variables: Vec::new() }
    }

    /// Any program with these words.
    pub fn program(program: &str, words: &[&str]) -> Step {
        let words = std::iter::once(program).chain(words.iter().copied()).map(str::to_owned).collect();
        Step { words, variables: Vec::new() }
    }

    /// The same with more words.
    pub fn words(mut self, words: &[String]) -> Step {
        self.words.extend_from_slice(words);
        self
    }

    /// The same with an environment variable.
    pub fn variable(mut self, name: &'static str, value: &str) -> Step {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// What a user would type.
    fn line(&self) -> String {
        let program = Path::new(&self.words[0]).file_name().map(|name| name.to_string_lossy().into_owned());
        let variables = self.variables.iter().map(|(name, value)| format!("{name}={value}"));
        variables.chain(program).chain(self.words[1..].iter().cloned()).collect::<Vec<_>>().join(" ")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).current_dir(root());
        command.envs(self.variables.iter().map(|(name, value)| (*name, value)));
        command
    }

    fn no_program(&self, source: std::io::Error) -> Failure {
        Failure::NoProgram { program: self.words[0].clone(), source }
    }

    /// Runs it with its output shown.
    pub fn run(&self) -> Result<(), Failure> {
        let line = self.line();
        eprintln!("== {line}");
        let start = Instant::now();
        let status = self.command().status().map_err(|source| self.no_program(source))?;
        eprintln!("== {:.1} s", start.elapsed().as_secs_f64());
        if status.success() { Ok(()) } else { Err(Failure::Program { line }) }
    }

    /// Runs it silently and gives its standard output.
    pub fn output(&self) -> Result<String, Failure> {
        let output = self.command().output().map_err(|source| self.no_program(source))?;
        if !output.status.success() {
            return Err(Failure::Program { line: self.line() });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The same of a program whose answer counts whatever its exit code is; what it says in addition to the
    /// answer is shown.
    pub fn said(&self) -> Result<String, Failure> {
        let mut command = self.command();
        command.stderr(std::process::Stdio::inherit());
        let output = command.output().map_err(|source| self.no_program(source))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The text of a file under the root.
pub fn read_text(path: &str) -> Result<String, Failure> {
    let path = root().join(path);
    std::fs::read_to_string(&path).map_err(|source| Failure::File { path, source })
}
