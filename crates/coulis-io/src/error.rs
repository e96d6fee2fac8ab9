//! Everything that can be wrong with a file, as values.

use std::path::PathBuf;

use coulis_ir::{DType, counted, quoted_names};

use crate::array::ShapeError;
use crate::storage::OutOfMemory;

/// Why a file gives no array.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Nothing at this path.
    #[error("no file at `{}`", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// A folder where a file was expected.
    #[error("`{}` is a folder, a file was expected", path.display())]
    Folder {
        /// The path.
        path: PathBuf,
    },
    /// A pipe, socket or device, which cannot be mapped.
    #[error("`{}` is not a regular file, and only a regular file can be mapped", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// The system refused to open, map or read it.
    #[error("cannot read `{}`: {}", path.display(), plain_io(source))]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// An extension that names no format.
    #[error(
        "cannot tell the format of `{}` from its extension; read are {}, and any file when a raw shape and dtype are given",
        path.display(),
        crate::read::extensions()
    )]
    UnknownExtension {
        /// The path.
        path: PathBuf,
    },
    /// The file is not what its extension says.
    #[error("`{}` is not a {format} file: {fault}", path.display())]
    Header {
        /// The path.
        path: PathBuf,
        /// Name of the format.
        format: &'static str,
        /// What is wrong.
        fault: HeaderFault,
    },
    /// Fewer bytes than the header promises.
    #[error("`{}` is truncated: its header promises {wanted} bytes of data, {found} are there", path.display())]
    Truncated {
        /// The path.
        path: PathBuf,
        /// Bytes promised.
        wanted: u64,
        /// Bytes found.
        found: u64,
    },
    /// Fewer bytes than were mapped when the file was opened.
    #[error("`{}` was cut short while it was in use: it had {wanted} bytes, {found} are there", path.display())]
    CutShort {
        /// The path.
        path: PathBuf,
        /// Bytes that were mapped.
        wanted: u64,
        /// Bytes found.
        found: u64,
    },
    /// The header gives a shape that cannot be.
    #[error("`{}` has an impossible shape: {source}", path.display())]
    Shape {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        source: ShapeError,
    },
    /// A dtype outside the IR: complex, 128-bit, strings, objects, structures.
    #[error(
        "`{}` holds elements of type `{dtype}`, which is unsupported; supported are bool, int8 to int64, uint8 to \
         uint64, float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2",
        path.display()
    )]
    UnsupportedDType {
        /// The path.
        path: PathBuf,
        /// The dtype in the file's own words.
        dtype: String,
    },
    /// A dtype of which the file says the width alone.
    #[error(
        "`{}` holds elements of type `{dtype}`, as which NumPy writes several types of {bits} bits, so nobody knows \
         which; keep them in .safetensors, which names it, or give the bytes as a raw file with --raw-shape and \
         --raw-dtype",
        path.display()
    )]
    NamelessDType {
        /// The path.
        path: PathBuf,
        /// The dtype in the file's own words.
        dtype: String,
        /// Bits of an element.
        bits: u32,
    },
    /// A key that the file does not have.
    #[error("`{}` has no member `{key}`; its members are {}", path.display(), quoted_names(keys))]
    MissingKey {
        /// The path.
        path: PathBuf,
        /// The key asked for.
        key: String,
        /// The keys there are.
        keys: Vec<String>,
    },
    /// Several members and no key.
    #[error("`{}` has {} members and no key was given; its members are {}", path.display(), keys.len(), quoted_names(keys))]
    SeveralMembers {
        /// The path.
        path: PathBuf,
        /// The keys there are.
        keys: Vec<String>,
    },
    /// A file of members without any array.
    #[error("`{}` holds no array", path.display())]
    NoMember {
        /// The path.
        path: PathBuf,
    },
    /// A key for a format that holds one array only.
    #[error("a key (`{key}`) was given, but `{}` is a {format} file, which holds one array", path.display())]
    KeyNotTaken {
        /// The path.
        path: PathBuf,
        /// Name of the format.
        format: &'static str,
        /// The key.
        key: String,
    },
    /// A compression method of a .npz member other than stored or deflated.
    #[error("member `{key}` of `{}` is packed with {method}; stored and deflated members are read", path.display())]
    Packing {
        /// The path.
        path: PathBuf,
        /// The member.
        key: String,
        /// The method.
        method: String,
    },
    /// A member that cannot be unpacked.
    #[error("member `{key}` of `{}` cannot be unpacked: {source}", path.display())]
    Unpack {
        /// The path.
        path: PathBuf,
        /// The member.
        key: String,
        /// What the unpacker says.
        source: std::io::Error,
    },
    /// A raw file of another size than shape and dtype need.
    #[error(
        "`{}` has {found} bytes; {dtype} of shape {shape:?} needs exactly {wanted}",
        path.display()
    )]
    RawSize {
        /// The path.
        path: PathBuf,
        /// Shape given.
        shape: Vec<i64>,
        /// Dtype given.
        dtype: DType,
        /// Bytes that they need.
        wanted: u64,
        /// Bytes found.
        found: u64,
    },
    /// A text file that is not a table of numbers.
    #[error("`{}` is not a table of numbers: {fault}", path.display())]
    Csv {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        fault: CsvFault,
    },
    /// No memory for a copy that the format makes necessary.
    #[error("`{}` needs a copy in memory: {source}", path.display())]
    OutOfMemory {
        /// The path.
        path: PathBuf,
        /// The refusal.
        source: OutOfMemory,
    },
}

/// What is wrong with a header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    /// The first bytes are not the format's.
    #[error("it does not begin with the format's signature")]
    Signature,
    /// A version that is not read.
    #[error("its format version is {major}.{minor}; 1.0, 2.0 and 3.0 are read")]
    Version {
        /// Major number.
        major: u8,
        /// Minor number.
        minor: u8,
    },
    /// The file ends inside the header.
    #[error("its header takes {wanted} bytes and the file has {found}")]
    Short {
        /// Bytes that the header takes.
        wanted: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// Text that is not the expected dictionary.
    #[error("its header is not understood at byte {at}: expected {wanted}")]
    Syntax {
        /// Byte position in the header's text.
        at: usize,
        /// What was expected there.
        wanted: &'static str,
    },
    /// A dictionary without one of the three keys.
    #[error("its header has no key `{key}`")]
    NoKey {
        /// The key.
        key: &'static str,
    },
    /// A dictionary with a key twice.
    #[error("its header has the key `{key}` twice")]
    TwiceKey {
        /// The key.
        key: String,
    },
    /// An archive with two members of one name.
    #[error("it has two members named `{name}`")]
    TwiceMember {
        /// The name.
        name: String,
    },
    /// A key that the format does not know.
    #[error("its header has the unknown key `{key}`")]
    UnknownKey {
        /// The key.
        key: String,
    },
    /// A length that is not an integer from 0 to 2^63 - 1.
    #[error("its shape has the length {text}, which is not an integer from 0 to 2^63 - 1")]
    Length {
        /// The length as written.
        text: String,
    },
    /// The archive's directory is broken.
    #[error("its directory is broken: {why}")]
    Directory {
        /// What the archive reader says.
        why: String,
    },
}

/// What is wrong with a table of numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CsvFault {
    /// A row of another length than the first one.
    #[error("line {line} has {}, the lines before have {wanted}", counted(found, "field"))]
    Ragged {
        /// Line in the file, from 1.
        line: usize,
        /// Fields of the first row.
        wanted: usize,
        /// Fields of this row.
        found: usize,
    },
    /// A field that is not a number.
    #[error("line {line}, field {field} is `{text}`, which is not a number")]
    Number {
        /// Line in the file, from 1.
        line: usize,
        /// Field in the line, from 1.
        field: usize,
        /// The text, cut at 40 characters.
        text: String,
    },
    /// A quoted field that the end of the file ends.
    #[error(
        "line {line}, field {field} begins with a quote, and no quote ends it before the end of the file"
    )]
    OpenQuote {
        /// Line in the file of the quote, from 1.
        line: usize,
        /// Field in its row, from 1.
        field: usize,
    },
    /// No row and no header.
    #[error("it has no line")]
    Empty,
    /// Bytes that are not UTF-8.
    #[error("line {line} is not UTF-8 text")]
    NotText {
        /// Line in the file, from 1.
        line: usize,
    },
}

/// Why a file was not written. The path then holds what it held before.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The system refused.
    #[error("cannot write `{}`: {}", path.display(), plain_io(source))]
    Unwritable {
        /// The path.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The path is a folder, a pipe or a device.
    #[error("cannot write `{}`: it exists and is not a regular file", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// The extension names no format that is written.
    #[error("cannot write `{}`: written are .npy and .npz", path.display())]
    UnknownExtension {
        /// The path.
        path: PathBuf,
    },
    /// No memory for a row-major copy.
    #[error("cannot write `{}`: {source}", path.display())]
    OutOfMemory {
        /// The path.
        path: PathBuf,
        /// The refusal.
        source: OutOfMemory,
    },
}

/// The system's words in our form, without the number.
fn plain_io(error: &std::io::Error) -> String {
    let text = error.to_string();
    in_a_sentence(text.split(" (os error").next().unwrap_or(&text))
}

/// Words of another's error in our form: the first word in lower case, unless it is all capitals; names within stay as they
/// are.
pub(crate) fn in_a_sentence(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if first.is_uppercase() && !second.is_uppercase() => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}
