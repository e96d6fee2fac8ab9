//! The bare read: a kernel that reads memory from end to end and does nothing with it.
//!
//! What a copy is cannot tell how fast a read may be: it ends with part of what it wrote in the second-level cache, which a
//! read has no use for. So launches are timed next to this one too.

use std::sync::Arc;

use coulis_codegen::Module;
use coulis_ir::args::Bindings;
use coulis_ir::{DType, Expr};

use crate::cuda::by_hand::{Text, size, text};
use crate::cuda::device::{NAME, Shared};
use crate::cuda::driver::DevicePtr;
use crate::cuda::error::CudaError;
use crate::cuda::executable::CudaExecutable;
use crate::device::Info;
use crate::error::RuntimeError;

/// Bytes of an access.
pub(crate) const WORD: usize = 16;
/// Threads of a block.
const THREADS: i32 = 256;
/// Accesses of a thread, all under way at once.
const IN_FLIGHT: i32 = 8;

/// Blocks in the order of memory. The words meet in one number, which nothing but chance makes the one that is stored.
const TEXT: &str = r#"extern "C" __global__ void __launch_bounds__(256) read_kernel(
    const uint4* a, unsigned int* met, int n) {
  const uint4 none = {0u, 0u, 0u, 0u};
  uint4 words[8];
  long long first = (long long)blockIdx.x * 2048 + threadIdx.x;
  #pragma unroll
  for (int k = 0; k < 8; ++k) {
    words[k] = first + k * 256 < n ? a[first + k * 256] : none;
  }
  unsigned int all = 0u;
  #pragma unroll
  for (int k = 0; k < 8; ++k) {
    all ^= words[k].x ^ words[k].y ^ words[k].z ^ words[k].w;
  }
  if (all == 0x9e3779b9u) {
    met[0] = all;
  }
}
"#;

/// The kernel on a device.
pub(crate) struct BareRead {
    executable: CudaExecutable,
    bindings: Bindings,
}

impl BareRead {
    /// Compiles and loads it for `n_words` words of [`WORD`] bytes, 2^31 - 1 at most.
    pub(crate) fn new(shared: &Arc<Shared>, n_words: i32) -> Result<BareRead, CudaError> {
        let Text { n, module, parameters } = module_text();
        let (loaded, origin) = shared.module("read", &module)?;
        let info = Info { kernel: "read".to_owned(), device: NAME, origin, seconds: 0.0 };
        // SAFETY: the text takes the arguments that are given with it, and reads `n` words of its first
        // buffer alone.
        let executable = unsafe { CudaExecutable::new(info, shared.clone(), module, parameters, loaded) };
        Ok(BareRead { executable, bindings: Bindings::from([(n.id(), n_words.into())]) })
    }

    /// Puts one read on the device's stream.
    ///
    /// # Safety
    /// As for [`CudaExecutable::launch_on`]: as many words as were said lie from `from` on, and four bytes at `met`.
    pub(crate) unsafe fn launch(&self, from: DevicePtr, met: DevicePtr) -> Result<(), RuntimeError> {
        let stream = self.executable.stream().raw();
        // SAFETY: the caller's promise.
        unsafe { self.executable.launch_on(stream, &self.bindings, &[from, met], None) }
    }
}

fn module_text() -> Text {
    let n = size();
    let words = THREADS * IN_FLIGHT;
    let grid = (n.expr() + Expr::int(words - 1)).floordiv(Expr::int(words));
    let mut text = text("read", TEXT, &[DType::U32; 2], grid, THREADS, n);
    text.module.alignments[0] = WORD as u32;
    text
}

/// Its module.
pub(crate) fn module() -> Module {
    module_text().module
}
