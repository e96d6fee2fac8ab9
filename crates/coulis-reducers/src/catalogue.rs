//! The slice of all reducers, and look-up by name.

use crate::entry::{Entry, UnknownReducer};

mod absmax;
mod all;
mod any;
mod argmax;
mod argmax_last;
mod argmin;
mod argmin_last;
mod count;
mod count_nonzero;
mod dot;
pub(crate) mod logsumexp;
mod max;
mod maxloc;
mod mean;
mod meansq;
mod min;
mod minloc;
mod norm1;
mod norm2;
mod prod;
mod standard_deviation;
mod sum;
mod sumsq;
mod var;
mod wmean;

/// Every reducer, in the order of the documentation.
pub static CATALOGUE: &[&Entry] = &[
    &sum::ENTRY,
    &prod::ENTRY,
    &min::ENTRY,
    &max::ENTRY,
    &absmax::ENTRY,
    &mean::ENTRY,
    &var::ENTRY,
    &standard_deviation::ENTRY,
    &sumsq::ENTRY,
    &norm1::ENTRY,
    &meansq::ENTRY,
    &norm2::ENTRY,
    &logsumexp::ENTRY,
    &any::ENTRY,
    &all::ENTRY,
    &count_nonzero::ENTRY,
    &count::ENTRY,
    &argmin::ENTRY,
    &argmax::ENTRY,
    &argmin_last::ENTRY,
    &argmax_last::ENTRY,
    &minloc::ENTRY,
    &maxloc::ENTRY,
    &dot::ENTRY,
    &wmean::ENTRY,
];

/// The entry of that name; the error lists names near it.
pub fn find(name: &str) -> Result<&'static Entry, UnknownReducer> {
    CATALOGUE.iter().find(|e| e.name == name).copied().ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> UnknownReducer {
    let lower = name.to_lowercase();
    let mut near: Vec<(usize, &'static str)> = CATALOGUE
        .iter()
        .map(|e| {
            let is_start = e.name.starts_with(&lower) && !lower.is_empty();
            // Two characters in the other order count as one edit.
            (if is_start { 1 } else { strsim::osa_distance(&lower, e.name) }, e.name)
        })
        .filter(|(distance, legal)| *distance <= 1 + legal.len() / 5)
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    let near = near.into_iter().map(|(_, name)| name).take(5).collect();
    UnknownReducer { name: name.to_owned(), near }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for entry in CATALOGUE {
            assert_eq!(CATALOGUE.iter().filter(|e| e.name == entry.name).count(), 1, "{}", entry.name);
            assert_eq!(find(entry.name).unwrap().name, entry.name);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_names_near_it() {
        let check = |name: &str, want: &str| assert_eq!(find(name).unwrap_err().near[0], want, "{name}");
        check("summ", "sum");
        check("arg_max", "argmax");
        check("logsum", "logsumexp");
        check("Mean", "mean");
        check("maen", "mean");
        let said = find("xyzzy").unwrap_err().to_string();
        assert!(said.starts_with("unknown reducer `xyzzy`; legal names are sum, "), "{said}");
        assert!(CATALOGUE.iter().all(|entry| said.contains(entry.name)), "{said}");
        // Statistics that are no folds are no misspelled ones.
        assert_eq!(find("median").unwrap_err().near, [""; 0]);
        let text = find("standard").unwrap_err().to_string();
        assert!(text.starts_with("unknown reducer `standard`; "), "{text}");
    }
}
