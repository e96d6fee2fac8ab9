//! State that several reducers share: sums, counts, flags, extrema, positions, spread; and states of one value.
//!
//! Reducers that use the same part with the same arguments have equal fields, which a product keeps once.

pub(crate) mod extremum;
pub(crate) mod flag;
pub(crate) mod integers;
pub(crate) mod one_value;
pub(crate) mod position;
pub(crate) mod spread;
pub(crate) mod total;
