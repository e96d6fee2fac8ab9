//! The benchmark on a GPU: coulis next to PyTorch, torch.compile, CuPy, JAX and CUB, on one machine in one
//! run.
//!
//! One library after the other goes through the suite, coulis first, torch.compile last, since it alone takes minutes.
//! Every result is written to the JSON at once, so that a run that was cut off goes on where it stopped. Needs neither
//! cargo nor the sources: the binary `coulis` next to this one, and `bench/` below the current folder.

mod peer;
mod plot;
mod record;
mod report;

use std::collections::VecDeque;
use std::io::{IsTerminal, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::step::{Failure, Step, root};

use self::peer::Peer;
use self::record::{Record, Row};

/// Libraries by name, in the order in which they are timed.
pub const PEERS: [&str; 5] = ["torch", "cupy", "jax", "cub", "compile"];

/// Those that are timed by the host's clock over queued calls.
const QUEUED: [&str; 1] = ["jax"];

/// The name under which coulis' own results stand.
const COULIS: &str = "coulis";

/// How a run on a GPU is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of the binary `coulis`; where cargo builds, if none is named.
    pub bin_dir: Option<PathBuf>,
    /// The file of workloads.
    pub suite: PathBuf,
    /// Folder of the results.
    pub out: PathBuf,
    /// Parts of ids; any is enough. All where none is named.
    pub only: Vec<String>,
    /// Libraries that are timed.
    pub peers: Vec<&'static str>,
    /// The longest that a library may take for one workload.
    pub limit: Duration,
    /// Nothing is begun after that.
    pub budget: Duration,
    /// Seconds of launches of coulis for each workload.
    pub seconds: f64,
    /// Whether results of an earlier run are thrown away.
    pub fresh: bool,
    /// The JSON of a run whose page and plot are written again; nothing is timed.
    pub pages: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            bin_dir: None,
            suite: root().join("bench/workloads.json"),
            out: root().join("bench/results"),
            only: Vec::new(),
            peers: PEERS.to_vec(),
            limit: Duration::from_secs(40),
            budget: Duration::from_secs(3600),
            seconds: 0.3,
            fresh: false,
            pages: None,
        }
    }
}

/// Times everything that is not yet in the record, then writes page and plot.
pub fn run(options: &Options) -> Result<(), Failure> {
    if let Some(path) = &options.pages {
        return report::write(&Record::read(path)?);
    }
    let Some((device, driver)) = gpu() else {
        println!("SKIP bench gpu: nvidia-smi names no GPU");
        return Ok(());
    };
    std::fs::create_dir_all(&options.out)
        .map_err(|source| Failure::File { path: options.out.clone(), source })?;
    let mut record = Record::open(&options.out, &device, &driver, options.fresh)?;
    let path = &options.suite;
    let text =
        std::fs::read_to_string(path).map_err(|source| Failure::File { path: path.clone(), source })?;
    let wanted = |id: &str| options.only.is_empty() || options.only.iter().any(|part| id.contains(part));
    for entry in workloads(&text)?.iter().filter(|entry| wanted(entry["id"].as_str().unwrap_or_default())) {
        record.add(entry);
    }
    let missing = |record: &Record, name: &str| -> VecDeque<usize> {
        let of_row = |row: &Row| wanted(row.id()) && row.lacks(name);
        (0..record.rows().len()).filter(|&at| of_row(&record.rows()[at])).collect()
    };
    let start = Instant::now();
    // The servers load their libraries, and CUB is compiled, while coulis is timed.
    let wanted_peers = options.peers.iter().filter(|name| !missing(&record, name).is_empty());
    let mut peers: Vec<Peer> = wanted_peers.map(|name| Peer::start(name)).collect();
    for at in missing(&record, COULIS) {
        if start.elapsed() > options.budget {
            break;
        }
        progress(COULIS, record.rows(), at);
        let found = coulis(options, &record.rows()[at])?;
        record.put(at, COULIS, found)?;
        done(COULIS, &record.rows()[at]);
    }
    for peer in &mut peers {
        match peer.hello() {
            Ok(version) => record.set_version(peer.name(), &version),
            Err(why) => {
                println!("SKIP {}: {why}", peer.name());
                record.skip(peer.name(), &why.to_string());
                continue;
            }
        }
        for at in missing(&record, peer.name()) {
            if start.elapsed() > options.budget {
                break;
            }
            progress(peer.name(), record.rows(), at);
            let answer = peer.time(record.rows()[at].question(), options.limit);
            record.put(at, peer.name(), answer)?;
            done(peer.name(), &record.rows()[at]);
        }
        peer.stop();
    }
    drop(peers);
    report::write(&record)
}

/// Name of the first GPU and of its driver.
fn gpu() -> Option<(String, String)> {
    let words = ["--query-gpu=name,driver_version", "--format=csv,noheader"];
    let said = Step::program("nvidia-smi", &words).output().ok()?;
    let (device, driver) = said.lines().next()?.split_once(',')?;
    Some((device.trim().to_owned(), driver.trim().to_owned()))
}

/// The workloads of a file.
fn workloads(text: &str) -> Result<Vec<Value>, Failure> {
    let wrong = || Failure::Metadata { missing: "workloads" };
    let suite: Value = serde_json::from_str(text).map_err(|_| wrong())?;
    suite["workloads"].as_array().cloned().ok_or_else(wrong)
}

/// One workload by coulis, verified and timed in a process of its own.
fn coulis(options: &Options, row: &Row) -> Result<Value, Failure> {
    let path = options.out.join("bench-workload.json");
    let text = json!({ "workloads": [row.question()] }).to_string();
    std::fs::write(&path, text).map_err(|source| Failure::File { path: path.clone(), source })?;
    let folder = options.bin_dir.clone().unwrap_or_else(|| super::target_folder().join("release"));
    let (program, file) = (folder.join("coulis"), path.to_string_lossy().into_owned());
    let program = program.canonicalize().unwrap_or(program).to_string_lossy().into_owned();
    let seconds = options.seconds.to_string();
    let most = u64::MAX.to_string();
    let words = ["bench", "--device", "cuda", "--suite", &file, "--format", "json", "--max-bytes", &most];
    let said = Step::program(&program, &words).words(&["--seconds".to_owned(), seconds]).said()?;
    let _ = std::fs::remove_file(&path);
    let list: Option<Value> = serde_json::from_str(&said).ok();
    let entry = list.as_ref().and_then(|list| list.get(0));
    let Some(entry) = entry else { return Err(Failure::Answer { program, said }) };
    Ok(match entry["skipped"].as_str() {
        Some(why) => json!({ "error": why.split_once(';').map_or(why, |(short, _)| short) }),
        None => entry.clone(),
    })
}

/// The line that says what is being timed, where someone looks on.
fn progress(name: &str, rows: &[Row], at: usize) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K[{:3}/{}] {name}: {}", at + 1, rows.len(), rows[at].id());
        let _ = std::io::stderr().flush();
    }
}

/// The line of a result.
fn done(name: &str, row: &Row) {
    let lead = if std::io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
    let said = match row.ms(name) {
        Some(ms) => format!("{ms:.4} ms"),
        None => format!("SKIP: {}", row.why_not(name).unwrap_or("no time")),
    };
    eprintln!("{lead}{name:8} {:24} {said}", row.id());
}
