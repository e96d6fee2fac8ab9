//! Shared libraries in this process: loaded once, found by key, never unloaded.

use std::collections::HashMap;
use std::ffi::c_void;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::cache::Key;
use crate::error::RuntimeError;

/// Runs iterations `begin..end` of a parallel loop.
pub type Body = unsafe extern "C" fn(context: *mut c_void, begin: i64, end: i64);

/// Runs all iterations of a parallel loop and returns when they are done.
pub type ParallelFor = unsafe extern "C" fn(pool: *mut c_void, extent: i64, body: Body, context: *mut c_void);

/// A compiled kernel: 0, or what went wrong.
pub type Entry = unsafe extern "C" fn(
    buffers: *const *mut c_void,
    scalars: *const i64,
    parallel_for: ParallelFor,
    pool: *mut c_void,
) -> i32;

/// A loaded kernel.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// Its entry function; the library stays loaded to the end of the process.
    pub entry: Entry,
}

type Slot = Arc<Mutex<Option<Loaded>>>;

/// The kernel of `key`: loaded before, or made by `load`. Two threads that ask for one key make it once; whether it
/// was there is the second result.
pub fn loaded(
    key: &Key,
    load: impl FnOnce() -> Result<Loaded, RuntimeError>,
) -> Result<(Loaded, bool), RuntimeError> {
    static TABLE: OnceLock<Mutex<HashMap<Key, Slot>>> = OnceLock::new();
    let slot = {
        let mut table = TABLE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        table.entry(*key).or_default().clone()
    };
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = *slot {
        return Ok((known, true));
    }
    let made = load()?;
    *slot = Some(made);
    Ok((made, false))
}

/// Loads a file and finds its entry.
///
/// # Safety
/// The file is one that coulis compiled from its own text, with an entry of type [`Entry`] under that name.
pub unsafe fn load(kernel: &str, file: &Path, entry: &str) -> Result<Loaded, RuntimeError> {
    let at_load = |error: libloading::Error| RuntimeError::Load {
        kernel: kernel.to_owned(),
        message: error.to_string(),
    };
    // SAFETY: text of coulis has no initialisers, and the caller vouches for the file.
    let library = unsafe { libloading::Library::new(file) }.map_err(at_load)?;
    // SAFETY: the caller vouches for the type.
    let symbol = unsafe { library.get::<Entry>(entry.as_bytes()) }.map_err(at_load)?;
    let loaded = Loaded { entry: *symbol };
    // Functions of the library are called as long as anyone holds an executable; code is small, so it stays.
    std::mem::forget(library);
    Ok(loaded)
}
