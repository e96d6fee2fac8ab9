//! Kernels written by hand that show that driver, compiler and launches work on a GPU, before any emitter is trusted.
//!
//! Each probe is a function that says what was wrong. They need a GPU; [`modules`] compiles without one.

use std::sync::Arc;

use coulis_codegen::{KernelArg, Module, Temporary};
use coulis_ir::args::Bindings;
use coulis_ir::{Buffer, DType, Expr, MemScope};

use crate::cuda::bare_read;
use crate::cuda::by_hand::{Text, size, text};
use crate::cuda::device::Cuda;
use crate::cuda::error::CudaError;
use crate::cuda::executable::CudaExecutable;
use crate::cuda::memory::DeviceMemory;
use crate::cuda::stream::{Event, Stream};
use crate::error::RuntimeError;

/// Why a probe did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A device that failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// Another result than expected.
    #[error("{what}: expected {wanted}, found {found}")]
    Wrong {
        /// Which value.
        what: String,
        /// The right one.
        wanted: String,
        /// The one that was found.
        found: String,
    },
}

impl From<CudaError> for ProbeError {
    fn from(error: CudaError) -> ProbeError {
        ProbeError::Runtime(error.into())
    }
}

/// A check of a GPU.
pub struct Probe {
    /// Its name.
    pub name: &'static str,
    /// Runs it.
    pub run: fn(&Cuda) -> Result<(), ProbeError>,
}

/// Every probe.
pub static PROBES: &[&Probe] = &[
    &Probe { name: "vector_add", run: vector_add },
    &Probe { name: "shuffle_sum", run: shuffle_sum },
    &Probe { name: "last_block_sum", run: last_block_sum },
    &Probe { name: "counters_of_streams", run: counters_of_streams },
    &Probe { name: "overlapping_launches", run: overlapping_launches },
    &Probe { name: "graph_capture", run: graph_capture },
    &Probe { name: "graph_capture_with_workspace", run: graph_capture_with_workspace },
    &Probe { name: "large_shared_memory", run: large_shared_memory },
    &Probe { name: "empty_grid", run: empty_grid },
    &Probe { name: "events", run: events },
];

const ADD: &str = r#"extern "C" __global__ void __launch_bounds__(256) add_kernel(
    const float* a, const float* b, float* c, int n) {
  int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
  if (i < n) {
    c[i] = a[i] + b[i];
  }
}
"#;

const SHUFFLE: &str = r#"extern "C" __global__ void __launch_bounds__(32) sum_kernel(
    const unsigned int* a, unsigned int* sums, int n) {
  unsigned int total = 0u;
  for (int i = (int)threadIdx.x; i < n; i += 32) {
    total += a[(long long)blockIdx.x * n + i];
  }
  for (int distance = 16; distance > 0; distance >>= 1) {
    total += __shfl_down_sync(0xffffffffu, total, distance, 32);
  }
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = total;
  }
}
"#;

const LAST_BLOCK: &str = r#"extern "C" __global__ void __launch_bounds__(32) total_kernel(
    const unsigned int* a, unsigned int* sum, unsigned int* partial, unsigned int* ticket, int n) {
  __shared__ unsigned int is_last;
  unsigned int total = 0u;
  for (int i = (int)(blockIdx.x * 32u + threadIdx.x); i < n; i += (int)gridDim.x * 32) {
    total += a[i];
  }
  for (int distance = 16; distance > 0; distance >>= 1) {
    total += __shfl_down_sync(0xffffffffu, total, distance, 32);
  }
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = total;
    __threadfence();
    is_last = atomicAdd(ticket, 1u) == gridDim.x - 1u;
  }
  __syncthreads();
  if (is_last != 0u && threadIdx.x == 0) {
    __threadfence();
    unsigned int whole = 0u;
    for (unsigned int block = 0u; block < gridDim.x; ++block) {
      whole += ((volatile unsigned int*)partial)[block];
    }
    sum[0] = whole;
    ticket[0] = 0u;
  }
}
"#;

/// Two launches: the second takes its place while the first runs, and waits for it by itself.
const OVERLAPPING: &str = r#"extern "C" __global__ void __launch_bounds__(32) count_kernel(
    const unsigned int* a, unsigned int* partial, int n) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  unsigned int total = 0u;
  for (int i = (int)(blockIdx.x * 32u + threadIdx.x); i < n; i += (int)gridDim.x * 32) {
    total += a[i];
  }
  partial[blockIdx.x * 32u + threadIdx.x] = total;
}

extern "C" __global__ void __launch_bounds__(32) count_kernel_1(
    unsigned int* sum, const unsigned int* partial, int n) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  if (threadIdx.x == 0) {
    unsigned int whole = 0u;
    for (int i = 0; i < 40 * 32; ++i) {
      whole += partial[i];
    }
    sum[0] = whole;
  }
}
"#;

const SHARED: &str = r#"extern "C" __global__ void __launch_bounds__(256) turn_kernel(
    const unsigned int* a, unsigned int* b, int n) {
  extern __shared__ unsigned int row[];
  for (int i = (int)threadIdx.x; i < n; i += 256) {
    row[i] = a[i];
  }
  __syncthreads();
  for (int i = (int)threadIdx.x; i < n; i += 256) {
    b[i] = row[n - 1 - i];
  }
}
"#;

fn add_text() -> Text {
    let n = size();
    let grid = (n.expr() + Expr::int(255)).floordiv(Expr::int(256));
    text("add", ADD, &[DType::F32; 3], grid, 256, n)
}

const ROWS: usize = 37;

fn shuffle_text() -> Text {
    text("sum", SHUFFLE, &[DType::U32; 2], Expr::int(ROWS as i32), 32, size())
}

const BLOCKS: i32 = 40;

fn last_block_text() -> Text {
    let mut text = text("total", LAST_BLOCK, &[DType::U32; 2], Expr::int(BLOCKS), 32, size());
    let temporary = |name: &str, length: i32, zeroed: bool| Temporary {
        buffer: Buffer::new(name, DType::U32, vec![Expr::int(length)], MemScope::Global),
        bytes: Expr::int(4 * length),
        zeroed,
        left_zero: zeroed,
    };
    text.module.temporaries = vec![temporary("partial", BLOCKS, false), temporary("ticket", 1, true)];
    let args = &mut text.module.kernels[0].args;
    args.insert(2, KernelArg::Temporary(0));
    args.insert(3, KernelArg::Temporary(1));
    text
}

fn overlapping_text() -> Text {
    let mut text = text("count", OVERLAPPING, &[DType::U32; 2], Expr::int(BLOCKS), 32, size());
    text.module.temporaries = vec![Temporary {
        buffer: Buffer::new("partial", DType::U32, vec![Expr::int(32 * BLOCKS)], MemScope::Global),
        bytes: Expr::int(4 * 32 * BLOCKS),
        zeroed: false,
        left_zero: false,
    }];
    let mut second = text.module.kernels[0].clone();
    second.name = "count_kernel_1".to_owned();
    second.grid[0] = Expr::int(1);
    second.args[0] = KernelArg::Parameter(1);
    second.args[1] = KernelArg::Temporary(0);
    text.module.kernels[0].args[1] = KernelArg::Temporary(0);
    text.module.kernels.push(second);
    text
}

fn shared_text() -> Text {
    let n = size();
    let bytes = n.expr() * Expr::int(4);
    let mut text = text("turn", SHARED, &[DType::U32; 2], Expr::int(1), 256, n);
    text.module.kernels[0].dynamic_shared_bytes = bytes;
    text
}

/// Names and texts of every kernel that is written by hand.
pub fn modules() -> Vec<(&'static str, Module)> {
    vec![
        ("add", add_text().module),
        ("sum", shuffle_text().module),
        ("total", last_block_text().module),
        ("count", overlapping_text().module),
        ("turn", shared_text().module),
        ("read", bare_read::module()),
    ]
}

/// A kernel with its buffers on the GPU.
struct Bench<'a> {
    cuda: &'a Cuda,
    executable: Arc<CudaExecutable>,
    bindings: Bindings,
    buffers: Vec<DeviceMemory>,
}

impl<'a> Bench<'a> {
    fn new(
        cuda: &'a Cuda,
        name: &str,
        text: Text,
        n: i64,
        lengths: &[usize],
    ) -> Result<Bench<'a>, ProbeError> {
        // SAFETY: the texts above take the arguments that are given with them.
        let executable = unsafe { cuda.load(name, text.module, text.parameters) }?;
        let bindings = Bindings::from([(text.n.id(), n)]);
        let buffers = lengths.iter().map(|length| DeviceMemory::new(cuda.context(), 4 * length));
        let buffers = buffers.collect::<Result<_, _>>()?;
        Ok(Bench { cuda, executable, bindings, buffers })
    }

    fn fill(&mut self, buffer: usize, words: &[u32]) -> Result<(), ProbeError> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Ok(self.buffers[buffer].upload(self.cuda.stream(), 0, &bytes)?)
    }

    fn read(&self, buffer: usize) -> Result<Vec<u32>, ProbeError> {
        let memory = &self.buffers[buffer];
        let mut bytes = vec![0; memory.bytes()];
        memory.download(self.cuda.stream(), 0, &mut bytes)?;
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        Ok(bytes.chunks(4).map(word).collect())
    }

    fn put(&self, stream: &Stream, workspace: Option<&super::Workspace>) -> Result<(), ProbeError> {
        let pointers: Vec<_> = self.buffers.iter().map(DeviceMemory::pointer).collect();
        // SAFETY: the buffers have the lengths that the texts use for `n`, and each probe waits before it ends.
        Ok(unsafe { self.executable.launch_on(stream.raw(), &self.bindings, &pointers, workspace) }?)
    }

    fn run(&self) -> Result<(), ProbeError> {
        self.put(self.cuda.stream(), None)?;
        Ok(self.cuda.stream().synchronize()?)
    }
}

fn expect<T: PartialEq + std::fmt::Debug>(
    what: impl ToString,
    wanted: T,
    found: T,
) -> Result<(), ProbeError> {
    if wanted == found {
        return Ok(());
    }
    let (wanted, found) = (format!("{wanted:?}"), format!("{found:?}"));
    Err(ProbeError::Wrong { what: what.to_string(), wanted, found })
}

/// Numbers without a pattern.
fn words(n: usize, seed: u32) -> Vec<u32> {
    (0..n as u32).map(|i| (i ^ seed).wrapping_mul(2_654_435_761) >> 7).collect()
}

fn vector_add(cuda: &Cuda) -> Result<(), ProbeError> {
    for n in [1usize, 255, 256, 257, 100_003] {
        let mut bench = Bench::new(cuda, "add", add_text(), n as i64, &[n; 3])?;
        let (a, b): (Vec<f32>, Vec<f32>) = (0..n).map(|i| (i as f32 * 0.5, i as f32 - 7.25)).unzip();
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        bench.fill(0, &bits(&a))?;
        bench.fill(1, &bits(&b))?;
        bench.run()?;
        let wanted: Vec<f32> = a.iter().zip(&b).map(|(x, y)| x + y).collect();
        expect(format!("sums of {n}"), bits(&wanted), bench.read(2)?)?;
    }
    Ok(())
}

fn row_sums(a: &[u32], n: usize) -> Vec<u32> {
    a.chunks(n).map(|row| row.iter().fold(0u32, |total, word| total.wrapping_add(*word))).collect()
}

fn shuffle_sum(cuda: &Cuda) -> Result<(), ProbeError> {
    for n in [1usize, 31, 32, 33, 1000] {
        let mut bench = Bench::new(cuda, "sum", shuffle_text(), n as i64, &[ROWS * n, ROWS])?;
        let a = words(ROWS * n, 1);
        bench.fill(0, &a)?;
        bench.run()?;
        expect(format!("row sums of {n}"), row_sums(&a, n), bench.read(1)?)?;
    }
    Ok(())
}

fn last_block_sum(cuda: &Cuda) -> Result<(), ProbeError> {
    let n = 50_000;
    let mut bench = Bench::new(cuda, "total", last_block_text(), n as i64, &[n, 1])?;
    // The second round fails unless the kernel left the ticket zero, which nobody fills again.
    for seed in [2, 3] {
        let a = words(n, seed);
        bench.fill(0, &a)?;
        bench.run()?;
        expect("the total", row_sums(&a, n), bench.read(1)?)?;
    }
    Ok(())
}

/// Calls on several streams at once, without workspaces: each stream has counters of its own, which every call leaves zero.
fn counters_of_streams(cuda: &Cuda) -> Result<(), ProbeError> {
    const STREAMS: usize = 4;
    const CALLS: usize = 25;
    let n = 50_000;
    let streams: Vec<Stream> =
        (0..STREAMS).map(|_| Stream::new(cuda.context())).collect::<Result<_, CudaError>>()?;
    let total = |seed| -> Result<(Bench, Vec<u32>), ProbeError> {
        let mut bench = Bench::new(cuda, "total", last_block_text(), n as i64, &[n, 1])?;
        let a = words(n, seed);
        bench.fill(0, &a)?;
        Ok((bench, row_sums(&a, n)))
    };
    // One executable on all streams, next to another one.
    let (first, second) = (total(11)?, total(12)?);
    for _ in 0..CALLS {
        for stream in &streams {
            first.0.put(stream, None)?;
            second.0.put(stream, None)?;
        }
    }
    for stream in &streams {
        stream.synchronize()?;
    }
    for (bench, wanted) in [first, second] {
        expect("the total on several streams", wanted, bench.read(1)?)?;
    }
    Ok(())
}

/// Calls one after another without waiting, then the same from a graph: a launch that begins early must neither read
/// what the one before has not written nor overtake the next call.
fn overlapping_launches(cuda: &Cuda) -> Result<(), ProbeError> {
    const CALLS: u32 = 50;
    let n = 1 << 20;
    let mut bench = Bench::new(cuda, "count", overlapping_text(), n as i64, &[n, 1])?;
    let workspace = bench.executable.reserve(&bench.bindings)?;
    let (graph, ()) = cuda.stream().capture(|stream| bench.put(stream, Some(&workspace)))?;
    for seed in [9, 10] {
        let a = words(n, seed);
        bench.fill(0, &a)?;
        for call in 0..CALLS {
            if call % 2 == 0 {
                bench.put(cuda.stream(), Some(&workspace))?;
            } else {
                // SAFETY: the buffers and the workspace are alive and the stream is waited for.
                unsafe { graph.launch(cuda.stream().raw()) }?;
            }
        }
        cuda.stream().synchronize()?;
        expect("the total of two launches", row_sums(&a, n), bench.read(1)?)?;
    }
    Ok(())
}

fn graph_capture(cuda: &Cuda) -> Result<(), ProbeError> {
    let n = 100;
    let mut bench = Bench::new(cuda, "sum", shuffle_text(), n as i64, &[ROWS * n, ROWS])?;
    bench.fill(0, &words(ROWS * n, 0))?;
    let (graph, ()) = cuda.stream().capture(|stream| {
        let refused = matches!(stream.synchronize(), Err(CudaError::CaptureForbids { .. }));
        expect("waiting during a capture is refused", true, refused)?;
        bench.put(stream, None)
    })?;
    for seed in [4, 5] {
        let a = words(ROWS * n, seed);
        bench.fill(0, &a)?;
        // SAFETY: the buffers are alive and the stream is waited for.
        unsafe { graph.launch(cuda.stream().raw()) }?;
        cuda.stream().synchronize()?;
        expect("row sums of a graph", row_sums(&a, n), bench.read(1)?)?;
    }
    Ok(())
}

fn graph_capture_with_workspace(cuda: &Cuda) -> Result<(), ProbeError> {
    let n = 1000;
    let mut bench = Bench::new(cuda, "total", last_block_text(), n as i64, &[n, 1])?;
    let workspace = bench.executable.reserve(&bench.bindings)?;
    let (graph, ()) = cuda.stream().capture(|stream| {
        let refused = bench.put(stream, None);
        let is_typed = matches!(
            refused,
            Err(ProbeError::Runtime(RuntimeError::Cuda(CudaError::CaptureNeedsWorkspace { .. })))
        );
        expect("a capture without a workspace is refused", true, is_typed)?;
        bench.put(stream, Some(&workspace))
    })?;
    for seed in [6, 7] {
        let a = words(n, seed);
        bench.fill(0, &a)?;
        // SAFETY: the buffers and the workspace are alive and the stream is waited for.
        unsafe { graph.launch(cuda.stream().raw()) }?;
        cuda.stream().synchronize()?;
        expect("the total of a graph", row_sums(&a, n), bench.read(1)?)?;
    }
    Ok(())
}

fn large_shared_memory(cuda: &Cuda) -> Result<(), ProbeError> {
    let n = cuda.facts().limits.shared_bytes_opt_in as usize / 4;
    let mut bench = Bench::new(cuda, "turn", shared_text(), n as i64, &[n; 2])?;
    let a = words(n, 8);
    bench.fill(0, &a)?;
    bench.run()?;
    expect("a row through shared memory", a.into_iter().rev().collect(), bench.read(1)?)?;
    bench.bindings = bench.bindings.keys().map(|id| (*id, n as i64 + 1)).collect();
    let refused = matches!(
        bench.run(),
        Err(ProbeError::Runtime(RuntimeError::Cuda(CudaError::Launch(super::LaunchError::Shared { .. }))))
    );
    expect("more shared memory than there is is refused", true, refused)
}

fn empty_grid(cuda: &Cuda) -> Result<(), ProbeError> {
    Bench::new(cuda, "add", add_text(), 0, &[0; 3])?.run()
}

fn events(cuda: &Cuda) -> Result<(), ProbeError> {
    let n = 1 << 20;
    let bench = Bench::new(cuda, "add", add_text(), n as i64, &[n; 3])?;
    let other = Stream::new(cuda.context())?;
    let (start, end) = (Event::new(cuda.context())?, Event::new(cuda.context())?);
    // Something to add, also for tools that look for reads of unwritten memory.
    let mut bench = bench;
    bench.fill(0, &vec![0; n])?;
    bench.fill(1, &vec![0; n])?;
    // SAFETY: both streams are alive.
    unsafe {
        start.record(cuda.stream().raw())?;
        bench.put(cuda.stream(), None)?;
        end.record(cuda.stream().raw())?;
    }
    other.wait(&end)?;
    other.synchronize()?;
    end.synchronize()?;
    let milliseconds = end.milliseconds_since(&start)?;
    expect("a launch takes more than no time", true, milliseconds > 0.0)
}
