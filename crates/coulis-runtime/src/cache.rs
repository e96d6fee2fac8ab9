//! The disk cache of compiled kernels.
//!
//! A file is named by the hash of everything that its content depends on, and ends in a trailer: a mark, that name's
//! hash, and the hash of the bytes before. Loaders of shared libraries do not look at what follows the library. So
//! one rename publishes a file with its proof, and a file that was truncated, changed, renamed or put there by
//! another user is not loaded but rebuilt.
//!
//! The folder is the user's alone. Where it cannot be made or written, a private temporary folder takes its place, which
//! lives until the file was loaded: a loaded library needs its file no more, and processes end without notice.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

use crate::error::{Notice, RuntimeError};

const MARK: &[u8; 16] = b"coulis trailer 1";
const TRAILER: usize = 16 + 32 + 32;

/// Hash of everything that a compiled file depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// Of parts whose borders count.
    pub fn of(parts: &[&[u8]]) -> Key {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Key(*hasher.finalize().as_bytes())
    }

    /// In hexadecimal: the name of the file.
    pub fn hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }

    /// The key of that name.
    pub fn from_hex(name: &str) -> Option<Key> {
        blake3::Hash::from_hex(name).ok().map(|hash| Key(*hash.as_bytes()))
    }
}

/// What a file of the cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// A compiled kernel.
    Code,
    /// A few words that save work: how a plan is called, which compiler a file is.
    Words,
    /// Machine code of one GPU architecture.
    Cubin,
}

impl Holds {
    /// Every kind.
    const ALL: [Holds; 3] = [Holds::Code, Holds::Words, Holds::Cubin];

    fn extension(self) -> &'static str {
        match self {
            Holds::Code => "so",
            Holds::Words => "plan",
            Holds::Cubin => "cubin",
        }
    }
}

/// A folder of compiled files.
#[derive(Debug)]
pub struct Cache {
    dir: Option<PathBuf>,
    notices: Mutex<Vec<Notice>>,
}

impl Cache {
    /// The cache in `dir`, or a private one where that folder cannot be used (then with a notice).
    pub fn open(dir: Option<&Path>) -> (Cache, Option<Notice>) {
        let (dir, notice) = match dir {
            None => (None, None),
            Some(dir) => match usable(dir) {
                Ok(()) => (Some(dir.to_owned()), None),
                Err(reason) => {
                    let reason = reason.to_string();
                    (None, Some(Notice::CacheUnusable { dir: dir.to_owned(), reason }))
                }
            },
        };
        (Cache { dir, notices: Mutex::default() }, notice)
    }

    /// The words stored under `key` in a folder that need not exist and is not made.
    pub fn words_in(dir: &Path, key: &Key) -> Option<Vec<u8>> {
        genuine(&file_of(dir, key, Holds::Words), key)
    }

    /// The folder, where it is not a private one.
    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// What went wrong with the folder since the last call.
    pub fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The file of `key`, if it is there and is what was once stored.
    pub fn lookup(&self, key: &Key) -> Option<PathBuf> {
        self.file_of(key, Holds::Code).filter(|file| genuine(file, key).is_some())
    }

    /// The words that were stored under `key`, if they are there and are what was once stored.
    pub fn words(&self, key: &Key) -> Option<Vec<u8>> {
        genuine(&self.file_of(key, Holds::Words)?, key)
    }

    /// Keeps words under `key`; see [`Cache::keep`].
    pub fn keep_words(&self, key: &Key, words: &[u8]) {
        self.keep(key, Holds::Words, "words", words);
    }

    /// The machine code that was stored under `key`, if it is there and is what was once stored.
    pub fn cubin(&self, key: &Key) -> Option<Vec<u8>> {
        genuine(&self.file_of(key, Holds::Cubin)?, key)
    }

    /// Keeps machine code under `key`; see [`Cache::keep`].
    pub fn keep_cubin(&self, key: &Key, kernel: &str, code: &[u8]) {
        self.keep(key, Holds::Cubin, kernel, code);
    }

    /// Publishes what the caller has and could make again: nothing fails, and a folder that does costs that work in each
    /// process and is told of in a notice.
    fn keep(&self, key: &Key, holds: Holds, kernel: &str, content: &[u8]) {
        let Some(dir) = &self.dir else { return };
        let write = |file: &Path| fs::write(file, content).map_err(|e| at_io(kernel, e));
        if let Err(error) = publish(dir, key, holds, kernel, &write) {
            self.note_unusable(dir, &error);
        }
    }

    /// Notes once that the folder fails.
    fn note_unusable(&self, dir: &Path, error: &RuntimeError) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.is_empty() {
            notices.push(Notice::CacheUnusable { dir: dir.to_owned(), reason: error.to_string() });
        }
    }

    fn file_of(&self, key: &Key, holds: Holds) -> Option<PathBuf> {
        Some(file_of(self.dir.as_deref()?, key, holds))
    }

    /// Lets `build` write a file, and publishes it under `key`. Fails only where `build` does, or where there is
    /// no folder at all that can be written.
    pub fn store(
        &self,
        key: &Key,
        kernel: &str,
        build: &dyn Fn(&Path) -> Result<(), RuntimeError>,
    ) -> Result<Stored, RuntimeError> {
        if let Some(dir) = &self.dir {
            // What is left over costs space and is no one's concern.
            let _ = remove_abandoned(dir, WORK, LONG);
            match publish(dir, key, Holds::Code, kernel, build) {
                Ok(file) => return Ok(Stored { file, private: None }),
                Err(error) if error.is_interrupt() => return Err(error),
                // Whether the folder or the compiler is at fault shows in the private folder.
                Err(error) => {
                    let stored = store_privately(key, kernel, build)?;
                    self.note_unusable(dir, &error);
                    return Ok(stored);
                }
            }
        }
        store_privately(key, kernel, build)
    }
}

/// A file that was published.
#[derive(Debug)]
pub struct Stored {
    file: PathBuf,
    /// The folder that is removed with this, where the file is in none that lasts.
    private: Option<TempDir>,
}

impl Stored {
    /// The file, which is to be loaded before this is dropped.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Whether the file goes when this is dropped.
    pub fn is_private(&self) -> bool {
        self.private.is_some()
    }
}

fn store_privately(
    key: &Key,
    kernel: &str,
    build: &dyn Fn(&Path) -> Result<(), RuntimeError>,
) -> Result<Stored, RuntimeError> {
    let _ = remove_abandoned(&std::env::temp_dir(), PRIVATE, LONG);
    let prefix = format!("{PRIVATE}{}-", std::process::id());
    let dir = tempfile::Builder::new().prefix(&prefix).tempdir().map_err(|e| at_io(kernel, e))?;
    let file = publish(dir.path(), key, Holds::Code, kernel, build)?;
    Ok(Stored { file, private: Some(dir) })
}

/// A file of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The compiled files in a folder and what is kept next to them, by name; none where there is no folder.
/// Other files are not listed.
pub fn entries(dir: &Path) -> io::Result<Vec<Entry>> {
    let listing = match fs::read_dir(dir) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for file in listing {
        let file = file?;
        let name = file.file_name();
        let name = name.to_str().unwrap_or_default();
        let is_ours = |holds: &Holds| name.strip_suffix(holds.extension())?.strip_suffix('.');
        let stem = Holds::ALL.iter().find_map(is_ours).unwrap_or_default();
        if stem.len() != 64 || !stem.bytes().all(|b| b.is_ascii_hexdigit()) {
            continue;
        }
        match file.metadata() {
            Ok(meta) if meta.is_file() => found.push(Entry { path: file.path(), bytes: meta.len() }),
            // Another process may clear the folder meanwhile.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Removes the compiled files of a folder, and says which there were. Processes that run one go on with it. What compilers
/// that were killed left of their work goes too.
pub fn clear(dir: &Path) -> io::Result<Vec<Entry>> {
    let found = entries(dir)?;
    remove_abandoned(dir, WORK, Duration::ZERO)?;
    for entry in &found {
        match fs::remove_file(&entry.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(found)
}

/// How the folders begin in which files are made, before the number of the process that does it.
const WORK: &str = ".build-";

/// How private folders begin, before the number of the process.
const PRIVATE: &str = "coulis-private-";

/// No compilation takes longer. Another machine may use the same folder, whose processes are not seen from here.
const LONG: Duration = Duration::from_secs(3600);

/// Removes the folders of this user that begin with `prefix` and the number of a process that is no more, and were
/// not touched for that long.
fn remove_abandoned(dir: &Path, prefix: &str, untouched: Duration) -> io::Result<()> {
    let listing = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        listing => listing?,
    };
    for folder in listing {
        let folder = folder?;
        let name = folder.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(prefix)?.split('-').next()?.parse().ok());
        if maker.is_none_or(is_alive) {
            continue;
        }
        let is_old = |facts: &fs::Metadata| {
            facts.modified().is_ok_and(|at| at.elapsed().unwrap_or_default() >= untouched)
        };
        if folder.metadata().is_ok_and(|facts| facts.uid() == user() && is_old(&facts)) {
            match fs::remove_dir_all(folder.path()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
    }
    Ok(())
}

/// Whether there is a process of that number.
fn is_alive(process: libc::pid_t) -> bool {
    // SAFETY: signal 0 is not sent, only looked at whether it could be.
    let answer = unsafe { libc::kill(process, 0) };
    answer == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

fn at_io(kernel: &str, source: io::Error) -> RuntimeError {
    RuntimeError::CompileIo { kernel: kernel.to_owned(), source }
}

fn file_of(dir: &Path, key: &Key, holds: Holds) -> PathBuf {
    dir.join(format!("{}.{}", key.hex(), holds.extension()))
}

fn user() -> u32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// Makes the folder the user's alone, and checks that files can be made there.
fn usable(dir: &Path) -> io::Result<()> {
    if let Some(parent) = dir.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let meta = fs::symlink_metadata(dir)?;
    if !meta.is_dir() {
        return Err(io::Error::other("it is not a folder"));
    }
    if meta.uid() != user() {
        return Err(io::Error::other("it belongs to another user"));
    }
    if meta.mode() & 0o077 != 0 {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    }
    tempfile::Builder::new().prefix(".probe-").tempfile_in(dir).map(drop)
}

/// Builds in a new folder next to the file, so that the rename stays within one file system.
fn publish(
    dir: &Path,
    key: &Key,
    holds: Holds,
    kernel: &str,
    build: &dyn Fn(&Path) -> Result<(), RuntimeError>,
) -> Result<PathBuf, RuntimeError> {
    let io = |error| at_io(kernel, error);
    let work = tempfile::Builder::new()
        .prefix(&format!("{WORK}{}-", std::process::id()))
        .tempdir_in(dir)
        .map_err(io)?;
    let made = work.path().join("kernel.so");
    build(&made)?;
    let content = fs::read(&made).map_err(io)?;
    let mut file = File::options().append(true).open(&made).map_err(io)?;
    file.write_all(&trailer(key, &content)).map_err(io)?;
    drop(file);
    fs::set_permissions(&made, fs::Permissions::from_mode(0o700)).map_err(io)?;
    let target = file_of(dir, key, holds);
    fs::rename(&made, &target).map_err(io)?;
    Ok(target)
}

fn trailer(key: &Key, content: &[u8]) -> Vec<u8> {
    [MARK.as_slice(), &key.0, blake3::hash(content).as_bytes()].concat()
}

/// The content of a file of the cache, without its trailer.
fn genuine(file: &Path, key: &Key) -> Option<Vec<u8>> {
    let meta = fs::symlink_metadata(file).ok()?;
    if !meta.is_file() || meta.uid() != user() || meta.mode() & 0o022 != 0 {
        return None;
    }
    let mut bytes = fs::read(file).ok()?;
    let length = bytes.len().checked_sub(TRAILER)?;
    let (content, found) = bytes.split_at(length);
    let is_genuine = found == trailer(key, content);
    bytes.truncate(length);
    is_genuine.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::of(&[b"a kernel"])
    }

    fn build(path: &Path) -> Result<(), RuntimeError> {
        fs::write(path, b"content").map_err(|error| at_io("k", error))
    }

    /// A cache with one file, changed by `spoil`: whether the file is still taken.
    fn survives(spoil: impl Fn(&Path)) -> bool {
        let dir = tempfile::tempdir().unwrap();
        let (cache, notice) = Cache::open(Some(&dir.path().join("c")));
        assert_eq!(notice, None);
        let stored = cache.store(&key(), "k", &build).unwrap();
        let file = stored.file();
        assert_eq!(cache.lookup(&key()).as_deref(), Some(file));
        spoil(file);
        cache.lookup(&key()).is_some()
    }

    #[test]
    fn a_stored_file_is_found_and_spoiled_ones_are_not() {
        assert!(survives(|_| {}));
        assert!(!survives(|file| File::options().write(true).open(file).unwrap().set_len(20).unwrap()));
        assert!(!survives(|file| File::options().write(true).open(file).unwrap().set_len(0).unwrap()));
        assert!(!survives(|file| {
            let mut bytes = fs::read(file).unwrap();
            bytes[0] ^= 1;
            fs::write(file, bytes).unwrap();
        }));
        assert!(!survives(|file| fs::set_permissions(file, fs::Permissions::from_mode(0o777)).unwrap()));
        assert!(!survives(|file| fs::remove_file(file).unwrap()));
        assert!(!survives(|file| {
            let elsewhere = file.with_extension("moved");
            fs::rename(file, &elsewhere).unwrap();
            std::os::unix::fs::symlink(elsewhere, file).unwrap();
        }));
    }

    #[test]
    fn a_file_of_another_user_is_not_taken() {
        if user() != 0 {
            println!("SKIP: only the superuser can give files away");
            return;
        }
        assert!(!survives(|file| std::os::unix::fs::chown(file, Some(12345), None).unwrap()));
    }

    #[test]
    fn a_file_under_another_name_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, _) = Cache::open(Some(&dir.path().join("c")));
        let stored = cache.store(&key(), "k", &build).unwrap();
        let other = Key::of(&[b"another kernel"]);
        fs::rename(stored.file(), file_of(cache.dir().unwrap(), &other, Holds::Code)).unwrap();
        assert_eq!(cache.lookup(&other), None);
    }

    #[test]
    fn words_are_found_as_they_were_stored_and_spoiled_ones_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, _) = Cache::open(Some(&dir.path().join("c")));
        assert_eq!(cache.words(&key()), None);
        cache.keep_words(&key(), b"some words");
        assert_eq!(cache.words(&key()), Some(b"some words".to_vec()));
        assert_eq!(cache.lookup(&key()), None, "words are no code");
        assert_eq!(entries(cache.dir().unwrap()).unwrap().len(), 1);
        let file = file_of(cache.dir().unwrap(), &key(), Holds::Words);
        let mut bytes = fs::read(&file).unwrap();
        bytes[2] ^= 1;
        fs::write(&file, bytes).unwrap();
        assert_eq!(cache.words(&key()), None);
        assert_eq!(clear(cache.dir().unwrap()).unwrap().len(), 1);
    }

    #[test]
    fn clearing_takes_the_work_of_processes_that_are_no_more_and_leaves_that_of_others() {
        let dir = tempfile::tempdir().unwrap();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let [abandoned, mine] =
            [ended.id(), std::process::id()].map(|id| dir.path().join(format!("{WORK}{id}-x")));
        for folder in [&abandoned, &mine] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("kernel.c"), b"text").unwrap();
        }
        let (cache, _) = Cache::open(Some(dir.path()));
        cache.store(&key(), "k", &build).unwrap();
        assert!(abandoned.exists(), "another machine may be at work there");
        assert_eq!(clear(dir.path()).unwrap().len(), 1);
        assert!(!abandoned.exists() && mine.exists());
        assert_eq!(clear(&dir.path().join("absent")).unwrap(), []);
    }

    #[test]
    fn what_killed_compilers_left_long_ago_goes_with_the_next_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let abandoned = dir.path().join(format!("{WORK}{}-x", ended.id()));
        fs::create_dir(&abandoned).unwrap();
        let then = std::time::SystemTime::now() - 2 * LONG;
        File::open(&abandoned).unwrap().set_modified(then).unwrap();
        let (cache, _) = Cache::open(Some(dir.path()));
        cache.store(&key(), "k", &build).unwrap();
        assert!(!abandoned.exists());
    }

    #[test]
    fn the_folder_is_the_users_alone_and_holds_nothing_but_results() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("deep/c");
        fs::create_dir_all(&inner).unwrap();
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o755)).unwrap();
        let (cache, _) = Cache::open(Some(&inner));
        cache.store(&key(), "k", &build).unwrap();
        assert_eq!(inner.metadata().unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(&inner).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_cannot_be_made_gives_a_private_one_and_a_notice() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, b"").unwrap();
        for bad in [file.clone(), file.join("below")] {
            let (cache, notice) = Cache::open(Some(&bad));
            assert!(matches!(notice, Some(Notice::CacheUnusable { dir, .. }) if dir == bad));
            let stored = cache.store(&key(), "k", &build).unwrap();
            let file = stored.file().to_owned();
            assert_eq!(fs::read(&file).unwrap()[..7], *b"content");
            assert!(stored.is_private());
            drop(stored);
            assert!(!file.parent().unwrap().exists(), "the private folder goes when its file was loaded");
        }
    }

    #[test]
    fn a_folder_that_fails_later_gives_a_private_one_and_a_notice_too() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("c");
        let (cache, _) = Cache::open(Some(&inner));
        fs::remove_dir(&inner).unwrap();
        assert!(cache.store(&key(), "k", &build).is_ok());
        assert!(matches!(cache.take_notices().as_slice(), [Notice::CacheUnusable { .. }]));
        assert!(cache.take_notices().is_empty());
        cache.keep_words(&key(), b"some words");
        cache.keep_cubin(&key(), "k", b"code");
        assert_eq!((cache.words(&key()), cache.cubin(&key())), (None, None));
        assert!(matches!(cache.take_notices().as_slice(), [Notice::CacheUnusable { .. }]));
    }

    #[test]
    fn a_failing_build_is_its_own_error_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("c");
        let (cache, _) = Cache::open(Some(&inner));
        let failing = |_: &Path| Err(RuntimeError::OutOfMemory { kernel: "k".to_owned() });
        let error = cache.store(&key(), "k", &failing).unwrap_err();
        assert!(matches!(error, RuntimeError::OutOfMemory { .. }));
        assert_eq!(fs::read_dir(&inner).unwrap().count(), 0);
        assert!(cache.take_notices().is_empty(), "the folder is not at fault");
    }

    #[test]
    fn writers_of_one_key_do_not_disturb_each_other_or_readers() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("c");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let (cache, _) = Cache::open(Some(&inner));
                    for _ in 0..50 {
                        cache.store(&key(), "k", &build).unwrap();
                        assert!(cache.lookup(&key()).is_some());
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(&inner).unwrap().count(), 1);
    }
}
