//! What is wrong with a text, and where.

use std::ops::Range;

use coulis_ir::dtype::UnknownDType;

/// A text that is not in the dialect.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("line {line}, column {column}: {kind}")]
pub struct ParseError {
    /// What is wrong.
    pub kind: ParseErrorKind,
    /// The bytes of the text that it is about; may be empty.
    pub range: Range<usize>,
    /// Line of the first byte, from 1.
    pub line: usize,
    /// Column of the first byte in characters, from 1.
    pub column: usize,
}

/// The kinds of [`ParseError`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParseErrorKind {
    /// The Python parser refused it.
    #[error("not Python syntax: {message}")]
    Syntax {
        /// The Python parser's words.
        message: String,
    },
    /// Longer than offsets reach.
    #[error("the text has {found} bytes; at most {limit} are legal")]
    TooLong {
        /// Bytes of the text.
        found: usize,
        /// Most bytes.
        limit: usize,
    },
    /// Nested deeper than any kernel needs.
    #[error("nested too deep: at least {found} {what}; at most {limit} are legal")]
    TooDeep {
        /// What was counted.
        what: &'static str,
        /// How many there were when the count ended.
        found: usize,
        /// Most of them.
        limit: usize,
    },
    /// A buffer of more bytes than are counted.
    #[error("`{buffer}` has {found}, which is more than {limit} bytes, the most that is legal")]
    TooLarge {
        /// The buffer.
        buffer: String,
        /// Its extents and type.
        found: String,
        /// Most bytes.
        limit: i64,
    },
    /// The system refused a thread to parse on.
    #[error("no memory to parse with")]
    Resources,
    /// Python, but not of the dialect.
    #[error("found {found}; legal here: {legal}")]
    Unexpected {
        /// What stands there.
        found: String,
        /// What may stand there.
        legal: &'static str,
    },
    /// A name that nothing defines.
    #[error("nothing named `{name}` is in scope{}", hint(.near))]
    UnknownName {
        /// The name.
        name: String,
        /// Names in scope that look like it, at most five.
        near: Vec<String>,
    },
    /// A name that is defined already.
    #[error("`{name}` is defined already; legal: a name that is new in its block")]
    AlreadyDefined {
        /// The name.
        name: String,
    },
    /// An atom inside an expression.
    #[error(
        "`{name}` is a statement and no part of an expression; legal: alone on the right of `=`, as in `x[0] = {name}(...)`"
    )]
    AtomInside {
        /// The name as written.
        name: String,
    },
    /// A function of the dialect that does not exist.
    #[error("unknown function `{name}`; legal here: {legal}")]
    UnknownFunction {
        /// The name as written.
        name: String,
        /// What may stand there.
        legal: &'static str,
    },
    /// An argument by a keyword that the function does not have.
    #[error("`{function}` has no argument `{keyword}`; {}", legal_keywords(.legal))]
    UnknownKeyword {
        /// The function.
        function: String,
        /// The keyword.
        keyword: String,
        /// The keywords it has.
        legal: Vec<&'static str>,
    },
    /// Too few or too many of something.
    #[error("{what}: wanted {wanted}, found {found}")]
    Count {
        /// Of what.
        what: String,
        /// How many there must be.
        wanted: String,
        /// How many there are.
        found: usize,
    },
    /// An argument or clause that must be there.
    #[error("`{function}` needs {what}")]
    Missing {
        /// The function or statement.
        function: String,
        /// What it needs.
        what: &'static str,
    },
    /// Types that do not fit.
    #[error("{what}: found {found}; legal: {legal}")]
    Type {
        /// What has the type.
        what: String,
        /// Its type.
        found: String,
        /// The types that fit.
        legal: String,
    },
    /// A dtype that does not exist.
    #[error(transparent)]
    DType(#[from] UnknownDType),
    /// A number outside of what is legal.
    #[error("{what}: found {found}; legal: {legal}")]
    Range {
        /// What it is.
        what: &'static str,
        /// The number as written.
        found: String,
        /// What is legal.
        legal: String,
    },
}

fn legal_keywords(legal: &[&str]) -> String {
    if legal.is_empty() {
        "it takes no others here".to_owned()
    } else {
        format!("legal: {}", legal.join(", "))
    }
}

fn hint(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; near it: {}", names.join(", ")) }
}

/// An error whose line and column are not known yet.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) range: Range<usize>,
    pub(crate) kind: ParseErrorKind,
}

pub(crate) type Parsed<T> = Result<T, Box<Fault>>;

impl Fault {
    pub(crate) fn new(range: Range<usize>, kind: ParseErrorKind) -> Box<Fault> {
        Box::new(Fault { range, kind })
    }

    /// The error with its place in `text`.
    pub(crate) fn locate(self, text: &str) -> ParseError {
        let places = Places::of(text);
        let (start, end) = (places.clip(self.range.start), places.clip(self.range.end));
        let (line, column) = places.at(start);
        ParseError { kind: self.kind, range: start..end.max(start), line, column }
    }
}

/// Lines and columns of a text.
#[derive(Debug)]
pub(crate) struct Places<'t> {
    text: &'t str,
    /// The first byte of each line.
    starts: Vec<usize>,
}

impl Places<'_> {
    pub(crate) fn of(text: &str) -> Places<'_> {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Places { text, starts: std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect() }
    }

    /// The nearest byte before, or at, `at` where a character begins.
    fn clip(&self, at: usize) -> usize {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }

    /// Line of a byte, and its column in characters, both from 1.
    pub(crate) fn at(&self, byte: usize) -> (usize, usize) {
        let byte = self.clip(byte);
        let line = self.starts.partition_point(|start| *start <= byte);
        (line, self.text[self.starts[line - 1]..byte].chars().count() + 1)
    }
}
