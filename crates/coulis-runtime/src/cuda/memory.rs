//! Device memory: owned, and temporary in the order of a stream.

use std::sync::Arc;

use crate::cuda::context::Context;
use crate::cuda::driver::DevicePtr;
use crate::cuda::error::CudaError;
use crate::cuda::stream::{RawStream, Stream};

/// Device memory of its own.
#[derive(Debug)]
pub struct DeviceMemory {
    context: Arc<Context>,
    pointer: DevicePtr,
    bytes: usize,
}

impl DeviceMemory {
    /// Allocates; what it holds is unwritten.
    pub fn new(context: &Arc<Context>, bytes: usize) -> Result<DeviceMemory, CudaError> {
        let mut pointer = 0;
        // SAFETY: writes one address. The driver refuses 0 bytes.
        unsafe { context.enter()?.allocate(&mut pointer, bytes.max(1)) }?;
        Ok(DeviceMemory { context: context.clone(), pointer, bytes })
    }

    /// Its address.
    pub fn pointer(&self) -> DevicePtr {
        self.pointer
    }

    /// The context that it belongs to.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn check(&self, begin: usize, length: usize) -> Result<DevicePtr, CudaError> {
        let end = begin.saturating_add(length);
        if end > self.bytes {
            return Err(CudaError::CopyOutside { begin, end, held: self.bytes });
        }
        Ok(self.pointer.wrapping_add(begin as DevicePtr))
    }

    /// Copies `content` to byte `begin` and on, and waits.
    pub fn upload(&mut self, stream: &Stream, begin: usize, content: &[u8]) -> Result<(), CudaError> {
        let to = self.check(begin, content.len())?;
        if content.is_empty() {
            return Ok(());
        }
        // SAFETY: both ranges are alive until the copy is done, which is waited for.
        unsafe {
            let entered = self.context.enter()?;
            entered.copy_to_device(to, content.as_ptr().cast(), content.len(), stream.handle())?;
        }
        stream.synchronize()
    }

    /// Copies bytes from `begin` on to `content`, and waits.
    pub fn download(&self, stream: &Stream, begin: usize, content: &mut [u8]) -> Result<(), CudaError> {
        let from = self.check(begin, content.len())?;
        if content.is_empty() {
            return Ok(());
        }
        // SAFETY: both ranges are alive until the copy is done, which is waited for.
        unsafe {
            let entered = self.context.enter()?;
            entered.copy_to_host(content.as_mut_ptr().cast(), from, content.len(), stream.handle())?;
        }
        stream.synchronize()
    }

    /// Sets all bytes, in the order of a stream.
    pub fn fill(&mut self, stream: &Stream, value: u8) -> Result<(), CudaError> {
        if self.bytes == 0 {
            return Ok(());
        }
        // SAFETY: the memory is alive; freeing it waits for the device.
        unsafe { self.context.enter()?.fill(self.pointer, value, self.bytes, stream.handle()) }
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if let Ok(entered) = self.context.enter() {
            // SAFETY: the memory is alive and not used again; the call waits for work that uses it.
            let _ = unsafe { entered.free(self.pointer) };
        }
    }
}

/// Memory for the temporaries of launches, owned by the caller: the way to launch while a graph is captured. At most
/// one launch, or one graph, may use it at a time.
#[derive(Debug)]
pub struct Workspace {
    memory: DeviceMemory,
    /// Zero wherever no launch uses it, since launches leave it so.
    counters: DeviceMemory,
}

impl Workspace {
    /// Allocates, on a stream that is not captured.
    pub(crate) fn new(stream: &Stream, bytes: u64, counter_bytes: u64) -> Result<Workspace, CudaError> {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let memory = DeviceMemory::new(stream.context(), size(bytes))?;
        let mut counters = DeviceMemory::new(stream.context(), size(counter_bytes))?;
        if counter_bytes > 0 {
            counters.fill(stream, 0)?;
            stream.synchronize()?;
        }
        Ok(Workspace { memory, counters })
    }

    /// The address of the temporaries, and that of the counters.
    pub(crate) fn pointers(&self) -> [DevicePtr; 2] {
        [self.memory.pointer(), self.counters.pointer()]
    }

    /// Its size, that of its counters aside.
    pub fn bytes(&self) -> u64 {
        self.memory.bytes() as u64
    }

    /// The size of its counters.
    pub(crate) fn counter_bytes(&self) -> u64 {
        self.counters.bytes() as u64
    }
}

/// Memory that is taken from the device's pool and given back in the order of a stream.
#[derive(Debug)]
pub(crate) struct Temporary<'a> {
    context: &'a Context,
    stream: RawStream,
    pointer: DevicePtr,
}

impl<'a> Temporary<'a> {
    /// # Safety
    /// The stream is alive as long as the result.
    pub(crate) unsafe fn new(
        context: &'a Context,
        stream: RawStream,
        bytes: u64,
    ) -> Result<Temporary<'a>, CudaError> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).max(1);
        let pointer = context.allocate_on(stream.handle(), bytes)?;
        Ok(Temporary { context, stream, pointer })
    }

    pub(crate) fn pointer(&self) -> DevicePtr {
        self.pointer
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // SAFETY: what uses the memory is on the stream already, and nothing is put there later.
        let _ = unsafe { self.context.free_on(self.stream.handle(), self.pointer) };
    }
}
