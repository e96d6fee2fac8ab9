//! .safetensors files: a JSON header, then the tensors' bytes, row-major and little-endian.
//!
//! The header is checked by the `safetensors` crate; the tensors stay mapped. Of a name that is there twice the crate
//! keeps one entry and does not tell, so the names are read beforehand.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

use coulis_ir::DType;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};

use coulis_ir::args::compact_strides;

use crate::array::Array;
use crate::error::{HeaderFault, ReadError, in_a_sentence};
use crate::file::map_file;
use crate::read::{Format, Holds, Members};
use crate::storage::Storage;

/// The format.
pub(crate) const FORMAT: Format =
    Format { extension: ".safetensors", holds: Holds::Members(|path| Ok(Box::new(Tensors::open(path)?))) };

/// An opened file whose header is sound.
struct Tensors {
    path: PathBuf,
    storage: Storage,
}

impl Tensors {
    /// Maps the file and checks its header.
    fn open(path: &Path) -> Result<Tensors, ReadError> {
        let tensors = Tensors { path: path.to_owned(), storage: map_file(path)? };
        tensors.header()?;
        match tensors.repeated_name() {
            Some(name) => Err(tensors.header_error(HeaderFault::TwiceMember { name })),
            None => Ok(tensors),
        }
    }

    fn header(&self) -> Result<SafeTensors<'_>, ReadError> {
        SafeTensors::deserialize(self.storage.bytes()).map_err(|error| self.fault(&error))
    }

    /// A name that is twice in the header, which is sound else.
    fn repeated_name(&self) -> Option<String> {
        let (length, rest) = self.storage.bytes().split_first_chunk()?;
        let text = rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        serde_json::Deserializer::from_slice(text).deserialize_map(RepeatedName).ok()?
    }

    fn header_error(&self, fault: HeaderFault) -> ReadError {
        ReadError::Header { path: self.path.clone(), format: ".safetensors", fault }
    }

    fn fault(&self, error: &SafeTensorError) -> ReadError {
        let found = self.storage.bytes().len() as u64;
        let fault = match error {
            SafeTensorError::HeaderTooSmall => HeaderFault::Short { wanted: 8, found },
            SafeTensorError::InvalidHeaderLength => {
                let mut word = [0; 8];
                word.copy_from_slice(&self.storage.bytes()[..8]);
                HeaderFault::Short { wanted: u64::from_le_bytes(word).saturating_add(8), found }
            }
            other => HeaderFault::Directory { why: in_a_sentence(&other.to_string()) },
        };
        self.header_error(fault)
    }

    fn dtype_of(&self, view: &TensorView<'_>) -> Result<DType, ReadError> {
        match view.dtype() {
            Dtype::BOOL => Ok(DType::Bool),
            Dtype::U8 => Ok(DType::U8),
            Dtype::I8 => Ok(DType::I8),
            Dtype::F8_E5M2 => Ok(DType::F8E5M2),
            Dtype::F8_E4M3 => Ok(DType::F8E4M3),
            Dtype::I16 => Ok(DType::I16),
            Dtype::U16 => Ok(DType::U16),
            Dtype::F16 => Ok(DType::F16),
            Dtype::BF16 => Ok(DType::BF16),
            Dtype::I32 => Ok(DType::I32),
            Dtype::U32 => Ok(DType::U32),
            Dtype::F32 => Ok(DType::F32),
            Dtype::F64 => Ok(DType::F64),
            Dtype::I64 => Ok(DType::I64),
            Dtype::U64 => Ok(DType::U64),
            other => {
                Err(ReadError::UnsupportedDType { path: self.path.clone(), dtype: format!("{other:?}") })
            }
        }
    }
}

/// Finds the first name that an object has twice.
struct RepeatedName;

impl<'de> Visitor<'de> for RepeatedName {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<String>, A::Error> {
        let (mut seen, mut repeated) = (HashSet::new(), None);
        while let Some((name, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
            if seen.contains(&name) {
                repeated.get_or_insert(name);
            } else {
                seen.insert(name);
            }
        }
        Ok(repeated)
    }
}

impl Members for Tensors {
    /// The names, sorted.
    fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = match self.header() {
            Ok(header) => header.names().into_iter().map(str::to_owned).collect(),
            Err(_) => Vec::new(),
        };
        keys.sort();
        keys
    }

    /// The tensor named `key`.
    fn member(&mut self, key: &str) -> Result<Array, ReadError> {
        let view = self.header()?.tensor(key).map_err(|error| self.fault(&error))?;
        let dtype = self.dtype_of(&view)?;
        let lengths: Result<Vec<i64>, _> = view.shape().iter().map(|&length| i64::try_from(length)).collect();
        let shape = lengths
            .map_err(|_| self.header_error(HeaderFault::Length { text: format!("{:?}", view.shape()) }))?;
        let offset = view.data().as_ptr() as usize - self.storage.bytes().as_ptr() as usize;
        Array::from_storage(dtype, shape.clone(), compact_strides(&shape), offset, self.storage.clone())
            .map_err(|source| ReadError::Shape { path: self.path.clone(), source })
    }
}
