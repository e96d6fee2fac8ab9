//! The page of the documentation on reducers, made from the entries.

use std::fmt::Write;

use coulis_ir::{DType, ErrorBound, Field, Reducer};

use crate::{CATALOGUE, Entry, ReducerRequest};

/// The page on all reducers, in Markdown: a table of types, states and bounds, a row for element types that have these in
/// common, then a section for each. The same catalogue gives the same text.
pub fn docs_page() -> String {
    let mut page = String::from(HEAD);
    // Writing to a string cannot fail.
    for entry in CATALOGUE {
        for (nth, row) in rows(entry).iter().enumerate() {
            let name = if nth == 0 { format!("[`{0}`](#{0})", entry.name) } else { String::new() };
            let [results, state, error] = row.cells.each_ref().map(|cell| cell.text().unwrap_or_default());
            let _ = writeln!(page, "| {name} | {} | {results} | {state} | {error} |", listed(&row.dtypes));
        }
    }
    let mut entries = CATALOGUE.to_vec();
    entries.sort_by_key(|entry| entry.name);
    let takers: Vec<String> =
        entries.iter().filter(|entry| entry.takes_init).map(|entry| format!("`{}`", entry.name)).collect();
    let _ = writeln!(
        page,
        "\nAn initial value (`init`), one more element of the type of the elements, is legal for {}.",
        takers.join(", ")
    );
    for entry in entries {
        let _ = write!(page, "\n## `{}`\n\n{}\n\n{}\n", entry.name, entry.summary, entry.details);
    }
    page
}

const HEAD: &str = "<!-- Written by `cargo xtask docs` from crates/coulis-reducers/src/catalogue. -->

# Reducers

Result and state are those without a chosen accumulator or output type; T is the type of the elements. The bound is that of the
distance from the exact result, before the result is rounded to its type; `eps` is the one of the accumulator, `scale` the sum of the
magnitudes of the terms unless the reducer's section says otherwise, and `n` the number of elements.

| reducer | elements | result | state | error |
|---|---|---|---|---|
";

/// Element types for which a reducer is the same.
struct Row {
    dtypes: Vec<DType>,
    /// Results, state and bound.
    cells: [Cell; 3],
}

/// What a row says in one column: of types by name, and in terms of the type of the elements; each while it
/// is the same for all.
#[derive(Clone)]
struct Cell {
    named: Option<String>,
    relative: Option<String>,
}

impl Cell {
    /// What is true of both.
    fn common(&self, other: &Cell) -> Cell {
        let same = |a: &Option<String>, b: &Option<String>| a.clone().filter(|_| a == b);
        Cell { named: same(&self.named, &other.named), relative: same(&self.relative, &other.relative) }
    }

    fn text(&self) -> Option<&str> {
        self.named.as_deref().or(self.relative.as_deref())
    }
}

impl Row {
    /// The row for the types of both, where one can say what holds of all.
    fn joined(&self, other: &Row) -> Option<Row> {
        let cells = std::array::from_fn(|at| self.cells[at].common(&other.cells[at]));
        let says_all = cells.iter().all(|cell| cell.text().is_some());
        says_all.then(|| Row { dtypes: [&self.dtypes[..], &other.dtypes].concat(), cells })
    }
}

fn rows(entry: &Entry) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for dtype in DType::ALL {
        let Ok(reducer) = entry.build(&ReducerRequest::new(&vec![dtype; entry.n_inputs])) else { continue };
        let named = cells(&reducer, |dtype| dtype.to_string());
        let relative = cells(&reducer, |d| if d == dtype { "T".to_owned() } else { d.to_string() });
        let cells = std::array::from_fn(|at| Cell {
            named: Some(named[at].clone()),
            relative: Some(relative[at].clone()),
        });
        let row = Row { dtypes: vec![dtype], cells };
        match rows.iter().enumerate().find_map(|(at, before)| Some((at, before.joined(&row)?))) {
            Some((at, joined)) => rows[at] = joined,
            None => rows.push(row),
        }
    }
    rows
}

fn cells(reducer: &Reducer, name: impl Fn(DType) -> String) -> [String; 3] {
    let all = |fields: &[Field]| match fields {
        [one] => name(one.dtype),
        many => many.iter().map(|f| format!("{} {}", f.name, name(f.dtype))).collect::<Vec<_>>().join(", "),
    };
    let error = match reducer.error {
        ErrorBound::Exact => "exact".to_owned(),
        ErrorBound::Terms { factor, eps } => format!("{} eps * scale, eps {}", number(factor), number(eps)),
        ErrorBound::Relative { factor, eps } => {
            format!("{} eps * max(1, result), eps {}", number(factor), number(eps))
        }
        ErrorBound::Length { factor, eps } => {
            format!("{} eps * n * result, eps {}", number(factor), number(eps))
        }
    };
    [all(&reducer.results), all(&reducer.fields), error]
}

/// A number; as a power of two where it is one that is far from 1.
fn number(value: f64) -> String {
    let exponent = value.log2();
    let is_far = exponent.fract() == 0.0 && exponent.abs() > 10.0;
    if is_far { format!("2^{exponent}") } else { value.to_string() }
}

/// Types in words: those from one to another where all between are there.
fn listed(dtypes: &[DType]) -> String {
    if dtypes.len() == DType::ALL.len() {
        return "every type".to_owned();
    }
    let mut runs: Vec<(DType, DType)> = Vec::new();
    for dtype in dtypes {
        let place = |of: DType| DType::ALL.iter().position(|d| *d == of);
        let alike =
            |a: DType, b: DType| a.is_float() == b.is_float() && a.is_signed_int() == b.is_signed_int();
        match runs.last_mut() {
            Some((_, last)) if place(*last).map(|p| p + 1) == place(*dtype) && alike(*last, *dtype) => {
                *last = *dtype
            }
            _ => runs.push((*dtype, *dtype)),
        }
    }
    let run = |(first, last): &(DType, DType)| match first == last {
        true => first.to_string(),
        false => format!("{first} to {last}"),
    };
    runs.iter().map(run).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reducer_and_type_is_in_the_table_and_has_a_section() {
        let page = docs_page();
        for entry in CATALOGUE {
            assert_eq!(page.matches(&format!("| [`{0}`](#{0}) | ", entry.name)).count(), 1, "{}", entry.name);
            assert_eq!(page.matches(&format!("\n## `{}`\n\n{}\n", entry.name, entry.summary)).count(), 1);
            assert_eq!(rows(entry).iter().map(|row| row.dtypes.len()).sum::<usize>(), DType::ALL.len());
        }
    }

    #[test]
    fn types_that_follow_each_other_are_named_by_both_ends() {
        assert_eq!(listed(&DType::ALL), "every type");
        assert_eq!(listed(&[DType::I8, DType::I16, DType::F32]), "int8 to int16, float32");
    }
}
