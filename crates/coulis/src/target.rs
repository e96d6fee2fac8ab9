//! The machine that a kernel is lowered for, as callers name it.

use coulis_ir::Target;
use coulis_runtime::CpuKind;

use crate::device::{open_cpu, sim_options};
use crate::error::Error;

/// The architecture of CUDA targets where none is named and no device is there to ask.
pub const DEFAULT_CUDA_ARCH: &str = "sm_90a";

/// A machine to lower for; it need not be here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TargetChoice {
    /// The CPU of this machine.
    #[default]
    Cpu,
    /// An NVIDIA GPU of that architecture, as `sm_90a`; that of this machine's first device without one, else
    /// [`DEFAULT_CUDA_ARCH`].
    Cuda {
        /// The architecture.
        arch: Option<String>,
    },
    /// The GPU of the simulator.
    Sim {
        /// Lanes of a warp, 32 or 64.
        warp: u32,
    },
}

impl TargetChoice {
    /// The facts that passes and emitters ask for.
    ///
    /// # Errors
    /// For an architecture that coulis does not compile for, and warps that the simulator has not.
    pub fn facts(&self) -> Result<Target, Error> {
        match self {
            TargetChoice::Cpu => Ok(open_cpu(None, CpuKind::Auto)?.target().clone()),
            TargetChoice::Sim { warp } => Ok(Target::simulated(sim_options(*warp, 1)?.warp)),
            TargetChoice::Cuda { arch } => {
                let arch = arch.as_deref().unwrap_or(DEFAULT_CUDA_ARCH);
                Target::cuda(arch).ok_or_else(|| {
                    let legal: Vec<&str> = Target::cuda_archs().collect();
                    let message =
                        format!("there is no architecture `{arch}`; legal are {}", legal.join(", "));
                    Error::user("target/arch", message)
                })
            }
        }
    }
}
