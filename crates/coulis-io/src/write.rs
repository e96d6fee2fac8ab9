//! Writers of .npy and .npz files that leave a whole file or what was there before.
//!
//! The bytes go to a temporary file in the same folder, which is renamed over the target when it is complete. Members
//! of a .npz file are stored, not deflated, and aligned to 64 bytes, so that they can be mapped again.

use std::fs::{File, Permissions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::array::Array;
use crate::error::WriteError;
use crate::npy_header::descr_of;

/// Writes one array. Anything but row-major order is copied first.
pub fn write_npy(path: impl AsRef<Path>, array: &Array) -> Result<(), WriteError> {
    let path = path.as_ref();
    let array =
        array.to_row_major().map_err(|source| WriteError::OutOfMemory { path: path.to_owned(), source })?;
    write_whole(path, |file| write_member(file, &array))
}

/// Writes named arrays in the given order. Names should differ.
pub fn write_npz(path: impl AsRef<Path>, members: &[(String, Array)]) -> Result<(), WriteError> {
    let path = path.as_ref();
    let row_major: Result<Vec<(&str, Array)>, _> =
        members.iter().map(|(name, array)| Ok((name.as_str(), array.to_row_major()?))).collect();
    let members = row_major.map_err(|source| WriteError::OutOfMemory { path: path.to_owned(), source })?;
    write_whole(path, |file| {
        let mut archive = ZipWriter::new(UpToFailure { out: file, failure: None, at: 0, end: 0 });
        for (name, array) in &members {
            let options = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Stored)
                .last_modified_time(DateTime::default())
                .large_file(array.n_bytes() > u64::from(u32::MAX / 2))
                .with_alignment(64);
            archive.start_file(format!("{name}.npy"), options)?;
            write_member(&mut archive, array)?;
        }
        archive.finish()?.done()
    })
}

/// A file up to the first failure, which is kept while all that follows is dropped. An archive is given one,
/// since an archive whose end cannot be written prints that to standard error when it is dropped, and the
/// failure is an error here.
struct UpToFailure<W> {
    out: W,
    failure: Option<std::io::Error>,
    /// Position, and that behind the last byte.
    at: u64,
    end: u64,
}

impl<W: Write> UpToFailure<W> {
    fn kept(&mut self, done: std::io::Result<()>) {
        self.failure = self.failure.take().or(done.err());
    }

    /// All of it, unless something failed.
    fn done(mut self) -> std::io::Result<()> {
        self.flush()?;
        self.failure.map_or(Ok(()), Err)
    }
}

impl<W: Write> Write for UpToFailure<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.failure.is_none() {
            let done = self.out.write_all(bytes);
            self.kept(done);
        }
        self.at += bytes.len() as u64;
        self.end = self.end.max(self.at);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.failure.is_none() {
            let done = self.out.flush();
            self.kept(done);
        }
        Ok(())
    }
}

impl<W: Write + Seek> Seek for UpToFailure<W> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(at) => (at, 0),
            SeekFrom::End(by) => (self.end, by),
            SeekFrom::Current(by) => (self.at, by),
        };
        self.at = from.checked_add_signed(by).ok_or(std::io::ErrorKind::InvalidInput)?;
        if self.failure.is_none() {
            let done = self.out.seek(SeekFrom::Start(self.at)).map(drop);
            self.kept(done);
        }
        Ok(self.at)
    }
}

/// A header and the bytes of a row-major array.
fn write_member(out: &mut impl Write, array: &Array) -> std::io::Result<()> {
    out.write_all(&header(array))?;
    out.write_all(array.as_bytes().unwrap_or_default())
}

/// The header's bytes: version 1.0, padded so that the data begins at a multiple of 64. The longest text, of rank 64,
/// is far below the 65535 bytes of that version.
fn header(array: &Array) -> Vec<u8> {
    let lengths: Vec<String> = array.shape().iter().map(i64::to_string).collect();
    let comma = if lengths.len() == 1 { "," } else { "" };
    let descr = descr_of(array.dtype());
    let text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma}), }}", lengths.join(", "));
    let total = (10 + text.len() + 1).next_multiple_of(64);
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(((total - 10) as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(total - 1, b' ');
    bytes.push(b'\n');
    bytes
}

/// Links that are followed to a file, at most.
const MOST_LINKS: usize = 40;

/// The file that is meant: where a symbolic link stands at the path, what it points to, be it there or not.
fn target(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if !std::fs::symlink_metadata(&path).is_ok_and(|facts| facts.is_symlink()) {
            return Ok(path);
        }
        let to = std::fs::read_link(&path)?;
        path = path.parent().map_or_else(|| to.clone(), |folder| folder.join(&to));
    }
    Err(std::io::Error::other("too many symbolic links"))
}

/// Runs `fill` on a temporary file next to `path` and renames it into place, with the permissions of the file that
/// was there.
fn write_whole(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>,
) -> Result<(), WriteError> {
    let refused = |source| WriteError::Unwritable { path: path.to_owned(), source };
    let path = &target(path).map_err(refused)?;
    let before = std::fs::metadata(path).ok();
    if before.as_ref().is_some_and(|facts| !facts.is_file()) {
        return Err(WriteError::NotRegular { path: path.to_owned() });
    }
    let before = before.map(|facts| facts.permissions());
    // A rename would ask the folder alone.
    if before.as_ref().is_some_and(Permissions::readonly) {
        return Err(refused(std::io::Error::from(std::io::ErrorKind::PermissionDenied)));
    }
    if before.is_some() {
        File::options().write(true).open(path).map_err(refused)?;
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The process's mask applies, as for any new file.
        builder.permissions(Permissions::from_mode(0o666));
    }
    let temporary = builder.prefix(".coulis-").tempfile_in(&folder).map_err(refused)?;
    let mut out = BufWriter::new(temporary.as_file());
    fill(&mut out).map_err(refused)?;
    out.flush().map_err(refused)?;
    drop(out);
    if let Some(before) = before {
        temporary.as_file().set_permissions(before).map_err(refused)?;
    }
    temporary.persist(path).map_err(|error| refused(error.error))?;
    Ok(())
}
