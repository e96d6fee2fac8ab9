//! The page of the dialect has every call that the parser takes.

use std::collections::BTreeSet;
use std::path::Path;

use coulis_ir::{Atom, BinaryOp, Intrinsic, ScopeId};

/// The words of a page that a name may be: identifiers with dots inside.
fn words(page: &str) -> BTreeSet<&str> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let names = page.split(|c| !is_of_name(c)).map(|word| word.trim_matches('.'));
    // What a grammar writes in two parts, `"T.cuda." ( "cta_sync" | ... )`, is looked for without the first.
    names.collect()
}

/// Names in the parser's text that begin with `T.`: those that it compares calls with.
fn compared(source: &str) -> impl Iterator<Item = &str> {
    source.split('"').skip(1).step_by(2).filter_map(|text| {
        let name = text.strip_prefix("T.")?;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
        is_name.then_some(name)
    })
}

#[test]
fn every_call_that_the_parser_takes_stands_in_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/dialect.md")).unwrap();
    let sources: Vec<String> = (std::fs::read_dir(root.join("src")).unwrap())
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    let infix = |op: &BinaryOp| op.call_name();
    let mut names: BTreeSet<&str> = sources.iter().flat_map(|source| compared(source)).collect();
    assert!(names.contains("cuda.named_barrier_sync") && names.contains("alloc_shared"), "{names:?}");
    names.extend(Atom::ALL.iter().map(|atom| atom.name()));
    names.extend(Intrinsic::ALL.iter().map(|intrinsic| intrinsic.name()));
    names.extend(BinaryOp::ALL.iter().map(infix));
    names.extend(ScopeId::ALL.iter().map(|id| id.name()));
    let words = words(&page);
    let stands = |name: &str| {
        let last = name.strip_prefix("cuda.").unwrap_or(name);
        [name, last].iter().any(|name| words.contains(name)) || words.contains(format!("T.{name}").as_str())
    };
    let missing: Vec<&str> = names.into_iter().filter(|name| !stands(name)).collect();
    assert!(missing.is_empty(), "docs/dialect.md lacks {missing:?}");
}
