//! .npz files: a zip archive of .npy members.
//!
//! A stored member is mapped in place, a deflated one is inflated into owned memory. The checksum of either
//! is compared before anything is made of it, for which a stored member is read once more. `numpy.savez` does
//! not align its members, so one of a wider type is usually copied.

use std::collections::HashSet;
use std::io::{Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use crate::array::Array;
use crate::error::{HeaderFault, ReadError, in_a_sentence};
use crate::file::map_file;
use crate::npy::{assemble, data_bytes, out_of_memory, read_at};
use crate::npy_header::NpyHeader;
use crate::read::{Format, Holds, Members};
use crate::storage::{AlignedBytes, Storage};

/// The storage as a byte slice that the archive reader may own.
#[derive(Clone)]
struct Bytes(Storage);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// The format.
pub(crate) const FORMAT: Format =
    Format { extension: ".npz", holds: Holds::Members(|path| Ok(Box::new(Npz::open(path)?))) };

/// An opened archive.
struct Npz {
    path: PathBuf,
    storage: Storage,
    archive: ZipArchive<Cursor<Bytes>>,
}

impl Npz {
    /// Maps the file and reads the archive's directory.
    fn open(path: &Path) -> Result<Npz, ReadError> {
        let storage = map_file(path)?;
        let header_error = |fault| ReadError::Header { path: path.to_owned(), format: ".npz", fault };
        if !storage.bytes().starts_with(b"PK") {
            return Err(header_error(HeaderFault::Signature));
        }
        let archive = ZipArchive::new(Cursor::new(Bytes(storage.clone()))).map_err(|error| {
            let why = match error {
                ZipError::InvalidArchive(_) => {
                    "it is not whole at the end of the file, which may be cut off".to_owned()
                }
                other => in_a_sentence(&other.to_string()),
            };
            header_error(HeaderFault::Directory { why })
        })?;
        if let Some(name) = repeated_name(storage.bytes(), archive.central_directory_start()) {
            return Err(header_error(HeaderFault::TwiceMember { name }));
        }
        Ok(Npz { path: path.to_owned(), storage, archive })
    }
}

/// A name that two entries of the directory have. The archive reader keeps one entry a name and does not tell.
///
/// Source: PKWARE's APPNOTE, 4.3.12, central directory structure.
fn repeated_name(bytes: &[u8], directory: u64) -> Option<String> {
    const SIGNATURE: &[u8] = b"PK\x01\x02";
    const HEADER_BYTES: usize = 46;
    let mut names = HashSet::new();
    let mut rest = bytes.get(usize::try_from(directory).ok()?..)?;
    while rest.starts_with(SIGNATURE) && rest.len() >= HEADER_BYTES {
        let length = |at: usize| usize::from(u16::from_le_bytes([rest[at], rest[at + 1]]));
        let name = rest.get(HEADER_BYTES..HEADER_BYTES + length(28))?;
        if !names.insert(name) {
            return Some(String::from_utf8_lossy(name).into_owned());
        }
        rest = rest.get(HEADER_BYTES + length(28) + length(30) + length(32)..)?;
    }
    None
}

impl Members for Npz {
    /// Names of the .npy members without their extension, sorted.
    fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self
            .archive
            .file_names()
            .filter_map(|name| name.strip_suffix(".npy"))
            .map(str::to_owned)
            .collect();
        keys.sort();
        keys
    }

    /// The member named `key`.
    fn member(&mut self, key: &str) -> Result<Array, ReadError> {
        // Messages about a member name the archive and the member together.
        let inner = PathBuf::from(format!("{}/{key}.npy", self.path.display()));
        let unpack = |source| ReadError::Unpack { path: self.path.clone(), key: key.to_owned(), source };
        let opened = self.archive.by_name(&format!("{key}.npy"));
        let mut file = opened.map_err(|error| match error {
            ZipError::Io(source) => unpack(source),
            ZipError::UnsupportedArchive(why) => ReadError::Packing {
                path: self.path.clone(),
                key: key.to_owned(),
                method: format!("an unsupported method ({})", in_a_sentence(why)),
            },
            other => ReadError::Header {
                path: self.path.clone(),
                format: ".npz",
                fault: HeaderFault::Directory { why: in_a_sentence(&other.to_string()) },
            },
        })?;
        match file.compression() {
            CompressionMethod::Stored => {
                let found = self.storage.bytes().len() as u64;
                let (start, size) = (file.data_start(), file.size());
                let end =
                    start.checked_add(size).filter(|&end| end <= found && file.compressed_size() == size);
                let Some(end) = end else {
                    return Err(ReadError::Truncated {
                        path: inner,
                        wanted: size,
                        found: found.saturating_sub(start),
                    });
                };
                let (start, end) = (start as usize, end as usize);
                if crc32fast::hash(&self.storage.bytes()[start..end]) != file.crc32() {
                    return Err(unpack(std::io::Error::new(ErrorKind::InvalidData, "Invalid checksum")));
                }
                read_at(&inner, self.storage.clone(), start, end)
            }
            CompressionMethod::Deflated => {
                let declared = file.size();
                inflate(&mut file, declared, &inner, &unpack)
            }
            other => Err(ReadError::Packing {
                path: self.path.clone(),
                key: key.to_owned(),
                method: other.to_string().to_lowercase(),
            }),
        }
    }
}

/// Inflates header first, then exactly the bytes that the header promises, so that memory is taken once and never
/// more than the archive's directory declares.
fn inflate(
    file: &mut impl Read,
    declared: u64,
    path: &Path,
    unpack: &impl Fn(std::io::Error) -> ReadError,
) -> Result<Array, ReadError> {
    let mut start = Vec::new();
    file.by_ref().take(12).read_to_end(&mut start).map_err(unpack)?;
    let (_, header_len) = NpyHeader::total_bytes(&start, path)?;
    let mut text = start;
    let missing = (header_len as u64).saturating_sub(text.len() as u64);
    file.by_ref().take(missing).read_to_end(&mut text).map_err(unpack)?;
    let header = NpyHeader::parse(&text, path)?;
    let wanted = data_bytes(&header, path)?;
    let found = declared.saturating_sub(header.data_offset as u64);
    if found < wanted as u64 {
        return Err(ReadError::Truncated { path: path.to_owned(), wanted: wanted as u64, found });
    }
    let mut owned = AlignedBytes::zeroed(wanted).map_err(|source| out_of_memory(path, source))?;
    // A header shorter than 12 bytes is read together with the first bytes of data.
    let early = &text[header.data_offset..];
    let n_early = early.len().min(wanted);
    owned.as_mut_slice()[..n_early].copy_from_slice(&early[..n_early]);
    file.read_exact(&mut owned.as_mut_slice()[n_early..]).map_err(unpack)?;
    // The checksum is compared at the end of the member.
    std::io::copy(&mut file.take(declared), &mut std::io::sink()).map_err(unpack)?;
    assemble(&header, Storage::Owned(Arc::new(owned)), 0, path)
}
