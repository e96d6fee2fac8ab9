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
    /// Bytes of the nearest cache of data of one thread, where hints may bring lines; 0 where there is none.
    pub first_cache_bytes: u64,
    /// Bytes of the cache of one thread that is fast enough to re-read (L2 on a CPU).
    pub cache_bytes: u64,
    /// Bytes of the cache that all blocks of threads share, in front of memory; 0 where kernels do not run in blocks.
    pub shared_cache_bytes: u64,
    /// Bytes that memory delivers a second for each of the threads that run side by side; 0 where kernels do not run in blocks.
    pub thread_bytes_per_second: u64,
    /// Pages of memory that a thread reads side by side faster than one after another, a power of two; 1
    /// where it gains nothing.
    pub pages: u32,
    /// Whether hardware by itself asks for what a plain walk will read as early as hints could, which then only keep loads waiting.
    pub reads_ahead: bool,
    /// Whether a half of a vector register is widened faster from memory than where it is.
    pub widens_from_memory: bool,
    /// Whether additions of floats have units of their own beside those that multiply, and `fma` is an operation of the latter.
    pub separate_adders: bool,
    /// Whether vectors of 64 bytes are worked on half by half, and widening to one takes as long as widening to four halves. Source:
    /// Software Optimization Guide for the AMD Zen4 Microarchitecture (57647); the latter as measured.
    pub halves_vectors: bool,
    /// Whether the larger or smaller ones of two pairs of 16-bit floats, NaN kept, are one operation. Source: PTX ISA, `max.NaN.f16x2`
    /// and `max.NaN.bf16x2`, of `sm_80` on.
    pub pairs_of_halves: bool,
    /// What one block of threads may have; all 0 where kernels do not run in blocks.
    pub block: BlockLimits,
    /// Blocks of a cluster, at most; 1 where there are no clusters.
    pub cluster_blocks: u32,
}

/// Limits of one block of threads. Source: CUDA C++ Programming Guide, technical specifications per compute capability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockLimits {
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory whose size is known when the kernel is compiled.
    pub shared_bytes: u32,
    /// Bytes of shared memory that a block may ask for at launch.
    pub shared_dyn_bytes: u32,
    /// 32-bit registers of one thread.
    pub registers: u32,
}

/// Blocks of a cluster that every part with clusters launches. Source: CUDA C++ Programming Guide, thread block clusters.
const CLUSTER_BLOCKS: u32 = 8;

/// Compute capabilities that coulis compiles for, with the shared memory that a block may ask for at launch, multiprocessors, MiB of
/// second-level cache and GB that memory delivers a second of a large part of that name (A100, A40, L40S, H100, B200, B300 and RTX
/// PRO 6000, by their data sheets), and blocks of a cluster.
const CUDA_ARCHS: &[(&str, u32, u32, u64, u64, u32)] = &[
    ("sm_80", 163 << 10, 108, 40, 2039, 1),
    ("sm_86", 99 << 10, 84, 6, 696, 1),
    ("sm_89", 99 << 10, 142, 96, 864, 1),
    ("sm_90a", 227 << 10, 132, 50, 3352, CLUSTER_BLOCKS),
    ("sm_100a", 227 << 10, 148, 126, 8000, CLUSTER_BLOCKS),
    ("sm_103a", 227 << 10, 160, 126, 8000, CLUSTER_BLOCKS),
    ("sm_120a", 99 << 10, 188, 128, 1792, CLUSTER_BLOCKS),
];

impl Target {
    /// Threads that a multiprocessor holds, on those that the figures of the planner are of. Source: CUDA C++ Programming Guide,
    /// technical specifications per compute capability (2048 for 8.0, 9.0 and 10.0).
    pub const UNIT_THREADS: u32 = 2048;

    /// Lanes that a warp has at least, on every machine with threads: a block of so many threads is one warp.
    pub const LEAST_WARP: u32 = 32;

    /// A CPU of so many threads with 32 vector registers of so many bytes, 48 KiB of first-level cache and 1 MiB of second,
    /// which has none of the habits that are facts of their own but that of widening from memory.
    pub fn cpu(vector_bytes: u32, n_threads: u32) -> Target {
        Target {
            kind: TargetKind::Cpu,
            arch: "native".to_owned(),
            warp: 1,
            vector_bytes,
            register_bytes: 32 * vector_bytes,
            n_threads,
            first_cache_bytes: 48 << 10,
            cache_bytes: 1 << 20,
            shared_cache_bytes: 0,
            thread_bytes_per_second: 0,
            pages: 4,
            reads_ahead: false,
            widens_from_memory: true,
            separate_adders: false,
            halves_vectors: false,
            pairs_of_halves: false,
            block: BlockLimits::default(),
            cluster_blocks: 1,
        }
    }

    /// Names of the CUDA architectures that coulis compiles for, oldest first.
    pub fn cuda_archs() -> impl Iterator<Item = &'static str> {
        CUDA_ARCHS.iter().map(|(arch, ..)| *arch)
    }

    /// An NVIDIA GPU of that architecture, `sm_90a` say; `None` for one that coulis does not compile for.
    /// `n_threads` counts the threads that all multiprocessors together hold.
    pub fn cuda(arch: &str) -> Option<Target> {
        let (arch, shared_dyn_bytes, n_units, cache_mib, gigabytes, cluster_blocks) =
            CUDA_ARCHS.iter().find(|(name, ..)| *name == arch)?;
        Some(Target {
            kind: TargetKind::Cuda,
            arch: (*arch).to_owned(),
            warp: 32,
            vector_bytes: 16,
            register_bytes: 1 << 10,
            n_threads: n_units * Target::UNIT_THREADS,
            first_cache_bytes: 0,
            cache_bytes: 128 << 10,
            shared_cache_bytes: cache_mib << 20,
            thread_bytes_per_second: gigabytes * 1_000_000_000 / u64::from(n_units * Target::UNIT_THREADS),
            pages: 1,
            reads_ahead: false,
            widens_from_memory: false,
            separate_adders: false,
            halves_vectors: false,
            pairs_of_halves: true,
            block: BlockLimits {
                threads: 1024,
                shared_bytes: 48 << 10,
                shared_dyn_bytes: *shared_dyn_bytes,
                registers: 255,
            },
            cluster_blocks: *cluster_blocks,
        })
    }

    /// The GPU of the simulator, with warps of 32 or 64 lanes: as [`Target::cuda`] of `sm_90a` in all other facts.
    /// Its kind is CUDA for 32 lanes and HIP for 64.
    pub fn simulated(warp: u32) -> Target {
        let block = BlockLimits {
            threads: 1024,
            shared_bytes: 48 << 10,
            shared_dyn_bytes: 227 << 10,
            registers: 255,
        };
        Target {
            kind: if warp == 64 { TargetKind::Hip } else { TargetKind::Cuda },
            arch: "sim".to_owned(),
            warp,
            vector_bytes: 16,
            register_bytes: 1 << 10,
            n_threads: 132 * Target::UNIT_THREADS,
            first_cache_bytes: 0,
            cache_bytes: 128 << 10,
            shared_cache_bytes: 50 << 20,
            thread_bytes_per_second: 3_352_000_000_000 / u64::from(132 * Target::UNIT_THREADS),
            pages: 1,
            reads_ahead: false,
            widens_from_memory: false,
            separate_adders: false,
            halves_vectors: false,
            pairs_of_halves: warp == 32,
            block,
            cluster_blocks: CLUSTER_BLOCKS,
        }
    }

    /// Whether kernels run in blocks of threads with barriers and shuffles.
    pub fn has_threads(&self) -> bool {
        match self.kind {
            TargetKind::Cpu => false,
            TargetKind::Cuda | TargetKind::Hip => true,
        }
    }
}
