//! The page of a GPU: the table, what it comes to, and where coulis falls short.

use std::fmt::Write;

use serde_json::Value;

use super::record::{Record, Row};
use super::{COULIS, PEERS, QUEUED, plot};
use crate::step::{Failure, root};

/// How much longer than the best library a workload may take.
const SLOWER: f64 = 1.03;
/// The share of the floor that large workloads are to reach.
const SHARE: f64 = 0.97;
/// Bytes from which a workload is large.
const LARGE: f64 = 2e8;
/// Milliseconds from a call to the text of its kernels.
const PLANNING: f64 = 1.0;
/// Milliseconds from the text to kernels that can be launched.
const COMPILING: f64 = 300.0;

/// A workload that coulis was timed on.
struct Entry<'a> {
    row: &'a Row,
    ms: f64,
    floor: f64,
    /// The fastest library, and how many times as fast as it coulis is.
    best: Option<(&'static str, f64)>,
}

/// How many times as fast as a library coulis is, both timed in the same way: those whose streams take no
/// events, by the clock of the host over queued calls.
fn lead(row: &Row, name: &str) -> Option<f64> {
    let queued = if QUEUED.contains(&name) { row.number(COULIS, "queued_ms") } else { None };
    Some(row.ms(name)? / queued.or_else(|| row.ms(COULIS))?)
}

impl Entry<'_> {
    fn share(&self) -> f64 {
        self.floor / self.ms
    }

    /// The time of a bare read of as many bytes over coulis' time, where it was taken.
    fn of_a_read(&self) -> Option<f64> {
        Some(self.row.number(COULIS, "read_ms")? / self.ms)
    }

    /// How many times as fast as the fastest library.
    fn lead(&self) -> Option<f64> {
        self.best.map(|(_, lead)| lead)
    }
}

fn entries(record: &Record) -> Vec<Entry<'_>> {
    let entry = |row| -> Option<Entry<'_>> {
        let leads = PEERS.iter().filter_map(|name| Some((*name, lead(row, name)?)));
        let best = leads.min_by(|a, b| a.1.total_cmp(&b.1));
        Some(Entry { row, ms: row.ms(COULIS)?, floor: row.number(COULIS, "floor_ms")?, best })
    };
    record.rows().iter().filter_map(entry).collect()
}

/// The geometric mean; `None` of nothing.
fn geometric_mean(values: &[f64]) -> Option<f64> {
    let mean = values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64;
    if values.is_empty() { None } else { Some(mean.exp()) }
}

/// Writes page and plot next to the JSON and names all three.
pub fn write(record: &Record) -> Result<(), Failure> {
    let shown = |path: &std::path::Path| path.strip_prefix(root()).unwrap_or(path).display().to_string();
    eprintln!("wrote {}", shown(record.path()));
    for (extension, text) in [("md", page(record)), ("svg", plot::svg(record))] {
        let path = record.path().with_extension(extension);
        std::fs::write(&path, text).map_err(|source| Failure::File { path: path.clone(), source })?;
        eprintln!("wrote {}", shown(&path));
    }
    Ok(())
}

fn page(record: &Record) -> String {
    let (device, driver) = record.device();
    let entries = entries(record);
    let mut page = format!("# {device}\n\n");
    let runs = match record.n_runs() {
        1 => "one run on one machine".to_owned(),
        n => format!("{n} runs, whose numbers stand in the JSON"),
    };
    let versions: Vec<&str> = record.versions().map(|(_, version)| version).collect();
    let _ = writeln!(
        page,
        "Written by `xtask bench gpu`: {runs}. Driver {driver}; {}.\n\n\
         Times are medians of launches between two events, the second-level cache being overwritten before each; those of JAX, whose\n\
         streams take no events, the wall clock of 20 queued calls over two inputs in turn, divided by 20, and coulis was timed that\n\
         way as well (\"queued\"), for the comparison with JAX alone. coulis' results were verified against exact references before they\n\
         were timed. The floor is a device-to-device copy that moves as many bytes in all, timed in turn with coulis; \"share\" is the\n\
         floor over coulis' time, and \"of a read\" is the time of a kernel that reads as many bytes in all and does nothing with them over\n\
         coulis' time, timed in turn too: a copy ends with part of what it wrote in the cache, which a read does not. \"x best\" is\n\
         how many times as fast as the fastest library coulis is, both timed in the same way (above 1: coulis is faster). \"planning\" is\n\
         from the call to the kernels' text, the device being open, and \"compile\" from there to kernels that are loaded (in one\n\
         process for all, of an empty cache).\n",
        versions.join("; ")
    );
    let stem = record.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let _ = writeln!(page, "![share of the floor by workload]({stem}.svg)\n");
    page += &summary(&entries);
    page += "\n## Workloads\n\n| workload | dtype | shape | axes | statistics | floor ms | coulis ms | share | of a read | queued ms |";
    for name in PEERS {
        let _ = write!(page, " {name} ms |");
    }
    page += " best | x best | plan | planning ms | compile ms | verified |\n|---|---|---|---|---|---:|---:|---:|---:|---:|";
    page += &"---:|".repeat(PEERS.len());
    page += "---|---:|---|---:|---:|---|\n";
    for row in record.rows() {
        line(&mut page, row, entries.iter().find(|entry| std::ptr::eq(entry.row, row)));
    }
    page += &skips(record);
    page
}

fn summary(entries: &[Entry<'_>]) -> String {
    let mut text = "## What it comes to\n\n".to_owned();
    let leads: Vec<f64> = entries.iter().filter_map(Entry::lead).collect();
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.3}"));
    let _ = writeln!(
        text,
        "- against the fastest library of each workload: {} times as fast (geometric mean of {})",
        number(geometric_mean(&leads)),
        leads.len()
    );
    for name in PEERS {
        let ratios: Vec<f64> = entries.iter().filter_map(|entry| lead(entry.row, name)).collect();
        if !ratios.is_empty() {
            let mean = number(geometric_mean(&ratios));
            let _ = writeln!(text, "- against {name} alone: {mean} (geometric mean of {})", ratios.len());
        }
    }
    let slower: Vec<&Entry<'_>> =
        entries.iter().filter(|entry| entry.lead().is_some_and(|lead| lead * SLOWER < 1.0)).collect();
    let named = |list: &[&Entry<'_>], value: &dyn Fn(&Entry<'_>) -> f64| {
        let words = list.iter().map(|entry| format!("`{}` {:.3}", entry.row.id(), value(entry)));
        words.collect::<Vec<_>>().join(", ")
    };
    let tell = |list: &[&Entry<'_>], value: &dyn Fn(&Entry<'_>) -> f64| {
        if list.is_empty() { String::new() } else { format!(": {}", named(list, value)) }
    };
    let _ = writeln!(
        text,
        "- slower than {SLOWER} times the fastest library: {} of {}{}",
        slower.len(),
        leads.len(),
        tell(&slower, &|entry| entry.lead().unwrap_or(1.0).recip())
    );
    let is_large = |entry: &&Entry<'_>| entry.row.number(COULIS, "bytes").unwrap_or(0.0) >= LARGE;
    let large: Vec<&Entry<'_>> = entries.iter().filter(is_large).collect();
    let below: Vec<&Entry<'_>> = large.iter().copied().filter(|entry| entry.share() < SHARE).collect();
    let _ = writeln!(
        text,
        "- below {SHARE} of the floor, of {} workloads of 200 MB and more: {}{}",
        large.len(),
        below.len(),
        tell(&below, &|entry| entry.share())
    );
    let reads = |entry: &Entry<'_>| entry.of_a_read().unwrap_or(f64::NAN);
    let slower: Vec<&Entry<'_>> = large.iter().copied().filter(|entry| reads(entry) < SHARE).collect();
    let _ = writeln!(
        text,
        "- below {SHARE} of a bare read, of the same: {}{}",
        slower.len(),
        tell(&slower, &|entry| reads(entry))
    );
    for (what, key, most) in [("planned", "planning_ms", PLANNING), ("compiled", "compile_ms", COMPILING)] {
        let times: Vec<f64> = entries.iter().filter_map(|entry| entry.row.number(COULIS, key)).collect();
        let longer = times.iter().filter(|ms| **ms > most).count();
        let largest = times.iter().copied().fold(0.0, f64::max);
        if !times.is_empty() {
            let _ = writeln!(
                text,
                "- {what} in more than {most} ms: {longer} of {}, at most {largest:.1}, {} as a geometric mean",
                times.len(),
                number(geometric_mean(&times))
            );
        }
    }
    text
}

fn line(page: &mut String, row: &Row, entry: Option<&Entry<'_>>) {
    let question = row.question();
    let list = |value: &Value, between: &str| {
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let words = value.as_array().into_iter().flatten().map(word);
        words.collect::<Vec<_>>().join(between)
    };
    let ms = |value: Option<f64>| value.map(|ms| format!("{ms:.4}")).unwrap_or_default();
    let _ = write!(
        page,
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        row.id(),
        question["dtype"].as_str().unwrap_or_default(),
        list(&question["shape"], " x "),
        list(&question["axes"], " "),
        list(&question["ops"], ", "),
        ms(entry.map(|entry| entry.floor)),
        ms(row.ms(COULIS)),
        entry.map(|entry| format!("{:.3}", entry.share())).unwrap_or_default(),
        entry.and_then(Entry::of_a_read).map(|share| format!("{share:.3}")).unwrap_or_default(),
        ms(row.number(COULIS, "queued_ms"))
    );
    for name in PEERS {
        let _ = write!(page, " {} |", ms(row.ms(name)));
    }
    let verified = match (row.member(COULIS, "verified").as_bool(), entry) {
        (Some(true), _) => "yes",
        (Some(false), _) => "WRONG",
        (None, Some(_)) => "out of reach",
        (None, None) => "",
    };
    let _ = writeln!(
        page,
        " {} | {} | {} | {} | {} | {verified} |",
        entry.and_then(|entry| entry.best).map(|(name, _)| name).unwrap_or_default(),
        entry.and_then(Entry::lead).map(|lead| format!("{lead:.3}")).unwrap_or_default(),
        row.member(COULIS, "plan").as_str().unwrap_or_default(),
        row.number(COULIS, "planning_ms").map(|ms| format!("{ms:.1}")).unwrap_or_default(),
        row.number(COULIS, "compile_ms").map(|ms| format!("{ms:.0}")).unwrap_or_default(),
    );
}

/// What was asked for and is not there.
fn skips(record: &Record) -> String {
    let mut text = String::new();
    for (name, why) in record.skipped() {
        let _ = writeln!(text, "- SKIP {name}: {why}");
    }
    let was_asked = |name: &str| record.versions().any(|(asked, _)| asked == name);
    for row in record.rows() {
        for name in [COULIS].into_iter().chain(PEERS).filter(|name| row.ms(name).is_none()) {
            let why = row.why_not(name).or_else(|| was_asked(name).then_some("the time of the run was over"));
            if let Some(why) = why {
                let _ = writeln!(text, "- SKIP {name}, `{}`: {why}", row.id());
            }
        }
    }
    if text.is_empty() { text } else { format!("\n## Left out\n\n{text}") }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    #[test]
    fn the_geometric_mean_is_that_of_ratios() {
        assert_eq!(geometric_mean(&[]), None);
        assert!((geometric_mean(&[2.0, 0.5, 8.0]).unwrap() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn what_it_comes_to_names_slow_workloads_and_counts_each_library_where_it_has_the_call_and_in_its_own_way()
     {
        let record = record(&[
            ("fast", 1.0, 0.98, &[("torch", 2.0), ("jax", 1.0)]),
            ("near", 1.0, 0.97, &[("torch", 0.98)]),
            ("slow", 2.0, 1.0, &[("torch", 1.0), ("cub", 8.0)]),
            ("alone", 1.0, 1.0, &[]),
        ]);
        let text = summary(&entries(&record));
        let want = "## What it comes to\n\n\
            - against the fastest library of each workload: 0.993 times as fast (geometric mean of 3)\n\
            - against torch alone: 0.993 (geometric mean of 3)\n\
            - against jax alone: 2.000 (geometric mean of 1)\n\
            - against cub alone: 4.000 (geometric mean of 1)\n\
            - slower than 1.03 times the fastest library: 1 of 3: `slow` 2.000\n\
            - below 0.97 of the floor, of 4 workloads of 200 MB and more: 1: `slow` 0.500\n\
            - below 0.97 of a bare read, of the same: 1: `slow` 0.505\n";
        assert_eq!(text, want);
    }

    #[test]
    fn a_library_that_time_did_not_do_for_is_left_out_by_name() {
        let mut record = record(&[("a", 1.0, 1.0, &[("torch", 2.0)]), ("b", 1.0, 1.0, &[])]);
        assert!(!page(&record).contains("SKIP"), "nobody was asked");
        record.set_version("torch", "PyTorch 2");
        record.skip("jax", "no jax");
        let page = page(&record);
        let lines: Vec<&str> = page.lines().filter(|line| line.contains("SKIP")).collect();
        assert_eq!(lines, ["- SKIP jax: no jax", "- SKIP torch, `b`: the time of the run was over"]);
    }

    #[test]
    fn each_line_of_the_table_has_as_many_cells_as_its_head() {
        let record = record(&[("a", 1.0, 1.0, &[("torch", 2.0)]), ("b", 1.0, 1.0, &[])]);
        let page = page(&record);
        let cells: Vec<usize> =
            page.lines().filter(|line| line.starts_with('|')).map(|line| line.matches('|').count()).collect();
        assert_eq!(cells.len(), 4);
        assert!(cells.iter().all(|n| *n == cells[0]), "{cells:?}");
    }
}
