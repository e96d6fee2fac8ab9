//! Texts: kernels, traces and suites are read whole, so their length has a limit.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Most bytes of a text. Devices and pipes may have no end.
const MOST: u64 = 64 << 20;

/// The text of a file.
pub fn read_text(path: &Path) -> Result<String> {
    text_from(File::open(path)?)
}

/// The text that a reader gives, to its end.
pub fn text_from(reader: impl Read) -> Result<String> {
    let mut bytes = Vec::new();
    reader.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("it is longer than {MOST} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, "it is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_text_ends_at_the_limit_at_the_latest() {
        assert_eq!(text_from(std::io::repeat(b' ').take(MOST)).unwrap().len() as u64, MOST);
        for endless in [MOST + 1, u64::MAX] {
            let error = text_from(std::io::repeat(b' ').take(endless)).unwrap_err();
            assert_eq!(error.to_string(), "it is longer than 67108864 bytes");
        }
        assert_eq!(text_from(&b"\xff"[..]).unwrap_err().to_string(), "it is not valid UTF-8");
    }
}
