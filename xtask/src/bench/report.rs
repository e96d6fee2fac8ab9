//! The report: a page with a table, and the same as JSON.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::latency::Latency;
use super::{Options, Outcome, Peers};
use crate::step::{Failure, root};

/// Five statistics in one call, and the sum alone over the same data.
const PAIRS: [(&str, &str); 5] = [
    ("row_stats_f32", "row_sum_f32"),
    ("full_stats_f32", "full_sum_f32"),
    ("l3_row_stats_f32", "l3_row_sum_f32"),
    ("l2_row_stats_f32", "l2_row_sum_f32"),
    ("l1_row_stats_f32", "l1_row_sum_f32"),
];

/// The share of the stream rate that a workload is to reach.
const WANTED: f64 = 0.95;

/// One line while the benchmark runs.
pub fn line(outcome: &Outcome) -> String {
    let ratio = |peer| outcome.ratio(peer).map_or_else(|| "-".to_owned(), |r| format!("{r:.2}"));
    match outcome.number("best_ms") {
        None => format!("{:24} skipped: {}", outcome.id, skipped(outcome)),
        Some(ms) => format!(
            "{:24} {ms:>11.5} ms  share {:.2}  numpy {}  jax {}  {}",
            outcome.id,
            outcome.share().unwrap_or(0.0),
            ratio("numpy"),
            ratio("jax"),
            outcome.coulis["plan"].as_str().unwrap_or_default()
        ),
    }
}

/// Writes both files and names them.
pub fn write(
    outcomes: &[Outcome],
    latency: &Latency,
    options: &Options,
    peers: &Peers,
) -> Result<[String; 2], Failure> {
    let machine = Machine::here();
    let stem = format!("bench/results/cpu-{}", machine.slug());
    let folder = root().join("bench/results");
    std::fs::create_dir_all(&folder).map_err(|source| Failure::File { path: folder, source })?;
    let page = page(&machine, outcomes, latency, options, peers);
    let data = data(&machine, outcomes, latency, options, peers);
    let mut written = [String::new(), String::new()];
    for (slot, (name, text)) in
        written.iter_mut().zip([(format!("{stem}.md"), page), (format!("{stem}.json"), data)])
    {
        let path = root().join(&name);
        std::fs::write(&path, text).map_err(|source| Failure::File { path, source })?;
        *slot = name;
    }
    Ok(written)
}

fn skipped(outcome: &Outcome) -> &str {
    let why = outcome.coulis["skipped"].as_str().unwrap_or("no time");
    // The rest of a message says what is legal.
    why.split_once(';').map_or(why, |(short, _)| short)
}

fn page(
    machine: &Machine,
    outcomes: &[Outcome],
    latency: &Latency,
    options: &Options,
    peers: &Peers,
) -> String {
    let mut page = format!("# {}\n\n", machine.model);
    let versions: Vec<String> = peers.versions().iter().map(|(name, v)| format!("{name} {v}")).collect();
    let threads = outcomes.iter().find_map(|o| o.number("threads")).unwrap_or(0.0);
    let _ = write!(
        page,
        "Written by `cargo xtask bench cpu`. {threads} threads; inputs of at most {} MiB; peers: {}. Times are the best of all\n\
         calls, libraries in turn. GB/s counts the input once plus every output. \"share\" is of the rate at which this\n\
         machine reads the same input, timed in the same minutes; above 1 means that the read loop was disturbed or\n\
         is slower than the kernel. \"x numpy\" and \"x jax\" say how many times as fast as the peer coulis is.\n\
         Load average over the last five minutes: {}; above the number of cores, other programs took part of them.\n\n",
        options.max_bytes >> 20,
        versions.join(", "),
        load()
    );
    page += "| workload | dtype | shape | axes | lives in | ms | GB/s | share | x numpy | x jax | plan | verified |\n";
    page += "|---|---|---|---|---|---:|---:|---:|---:|---:|---|---|\n";
    for outcome in outcomes {
        row(&mut page, machine, outcome);
    }
    page += "\n## Where it falls short\n\n";
    for line in shortfalls(outcomes) {
        let _ = writeln!(page, "- {line}");
    }
    page += "\n## Five statistics in one call, against the sum alone\n\n| five statistics | sum | ratio of times |\n|---|---|---:|\n";
    for (stats, sum, ratio) in ratios(outcomes) {
        let _ = writeln!(page, "| {stats} | {sum} | {ratio:.2} |");
    }
    page += "\n## What a first call costs (sum of 16 numbers)\n\n";
    page += "| kernel from | first call of the process | of that compile or load | prepare again | launch |\n|---|---:|---:|---:|---:|\n";
    for found in [&latency.cold, &latency.disk] {
        let number = |name: &str| found[name].as_f64().unwrap_or(f64::NAN);
        let _ = writeln!(
            page,
            "| {} | {:.1} ms | {:.1} ms | {:.1} us | {:.2} us |",
            found["origin"].as_str().unwrap_or_default(),
            number("first_call_ms"),
            number("compile_ms"),
            number("prepare_again_ms") * 1e3,
            number("launch_ms") * 1e3
        );
    }
    page
}

fn row(page: &mut String, machine: &Machine, outcome: &Outcome) {
    let found = &outcome.coulis;
    let Some(ms) = outcome.number("best_ms") else {
        let _ = writeln!(page, "| {} | | | | | skipped: {} | | | | | | |", outcome.id, skipped(outcome));
        return;
    };
    let bytes = outcome.number("bytes").unwrap_or(0.0);
    let ratio = |peer: &str| outcome.ratio(peer).map_or_else(|| "-".to_owned(), |r| format!("{r:.2}"));
    let verified = match found["verified"].as_bool() {
        Some(true) => "yes",
        Some(false) => "WRONG",
        None => "out of reach",
    };
    let list = |value: &Value| {
        value
            .as_array()
            .map(|l| l.iter().map(Value::to_string).collect::<Vec<_>>().join(" "))
            .unwrap_or_default()
    };
    let _ = writeln!(
        page,
        "| {} | {} | {} | {} | {} | {ms:.4} | {:.2} | {:.2} | {} | {} | {} | {verified} |",
        outcome.id,
        found["dtype"].as_str().unwrap_or_default(),
        list(&found["shape"]).replace(' ', " x "),
        list(&found["axes"]),
        machine.level(bytes),
        bytes / ms / 1e6,
        outcome.share().unwrap_or(0.0),
        ratio("numpy"),
        ratio("jax"),
        found["plan"].as_str().unwrap_or_default(),
    );
}

/// What the system says of programs that wanted to run in the last five minutes.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').nth(1).unwrap_or("unknown").to_owned()
}

/// Workloads below the wanted share, or slower than a peer.
fn shortfalls(outcomes: &[Outcome]) -> Vec<String> {
    let mut lines = Vec::new();
    for outcome in outcomes {
        let mut faults = Vec::new();
        if let Some(share) = outcome.share().filter(|share| *share < WANTED) {
            faults.push(format!("{share:.2} of the stream rate"));
        }
        for (peer, _) in &outcome.peers {
            if let Some(ratio) = outcome.ratio(peer).filter(|ratio| *ratio < 1.0) {
                faults.push(format!("{ratio:.2} times as fast as {peer}"));
            }
        }
        if !faults.is_empty() {
            lines.push(format!("`{}`: {}", outcome.id, faults.join(", ")));
        }
    }
    lines
}

fn ratios(outcomes: &[Outcome]) -> Vec<(&'static str, &'static str, f64)> {
    let of = |id: &str| outcomes.iter().find(|outcome| outcome.id == id)?.number("best_ms");
    PAIRS.iter().filter_map(|(stats, sum)| Some((*stats, *sum, of(stats)? / of(sum)?))).collect()
}

fn data(
    machine: &Machine,
    outcomes: &[Outcome],
    latency: &Latency,
    options: &Options,
    peers: &Peers,
) -> String {
    let results: Vec<Value> = outcomes
        .iter()
        .map(|outcome| {
            let mut entry = outcome.coulis.clone();
            for (peer, timed) in &outcome.peers {
                entry[peer] = match timed {
                    Ok((best, median)) => json!({ "best_ms": best, "ms": median }),
                    Err(why) => json!({ "error": why }),
                };
            }
            entry
        })
        .collect();
    let versions: Vec<String> = peers.versions().iter().map(|(name, v)| format!("{name} {v}")).collect();
    let ratios: Vec<Value> =
        ratios(outcomes).iter().map(|(a, b, r)| json!({ "statistics": a, "sum": b, "ratio": r })).collect();
    let all = json!({
        "cpu": machine.model,
        "peers": versions,
        "max_bytes": options.max_bytes,
        "results": results,
        "statistics_to_sum": ratios,
        "latency": { "cold": latency.cold, "disk": latency.disk },
    });
    format!("{all:#}\n")
}

/// The processor.
struct Machine {
    model: String,
    /// Bytes of the data caches that one core reaches, L1 first.
    caches: Vec<(String, f64)>,
}

impl Machine {
    fn here() -> Machine {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let model = model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.to_owned());
        let mut caches = Vec::new();
        for index in 0..8 {
            let folder = Path::new("/sys/devices/system/cpu/cpu0/cache").join(format!("index{index}"));
            let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
            let size = read("size").trim().trim_end_matches('K').parse::<f64>();
            if let Some(size) = size.ok().filter(|_| read("type").trim() != "Instruction") {
                caches.push((format!("L{}", read("level").trim()), size * 1024.0));
            }
        }
        Machine { model, caches }
    }

    /// The smallest cache that holds so many bytes.
    fn level(&self, bytes: f64) -> &str {
        self.caches.iter().find(|(_, size)| bytes <= *size).map_or("memory", |(name, _)| name)
    }

    /// The model as part of a file name.
    fn slug(&self) -> String {
        let plain = self.model.to_lowercase().replace("(r)", "").replace("(tm)", "");
        let dashed: String =
            plain.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
        dashed.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(id: &str, best: f64, floor: f64, peer: f64) -> Outcome {
        let coulis = json!({ "best_ms": best, "floor_ms": floor });
        Outcome { id: id.to_owned(), coulis, peers: vec![("numpy".to_owned(), Ok((peer, peer)))] }
    }

    #[test]
    fn a_shortfall_names_the_share_and_the_faster_peer() {
        let outcomes = [outcome("good", 1.0, 0.95, 1.0), outcome("bad", 2.0, 1.0, 1.0)];
        assert_eq!(shortfalls(&outcomes), ["`bad`: 0.50 of the stream rate, 0.50 times as fast as numpy"]);
    }

    #[test]
    fn the_model_becomes_a_file_name() {
        let machine = Machine {
            model: "Intel(R) Xeon(R) Processor @ 2.50GHz".to_owned(),
            caches: vec![("L1".to_owned(), 32768.0)],
        };
        assert_eq!(machine.slug(), "intel-xeon-processor-2.50ghz");
        assert_eq!([machine.level(32768.0), machine.level(32769.0)], ["L1", "memory"]);
    }
}
