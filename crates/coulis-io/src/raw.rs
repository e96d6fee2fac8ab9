//! Raw files: nothing but elements, little-endian, row-major; shape and dtype come from the caller.

use std::path::Path;

use coulis_ir::DType;

use coulis_ir::args::compact_strides;

use crate::array::{Array, size_in_bytes};
use crate::error::ReadError;
use crate::file::map_file;

/// What a raw file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawSpec {
    /// Lengths of the axes.
    pub shape: Vec<i64>,
    /// Element type.
    pub dtype: DType,
}

/// Maps a raw file, whose size must be exactly that of the shape.
pub(crate) fn read_raw(path: &Path, spec: &RawSpec) -> Result<Array, ReadError> {
    let shape_error = |source| ReadError::Shape { path: path.to_owned(), source };
    let wanted = size_in_bytes(spec.dtype, &spec.shape).map_err(shape_error)? as u64;
    let storage = map_file(path)?;
    let found = storage.bytes().len() as u64;
    if wanted != found {
        return Err(ReadError::RawSize {
            path: path.to_owned(),
            shape: spec.shape.clone(),
            dtype: spec.dtype,
            wanted,
            found,
        });
    }
    Array::from_storage(spec.dtype, spec.shape.clone(), compact_strides(&spec.shape), 0, storage)
        .map_err(shape_error)
}
