//! Kernels on a GPU, ready to run: on the caller's stream, in a captured graph, or from host memory.

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use coulis_codegen::Module;
use coulis_ir::args::Bindings;

use crate::cuda::context::{Context, Entered};
use crate::cuda::counters::Counters;
use crate::cuda::device::Shared;
use crate::cuda::driver::{DevicePtr, Handle, LaunchAttribute, LaunchConfig};
use crate::cuda::error::CudaError;
use crate::cuda::memory::{DeviceMemory, Temporary, Workspace};
use crate::cuda::plan::{Arg, Launch, LaunchError, Plan, plan};
use crate::cuda::stream::{RawStream, Stream};
use crate::device::{DeviceTimes, Executable, Info, Launched, Parameter, Span, TimeAmount};
use crate::error::RuntimeError;

/// `CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES`: shared memory of arrays declared in the text.
const SHARED_SIZE: i32 = 1;
/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const MAX_DYNAMIC_SHARED_SIZE: i32 = 8;

/// The functions of a module's cubins on one device. They stay loaded to the end of the process, since work
/// that uses it may still be on a stream.
#[derive(Debug)]
pub(crate) struct LoadedModule {
    functions: Vec<Function>,
}

#[derive(Debug)]
struct Function {
    raw: Handle,
    /// Shared memory of arrays declared in the text.
    static_bytes: u32,
    /// Shared memory sized at launch that the function is allowed so far. Two threads that raise it take turns, so that
    /// what is said here is what the driver was told last.
    allowed_bytes: Mutex<u32>,
}

// SAFETY: functions may be launched from any thread.
unsafe impl Send for LoadedModule {}
// SAFETY: as above.
unsafe impl Sync for LoadedModule {}

impl LoadedModule {
    /// Loads cubins, one a kernel of `module` or one for all of them, and looks up the functions.
    pub(crate) fn load(
        context: &Context,
        cubins: &[Vec<u8>],
        module: &Module,
    ) -> Result<LoadedModule, CudaError> {
        let entered = context.enter()?;
        let mut functions = Vec::with_capacity(module.kernels.len());
        let mut raw = ptr::null_mut();
        for (nth, kernel) in module.kernels.iter().enumerate() {
            if let Some(cubin) = cubins.get(nth) {
                // SAFETY: a cubin says its own length; this one comes from NVRTC, or from the cache, which vouches for it.
                unsafe { entered.module_load(&mut raw, cubin.as_ptr().cast()) }?;
            }
            let name = CString::new(kernel.name.as_str())
                .map_err(|_| CudaError::ZeroByte { what: "a function's name" })?;
            let (mut function, mut static_bytes) = (ptr::null_mut(), 0);
            // SAFETY: the module is loaded; writes a pointer and an integer.
            unsafe {
                entered.module_function(&mut function, raw, name.as_ptr())?;
                entered.function_get(&mut static_bytes, SHARED_SIZE, function)?;
            }
            let static_bytes = u32::try_from(static_bytes).unwrap_or(0);
            functions.push(Function { raw: function, static_bytes, allowed_bytes: Mutex::new(0) });
        }
        Ok(LoadedModule { functions })
    }
}

impl Function {
    /// Lets the function have that much shared memory sized at launch, where it is more than any block gets.
    fn allow(&self, entered: &Entered, wanted: u32, usual: u32) -> Result<(), CudaError> {
        if self.static_bytes.saturating_add(wanted) <= usual {
            return Ok(());
        }
        let mut allowed = self.allowed_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted <= *allowed {
            return Ok(());
        }
        let value = i32::try_from(wanted).unwrap_or(i32::MAX);
        // SAFETY: the function is loaded.
        unsafe { entered.function_set(self.raw, MAX_DYNAMIC_SHARED_SIZE, value) }?;
        *allowed = wanted;
        Ok(())
    }
}

/// A kernel on a GPU.
pub struct CudaExecutable {
    info: Info,
    shared: Arc<Shared>,
    module: Module,
    parameters: Vec<Parameter>,
    loaded: Arc<LoadedModule>,
    /// Plans of the sizes that were launched last.
    recent: Mutex<Vec<(Bindings, Arc<Plan>)>>,
    counters: Counters,
}

/// Sizes whose plans an executable keeps.
const RECENT: usize = 8;

impl CudaExecutable {
    /// # Safety
    /// As for [`crate::cuda::Cuda::load`].
    pub(crate) unsafe fn new(
        info: Info,
        shared: Arc<Shared>,
        module: Module,
        parameters: Vec<Parameter>,
        loaded: Arc<LoadedModule>,
    ) -> CudaExecutable {
        CudaExecutable {
            info,
            shared,
            module,
            parameters,
            loaded,
            recent: Mutex::default(),
            counters: Counters::default(),
        }
    }

    /// The context that its memory and streams belong to.
    pub fn context(&self) -> &Arc<Context> {
        &self.shared.context
    }

    /// What all executables of the device share.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The stream of the device.
    pub(crate) fn stream(&self) -> &Stream {
        &self.shared.stream
    }

    /// What a call launches.
    pub fn plan(&self, bindings: &Bindings) -> Result<Plan, LaunchError> {
        let limits = &self.shared.context.facts().limits;
        plan(&self.info.kernel, &self.module, self.parameters.len(), bindings, limits)
    }

    /// The same, planned once for the sizes that come again and again.
    fn recent_plan(&self, bindings: &Bindings) -> Result<Arc<Plan>, LaunchError> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        match recent.iter().position(|(known, _)| known == bindings) {
            Some(at) => recent[..=at].rotate_right(1),
            None => {
                let plan = Arc::new(self.plan(bindings)?);
                recent.truncate(RECENT - 1);
                recent.insert(0, (bindings.clone(), plan));
            }
        }
        Ok(recent[0].1.clone())
    }

    /// Memory for the temporaries of a call: needed to launch while a graph is captured.
    pub fn reserve(&self, bindings: &Bindings) -> Result<Workspace, CudaError> {
        let plan = self.plan(bindings)?;
        Workspace::new(&self.shared.stream, plan.workspace_bytes, plan.counter_bytes)
    }

    /// Puts one call of the kernel on a stream and does not wait. Nothing is allocated where a workspace is given, or
    /// where the kernel has no temporaries; such a call may be captured into a graph. `buffers` hold the addresses of
    /// elements `[0, ..., 0]`. Faults inside a kernel show when the stream is waited for.
    ///
    /// # Safety
    /// As for [`Executable::launch`], until the work is done; the addresses are the device's; the stream is alive and
    /// belongs to the device's primary context; no other work uses the workspace meanwhile.
    pub unsafe fn launch_on(
        &self,
        stream: RawStream,
        bindings: &Bindings,
        buffers: &[DevicePtr],
        workspace: Option<&Workspace>,
    ) -> Result<(), RuntimeError> {
        let first: Vec<*mut u8> =
            buffers.iter().map(|&address| ptr::without_provenance_mut(address as usize)).collect();
        let data = Parameter::data_pointers(&self.info.kernel, &self.parameters, &first)?;
        let plan = self.recent_plan(bindings).map_err(CudaError::from)?;
        if plan.launches.is_empty() {
            return Ok(());
        }
        self.check_alignment(&data).map_err(CudaError::from)?;
        let context = &self.shared.context;
        let entered = context.enter()?;
        let mut owned = None;
        // Held until the launches are on the stream.
        let mut kept = None;
        let needed = plan.workspace_bytes.saturating_add(plan.counter_bytes);
        let (base, counters) = match workspace {
            Some(workspace) => self.room(workspace, &plan)?,
            None if needed == 0 => (0, 0),
            None => {
                // SAFETY: the caller vouches for the stream.
                if unsafe { stream.is_capturing(context) }? {
                    let kernel = self.info.kernel.clone();
                    return Err(CudaError::CaptureNeedsWorkspace { kernel, bytes: needed }.into());
                }
                let known = match plan.counter_bytes {
                    0 => Some(0),
                    bytes => {
                        // SAFETY: as above.
                        kept = unsafe { self.counters.on(context, stream, bytes) }?;
                        kept.as_ref().map(|memory| memory.pointer())
                    }
                };
                let bytes = if known.is_some() { plan.workspace_bytes } else { needed };
                let base = if bytes > 0 {
                    // SAFETY: as above; given back in the order of the stream when it is dropped.
                    owned.insert(unsafe { Temporary::new(context, stream, bytes) }?).pointer()
                } else {
                    0
                };
                let counters = base.wrapping_add(plan.workspace_bytes);
                if known.is_none() {
                    let bytes = usize::try_from(plan.counter_bytes).unwrap_or(usize::MAX);
                    // SAFETY: they are the end of what was just taken.
                    unsafe { entered.fill(counters, 0, bytes, stream.handle()) }?;
                }
                (base, known.unwrap_or(counters))
            }
        };
        for (offset, bytes) in &plan.zeroed {
            let bytes = usize::try_from(*bytes).unwrap_or(usize::MAX);
            // SAFETY: the plan keeps temporaries inside of the workspace.
            unsafe { entered.fill(base.wrapping_add(*offset), 0, bytes, stream.handle()) }?;
        }
        for (nth, launch) in plan.launches.iter().enumerate() {
            let overlaps = nth > 0 && context.overlaps_launches();
            // SAFETY: the caller's promise, and `new`'s.
            let put = unsafe { self.put(&entered, launch, &data, (base, counters), stream, overlaps) };
            if let Err(error) = put {
                // SAFETY: the caller vouches for the stream.
                unsafe { self.counters.forget(context, stream) };
                return Err(error.into());
            }
        }
        drop(kept);
        Ok(())
    }

    fn room(&self, workspace: &Workspace, plan: &Plan) -> Result<(DevicePtr, DevicePtr), CudaError> {
        let sizes =
            [(plan.workspace_bytes, workspace.bytes()), (plan.counter_bytes, workspace.counter_bytes())];
        if let Some((wanted, found)) = sizes.into_iter().find(|(wanted, found)| found < wanted) {
            let kernel = self.info.kernel.clone();
            return Err(CudaError::WorkspaceTooSmall { kernel, wanted, found });
        }
        Ok(workspace.pointers().into())
    }

    fn check_alignment(&self, data: &[*mut c_void]) -> Result<(), LaunchError> {
        for ((parameter, pointer), &bytes) in self.parameters.iter().zip(data).zip(&self.module.alignments) {
            if bytes != 0 && !pointer.addr().is_multiple_of(bytes as usize) {
                let (kernel, buffer) = (self.info.kernel.clone(), parameter.name.clone());
                return Err(LaunchError::Misaligned { kernel, buffer, bytes });
            }
        }
        Ok(())
    }

    /// `overlaps`: the launch may take its place on the device while the one before runs. It waits for that one by itself.
    ///
    /// # Safety
    /// The function of the launch takes these arguments, and the memory behind them is valid until it is done.
    unsafe fn put(
        &self,
        entered: &Entered,
        launch: &Launch,
        data: &[*mut c_void],
        (workspace, counters): (DevicePtr, DevicePtr),
        stream: RawStream,
        overlaps: bool,
    ) -> Result<(), CudaError> {
        let no_such = |what, index| LaunchError::NoSuch { kernel: self.info.kernel.clone(), what, index };
        let function =
            self.loaded.functions.get(launch.kernel).ok_or_else(|| no_such("function", launch.kernel))?;
        let usual = self.shared.context.facts().limits.shared_bytes;
        function.allow(entered, launch.shared_bytes, usual)?;
        let mut values = Vec::with_capacity(launch.args.len());
        for arg in &launch.args {
            values.push(match *arg {
                Arg::Parameter(index) => {
                    let pointer = data.get(index).ok_or_else(|| no_such("parameter", index))?;
                    (pointer.addr() as u64).to_ne_bytes()
                }
                Arg::Workspace(offset) => workspace.wrapping_add(offset).to_ne_bytes(),
                Arg::Counters(offset) => counters.wrapping_add(offset).to_ne_bytes(),
                Arg::Scalar(bytes) => bytes,
            });
        }
        let mut pointers: Vec<*mut c_void> =
            values.iter_mut().map(|value| value.as_mut_ptr().cast()).collect();
        if overlaps {
            let mut attribute = LaunchAttribute::overlapping();
            let config = LaunchConfig {
                grid: launch.grid,
                block: launch.block,
                shared_bytes: launch.shared_bytes,
                stream: stream.handle(),
                attributes: &mut attribute,
                n_attributes: 1,
            };
            // SAFETY: the caller's promise; the driver reads values and attributes before it returns.
            return unsafe {
                entered.launch_with(&config, function.raw, pointers.as_mut_ptr(), ptr::null_mut())
            };
        }
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (launch.grid, launch.block);
        // SAFETY: the caller's promise; the driver reads the values before it returns.
        unsafe {
            entered.launch(
                function.raw,
                grid_x,
                grid_y,
                grid_z,
                block_x,
                block_y,
                block_z,
                launch.shared_bytes,
                stream.handle(),
                pointers.as_mut_ptr(),
                ptr::null_mut(),
            )
        }
    }

    /// Memory of the device for an array, and where its first byte is to lie there: memory from the device is aligned to 256
    /// bytes, and so is the first element, wherever the host has it.
    fn room_for(&self, span: &Span) -> Result<(Temporary<'_>, DevicePtr), CudaError> {
        let lead = span.before.next_multiple_of(256) - span.before;
        let bytes = (lead + span.bytes()) as u64;
        // SAFETY: the stream lives as long as the device.
        let room = unsafe { Temporary::new(&self.shared.context, self.shared.stream.raw(), bytes) }?;
        let begin = room.pointer().wrapping_add(lead as u64);
        Ok((room, begin))
    }

    /// The array again, in other memory of the device.
    fn twin_of(
        &self,
        entered: &Entered,
        span: &Span,
        begin: DevicePtr,
    ) -> Result<(Temporary<'_>, DevicePtr), CudaError> {
        let (room, twin) = self.room_for(span)?;
        if span.bytes() > 0 {
            // SAFETY: both hold as many bytes, which are written or read in the order of the stream.
            unsafe { entered.copy_on_device(twin, begin, span.bytes(), self.shared.stream.handle()) }?;
        }
        Ok((room, twin))
    }

    /// Copies the arrays to the device, launches, and copies back what may be written; does not wait, unless launches
    /// are then timed.
    ///
    /// # Safety
    /// As for [`Executable::launch_on_host`], until the stream was waited for.
    unsafe fn round_trip(
        &self,
        bindings: &Bindings,
        spans: &[Span],
        timed: Option<&TimeAmount>,
    ) -> Result<Option<DeviceTimes>, RuntimeError> {
        let (context, stream) = (&self.shared.context, &self.shared.stream);
        let entered = context.enter()?;
        let mut copies = Vec::with_capacity(spans.len());
        for span in spans {
            let (copy, begin) = self.room_for(span)?;
            if span.bytes() > 0 {
                let from = span.first.wrapping_sub(span.before);
                // SAFETY: the caller vouches for the bytes of the span; the caller waits for the stream.
                unsafe { entered.copy_to_device(begin, from.cast(), span.bytes(), stream.handle()) }?;
            }
            copies.push((copy, begin));
        }
        let at_first = |(begin, span): (DevicePtr, &Span)| begin.wrapping_add(span.before as u64);
        let begins = copies.iter().map(|(_, begin)| *begin);
        let first: Vec<DevicePtr> = begins.clone().zip(spans).map(at_first).collect();
        // SAFETY: the copies hold what the caller vouches for, and are freed in the order of the stream.
        let launched = unsafe { self.launch_on(stream.raw(), bindings, &first, None) };
        let mut times = None;
        if launched.is_ok() {
            for ((_, begin), span) in copies.iter().zip(spans).filter(|(_, span)| span.is_written) {
                if span.bytes() > 0 {
                    let to = span.first.wrapping_sub(span.before);
                    // SAFETY: as above.
                    unsafe { entered.copy_to_host(to.cast(), *begin, span.bytes(), stream.handle()) }?;
                }
            }
            if let Some(amount) = timed {
                let twin = |(span, begin): (&Span, DevicePtr)| match span.is_written {
                    true => Ok((None, begin)),
                    false => self.twin_of(&entered, span, begin).map(|(twin, begin)| (Some(twin), begin)),
                };
                // Without memory for them there is one way of timing less.
                let twins: Option<Vec<_>> =
                    spans.iter().zip(begins).map(twin).collect::<Result<_, CudaError>>().ok();
                let begins = twins.iter().flatten().map(|(_, begin)| *begin);
                let turned: Vec<DevicePtr> = begins.zip(spans).map(at_first).collect();
                let turned = twins.is_some().then_some(turned.as_slice());
                // SAFETY: as for the first launch; the twins hold the same.
                times = Some(unsafe { self.time_on_device(bindings, &first, turned, amount) }?);
            }
        }
        launched.map(|()| times)
    }
}

impl Executable for CudaExecutable {
    fn info(&self) -> &Info {
        &self.info
    }

    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    unsafe fn launch(&self, bindings: &Bindings, buffers: &[*mut u8]) -> Launched {
        let addresses: Vec<DevicePtr> = buffers.iter().map(|pointer| pointer.addr() as DevicePtr).collect();
        let stream = &self.shared.stream;
        // SAFETY: the caller's promise; the work is waited for.
        unsafe { self.launch_on(stream.raw(), bindings, &addresses, None) }?;
        stream.synchronize()?;
        Ok(None)
    }

    unsafe fn launch_on_host(&self, bindings: &Bindings, spans: &[Span]) -> Launched {
        // SAFETY: the caller's promise.
        let outcome = unsafe { self.round_trip(bindings, spans, None) };
        // Also where something failed: copies of the caller's memory may be under way.
        let done = self.shared.stream.synchronize();
        outcome?;
        done?;
        Ok(None)
    }

    unsafe fn launch_on_stream(&self, bindings: &Bindings, buffers: &[*mut u8], stream: usize) -> Launched {
        let addresses: Vec<DevicePtr> = buffers.iter().map(|pointer| pointer.addr() as DevicePtr).collect();
        // SAFETY: the caller's promise.
        unsafe { self.launch_on(RawStream(stream), bindings, &addresses, None) }?;
        Ok(None)
    }

    unsafe fn wait_for_stream(&self, stream: usize) -> Result<(), RuntimeError> {
        // SAFETY: the caller's promise.
        Ok(unsafe { self.shared.context.enter()?.stream_synchronize(RawStream(stream).handle()) }?)
    }

    fn allocate(&self, bytes: usize) -> Result<Option<DeviceMemory>, RuntimeError> {
        Ok(Some(DeviceMemory::new(&self.shared.context, bytes)?))
    }

    unsafe fn time_on_host(
        &self,
        bindings: &Bindings,
        spans: &[Span],
        amount: &TimeAmount,
    ) -> Result<Option<DeviceTimes>, RuntimeError> {
        // SAFETY: the caller's promise.
        let outcome = unsafe { self.round_trip(bindings, spans, Some(amount)) };
        let done = self.shared.stream.synchronize();
        let times = outcome?;
        done?;
        Ok(times)
    }

    fn grid(&self, bindings: &Bindings) -> Option<([u32; 3], [u32; 3])> {
        self.plan(bindings).ok()?.launches.first().map(|launch| (launch.grid, launch.block))
    }

    fn source(&self) -> Option<&str> {
        Some(&self.module.text)
    }
}
