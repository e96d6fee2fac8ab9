//! What is measured: an element type, a shape, reduced axes and statistics; alone or as a suite in JSON.

use coulis_ir::DType;
use coulis_ir::args::{ArrayInfo, compact_strides};
use coulis_ir::dtype::UnknownDType;
use coulis_plan::tuned::Knob;
use serde_json::Value;

/// One call to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Name in the report.
    pub id: String,
    /// Element type of the input.
    pub dtype: DType,
    /// Shape of the input.
    pub shape: Vec<i64>,
    /// Strides of the input in elements, as many as the shape has lengths; `None` is row-major.
    pub strides: Option<Vec<i64>>,
    /// Elements of the memory that lie before the input's lowest one, as of a view that begins within it.
    pub start: i64,
    /// Reduced axes; `None` is all.
    pub axes: Option<Vec<i64>>,
    /// Statistics of one call, or one normalization by itself.
    pub ops: Vec<String>,
    /// Type of all results; `None` leaves the statistics their own.
    pub out_dtype: Option<DType>,
    /// The strategy of its plan and what is changed of that; `None` leaves both to the planner.
    pub plan: Option<(String, Vec<(Knob, i64)>)>,
}

impl Workload {
    /// A row-major input, statistics of their own types, the planner's plan.
    pub fn new(
        id: impl Into<String>,
        dtype: DType,
        shape: Vec<i64>,
        axes: Option<Vec<i64>>,
        ops: Vec<String>,
    ) -> Workload {
        Workload {
            id: id.into(),
            dtype,
            shape,
            strides: None,
            start: 0,
            axes,
            ops,
            out_dtype: None,
            plan: None,
        }
    }

    /// Bytes of the input; saturates where no machine could hold them.
    pub fn n_bytes(&self) -> u64 {
        let width = self.dtype.bytes() as u64;
        self.shape.iter().fold(width, |n, &extent| n.saturating_mul(extent.max(0) as u64))
    }

    /// The input without its data.
    pub fn array_info(&self) -> ArrayInfo {
        let strides = self.strides.clone().unwrap_or_else(|| compact_strides(&self.shape));
        ArrayInfo { dtype: self.dtype, shape: self.shape.clone(), strides }
    }

    /// The same with the first axis halved until the input has at most `max_bytes` (or the axis has length 1).
    pub fn halved(mut self, max_bytes: u64) -> Workload {
        while self.n_bytes() > max_bytes && self.shape.first().is_some_and(|&first| first > 1) {
            self.shape[0] /= 2;
        }
        self
    }
}

/// A suite that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// No JSON.
    #[error("the suite is no JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// No list of workloads.
    #[error("the suite is to be an object with a list `workloads`, or a list of workloads")]
    NoList,
    /// A list of nothing.
    #[error("the suite has no workloads; legal is a list of at least one")]
    Empty,
    /// A member of a workload that is missing or of another kind.
    #[error("workload {at}{}: `{member}` is to be {wanted}, got {found}", named(id))]
    Member {
        /// Place in the list, from 0.
        at: usize,
        /// Its id, empty where that is what is wrong.
        id: String,
        /// The member.
        member: &'static str,
        /// What it is to be.
        wanted: &'static str,
        /// What stands there, as JSON.
        found: String,
    },
    /// A member that no workload has.
    #[error("workload {at} (`{id}`): there is no member `{member}`; members are {}", MEMBERS.join(", "))]
    Unknown {
        /// Place in the list, from 0.
        at: usize,
        /// Its id.
        id: String,
        /// The member.
        member: String,
    },
    /// An element type that is none.
    #[error("workload {at} (`{id}`): {source}")]
    DType {
        /// Place in the list, from 0.
        at: usize,
        /// Its id.
        id: String,
        /// What is wrong.
        source: UnknownDType,
    },
}

fn named(id: &str) -> String {
    if id.is_empty() { String::new() } else { format!(" (`{id}`)") }
}

/// What a workload may say.
const MEMBERS: [&str; 9] = ["id", "dtype", "shape", "strides", "start", "axes", "ops", "out_dtype", "plan"];

/// Reads a suite: `{"workloads": [{"id", "dtype", "shape", "strides"?, "start"?, "axes", "ops", "out_dtype"?, "plan"?}]}`,
/// or the list alone. A plan is an object with the name of a `strategy` and a value for each parameter that is not the planner's.
pub fn parse_suite(text: &str) -> Result<Vec<Workload>, SuiteError> {
    let suite: Value = serde_json::from_str(text)?;
    let list = suite.get("workloads").unwrap_or(&suite).as_array().ok_or(SuiteError::NoList)?;
    if list.is_empty() {
        return Err(SuiteError::Empty);
    }
    list.iter().enumerate().map(|(at, entry)| workload(at, entry)).collect()
}

fn workload(at: usize, entry: &Value) -> Result<Workload, SuiteError> {
    let text = Value::as_str;
    let id = entry.get("id").and_then(text).unwrap_or_default().to_owned();
    let wrong = |member: &'static str, wanted: &'static str| SuiteError::Member {
        at,
        id: id.clone(),
        member,
        wanted,
        found: entry.get(member).map_or_else(|| "nothing".to_owned(), Value::to_string),
    };
    let member = |name: &str| entry.get(name).filter(|value| !value.is_null());
    let integers = |name: &str| -> Option<Vec<i64>> {
        member(name)?.as_array()?.iter().map(Value::as_i64).collect::<Option<Vec<i64>>>()
    };
    let dtype = |name: &str| {
        let source = |source| SuiteError::DType { at, id: id.clone(), source };
        member(name).and_then(text).map(|name| name.parse::<DType>().map_err(source)).transpose()
    };
    if id.is_empty() {
        return Err(wrong("id", "a name"));
    }
    let shape = integers("shape").filter(|shape| shape.iter().all(|&extent| extent >= 0));
    let axes = match member("axes") {
        None => None,
        Some(_) => Some(integers("axes").ok_or_else(|| wrong("axes", "a list of integers"))?),
    };
    let ops = member("ops")
        .and_then(Value::as_array)
        .and_then(|ops| ops.iter().map(|op| op.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>());
    let workload = Workload {
        dtype: dtype("dtype")?.ok_or_else(|| wrong("dtype", "the name of an element type"))?,
        strides: match member("strides") {
            None => None,
            Some(_) => Some(
                integers("strides")
                    .filter(|strides| shape.as_ref().is_none_or(|shape| shape.len() == strides.len()))
                    .ok_or_else(|| wrong("strides", "a list of as many integers as the shape has lengths"))?,
            ),
        },
        start: match member("start") {
            None => 0,
            Some(start) => start
                .as_i64()
                .filter(|&start| start >= 0)
                .ok_or_else(|| wrong("start", "a number of elements of at least 0"))?,
        },
        shape: shape.ok_or_else(|| wrong("shape", "a list of lengths of at least 0"))?,
        axes,
        ops: ops.filter(|ops| !ops.is_empty()).ok_or_else(|| wrong("ops", "a list of statistics"))?,
        out_dtype: dtype("out_dtype")?,
        plan: match member("plan") {
            None => None,
            Some(found) => Some(plan(found).ok_or_else(|| wrong("plan", "a `strategy` and its parameters"))?),
        },
        id: id.clone(),
    };
    let mut members = entry.as_object().into_iter().flat_map(|members| members.keys());
    match members.find(|name| !MEMBERS.contains(&name.as_str())) {
        Some(member) => Err(SuiteError::Unknown { at, id, member: member.clone() }),
        None => Ok(workload),
    }
}

fn plan(value: &Value) -> Option<(String, Vec<(Knob, i64)>)> {
    let members = value.as_object()?;
    let strategy = members.get("strategy")?.as_str()?.to_owned();
    let knobs = members.iter().filter(|(name, _)| *name != "strategy");
    let changes = knobs.map(|(name, value)| Some((Knob::named(name)?, value.as_i64()?)));
    Some((strategy, changes.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str =
        r#"{"workloads": [{"id": "a", "dtype": "f16", "shape": [600, 28], "axes": [1], "ops": ["sum"]}]}"#;

    #[test]
    fn a_suite_is_read_with_or_without_its_wrapper() {
        let list = parse_suite(ONE).unwrap();
        assert_eq!(list.len(), 1);
        assert_eq!((list[0].dtype, &list[0].shape[..]), (DType::F16, &[600, 28][..]));
        let alone = &ONE[14..ONE.len() - 1];
        assert_eq!(parse_suite(alone).unwrap(), list);
    }

    #[test]
    fn a_workload_may_say_its_plan() {
        let with = ONE.replace("[\"sum\"]", "[\"sum\"], \"plan\": {\"strategy\": \"rows\", \"unroll\": 2}");
        let found = parse_suite(&with).unwrap().remove(0).plan;
        assert_eq!(found, Some(("rows".to_owned(), vec![(Knob::Unroll, 2)])));
    }

    #[test]
    fn a_workload_may_be_a_view() {
        let with = ONE.replace("[600, 28]", "[600, 28], \"strides\": [29, -1], \"start\": 2");
        let found = parse_suite(&with).unwrap().remove(0);
        assert_eq!((found.strides.as_deref(), found.start), (Some(&[29, -1][..]), 2));
        let input = found.input(crate::bench::Init::Ones).unwrap();
        assert_eq!(input.storage().0.len(), 2 * (2 + 599 * 29 + 27 + 1));
        assert_eq!(input.storage().1, 2 * (2 + 27));
        let row_major = parse_suite(&ONE.replace("[600, 28]", "[600, 28], \"start\": 1")).unwrap().remove(0);
        assert_eq!(row_major.input(crate::bench::Init::Ones).unwrap().storage().1, 2);
        let broadcast = Workload { strides: Some(vec![0, i64::MIN]), ..found };
        assert!(broadcast.input(crate::bench::Init::Ones).is_err());
    }

    #[test]
    fn a_wrong_suite_says_which_workload_and_what_is_legal() {
        for (from, to, want) in [
            ("\"a\"", "7", "workload 0: `id` is to be a name, got 7"),
            (
                "[600, 28]",
                "[600, -1]",
                "workload 0 (`a`): `shape` is to be a list of lengths of at least 0, got [600,-1]",
            ),
            (
                "[600, 28]",
                "[600, 28], \"strides\": [1]",
                "workload 0 (`a`): `strides` is to be a list of as many integers as the shape has lengths, got [1]",
            ),
            (
                "[600, 28]",
                "[600, 28], \"start\": -1",
                "workload 0 (`a`): `start` is to be a number of elements of at least 0, got -1",
            ),
            ("[1]", "1", "workload 0 (`a`): `axes` is to be a list of integers, got 1"),
            ("[\"sum\"]", "[]", "workload 0 (`a`): `ops` is to be a list of statistics, got []"),
            (
                "[\"sum\"]",
                "[\"sum\"], \"plan\": {\"strategy\": \"rows\", \"speed\": 2}",
                "workload 0 (`a`): `plan` is to be a `strategy` and its parameters, got {\"speed\":2,\"strategy\":\"rows\"}",
            ),
            (
                "\"dtype\"",
                "\"type\"",
                "workload 0 (`a`): `dtype` is to be the name of an element type, got nothing",
            ),
            (
                "\"axes\"",
                "\"axis\"",
                "workload 0 (`a`): there is no member `axis`; members are id, dtype, shape, strides, start, axes, ops, \
                 out_dtype, plan",
            ),
        ] {
            assert_eq!(parse_suite(&ONE.replace(from, to)).unwrap_err().to_string(), want);
        }
        let unknown = parse_suite(&ONE.replace("f16", "f17")).unwrap_err().to_string();
        assert!(unknown.starts_with("workload 0 (`a`): unknown dtype `f17`"), "{unknown}");
        assert!(matches!(parse_suite("{}"), Err(SuiteError::NoList)));
        assert!(matches!(parse_suite("[]"), Err(SuiteError::Empty)));
        assert!(matches!(parse_suite("{"), Err(SuiteError::Json(_))));
    }

    #[test]
    fn the_first_axis_is_halved_until_the_input_fits_or_the_axis_is_one_long() {
        let of = |shape: &[i64]| Workload { shape: shape.to_vec(), ..parse_suite(ONE).unwrap().remove(0) };
        assert_eq!(of(&[600, 28]).halved(33_600).shape, [600, 28]);
        assert_eq!(of(&[600, 28]).halved(33_599).shape, [300, 28]);
        assert_eq!(of(&[5, 1000]).halved(1).shape, [1, 1000]);
        assert_eq!(of(&[]).halved(1).shape, [0i64; 0]);
    }
}
