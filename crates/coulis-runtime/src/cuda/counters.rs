//! Counters of streams: memory that is zero before each call of a kernel, because the call before left it so.
//!
//! Work on one stream is done in order, so one piece of memory a stream serves all calls there, and filling it before each
//! would cost a launch. Calls on different streams may run at the same time and have different pieces. Streams are told
//! apart by the number that the driver gives each once a process, not by their handle, which may come again while work of a
//! destroyed stream still runs. A kernel that faults leaves its counters as they are, and with them a context in which
//! nothing runs any more. Where a call could not be put on its stream whole, the stream's counters are filled anew.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cuda::context::Context;
use crate::cuda::error::CudaError;
use crate::cuda::memory::DeviceMemory;
use crate::cuda::stream::RawStream;

/// Streams whose counters are kept; freeing them waits for the device, so that no work loses them.
const MOST: usize = 64;
/// `CU_STREAM_PER_THREAD`: a handle that is another stream in each thread.
const PER_THREAD: usize = 2;

/// The counters of one kernel, by stream.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    of_streams: Mutex<HashMap<u64, Arc<DeviceMemory>>>,
}

impl Counters {
    /// Counters of the stream, all zero when work that is put there now begins; `None` where the driver cannot tell
    /// streams apart. They are to be held until that work is on the stream: another call may have them forgotten
    /// meanwhile, and what frees them waits only for work that is there.
    ///
    /// # Safety
    /// The stream is alive and belongs to the context, and is not captured.
    pub(crate) unsafe fn on(
        &self,
        context: &Arc<Context>,
        stream: RawStream,
        bytes: u64,
    ) -> Result<Option<Arc<DeviceMemory>>, CudaError> {
        // SAFETY: the caller's promise.
        let Some(id) = (unsafe { id_of(context, stream) })? else { return Ok(None) };
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut known = self.known();
        if let Some(memory) = known.get(&id).filter(|memory| memory.bytes() >= bytes) {
            return Ok(Some(memory.clone()));
        }
        let memory = Arc::new(DeviceMemory::new(context, bytes)?);
        // SAFETY: the memory is alive, and freeing it waits for the device; the caller vouches for the stream.
        unsafe { context.enter()?.fill(memory.pointer(), 0, bytes, stream.handle()) }?;
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(id, memory.clone());
        Ok(Some(memory))
    }

    /// Forgets the counters of a stream, as nobody knows what is in them.
    ///
    /// # Safety
    /// The stream is alive.
    pub(crate) unsafe fn forget(&self, context: &Context, stream: RawStream) {
        // SAFETY: the caller's promise.
        if let Ok(Some(id)) = unsafe { id_of(context, stream) } {
            self.known().remove(&id);
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<u64, Arc<DeviceMemory>>> {
        self.of_streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of a stream that no other has.
///
/// # Safety
/// The stream is alive.
unsafe fn id_of(context: &Context, stream: RawStream) -> Result<Option<u64>, CudaError> {
    if stream.0 == PER_THREAD {
        return Ok(None);
    }
    let mut id = 0;
    // SAFETY: writes one number; the caller vouches for the stream.
    match unsafe { context.enter()?.stream_id(stream.handle(), &mut id) } {
        Ok(()) => Ok(Some(id)),
        Err(CudaError::MissingFunction { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
