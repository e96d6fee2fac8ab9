//! Calls of functions in the simulator.

use coulis_ir::Checked;
use coulis_ir::args::ArgInfo;
use coulis_sim::{Options, SimArg, SimArray, SimError, SimReport};

use super::memory::{Contents, Memory};
use crate::error::Error;

/// What the simulator refuses or stops at is about the kernel, unless the caller asked for an end.
pub(super) fn refused(error: SimError) -> Error {
    let code = if matches!(error, SimError::Interrupted { .. }) { "interrupted" } else { "sim" };
    Error::user(code, error)
}

/// Runs a kernel on the memory of a call; outputs that nobody gave start unwritten.
pub(super) fn simulate(
    kernel: &Checked,
    infos: &[ArgInfo],
    memory: &mut [Memory],
    options: &Options,
) -> Result<SimReport, Error> {
    let mut pieces = memory.iter_mut();
    let mut args: Vec<SimArg<'_>> = Vec::with_capacity(infos.len());
    for info in infos {
        args.push(match info {
            ArgInfo::Scalar(value) => SimArg::Scalar(*value),
            ArgInfo::Array(info) => {
                let Some(piece) = pieces.next() else {
                    return Err(Error::bug("sim/memory", "an array without memory"));
                };
                let (info, first) = (info.clone(), piece.first_byte());
                SimArg::Array(match &mut piece.contents {
                    Contents::Shared(array) => {
                        let (bytes, offset) = array.storage();
                        SimArray { offset, ..SimArray::read(bytes, info) }
                    }
                    Contents::Owned { bytes, is_given: true } => {
                        SimArray { offset: first, ..SimArray::update(bytes.as_mut_slice(), info) }
                    }
                    Contents::Owned { bytes, is_given: false } => {
                        SimArray { offset: first, ..SimArray::output(bytes.as_mut_slice(), info) }
                    }
                })
            }
        });
    }
    coulis_sim::run(kernel, &mut args, options).map_err(refused)
}
