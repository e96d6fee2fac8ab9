//! Documentation pages made from the entries.

use std::fmt::Write;

use coulis_ir::{DType, Reducer};

use crate::{CATALOGUE, Empty, Entry, ReducerRequest};

/// The page of one reducer, in Markdown: what it computes, results and state for every element type, empty rows,
/// bounds. The same entry gives the same text.
pub fn docs_page(entry: &Entry) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write(entry, &mut page);
    page
}

/// The list of all reducers, a table row each, linked to pages named `<name>.md`.
pub fn docs_index() -> String {
    let mut page = String::from("# Reducers\n\n| name | meaning |\n|---|---|\n");
    for entry in CATALOGUE {
        let _ = writeln!(page, "| [{0}]({0}.md) | {1} |", entry.name, entry.summary);
    }
    page
}

fn write(entry: &Entry, page: &mut String) -> std::fmt::Result {
    writeln!(page, "# {}\n\n{}\n\n{}\n", entry.name, entry.summary, entry.details)?;
    let empty = match entry.empty {
        Empty::Value(value) => format!("gives {value}"),
        Empty::Refused if entry.takes_init => "is an error unless an initial value is given".to_owned(),
        Empty::Refused => "is an error".to_owned(),
    };
    writeln!(page, "- Inputs: {}.", entry.n_inputs)?;
    writeln!(page, "- An empty row {empty}.")?;
    writeln!(page, "- Initial value: {}.", if entry.takes_init { "taken" } else { "refused" })?;
    if entry.takes_ddof {
        writeln!(page, "- Takes `ddof`; a count of at most `ddof` gives NaN.")?;
    }
    writeln!(page, "\n| elements | result | state |\n|---|---|---|")?;
    for dtype in DType::ALL {
        if let Ok(reducer) = entry.build(&ReducerRequest::new(&vec![dtype; entry.n_inputs])) {
            writeln!(page, "| {dtype} | {} | {} |", results(&reducer), state(&reducer))?;
        }
    }
    Ok(())
}

fn results(reducer: &Reducer) -> String {
    match reducer.results.as_slice() {
        [one] => one.dtype.to_string(),
        many => many.iter().map(|r| format!("{} {}", r.name, r.dtype)).collect::<Vec<_>>().join(", "),
    }
}

fn state(reducer: &Reducer) -> String {
    reducer.fields.iter().map(|f| format!("{} {}", f.name, f.dtype)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;

    #[test]
    fn a_page_tells_results_and_state() {
        let page = docs_page(find("maxloc").unwrap());
        assert!(page.starts_with("# maxloc\n\nLargest element and its position"), "{page}");
        assert!(
            page.contains("| float16 | value float16, index int64 | value float32, index int64 |\n"),
            "{page}"
        );
        assert!(page.contains("- An empty row is an error.\n"), "{page}");
    }

    #[test]
    fn every_reducer_has_a_line_and_a_full_table() {
        let index = docs_index();
        for entry in CATALOGUE {
            assert!(index.contains(&format!("[{0}]({0}.md)", entry.name)));
            let page = docs_page(entry);
            DType::ALL
                .iter()
                .for_each(|d| assert!(page.contains(&format!("\n| {d} | ")), "{} {d}", entry.name));
        }
    }
}
