//! The one error type of the stable interface, and how it reads.
//!
//! Lower layers report kinds and values; this is where they become text. Every error has an owner: the user (a
//! wrong axis, file, dtype, schedule), unsupported (legal, but nothing here does it), or us (a bug).

use std::fmt;

/// Whose move it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The request is wrong; the message says what is legal.
    User,
    /// The request is right and nothing here does it (yet, or on this machine).
    Unsupported,
    /// A fault of coulis; the message says what to attach to a report.
    Bug,
}

/// An error of any door.
#[derive(Debug)]
pub struct Error {
    /// Whose move it is.
    pub owner: Owner,
    /// Where it arose, as `reduce/axis` or `read/npy`.
    pub code: &'static str,
    /// What was asked, what was found, what is legal.
    pub message: String,
    /// Further lines: what to do, what was looked at.
    pub help: Vec<String>,
}

impl Error {
    /// A mistake of the caller.
    pub fn user(code: &'static str, message: impl fmt::Display) -> Error {
        Error { owner: Owner::User, code, message: message.to_string(), help: Vec::new() }
    }

    /// Something that is legal and not there.
    pub fn unsupported(code: &'static str, message: impl fmt::Display) -> Error {
        Error { owner: Owner::Unsupported, code, message: message.to_string(), help: Vec::new() }
    }

    /// A fault of ours.
    pub fn bug(code: &'static str, message: impl fmt::Display) -> Error {
        let help = vec!["this is a fault of coulis; please report it with this text".to_owned()];
        Error { owner: Owner::Bug, code, message: message.to_string(), help }
    }

    /// The same error with one more line.
    pub fn with_help(mut self, line: impl Into<String>) -> Error {
        self.help.push(line.into());
        self
    }
}

impl fmt::Display for Error {
    /// `error[code]: message`, then the help lines, indented.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.code, self.message)?;
        for line in &self.help {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

macro_rules! from_error {
    ($ty:ty, $owner:ident, $code:expr) => {
        impl From<$ty> for Error {
            fn from(error: $ty) -> Error {
                Error::$owner($code, error)
            }
        }
    };
}

from_error!(coulis_reducers::UnknownReducer, user, "reduce/op");
from_error!(coulis_reducers::ReducerError, user, "reduce/op");
from_error!(coulis_reducers::ProductError, user, "reduce/op");
from_error!(coulis_reducers::NormalizationError, user, "normalize/request");
from_error!(coulis_io::ReadError, user, "read");
from_error!(coulis_io::WriteError, user, "write");
from_error!(coulis_io::OutOfMemory, user, "memory");
from_error!(coulis_io::ShapeError, user, "array");
from_error!(crate::bench::SuiteError, user, "bench/suite");
from_error!(coulis_tensor::TensorError, user, "te");
from_error!(coulis_schedule::ScheduleError, user, "schedule");
from_error!(coulis_script::ParseError, user, "text");
from_error!(coulis_plan::PlanError, user, "plan");
from_error!(coulis_runtime::WindowError, bug, "run/window");

impl From<coulis_lower::LowerError> for Error {
    /// A variant that fails on what it accepted is our fault; everything else is about the program.
    fn from(error: coulis_lower::LowerError) -> Error {
        use coulis_lower::LowerError;
        match &error {
            LowerError::Call { error: coulis_tile::TileError::Bug { .. }, .. } => {
                Error::bug("lower/tile", error)
            }
            LowerError::NoThreads => Error::unsupported("lower", error),
            _ => Error::user("lower", error),
        }
    }
}

impl From<coulis_plan::ProblemError> for Error {
    /// An axis that is not there has a code of its own.
    fn from(error: coulis_plan::ProblemError) -> Error {
        use coulis_plan::ProblemError;
        match error {
            ProblemError::AxisOutOfRange { .. } | ProblemError::AxisOfScalar { .. } => {
                Error::user("reduce/axis", error)
            }
            ProblemError::AxisRepeated { .. }
            | ProblemError::Broadcast { .. }
            | ProblemError::TooLarge { .. }
            | ProblemError::NegativeExtent { .. } => Error::user("reduce/shape", error),
        }
    }
}

impl From<coulis_runtime::RuntimeError> for Error {
    /// A kernel that reaches outside, divides by zero or allocates less than nothing is the mistake of who wrote it.
    fn from(error: coulis_runtime::RuntimeError) -> Error {
        use coulis_exec::ExecError;
        use coulis_runtime::RuntimeError;
        match error {
            RuntimeError::Exec(ExecError::OutOfBounds { .. }) => Error::user("run/bounds", error),
            RuntimeError::Exec(ExecError::AliasType { .. }) => Error::user("run/alias", error),
            RuntimeError::DivisionByZero { .. } => Error::user("run/division", error),
            RuntimeError::NegativeLength { .. } => Error::user("run/allocation", error),
            RuntimeError::Exec(ExecError::Allocation { count: ..0, .. }) => {
                Error::user("run/allocation", error)
            }
            RuntimeError::NoSuchLevel { .. } => Error::user("run/cpu", error),
            other if other.is_interrupt() => Error::user("interrupted", other),
            other => Error::unsupported("run", other),
        }
    }
}

impl From<coulis_ir::verify::Faults> for Error {
    fn from(faults: coulis_ir::verify::Faults) -> Error {
        let listing = faults.listing.clone();
        Error { owner: Owner::Bug, code: "verify", message: faults.to_string(), help: vec![listing] }
    }
}
