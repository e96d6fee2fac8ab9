//! CUDA text to machine code, kept on disk. Needs NVRTC and no GPU.
//!
//! A cubin is found by the hash of everything that it depends on: the text, the options, the architecture, and which
//! NVRTC it is. The latter is the name and length of the library's file, so that a kernel that is on the disk is found
//! without loading a hundred megabytes.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use coulis_codegen::{CUDA_OPTIONS, CUDA_WITHOUT_RESIDENT, asks_for_resident};
use coulis_ir::Target;

use crate::cache::{Cache, Key};
use crate::cuda::error::CudaError;
use crate::cuda::nvrtc::{Format, Nvrtc, spilled_bytes};
use crate::cuda::search::Search;
use crate::device::Origin;
use crate::error::Notice;

/// Part of the key of cubins: raised when the meaning of a kept file changes though its text does not.
const GENERATOR: &str = concat!("coulis cuda 2 ", env!("CARGO_PKG_VERSION"));

/// What NVRTC receives in addition to the options of the dialect: functions without a mark are the device's, machine code
/// knows its lines, and of registers that are too few it is to say so.
const OPTIONS: [&str; 3] =
    ["--device-as-default-execution-space", "--generate-line-info", "--ptxas-options=--warn-on-spills"];

/// Bytes that threads may spill for the blocks that a multiprocessor is to hold: some are less than what fewer blocks cost. Measured:
/// `bench/results/h200.md`.
const FEW_SPILLED: u64 = 128;

/// NVRTC with a disk cache.
#[derive(Debug)]
pub struct CudaCompiler {
    search: Search,
    cache: Cache,
    /// Where NVRTC is, once it was looked for.
    found: OnceLock<(PathBuf, String)>,
}

impl CudaCompiler {
    /// Opens the cache; NVRTC is looked for when it is needed. `cache_dir` is `cuda` in the user's cache folder of coulis
    /// unless it is given.
    pub fn open(search: &Search, cache_dir: Option<&Path>) -> (CudaCompiler, Option<Notice>) {
        let usual = || search.environment.cache_dir().map(|dir| dir.join("cuda"));
        let dir = cache_dir.map(Path::to_owned).or_else(usual);
        let (cache, notice) = Cache::open(dir.as_deref());
        (CudaCompiler { search: search.clone(), cache, found: OnceLock::new() }, notice)
    }

    /// The file of NVRTC and what tells it from others.
    fn nvrtc(&self) -> Result<&(PathBuf, String), CudaError> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let (file, _) = self.search.find_nvrtc()?;
        let real = file.canonicalize().unwrap_or_else(|_| file.clone());
        let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = real.metadata().map_or(0, |meta| meta.len());
        Ok(self.found.get_or_init(|| (file, format!("{name} {bytes}"))))
    }

    /// NVRTC, loaded.
    pub fn load(&self) -> Result<&'static Nvrtc, CudaError> {
        Nvrtc::load(&self.nvrtc()?.0)
    }

    /// Every option but the architecture.
    pub fn options() -> Vec<&'static str> {
        CUDA_OPTIONS.iter().copied().chain(OPTIONS).collect()
    }

    /// The key of the cubin of a text.
    pub(crate) fn key(&self, text: &str, arch: &str) -> Result<Key, CudaError> {
        let (_, identity) = self.nvrtc()?;
        Ok(Key::of(&[
            GENERATOR.as_bytes(),
            text.as_bytes(),
            Self::options().join(" ").as_bytes(),
            arch.as_bytes(),
            identity.as_bytes(),
        ]))
    }

    /// The machine code of `text` for an architecture such as `sm_90a`, from the disk or compiled.
    pub fn cubin(&self, kernel: &str, text: &str, arch: &str) -> Result<(Vec<u8>, Origin), CudaError> {
        check_arch(arch)?;
        let key = self.key(text, arch)?;
        if let Some(code) = self.cache.cubin(&key) {
            return Ok((code, Origin::Disk));
        }
        let code = self.compiled(kernel, text, arch)?;
        self.cache.keep_cubin(&key, kernel, &code);
        Ok((code, Origin::Compiled))
    }

    /// The machine code, with as many blocks side by side as the text asks for, unless their threads then lack registers.
    fn compiled(&self, kernel: &str, text: &str, arch: &str) -> Result<Vec<u8>, CudaError> {
        let mut options = Self::options();
        let compile = |options: &[&str]| self.load()?.compile(kernel, text, arch, Format::Cubin, options);
        let (code, log) = compile(&options)?;
        let spilled = spilled_bytes(&log);
        if spilled <= FEW_SPILLED || !asks_for_resident(text) {
            return Ok(code);
        }
        options.push(CUDA_WITHOUT_RESIDENT);
        let (with_registers, log) = compile(&options)?;
        Ok(if spilled_bytes(&log) < spilled { with_registers } else { code })
    }

    /// As [`CudaCompiler::cubin`] of several texts of one kernel, which are compiled side by side. The
    /// machine code of each, and where the slowest came from.
    pub fn cubins(
        &self,
        kernel: &str,
        texts: &[String],
        arch: &str,
    ) -> Result<(Vec<Vec<u8>>, Origin), CudaError> {
        let next = AtomicUsize::new(0);
        let work = || {
            let own = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
            let own = own.map_while(|nth| Some((nth, texts.get(nth)?)));
            own.map(|(nth, text)| (nth, self.cubin(kernel, text, arch))).collect::<Vec<_>>()
        };
        let n_threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(texts.len());
        let mut found = std::thread::scope(|scope| {
            let others: Vec<_> = (1..n_threads).map(|_| scope.spawn(work)).collect();
            let mut found = work();
            for other in others {
                // A panic of a thread goes on in the one that waits for it.
                found.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            found
        });
        found.sort_by_key(|(nth, _)| *nth);
        let mut origin = Origin::Disk;
        let mut codes = Vec::with_capacity(texts.len());
        for (_, result) in found {
            let (code, from) = result?;
            if from == Origin::Compiled {
                origin = from;
            }
            codes.push(code);
        }
        Ok((codes, origin))
    }

    /// The PTX text of `text`; not kept.
    pub fn ptx(&self, kernel: &str, text: &str, arch: &str) -> Result<String, CudaError> {
        check_arch(arch)?;
        let (ptx, _) = self.load()?.compile(kernel, text, arch, Format::Ptx, &Self::options())?;
        Ok(String::from_utf8_lossy(&ptx).into_owned())
    }

    /// What guides the search of the compiler and the disassembler.
    pub fn search(&self) -> &Search {
        &self.search
    }

    /// What users should hear and have not been told.
    pub fn take_notices(&self) -> Vec<Notice> {
        self.cache.take_notices()
    }
}

/// An architecture is `sm_` and a number, with `a` or `f` behind it where features of one family are used.
fn check_arch(arch: &str) -> Result<(), CudaError> {
    let number = arch.strip_prefix("sm_").map(|rest| rest.strip_suffix(['a', 'f']).unwrap_or(rest));
    let is_arch = number.is_some_and(|n| (2..=3).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit()));
    if is_arch {
        return Ok(());
    }
    Err(CudaError::UnknownArch { arch: arch.to_owned(), legal: Target::cuda_archs().collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_architectures_are_checked_before_anything_is_loaded() {
        for arch in ["sm_80", "sm_90a", "sm_100f", "sm_121a"] {
            assert!(check_arch(arch).is_ok(), "{arch}");
        }
        for arch in ["", "90a", "sm_", "sm_9", "sm_90b", "sm_9000", "sm_90aa", "compute_90", "native"] {
            let error = check_arch(arch).unwrap_err();
            assert!(matches!(error, CudaError::UnknownArch { .. }), "{arch}");
        }
    }
}
