//! Arrays and the files they live in.
//!
//! [`Array`] is a read-only, dtype-erased n-dimensional array over a memory map or owned bytes. [`read`] opens `.npy`,
//! `.npz`, `.safetensors`, `.csv` and raw files as arrays, mapped where the format allows, so that a file larger than
//! memory works; [`write_npy`] and [`write_npz`] write whole files or nothing. Whatever can be wrong with a file is a
//! [`ReadError`]; no content of a file makes a reader panic. All formats are little-endian in memory, and so is every
//! machine this crate supports.

mod array;
mod csv;
mod disk;
mod error;
mod file;
mod mapped;
mod npy;
mod npy_header;
mod npz;
mod raw;
mod read;
mod safe_tensors;
mod storage;
mod text;
mod write;

pub use array::{Array, Element, MAX_RANK, Scalar, Scalars, ShapeError, bytes_around, check_shape};
pub use disk::bytes_from_disk;
pub use error::{CsvFault, HeaderFault, ReadError, WriteError};
pub use mapped::{Report as CutShortReport, check_mapped, end_when_cut_short};
pub use npy::parse_npy;
pub use npy_header::{NpyHeader, numpy_dtype};
pub use raw::RawSpec;
pub use read::{ReadOptions, extensions, keys, read, read_all};
pub use storage::{AlignedBytes, OutOfMemory, Owner};
pub use text::{read_text, text_from};
pub use write::{write_npy, write_npz};

#[cfg(target_endian = "big")]
compile_error!("coulis reads and writes little-endian memory only");
