//! Reads the comments of a file test.

use super::{Fault, Given, KINDS, Kind, Place, Words};

/// Before the text of an expected fault that stands behind code.
const BEHIND: &str = "  # error ";

/// A file, read.
pub struct File {
    /// One a `# test:` line.
    pub tests: Vec<(&'static Kind, Words)>,
    /// `# given:` lines.
    pub given: Vec<Given>,
    /// Expected faults, by lines of the file.
    pub faults: Vec<Fault>,
    /// `check` and `check-not` lines.
    pub checks: Vec<Check>,
    /// The `prints` block.
    pub prints: Option<String>,
    /// Lines of the file as they are, without expected faults and without the `prints` block.
    pub lines: Vec<Line>,
}

/// A line of a file.
pub struct Line {
    /// Its number, from 1.
    pub number: usize,
    /// What it holds, expected faults aside.
    pub text: String,
    /// Whether it is code.
    pub is_code: bool,
}

/// A line that is looked for.
pub enum Check {
    /// It is there, after the one before.
    Has(String),
    /// It is nowhere.
    HasNot(String),
}

/// Reads a file.
pub fn read(text: &str) -> Result<File, String> {
    let mut file = File {
        tests: Vec::new(),
        given: Vec::new(),
        faults: Vec::new(),
        checks: Vec::new(),
        prints: None,
        lines: Vec::new(),
    };
    let mut last_code = None;
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let number = at + 1;
        let Some(comment) = line.trim_start().strip_prefix('#') else {
            let (code, fault) = match line.split_once(BEHIND) {
                Some((code, fault)) => (code, Some(fault)),
                None => (line, None),
            };
            let is_code = !code.trim().is_empty();
            if is_code {
                last_code = Some(number);
            }
            let place = Place::Line(number);
            file.faults.extend(fault.map(|text| Fault { place, text: text.trim().to_owned() }));
            file.lines.push(Line { number, text: code.trim_end().to_owned(), is_code });
            continue;
        };
        let comment = comment.trim();
        if let Some(fault) = comment.strip_prefix("error ") {
            let place = last_code.map_or(Place::Whole, Place::Line);
            file.faults.push(Fault { place, text: fault.trim().to_owned() });
            continue;
        }
        if comment == "prints:" {
            let rest = lines.by_ref().map(|(_, line)| {
                let line = line.strip_prefix('#').unwrap_or(line);
                line.strip_prefix("   ").unwrap_or(line.trim()).to_owned() + "\n"
            });
            file.prints = Some(rest.collect());
            break;
        }
        directive(&mut file, comment)?;
        file.lines.push(Line { number, text: line.to_owned(), is_code: false });
    }
    if file.tests.is_empty() {
        file.tests.push(test("parse canonical")?);
    }
    Ok(file)
}

fn directive(file: &mut File, comment: &str) -> Result<(), String> {
    let word = comment.split_whitespace().next().unwrap_or_default();
    let rest = comment.strip_prefix(word).unwrap_or_default().trim();
    match word {
        "test:" => file.tests.push(test(rest)?),
        "given:" => file.given.push(given(rest)?),
        "check:" => file.checks.push(Check::Has(rest.to_owned())),
        "check-not:" => file.checks.push(Check::HasNot(rest.to_owned())),
        // A lower-case word with a colon would be read over if it were misspelt.
        other if is_like_a_directive(other) => {
            let legal = "test, given, error, check, check-not, prints";
            return Err(format!("`# {other}` is no directive; directives are {legal}"));
        }
        _ => {}
    }
    Ok(())
}

fn is_like_a_directive(word: &str) -> bool {
    let name = word.strip_suffix(':').unwrap_or_default();
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

fn test(text: &str) -> Result<(&'static Kind, Words), String> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let Some(kind) = KINDS.iter().find(|k| k.name == name) else {
        let names: Vec<&str> = KINDS.iter().map(|k| k.name).collect();
        return Err(format!("there is no kind `{name}`; kinds are {}", names.join(", ")));
    };
    let mut found = Words::new();
    for word in words {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (format!("{key}="), value),
            None => (word.to_owned(), ""),
        };
        let is_known =
            kind.words.contains(&key.as_str()) || (key.ends_with('=') && kind.words.contains(&"*="));
        if !is_known {
            return Err(format!("`{name}` takes no word `{word}`; it takes {}", kind.words.join(", ")));
        }
        found.insert(key.trim_end_matches('=').to_owned(), value.to_owned());
    }
    Ok((kind, found))
}

/// `A[2, 3] = 1 2 3 4 5 6`
fn given(text: &str) -> Result<Given, String> {
    let wrong = || format!("a given parameter reads `A[2, 3] = 1 2 3 4 5 6`, got `{text}`");
    let (left, right) = text.split_once('=').ok_or_else(wrong)?;
    let (name, shape) = left.trim().strip_suffix(']').and_then(|l| l.split_once('[')).ok_or_else(wrong)?;
    let extents = shape.split(',').map(str::trim).filter(|e| !e.is_empty());
    let shape: Vec<i64> = extents.map(|e| e.parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
    let elements: Vec<String> = right.split_whitespace().map(str::to_owned).collect();
    if shape.iter().product::<i64>() != elements.len() as i64 {
        return Err(wrong());
    }
    Ok(Given { name: name.trim().to_owned(), shape, elements })
}
