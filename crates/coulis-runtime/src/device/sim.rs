//! Kernels on the simulated GPU: for machines without one, and for kernels that are not trusted yet.
//!
//! A launch leaves the results in the buffers and gives a report: violations, and what was counted. Violations
//! are no errors here, since the results are there; whoever asked for the run decides.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use coulis_ir::args::{ArrayInfo, Bindings, compact_strides, eval_index};
use coulis_ir::{Buffer, Checked, Expr, Param, Target};
use coulis_sim::{Memory, Options, SimArg, SimArray};

use crate::device::{Device, Executable, Info, Launched, Origin, Parameter};
use crate::error::RuntimeError;

/// Name of the device.
pub const NAME: &str = "sim";

/// What buffers that a kernel writes hold before a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outputs {
    /// Nothing: reading them before they are written is a violation.
    #[default]
    Unwritten,
    /// Values, which the kernel may read.
    Hold,
}

/// How the simulator is opened.
#[derive(Clone, Debug, Default)]
pub struct SimOptions {
    /// Lanes of a warp, orders, limits.
    pub run: Options,
    /// What outputs hold before.
    pub outputs: Outputs,
}

/// The device.
pub struct Sim {
    options: SimOptions,
}

impl Sim {
    /// Opens the simulator.
    pub fn open(options: &SimOptions) -> Sim {
        Sim { options: options.clone() }
    }
}

impl Device for Sim {
    fn name(&self) -> &'static str {
        NAME
    }

    fn target(&self) -> Target {
        Target::simulated(self.options.run.warp)
    }

    fn compile(&self, kernel: &Checked) -> Result<Arc<dyn Executable>, RuntimeError> {
        let start = Instant::now();
        coulis_sim::check(kernel)?;
        let info = Info {
            kernel: kernel.kernel().name.clone(),
            device: NAME,
            origin: Origin::Compiled,
            seconds: start.elapsed().as_secs_f64(),
        };
        let (parameters, options) = (Parameter::all_of(kernel.kernel()), self.options.clone());
        Ok(Arc::new(Simulated { info, parameters, kernel: kernel.clone(), options }))
    }
}

struct Simulated {
    info: Info,
    parameters: Vec<Parameter>,
    kernel: Checked,
    options: SimOptions,
}

impl Executable for Simulated {
    fn info(&self) -> &Info {
        &self.info
    }

    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    unsafe fn launch(&self, bindings: &Bindings, buffers: &[*mut u8]) -> Launched {
        let kernel = self.kernel.kernel();
        Parameter::check_count(&kernel.name, &self.parameters, buffers.len())?;
        let mut pointers = buffers.iter().zip(&self.parameters);
        let mut args = Vec::with_capacity(kernel.params.len());
        for param in &kernel.params {
            args.push(match param {
                Param::Scalar(var) => {
                    let value = bindings.get(&var.id()).copied();
                    let unbound = || RuntimeError::UnboundVar { var: var.name().to_owned() };
                    SimArg::Scalar(value.ok_or_else(unbound)?)
                }
                Param::Buffer { buffer, .. } => {
                    let Some((pointer, facts)) = pointers.next() else { break };
                    let info = array_info(buffer, bindings)?;
                    let (offset, bytes) = reach(&info);
                    let memory: &[Cell<u8>] = if bytes == 0 {
                        &[]
                    } else {
                        // SAFETY: the caller says that all elements of this shape and strides are valid, that nobody
                        // else touches them, and that those that are stored to may be written; others are only read.
                        unsafe { std::slice::from_raw_parts(pointer.cast::<Cell<u8>>().sub(offset), bytes) }
                    };
                    let initialised = !facts.is_written || self.options.outputs == Outputs::Hold;
                    SimArg::Array(SimArray { info, memory: Memory::Write(memory), offset, initialised })
                }
            });
        }
        Ok(Some(coulis_sim::run(&self.kernel, &mut args, &self.options.run)?))
    }

    fn source(&self) -> Option<&str> {
        None
    }
}

fn array_info(buffer: &Buffer, bindings: &Bindings) -> Result<ArrayInfo, RuntimeError> {
    let values = |exprs: &[Expr]| -> Result<Vec<i64>, RuntimeError> {
        exprs
            .iter()
            .map(|e| eval_index(e, bindings).map_err(|var| RuntimeError::UnboundVar { var }))
            .collect()
    };
    let shape = values(&buffer.shape)?;
    let strides = if buffer.strides.is_empty() { compact_strides(&shape) } else { values(&buffer.strides)? };
    Ok(ArrayInfo { dtype: buffer.dtype, shape, strides })
}

/// Bytes before element `[0, ..., 0]`, and in all.
fn reach(info: &ArrayInfo) -> (usize, usize) {
    if info.shape.iter().any(|n| *n <= 0) {
        return (0, 0);
    }
    let bytes = |n: i128| usize::try_from(n.checked_mul(info.dtype.bytes() as i128)?).ok();
    let ends = info.reach().and_then(|(lo, hi)| bytes(-lo).zip(bytes(hi - lo + 1)));
    // Of elements that no memory holds the simulator says so.
    ends.unwrap_or((0, 0))
}
