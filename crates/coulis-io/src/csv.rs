//! Tables of numbers as text: one row a line, fields parted by commas, columns are axis 1, values are float64.
//!
//! The first line is a header when one of its fields has text and none looks like a number: `1,234` in quotes, `5 %`
//! and `1;2` do, and a line of such fields is data that is not read, not names. No other line is a header. Fields may be in double quotes, with commas and line ends inside, and may have blanks around them;
//! blank lines and a byte order mark are skipped; lines end as on any system. `nan` and `inf` are numbers. A quote that opens a
//! field and is not closed is refused: all that follows would be that one field.

use std::path::Path;

use crate::array::{Array, ShapeError};
use crate::error::{CsvFault, ReadError};
use crate::file::map_file;
use crate::read::{Format, Holds};

/// The format.
pub(crate) const FORMAT: Format = Format { extension: ".csv", holds: Holds::Array(read_csv) };

/// Reads a table; the shape is always (rows, columns), and (0, columns) when there is a header only.
fn read_csv(path: &Path) -> Result<Array, ReadError> {
    let storage = map_file(path)?;
    let (columns, values) =
        parse(storage.bytes()).map_err(|fault| ReadError::Csv { path: path.to_owned(), fault })?;
    let shape = [(values.len() / columns) as i64, columns as i64];
    Array::from_slice(&shape, &values).map_err(|error| match error {
        ShapeError::OutOfMemory(source) => ReadError::OutOfMemory { path: path.to_owned(), source },
        source => ReadError::Shape { path: path.to_owned(), source },
    })
}

/// Number of columns and the values in row-major order.
fn parse(bytes: &[u8]) -> Result<(usize, Vec<f64>), CsvFault> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let mut columns = 0;
    let mut values = Vec::new();
    let mut record = csv::ByteRecord::new();
    loop {
        let start = reader.position().clone();
        // Reading bytes of memory does not fail, and rows may have any length here.
        if !reader.read_byte_record(&mut record).unwrap_or(false) {
            break;
        }
        let raw = &bytes[start.byte() as usize..reader.position().byte() as usize];
        if raw.trim_ascii().is_empty() {
            continue;
        }
        // Empty lines before a row are read with it.
        let before = raw.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        let line = start.line() as usize + before.filter(|&&byte| byte == b'\n').count();
        let is_last = reader.position().byte() as usize == bytes.len();
        if is_last && let Some(at) = open_quote(raw) {
            let line = start.line() as usize + raw[..at].iter().filter(|&&byte| byte == b'\n').count();
            return Err(CsvFault::OpenQuote { line, field: record.len() });
        }
        let fields: Vec<&str> = record
            .iter()
            .map(|field| std::str::from_utf8(field).map(unquoted))
            .collect::<Result<_, _>>()
            .map_err(|_| CsvFault::NotText { line })?;
        let is_first = columns == 0;
        if is_first {
            columns = fields.len();
        }
        if fields.len() != columns {
            return Err(CsvFault::Ragged { line, wanted: columns, found: fields.len() });
        }
        let names_columns =
            || fields.iter().any(|f| !f.is_empty()) && !fields.iter().any(|f| holds_numbers(f));
        if is_first && names_columns() {
            continue;
        }
        for (field_idx, field) in fields.iter().enumerate() {
            let number = field.parse().map_err(|_| CsvFault::Number {
                line,
                field: field_idx + 1,
                text: field.chars().take(40).collect(),
            });
            values.push(number?);
        }
    }
    if columns == 0 { Err(CsvFault::Empty) } else { Ok((columns, values)) }
}

/// Where the quote stands that opens a field and is not closed, of bytes that begin with a field.
///
/// The reader of CSV takes the end of a file as that of such a field and does not tell. As there, a quote is one where a field
/// begins, and two in a row stand for one inside a quoted field.
fn open_quote(bytes: &[u8]) -> Option<usize> {
    let (mut field, mut is_open, mut may_open) = (0, false, true);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            // Of two quotes in a row the second opens the field again.
            b'"' if is_open => (is_open, may_open) = (false, true),
            b'"' if may_open => is_open = true,
            _ if is_open => {}
            b',' | b'\n' | b'\r' => (field, may_open) = (at + 1, true),
            _ => may_open = false,
        }
    }
    is_open.then_some(field)
}

/// Whether a field is a number, or numbers with signs between and around them: then it is data, perhaps of another notation
/// or of a table that commas do not part.
fn holds_numbers(field: &str) -> bool {
    let is_sign = |c: char| !c.is_alphanumeric() && !matches!(c, '.' | '+' | '-');
    let mut words = field.split(is_sign).filter(|word| !word.is_empty()).peekable();
    words.peek().is_some() && words.all(|word| word.parse::<f64>().is_ok())
}

/// A field without blanks and without its pair of quotes, which a reader of CSV leaves where blanks stand before them.
fn unquoted(field: &str) -> &str {
    let trimmed = field.trim();
    trimmed.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).map_or(trimmed, str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, columns: usize, values: &[f64]) {
        assert_eq!(parse(text.as_bytes()), Ok((columns, values.to_vec())));
    }

    #[track_caller]
    fn check_fault(bytes: &[u8], message: &str) {
        assert_eq!(parse(bytes).unwrap_err().to_string(), message);
    }

    #[test]
    fn a_header_row_is_optional() {
        check("a,b\n1,2\n3,4\n", 2, &[1.0, 2.0, 3.0, 4.0]);
        check("1,2\n3,4", 2, &[1.0, 2.0, 3.0, 4.0]);
        check("a,\n", 2, &[]);
    }

    #[test]
    fn blanks_quotes_carriage_returns_and_a_byte_order_mark_are_skipped() {
        check("\u{feff}\"x\", y\r\n \"1.5\" ,\t-2e3\r\n\r\n", 2, &[1.5, -2000.0]);
    }

    #[test]
    fn quotes_hold_commas_and_line_ends() {
        check("\"income, in euros\",\"two\nlines\"\n1,\"2\"\n", 2, &[1.0, 2.0]);
        check_fault(b"\"a,\nb\"\n\n\"1,234\"\n", "line 4, field 1 is `1,234`, which is not a number");
        check_fault(b"x\n\"\"\n", "line 2, field 1 is ``, which is not a number");
    }

    #[test]
    fn a_quote_that_is_not_closed_is_refused_where_it_stands() {
        let open = |line: usize, field: usize| {
            format!(
                "line {line}, field {field} begins with a quote, and no quote ends it before the end of the file"
            )
        };
        for (text, line, field) in [
            ("1,2\n3,\"4", 2, 2),
            ("1,2\n3,\"4\n", 2, 2),
            ("1,2\n\"3,4\n5,6\n", 2, 1),
            ("\"a,b\n1,2\n", 1, 1),
            ("\n\n\"a\nb\",\"", 4, 2),
            ("1\n\"2\"\"\n", 2, 1),
            ("1,2\n3,\"\n\"\"4", 2, 2),
            ("\"", 1, 1),
        ] {
            check_fault(text.as_bytes(), &open(line, field));
        }
        check("1,\"2\"", 2, &[1.0, 2.0]);
        check("5\" screen,\"a \"\"b\"\"\"\n1,\"2\"\n", 2, &[1.0, 2.0]);
        check_fault(b"1,2\n3, \"4", "line 2, field 2 is `\"4`, which is not a number");
    }

    #[test]
    fn lines_end_as_on_any_system() {
        check("1\r2\r3\n4\r\n5", 1, &[1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn infinities_are_numbers() {
        check("inf,-inf\n", 2, &[f64::INFINITY, f64::NEG_INFINITY]);
        assert!(parse(b"nan").unwrap().1[0].is_nan());
    }

    #[test]
    fn a_row_of_another_length_is_refused() {
        check_fault(b"1,2\n3\n", "line 2 has 1 field, the lines before have 2");
    }

    #[test]
    fn a_word_or_an_empty_field_below_the_first_line_is_refused() {
        check_fault(b"a,b\n1,x\n", "line 2, field 2 is `x`, which is not a number");
        check_fault(b"1,2\n3,\n", "line 2, field 2 is ``, which is not a number");
        check_fault(b"1 2 3\n", "line 1, field 1 is `1 2 3`, which is not a number");
        check_fault(b"1;2\n3;4\n", "line 1, field 1 is `1;2`, which is not a number");
    }

    #[test]
    fn a_first_line_of_numbers_and_others_is_no_header() {
        check_fault(b"1,,3\n4,5,6\n", "line 1, field 2 is ``, which is not a number");
        check_fault(b"a,2019\n3,4\n", "line 1, field 1 is `a`, which is not a number");
    }

    #[test]
    fn a_first_line_of_numbers_in_another_notation_is_data_and_no_header() {
        for field in ["1,234", "1_234", "5 %", "$ 7.50", "12/31", "(3)", "1;2"] {
            let message = format!("line 1, field 1 is `{field}`, which is not a number");
            check_fault(format!("\"{field}\",\"{field}\"\n1,2\n").as_bytes(), &message);
        }
        check_fault(b",\n1,2\n", "line 1, field 1 is ``, which is not a number");
        check("size (cm),\n1,2\n", 2, &[1.0, 2.0]);
        check("2019Q1,x-1\n1,2\n", 2, &[1.0, 2.0]);
    }

    #[test]
    fn names_below_the_first_line_are_no_header() {
        check_fault(b"1,2\na,b\n", "line 2, field 1 is `a`, which is not a number");
        check_fault(b"a,b\n\nc,d\n1,2\n", "line 3, field 1 is `c`, which is not a number");
    }

    #[test]
    fn an_empty_file_and_bytes_that_are_no_text_are_refused() {
        check_fault(b"\n \n", "it has no line");
        check_fault(b"1\n\xff\n", "line 2 is not UTF-8 text");
    }
}
