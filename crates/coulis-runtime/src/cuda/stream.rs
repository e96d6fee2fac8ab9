//! Streams, events and graphs.

use std::ptr;
use std::sync::Arc;

use crate::cuda::context::Context;
use crate::cuda::driver::Handle;
use crate::cuda::error::CudaError;

/// A `CUstream` of the caller; 0 is the default stream. It must belong to the device's primary context and be alive
/// when it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RawStream(pub usize);

impl RawStream {
    /// As the driver takes it.
    pub(crate) fn handle(self) -> Handle {
        ptr::without_provenance_mut(self.0)
    }

    /// Whether what is put on it is captured into a graph.
    ///
    /// # Safety
    /// The stream is alive.
    pub unsafe fn is_capturing(self, context: &Context) -> Result<bool, CudaError> {
        let mut status = 0;
        // SAFETY: writes one integer; the caller vouches for the stream.
        unsafe { context.enter()?.stream_capturing(self.handle(), &mut status) }?;
        Ok(status != 0)
    }
}

/// A stream of its own, which does not wait for the default stream.
#[derive(Debug)]
pub struct Stream {
    context: Arc<Context>,
    raw: Handle,
}

// SAFETY: streams may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// A new stream.
    pub fn new(context: &Arc<Context>) -> Result<Stream, CudaError> {
        const NON_BLOCKING: u32 = 1;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one pointer.
        unsafe { context.enter()?.stream_create(&mut raw, NON_BLOCKING) }?;
        Ok(Stream { context: context.clone(), raw })
    }

    /// The context that it belongs to.
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// As callers name streams.
    pub fn raw(&self) -> RawStream {
        RawStream(self.raw.addr())
    }

    /// As the driver takes it.
    pub(crate) fn handle(&self) -> Handle {
        self.raw
    }

    /// Waits until everything on the stream is done. Faults of kernels show here.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        if self.is_capturing()? {
            return Err(CudaError::CaptureForbids { what: "synchronize" });
        }
        // SAFETY: the stream is alive.
        unsafe { self.context.enter()?.stream_synchronize(self.raw) }
    }

    /// Lets work that is put on this stream later wait for an event.
    pub fn wait(&self, event: &Event) -> Result<(), CudaError> {
        // SAFETY: both are alive.
        unsafe { self.context.enter()?.stream_wait(self.raw, event.raw, 0) }
    }

    /// Whether what is put on it is captured into a graph.
    pub fn is_capturing(&self) -> Result<bool, CudaError> {
        // SAFETY: the stream is alive.
        unsafe { self.raw().is_capturing(&self.context) }
    }

    /// The graph of what `put` puts on this stream; nothing of it is done yet.
    pub fn capture<T, E: From<CudaError>>(
        &self,
        put: impl FnOnce(&Stream) -> Result<T, E>,
    ) -> Result<(Graph, T), E> {
        const THREAD_LOCAL: i32 = 1;
        // SAFETY: the stream is alive and no other owner of it exists.
        unsafe { self.context.enter()?.capture_begin(self.raw, THREAD_LOCAL) }?;
        let outcome = put(self);
        let mut graph = ptr::null_mut();
        let ended = self.context.enter().and_then(|entered| {
            // SAFETY: the capture was begun on this stream.
            unsafe { entered.capture_end(self.raw, &mut graph) }
        });
        let graph = Captured { context: &self.context, raw: graph };
        let value = outcome?;
        ended?;
        Ok((graph.instantiate()?, value))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Ok(entered) = self.context.enter() {
            // SAFETY: the stream is alive and not used again; its work goes on to the end.
            let _ = unsafe { entered.stream_destroy(self.raw) };
        }
    }
}

/// A graph that is not ready to launch; null where a capture failed.
struct Captured<'a> {
    context: &'a Arc<Context>,
    raw: Handle,
}

impl Captured<'_> {
    fn instantiate(self) -> Result<Graph, CudaError> {
        let mut ready = ptr::null_mut();
        // SAFETY: the graph is alive; the result does not need it any more.
        unsafe { self.context.enter()?.graph_instantiate(&mut ready, self.raw, 0) }?;
        Ok(Graph { context: self.context.clone(), ready })
    }
}

impl Drop for Captured<'_> {
    fn drop(&mut self) {
        if self.raw.is_null() {
            return;
        }
        if let Ok(entered) = self.context.enter() {
            // SAFETY: the graph is alive and not used again.
            let _ = unsafe { entered.graph_destroy(self.raw) };
        }
    }
}

/// Work that was captured and is launched as one.
#[derive(Debug)]
pub struct Graph {
    context: Arc<Context>,
    ready: Handle,
}

// SAFETY: graphs may be launched from any thread; the driver orders launches of one graph.
unsafe impl Send for Graph {}

impl Graph {
    /// Puts the work on a stream.
    ///
    /// # Safety
    /// All memory that the captured work uses is alive and not used otherwise until the work is done, and the stream
    /// is alive.
    pub unsafe fn launch(&self, stream: RawStream) -> Result<(), CudaError> {
        // SAFETY: the graph is alive; the caller vouches for the rest.
        unsafe { self.context.enter()?.graph_launch(self.ready, stream.handle()) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Ok(entered) = self.context.enter() {
            // SAFETY: the graph is alive and not launched again; a running launch goes on to its end.
            let _ = unsafe { entered.graph_ready_destroy(self.ready) };
        }
    }
}

/// A point on a stream, with the time at which it was reached.
#[derive(Debug)]
pub struct Event {
    context: Arc<Context>,
    raw: Handle,
}

// SAFETY: events may be used from any thread.
unsafe impl Send for Event {}

impl Event {
    /// A new event.
    pub fn new(context: &Arc<Context>) -> Result<Event, CudaError> {
        let mut raw = ptr::null_mut();
        // SAFETY: writes one pointer.
        unsafe { context.enter()?.event_create(&mut raw, 0) }?;
        Ok(Event { context: context.clone(), raw })
    }

    /// Puts the event on a stream, behind everything that is there.
    ///
    /// # Safety
    /// The stream is alive.
    pub unsafe fn record(&self, stream: RawStream) -> Result<(), CudaError> {
        // SAFETY: the event is alive; the caller vouches for the stream.
        unsafe { self.context.enter()?.event_record(self.raw, stream.handle()) }
    }

    /// Waits until the event is reached.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        // SAFETY: the event is alive.
        unsafe { self.context.enter()?.event_synchronize(self.raw) }
    }

    /// Milliseconds from `start` to this event; both were recorded, and this one is reached.
    pub fn milliseconds_since(&self, start: &Event) -> Result<f32, CudaError> {
        let mut milliseconds = 0.0;
        // SAFETY: writes one number; both events are alive.
        unsafe { self.context.enter()?.event_elapsed(&mut milliseconds, start.raw, self.raw) }?;
        Ok(milliseconds)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(entered) = self.context.enter() {
            // SAFETY: the event is alive and not used again.
            let _ = unsafe { entered.event_destroy(self.raw) };
        }
    }
}
