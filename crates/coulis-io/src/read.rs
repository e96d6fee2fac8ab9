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

/// A format that an extension names.
pub(crate) struct Format {
    /// The extension, in lower case and with its dot.
    pub(crate) extension: &'static str,
    /// What a file holds.
    pub(crate) holds: Holds,
}

/// What the files of a format hold, and how it is read.
pub(crate) enum Holds {
    /// One array.
    Array(fn(&Path) -> Result<Array, ReadError>),
    /// Arrays with names.
    Members(fn(&Path) -> Result<Box<dyn Members>, ReadError>),
}

/// An opened file of arrays with names.
pub(crate) trait Members {
    /// The names, sorted.
    fn keys(&self) -> Vec<String>;

    /// The array of that name.
    fn member(&mut self, key: &str) -> Result<Array, ReadError>;
}

/// Every format, one file each.
static FORMATS: &[&Format] = &[&npy::FORMAT, &npz::FORMAT, &safe_tensors::FORMAT, &csv::FORMAT];

/// The extensions that name a format, as the words of a sentence: `.npy, .npz and .csv`.
pub fn extensions() -> String {
    let all: Vec<&str> = FORMATS.iter().map(|format| format.extension).collect();
    match all.split_last() {
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// The format of a path; the extension is read in any case.
fn format_of(path: &Path) -> Result<&'static Format, ReadError> {
    let found = path.extension().and_then(|e| e.to_str()).map(|e| format!(".{}", e.to_ascii_lowercase()));
    if let Some(format) = FORMATS.iter().find(|f| Some(f.extension) == found.as_deref()) {
        return Ok(format);
    }
    // A wrong path is the likelier mistake, and is said first.
    crate::file::map_file(path)?;
    Err(ReadError::UnknownExtension { path: path.to_owned() })
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
    let format = format_of(path)?;
    match format.holds {
        Holds::Array(read) => {
            no_key(format.extension)?;
            read(path)
        }
        Holds::Members(open) => {
            let mut members = open(path)?;
            let key = select_key(path, members.keys(), options.key.as_deref())?;
            members.member(&key)
        }
    }
}

/// Names of the members of a file, sorted; empty for formats that hold one array.
pub fn keys(path: impl AsRef<Path>) -> Result<Vec<String>, ReadError> {
    let path = path.as_ref();
    match format_of(path)?.holds {
        Holds::Array(_) => Ok(Vec::new()),
        Holds::Members(open) => Ok(open(path)?.keys()),
    }
}

/// Every member of a file by name, sorted. A file that holds one array gives it the name "".
pub fn read_all(path: impl AsRef<Path>) -> Result<Vec<(String, Array)>, ReadError> {
    let path = path.as_ref();
    match format_of(path)?.holds {
        Holds::Array(read) => Ok(vec![(String::new(), read(path)?)]),
        Holds::Members(open) => {
            let mut members = open(path)?;
            members.keys().into_iter().map(|key| Ok((key.clone(), members.member(&key)?))).collect()
        }
    }
}

/// The member to take: the one asked for, or the only one.
fn select_key(path: &Path, keys: Vec<String>, asked: Option<&str>) -> Result<String, ReadError> {
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
