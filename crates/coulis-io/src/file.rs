//! Opens a file as shared bytes: checks what it is first, then maps it.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use crate::error::ReadError;
use crate::mapped::Mapped;
use crate::storage::{AlignedBytes, Storage};

/// Maps `path`. The check of the kind comes before opening, because opening a pipe would wait for a writer.
pub(crate) fn map_file(path: &Path) -> Result<Storage, ReadError> {
    let refused = |source: std::io::Error| match source.kind() {
        ErrorKind::NotFound => ReadError::Missing { path: path.to_owned() },
        _ => ReadError::Unreadable { path: path.to_owned(), source },
    };
    let facts = std::fs::metadata(path).map_err(refused)?;
    if facts.is_dir() {
        return Err(ReadError::Folder { path: path.to_owned() });
    }
    if !facts.is_file() {
        return Err(ReadError::NotRegular { path: path.to_owned() });
    }
    let file = File::open(path).map_err(refused)?;
    if facts.len() == 0 {
        let empty = AlignedBytes::zeroed(0)
            .map_err(|source| ReadError::OutOfMemory { path: path.to_owned(), source })?;
        return Ok(Storage::Owned(Arc::new(empty)));
    }
    Ok(Storage::Mapped(Arc::new(Mapped::new(file, path).map_err(refused)?)))
}
