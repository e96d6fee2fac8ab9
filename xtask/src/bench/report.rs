//! The report: a page with a table, and the same as JSON.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::latency::Latency;
use super::workload::{COULIS, FLOOR, SUM};
use super::{Options, Outcome, Peers};
use crate::step::{Failure, root};

/// The share of the stream rate that one statistic is to reach, and that of 16-bit floats or of several statistics.
const WANTED: [f64; 2] = [0.95, 0.90];
/// How many times as fast as NumPy and JAX log-sum-exp and softmax are to be, which compute more than they read.
const WANTED_OF_EXPONENTIALS: [(&str, f64); 2] = [("numpy", 4.0), ("jax", 1.6)];

/// How many times as long as the sum alone several statistics with a sum may take, and from how many bytes of
/// input on.
const WANTED_OF_SEVERAL: (f64, f64) = (1.1, (64 << 20) as f64);

/// A ratio, or that there is none.
fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
}

/// Names of the libraries next to which coulis is timed.
fn names(peers: &Peers) -> Vec<&str> {
    peers.versions().iter().map(|(name, _)| name.as_str()).collect()
}

/// One line while the benchmark runs.
pub fn line(outcome: &Outcome, peers: &Peers) -> String {
    let Some(ms) = outcome.best() else { return format!("{:24} no time", outcome.id) };
    let mut line = format!("{:24} {ms:>11.5} ms  share {}", outcome.id, ratio(outcome.share()));
    for name in names(peers) {
        let _ = write!(line, "  {name} {}", ratio(outcome.ratio(name)));
    }
    if let Some(times) = outcome.ratio_to_sum() {
        let _ = write!(line, "  of the sum {times:.2}");
    }
    let plan = outcome.coulis["plan"].as_str().unwrap_or_default();
    let _ = write!(line, "  {plan}, {} turns", outcome.turns.len());
    line
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
        "Written by `cargo xtask bench cpu`. {threads} threads; inputs of at most {} MiB; peers: {}.\n\n\
         Each workload is timed in many short turns. In a turn a read of the input, coulis and each peer run one right after the\n\
         other, each at least twice, the best of which counts, and who comes first goes around. No one begins before the threads of the\n\
         others sleep (those of PyTorch look for work for 8 to 9 ms after a call, each on a core). A ratio is the median of the ratios of all turns (a peer\n\
         that takes more than 50 ms is in one turn of five, once), so that a memory whose rate moves from second to second moves\n\
         both sides of it. \"ms\" is the best of all calls, and \"GB/s\" the input once plus every output over it. \"share\" is what\n\
         memory takes to move as many bytes over the call: a plain read of the input, or, where the results are a sixteenth of it or\n\
         more, a loop that copies as many bytes and reads the rest; of inputs of less than 128 MiB, which a cache may hold, a\n\
         read of other memory. \"of a read\" is the same of the input where it lies, be it a cache. \"x numpy\" and so on say how\n\
         many times as fast as the peer coulis is.\n\
         Load average over the last five minutes: {}; above the number of cores, other programs took part of them.\n\n",
        options.max_bytes >> 20,
        versions.join(", "),
        load()
    );
    let names = names(peers);
    page += "| workload | dtype | shape | axes | lives in | ms | GB/s | share | of a read |";
    names.iter().for_each(|name| page += &format!(" x {name} |"));
    page += " turns | plan | verified |\n|---|---|---|---|---|---:|---:|---:|---:|";
    page += &"---:|".repeat(names.len());
    page += "---:|---|---|\n";
    for outcome in outcomes {
        row(&mut page, machine, outcome, &names);
    }
    page += "\n## Where it falls short\n\n";
    for line in shortfalls(outcomes, &names) {
        let _ = writeln!(page, "- {line}");
    }
    page += "\n## Several statistics in one call, against the sum alone in the same turns\n\n| statistics | ratio of times |\n|---|---:|\n";
    for (id, ratio) in ratios(outcomes) {
        let _ = writeln!(page, "| {id} | {ratio:.2} |");
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

fn row(page: &mut String, machine: &Machine, outcome: &Outcome, names: &[&str]) {
    let found = &outcome.coulis;
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
    let _ = write!(
        page,
        "| {} | {} | {} | {} | {} | {:.4} | {:.2} | {} | {} |",
        outcome.id,
        found["dtype"].as_str().unwrap_or_default(),
        list(&found["shape"]).replace(' ', " x "),
        list(&found["axes"]),
        machine.level_of(outcome),
        outcome.best().unwrap_or(f64::NAN),
        outcome.rate().unwrap_or(f64::NAN) / 1e6,
        ratio(outcome.share()),
        ratio(outcome.share_of_read()),
    );
    names.iter().for_each(|name| *page += &format!(" {} |", ratio(outcome.ratio(name))));
    let plan = found["plan"].as_str().unwrap_or_default();
    let _ = writeln!(page, " {} | {plan} | {verified} |", outcome.turns.len());
}

/// What the system says of programs that wanted to run in the last five minutes.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').nth(1).unwrap_or("unknown").to_owned()
}

/// Workloads below what they are to reach: a share, a lead over other libraries, or a time next to that of
/// the sum alone.
fn shortfalls(outcomes: &[Outcome], names: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for outcome in outcomes {
        let mut faults = Vec::new();
        let ops: Vec<&str> =
            outcome.coulis["ops"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let is_narrow = outcome.coulis["dtype"].as_str().is_some_and(|dtype| dtype.ends_with("float16"));
        let is_exponential = ops == ["logsumexp"] || ops == ["softmax"];
        let wanted = WANTED[usize::from(is_narrow || ops.len() > 1)];
        if let Some(share) = outcome.share().filter(|share| *share < wanted && !is_exponential) {
            faults.push(format!("{share:.2} of the stream rate, {wanted:.2} wanted"));
        }
        for name in names {
            let special = WANTED_OF_EXPONENTIALS.iter().find(|(other, _)| is_exponential && name == other);
            let wanted = special.map_or(1.0, |(_, lead)| *lead);
            if let Some(ratio) = outcome.ratio(name).filter(|ratio| *ratio < wanted) {
                let aim = special.map_or_else(String::new, |(_, lead)| format!(", {lead:.2} wanted"));
                faults.push(format!("{ratio:.2} times as fast as {name}{aim}"));
            }
        }
        let (most, from_bytes) = WANTED_OF_SEVERAL;
        let is_large = outcome.number("bytes").is_some_and(|bytes| bytes >= from_bytes);
        if let Some(times) = outcome.ratio_to_sum().filter(|times| is_large && *times > most) {
            faults.push(format!("{times:.2} times the time of the sum alone, {most:.2} wanted"));
        }
        if !faults.is_empty() {
            lines.push(format!("`{}`: {}", outcome.id, faults.join(", ")));
        }
    }
    lines
}

/// Workloads of several statistics, and how many times as long as the sum alone they take.
fn ratios(outcomes: &[Outcome]) -> Vec<(&str, f64)> {
    outcomes.iter().filter_map(|outcome| Some((outcome.id.as_str(), outcome.ratio_to_sum()?))).collect()
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
            let of = |name: &str| [outcome.turns.best(name), outcome.turns.median(name)];
            [entry["best_ms"], entry["ms"]] = of(COULIS).map(|ms| json!(ms));
            entry["turns"] = json!(outcome.turns.len());
            entry["floor_ms"] = json!(outcome.turns.median(FLOOR));
            entry["share"] = json!(outcome.share());
            entry["share_of_read"] = json!(outcome.share_of_read());
            for name in names(peers).into_iter().chain([SUM]) {
                let [best, median] = of(name);
                let ratio = outcome.ratio(name);
                entry[name] = match outcome.refused.iter().find(|(peer, _)| peer == name) {
                    Some((_, why)) => json!({ "error": why }),
                    None => json!({ "best_ms": best, "ms": median, "times_as_long": ratio }),
                };
            }
            entry
        })
        .collect();
    let versions: Vec<String> = peers.versions().iter().map(|(name, v)| format!("{name} {v}")).collect();
    let ratios: Vec<Value> =
        ratios(outcomes).iter().map(|(id, ratio)| json!({ "statistics": id, "ratio": ratio })).collect();
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
    /// Its name and its widest vectors: virtual machines give the same name to many processors.
    model: String,
    /// Bytes of the data caches that one core reaches, L1 first.
    caches: Vec<(String, f64)>,
}

impl Machine {
    fn here() -> Machine {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = Machine::model(&info);
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

    /// What `/proc/cpuinfo` says of the processor.
    fn model(info: &str) -> String {
        let field = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name)?.split_once(": "));
            line.map(|(_, value)| value)
        };
        let name = field("model name").unwrap_or(std::env::consts::ARCH);
        let has = |flag: &str| field("flags").is_some_and(|flags| flags.split(' ').any(|f| f == flag));
        let vectors = [("avx512f", ", AVX-512"), ("avx2", ", AVX2")].into_iter().find(|(flag, _)| has(flag));
        // Virtual machines may hide which processor of a vendor they run on; the family tells its cores.
        let is_numbered = name.contains(|c: char| c.is_ascii_digit());
        let family = field("cpu family").filter(|_| !is_numbered).map(|family| format!(" family {family}"));
        format!("{name}{}{}", family.unwrap_or_default(), vectors.map_or("", |(_, named)| named))
    }

    /// The smallest cache that holds that number of bytes.
    fn level(&self, bytes: f64) -> &str {
        self.caches.iter().find(|(_, size)| bytes <= *size).map_or("memory", |(name, _)| name)
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
    use super::super::turns::Turns;
    use super::super::workload::MEMORY;
    use super::*;

    /// 100 MB of a type that memory moves in 1 ms, and times of one turn.
    fn outcome(id: &str, dtype: &str, ops: &[&str], times: &[(&str, f64)]) -> Outcome {
        let coulis = json!({ "bytes": 1e8, "dtype": dtype, "ops": ops });
        let mut turns = Turns::default();
        let names = times.iter().chain(&[(MEMORY, 1.0)]).map(|(name, ms)| ((*name).to_owned(), *ms));
        turns.push(names.collect());
        Outcome { id: id.to_owned(), coulis, turns, refused: Vec::new() }
    }

    fn machine(cache: f64) -> Machine {
        Machine {
            model: "Intel(R) Xeon(R) Processor @ 2.50GHz".to_owned(),
            caches: vec![("L1".to_owned(), cache)],
        }
    }

    #[test]
    fn a_shortfall_names_the_share_the_faster_peer_and_the_sum() {
        let mut outcomes = [
            outcome("good", "float32", &["sum"], &[(COULIS, 1.05), ("numpy", 1.05)]),
            outcome("bad", "float32", &["sum"], &[(COULIS, 1.25), ("numpy", 1.0), ("torch", 2.0)]),
            outcome("narrow", "bfloat16", &["sum"], &[(COULIS, 1.1)]),
            outcome("several", "int8", &["sum", "max"], &[(COULIS, 1.25), (SUM, 1.0)]),
            outcome("small", "int8", &["sum", "max"], &[(COULIS, 1.0), (SUM, 0.5)]),
            outcome(
                "exponentials",
                "float32",
                &["logsumexp"],
                &[(COULIS, 2.0), ("numpy", 8.0), ("jax", 3.0)],
            ),
            outcome("softmax", "float32", &["softmax"], &[(COULIS, 2.0), ("numpy", 7.0), ("jax", 3.2)]),
        ];
        outcomes[4].coulis["bytes"] = json!(1e6);
        assert_eq!(
            shortfalls(&outcomes, &["numpy", "jax", "torch"]),
            [
                "`bad`: 0.80 of the stream rate, 0.95 wanted, 0.80 times as fast as numpy",
                "`several`: 0.80 of the stream rate, 0.90 wanted, 1.25 times the time of the sum alone, 1.10 wanted",
                "`exponentials`: 1.50 times as fast as jax, 1.60 wanted",
                "`softmax`: 3.50 times as fast as numpy, 4.00 wanted",
            ]
        );
        assert_eq!(ratios(&outcomes), [("several", 1.25), ("small", 2.0)]);
    }

    #[test]
    fn processors_of_one_name_are_told_apart_by_their_vectors() {
        let of = |flags: &str| Machine::model(&format!("model name\t: AMD EPYC\nflags\t\t: {flags}\n"));
        assert_eq!(of("sse2 avx avx2 avx512f"), "AMD EPYC, AVX-512");
        assert_eq!(of("sse2 avx avx2"), "AMD EPYC, AVX2");
        assert_eq!(of("sse2"), "AMD EPYC");
        let of_family = |name: &str| {
            Machine::model(&format!("model name\t: {name}\ncpu family\t: 25\nflags\t\t: avx2\n"))
        };
        assert_eq!(of_family("AMD EPYC"), "AMD EPYC family 25, AVX2");
        assert_eq!(of_family("AMD EPYC 7763"), "AMD EPYC 7763, AVX2");
        assert_eq!(Machine::model(""), std::env::consts::ARCH);
    }

    #[test]
    fn the_model_becomes_a_file_name() {
        let machine = machine(32768.0);
        assert_eq!(machine.slug(), "intel-xeon-processor-2.50ghz");
        assert_eq!([machine.level(32768.0), machine.level(32769.0)], ["L1", "memory"]);
    }
}
