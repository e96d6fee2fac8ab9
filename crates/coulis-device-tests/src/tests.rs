//! The list of tests: one line a file of tests.

use crate::{DeviceTest, probes};

/// Every list of tests.
const LISTS: &[&[&DeviceTest]] = &[probes::TESTS];

/// Every test.
pub fn all() -> impl Iterator<Item = &'static DeviceTest> {
    LISTS.iter().flat_map(|list| list.iter().copied())
}
