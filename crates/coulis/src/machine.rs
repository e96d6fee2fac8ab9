//! What this machine has: compilers, threads, the cache, and where they were looked for.

use std::path::{Path, PathBuf};

use coulis_runtime::cuda::{CudaError, Facts};
use coulis_runtime::{Compiler, Cuda, Environment, cache};

use crate::device;
use crate::error::Error;
use crate::request::Request;

pub use crate::device::{check, cuda_device_of, use_compiler, use_cuda};
pub use coulis_runtime::cache::Entry as CacheEntry;

/// What was found on this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineInfo {
    /// Name of the device that `auto` takes.
    pub device: String,
    /// Command and first line of the version of the C compiler, or why there is none and where it was looked for.
    pub compiler: Result<(String, String), String>,
    /// The variables that name a compiler, with their values.
    pub variables: Vec<(&'static str, Option<String>)>,
    /// CPU threads.
    pub threads: u32,
    /// Bytes of a vector that kernels are planned with.
    pub vector_bytes: u32,
    /// Folder of compiled kernels, where there is one.
    pub cache: Option<PathBuf>,
    /// What was found of CUDA, and what is missing and where it was looked for: names and words.
    pub cuda: Vec<(String, String)>,
}

/// Looks for everything.
pub fn machine() -> Result<MachineInfo, Error> {
    let environment = Environment::of_process();
    let opened = device::open(&Request::new(&[]))?;
    let first_line = |text: &str| text.lines().next().unwrap_or_default().trim().to_owned();
    let compiler = Compiler::find(device::compiler().as_deref(), &environment)
        .map(|c| (c.command(), first_line(c.identity())))
        .map_err(|error| error.to_string());
    let text = |value: &Option<std::ffi::OsString>| value.as_ref().map(|v| v.to_string_lossy().into_owned());
    Ok(MachineInfo {
        device: opened.name().to_owned(),
        compiler,
        variables: vec![
            ("COULIS_CC", text(&environment.coulis_cc)),
            ("COULIS_CPU", text(&environment.coulis_cpu)),
            ("CC", text(&environment.cc)),
            ("COULIS_CUDA_PATH", text(&environment.coulis_cuda_path)),
            ("CUDA_HOME", text(&environment.cuda_home)),
            ("CUDA_PATH", text(&environment.cuda_path)),
        ],
        threads: opened.target().n_threads,
        vector_bytes: opened.target().vector_bytes,
        cache: cache_dir(),
        cuda: cuda(),
    })
}

/// Driver, devices, compiler and disassembler.
fn cuda() -> Vec<(String, String)> {
    let options = device::cuda_options();
    let mut lines = Vec::new();
    match Cuda::all(&options) {
        Ok((driver, devices)) => {
            let (major, minor) = driver.version();
            lines.push((
                "CUDA driver".to_owned(),
                format!("{}, CUDA {major}.{minor}", driver.file().display()),
            ));
            lines.extend(devices.iter().map(|facts| (format!("cuda:{}", facts.ordinal), about(facts))));
        }
        Err(error) => lines.extend(missing("CUDA driver", &error)),
    }
    let search = options.search();
    for (name, found) in [("NVRTC", search.find_nvrtc()), ("disassembler", search.find_disassembler())] {
        match found {
            Ok((file, looked)) => {
                let origin = looked.last().map_or("the system", |place| place.origin);
                lines.push((name.to_owned(), format!("{}, from {origin}", file.display())));
            }
            Err(error) => lines.extend(missing(name, &error)),
        }
    }
    lines
}

/// What is said of a part that is missing, and below it each place where it was looked for.
fn missing(name: &str, error: &CudaError) -> Vec<(String, String)> {
    let places = error.looked().iter().map(|place| (String::new(), place.to_string()));
    [(name.to_owned(), error.to_string())].into_iter().chain(places).collect()
}

fn about(facts: &Facts) -> String {
    let gib = facts.memory_bytes as f64 / f64::from(1 << 30);
    let mib = facts.cache_bytes as f64 / f64::from(1 << 20);
    format!(
        "{}, {}, {} multiprocessors, {gib:.1} GiB of memory, {mib:.0} MiB of cache",
        facts.name, facts.arch, facts.n_multiprocessors
    )
}

/// Folder of kernels compiled for the CPU, where the environment says one.
pub fn cache_dir() -> Option<PathBuf> {
    cache_dirs().into_iter().next()
}

/// The folder of what searches found.
const TUNED: &str = "tuned";
/// Kinds of devices that keep compiled kernels, each in a folder of that name, and what searches found.
const CACHED: [&str; 3] = ["cpu", "cuda", TUNED];

/// Folder of what searches for plans found, where the environment says one.
pub(crate) fn tuned_dir() -> Option<PathBuf> {
    Environment::of_process().cache_dir().map(|root| root.join(TUNED))
}

/// Folders of compiled kernels, the CPU's first, and of what searches for plans found; none where the
/// environment says no cache folder.
pub fn cache_dirs() -> Vec<PathBuf> {
    let root = Environment::of_process().cache_dir();
    root.map(|root| CACHED.map(|kind| root.join(kind)).to_vec()).unwrap_or_default()
}

/// What `of` finds in each folder of compiled kernels.
fn in_caches(
    verb: &str,
    of: fn(&Path) -> std::io::Result<Vec<CacheEntry>>,
) -> Result<Vec<CacheEntry>, Error> {
    let dirs = cache_dirs();
    if dirs.is_empty() {
        let message =
            "there is no cache folder: none of COULIS_CACHE_DIR, XDG_CACHE_HOME and HOME says where";
        return Err(Error::user("cache", message));
    }
    let mut found = Vec::new();
    for dir in dirs {
        let entries =
            of(&dir).map_err(|e| Error::user("cache", format!("cannot {verb} `{}`: {e}", dir.display())))?;
        found.extend(entries);
    }
    Ok(found)
}

/// The compiled kernels on the disk.
pub fn cache_entries() -> Result<Vec<CacheEntry>, Error> {
    in_caches("list", cache::entries)
}

/// Removes the compiled kernels on the disk, and says which there were.
pub fn clear_cache() -> Result<Vec<CacheEntry>, Error> {
    in_caches("clear", cache::clear)
}
