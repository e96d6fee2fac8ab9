//! Timing of launches by the device's own clock, next to a copy of as many bytes and a read of them.
//!
//! Before each launch a block of memory larger than the second-level cache is written, so that no launch finds its
//! input there; that write also keeps the device busy while the launch is put on the stream, so that the two events
//! around it see the device's time and not the host's. Copy and read are timed in turn with the launches.
//!
//! A library whose streams take no events can only be timed from the host, over calls that are queued;
//! launches are timed that way too, so that such a library is compared with what was timed as it was.

use std::time::Instant;

use coulis_ir::args::Bindings;

use crate::cuda::bare_read::{BareRead, WORD};
use crate::cuda::driver::DevicePtr;
use crate::cuda::error::CudaError;
use crate::cuda::executable::CudaExecutable;
use crate::cuda::memory::{DeviceMemory, Workspace};
use crate::cuda::stream::{Event, Stream};
use crate::device::{DeviceTimes, QUEUED, TimeAmount};
use crate::error::RuntimeError;
use crate::median::median;

/// Bytes that are written before a launch: more than any second-level cache holds.
const FLUSH_BYTES: usize = 256 << 20;
/// Launches before any is timed.
const WARM_UP: usize = 3;
/// Fewest launches that are timed, and most.
const FEWEST: usize = 5;
const MOST: usize = 1000;
/// How often the launches that are put on the stream at once are timed; the one in the middle counts.
const TURNS_QUEUED: usize = 5;

impl CudaExecutable {
    /// Times launches over arrays that are on the device, and copies that move and reads of `bytes` bytes in
    /// all. The twins are the same arrays again, what is read of them in other memory.
    ///
    /// # Safety
    /// As for [`CudaExecutable::launch_on`], with the buffers as well as with their twins.
    pub(crate) unsafe fn time_on_device(
        &self,
        bindings: &Bindings,
        buffers: &[DevicePtr],
        twins: Option<&[DevicePtr]>,
        amount: &TimeAmount,
    ) -> Result<DeviceTimes, RuntimeError> {
        let (context, stream) = (self.context(), self.stream());
        let workspace = self.reserve(bindings)?;
        let mut flush = DeviceMemory::new(context, FLUSH_BYTES)?;
        let (start, end) = (Event::new(context)?, Event::new(context)?);
        // What is read, the first half of which is what is copied to the second.
        let words = amount.bytes.div_ceil(2 * WORD as u64).max(1) * 2;
        let bytes = usize::try_from(words).unwrap_or(usize::MAX).saturating_mul(WORD);
        let (mut memory, met) = (DeviceMemory::new(context, bytes)?, DeviceMemory::new(context, WORD)?);
        memory.fill(stream, 0x5a)?;
        let bare = BareRead::new(self.shared(), i32::try_from(words).unwrap_or(i32::MAX))?;
        let mut one = |work: &mut dyn FnMut() -> Result<(), RuntimeError>| -> Result<f64, RuntimeError> {
            flush.fill(stream, 0)?;
            // SAFETY: the stream is the device's own and lives as long.
            unsafe { start.record(stream.raw()) }?;
            work()?;
            // SAFETY: as above.
            unsafe { end.record(stream.raw()) }?;
            end.synchronize()?;
            Ok(f64::from(end.milliseconds_since(&start)?) / 1e3)
        };
        let mut launch = || -> Result<(), RuntimeError> {
            // SAFETY: the caller's promise; the workspace is this call's.
            unsafe { self.launch_on(stream.raw(), bindings, buffers, Some(&workspace)) }
        };
        let mut copy = || -> Result<(), RuntimeError> { Ok(first_half_copied(stream, &memory)?) };
        // SAFETY: the memory holds the words, both are alive, and freeing them waits for the device.
        let mut read = || unsafe { bare.launch(memory.pointer(), met.pointer()) };
        for _ in 0..WARM_UP {
            one(&mut launch)?;
            one(&mut copy)?;
            one(&mut read)?;
        }
        let once = one(&mut launch)? + one(&mut copy)? + one(&mut read)? + 150e-6;
        let n = match amount.launches {
            Some(n) => n.max(1),
            None => ((amount.seconds / once) as usize).clamp(FEWEST, MOST),
        };
        let [mut launches, mut copies, mut reads] = [(); 3].map(|()| Vec::with_capacity(n));
        for _ in 0..n {
            launches.push(one(&mut launch)?);
            copies.push(one(&mut copy)?);
            reads.push(one(&mut read)?);
        }
        drop(flush);
        let queued = match twins {
            None => None,
            Some(twins) => {
                let mut samples = Vec::with_capacity(TURNS_QUEUED);
                for _ in 0..TURNS_QUEUED {
                    stream.synchronize()?;
                    let start = Instant::now();
                    for turn in 0..QUEUED {
                        let turned = if turn % 2 == 0 { buffers } else { twins };
                        // SAFETY: the caller's promise; the workspace is this call's.
                        unsafe { self.launch_on(stream.raw(), bindings, turned, Some(&workspace)) }?;
                    }
                    stream.synchronize()?;
                    samples.push(start.elapsed().as_secs_f64() / QUEUED as f64);
                }
                Some(median(samples))
            }
        };
        let workspace: &Workspace = &workspace;
        Ok(DeviceTimes {
            launches,
            copy: median(copies),
            read: median(reads),
            queued,
            workspace_bytes: workspace.bytes(),
        })
    }
}

/// Puts a copy of the first half of a piece of memory to its second half on the stream.
fn first_half_copied(stream: &Stream, memory: &DeviceMemory) -> Result<(), CudaError> {
    let half = memory.bytes() / 2;
    // SAFETY: both halves are alive and apart, and freeing them waits for the device.
    unsafe {
        let entered = memory.context().enter()?;
        let to = memory.pointer() + half as DevicePtr;
        entered.copy_on_device(to, memory.pointer(), half, stream.handle())
    }
}
