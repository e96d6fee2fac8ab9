//! One workload: coulis and the peers in turn.

use std::path::Path;

use serde_json::{Value, json};

use super::peers::Timed;
use super::{Options, Peers, target_folder};
use crate::step::{Failure, Step};

/// A call slower than this (in ms) is timed in the first turn only.
const SLOW: f64 = 250.0;

/// A workload as the file has it.
pub struct Workload(Value);

/// Reads the list of a file.
pub fn list(text: &str) -> Result<Vec<Workload>, Failure> {
    let wrong = || Failure::Metadata { missing: "workloads" };
    let suite: Value = serde_json::from_str(text).map_err(|_| wrong())?;
    let list = suite["workloads"].as_array().ok_or_else(wrong)?;
    Ok(list.iter().cloned().map(Workload).collect())
}

impl Workload {
    /// Its name.
    pub fn id(&self) -> &str {
        self.0["id"].as_str().unwrap_or_default()
    }
}

/// Times of a workload.
pub struct Outcome {
    /// Its name.
    pub id: String,
    /// What coulis says of its first turn, with the best times of all turns; or `skipped` and why.
    pub coulis: Value,
    /// Best and median milliseconds of each peer.
    pub peers: Vec<(String, Timed)>,
}

impl Outcome {
    /// A number of coulis' entry.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.coulis[name].as_f64()
    }

    /// How long a read of the input takes where it lies, over the time of the call.
    pub fn share_of_read(&self) -> Option<f64> {
        Some(self.number("floor_ms")? / self.number("best_ms")?)
    }

    /// Bytes of the input.
    pub fn input_bytes(&self) -> Option<f64> {
        let lengths = self.coulis["shape"].as_array()?.iter().map(Value::as_f64);
        let n = lengths.product::<Option<f64>>()?;
        let bits = self.coulis["dtype"].as_str()?.trim_start_matches(|c: char| !c.is_ascii_digit());
        Some(n * bits.parse::<f64>().ok()? / 8.0)
    }

    /// Bytes a millisecond: the input once and every output once.
    pub fn rate(&self) -> Option<f64> {
        Some(self.number("bytes")? / self.number("best_ms")?)
    }

    /// Bytes a millisecond at which the input was read alone, where it lies.
    pub fn read_rate(&self) -> Option<f64> {
        Some(self.input_bytes()? / self.number("floor_ms")?)
    }

    /// How many times as fast as a peer; `None` where that cannot make the call.
    pub fn ratio(&self, peer: &str) -> Option<f64> {
        let (_, timed) = self.peers.iter().find(|(name, _)| name == peer)?;
        Some(timed.as_ref().ok()?.0 / self.number("best_ms")?)
    }
}

/// Times a workload.
pub fn measure(
    workload: &Workload,
    options: &Options,
    coulis: &Path,
    peers: &mut Peers,
) -> Result<Outcome, Failure> {
    let id = workload.id().to_owned();
    let mut first = run(workload, options, coulis, "1")?;
    if first["skipped"].is_string() {
        return Ok(Outcome { id, coulis: first, peers: Vec::new() });
    }
    peers.make(&first["dtype"], &first["shape"], &first["axes"], &first["ops"])?;
    let names: Vec<String> = peers.versions().iter().map(|(name, _)| name.clone()).collect();
    let mut timed = Vec::new();
    for name in names {
        let time = peers.time(&name, options.seconds)?;
        timed.push((name, time));
    }
    let second = run(workload, options, coulis, "0")?;
    for name in ["ms", "best_ms", "floor_ms"] {
        let values = [first[name].as_f64(), second[name].as_f64()];
        first[name] = json!(values.into_iter().flatten().reduce(f64::min));
    }
    for (name, time) in &mut timed {
        if let Ok((best, median)) = time
            && *best < SLOW
            && let Ok(again) = peers.time(name, options.seconds)?
        {
            (*best, *median) = (best.min(again.0), median.min(again.1));
        }
    }
    peers.drop_input()?;
    Ok(Outcome { id, coulis: first, peers: timed })
}

/// One turn of coulis: a process of its own.
fn run(workload: &Workload, options: &Options, coulis: &Path, verify: &str) -> Result<Value, Failure> {
    let path = target_folder().join("bench-workload.json");
    let text = json!({ "workloads": [workload.0] }).to_string();
    std::fs::write(&path, text).map_err(|source| Failure::File { path: path.clone(), source })?;
    let program = coulis.to_string_lossy().into_owned();
    let (seconds, max_bytes) = (options.seconds.to_string(), options.max_bytes.to_string());
    let file = path.to_string_lossy().into_owned();
    let words = [
        "bench",
        "--suite",
        &file,
        "--format",
        "json",
        "-v",
        verify,
        "--seconds",
        &seconds,
        "--max-bytes",
        &max_bytes,
    ];
    let said = Step::program(&program, &words).output()?;
    let list: Value = serde_json::from_str(&said).map_err(|_| Failure::Answer { program, said })?;
    Ok(list[0].clone())
}
