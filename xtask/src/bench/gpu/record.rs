//! What was measured on a GPU so far, as JSON on the disk: one object a workload, with coulis and each library in it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::step::Failure;

/// What stands before the reason where a library has no version.
const SKIP: &str = "SKIP: ";

/// The results of a GPU.
pub struct Record {
    path: PathBuf,
    device: String,
    driver: String,
    /// Number of this run over those that the file came from.
    run: u64,
    versions: Map<String, Value>,
    rows: Vec<Row>,
}

/// One workload.
pub struct Row {
    question: Value,
    results: Map<String, Value>,
}

impl Row {
    /// Its name.
    pub fn id(&self) -> &str {
        self.question["id"].as_str().unwrap_or_default()
    }

    /// The workload as the suite has it.
    pub fn question(&self) -> &Value {
        &self.question
    }

    /// Whether nothing is known of a library, not even why it cannot make the call.
    pub fn lacks(&self, name: &str) -> bool {
        !self.results.contains_key(name)
    }

    /// Median milliseconds of a library.
    pub fn ms(&self, name: &str) -> Option<f64> {
        self.number(name, "ms")
    }

    /// Why there is no time of a library that was asked.
    pub fn why_not(&self, name: &str) -> Option<&str> {
        let result = self.results.get(name)?;
        result["none"].as_str().or_else(|| result["error"].as_str())
    }

    /// A number of a result.
    pub fn number(&self, name: &str, member: &str) -> Option<f64> {
        self.results.get(name)?[member].as_f64()
    }

    /// A member of a result.
    pub fn member(&self, name: &str, member: &str) -> &Value {
        self.results.get(name).map_or(&Value::Null, |result| &result[member])
    }
}

impl Record {
    /// The record of this GPU in a folder; an empty one where there is none, or where the old one is thrown away.
    pub fn open(folder: &Path, device: &str, driver: &str, fresh: bool) -> Result<Record, Failure> {
        let path = folder.join(format!("gpu-{}.json", slug(device)));
        let mut record = if path.exists() && !fresh {
            Record::read(&path)?
        } else {
            let (versions, rows) = (Map::new(), Vec::new());
            Record { path, device: device.to_owned(), driver: driver.to_owned(), run: 0, versions, rows }
        };
        record.run += 1;
        Ok(record)
    }

    /// The record of a file.
    pub fn read(path: &Path) -> Result<Record, Failure> {
        let failed = |source| Failure::File { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let wrong = || Failure::Answer { program: path.display().to_string(), said: "no record".to_owned() };
        let data: Value = serde_json::from_str(&text).map_err(|_| wrong())?;
        let text = |member: &str| data[member].as_str().unwrap_or_default().to_owned();
        let row = |entry: &Value| -> Option<Row> {
            let results = entry["results"].as_object()?.clone();
            Some(Row { question: entry["workload"].clone(), results })
        };
        let rows = data["rows"].as_array().ok_or_else(wrong)?.iter().map(row);
        Ok(Record {
            path: path.to_owned(),
            device: text("device"),
            driver: text("driver"),
            run: data["runs"].as_u64().unwrap_or(0),
            versions: data["versions"].as_object().cloned().unwrap_or_default(),
            rows: rows.collect::<Option<_>>().ok_or_else(wrong)?,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Name of the GPU, and the version of its driver.
    pub fn device(&self) -> (&str, &str) {
        (&self.device, &self.driver)
    }

    /// How many runs of the benchmark the results come from.
    pub fn n_runs(&self) -> u64 {
        self.run
    }

    /// Libraries that were asked, and their versions.
    pub fn versions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.said().filter(|(_, version)| !version.starts_with(SKIP))
    }

    /// Libraries that were skipped, and why.
    pub fn skipped(&self) -> impl Iterator<Item = (&str, &str)> {
        self.said().filter_map(|(name, version)| Some((name, version.strip_prefix(SKIP)?)))
    }

    fn said(&self) -> impl Iterator<Item = (&str, &str)> {
        self.versions.iter().map(|(name, version)| (name.as_str(), version.as_str().unwrap_or_default()))
    }

    /// The workloads.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Adds a workload that is not yet there.
    pub fn add(&mut self, workload: &Value) {
        if self.rows.iter().all(|row| row.id() != workload["id"].as_str().unwrap_or_default()) {
            self.rows.push(Row { question: workload.clone(), results: Map::new() });
        }
    }

    /// Says why a library is not asked.
    pub fn skip(&mut self, name: &str, why: &str) {
        self.set_version(name, &format!("{SKIP}{why}"));
    }

    /// Says which library it is.
    pub fn set_version(&mut self, name: &str, version: &str) {
        self.versions.insert(name.to_owned(), json!(version));
    }

    /// Adds a result and writes the file.
    pub fn put(&mut self, at: usize, name: &str, mut result: Value) -> Result<(), Failure> {
        result["run"] = json!(self.run);
        self.rows[at].results.insert(name.to_owned(), result);
        self.write()
    }

    fn write(&self) -> Result<(), Failure> {
        let row = |row: &Row| json!({ "workload": row.question, "results": row.results });
        let all = json!({
            "device": self.device,
            "driver": self.driver,
            "runs": self.run,
            "versions": self.versions,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
        });
        let failed = |source| Failure::File { path: self.path.clone(), source };
        let made = self.path.with_extension("json.new");
        std::fs::write(&made, format!("{all:#}\n")).map_err(failed)?;
        std::fs::rename(&made, &self.path).map_err(failed)
    }
}

/// A name as part of a file name.
fn slug(name: &str) -> String {
    let dashed: String =
        name.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    dashed.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A workload with milliseconds of coulis, of the floor and of libraries.
    type Times<'a> = (&'a str, f64, f64, &'a [(&'a str, f64)]);

    /// A record of workloads; a bare read takes a hundredth more than the floor, calls that are queued half as long.
    pub fn record(rows: &[Times<'_>]) -> Record {
        let row = |(id, coulis, floor, peers): &Times<'_>| {
            let mut results = Map::new();
            let own = json!({ "ms": coulis, "floor_ms": floor, "read_ms": 1.01 * floor, "queued_ms": coulis / 2.0, "bytes": 1e9, "plan": "p",
                "verified": true });
            results.insert("coulis".to_owned(), own);
            for (name, ms) in *peers {
                results.insert((*name).to_owned(), json!({ "ms": ms }));
            }
            let question = json!({ "id": id, "dtype": "float32", "shape": [4], "axes": [0], "ops": ["sum"] });
            Row { question, results }
        };
        Record {
            path: PathBuf::from("gpu-x.json"),
            device: "X".to_owned(),
            driver: "1".to_owned(),
            run: 1,
            versions: Map::new(),
            rows: rows.iter().map(row).collect(),
        }
    }

    #[test]
    fn a_run_goes_on_where_the_last_one_stopped() {
        let folder = std::env::temp_dir().join(format!("coulis-record-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut first = Record::open(&folder, "NVIDIA H100 80GB HBM3", "580", true).unwrap();
        first.add(&json!({ "id": "a" }));
        first.add(&json!({ "id": "a" }));
        first.put(0, "torch", json!({ "ms": 1.5 })).unwrap();
        first.put(0, "jax", json!({ "none": "no such call" })).unwrap();
        assert!(first.path().ends_with("gpu-nvidia-h100-80gb-hbm3.json"));
        let second = Record::open(&folder, "NVIDIA H100 80GB HBM3", "580", false).unwrap();
        let fresh = Record::open(&folder, "NVIDIA H100 80GB HBM3", "580", true).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((second.n_runs(), second.rows().len(), fresh.rows().len()), (2, 1, 0));
        let row = &second.rows()[0];
        assert_eq!((row.ms("torch"), row.number("torch", "run")), (Some(1.5), Some(1.0)));
        assert!(!row.lacks("jax") && row.lacks("coulis"));
        assert_eq!(row.why_not("jax"), Some("no such call"));
    }
}
