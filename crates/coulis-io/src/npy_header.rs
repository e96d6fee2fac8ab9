//! The header of a .npy file: signature, version, and a Python dictionary of three keys.
//!
//! Source: the format's description in `numpy.lib.format`, versions 1.0, 2.0 and 3.0. The dictionary is read
//! by a scanner without recursion, so that a hostile header costs no stack; its answers are tested against
//! the `npyz` crate. bfloat16 and float8_e5m2 are read as `ml_dtypes` writes them (`<V2`, `<f1`) and by name.
//! NumPy's own elements of two bytes without a meaning are `|V2`, without a byte order, and nobody knows what they
//! are. float8_e4m3 is read and written by the name `float8_e4m3fn`, which NumPy knows with `ml_dtypes`: what that
//! package writes itself, `<V1`, is the same for a dozen of its types.

use std::path::Path;

use coulis_ir::DType;

use crate::array::ShapeError;
use crate::error::{HeaderFault, ReadError};

const SIGNATURE: &[u8] = b"\x93NUMPY";

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyHeader {
    /// Element type.
    pub dtype: DType,
    /// Whether the bytes of an element come most significant first.
    pub is_big_endian: bool,
    /// Whether the first axis is the contiguous one.
    pub is_fortran: bool,
    /// Lengths of the axes, each from 0 to 2^63 - 1; their product is not checked.
    pub shape: Vec<i64>,
    /// Position of the first byte of data.
    pub data_offset: usize,
}

impl NpyHeader {
    /// Bytes from the start of the file to the data, known from the first 12 bytes of the file.
    pub(crate) fn total_bytes(start: &[u8], path: &Path) -> Result<(usize, usize), ReadError> {
        let fault = |fault| header_error(path, fault);
        let short =
            |wanted: usize| fault(HeaderFault::Short { wanted: wanted as u64, found: start.len() as u64 });
        if !start.starts_with(SIGNATURE) {
            let is_prefix = !start.is_empty() && SIGNATURE.starts_with(start);
            return Err(if is_prefix { short(10) } else { fault(HeaderFault::Signature) });
        }
        let (&[major, minor], rest) = start[6..].split_first_chunk().ok_or_else(|| short(10))?;
        let (text_start, text_len) = match (major, minor) {
            (1, 0) => {
                let len = rest.first_chunk().ok_or_else(|| short(10))?;
                (10, usize::from(u16::from_le_bytes(*len)))
            }
            (2 | 3, 0) => {
                let len = rest.first_chunk().ok_or_else(|| short(12))?;
                (12, u32::from_le_bytes(*len) as usize)
            }
            _ => return Err(fault(HeaderFault::Version { major, minor })),
        };
        Ok((text_start, text_start + text_len))
    }

    /// Reads the header at the start of `bytes`; `path` is for messages.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<NpyHeader, ReadError> {
        let (text_start, data_offset) = NpyHeader::total_bytes(bytes, path)?;
        let text = bytes.get(text_start..data_offset).ok_or_else(|| {
            header_error(path, HeaderFault::Short { wanted: data_offset as u64, found: bytes.len() as u64 })
        })?;
        let found = Scanner { text, at: 0 }.dictionary().map_err(|fault| header_error(path, fault))?;
        let missing = |key| header_error(path, HeaderFault::NoKey { key });
        let descr = found.descr.ok_or_else(|| missing("descr"))?;
        let is_fortran = found.is_fortran.ok_or_else(|| missing("fortran_order"))?;
        let shape = found.shape.ok_or_else(|| missing("shape"))?;
        let (dtype, is_big_endian) = dtype_of(&descr).ok_or_else(|| {
            let (path, dtype) = (path.to_owned(), descr.clone());
            match descr.trim_start_matches(['<', '|', '=', '>']) {
                "V1" => ReadError::NamelessDType { path, dtype, bits: 8 },
                "V2" => ReadError::NamelessDType { path, dtype, bits: 16 },
                _ => ReadError::UnsupportedDType { path, dtype },
            }
        })?;
        if shape.len() > crate::array::MAX_RANK {
            let source = ShapeError::Rank { rank: shape.len() };
            return Err(ReadError::Shape { path: path.to_owned(), source });
        }
        Ok(NpyHeader { dtype, is_big_endian, is_fortran, shape, data_offset })
    }
}

fn header_error(path: &Path, fault: HeaderFault) -> ReadError {
    ReadError::Header { path: path.to_owned(), format: ".npy", fault }
}

/// Dtype and byte order of a type string; `None` when it is none of ours.
fn dtype_of(descr: &str) -> Option<(DType, bool)> {
    let (is_big_endian, code) = match descr.as_bytes().first()? {
        b'>' => (true, &descr[1..]),
        b'<' | b'|' | b'=' => (false, &descr[1..]),
        _ => (false, descr),
    };
    let has_order = descr.starts_with(['<', '>', '=']);
    let dtype = match code {
        "?" => DType::Bool,
        "V2" if has_order => DType::BF16,
        "bfloat16" => DType::BF16,
        "float8_e4m3fn" => DType::F8E4M3,
        "f1" | "float8_e5m2" => DType::F8E5M2,
        code => numpy_dtype(code)?,
    };
    Some((dtype, is_big_endian && dtype.bytes() > 1))
}

/// The type of NumPy's own that has the code, kind and bytes without the byte order: `f4`; `None` for any other.
pub fn numpy_dtype(code: &str) -> Option<DType> {
    Some(match code {
        "b1" => DType::Bool,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        _ => return None,
    })
}

/// The type string that this crate writes for `dtype`.
pub(crate) const fn descr_of(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "|b1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::F8E4M3 => "float8_e4m3fn",
        DType::F8E5M2 => "<f1",
        DType::F16 => "<f2",
        DType::BF16 => "<V2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
    }
}

/// The three values, as far as they were found.
#[derive(Default)]
struct Dictionary {
    descr: Option<String>,
    is_fortran: Option<bool>,
    shape: Option<Vec<i64>>,
}

/// Reads the dictionary's text from left to right.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn dictionary(mut self) -> Result<Dictionary, HeaderFault> {
        let mut found = Dictionary::default();
        self.expect(b'{', "`{`")?;
        while !self.accept(b'}') {
            let key = self.string()?;
            self.expect(b':', "`:`")?;
            let is_twice = match key.as_str() {
                "descr" => found.descr.replace(self.descr()?).is_some(),
                "fortran_order" => found.is_fortran.replace(self.boolean()?).is_some(),
                "shape" => found.shape.replace(self.tuple()?).is_some(),
                _ => return Err(HeaderFault::UnknownKey { key }),
            };
            if is_twice {
                return Err(HeaderFault::TwiceKey { key });
            }
            if !self.accept(b',') {
                self.expect(b'}', "`,` or `}`")?;
                break;
            }
        }
        self.skip_blanks();
        if self.at == self.text.len() { Ok(found) } else { Err(self.wanted("the end of the header")) }
    }

    fn wanted(&self, wanted: &'static str) -> HeaderFault {
        HeaderFault::Syntax { at: self.at, wanted }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, byte: u8, wanted: &'static str) -> Result<(), HeaderFault> {
        if self.accept(byte) { Ok(()) } else { Err(self.wanted(wanted)) }
    }

    /// A string without escapes, which none of the keys and type strings needs.
    fn string(&mut self) -> Result<String, HeaderFault> {
        self.skip_blanks();
        let quote = self.peek().filter(|byte| matches!(byte, b'\'' | b'"'));
        let quote = quote.ok_or_else(|| self.wanted("a string"))?;
        let rest = &self.text[self.at + 1..];
        let end = rest.iter().position(|&byte| byte == quote || byte == b'\\' || byte == b'\n');
        match end {
            Some(len) if rest[len] == quote => {
                self.at += len + 2;
                Ok(String::from_utf8_lossy(&rest[..len]).into_owned())
            }
            _ => Err(self.wanted("a string that ends and has no escapes")),
        }
    }

    /// The type: a string, or the text of a list or tuple that describes a structure.
    fn descr(&mut self) -> Result<String, HeaderFault> {
        self.skip_blanks();
        if !self.peek().is_some_and(|byte| matches!(byte, b'[' | b'(')) {
            return self.string();
        }
        let start = self.at;
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'[' | b'(' => depth += 1,
                b']' | b')' => depth -= 1,
                b'\'' | b'"' => {
                    self.string()?;
                    continue;
                }
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                let text = String::from_utf8_lossy(&self.text[start..self.at]);
                return Ok(text.chars().take(80).collect());
            }
        }
        Err(self.wanted("the end of the type's list"))
    }

    fn word(&mut self) -> &[u8] {
        self.skip_blanks();
        let start = self.at;
        while self
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+'))
        {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn boolean(&mut self) -> Result<bool, HeaderFault> {
        match self.word() {
            b"True" => Ok(true),
            b"False" => Ok(false),
            _ => Err(self.wanted("True or False")),
        }
    }

    fn tuple(&mut self) -> Result<Vec<i64>, HeaderFault> {
        self.expect(b'(', "`(`")?;
        let mut lengths = Vec::new();
        while !self.accept(b')') {
            lengths.push(self.length()?);
            if !self.accept(b',') {
                let has_one = lengths.len() == 1;
                self.expect(b')', "`,` or `)`")?;
                // `(3)` is a number in Python, not a tuple.
                if has_one {
                    return Err(self.wanted("a tuple; one length is written `(n,)`"));
                }
                break;
            }
        }
        Ok(lengths)
    }

    /// A length; Python 2 wrote an `L` after long ones.
    fn length(&mut self) -> Result<i64, HeaderFault> {
        let text = String::from_utf8_lossy(self.word()).into_owned();
        if text.is_empty() {
            return Err(self.wanted("a length"));
        }
        let digits = text.strip_suffix('L').unwrap_or(&text);
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        let value = if is_plain { digits.parse().ok() } else { None };
        value.ok_or_else(|| HeaderFault::Length { text: text.chars().take(40).collect() })
    }
}
