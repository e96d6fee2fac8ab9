//! What a first call costs: two processes, the first with an empty folder of compiled kernels.

use std::path::Path;

use serde_json::Value;

use super::target_folder;
use crate::step::{Failure, Step};

/// What `coulis bench --latency` says without and with a compiled kernel on the disk.
pub struct Latency {
    /// With an empty folder.
    pub cold: Value,
    /// With the folder that the first process left.
    pub disk: Value,
}

/// Runs both; each is the best of three, as other processes disturb them most.
pub fn measure(coulis: &Path) -> Result<Latency, Failure> {
    let folder = target_folder().join("bench-cache");
    let mut best: Option<Latency> = None;
    for _ in 0..3 {
        match std::fs::remove_dir_all(&folder) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::File { path: folder, source });
            }
            _ => {}
        }
        let found = Latency { cold: run(coulis, &folder)?, disk: run(coulis, &folder)? };
        best = Some(match best {
            None => found,
            Some(old) => Latency { cold: faster(old.cold, found.cold), disk: faster(old.disk, found.disk) },
        });
    }
    best.ok_or(Failure::Metadata { missing: "latency" })
}

fn faster(a: Value, b: Value) -> Value {
    if b["first_call_ms"].as_f64() < a["first_call_ms"].as_f64() { b } else { a }
}

fn run(coulis: &Path, folder: &Path) -> Result<Value, Failure> {
    let program = coulis.to_string_lossy().into_owned();
    let step = Step::program(&program, &["bench", "--latency", "--format", "json"]);
    let said = step.variable("COULIS_CACHE_DIR", &folder.to_string_lossy()).output()?;
    serde_json::from_str(&said).map_err(|_| Failure::Answer { program, said })
}
