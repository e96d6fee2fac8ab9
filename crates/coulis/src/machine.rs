//! What this machine has: compilers, threads, the cache, and where they were looked for.

use std::path::PathBuf;

use coulis_runtime::{Compiler, Environment, cache};

use crate::device;
use crate::error::Error;
use crate::request::{DeviceChoice, Request};

pub use crate::device::use_compiler;
pub use coulis_runtime::cache::Entry as CacheEntry;

/// What was found on this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
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
    /// What is known of CUDA.
    pub cuda: String,
}

/// Looks for everything.
pub fn machine() -> Result<Machine, Error> {
    let environment = Environment::of_process();
    let opened = device::open(&Request::new(&[]))?;
    let first_line = |text: &str| text.lines().next().unwrap_or_default().trim().to_owned();
    let compiler = Compiler::find(device::compiler().as_deref(), &environment)
        .map(|c| (c.command(), first_line(c.identity())))
        .map_err(|error| error.to_string());
    let text = |value: &Option<std::ffi::OsString>| value.as_ref().map(|v| v.to_string_lossy().into_owned());
    let cuda = device::open(&Request { device: DeviceChoice::Cuda(0), ..Request::new(&[]) });
    Ok(Machine {
        device: opened.name().to_owned(),
        compiler,
        variables: vec![("COULIS_CC", text(&environment.coulis_cc)), ("CC", text(&environment.cc))],
        threads: opened.target().n_threads,
        vector_bytes: opened.target().vector_bytes,
        cache: cache_dir(),
        cuda: cuda.map_or_else(|error| error.message, |device| device.name().to_owned()),
    })
}

/// Folder of compiled kernels, where the environment says one.
pub fn cache_dir() -> Option<PathBuf> {
    Environment::of_process().cache_dir().map(|dir| dir.join("cpu"))
}

fn known_dir() -> Result<PathBuf, Error> {
    cache_dir().ok_or_else(|| {
        let message =
            "there is no cache folder: none of COULIS_CACHE_DIR, XDG_CACHE_HOME and HOME says where";
        Error::user("cache", message)
    })
}

/// The compiled kernels on the disk.
pub fn cache_entries() -> Result<Vec<CacheEntry>, Error> {
    let dir = known_dir()?;
    cache::entries(&dir).map_err(|e| Error::user("cache", format!("cannot list `{}`: {e}", dir.display())))
}

/// Removes the compiled kernels on the disk, and says which there were.
pub fn clear_cache() -> Result<Vec<CacheEntry>, Error> {
    let dir = known_dir()?;
    cache::clear(&dir).map_err(|e| Error::user("cache", format!("cannot clear `{}`: {e}", dir.display())))
}
