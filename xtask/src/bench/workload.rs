//! One workload: coulis and the peers in turns.
//!
//! In a turn the floor that memory sets, coulis and each peer are timed one right after the other, and who
//! comes first goes around: what the machine gives at that moment it gives to all, and a ratio is the median
//! of those of the turns.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use super::server::Server;
use super::turns::{Turn, Turns};
use super::{Options, Peers, target_folder};
use crate::step::Failure;

/// Fewest and most turns of a workload.
const N_TURNS: (usize, usize) = (11, 101);
/// A peer that takes longer (in ms) is timed in one turn of this number only.
const SLOW: (f64, usize) = (50.0, 5);
/// Names in a turn, in addition to those of the peers: the call, the sum alone of a call of several
/// statistics, a read of the input where it lies, and what memory takes to move as many bytes as the call.
pub const COULIS: &str = "coulis";
pub const SUM: &str = "sum";
pub const FLOOR: &str = "floor";
pub const MEMORY: &str = "memory";

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
    /// What coulis says of it.
    pub coulis: Value,
    /// What was timed.
    pub turns: Turns,
    /// Peers that cannot make the call, and why.
    pub refused: Vec<(String, String)>,
}

impl Outcome {
    /// A number of coulis' entry.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.coulis[name].as_f64()
    }

    /// How long a read of the input takes where it lies, over the time of the call.
    pub fn share_of_read(&self) -> Option<f64> {
        self.ratio(FLOOR)
    }

    /// How long memory takes to move as many bytes, over the time of the call.
    pub fn share(&self) -> Option<f64> {
        self.ratio(MEMORY)
    }

    /// The least milliseconds of a call.
    pub fn best(&self) -> Option<f64> {
        self.turns.best(COULIS)
    }

    /// Bytes a millisecond of the best call: the input once and every output once.
    pub fn rate(&self) -> Option<f64> {
        Some(self.number("bytes")? / self.best()?)
    }

    /// How many times as long as coulis someone takes; `None` who cannot make the call.
    pub fn ratio(&self, of: &str) -> Option<f64> {
        self.turns.ratio(of, COULIS)
    }

    /// How many times as long as the sum alone the call takes, where it holds a sum and more.
    pub fn ratio_to_sum(&self) -> Option<f64> {
        self.turns.ratio(COULIS, SUM)
    }
}

/// Times a workload.
pub fn measure(
    workload: &Workload,
    options: &Options,
    coulis: &Path,
    peers: &mut Peers,
) -> Result<Outcome, Failure> {
    let mut server = start(workload, options, coulis)?;
    let entry = server.next()?[0].take();
    peers.make(&entry["dtype"], &entry["shape"], &entry["axes"], &entry["ops"])?;
    let mut outcome =
        Outcome { id: workload.id().to_owned(), coulis: entry, turns: Turns::default(), refused: Vec::new() };
    let mut names: Vec<String> = peers.versions().iter().map(|(name, _)| name.clone()).collect();
    let mut start = Instant::now();
    for nth in 0.. {
        if nth >= N_TURNS.1 || nth >= N_TURNS.0 && start.elapsed().as_secs_f64() > options.seconds {
            break;
        }
        let mut turn = Turn::new();
        let is_due =
            |name: &str| nth % SLOW.1 == 0 || outcome.turns.best(name).is_some_and(|best| best < SLOW.0);
        let due: Vec<&String> = names.iter().filter(|name| is_due(name)).collect();
        let mut unable = Vec::new();
        for place in 0..=due.len() {
            // Threads of who was timed before may spin for longer than a short call is timed, on a core that
            // the next one needs.
            peers.rest();
            server.rest();
            match due.get((nth + place) % (due.len() + 1)) {
                None => of_coulis(&server.ask("")?, &mut turn),
                Some(&peer) => match peers.time(peer)? {
                    Ok(ms) => {
                        turn.insert(peer.clone(), ms);
                    }
                    Err(why) => unable.push((peer.clone(), why)),
                },
            }
        }
        names.retain(|name| unable.iter().all(|(peer, _)| peer != name));
        outcome.refused.extend(unable);
        if nth == 0 {
            // Peers made their calls ready.
            start = Instant::now();
        }
        outcome.turns.push(turn);
    }
    peers.drop_input()?;
    Ok(outcome)
}

/// What coulis says of a turn.
fn of_coulis(said: &Value, turn: &mut Turn) {
    let times = [
        (COULIS, &said["ms"][0]),
        (SUM, &said["ms"][1]),
        (FLOOR, &said["floor_ms"]),
        (MEMORY, &said["memory_ms"]),
    ];
    for (name, ms) in times {
        if let Some(ms) = ms.as_f64() {
            turn.insert(name.to_owned(), ms);
        }
    }
}

/// Starts coulis on a workload, and on the sum alone where that is a part of it.
fn start(workload: &Workload, options: &Options, coulis: &Path) -> Result<Server, Failure> {
    let mut list = vec![workload.0.clone()];
    let ops = workload.0["ops"].as_array().map_or(&[][..], Vec::as_slice);
    if ops.len() > 1 && ops.contains(&json!(SUM)) {
        list.push(workload.0.clone());
        list[1]["ops"] = json!([SUM]);
    }
    let path = target_folder().join("bench-workload.json");
    let text = json!({ "workloads": list }).to_string();
    std::fs::write(&path, text).map_err(|source| Failure::File { path: path.clone(), source })?;
    let mut command = Command::new(coulis);
    command.args(["bench", "--turns", "--max-bytes", &options.max_bytes.to_string(), "--suite"]).arg(path);
    Server::start(&mut command, "coulis bench")
}
