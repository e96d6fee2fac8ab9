//! The C compiler: where it is looked for, which one it is, and how it is called.
//!
//! Order: the caller's option, `COULIS_CC`, `CC`, then `cc`, `gcc`, `clang`, `clang-NN` and `zig cc` in `PATH`. The
//! first two are decisive: `COULIS_CC=/nonexistent` means that there is no compiler.

use std::ffi::{OsStr, OsString};
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use coulis_exec::Level;
use coulis_ir::interrupt;

use crate::environment::{Environment, is_executable};
use crate::error::RuntimeError;
use crate::recipe::stamp;

/// Flags of every compilation. Integers wrap, floats are never reassociated or contracted, and memory may be looked
/// at as another type. Vectors are explicit in the text, so `-O2` is enough: a row sum ran no faster with `-O3`.
pub const FLAGS: &[&str] = &[
    "-x",
    "c",
    "-std=gnu11",
    "-O2",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fPIC",
    "-shared",
    "-pipe",
    "-w",
];

/// The flag that says what code may use of the CPU: this very one, unless it is to use less than that has.
fn machine(level: Level) -> &'static str {
    match level {
        _ if level == Level::detect() => "-march=native",
        Level::Avx512 => "-march=x86-64-v4",
        Level::Avx2 => "-march=x86-64-v3",
        Level::Baseline if cfg!(target_arch = "x86_64") => "-march=x86-64",
        Level::Baseline => "-march=native",
    }
}

/// What gcc says of itself.
const OF_GCC: &str = "Free Software Foundation";
/// A flag of gcc's: a loop of stores stays one. A call of `memset` in the rest of some rows, across which no vector stays in a
/// register, made whole blocks of rows of 3 take 1.25 times as long.
const NO_CALLS: &str = "-fno-tree-loop-distribute-patterns";

/// The newest `clang-NN` that is tried.
const NEWEST_CLANG: u32 = 30;
/// The oldest one.
const OLDEST_CLANG: u32 = 11;

/// No C compiler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompilerError {
    /// The compiler that was named does not run.
    #[error("the C compiler `{command}` of {origin} does not run: {reason}")]
    Named {
        /// The command as given.
        command: String,
        /// `the options` or `COULIS_CC`.
        origin: &'static str,
        /// What was found.
        reason: String,
    },
    /// None of the usual ones is there.
    #[error("no C compiler was found; looked for {}", looked.join(", "))]
    NotFound {
        /// The commands, in the order in which they were tried.
        looked: Vec<String>,
    },
}

/// A C compiler that answered `--version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// Program and first arguments: `/usr/bin/cc`, or `/usr/bin/zig cc`.
    command: Vec<OsString>,
    /// What `--version` wrote.
    identity: String,
    /// What tells the program's file from any other, where its identity depends on that file alone.
    stamp: Option<String>,
    /// Whether the identity was known without running the program.
    is_recalled: bool,
}

/// What an earlier process found a compiler's identity to be, by its stamp.
pub type Recall<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The stamp of a program that is gcc or clang itself. A script or a launcher runs something else, of which its own
/// file tells nothing.
fn own_stamp(file: &Path) -> Option<String> {
    let file = file.canonicalize().ok()?;
    let name = file.file_name()?.to_string_lossy().into_owned();
    let mut head = [0; 4];
    std::fs::File::open(&file).and_then(|mut f| f.read_exact(&mut head)).ok()?;
    let is_program = head == *b"\x7fELF";
    (is_program && (name.contains("gcc") || name.contains("clang"))).then(|| stamp(&file)).flatten()
}

impl Compiler {
    /// The first compiler in the order above that runs.
    pub fn find(option: Option<&OsStr>, environment: &Environment) -> Result<Compiler, CompilerError> {
        Compiler::find_known(option, environment, &|_| None)
    }

    /// As [`Compiler::find`]; a compiler whose identity is recalled is not run.
    pub fn find_known(
        option: Option<&OsStr>,
        environment: &Environment,
        recall: Recall<'_>,
    ) -> Result<Compiler, CompilerError> {
        let named = [(option, "the options"), (environment.coulis_cc.as_deref(), "COULIS_CC")];
        for (command, origin) in named {
            let Some(command) = command else { continue };
            return Compiler::named(command, environment, recall).map_err(|reason| CompilerError::Named {
                command: command.to_string_lossy().into_owned(),
                origin,
                reason,
            });
        }
        let mut looked = Vec::new();
        if let Some(command) = &environment.cc {
            looked.push(format!("CC ({})", command.to_string_lossy()));
            if let Ok(compiler) = Compiler::named(command, environment, recall) {
                return Ok(compiler);
            }
        }
        let numbered = (OLDEST_CLANG..=NEWEST_CLANG).rev().map(|n| format!("clang-{n}"));
        let usual = ["cc", "gcc", "clang"].map(str::to_owned).into_iter();
        for command in usual.chain(numbered).chain(["zig cc".to_owned()]) {
            if let Ok(compiler) = Compiler::named(OsStr::new(&command), environment, recall) {
                return Ok(compiler);
            }
            looked.push(command);
        }
        let oldest = format!("clang-{OLDEST_CLANG}");
        let is_between =
            |name: &String| name.starts_with("clang-") && *name != oldest && !name.ends_with("-30");
        looked.retain(|name| !is_between(name));
        Err(CompilerError::NotFound { looked })
    }

    /// The compiler of that command: a file, a name in `PATH`, or either with arguments after spaces.
    fn named(command: &OsStr, environment: &Environment, recall: Recall<'_>) -> Result<Compiler, String> {
        let words: Vec<OsString> = if Path::new(command).is_file() {
            vec![command.to_owned()]
        } else {
            command.to_string_lossy().split_whitespace().map(OsString::from).collect()
        };
        let (program, arguments) = words.split_first().ok_or("the command is empty")?;
        let file = if Path::new(program).components().count() > 1 {
            PathBuf::from(program)
        } else {
            let name = program.to_string_lossy();
            environment.find_program(&name).ok_or_else(|| format!("`{name}` is not in PATH"))?
        };
        if !is_executable(&file) {
            return Err(format!("{} is not an executable file", file.display()));
        }
        let stamp = if arguments.is_empty() { own_stamp(&file) } else { None };
        let mut command = vec![file.into_os_string()];
        command.extend(arguments.iter().cloned());
        if let Some(identity) = stamp.as_deref().and_then(recall) {
            return Ok(Compiler { command, identity, stamp, is_recalled: true });
        }
        let output = Command::new(&command[0])
            .args(&command[1..])
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("`--version` ends with {}", output.status));
        }
        let identity = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(Compiler { command, identity, stamp, is_recalled: false })
    }

    /// The stamp under which the identity is worth keeping for other processes; `None` where it is kept already, or
    /// depends on more than the program's file.
    pub fn news(&self) -> Option<&str> {
        self.stamp.as_deref().filter(|_| !self.is_recalled)
    }

    /// What `--version` wrote.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The command with its first arguments, for messages.
    pub fn command(&self) -> String {
        self.command.iter().map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    /// All flags of a compilation, output aside.
    pub fn flags(&self, level: Level) -> Vec<&'static str> {
        let mut flags = FLAGS.to_vec();
        flags.push(machine(level));
        if self.identity.contains(OF_GCC) {
            flags.push(NO_CALLS);
        }
        if self.command.len() > 1 {
            // zig checks for undefined behaviour unless told not to.
            flags.push("-fno-sanitize=all");
        }
        flags
    }

    /// Compiles `text` for a CPU of that level to the shared library `output`. Where work of this thread can be
    /// interrupted, an interrupt ends the compiler too.
    pub fn compile(&self, kernel: &str, text: &str, level: Level, output: &Path) -> Result<(), RuntimeError> {
        let io = |source| RuntimeError::CompileIo { kernel: kernel.to_owned(), source };
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).args(self.flags(level)).arg("-o").arg(output).args(["-", "-lm"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        if interrupt::is_watched() {
            // The terminal's Ctrl-C is for this process, which ends the compiler and all that it started.
            command.process_group(0);
        }
        let mut child = command.spawn().map_err(io)?;
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        // A compiler that ends early closes the pipe; its own message says more than the broken pipe does.
        let talk = move || -> (std::io::Result<()>, Vec<u8>) {
            let written = stdin.map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()));
            let mut words = Vec::new();
            let read = stderr.map_or(Ok(0), |mut stderr| stderr.read_to_end(&mut words));
            (written.and(read.map(drop)), words)
        };
        let (written, words) = if interrupt::is_watched() { attend(&child, talk) } else { talk() };
        let status = child.wait().map_err(io)?;
        if interrupt::is_asked() {
            return Err(RuntimeError::Interrupted { kernel: kernel.to_owned() });
        }
        let failed = |stderr: String| RuntimeError::CompileFailed {
            kernel: kernel.to_owned(),
            compiler: self.command(),
            status: status.to_string(),
            stderr,
        };
        if !status.success() {
            return Err(failed(String::from_utf8_lossy(&words).trim().to_owned()));
        }
        if !output.exists() {
            return Err(failed("it wrote no library".to_owned()));
        }
        written.map_err(io)
    }
}

/// How long an interrupt may go unheard.
const ATTENTION: Duration = Duration::from_millis(20);

/// Talks to `child`, which leads a group of processes, on another thread; an interrupt of this one ends the group,
/// and with it the talk.
fn attend<T: Send>(child: &Child, talk: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<()>();
        let talk = scope.spawn(move || {
            // Dropped with the end of the talk.
            let _done = done;
            talk()
        });
        while is_done.recv_timeout(ATTENTION) == Err(RecvTimeoutError::Timeout) {
            if let (true, Ok(group)) = (interrupt::is_asked(), libc::pid_t::try_from(child.id())) {
                // SAFETY: the child has not been waited for, so that the number is still its own.
                unsafe { libc::kill(-group, libc::SIGKILL) };
            }
        }
        // A panic of a thread goes on in the one that waits for it.
        talk.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
