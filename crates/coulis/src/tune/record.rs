//! What a search found, on the disk: one file a device and shape class, named by its content's key.
//!
//! A class is everything that a plan depends on with extents rounded down to powers of two and strides to 0, 1 and others.
//! A record names the strategy whose parameters it changes, and is passed over where the planner takes another one.

use std::fmt::Write as _;

use coulis_plan::Order;
use coulis_plan::tuned::{Changes, Knob};
use coulis_reducers::find_normalization;
use coulis_runtime::Cache;
use coulis_runtime::cache::Key;
use serde_json::{Map, Value, json};

use crate::bench::Workload;
use crate::device::Opened;
use crate::error::Error;
use crate::machine::tuned_dir;
use crate::normalization::Normalize;
use crate::reduce::Call;
use crate::request::Request;
use crate::statistic::Statistic;

/// Part of the key: raised when what a record says changes.
const VERSION: &str = "tuned plans 1";

/// A candidate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trial {
    /// What it changes; nothing in the planner's plan.
    pub(crate) changes: Changes,
    /// Median seconds; `None` where it is no plan, or wrong.
    pub(crate) seconds: Option<f64>,
    /// A short name of its trace.
    pub(crate) trace: Option<String>,
}

/// What is known of a class.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    /// The strategy whose parameters are changed.
    pub(crate) strategy: String,
    /// What calls are planned with.
    pub(crate) chosen: Changes,
    /// Everything that was tried.
    pub(crate) tried: Vec<Trial>,
    /// Seconds of the planner's plan and of the winner when they were timed in turn.
    pub(crate) seconds: Option<(f64, f64)>,
    /// Whether the search came to its end.
    pub(crate) done: bool,
}

impl Record {
    /// Of a search that begins.
    pub(crate) fn new(strategy: &str) -> Record {
        let strategy = strategy.to_owned();
        Record { strategy, chosen: Vec::new(), tried: Vec::new(), seconds: None, done: false }
    }

    /// The changes of the fastest candidate.
    pub(crate) fn fastest(&self) -> Option<Changes> {
        let timed = self.tried.iter().filter_map(|trial| Some((trial.seconds?, &trial.changes)));
        timed.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, changes)| changes.clone())
    }

    fn write(&self) -> String {
        let object = |changes: &Changes| -> Map<String, Value> {
            changes.iter().map(|(knob, value)| (knob.name().to_owned(), json!(value))).collect()
        };
        let trial = |trial: &Trial| json!({ "changes": object(&trial.changes), "seconds": trial.seconds, "trace": trial.trace });
        json!({
            "strategy": self.strategy,
            "chosen": object(&self.chosen),
            "tried": self.tried.iter().map(trial).collect::<Vec<_>>(),
            "seconds": self.seconds.map(|(untuned, tuned)| [untuned, tuned]),
            "done": self.done,
        })
        .to_string()
    }

    fn read(text: &str) -> Option<Record> {
        let data: Value = serde_json::from_str(text).ok()?;
        let changes = |value: &Value| -> Option<Changes> {
            let knobs = value.as_object()?.iter().map(|(name, v)| Some((Knob::named(name)?, v.as_i64()?)));
            let mut knobs = knobs.collect::<Option<Changes>>()?;
            knobs.sort_unstable();
            Some(knobs)
        };
        let trial = |value: &Value| -> Option<Trial> {
            let (seconds, trace) = (value["seconds"].as_f64(), value["trace"].as_str().map(str::to_owned));
            Some(Trial { changes: changes(&value["changes"])?, seconds, trace })
        };
        Some(Record {
            strategy: data["strategy"].as_str()?.to_owned(),
            chosen: changes(&data["chosen"])?,
            tried: data["tried"].as_array()?.iter().map(trial).collect::<Option<_>>()?,
            seconds: data["seconds"][0].as_f64().zip(data["seconds"][1].as_f64()),
            done: data["done"].as_bool()?,
        })
    }
}

impl Workload {
    /// The workload as a call, everything else by default.
    ///
    /// Errors: a normalization together with something else.
    pub(crate) fn request(&self) -> Result<Request, Error> {
        let ops: Vec<&str> = self.ops.iter().map(String::as_str).collect();
        let is_normalization = |op: &&str| find_normalization(op).is_ok();
        let mut request = match &ops[..] {
            [only] if is_normalization(only) => Request::normalizing(Normalize::named(only)?),
            _ => match ops.iter().find(|op| is_normalization(op)) {
                Some(op) => {
                    let message = format!(
                        "`{op}` stands alone: it gives a result for every element, and others one for a row"
                    );
                    return Err(Error::user("bench/op", message));
                }
                None => Request::new(&ops),
            },
        };
        request.axes = self.axes.clone();
        request.order = Order::OfInput;
        if let Some(dtype) = self.out_dtype {
            request.out_dtypes.insert(String::new(), dtype);
        }
        Ok(request)
    }
}

/// Changes in words: `chunks=264 unroll=8`.
pub(crate) fn in_words(changes: &[(Knob, i64)]) -> String {
    let words: Vec<String> = changes.iter().map(|(knob, value)| format!("{}={value}", knob.name())).collect();
    if words.is_empty() { "the planner's plan".to_owned() } else { words.join(" ") }
}

/// A short name of a text.
pub(crate) fn digest(text: &str) -> String {
    Key::of(&[text.as_bytes()]).hex()[..16].to_owned()
}

/// Device and shape class of a call.
pub(crate) fn class(call: &Call, device: &Opened) -> String {
    let spec = &call.spec;
    let mut class = format!("{}|{:?}|", device.identity(), device.target());
    for dim in &spec.problem.given_dims() {
        let role = if dim.is_reduced() { 'k' } else { 'i' };
        let size = dim.extent.max(1).ilog2();
        let strides = dim.strides.iter().map(|stride| if matches!(stride, 0 | 1) { *stride } else { 2 });
        let _ = write!(class, "{role}{size}{:?};", strides.collect::<Vec<i64>>());
    }
    // What is no one dimension has a stride of 0 there, and takes longer than one element for all.
    for part in spec.problem.parts.iter().flatten() {
        let _ = write!(class, "part{}:{};", part.every.max(1).ilog2(), part.extent.max(1).ilog2());
    }
    let ops: Vec<&str> = call.statistics.iter().map(Statistic::key).collect();
    let _ = write!(
        class,
        "{:?}|{ops:?}|{:?}|{:?}|{}",
        spec.inputs, call.reducer_request, spec.outputs, spec.mask
    );
    class
}

fn key(class: &str) -> Key {
    Key::of(&[VERSION.as_bytes(), class.as_bytes()])
}

/// What is known of a class.
pub(crate) fn load(class: &str) -> Option<Record> {
    let words = Cache::words_in(&tuned_dir()?, &key(class))?;
    Record::read(&String::from_utf8(words).ok()?)
}

/// Keeps what is known of a class, for calls that are prepared from now on; whether there is a folder for it.
pub(crate) fn store(class: &str, record: &Record) -> bool {
    crate::reduce::forget_prepared();
    let Some(dir) = tuned_dir() else { return false };
    let (cache, notice) = Cache::open(Some(&dir));
    cache.keep_words(&key(class), record.write().as_bytes());
    notice.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_a_strange_one_is_not() {
        let record = Record {
            strategy: "rows".to_owned(),
            chosen: vec![(Knob::Unroll, 2)],
            tried: vec![
                Trial { changes: Vec::new(), seconds: Some(0.25), trace: Some("ab".to_owned()) },
                Trial { changes: vec![(Knob::Unroll, 2)], seconds: Some(0.125), trace: None },
                Trial { changes: vec![(Knob::Unroll, 2), (Knob::Chunks, 4)], seconds: None, trace: None },
            ],
            seconds: Some((0.25, 0.125)),
            done: true,
        };
        let text = record.write();
        assert_eq!(Record::read(&text), Some(record.clone()));
        assert_eq!(record.fastest(), Some(vec![(Knob::Unroll, 2)]));
        for (from, to) in [("unroll", "lanes"), ("\"done\":true", "\"done\":1"), ("{", "")] {
            assert_eq!(Record::read(&text.replace(from, to)), None, "{from}");
        }
    }

    #[test]
    fn changes_are_told_in_words() {
        assert_eq!(in_words(&[]), "the planner's plan");
        assert_eq!(in_words(&[(Knob::Unroll, 8), (Knob::Chunks, 264)]), "unroll=8 chunks=264");
    }
}
