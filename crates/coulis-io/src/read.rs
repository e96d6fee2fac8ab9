//! One door for all formats: the extension picks the reader.

use std::path::Path;

use crate::array::Array;
use crate::error::ReadError;
use crate::raw::{RawSpec, read_raw};
use crate::{csv, npy, npz, safe_tensors};

/// What the path alone does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Member of a .npz or .safetensors file.
    pub key: Option<String>,
    /// Shape and dtype of a raw file; with it any extension is read as raw.
    pub raw: Option<RawSpec>,
}

/// The formats that an extension names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Npy,
    Npz,
    Safetensors,
    Csv,
}

/// The format of a path; the extension is read in any case.
fn format_of(path: &Path) -> Result<Format, ReadError> {
    let extension = path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
    match extension.as_deref() {
        Some("npy") => Ok(Format::Npy),
        Some("npz") => Ok(Format::Npz),
        Some("safetensors") => Ok(Format::Safetensors),
        Some("csv") => Ok(Format::Csv),
        _ => {
            // A wrong path is the likelier mistake, and is said first.
            crate::file::map_file(path)?;
            Err(ReadError::UnknownExtension { path: path.to_owned() })
        }
    }
}

/// Reads one array. Formats that hold several take `options.key`, or their only member.
pub fn read(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Array, ReadError> {
    let path = path.as_ref();
    let no_key = |format: &'static str| match &options.key {
        Some(key) => Err(ReadError::KeyNotTaken { path: path.to_owned(), format, key: key.clone() }),
        None => Ok(()),
    };
    if let Some(spec) = &options.raw {
        no_key("raw")?;
        return read_raw(path, spec);
    }
    match format_of(path)? {
        Format::Npy => {
            no_key(".npy")?;
            npy::read_npy(path)
        }
        Format::Csv => {
            no_key(".csv")?;
            csv::read_csv(path)
        }
        Format::Npz => npz::Npz::open(path)?.select(options.key.as_deref()),
        Format::Safetensors => safe_tensors::Members::open(path)?.select(options.key.as_deref()),
    }
}

/// Names of the members of a .npz or .safetensors file, sorted; empty for formats that hold one array.
pub fn keys(path: impl AsRef<Path>) -> Result<Vec<String>, ReadError> {
    let path = path.as_ref();
    match format_of(path)? {
        Format::Npy | Format::Csv => Ok(Vec::new()),
        Format::Npz => Ok(npz::Npz::open(path)?.keys()),
        Format::Safetensors => Ok(safe_tensors::Members::open(path)?.keys()),
    }
}

/// Every member of a .npz or .safetensors file by name, sorted. A file that holds one array gives it the name "".
pub fn read_all(path: impl AsRef<Path>) -> Result<Vec<(String, Array)>, ReadError> {
    let path = path.as_ref();
    match format_of(path)? {
        Format::Npy => Ok(vec![(String::new(), npy::read_npy(path)?)]),
        Format::Csv => Ok(vec![(String::new(), csv::read_csv(path)?)]),
        Format::Npz => {
            let mut npz = npz::Npz::open(path)?;
            npz.keys().into_iter().map(|key| Ok((key.clone(), npz.member(&key)?))).collect()
        }
        Format::Safetensors => {
            let members = safe_tensors::Members::open(path)?;
            members.keys().into_iter().map(|key| Ok((key.clone(), members.member(&key)?))).collect()
        }
    }
}

/// The member to take: the one asked for, or the only one.
pub(crate) fn select_key(path: &Path, keys: Vec<String>, asked: Option<&str>) -> Result<String, ReadError> {
    match asked {
        Some(key) if keys.iter().any(|k| k == key) => Ok(key.to_owned()),
        Some(key) => Err(ReadError::MissingKey { path: path.to_owned(), key: key.to_owned(), keys }),
        None => match <[String; 1]>::try_from(keys) {
            Ok([only]) => Ok(only),
            Err(keys) if keys.is_empty() => Err(ReadError::NoMember { path: path.to_owned() }),
            Err(keys) => Err(ReadError::SeveralMembers { path: path.to_owned(), keys }),
        },
    }
}
