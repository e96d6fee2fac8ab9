//! What a file test says and whether it is so. The directives are listed in `files.rs`.

mod compare;
mod kind;
mod read;

pub use compare::{blessed, check};
pub use kind::KINDS;

use std::collections::BTreeMap;

/// What a kind does with a file.
pub struct Kind {
    /// Name in `# test: NAME`.
    pub name: &'static str,
    /// Words that it takes: a flag, or `key=` for `key=value`. `*=` takes every key.
    pub words: &'static [&'static str],
    /// Whether the file has to hold the text as it is printed. Faults are then known by lines of the printed text.
    pub is_canonical: fn(&Words) -> bool,
    /// Does it. An `Err` is a mistake in the header, which no expectation describes.
    pub run: fn(&Task) -> Result<Found, String>,
}

/// Words behind the kind.
pub type Words = BTreeMap<String, String>;

/// One `# test:` line of a file.
pub struct Task<'a> {
    /// The whole file, comments included.
    pub text: &'a str,
    /// The words behind the kind; a flag has an empty value.
    pub words: &'a Words,
    /// Arguments of `# given:` lines, in order.
    pub given: &'a [Given],
}

/// The elements of a parameter.
pub struct Given {
    /// The parameter.
    pub name: String,
    /// Extents.
    pub shape: Vec<i64>,
    /// Elements as written.
    pub elements: Vec<String>,
}

/// What a kind found.
#[derive(Default)]
pub struct Found {
    /// What `check` and `prints` speak of.
    pub text: String,
    /// The text as it is printed, of kinds that ask for canonical text.
    pub canonical: Option<String>,
    /// Faults, in order.
    pub faults: Vec<Fault>,
}

/// A fault and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// `CODE: MESSAGE`.
    pub text: String,
}

/// Where a fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere in particular.
    Whole,
    /// A line of the file, from 1.
    Line(usize),
    /// A line of code, from 0: lines that are empty or hold a comment only are not counted.
    Code(usize),
}

impl Found {
    /// A single fault without a line, from an error of the facade.
    pub fn error(error: &coulis::Error) -> Found {
        let text = format!("{}: {}", error.code, error.message).replace('\n', " ");
        Found { faults: vec![Fault { place: Place::Whole, text }], ..Found::default() }
    }

    /// A printed text without a fault.
    pub fn printed(text: String) -> Found {
        Found { text, ..Found::default() }
    }
}
