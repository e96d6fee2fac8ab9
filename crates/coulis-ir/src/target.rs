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
    /// Whether a vector is a register: no vector of the interpreter is, where each operation costs the same however long its vectors are.
    pub vectors_are_registers: bool,
    /// Bytes of all vector registers together: what loop-carried state may take.
    pub register_bytes: u32,
    /// Threads that run side by side; on a GPU those that all its multiprocessors hold.
    pub n_threads: u32,
    /// Bytes of the nearest cache of data of one thread, where hints may bring lines; 0 where there is none.
    pub first_cache_bytes: u64,
    /// Bytes of the cache of one thread that is fast enough to re-read (L2 on a CPU).
    pub cache_bytes: u64,
    /// Bytes of the cache that all blocks of threads share, in front of memory; 0 where kernels do not run in blocks.
    pub shared_cache_bytes: u64,
    /// Bytes that memory delivers a second for each of the threads that run side by side; 0 where kernels do not run in blocks.
    pub thread_bytes_per_second: u64,
    /// What each multiprocessor has; all 0 where kernels do not run in blocks.
    pub multiprocessor: Multiprocessor,
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

/// What one multiprocessor of a GPU has. Source: CUDA C++ Programming Guide, technical specifications per compute capability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Multiprocessor {
    /// Threads that it holds at most.
    pub threads: u32,
    /// 32-bit registers of all its threads together.
    pub registers: u32,
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

/// An architecture: its name, bytes of shared memory that a block may ask for at launch, multiprocessors of a large part of that name,
/// threads that each holds, MiB of second-level cache and GB that memory delivers a second of that part, and blocks of a cluster.
type CudaArch = (&'static str, u32, u32, u32, u64, u64, u32);

/// The architecture whose facts the simulator's GPU has too.
const HOPPER: CudaArch = ("sm_90a", 227 << 10, 132, 2048, 50, 3352, CLUSTER_BLOCKS);

/// Compute capabilities that coulis compiles for, oldest first. Their parts are A100, A40, L40S, H100, B200, B300 and RTX PRO 6000,
/// by their data sheets.
const CUDA_ARCHS: &[CudaArch] = &[
    ("sm_80", 163 << 10, 108, 2048, 40, 2039, 1),
    ("sm_86", 99 << 10, 84, 1536, 6, 696, 1),
    ("sm_89", 99 << 10, 142, 1536, 96, 864, 1),
    HOPPER,
    ("sm_100a", 227 << 10, 148, 2048, 126, 8000, CLUSTER_BLOCKS),
    ("sm_103a", 227 << 10, 160, 2048, 126, 8000, CLUSTER_BLOCKS),
    ("sm_120a", 99 << 10, 188, 1536, 128, 1792, CLUSTER_BLOCKS),
];

impl Target {
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
            vectors_are_registers: true,
            register_bytes: 32 * vector_bytes,
            n_threads,
            first_cache_bytes: 48 << 10,
            cache_bytes: 1 << 20,
            shared_cache_bytes: 0,
            thread_bytes_per_second: 0,
            multiprocessor: Multiprocessor::default(),
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
    pub fn cuda(arch: &str) -> Option<Target> {
        CUDA_ARCHS.iter().find(|(name, ..)| *name == arch).map(Target::of_arch)
    }

    /// The GPU of the simulator, with warps of 32 or 64 lanes: as [`Target::cuda`] of `sm_90a` in all other facts, but that
    /// AMD's have no extrema of pairs that keep NaN. Its kind is CUDA for 32 lanes and HIP for 64.
    pub fn simulated(warp: u32) -> Target {
        Target {
            kind: if warp == 64 { TargetKind::Hip } else { TargetKind::Cuda },
            arch: "sim".to_owned(),
            warp,
            pairs_of_halves: warp == 32,
            ..Target::of_arch(&HOPPER)
        }
    }

    fn of_arch(of: &CudaArch) -> Target {
        let &(arch, shared_dyn_bytes, n_multiprocessors, threads, cache_mib, gigabytes, cluster_blocks) = of;
        let n_threads = n_multiprocessors * threads;
        Target {
            kind: TargetKind::Cuda,
            arch: arch.to_owned(),
            warp: 32,
            vector_bytes: 16,
            vectors_are_registers: true,
            register_bytes: 1 << 10,
            n_threads,
            first_cache_bytes: 0,
            cache_bytes: 128 << 10,
            shared_cache_bytes: cache_mib << 20,
            thread_bytes_per_second: gigabytes * 1_000_000_000 / u64::from(n_threads),
            multiprocessor: Multiprocessor { threads, registers: 1 << 16 },
            pages: 1,
            reads_ahead: false,
            widens_from_memory: false,
            separate_adders: false,
            halves_vectors: false,
            pairs_of_halves: true,
            block: BlockLimits { threads: 1024, shared_bytes: 48 << 10, shared_dyn_bytes, registers: 255 },
            cluster_blocks,
        }
    }

    /// Multiprocessors, at least 1, of machines with blocks of threads.
    pub fn n_multiprocessors(&self) -> u32 {
        (self.n_threads / self.multiprocessor.threads.max(1)).max(1)
    }

    /// Whether kernels run in blocks of threads with barriers and shuffles.
    pub fn has_threads(&self) -> bool {
        match self.kind {
            TargetKind::Cpu => false,
            TargetKind::Cuda | TargetKind::Hip => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiprocessors_are_counted_by_the_threads_that_each_holds() {
        let of = |arch: &str| Target::cuda(arch).map(|target| target.n_multiprocessors());
        assert_eq!([of("sm_86"), of("sm_90a"), of("sm_120a")], [Some(84), Some(132), Some(188)]);
        assert_eq!(Target::simulated(64).n_multiprocessors(), 132);
        let few = Target { n_threads: 100, ..Target::simulated(32) };
        assert_eq!(few.n_multiprocessors(), 1, "fewer threads than a multiprocessor holds");
    }
}
