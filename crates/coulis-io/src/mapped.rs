//! Mapped files, and what becomes of one that another process cuts short while it is in use.
//!
//! The memory of a mapped file ends where the file does. A read of a page behind the new end of one that was cut short is
//! answered by SIGBUS, and what is missing of its last page reads as zeros. No look at the length beforehand helps, since the
//! file may be cut between the look and the read. So the files that are mapped are kept in a list, with their lengths.
//! [`check_mapped`] says, after the reading, whether each is as long as it was, and a program may have [`end_when_cut_short`]
//! tell which file it was that SIGBUS came of. A library cannot do the latter: what a signal does is the program's affair. A
//! file that is cut and grown again in between reads as zeros, as if these had been written.
//!
//! Source: mmap(2), its notes on SIGBUS and on files that are no multiple of a page.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use memmap2::Mmap;

use crate::error::ReadError;

/// A file in the page cache, in the list as long as it lives.
#[derive(Debug)]
pub(crate) struct Mapped(Mmap);

/// A mapped file.
struct Entry {
    /// Where its memory begins.
    begin: usize,
    /// Bytes that were mapped.
    len: usize,
    file: File,
    path: PathBuf,
}

/// What is known of mapped files.
struct Files {
    mapped: Vec<Entry>,
    /// The first that turned out to be shorter when it was let go.
    cut: Option<ReadError>,
}

static FILES: Mutex<Files> = Mutex::new(Files { mapped: Vec::new(), cut: None });

/// No mapped memory is read while the list is locked, so a handler of SIGBUS may wait for it.
fn files() -> MutexGuard<'static, Files> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mapped {
    /// Maps a file of that path, which is not empty.
    pub(crate) fn new(file: File, path: &Path) -> std::io::Result<Mapped> {
        // SAFETY: the map is private to this process and read-only. Another process may still change the file, and what is
        // read then are its bytes at that moment, or cut it short, of which the module comment says what follows.
        let map = unsafe { Mmap::map(&file) }?;
        let (begin, len) = (map.as_ptr().addr(), map.len());
        files().mapped.push(Entry { begin, len, file, path: path.to_owned() });
        Ok(Mapped(map))
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Mapped {
    /// Takes the file from the list before its memory goes.
    fn drop(&mut self) {
        let begin = self.0.as_ptr().addr();
        let mut files = files();
        if let Some(at) = files.mapped.iter().position(|entry| entry.begin == begin) {
            let found = files.mapped.swap_remove(at).checked();
            files.cut = files.cut.take().or(found.err());
        }
    }
}

impl Entry {
    /// An error where the file is shorter than what was mapped of it.
    fn checked(&self) -> Result<(), ReadError> {
        match self.file.metadata().map(|facts| facts.len()) {
            Ok(found) if found < self.len as u64 => {
                Err(ReadError::CutShort { path: self.path.clone(), wanted: self.len as u64, found })
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// An error where a file that is mapped, or was since the last look, is shorter than it was when it was mapped: what was read
/// of it may be zeros that are not in the file. To be called after the reading.
pub fn check_mapped() -> Result<(), ReadError> {
    let mut files = files();
    files.cut.take().map_or(Ok(()), Err)?;
    files.mapped.iter().try_for_each(Entry::checked)
}

/// Says what is wrong, and gives an exit code.
pub type Report = fn(ReadError) -> u8;

/// From now on, a read behind the end of a mapped file that was cut short ends the process with the exit code that `report`
/// gives, in place of SIGBUS. For programs; the first call of a process counts.
#[cfg(unix)]
pub fn end_when_cut_short(report: Report) {
    on_bus_error::install(report);
}

/// Where there is no SIGBUS there is nothing to do.
#[cfg(not(unix))]
pub fn end_when_cut_short(_report: Report) {}

#[cfg(unix)]
mod on_bus_error {
    use std::mem::MaybeUninit;
    use std::sync::OnceLock;

    use libc::{BUS_ADRERR, SA_SIGINFO, SIGBUS, c_int, c_void, sigaction, siginfo_t};

    use super::{Entry, Report, files};

    /// What is told of a file, and the handler that was there before.
    static INSTALLED: OnceLock<(Report, sigaction)> = OnceLock::new();

    pub(super) fn install(report: Report) {
        let mut before = MaybeUninit::<sigaction>::zeroed();
        // SAFETY: asks for the handler that is there, and writes it to `before`.
        if unsafe { libc::sigaction(SIGBUS, std::ptr::null(), before.as_mut_ptr()) } != 0 {
            return;
        }
        // SAFETY: it was written.
        let before = unsafe { before.assume_init() };
        if INSTALLED.set((report, before)).is_err() {
            return;
        }
        // SAFETY: all zeros are a value of it.
        let mut own = unsafe { MaybeUninit::<sigaction>::zeroed().assume_init() };
        own.sa_sigaction = on_signal as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
        own.sa_flags = SA_SIGINFO;
        // SAFETY: the handler keeps to what its own comments say.
        unsafe { libc::sigaction(SIGBUS, &raw const own, std::ptr::null_mut()) };
    }

    extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, _context: *mut c_void) {
        let Some((report, before)) = INSTALLED.get() else { return };
        // SAFETY: with `SA_SIGINFO` the system gives the facts of the signal, and those of SIGBUS have an address.
        let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
        // A signal of another process comes at any time, one of a fault only from the instruction that reads.
        if code == BUS_ADRERR {
            // This thread reads mapped memory and is inside no call that allocates, prints or holds the list, so that all
            // of these are free to be called. The list stays locked: of other threads with the same fault none goes on.
            let files = files();
            let entry = files.mapped.iter().find(|e| (e.begin..e.begin + e.len).contains(&address));
            if let Some(Err(error)) = entry.map(Entry::checked) {
                let exit_code = report(error);
                // SAFETY: ends the process at once; nothing of it is used again.
                unsafe { libc::_exit(c_int::from(exit_code)) };
            }
        }
        // Not of a mapped file: what was to happen before happens, when the signal that is raised here or the instruction
        // comes again after the return.
        // SAFETY: puts back what was there; a signal may be raised anywhere.
        unsafe {
            libc::sigaction(signal, before, std::ptr::null_mut());
            libc::raise(signal);
        }
    }
}
