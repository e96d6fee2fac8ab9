//! Facts about the machine that a kernel is made for. Planner, lowering and emitters ask these, never a name.

/// Kind of machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// The CPU: compiled C, or the executor.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// An AMD GPU.
    Hip,
}

/// What a machine can do.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Kind of machine.
    pub kind: TargetKind,
    /// Architecture name: `native` for the CPU, `sm_90a` for CUDA.
    pub arch: String,
    /// Lanes of a warp; 1 on the CPU.
    pub warp: u32,
    /// Bytes that one vector operation handles. The executor handles thousands at once, a CPU 16 to 64.
    pub vector_bytes: u32,
    /// Bytes of all vector registers together: what loop-carried state may take.
    pub register_bytes: u32,
    /// Threads that run side by side.
    pub n_threads: u32,
    /// Bytes of the cache of one thread that is fast enough to re-read (L2 on a CPU).
    pub cache_bytes: u64,
}

impl Target {
    /// Whether kernels run in blocks of threads with barriers and shuffles.
    pub fn has_threads(&self) -> bool {
        match self.kind {
            TargetKind::Cpu => false,
            TargetKind::Cuda | TargetKind::Hip => true,
        }
    }
}
