//! The tutorial of seed 003 prints what `tests/files/tutorial.txt` holds, which was read against the seed.

#[allow(dead_code, reason = "its `main` is for the command line")]
#[path = "../examples/reduction_tutorial.rs"]
mod reduction_tutorial;

fn printed(cpu_only: bool) -> String {
    let mut out = Vec::new();
    assert!(reduction_tutorial::tutorial(&mut out, cpu_only).expect("the tutorial runs"), "a run differs");
    let text = String::from_utf8(out).expect("text");
    // Whether there is a GPU is not for a golden file to know.
    text.lines().filter(|line| !line.contains(", cuda")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_tutorial_prints_the_listings_of_the_seed_and_every_run_agrees() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/files/tutorial.txt");
    let found = printed(false);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &found).expect("the golden file is written");
    }
    assert_eq!(found, std::fs::read_to_string(path).expect("the golden file"));
}

#[test]
fn for_the_cpu_alone_nothing_is_skipped_and_nothing_stands_before_the_first_listing() {
    let found = printed(true);
    let heads: Vec<&str> = found.lines().filter(|line| line.starts_with("== ")).collect();
    assert_eq!(
        heads,
        ["== listing 1", "== listing 2", "== listing 4", "== listing 5", "== listing 7", "== run"]
    );
    assert!(found.starts_with("== listing 1\n") && !found.contains("SKIP"));
}
