//! Machines to build for, as callers name them: `cuda`, `cuda -arch=sm_90a`, `cpu`, `llvm`, `c`, `sim`, `sim64`.

use coulis::{DeviceChoice, SIM_WARP, TargetChoice};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A machine to build for.
#[derive(Clone, Debug)]
pub enum Target {
    /// The CPU of this machine.
    Cpu,
    /// An NVIDIA GPU; of that architecture, where one is named.
    Cuda(Option<String>),
    /// The simulator, with warps of that many lanes.
    Sim(u32),
}

/// Options of TVM's targets that are read and not used: what they say, coulis asks the machine for.
///
/// Source: TVM v0.13, `src/target/target_kind.cc`.
const UNUSED: &[&str] = &[
    "device",
    "fast-math",
    "from_device",
    "host",
    "keys",
    "l2_cache_size_bytes",
    "libs",
    "link-params",
    "mabi",
    "mattr",
    "max_num_threads",
    "max_shared_memory_per_block",
    "max_threads_per_block",
    "mcpu",
    "mfloat-abi",
    "model",
    "mtriple",
    "num-cores",
    "opt-level",
    "registers_per_block",
    "runtime",
    "system-lib",
    "tag",
    "thread_warp_size",
    "vector-width",
];

impl Target {
    /// The machine of a name, which may carry options as TVM writes them; of those only `-arch` is used.
    pub fn named(name: &str, arch: Option<&str>) -> PyResult<Target> {
        let mut words = name.split_whitespace();
        let kind = words.next().unwrap_or_default();
        let mut named = None;
        for word in words {
            let option = word.trim_start_matches('-');
            match option.split_once('=').unwrap_or((option, "")) {
                ("arch", value) if word.starts_with('-') => named = Some(value),
                (key, _) if word.starts_with('-') && UNUSED.contains(&key) => {}
                _ => {
                    let message = format!(
                        "the target `{name}` has no option `{word}`; legal is -arch=, and read and not used are -{}",
                        UNUSED.join(", -")
                    );
                    return Err(PyValueError::new_err(message));
                }
            }
        }
        let arch = arch.or(named).map(str::to_owned);
        let target = match kind {
            "cpu" | "llvm" | "c" => Target::Cpu,
            "cuda" => Target::Cuda(arch.clone()),
            "sim" => Target::Sim(SIM_WARP),
            "sim64" => Target::Sim(64),
            _ => {
                let message =
                    format!("there is no target `{name}`; legal are cpu (or llvm, c), cuda, sim, sim64");
                return Err(PyValueError::new_err(message));
            }
        };
        match (&target, arch) {
            (Target::Cpu | Target::Sim(_), Some(arch)) => {
                Err(PyValueError::new_err(format!("the target `{kind}` has no architecture, got `{arch}`")))
            }
            _ => Ok(target),
        }
    }

    /// The name.
    pub fn kind(&self) -> &'static str {
        match self {
            Target::Cpu => "cpu",
            Target::Cuda(_) => "cuda",
            Target::Sim(SIM_WARP) => "sim",
            Target::Sim(_) => "sim64",
        }
    }

    /// The machine whose code is shown.
    pub fn choice(&self) -> TargetChoice {
        match self {
            Target::Cuda(arch) => TargetChoice::Cuda { arch: arch.clone() },
            Target::Cpu => TargetChoice::Cpu,
            Target::Sim(warp) => TargetChoice::Sim { warp: *warp },
        }
    }

    /// The device that it runs on; `ordinal` counts GPUs.
    pub fn device(&self, ordinal: usize) -> DeviceChoice {
        match self {
            Target::Cpu => DeviceChoice::Cpu,
            Target::Cuda(_) => DeviceChoice::Cuda(ordinal),
            Target::Sim(warp) => DeviceChoice::Sim { warp: *warp, orders: 1 },
        }
    }
}

/// Whether a device is there to run on: of `cuda` the one of that number. Raises what is missing.
#[pyfunction]
pub fn check_device(py: Python<'_>, kind: &str, ordinal: usize) -> PyResult<()> {
    use crate::error::OrRaise;
    let device = Target::named(kind, None)?.device(ordinal);
    py.detach(|| coulis::machine::check(&device)).or_raise()
}
