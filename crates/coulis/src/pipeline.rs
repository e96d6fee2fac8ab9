//! The one way from a schedule to something that runs: build the nest, lower it, verify it.
//!
//! `reduce` and `te` both come through here; there is no other path to an executor.

use coulis_ir::{Checked, Kernel, Target};
use coulis_lower::{Options, Pass};
use coulis_schedule::{Schedule, build_nest};
use coulis_tensor::Tensor;

use crate::error::Error;

/// The checked Flat kernel of a schedule, for a machine.
pub fn compile_schedule(
    schedule: &Schedule,
    args: &[Tensor],
    name: &str,
    target: &Target,
) -> Result<Checked, Error> {
    let nest = build_nest(schedule, args, name)?;
    lower_kernel(nest, &Options { target, simple_mode: false }, &mut |_, _| {})
}

/// Lowers a Nest kernel and verifies the result. `observer` sees the kernel after each pass.
pub fn lower_kernel(
    nest: Kernel,
    options: &Options,
    observer: &mut dyn FnMut(&Pass, &Kernel),
) -> Result<Checked, Error> {
    let flat = coulis_lower::lower(nest, options, observer)?;
    coulis_ir::verify::verify(flat).map_err(Error::from)
}
