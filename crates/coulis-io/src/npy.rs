//! .npy files: a header and the elements. Fortran order becomes strides; big-endian data is swapped in a copy.

use std::path::Path;
use std::sync::Arc;

use coulis_ir::args::compact_strides;

use crate::array::{Array, ShapeError, column_major, size_in_bytes};
use crate::error::ReadError;
use crate::file::map_file;
use crate::npy_header::NpyHeader;
use crate::read::{Format, Holds};
use crate::storage::{AlignedBytes, OutOfMemory, Storage};

/// The format.
pub(crate) const FORMAT: Format = Format { extension: ".npy", holds: Holds::Array(read_npy) };

/// Maps a .npy file.
fn read_npy(path: &Path) -> Result<Array, ReadError> {
    let storage = map_file(path)?;
    let len = storage.bytes().len();
    read_at(path, storage, 0, len)
}

/// Reads the bytes of a .npy file that is in memory already.
pub fn parse_npy(bytes: &[u8]) -> Result<Array, ReadError> {
    let path = Path::new("memory.npy");
    let owned = AlignedBytes::copy_of(bytes).map_err(|source| out_of_memory(path, source))?;
    read_at(path, Storage::Owned(Arc::new(owned)), 0, bytes.len())
}

/// Reads the .npy file that lies at `start..end` of a storage, which must be inside it.
pub(crate) fn read_at(path: &Path, storage: Storage, start: usize, end: usize) -> Result<Array, ReadError> {
    let header = NpyHeader::parse(&storage.bytes()[start..end], path)?;
    let wanted = data_bytes(&header, path)?;
    let found = end - start - header.data_offset;
    if found < wanted {
        return Err(ReadError::Truncated {
            path: path.to_owned(),
            wanted: wanted as u64,
            found: found as u64,
        });
    }
    assemble(&header, storage, start + header.data_offset, path)
}

/// Bytes of the elements that a header promises.
pub(crate) fn data_bytes(header: &NpyHeader, path: &Path) -> Result<usize, ReadError> {
    size_in_bytes(header.dtype, &header.shape).map_err(|source| shape_error(path, source))
}

/// The array whose elements begin at `offset` of a storage that holds all of them.
pub(crate) fn assemble(
    header: &NpyHeader,
    storage: Storage,
    offset: usize,
    path: &Path,
) -> Result<Array, ReadError> {
    let strides =
        if header.is_fortran { column_major(&header.shape) } else { compact_strides(&header.shape) };
    let (storage, offset) = if header.is_big_endian {
        let len = data_bytes(header, path)?;
        let mut swapped = AlignedBytes::copy_of(&storage.bytes()[offset..offset + len])
            .map_err(|source| out_of_memory(path, source))?;
        swapped.as_mut_slice().chunks_exact_mut(header.dtype.bytes()).for_each(<[u8]>::reverse);
        (Storage::Owned(Arc::new(swapped)), 0)
    } else {
        (storage, offset)
    };
    Array::from_storage(header.dtype, header.shape.clone(), strides, offset, storage)
        .map_err(|source| shape_error(path, source))
}

pub(crate) fn shape_error(path: &Path, source: ShapeError) -> ReadError {
    match source {
        ShapeError::OutOfMemory(source) => out_of_memory(path, source),
        source => ReadError::Shape { path: path.to_owned(), source },
    }
}

pub(crate) fn out_of_memory(path: &Path, source: OutOfMemory) -> ReadError {
    ReadError::OutOfMemory { path: path.to_owned(), source }
}
