//! NVRTC, NVIDIA's compiler as a library: CUDA text to cubin or PTX, without a GPU.
//!
//! `libnvrtc` opens `libnvrtc-builtins` by its plain name when it compiles and has no search path of its own, so the
//! builtins next to it are opened first, by absolute path. Source: NVRTC manual.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use libloading::Library;

use crate::cuda::error::{CudaError, LibraryName, RefusedLine};
use crate::cuda::search::{Found, Looked};
use crate::cuda::table::table;

/// The answer for a text that is not accepted: `NVRTC_ERROR_COMPILATION`.
const COMPILATION: c_int = 6;

/// Names of the answers, by number.
const NAMES: [&str; 18] = [
    "NVRTC_SUCCESS",
    "NVRTC_ERROR_OUT_OF_MEMORY",
    "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
    "NVRTC_ERROR_INVALID_INPUT",
    "NVRTC_ERROR_INVALID_PROGRAM",
    "NVRTC_ERROR_INVALID_OPTION",
    "NVRTC_ERROR_COMPILATION",
    "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
    "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
    "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
    "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
    "NVRTC_ERROR_INTERNAL_ERROR",
    "NVRTC_ERROR_TIME_FILE_WRITE_FAILED",
    "NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED",
    "NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED",
    "NVRTC_ERROR_PCH_CREATE",
    "NVRTC_ERROR_CANCELLED",
    "NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED",
];

/// A program of NVRTC.
type Program = *mut c_void;

table! {
    /// The functions of NVRTC.
    Functions, LibraryName::Nvrtc;
    /// Major and minor number.
    version = "nvrtcVersion" (major: *mut c_int, minor: *mut c_int);
    /// Makes a program of a text.
    create = "nvrtcCreateProgram" (
        program: *mut Program, text: *const c_char, name: *const c_char, n_headers: c_int,
        headers: *const *const c_char, header_names: *const *const c_char
    );
    /// Lets go of a program.
    destroy = "nvrtcDestroyProgram" (program: *mut Program);
    /// Compiles.
    compile = "nvrtcCompileProgram" (program: Program, n_options: c_int, options: *const *const c_char);
    /// Bytes of the log.
    log_size = "nvrtcGetProgramLogSize" (program: Program, bytes: *mut usize);
    /// The log.
    log = "nvrtcGetProgramLog" (program: Program, log: *mut c_char);
    /// Bytes of the PTX text.
    ptx_size = "nvrtcGetPTXSize" (program: Program, bytes: *mut usize);
    /// The PTX text.
    ptx = "nvrtcGetPTX" (program: Program, ptx: *mut c_char);
    /// Bytes of the cubin.
    cubin_size = "nvrtcGetCUBINSize" (program: Program, bytes: *mut usize);
    /// The cubin.
    cubin = "nvrtcGetCUBIN" (program: Program, cubin: *mut c_char);
}

impl Functions {
    fn failure(&self, call: &'static str, code: c_int) -> CudaError {
        let name = usize::try_from(code).ok().and_then(|code| NAMES.get(code)).copied();
        CudaError::Nvrtc { call, code, name: name.unwrap_or("an unknown code"), log: String::new() }
    }
}

/// What a text is compiled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Machine code of one architecture.
    Cubin,
    /// NVIDIA's assembly text.
    Ptx,
}

/// NVRTC, loaded.
#[derive(Debug)]
pub struct Nvrtc {
    functions: Functions,
    version: (u32, u32),
}

impl Nvrtc {
    /// The library of that file; loaded once a process and never unloaded.
    pub fn load(file: &Path) -> Result<&'static Nvrtc, CudaError> {
        static LOADED: Mutex<Vec<(PathBuf, &'static Nvrtc)>> = Mutex::new(Vec::new());
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, nvrtc)) = loaded.iter().find(|(path, _)| path == file) {
            return Ok(nvrtc);
        }
        open_builtins(file);
        // SAFETY: the file has the name that only NVIDIA's library has.
        let library = unsafe { Library::new(file) }.map_err(|error| {
            let folder = file.parent().unwrap_or(file).to_owned();
            let found = Found::Unusable(file.to_owned(), error.to_string());
            let looked = vec![Looked { origin: "the search", folder, found }];
            CudaError::NotFound { library: LibraryName::Nvrtc, looked }
        })?;
        // SAFETY: the library is NVRTC's, and it is leaked below.
        let functions = unsafe { Functions::of(&library, file.to_owned()) };
        std::mem::forget(library);
        let (mut major, mut minor) = (0, 0);
        // SAFETY: writes two integers.
        unsafe { functions.version(&mut major, &mut minor) }?;
        let version = (major.unsigned_abs(), minor.unsigned_abs());
        let nvrtc: &'static Nvrtc = Box::leak(Box::new(Nvrtc { functions, version }));
        loaded.push((file.to_owned(), nvrtc));
        Ok(nvrtc)
    }

    /// Major and minor number.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// Compiles `text` for an architecture such as `sm_90a`. What it becomes, and what the compiler says of it.
    pub fn compile(
        &self,
        kernel: &str,
        text: &str,
        arch: &str,
        format: Format,
        options: &[&str],
    ) -> Result<(Vec<u8>, String), CudaError> {
        let target = match format {
            Format::Cubin => arch.to_owned(),
            Format::Ptx => arch.replacen("sm_", "compute_", 1),
        };
        let target = format!("--gpu-architecture={target}");
        let words: Vec<CString> = std::iter::once(target.as_str())
            .chain(without_cache(self.version))
            .chain(options.iter().copied())
            .map(|word| c_text("an option", word))
            .collect::<Result<_, _>>()?;
        let words: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
        let program = Owned::create(&self.functions, kernel, text)?;
        let n_words = c_int::try_from(words.len()).unwrap_or(c_int::MAX);
        // SAFETY: the program is alive, and the words are as many strings.
        let compiled = unsafe { self.functions.compile(program.raw, n_words, words.as_ptr()) };
        match compiled {
            Ok(()) => Ok((program.result(format)?, program.log())),
            Err(CudaError::Nvrtc { code: COMPILATION, .. }) => {
                let log = program.log();
                let line = refused_line(&log, text);
                Err(CudaError::Refused { kernel: kernel.to_owned(), arch: arch.to_owned(), line, log })
            }
            Err(CudaError::Nvrtc { call, code, name, .. }) => {
                Err(CudaError::Nvrtc { call, code, name, log: program.log() })
            }
            Err(other) => Err(other),
        }
    }
}

/// What has NVRTC compile whatever it compiled before: it has a cache of its own since 12.9, and says nothing of spilled registers of
/// what it finds there, so that a text would become other code in the second process that compiles it than in the first.
fn without_cache(version: (u32, u32)) -> Option<&'static str> {
    (version >= (12, 9)).then_some("--no-cache")
}

/// Opens the builtins next to `libnvrtc` and keeps them. One that cannot be opened shows when NVRTC needs it.
fn open_builtins(nvrtc: &Path) {
    let Some(listing) = nvrtc.parent().and_then(|folder| std::fs::read_dir(folder).ok()) else { return };
    for entry in listing.flatten() {
        if entry.file_name().to_string_lossy().starts_with("libnvrtc-builtins.so") {
            // SAFETY: the file lies next to NVRTC and has the name that only NVIDIA's library has.
            if let Ok(library) = unsafe { Library::new(entry.path()) } {
                std::mem::forget(library);
            }
        }
    }
}

fn c_text(what: &'static str, text: &str) -> Result<CString, CudaError> {
    CString::new(text).map_err(|_| CudaError::ZeroByte { what })
}

/// A program that is let go of when it is dropped.
struct Owned<'a> {
    functions: &'a Functions,
    raw: Program,
}

impl<'a> Owned<'a> {
    fn create(functions: &'a Functions, kernel: &str, text: &str) -> Result<Owned<'a>, CudaError> {
        let name = c_text("a kernel's name", &format!("{kernel}.cu"))?;
        let text = c_text("a kernel's text", text)?;
        let mut raw = ptr::null_mut();
        // SAFETY: two strings and no headers; NVRTC copies both.
        unsafe {
            functions.create(&mut raw, text.as_ptr(), name.as_ptr(), 0, ptr::null(), ptr::null())?;
        }
        Ok(Owned { functions, raw })
    }

    fn result(&self, format: Format) -> Result<Vec<u8>, CudaError> {
        let mut bytes = 0;
        // SAFETY: the program is alive and compiled; each second call writes as many bytes as the first one
        // said.
        unsafe {
            match format {
                Format::Cubin => self.functions.cubin_size(self.raw, &mut bytes)?,
                Format::Ptx => self.functions.ptx_size(self.raw, &mut bytes)?,
            }
            let mut content = vec![0u8; bytes];
            match format {
                Format::Cubin => self.functions.cubin(self.raw, content.as_mut_ptr().cast())?,
                Format::Ptx => {
                    self.functions.ptx(self.raw, content.as_mut_ptr().cast())?;
                    // The text ends with a zero byte, which is counted.
                    content.truncate(bytes.saturating_sub(1));
                }
            }
            Ok(content)
        }
    }

    fn log(&self) -> String {
        let mut bytes = 0;
        // SAFETY: the program is alive.
        if unsafe { self.functions.log_size(self.raw, &mut bytes) }.is_err() {
            return String::new();
        }
        let mut log = vec![0u8; bytes];
        // SAFETY: the log has that many bytes.
        if unsafe { self.functions.log(self.raw, log.as_mut_ptr().cast()) }.is_err() {
            return String::new();
        }
        String::from_utf8_lossy(&log).trim_end_matches('\0').trim_end().to_owned()
    }
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is alive and not used again.
        let _ = unsafe { self.functions.destroy(&mut self.raw) };
    }
}

/// Bytes of registers that the kernels of a log of `--warn-on-spills` store in memory for want of them. The lines end with
/// `N bytes spill stores, M bytes spill loads`.
pub fn spilled_bytes(log: &str) -> u64 {
    let stores = log.lines().filter_map(|line| {
        let (before, _) = line.split_once(" bytes spill stores")?;
        before.rsplit(' ').next()?.parse::<u64>().ok()
    });
    stores.sum()
}

/// The first error in a log, whose lines are `name(LINE): error: MESSAGE`.
fn refused_line(log: &str, text: &str) -> Option<RefusedLine> {
    log.lines().find_map(|entry| {
        let (place, message) = entry.split_once(": error: ").or_else(|| entry.split_once(": error "))?;
        let (_, number) = place.trim_end().strip_suffix(')')?.rsplit_once('(')?;
        let number: usize = number.parse().ok()?;
        let line = text.lines().nth(number.checked_sub(1)?)?;
        Some(RefusedLine { number, text: line.to_owned(), message: message.trim().to_owned() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nvrtc_is_told_not_to_use_a_cache_where_it_has_one() {
        assert_eq!([(12, 9), (13, 0)].map(without_cache), [Some("--no-cache"); 2]);
        assert_eq!([(11, 8), (12, 8)].map(without_cache), [None; 2], "an option that it would refuse");
    }

    #[test]
    fn the_first_error_of_a_log_is_found_with_its_line() {
        let text = "one\n  two(x);\nthree";
        let log = "k.cu(1): warning #177-D: unused\n\nk.cu(2): error: identifier \"x\" is undefined\nk.cu(3): error: no\n";
        let line = refused_line(log, text).unwrap();
        assert_eq!((line.number, line.text.as_str()), (2, "  two(x);"));
        assert_eq!(line.message, "identifier \"x\" is undefined");
        assert_eq!(refused_line("k.cu(9): error: far away", text), None);
        assert_eq!(refused_line("nothing", text), None);
    }
}
