//! Kernels on the simulated GPU: for machines without one, and for kernels that are not trusted yet.
//!
//! A launch leaves the results in the buffers and a report with the device: violations, and what was
//! counted. Violations are no errors here, since the results are there; whoever asked for the run decides.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use coulis_ir::args::{ArrayInfo, Bindings, compact_strides, eval_index};
use coulis_ir::visit::written_memory;
use coulis_ir::{Buffer, Checked, Expr, Param, Target};
use coulis_sim::{Memory, Options, SimArg, SimArray, SimReport};

use crate::device::{Device, Executable, Info, Origin};
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

type Reports = Arc<Mutex<Vec<SimReport>>>;

/// The device.
pub struct Sim {
    options: SimOptions,
    reports: Reports,
}

impl Sim {
    /// Opens the simulator.
    pub fn open(options: &SimOptions) -> Sim {
        Sim { options: options.clone(), reports: Reports::default() }
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
        let (options, reports) = (self.options.clone(), self.reports.clone());
        Ok(Arc::new(Simulated { info, kernel: kernel.clone(), options, reports }))
    }

    fn take_reports(&self) -> Vec<SimReport> {
        std::mem::take(&mut *self.reports.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Simulated {
    info: Info,
    kernel: Checked,
    options: SimOptions,
    reports: Reports,
}

impl Executable for Simulated {
    fn info(&self) -> &Info {
        &self.info
    }

    unsafe fn launch(&self, bindings: &Bindings, buffers: &[*mut u8]) -> Result<(), RuntimeError> {
        let kernel = self.kernel.kernel();
        let wanted = kernel.param_buffers().count();
        if buffers.len() != wanted {
            let (kernel, found) = (kernel.name.clone(), buffers.len());
            return Err(RuntimeError::BufferCount { kernel, wanted, found });
        }
        let written = written_memory(&kernel.body);
        let mut pointers = buffers.iter();
        let mut args = Vec::with_capacity(kernel.params.len());
        for param in &kernel.params {
            args.push(match param {
                Param::Scalar(var) => {
                    let value = bindings.get(&var.id()).copied();
                    let unbound = || RuntimeError::UnboundVar { var: var.name().to_owned() };
                    SimArg::Scalar(value.ok_or_else(unbound)?)
                }
                Param::Buffer { buffer, .. } => {
                    let Some(pointer) = pointers.next() else { break };
                    let info = array_info(buffer, bindings)?;
                    let (offset, bytes) = reach(&info);
                    let memory: &[Cell<u8>] = if bytes == 0 {
                        &[]
                    } else {
                        // SAFETY: the caller says that all elements of this shape and strides are valid, that nobody
                        // else touches them, and that those that are stored to may be written; others are only read.
                        unsafe { std::slice::from_raw_parts(pointer.cast::<Cell<u8>>().sub(offset), bytes) }
                    };
                    let is_written = written.contains(&buffer.data.id());
                    let initialised = !is_written || self.options.outputs == Outputs::Hold;
                    SimArg::Array(SimArray { info, memory: Memory::Write(memory), offset, initialised })
                }
            });
        }
        let report = coulis_sim::run(&self.kernel, &mut args, &self.options.run)?;
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).push(report);
        Ok(())
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
    let ends = info.shape.iter().zip(&info.strides).map(|(n, stride)| (n - 1) * stride);
    let (before, after) = ends.fold((0, 0), |(lo, hi), end| (lo - end.min(0), hi + end.max(0)));
    let bytes = info.dtype.bytes();
    (before as usize * bytes, (before + after + 1) as usize * bytes)
}
