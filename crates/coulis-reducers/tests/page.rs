//! `docs/reducers.md` is what the catalogue says; `BLESS=1`, which `cargo xtask docs` sets, writes it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use coulis_reducers::docs_page;

#[test]
fn the_page_of_reducers_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reducers.md");
    let page = docs_page();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(found == page, "docs/reducers.md is stale; run `cargo xtask docs`");
}
