//! The exact results of normalizations: what a row's elements become, in `float64`, without the normalization's own
//! expressions.

use super::ExactSum;

/// A row as a normalization's exact function sees it.
#[derive(Clone, Debug)]
pub struct MappedRow<'a> {
    /// The elements, in order of position.
    pub elements: &'a [f64],
    /// Those that are folded: all of them, without NaN where it is ignored.
    pub folded: Vec<f64>,
    /// What var and std take off the count.
    pub ddof: f64,
    pub(crate) parameters: Vec<(&'static str, f64)>,
    pub(crate) beside: &'a [(&'a str, Vec<f64>)],
}

/// The exact results of a row, one an element.
pub type ExactMapFn = fn(&MappedRow) -> Vec<f64>;

impl MappedRow<'_> {
    /// The number of that name, which the entry declares.
    pub(crate) fn parameter(&self, name: &str) -> f64 {
        self.parameters.iter().find(|(n, _)| *n == name).map_or(f64::NAN, |(_, value)| *value)
    }

    /// The value of an array for the element at a position; `otherwise` where the array is not given.
    pub(crate) fn beside(&self, name: &str, at: usize, otherwise: f64) -> f64 {
        self.beside.iter().find(|(n, _)| *n == name).map_or(otherwise, |(_, values)| values[at])
    }

    /// The mean of something of the folded elements.
    pub(crate) fn mean(&self, of: impl Fn(f64) -> f64) -> f64 {
        sum(self.folded.iter().map(|v| of(*v))) / self.folded.len() as f64
    }
}

/// The sum of the terms, rounded once.
pub(crate) fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let mut sum = ExactSum::new();
    terms.for_each(|term| sum.add(term));
    sum.value()
}
