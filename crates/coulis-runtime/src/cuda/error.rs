//! What can go wrong with CUDA: a library or function that is missing, a code of the driver, a text that NVRTC refuses,
//! a launch that the device does not take.

use std::fmt;
use std::path::PathBuf;

use crate::cuda::plan::LaunchError;
use crate::cuda::search::{Found, Looked};

/// A part of CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryName {
    /// `libcuda`, which comes with the kernel module.
    Driver,
    /// `libnvrtc`, the compiler.
    Nvrtc,
    /// The program `nvdisasm`.
    Disassembler,
}

impl LibraryName {
    /// The file that is looked for.
    pub const fn file(self) -> &'static str {
        match self {
            LibraryName::Driver => "libcuda.so.1",
            LibraryName::Nvrtc => "libnvrtc.so",
            LibraryName::Disassembler => "nvdisasm",
        }
    }

    /// How a user gets it.
    const fn remedy(self) -> &'static str {
        match self {
            LibraryName::Driver => "it comes with the driver of an NVIDIA GPU",
            LibraryName::Nvrtc => {
                "it comes with a CUDA toolkit and with the package nvidia-cuda-nvrtc; COULIS_CUDA_PATH names its folder"
            }
            LibraryName::Disassembler => {
                "it comes with a CUDA toolkit and with the package nvidia-cuda-nvdisasm; COULIS_CUDA_PATH names its folder"
            }
        }
    }
}

impl fmt::Display for LibraryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LibraryName::Driver => "the CUDA driver",
            LibraryName::Nvrtc => "NVRTC",
            LibraryName::Disassembler => "the CUDA disassembler",
        })
    }
}

/// A line of a text that NVRTC refused, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedLine {
    /// Counted from 1.
    pub number: usize,
    /// The line.
    pub text: String,
    /// What NVRTC says.
    pub message: String,
}

/// An error of CUDA.
#[derive(Debug, thiserror::Error)]
pub enum CudaError {
    /// A library or program that was not found.
    #[error("{library} (`{}`) was not found; {}; looked in {}", library.file(), library.remedy(), places(looked))]
    NotFound {
        /// What was looked for.
        library: LibraryName,
        /// Where, in order.
        looked: Vec<Looked>,
    },
    /// A library without a function that is needed.
    #[error("{library} at `{}` has no `{function}`; a newer one is needed", path.display())]
    MissingFunction {
        /// The library.
        library: LibraryName,
        /// Its file.
        path: PathBuf,
        /// The function.
        function: &'static str,
    },
    /// A call of the driver that failed.
    #[error("`{call}` answered {code}, {name}: {meaning}")]
    Driver {
        /// The function.
        call: &'static str,
        /// Its answer.
        code: i32,
        /// The answer's name.
        name: String,
        /// What it means, in the driver's words.
        meaning: String,
    },
    /// A call of NVRTC that failed, refused texts aside.
    #[error("`{call}` answered {code}, {name}{}", said(log))]
    Nvrtc {
        /// The function.
        call: &'static str,
        /// Its answer.
        code: i32,
        /// The answer's name.
        name: &'static str,
        /// What NVRTC logged.
        log: String,
    },
    /// A text that NVRTC refused.
    #[error("NVRTC refused kernel `{kernel}` for {arch}{}", at_line(line, log))]
    Refused {
        /// Kernel name.
        kernel: String,
        /// Architecture.
        arch: String,
        /// The first line with an error, where the log names one.
        line: Option<RefusedLine>,
        /// The whole log.
        log: String,
    },
    /// A text or name that C cannot hold.
    #[error("{what} holds a zero byte")]
    ZeroByte {
        /// What.
        what: &'static str,
    },
    /// No architecture of that name.
    #[error("no CUDA architecture `{arch}`; architectures are {}", legal.join(", "))]
    UnknownArch {
        /// The name that was given.
        arch: String,
        /// All names.
        legal: Vec<&'static str>,
    },
    /// No device of that number.
    #[error("there is no CUDA device {ordinal}; {}", numbers(*count))]
    NoDevice {
        /// The number that was given.
        ordinal: usize,
        /// Devices that there are.
        count: usize,
    },
    /// A device that is older than any that kernels are made for.
    #[error("CUDA device {ordinal}, {name}, has compute capability {}.{}; coulis needs 8.0 or \
             newer", capability.0, capability.1)]
    TooOld {
        /// The device.
        ordinal: usize,
        /// Its name.
        name: String,
        /// Its compute capability.
        capability: (u32, u32),
    },
    /// Arguments of a call that no launch can be made of.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Memory for temporaries is needed while a graph is captured.
    #[error(
        "kernel `{kernel}` needs {bytes} bytes of workspace, which cannot be allocated while the stream is captured; \
         reserve a workspace before the capture and launch with it"
    )]
    CaptureNeedsWorkspace {
        /// Kernel name.
        kernel: String,
        /// How much.
        bytes: u64,
    },
    /// Something that waits, while a graph is captured.
    #[error("{what} waits for the device, which is not possible while the stream is captured")]
    CaptureForbids {
        /// What was asked.
        what: &'static str,
    },
    /// A workspace that is too small.
    #[error("kernel `{kernel}` needs {wanted} bytes of workspace, and the given one has {found}")]
    WorkspaceTooSmall {
        /// Kernel name.
        kernel: String,
        /// Bytes that are needed.
        wanted: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// A copy that reaches outside of device memory.
    #[error("a copy of bytes {begin} to {end} reaches outside of {held} bytes of device memory")]
    CopyOutside {
        /// First byte.
        begin: usize,
        /// One behind the last byte.
        end: usize,
        /// Bytes that there are.
        held: usize,
    },
    /// The disassembler ran and failed, or its files did.
    #[error("`{program}` failed: {reason}")]
    Disassembler {
        /// The program.
        program: String,
        /// Why.
        reason: String,
    },
}

impl CudaError {
    /// The places where what is missing was looked for, in order.
    pub fn looked(&self) -> &[Looked] {
        match self {
            CudaError::NotFound { looked, .. } => looked,
            _ => &[],
        }
    }
}

/// Places that a message names.
const N_NAMED: usize = 3;

/// The places where something was looked for: files that cannot be used and the first folders, and how many more there are.
fn places(looked: &[Looked]) -> String {
    let (unset, mut seen): (Vec<_>, Vec<_>) = looked.iter().partition(|place| place.found == Found::Unset);
    seen.sort_by_key(|place| !matches!(place.found, Found::Unusable(..)));
    let named: Vec<String> = seen.iter().take(N_NAMED).map(ToString::to_string).collect();
    let mut text = named.join(", ");
    if seen.len() > N_NAMED {
        text += &format!(" and {} more, which `coulis devices` lists", seen.len() - N_NAMED);
    }
    if !unset.is_empty() {
        let names: Vec<&str> = unset.iter().map(|place| place.origin).collect();
        text += &format!("; not set: {}", names.join(", "));
    }
    text
}

fn said(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!(": {log}") }
}

fn at_line(line: &Option<RefusedLine>, log: &str) -> String {
    match line {
        Some(RefusedLine { number, text, message }) => {
            format!(" at line {number}, `{}`: {message}", text.trim())
        }
        None => format!(": {log}"),
    }
}

fn numbers(count: usize) -> String {
    match count {
        0 => "there are none".to_owned(),
        1 => "there is only device 0".to_owned(),
        n => format!("devices are 0 to {}", n - 1),
    }
}
