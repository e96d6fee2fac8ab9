//! A machine that is not here: kernels are planned and lowered for it, and nothing runs.

use std::sync::Arc;

use coulis_ir::{Checked, Target};

use super::{Device, Executable};
use crate::error::RuntimeError;

/// A GPU of an architecture. Its facts are those of the architecture, which a device of it may exceed.
pub struct Elsewhere {
    target: Target,
}

impl Elsewhere {
    /// The NVIDIA GPU with those facts.
    pub fn new(target: Target) -> Elsewhere {
        Elsewhere { target }
    }
}

impl Device for Elsewhere {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn target(&self) -> Target {
        self.target.clone()
    }

    /// # Errors
    /// Always.
    fn compile(&self, kernel: &Checked) -> Result<Arc<dyn Executable>, RuntimeError> {
        Err(RuntimeError::Elsewhere { kernel: kernel.kernel().name.clone(), arch: self.target.arch.clone() })
    }
}
