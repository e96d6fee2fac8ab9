//! Which crate may use which: the table in `ARCHITECTURE.md` against `cargo metadata`.
//!
//! Only normal dependencies are arrows. A test may look at the crates around its own.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Fault;
use crate::step::{Failure, Step, read_text};

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Compares the table with the manifests.
pub fn check() -> Result<Vec<Fault>, Failure> {
    let table = table(&read_text("ARCHITECTURE.md")?);
    let metadata = Step::cargo(&["metadata", "--format-version", "1", "--no-deps", "--offline"]).output()?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|_| Failure::Metadata { missing: "valid JSON" })?;
    Ok(compare(&table, &manifests(&metadata)?))
}

/// Rows of the first table with the columns crate, purpose, may use; names without `coulis-`.
fn table(text: &str) -> Arrows {
    let mut arrows = Arrows::new();
    let rows = text.lines().skip_while(|line| !line.starts_with("| crate |")).skip(2);
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, uses] = cells[..] else { continue };
        let uses = uses.split(',').map(str::trim).filter(|&word| word != "nothing").map(full_name).collect();
        arrows.insert(full_name(name.trim_matches('`')), uses);
    }
    arrows
}

fn full_name(name: &str) -> String {
    if name.starts_with("coulis") || name == "xtask" { name.to_owned() } else { format!("coulis-{name}") }
}

/// Normal dependencies between the workspace's own packages.
fn manifests(metadata: &Value) -> Result<Arrows, Failure> {
    let packages = metadata["packages"].as_array().ok_or(Failure::Metadata { missing: "packages" })?;
    let name_of = |value: &Value| value["name"].as_str().map(str::to_owned);
    let own: BTreeSet<String> = packages.iter().filter_map(name_of).collect();
    let mut arrows = Arrows::new();
    for package in packages {
        let name = name_of(package).ok_or(Failure::Metadata { missing: "name" })?;
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let normal = dependencies.filter(|dependency| dependency["kind"].is_null());
        arrows.insert(name, normal.filter_map(name_of).filter(|name| own.contains(name)).collect());
    }
    Ok(arrows)
}

fn compare(table: &Arrows, manifests: &Arrows) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (name, uses) in manifests {
        let Some(allowed) = table.get(name) else {
            faults.push(Fault::new("ARCHITECTURE.md", format!("the table has no row for `{name}`")));
            continue;
        };
        for used in uses.difference(allowed) {
            faults.push(Fault::new(
                format!("{name}/Cargo.toml"),
                format!("uses `{used}`, which the table in ARCHITECTURE.md does not allow"),
            ));
        }
    }
    for name in table.keys().filter(|name| !manifests.contains_key(*name)) {
        faults.push(Fault::new(
            "ARCHITECTURE.md",
            format!("the table has a row for `{name}`, which does not exist"),
        ));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "text\n| crate | purpose | may use |\n|---|---|---|\n| `coulis-a` | one | nothing |\n| `coulis-b` | two | a |\n\n| `c` | not a row | a |\n";

    fn arrows(rows: &[(&str, &[&str])]) -> Arrows {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        rows.iter().map(|&(name, uses)| (name.to_owned(), set(uses))).collect()
    }

    #[test]
    fn the_table_ends_with_its_last_row() {
        assert_eq!(table(TABLE), arrows(&[("coulis-a", &[]), ("coulis-b", &["coulis-a"])]));
    }

    #[test]
    fn an_arrow_outside_the_table_is_a_fault_and_a_missing_one_is_not() {
        let allowed = table(TABLE);
        assert_eq!(compare(&allowed, &arrows(&[("coulis-a", &[]), ("coulis-b", &[])])), []);
        let turned = compare(&allowed, &arrows(&[("coulis-a", &["coulis-b"]), ("coulis-b", &[])]));
        assert_eq!(turned.len(), 1);
        assert_eq!(turned[0].place, "coulis-a/Cargo.toml");
    }

    #[test]
    fn a_row_without_a_crate_and_a_crate_without_a_row_are_faults() {
        let faults = compare(&table(TABLE), &arrows(&[("coulis-a", &[]), ("coulis-z", &[])]));
        assert_eq!(faults.len(), 2);
    }

    #[test]
    fn dev_dependencies_are_no_arrows() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "coulis-a", "dependencies": [{ "name": "coulis-b", "kind": "dev" }, { "name": "serde", "kind": null }] },
            { "name": "coulis-b", "dependencies": [{ "name": "coulis-a", "kind": null }] },
        ]});
        assert_eq!(manifests(&metadata).unwrap(), arrows(&[("coulis-a", &[]), ("coulis-b", &["coulis-a"])]));
    }
}
