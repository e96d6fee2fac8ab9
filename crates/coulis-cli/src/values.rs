//! Values of flags: lists of numbers, dtypes, and `op=value` lists. Each reader says what it found and what is legal.

use std::collections::BTreeMap;

use coulis::{DType, DeviceChoice};

/// A value that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// An entry of a list of integers.
    #[error("`{text}` is not an integer")]
    Integer {
        /// The entry.
        text: String,
    },
    /// An entry of a list of names.
    #[error("an empty name in the list `{list}`")]
    EmptyName {
        /// The list.
        list: String,
    },
    /// A real number.
    #[error("`{text}` is not a number")]
    Number {
        /// The text.
        text: String,
    },
    /// A number that no float64 is.
    #[error("`{text}` is beyond the largest finite number, {:e}; an infinity is written inf", f64::MAX)]
    Beyond {
        /// The text.
        text: String,
    },
    /// A dtype.
    #[error("{said}")]
    DType {
        /// What the reader of dtypes says.
        said: String,
    },
    /// Two entries for one op.
    #[error("{} is given twice", if op.is_empty() { "the default".to_owned() } else { format!("`{op}`") })]
    Twice {
        /// The op, empty for the default.
        op: String,
    },
    /// A count.
    #[error("a count is an integer of at least 1, got `{text}`")]
    Count {
        /// The text.
        text: String,
    },
    /// A name without a value.
    #[error("`{text}` is to be a name and a value, as eps=1e-6")]
    Setting {
        /// The text.
        text: String,
    },
    /// A device.
    #[error("unknown device `{text}`; legal are auto, cpu, cuda and cuda:N")]
    Device {
        /// The text.
        text: String,
    },
}

/// The names of all statistics, for the help of `--ops`.
pub fn statistics() -> String {
    let names: Vec<&str> = coulis::CATALOGUE.iter().map(|entry| entry.name).collect();
    format!("Statistics: {}", names.join(", "))
}

/// Comma-separated integers, as for axes. The empty text is the empty list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Integers(pub Vec<i64>);

/// Reads `0,-1`.
pub fn integers(text: &str) -> Result<Integers, ValueError> {
    if text.trim().is_empty() {
        return Ok(Integers(Vec::new()));
    }
    let one =
        |entry: &str| entry.trim().parse().map_err(|_| ValueError::Integer { text: entry.trim().to_owned() });
    Ok(Integers(text.split(',').map(one).collect::<Result<_, _>>()?))
}

/// Comma-separated names, as for ops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

/// Reads `sum,mean`.
pub fn names(text: &str) -> Result<Names, ValueError> {
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    if names.iter().any(String::is_empty) {
        return Err(ValueError::EmptyName { list: text.to_owned() });
    }
    Ok(Names(names))
}

/// A value for each op; `""` is the default of all.
#[derive(Clone, Debug, PartialEq)]
pub struct PerOp<T>(pub BTreeMap<String, T>);

impl<T> Default for PerOp<T> {
    fn default() -> Self {
        PerOp(BTreeMap::new())
    }
}

fn per_op<T>(text: &str, read: impl Fn(&str) -> Result<T, ValueError>) -> Result<PerOp<T>, ValueError> {
    let mut values = BTreeMap::new();
    for entry in text.split(',') {
        let (op, value) = entry.split_once('=').unwrap_or(("", entry));
        let op = op.trim().to_owned();
        if values.insert(op.clone(), read(value.trim())?).is_some() {
            return Err(ValueError::Twice { op });
        }
    }
    Ok(PerOp(values))
}

/// Reads `f32` or `sum=f64,mean=f32`.
pub fn dtypes(text: &str) -> Result<PerOp<DType>, ValueError> {
    per_op(text, dtype)
}

/// Reads `0.5`, `inf` or `nan`; not what only rounding makes infinite.
pub fn number(text: &str) -> Result<f64, ValueError> {
    let value: f64 = text.parse().map_err(|_| ValueError::Number { text: text.to_owned() })?;
    let has_digits = text.contains(|c: char| c.is_ascii_digit());
    if value.is_infinite() && has_digits {
        return Err(ValueError::Beyond { text: text.to_owned() });
    }
    Ok(value)
}

/// Reads `0.5` or `sum=2,mean=0.5`.
pub fn factors(text: &str) -> Result<PerOp<f64>, ValueError> {
    per_op(text, number)
}

/// A name and what is given for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name.
    pub name: String,
    /// The text after the first `=`.
    pub value: String,
}

/// Reads `eps=1e-6` or `weight=w.npy`.
pub fn setting(text: &str) -> Result<Setting, ValueError> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.is_empty() => {
            Ok(Setting { name: name.trim().to_owned(), value: value.to_owned() })
        }
        Some(_) | None => Err(ValueError::Setting { text: text.to_owned() }),
    }
}

/// Reads a dtype in either spelling.
pub fn dtype(text: &str) -> Result<DType, ValueError> {
    text.parse::<DType>().map_err(|error| ValueError::DType { said: error.to_string() })
}

/// Reads a count of at least 1, as of threads.
pub fn count(text: &str) -> Result<usize, ValueError> {
    text.parse().ok().filter(|&count| count > 0).ok_or_else(|| ValueError::Count { text: text.to_owned() })
}

/// Reads `auto`, `cpu`, `cuda` or `cuda:N`: there is one CPU, which has no number, and nothing that takes these words is simulated.
pub fn device(text: &str) -> Result<DeviceChoice, ValueError> {
    let is_refused = |found: &DeviceChoice| text == "cpu:0" || matches!(found, DeviceChoice::Sim { .. });
    let found = DeviceChoice::named(text).filter(|found| !is_refused(found));
    found.ok_or_else(|| ValueError::Device { text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_integers_take_negative_ones_and_blanks() {
        assert_eq!(integers("0, -1"), Ok(Integers(vec![0, -1])));
        assert_eq!(integers(""), Ok(Integers(vec![])));
        assert_eq!(integers("1,x").unwrap_err().to_string(), "`x` is not an integer");
        assert_eq!(integers("1,").unwrap_err().to_string(), "`` is not an integer");
    }

    #[test]
    fn names_are_not_empty() {
        assert_eq!(names("sum, mean"), Ok(Names(vec!["sum".to_owned(), "mean".to_owned()])));
        assert_eq!(names("sum,,mean").unwrap_err().to_string(), "an empty name in the list `sum,,mean`");
    }

    #[test]
    fn values_per_op_have_at_most_one_default() {
        let both = BTreeMap::from([(String::new(), DType::F64), ("sum".to_owned(), DType::F32)]);
        assert_eq!(dtypes("float64,sum=f32"), Ok(PerOp(both)));
        assert_eq!(factors("1,2").unwrap_err().to_string(), "the default is given twice");
        assert_eq!(factors("sum=1,sum=2").unwrap_err().to_string(), "`sum` is given twice");
        assert_eq!(factors("sum=x").unwrap_err().to_string(), "`x` is not a number");
    }

    #[test]
    fn a_number_is_infinite_only_where_that_is_what_it_says() {
        assert_eq!(number("-inf"), Ok(f64::NEG_INFINITY));
        assert_eq!(number("Infinity"), Ok(f64::INFINITY));
        assert_eq!(number("1.7976931348623157e308"), Ok(f64::MAX));
        for text in ["1e400", "-1e309", "1.8e308"] {
            assert_eq!(number(text), Err(ValueError::Beyond { text: text.to_owned() }));
            assert_eq!(factors(&format!("sum={text}")), Err(ValueError::Beyond { text: text.to_owned() }));
        }
    }

    #[test]
    fn a_count_of_one_is_legal_and_none_is_not() {
        assert_eq!(count("1"), Ok(1));
        let said = count("0").unwrap_err().to_string();
        assert_eq!(said, "a count is an integer of at least 1, got `0`");
    }

    #[test]
    fn devices_are_named_with_or_without_a_number() {
        assert_eq!(device("cuda:3"), Ok(DeviceChoice::Cuda(3)));
        assert_eq!(device("cpu"), Ok(DeviceChoice::Cpu));
        for wrong in ["gpu", "cuda:", "cuda:-1", "cpu:0", "sim", ""] {
            let said = device(wrong).unwrap_err().to_string();
            assert_eq!(said, format!("unknown device `{wrong}`; legal are auto, cpu, cuda and cuda:N"));
        }
    }
}
