//! Compares what a file expects with what is found, and writes what is found.

use super::read::{Check, File, read};
use super::{Fault, Found, Kind, Place, Task, Words};

/// Whether a file is as its comments say; else everything that is not.
pub fn check(text: &str) -> Result<(), String> {
    let file = read(text)?;
    let mut wrong = Vec::new();
    for (kind, words) in &file.tests {
        let mut found = run(kind, words, text, &file)?;
        let line = |fault: String| format!("{} {}: {fault}", kind.name, shown(words));
        if let Err(why) = canonical(kind, words, &file, &mut found) {
            wrong.push(line(why));
            continue;
        }
        compare(&file, &found, &mut |fault| wrong.push(line(fault)));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n  ")) }
}

/// The file with its expectations as they are found by its first test.
pub fn blessed(text: &str) -> Result<String, String> {
    let file = read(text)?;
    let (kind, words) = &file.tests[0];
    let mut found = run(kind, words, text, &file)?;
    let mut lines: Vec<(Option<usize>, String)> =
        file.lines.iter().map(|l| (l.is_code.then_some(l.number), l.text.clone())).collect();
    if canonical(kind, words, &file, &mut found).is_err()
        && let Some(canonical) = &found.canonical
    {
        lines = rewritten(&file, canonical);
        // Faults are by lines of code, which are now those of the file.
        let numbers: Vec<usize> = lines.iter().filter_map(|l| l.0).collect();
        place(&mut found, &numbers);
    }
    let mut out = String::new();
    let mut is_header = true;
    for (number, line) in &lines {
        if is_header && number.is_some() {
            is_header = false;
            for fault in found.faults.iter().filter(|f| f.place == Place::Whole) {
                out += &format!("# error {}\n", fault.text);
            }
        }
        out += line;
        let place = number.map(Place::Line);
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        for (i, fault) in found.faults.iter().filter(|f| Some(f.place) == place).enumerate() {
            out += &if i == 0 {
                format!("  # error {}", fault.text)
            } else {
                format!("\n{indent}# error {}", fault.text)
            };
        }
        out.push('\n');
    }
    if file.prints.is_some() {
        out += "# prints:\n";
        for line in found.text.lines() {
            out += &if line.is_empty() { "#\n".to_owned() } else { format!("#   {line}\n") };
        }
    }
    Ok(out)
}

fn shown(words: &Words) -> String {
    let shown = words.iter().map(|(k, v)| if v.is_empty() { k.clone() } else { format!("{k}={v}") });
    shown.collect::<Vec<_>>().join(" ")
}

fn run(kind: &Kind, words: &Words, text: &str, file: &File) -> Result<Found, String> {
    (kind.run)(&Task { text, words, given: &file.given })
}

/// The header as it is, then the canonical text. Comments between lines of code go.
fn rewritten(file: &File, canonical: &str) -> Vec<(Option<usize>, String)> {
    let header = file.lines.iter().take_while(|l| !l.is_code).map(|l| l.text.clone());
    let mut lines: Vec<(Option<usize>, String)> = header.map(|text| (None, text)).collect();
    for line in canonical.lines() {
        let number = lines.len() + 1;
        lines.push((code(line).map(|_| number), line.to_owned()));
    }
    lines
}

/// A line without its comment, if anything is left.
fn code(line: &str) -> Option<&str> {
    let text = line.split_once("  # ").map_or(line, |(code, _)| code).trim_end();
    (!text.trim().is_empty() && !text.trim_start().starts_with('#')).then_some(text)
}

/// Lines of code become lines of the file.
fn place(found: &mut Found, numbers: &[usize]) {
    for fault in &mut found.faults {
        if let Place::Code(at) = fault.place {
            fault.place = numbers.get(at).map_or(Place::Whole, |n| Place::Line(*n));
        }
    }
}

/// Whether the code is the canonical text, where it has to be. Faults then stand at lines of the file.
fn canonical(kind: &Kind, words: &Words, file: &File, found: &mut Found) -> Result<(), String> {
    let own: Vec<&super::read::Line> = file.lines.iter().filter(|l| l.is_code).collect();
    if let Some(canonical) = &found.canonical
        && (kind.is_canonical)(words)
    {
        let wanted: Vec<&str> = canonical.lines().filter_map(code).collect();
        for at in 0..wanted.len().max(own.len()) {
            let is = own.get(at).and_then(|l| code(&l.text));
            if is != wanted.get(at).copied() {
                let number = own.get(at).map_or(0, |l| l.number);
                return Err(format!(
                    "the text is not as it is printed; line {number} is to be `{}`",
                    wanted.get(at).unwrap_or(&"")
                ));
            }
        }
    }
    let numbers: Vec<usize> = own.iter().map(|l| l.number).collect();
    place(found, &numbers);
    Ok(())
}

fn compare(file: &File, found: &Found, wrong: &mut dyn FnMut(String)) {
    let at = |fault: &Fault| match fault.place {
        Place::Whole => "the file".to_owned(),
        Place::Line(n) | Place::Code(n) => format!("line {n}"),
    };
    for fault in found.faults.iter().filter(|f| !file.faults.contains(f)) {
        wrong(format!("{} has the fault `{}`, which is not expected", at(fault), fault.text));
    }
    for fault in file.faults.iter().filter(|f| !found.faults.contains(f)) {
        wrong(format!("{} lacks the fault `{}`", at(fault), fault.text));
    }
    let mut rest = found.text.lines();
    for check in &file.checks {
        match check {
            Check::Has(text) => {
                if !rest.any(|line| line.contains(text.as_str())) {
                    wrong(format!("`# check: {text}` is not found (in order) in\n{}", found.text));
                    return;
                }
            }
            Check::HasNot(text) => {
                if found.text.lines().any(|line| line.contains(text.as_str())) {
                    wrong(format!("`# check-not: {text}` is found in\n{}", found.text));
                }
            }
        }
    }
    if let Some(prints) = &file.prints
        && *prints != found.text
    {
        wrong(format!("prints\n{}and the `# prints:` block holds\n{prints}", found.text));
    }
    let says_nothing = file.prints.is_none() && file.checks.is_empty() && file.faults.is_empty();
    if says_nothing && found.canonical.is_none() {
        wrong("expects nothing: a `# check:`, `# prints:` or `# error` is missing".to_owned());
    }
}
