//! `cargo xtask docs`: pages made from the module comments of the catalogues.
//!
//! A catalogue is a folder with one entry a file; where other files lie next to them, a mark tells the
//! entries. Its page holds the module comment of each file under the entry's name (of a normalization, its own
//! summary, details and example; of a primitive, how it is called and its example too), so that an entry without a
//! comment cannot be documented and a stale page is a fault that tidy reports. Passes stand in the order in which
//! they run, after a table of them. The page of reducers and those of variants of tile calls hold what only the
//! crates know, and are written and compared by their tests.

use std::fs;
use std::path::PathBuf;

use super::{Command, no_words};
use crate::step::{Failure, Step, root};

/// The command.
pub const COMMAND: Command = Command {
    name: "docs",
    about: "write the generated pages under docs/",
    run: |words| {
        no_words(words)?;
        for (path, text) in pages()? {
            let path = root().join(path);
            fs::write(&path, text).map_err(|source| Failure::File { path, source })?;
        }
        for (package, test) in [("coulis-reducers", "page"), ("coulis", "variant_pages")] {
            Step::cargo(&["test", "-q", "-p", package, "--test", test]).variable("BLESS", "1").run()?;
        }
        Ok(())
    },
};

/// A folder with one entry a file, and its page.
struct Catalogue {
    folder: &'static str,
    /// Text that every entry has; empty when the folder holds nothing else.
    mark: &'static str,
    page: &'static str,
    title: &'static str,
    /// The file of the slice in whose order entries stand on the page; by name without one.
    order: Option<&'static str>,
}

const CATALOGUES: [Catalogue; 4] = [
    Catalogue {
        folder: "crates/coulis-cli/src/command",
        mark: "",
        page: "docs/commands.md",
        title: "Commands",
        order: None,
    },
    Catalogue {
        folder: "crates/coulis-reducers/src/normalizations",
        mark: "pub static ENTRY",
        page: "docs/normalizations.md",
        title: "Normalizations",
        order: None,
    },
    Catalogue {
        folder: "crates/coulis-schedule/src/primitive",
        mark: "",
        page: "docs/primitives.md",
        title: "Schedule primitives",
        order: None,
    },
    Catalogue {
        folder: "crates/coulis-lower/src",
        mark: "\npub const PASS: Pass",
        page: "docs/passes.md",
        title: "Passes",
        order: Some("crates/coulis-lower/src/pass.rs"),
    },
];

/// Every generated page: path and text. A catalogue whose folder does not exist has none.
pub fn pages() -> Result<Vec<(&'static str, String)>, Failure> {
    let mut pages = Vec::new();
    for catalogue in &CATALOGUES {
        let folder = root().join(catalogue.folder);
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
        files.sort();
        let mut passes = String::new();
        if let Some(slice) = catalogue.order {
            let steps = steps_of(&read(root().join(slice))?);
            let place = |path: &PathBuf| {
                let is_of =
                    |(file, _): &(String, String)| path.file_stem().is_some_and(|stem| stem == file.as_str());
                steps.iter().position(is_of)
            };
            files.retain(|path| place(path).is_some());
            files.sort_by_key(place);
            passes = table_of(&steps, &|file| read(folder.join(format!("{file}.rs"))))?;
        }
        let mut text = format!(
            "<!-- Written by `cargo xtask docs` from the comments in {}. -->\n\n# {}\n",
            catalogue.folder, catalogue.title
        );
        text += &passes;
        for path in files {
            let source = read(path.clone())?;
            if !source.contains(catalogue.mark) {
                continue;
            }
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let field = |name: &str| literal_after(&source, &format!("\n    {name}:"));
            let name = field("name").unwrap_or(stem);
            let body = match (field("signature"), field("summary"), field("details")) {
                (Some(signature), Some(summary), _) => {
                    let comment = without_name(&module_comment(&source), &name);
                    let example = ["before", "call", "after"].map(field);
                    let [Some(before), Some(call), Some(after)] = example else {
                        return Err(Failure::Example { path });
                    };
                    format!("`{signature}`: {summary}.\n\n{comment}") + &listings(&before, &call, &after)
                }
                (None, Some(summary), Some(details)) => {
                    let example = field("example").map(|call| format!("\n```python\n{call}\n```\n"));
                    format!("{summary}\n\n{details}\n") + &example.unwrap_or_default()
                }
                _ => module_comment(&source),
            };
            text += &format!("\n## `{name}`\n\n{body}");
        }
        pages.push((catalogue.page, text));
    }
    Ok(pages)
}

fn read(path: PathBuf) -> Result<String, Failure> {
    fs::read_to_string(&path).map_err(|source| Failure::File { path, source })
}

/// File and constant of each step of the slice of passes, in its order.
fn steps_of(source: &str) -> Vec<(String, String)> {
    let lines = source.lines().skip_while(|line| !line.contains("PASSES: &[")).skip(1);
    let lines = lines.map_while(|line| line.trim().strip_prefix("&crate::")?.strip_suffix(','));
    lines
        .filter_map(|path| path.split_once("::"))
        .map(|(file, pass)| (file.to_owned(), pass.to_owned()))
        .collect()
}

/// The table of passes: what each takes, gives and does. A file that has several steps stands in each of their places.
fn table_of(
    steps: &[(String, String)],
    source: &dyn Fn(&str) -> Result<String, Failure>,
) -> Result<String, Failure> {
    let mut table = "\nIn the order in which they run; a form is what a kernel is before and after.\n\n| | pass | form | what it does |\n|---|---|---|---|\n".to_owned();
    for (nth, (file, pass)) in steps.iter().enumerate() {
        let source = source(file)?;
        let entry =
            source.split_once(&format!("\npub const {pass}: Pass = Pass {{")).map_or("", |(_, rest)| rest);
        let literal = |field: &str| literal_after(entry, &format!("\n    {field}: ")).unwrap_or_default();
        let form = |field: &str| {
            let rest = entry.split_once(&format!("\n    {field}: Form::")).map_or("", |(_, rest)| rest);
            rest.split(',').next().unwrap_or_default().to_owned()
        };
        let (from, to) = (form("from"), form("to"));
        let forms = if from == to { from } else { format!("{from} to {to}") };
        let name = literal("name");
        table += &format!("| {} | [`{name}`](#{file}) | {forms} | {} |\n", nth + 1, literal("doc"));
    }
    Ok(table)
}

/// The `//!` lines at the top of a file without their marks.
fn module_comment(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect()
}

/// A comment that begins with the name of what it is about, which its heading says already.
fn without_name(comment: &str, name: &str) -> String {
    let Some(rest) = comment.strip_prefix(&format!("{name}: ")) else { return comment.to_owned() };
    let mut letters = rest.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The example of a primitive: loops before and after a call.
fn listings(before: &str, call: &str, after: &str) -> String {
    format!("\nBefore:\n\n```python\n{before}\n```\n\nAfter `{call}`:\n\n```python\n{after}\n```\n")
}

/// The value of the string literal that follows `mark`, escapes as in Rust: a backslash at a line's end joins lines.
fn literal_after(source: &str, mark: &str) -> Option<String> {
    let mut rest = source.split_once(mark)?.1.trim_start().strip_prefix('"')?.chars();
    let mut value = String::new();
    loop {
        match rest.next()? {
            '"' => return Some(value),
            '\\' => match rest.next()? {
                '\n' => rest = rest.as_str().trim_start().chars(),
                'n' => value.push('\n'),
                escaped => value.push(escaped),
            },
            plain => value.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_literal_is_read_as_rust_reads_it() {
        let source = "x = X {\n    name: \"std\",\n    details: \"One \\\"two\\\" \\\n        three.\",\n}";
        assert_eq!(literal_after(source, "\n    name: ").as_deref(), Some("std"));
        assert_eq!(literal_after(source, "\n    details: ").as_deref(), Some("One \"two\" three."));
        assert_eq!(literal_after(source, "\n    summary: "), None);
        let listing = "x = X {\n    after:\n        \"\\\nfor i:\n    B[i] = 0\",\n}";
        assert_eq!(literal_after(listing, "\n    after:").as_deref(), Some("for i:\n    B[i] = 0"));
    }

    #[test]
    fn a_primitive_shows_how_it_is_called_and_its_example() {
        let pages = pages().unwrap();
        let (_, page) = pages.iter().find(|(path, _)| *path == "docs/primitives.md").unwrap();
        let bind = page.split("\n## ").find(|part| part.starts_with("`bind`")).unwrap();
        assert!(bind.starts_with("`bind`\n\n`s[B].bind(axis, tag)`: the loop runs over"), "{bind}");
        assert!(bind.contains("\n\nA loop runs over a block or thread index.\n"), "{bind}");
        let example = listings(
            "for i in range(n):\n    B[i] = A[i]",
            "s[B].bind(i, \"blockIdx.x\")",
            "blockIdx_x = T.launch_thread(\"blockIdx.x\", n)\nB[blockIdx_x] = A[blockIdx_x]",
        );
        assert!(bind.ends_with(&format!("\n{example}")), "{bind}");
        for part in page.split("\n## ").skip(1) {
            let counts = ["\nBefore:\n\n```python\n", "\n\nAfter `"].map(|mark| part.matches(mark).count());
            assert_eq!(counts, [1, 1], "{part}");
        }
    }

    #[test]
    fn passes_stand_in_the_order_in_which_they_run() {
        let source = "fn f() {}\npub static PASSES: &[&Pass] = &[\n    &crate::b::PASS,\n    &crate::a::PASS_FLAT,\n];\n&crate::c::X,\n";
        let steps =
            [("b", "PASS"), ("a", "PASS_FLAT")].map(|(file, pass)| (file.to_owned(), pass.to_owned()));
        assert_eq!(steps_of(source), steps);
        let pages = pages().unwrap();
        let (_, page) = pages.iter().find(|(path, _)| *path == "docs/passes.md").unwrap();
        let steps = steps_of(&read(root().join("crates/coulis-lower/src/pass.rs")).unwrap());
        let rows: Vec<&str> = page.lines().filter(|line| line.contains("](#")).collect();
        assert_eq!(rows.len(), steps.len());
        let first_of = |file: &str| steps.iter().position(|(of, _)| of == file);
        let sections: Vec<_> =
            page.lines().filter_map(|l| first_of(l.strip_prefix("## `")?.strip_suffix('`')?)).collect();
        assert!(sections.is_sorted() && sections.len() > 20, "{sections:?}");
        let (nth, row) = rows.iter().enumerate().find(|(_, row)| row.contains("`flatten_buffers`")).unwrap();
        assert_eq!(steps[nth].0, "flatten_buffers");
        assert!(row.contains(" | Nest | ") || row.contains(" | Nest to Flat | "), "{row}");
        assert!(!row.ends_with("|  |"), "{row}");
    }

    #[test]
    fn a_comment_that_begins_with_its_name_loses_it() {
        assert_eq!(without_name("fuse: two loops become one.\n", "fuse"), "Two loops become one.\n");
        assert_eq!(without_name("Two loops: one.\n", "fuse"), "Two loops: one.\n");
    }

    #[test]
    fn a_module_comment_ends_where_the_code_begins() {
        assert_eq!(module_comment("//! One.\n//!\n//! Two.\n\nuse std;\n//! no\n"), "One.\n\nTwo.\n");
        assert_eq!(module_comment("use std;\n"), "");
    }
}
