//! A page a variant of tile calls under `docs/variants/`, made from its metadata, its module comment, its demonstration
//! program in `tests/files/variants/`, and what that program is lowered and compiled to.
//!
//! A page that is not what this would write is a failure, so the pages are goldens too; `BLESS=1`, which
//! `cargo xtask docs` sets, writes them. Headings are those of seeds 000 to 002.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use coulis::TargetChoice;
use coulis::text::{Verdict, emit_cuda, explain, lower};
use coulis_lower::PASSES;
use coulis_tile::{COPIES, Op, REDUCTIONS, Variant};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The `//!` lines of a variant's file, without the name that the first one begins with.
fn algorithm(folder: &str, name: &str) -> String {
    let source = read(&format!("crates/coulis-tile/src/{folder}/{name}.rs"));
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let text: String = lines.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect();
    let (first, rest) = text.split_once(": ").unwrap();
    assert_eq!(first, format!("`{name}`"), "the comment of {name}.rs begins with its name");
    let mut letters = rest.chars();
    let capital = letters.next().unwrap().to_uppercase().to_string();
    capital + letters.as_str()
}

/// The demonstration program and the architecture that its comment names.
fn demonstration(name: &str) -> (String, String) {
    let text = read(&format!("tests/files/variants/{name}.py"));
    let arch = text.lines().find_map(|line| line.strip_prefix("# arch: ")).unwrap().to_owned();
    (text, arch)
}

/// The kernel without the definitions before it.
fn kernel_of(cuda: &str) -> &str {
    let at = cuda.find("extern \"C\" __global__").unwrap_or_else(|| panic!("no kernel in\n{cuda}"));
    &cuda[at..]
}

fn row(text: &mut String, left: &str, right: &str) {
    writeln!(text, "| {left} | {} |", right.replace('|', "\\|")).unwrap();
}

fn page<O: Op>(folder: &str, variant: &Variant<O>) -> String {
    let name = variant.name;
    let (program, arch) = demonstration(name);
    let target = TargetChoice::Cuda { arch: Some(arch.clone()) };
    let chosen = explain(&program, &target).unwrap();
    let wins = chosen
        .iter()
        .flat_map(|table| &table.rows)
        .any(|row| row.name == name && row.verdict == Verdict::Chosen);
    assert!(
        wins,
        "{name} is not what its program gets: {}",
        chosen.iter().map(ToString::to_string).collect::<String>()
    );
    let ir = lower(&program, Some("dispatch_tiles"), Some(&target)).unwrap();
    let cuda = emit_cuda(&program, &target).unwrap();

    let mut text =
        String::from("<!-- Written by `cargo xtask docs` from the variant's file and its program. -->\n\n");
    writeln!(text, "# `{name}`\n\n{}.\n", capitalised(variant.doc)).unwrap();
    text.push_str("## What it accepts\n\n| property | requirement |\n|---|---|\n");
    row(&mut text, "operation", &format!("`{}`", O::NAME));
    row(&mut text, "priority", &variant.priority.to_string());
    let names: Vec<String> =
        std::iter::once(&name).chain(variant.aliases).map(|name| format!("`dispatch=\"{name}\"`")).collect();
    row(&mut text, "forced by", &names.join(", "));
    for need in variant.needs {
        row(&mut text, need.name, need.doc);
    }
    row(&mut text, "order of combination", variant.numerics.order);
    row(&mut text, "longest chain of combinations", variant.numerics.longest_chain);
    let rows = chosen.iter().flat_map(|table| &table.rows).filter(|row| row.name == name);
    if let Some(accuracy) = rows.filter_map(|row| row.accuracy).next() {
        row(&mut text, "error of the program below", &accuracy.to_string());
    }
    let subnormals = match variant.numerics.flushes_where_allowed {
        true => "kept, unless the call says `ftz=True`",
        false => "kept",
    };
    row(&mut text, "subnormal numbers", subnormals);
    write!(text, "\n## Demonstration program\n\n```python\n{program}```\n").unwrap();
    write!(text, "\n## Algorithm\n\n{}", algorithm(folder, name)).unwrap();
    write!(
        text,
        "\n## Generated IR\n\nAfter `dispatch_tiles`, for `{arch}`:\n\n```python\n{}\n```\n",
        ir.trim_end()
    )
    .unwrap();
    write!(
        text,
        "\n## Generated CUDA\n\nThe kernel for `{arch}`:\n\n```c++\n{}\n```\n",
        kernel_of(&cuda).trim_end()
    )
    .unwrap();
    text.push_str("\n## How inputs change it\n\n| input | effect |\n|---|---|\n");
    for (input, effect) in variant.inputs {
        row(&mut text, input, effect);
    }
    text
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().to_string() + letters.as_str())
}

/// What no variant does, and why.
const WITHOUT: &str = "
## What has no variant

A variant is there because it wins a benchmark or takes a call that no other takes.

- **Copies of a cluster** (`Tx.cluster.copy`). Blocks copy what is theirs (`Tx.cta.copy`); every variant declines by `active threads`.
- **Packed sums of halves** (`add.f16x2`). Sums accumulate in float32 (contract N4); extrema are folded in pairs by `packed_halves`.
";

/// The list of all pages.
fn contents() -> String {
    let mut text = String::from(
        "<!-- Written by `cargo xtask docs` from the registries of variants. -->\n\n# Variants of tile calls\n\n\
         The highest one that accepts a call does it; `coulis explain` says why the others did not.\n",
    );
    fn table<O: Op>(text: &mut String, all: &[&Variant<O>]) {
        write!(text, "\n## `{}`\n\n| variant | priority | what it does |\n|---|---|---|\n", O::NAME).unwrap();
        for v in all {
            writeln!(text, "| [`{}`]({}.md) | {} | {} |", v.name, v.name, v.priority, v.doc).unwrap();
        }
    }
    table(&mut text, REDUCTIONS);
    table(&mut text, COPIES);
    text.push_str(WITHOUT);
    text
}

#[test]
fn what_is_printed_between_two_passes_can_be_lowered_again() {
    let names = REDUCTIONS.iter().map(|v| v.name).chain(COPIES.iter().map(|v| v.name));
    for name in names {
        let (program, arch) = demonstration(name);
        let target = TargetChoice::Cuda { arch: Some(arch) };
        for pass in PASSES {
            let text = lower(&program, Some(pass.name), Some(&target)).unwrap();
            let again = lower(&text, None, Some(&target));
            assert!(again.is_ok(), "{name} after {}: {}", pass.name, again.unwrap_err());
        }
    }
}

#[test]
fn every_variant_has_its_page() {
    let mut pages = vec![("README".to_owned(), contents())];
    pages.extend(REDUCTIONS.iter().map(|v| (v.name.to_owned(), page("reduce", v))));
    pages.extend(COPIES.iter().map(|v| (v.name.to_owned(), page("copy", v))));
    let folder = root().join("docs/variants");
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let mut stale = Vec::new();
    for (name, text) in &pages {
        let path = folder.join(format!("{name}.md"));
        if bless {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, text).unwrap();
        }
        if std::fs::read_to_string(&path).ok().as_ref() != Some(text) {
            stale.push(name);
        }
    }
    assert!(stale.is_empty(), "stale pages, which `cargo xtask docs` writes: {stale:?}");
    let files = std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(files, pages.len(), "a page in docs/variants/ of no variant");
}
