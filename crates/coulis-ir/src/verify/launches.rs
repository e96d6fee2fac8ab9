//! V23: a kernel of a machine with threads is launches, and what the host does around them.

use super::{Group, Property, Report};
use crate::device::{DeviceError, HostParts, host_parts};
use crate::kernel::Kernel;

/// What it looks for is found on the way to the launches, which other groups look at.
pub(super) const GROUP: Group = Group {
    properties: &[Property::of_schedule("V23", "statements stand in launches, and launches stand outermost")],
    checks: &[],
};

/// The launches of a Flat kernel, where it has nothing else.
pub(super) fn parts<'k>(kernel: &'k Kernel, report: &mut Report<'k>) -> Option<HostParts<'k>> {
    match host_parts(kernel) {
        Ok(parts) => Some(parts),
        // A second launch of one tag is V22.
        Err((_, DeviceError::Twice { .. })) => None,
        Err((stmt, error)) => {
            report.at(stmt, "V23", error.to_string());
            None
        }
    }
}
