//! Why a command ends without success, and the exit code that says so.

use coulis::Error;

/// Why a command stops.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The facade refused: a wrong request, an unsupported one, or a fault of ours.
    #[error(transparent)]
    Refused(#[from] Error),
    /// It ran, and a result is wrong.
    #[error("error[verify]: {0}")]
    Refuted(String),
    /// It ran, and the simulator found violations.
    #[error("{0}error[sim]: the kernel has violations")]
    Violated(String),
    /// Standard output is closed or full.
    #[error("error[write/stdout]: cannot write to standard output: {0}")]
    Stdout(std::io::Error),
}

impl Failure {
    /// The exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Refused(_) => 2,
            Failure::Refuted(_) | Failure::Violated(_) => 1,
            // A reader that closes the pipe early has what it wanted.
            Failure::Stdout(error) if error.kind() == std::io::ErrorKind::BrokenPipe => 0,
            Failure::Stdout(_) => 2,
        }
    }

    /// What to say on standard error, if anything.
    pub fn text(&self) -> Option<String> {
        if self.exit_code() == 0 { None } else { Some(self.to_string()) }
    }
}

impl From<coulis::ReadError> for Failure {
    fn from(error: coulis::ReadError) -> Failure {
        Failure::Refused(error.into())
    }
}

impl From<coulis::WriteError> for Failure {
    fn from(error: coulis::WriteError) -> Failure {
        Failure::Refused(error.into())
    }
}

/// The answer of a command whose subject does not exist yet.
pub fn not_built(command: &str) -> Failure {
    Failure::Refused(Error::unsupported("cli/not-built", format!("`coulis {command}` is not built yet")))
}
