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

/// The share of the stream rate that one statistic is to reach, and that of 16-bit floats or of several statistics.
const WANTED: [f64; 2] = [0.95, 0.90];
/// How many times as fast as NumPy and JAX log-sum-exp is to be, which computes more than it reads.
const WANTED_OF_EXPONENTIALS: [(&str, f64); 2] = [("numpy", 4.0), ("jax", 1.6)];

/// The rate at which the machine streams memory, which is that of arrays that no cache holds.
struct Streams<'a> {
    machine: &'a Machine,
    /// Of those arrays, the one in the middle, in bytes a millisecond.
    middle: Option<f64>,
}

impl<'a> Streams<'a> {
    fn of(machine: &'a Machine, outcomes: &[Outcome]) -> Streams<'a> {
        let in_memory = outcomes.iter().filter(|outcome| machine.level_of(outcome) == MEMORY);
        let mut rates: Vec<f64> = in_memory.filter_map(Outcome::read_rate).collect();
        rates.sort_by(f64::total_cmp);
        Streams { machine, middle: rates.get(rates.len() / 2).copied() }
    }

    /// What a call moves in a time, over what memory streams in it: in the same minutes, where the input lies in memory.
    fn share(&self, outcome: &Outcome) -> Option<f64> {
        let stream = match self.machine.level_of(outcome) {
            MEMORY => outcome.read_rate(),
            _ => self.middle,
        };
        Some(outcome.rate()? / stream?)
    }
}

/// One line while the benchmark runs.
pub fn line(outcome: &Outcome) -> String {
    let ratio = |peer| outcome.ratio(peer).map_or_else(|| "-".to_owned(), |r| format!("{r:.2}"));
    match outcome.number("best_ms") {
        None => format!("{:24} skipped: {}", outcome.id, skipped(outcome)),
        Some(ms) => format!(
            "{:24} {ms:>11.5} ms  of a read {:.2}  numpy {}  jax {}  {}",
            outcome.id,
            outcome.share_of_read().unwrap_or(0.0),
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
    let streams = Streams::of(machine, outcomes);
    let _ = write!(
        page,
        "Written by `cargo xtask bench cpu`. {threads} threads; inputs of at most {} MiB; peers: {}. Times are the best of all\n\
         calls, libraries in turn. GB/s counts the input once plus every output. \"share\" is of the rate at which this machine\n\
         streams memory: of reads of the same input in the same minutes, or, of inputs that a cache holds, of those of all inputs\n\
         that none does ({:.2} GB/s, the one in the middle). \"of a read\" is the time of a read of the input where it lies, be it a\n\
         cache, over the time of the call. Above 1 means that the read loop was disturbed or is slower than the kernel. \"x numpy\"\n\
         and \"x jax\" say how many times as fast as the peer coulis is.\n\
         Load average over the last five minutes: {}; above the number of cores, other programs took part of them.\n\n",
        options.max_bytes >> 20,
        versions.join(", "),
        streams.middle.unwrap_or(f64::NAN) / 1e6,
        load()
    );
    page += "| workload | dtype | shape | axes | lives in | ms | GB/s | share | of a read | x numpy | x jax | plan | verified |\n";
    page += "|---|---|---|---|---|---:|---:|---:|---:|---:|---:|---|---|\n";
    for outcome in outcomes {
        row(&mut page, &streams, outcome);
    }
    page += "\n## Where it falls short\n\n";
    for line in shortfalls(outcomes, &streams) {
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

fn row(page: &mut String, streams: &Streams<'_>, outcome: &Outcome) {
    let found = &outcome.coulis;
    let Some(ms) = outcome.number("best_ms") else {
        let _ = writeln!(page, "| {} | | | | | skipped: {} | | | | | | | |", outcome.id, skipped(outcome));
        return;
    };
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
        "| {} | {} | {} | {} | {} | {ms:.4} | {:.2} | {:.2} | {:.2} | {} | {} | {} | {verified} |",
        outcome.id,
        found["dtype"].as_str().unwrap_or_default(),
        list(&found["shape"]).replace(' ', " x "),
        list(&found["axes"]),
        streams.machine.level_of(outcome),
        outcome.rate().unwrap_or(0.0) / 1e6,
        streams.share(outcome).unwrap_or(0.0),
        outcome.share_of_read().unwrap_or(0.0),
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

/// Workloads below what they are to reach: a share, or a lead over other libraries.
fn shortfalls(outcomes: &[Outcome], streams: &Streams<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for outcome in outcomes {
        let mut faults = Vec::new();
        let ops: Vec<&str> =
            outcome.coulis["ops"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let is_narrow = outcome.coulis["dtype"].as_str().is_some_and(|dtype| dtype.ends_with("float16"));
        let is_exponential = ops == ["logsumexp"];
        let wanted = WANTED[usize::from(is_narrow || ops.len() > 1)];
        if let Some(share) = streams.share(outcome).filter(|share| *share < wanted && !is_exponential) {
            faults.push(format!("{share:.2} of the stream rate, {wanted:.2} wanted"));
        }
        for (peer, _) in &outcome.peers {
            let special = WANTED_OF_EXPONENTIALS.iter().find(|(name, _)| is_exponential && name == peer);
            let wanted = special.map_or(1.0, |(_, lead)| *lead);
            if let Some(ratio) = outcome.ratio(peer).filter(|ratio| *ratio < wanted) {
                let aim = special.map_or_else(String::new, |(_, lead)| format!(", {lead:.2} wanted"));
                faults.push(format!("{ratio:.2} times as fast as {peer}{aim}"));
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

/// Where arrays lie that no cache holds.
const MEMORY: &str = "memory";

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
        self.caches.iter().find(|(_, size)| bytes <= *size).map_or(MEMORY, |(name, _)| name)
    }

    /// Where the arrays of a call lie.
    fn level_of(&self, outcome: &Outcome) -> &str {
        self.level(outcome.number("bytes").unwrap_or(0.0))
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

    /// 1 MB of a type, read in 1 ms, the call in so many.
    fn outcome(id: &str, dtype: &str, ops: &[&str], best: f64, peers: &[(&str, f64)]) -> Outcome {
        let n = 8e6 / dtype.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<f64>().unwrap();
        let coulis = json!({ "best_ms": best, "floor_ms": 1.0, "bytes": 1e6, "dtype": dtype, "shape": [n], "ops": ops });
        let peers = peers.iter().map(|(name, ms)| ((*name).to_owned(), Ok((*ms, *ms)))).collect();
        Outcome { id: id.to_owned(), coulis, peers }
    }

    fn machine(cache: f64) -> Machine {
        Machine {
            model: "Intel(R) Xeon(R) Processor @ 2.50GHz".to_owned(),
            caches: vec![("L1".to_owned(), cache)],
        }
    }

    #[test]
    fn a_shortfall_names_the_share_and_the_faster_peer() {
        let outcomes = [
            outcome("good", "float32", &["sum"], 1.05, &[("numpy", 1.05)]),
            outcome("bad", "float32", &["sum"], 1.25, &[("numpy", 1.0)]),
            outcome("narrow", "bfloat16", &["sum"], 1.1, &[]),
            outcome("several", "int8", &["sum", "max"], 1.25, &[]),
            outcome("exponentials", "float32", &["logsumexp"], 2.0, &[("numpy", 8.0), ("jax", 3.0)]),
        ];
        let machine = machine(32768.0);
        let streams = Streams::of(&machine, &outcomes);
        assert_eq!(
            shortfalls(&outcomes, &streams),
            [
                "`bad`: 0.80 of the stream rate, 0.95 wanted, 0.80 times as fast as numpy",
                "`several`: 0.80 of the stream rate, 0.90 wanted",
                "`exponentials`: 1.50 times as fast as jax, 1.60 wanted",
            ]
        );
    }

    #[test]
    fn what_a_cache_holds_is_measured_against_memory() {
        let mut outcomes = [
            outcome("cached", "float32", &["sum"], 0.5, &[]),
            outcome("large", "float32", &["sum"], 4.0, &[]),
        ];
        for (member, value) in [("bytes", 4e6), ("floor_ms", 8.0), ("shape", 1e6)] {
            outcomes[1].coulis[member] = if member == "shape" { json!([value]) } else { json!(value) };
        }
        let machine = machine(2e6);
        let streams = Streams::of(&machine, &outcomes);
        assert_eq!(streams.middle, Some(5e5), "bytes a millisecond of the large one");
        assert_eq!(outcomes.each_ref().map(|o| streams.share(o)), [Some(4.0), Some(2.0)]);
        assert_eq!(outcomes.each_ref().map(Outcome::share_of_read), [Some(2.0), Some(2.0)]);
    }

    #[test]
    fn the_model_becomes_a_file_name() {
        let machine = machine(32768.0);
        assert_eq!(machine.slug(), "intel-xeon-processor-2.50ghz");
        assert_eq!([machine.level(32768.0), machine.level(32769.0)], ["L1", "memory"]);
    }
}
