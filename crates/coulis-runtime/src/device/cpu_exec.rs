//! Kernels as the executor's bytecode: for machines without a compiler, and for kernels that are not worth one.

use std::sync::Arc;
use std::time::Instant;

use coulis_exec::{ExecError, Level, Pool, Program};
use coulis_ir::args::Bindings;
use coulis_ir::{Checked, Target};

use crate::device::{CpuOptions, Device, Executable, Info, Launched, Origin, Parameter, n_threads};
use crate::error::RuntimeError;
use crate::features;

/// Name of the device.
pub const NAME: &str = "cpu_exec";

/// The device.
pub struct CpuExec {
    pool: &'static Pool,
    level: Level,
}

impl CpuExec {
    /// Opens the executor for a CPU of that level.
    pub fn open(options: &CpuOptions, level: Level) -> CpuExec {
        CpuExec { pool: Pool::global(n_threads(options)), level }
    }
}

impl Device for CpuExec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn target(&self) -> Target {
        let n_threads = self.pool.n_threads();
        if coulis_exec::is_native(self.level) {
            return Target { arch: "exec".to_owned(), ..features::target(n_threads, self.level) };
        }
        coulis_exec::target(n_threads)
    }

    fn compile(&self, kernel: &Checked) -> Result<Arc<dyn Executable>, RuntimeError> {
        let start = Instant::now();
        let program = Program::compile_for(kernel, self.level)?;
        let info = Info {
            kernel: kernel.kernel().name.clone(),
            device: NAME,
            origin: Origin::Compiled,
            seconds: start.elapsed().as_secs_f64(),
        };
        let parameters = Parameter::all_of(kernel.kernel());
        Ok(Arc::new(Executed { info, parameters, program, pool: self.pool }))
    }
}

struct Executed {
    info: Info,
    parameters: Vec<Parameter>,
    program: Program,
    pool: &'static Pool,
}

impl Executable for Executed {
    fn info(&self) -> &Info {
        &self.info
    }

    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    unsafe fn launch(&self, bindings: &Bindings, buffers: &[*mut u8]) -> Launched {
        // SAFETY: the caller keeps the same promises to both.
        unsafe { self.program.run(bindings, buffers, self.pool) }.map_err(|error| match error {
            ExecError::DivisionByZero => RuntimeError::DivisionByZero { kernel: self.info.kernel.clone() },
            other => other.into(),
        })?;
        Ok(None)
    }

    fn source(&self) -> Option<&str> {
        None
    }
}
