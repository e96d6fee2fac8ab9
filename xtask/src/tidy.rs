//! The rules of the house: each looks at one thing and lists every fault it finds.

mod arrows;
mod pages;
mod source;

use crate::step::Failure;

/// A breach of a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// File, with a line where there is one.
    place: String,
    /// What is wrong and what is legal.
    what: String,
}

impl Fault {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Fault {
        Fault { place: place.into(), what: what.into() }
    }
}

/// A rule.
type Rule = fn() -> Result<Vec<Fault>, Failure>;

const RULES: [(&str, Rule); 3] =
    [("arrows", arrows::check), ("source", source::check), ("pages", pages::check)];

/// Applies every rule and prints every fault.
pub fn check() -> Result<(), Failure> {
    eprintln!("== tidy");
    let mut count = 0;
    for (rule, run) in RULES {
        for fault in run()? {
            eprintln!("{}: {} [{rule}]", fault.place, fault.what);
            count += 1;
        }
    }
    if count == 0 { Ok(()) } else { Err(Failure::Untidy { count }) }
}
