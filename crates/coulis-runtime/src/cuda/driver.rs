//! The CUDA driver, as far as coulis uses it.
//!
//! Source: CUDA Driver API reference. Functions with a suffix such as `_v2` are the ones that the header's plain names
//! stand for.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use crate::cuda::error::{CudaError, LibraryName};
use crate::cuda::search::Search;
use crate::cuda::table::table;

/// A context, stream, event, module, function, graph or pool of the driver.
pub type Handle = *mut c_void;

/// A device address.
pub type DevicePtr = c_ulonglong;

/// `CU_MEM_ALLOCATION_TYPE_PINNED` memory of one device: what a memory pool is made of.
#[repr(C)]
#[derive(Debug)]
pub struct PoolProperties {
    allocation_type: c_int,
    handle_types: c_int,
    location_type: c_int,
    location_id: c_int,
    security: *mut c_void,
    max_size: usize,
    usage: u16,
    reserved: [u8; 54],
}

impl PoolProperties {
    /// Memory of that device, shared with no other process.
    pub fn of_device(device: c_int) -> PoolProperties {
        PoolProperties {
            allocation_type: 1,
            handle_types: 0,
            location_type: 1,
            location_id: device,
            security: ptr::null_mut(),
            max_size: 0,
            usage: 0,
            reserved: [0; 54],
        }
    }
}

/// How a function is launched, as `cuLaunchKernelEx` takes it.
#[repr(C)]
#[derive(Debug)]
pub struct LaunchConfig {
    /// Blocks along x, y and z.
    pub grid: [c_uint; 3],
    /// Threads of a block along x, y and z.
    pub block: [c_uint; 3],
    /// Bytes of shared memory sized at launch.
    pub shared_bytes: c_uint,
    /// The stream.
    pub stream: Handle,
    /// So many attributes.
    pub attributes: *mut LaunchAttribute,
    /// See `attributes`.
    pub n_attributes: c_uint,
}

/// An attribute of a launch: a number that says which, and a value of 64 bytes.
#[repr(C)]
#[derive(Debug)]
pub struct LaunchAttribute {
    id: c_int,
    padding: c_int,
    value: [c_ulonglong; 8],
}

impl LaunchAttribute {
    /// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`: the launch may begin when the one before on the stream
    /// lets it, and waits for that one by itself.
    pub fn overlapping() -> LaunchAttribute {
        LaunchAttribute { id: 6, padding: 0, value: [1, 0, 0, 0, 0, 0, 0, 0] }
    }
}

table! {
    /// The functions of the driver.
    Functions, LibraryName::Driver;
    /// Must come first.
    init = "cuInit" (flags: c_uint);
    /// Version of the driver: 1000 times the major number and 10 times the minor one.
    driver_version = "cuDriverGetVersion" (version: *mut c_int);
    /// Number of devices.
    device_count = "cuDeviceGetCount" (count: *mut c_int);
    /// The device of an ordinal.
    device = "cuDeviceGet" (device: *mut c_int, ordinal: c_int);
    /// Name of a device.
    device_name = "cuDeviceGetName" (name: *mut c_char, length: c_int, device: c_int);
    /// A number about a device.
    device_attribute = "cuDeviceGetAttribute" (value: *mut c_int, attribute: c_int, device: c_int);
    /// Bytes of memory of a device.
    device_memory = "cuDeviceTotalMem_v2" (bytes: *mut usize, device: c_int);
    /// The context that all users of a device in this process share.
    primary_context = "cuDevicePrimaryCtxRetain" (context: *mut Handle, device: c_int);
    /// The thread's current context, or none.
    current_context = "cuCtxGetCurrent" (context: *mut Handle);
    /// Makes a context the thread's current one.
    push_context = "cuCtxPushCurrent_v2" (context: Handle);
    /// Makes the previous context the thread's current one again.
    pop_context = "cuCtxPopCurrent_v2" (context: *mut Handle);
    /// Loads a cubin.
    module_load = "cuModuleLoadData" (module: *mut Handle, image: *const c_void);
    /// A function of a module.
    module_function = "cuModuleGetFunction" (function: *mut Handle, module: Handle, name: *const c_char);
    /// Sets a number of a function.
    function_set = "cuFuncSetAttribute" (function: Handle, attribute: c_int, value: c_int);
    /// A number about a function.
    function_get = "cuFuncGetAttribute" (value: *mut c_int, attribute: c_int, function: Handle);
    /// Launches a function.
    launch = "cuLaunchKernel" (
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
        block_z: c_uint, shared_bytes: c_uint, stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void
    );
    /// Launches a function with attributes.
    launch_with = "cuLaunchKernelEx" (
        config: *const LaunchConfig, function: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void
    );
    /// Free and all bytes of the current context's device.
    memory_info = "cuMemGetInfo_v2" (free: *mut usize, total: *mut usize);
    /// Allocates.
    allocate = "cuMemAlloc_v2" (pointer: *mut DevicePtr, bytes: usize);
    /// Frees.
    free = "cuMemFree_v2" (pointer: DevicePtr);
    /// Makes a memory pool.
    pool_create = "cuMemPoolCreate" (pool: *mut Handle, properties: *const PoolProperties);
    /// Sets a number of a memory pool.
    pool_set = "cuMemPoolSetAttribute" (pool: Handle, attribute: c_int, value: *mut c_void);
    /// Gives unused memory of a pool back.
    pool_trim = "cuMemPoolTrimTo" (pool: Handle, keep: usize);
    /// Allocates in the order of a stream.
    allocate_async = "cuMemAllocFromPoolAsync" (pointer: *mut DevicePtr, bytes: usize, pool: Handle, stream: Handle);
    /// Frees in the order of a stream.
    free_async = "cuMemFreeAsync" (pointer: DevicePtr, stream: Handle);
    /// Copies to the device in the order of a stream.
    copy_to_device = "cuMemcpyHtoDAsync_v2" (to: DevicePtr, from: *const c_void, bytes: usize, stream: Handle);
    /// Copies from the device in the order of a stream.
    copy_to_host = "cuMemcpyDtoHAsync_v2" (to: *mut c_void, from: DevicePtr, bytes: usize, stream: Handle);
    /// Copies on the device in the order of a stream.
    copy_on_device = "cuMemcpyDtoDAsync_v2" (to: DevicePtr, from: DevicePtr, bytes: usize, stream: Handle);
    /// A fact about an address.
    pointer_attribute = "cuPointerGetAttribute" (fact: *mut c_void, attribute: c_int, pointer: DevicePtr);
    /// Fills bytes in the order of a stream.
    fill = "cuMemsetD8Async" (to: DevicePtr, value: u8, bytes: usize, stream: Handle);
    /// Makes a stream.
    stream_create = "cuStreamCreate" (stream: *mut Handle, flags: c_uint);
    /// Lets go of a stream; its work goes on to the end.
    stream_destroy = "cuStreamDestroy_v2" (stream: Handle);
    /// Waits for a stream.
    stream_synchronize = "cuStreamSynchronize" (stream: Handle);
    /// Lets later work of a stream wait for an event.
    stream_wait = "cuStreamWaitEvent" (stream: Handle, event: Handle, flags: c_uint);
    /// A number that no other stream of the process has.
    stream_id = "cuStreamGetId" (stream: Handle, id: *mut c_ulonglong);
    /// Whether a stream is being captured.
    stream_capturing = "cuStreamIsCapturing" (stream: Handle, status: *mut c_int);
    /// Captures what is put on a stream, instead of doing it.
    capture_begin = "cuStreamBeginCapture_v2" (stream: Handle, mode: c_int);
    /// The graph of what was captured.
    capture_end = "cuStreamEndCapture" (stream: Handle, graph: *mut Handle);
    /// Makes a graph ready to launch.
    graph_instantiate = "cuGraphInstantiateWithFlags" (ready: *mut Handle, graph: Handle, flags: c_ulonglong);
    /// Launches a graph.
    graph_launch = "cuGraphLaunch" (ready: Handle, stream: Handle);
    /// Lets go of a graph that is ready to launch.
    graph_ready_destroy = "cuGraphExecDestroy" (ready: Handle);
    /// Lets go of a graph.
    graph_destroy = "cuGraphDestroy" (graph: Handle);
    /// Makes an event.
    event_create = "cuEventCreate" (event: *mut Handle, flags: c_uint);
    /// Puts an event on a stream.
    event_record = "cuEventRecord" (event: Handle, stream: Handle);
    /// Waits for an event.
    event_synchronize = "cuEventSynchronize" (event: Handle);
    /// Milliseconds between two events.
    event_elapsed = "cuEventElapsedTime" (milliseconds: *mut f32, start: Handle, end: Handle);
    /// Lets go of an event.
    event_destroy = "cuEventDestroy_v2" (event: Handle);
    /// The name of an error code.
    error_name = "cuGetErrorName" (code: c_int, name: *mut *const c_char);
    /// What an error code means.
    error_meaning = "cuGetErrorString" (code: c_int, meaning: *mut *const c_char);
}

impl Functions {
    fn failure(&self, call: &'static str, code: c_int) -> CudaError {
        let text = |get: Option<unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int>| {
            let mut text = ptr::null();
            // SAFETY: the function writes a pointer to a string that lives as long as the library, or null.
            let status = get.map(|get| unsafe { get(code, &mut text) });
            if status != Some(0) || text.is_null() {
                return None;
            }
            // SAFETY: as above.
            Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        let name = text(self.error_name).unwrap_or_else(|| "an unknown code".to_owned());
        let meaning = text(self.error_meaning).unwrap_or_else(|| "the driver does not say".to_owned());
        CudaError::Driver { call, code, name, meaning }
    }
}

/// The driver, loaded and started.
#[derive(Debug)]
pub struct Driver {
    functions: Functions,
    version: c_int,
}

impl std::ops::Deref for Driver {
    type Target = Functions;

    fn deref(&self) -> &Functions {
        &self.functions
    }
}

impl Driver {
    /// The driver that `search` finds; loaded once a process and never unloaded.
    pub fn load(search: &Search) -> Result<&'static Driver, CudaError> {
        static LOADED: Mutex<Vec<(Option<PathBuf>, &'static Driver)>> = Mutex::new(Vec::new());
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, driver)) = loaded.iter().find(|(path, _)| *path == search.driver) {
            return Ok(driver);
        }
        let (path, library) = search.load_driver()?;
        // SAFETY: the library is the driver's, and it is leaked below.
        let functions = unsafe { Functions::of(&library, path) };
        std::mem::forget(library);
        // SAFETY: no pointers.
        unsafe { functions.init(0) }?;
        let mut version = 0;
        // SAFETY: writes one integer.
        unsafe { functions.driver_version(&mut version) }?;
        let driver: &'static Driver = Box::leak(Box::new(Driver { functions, version }));
        loaded.push((search.driver.clone(), driver));
        Ok(driver)
    }

    /// Major and minor number of the newest CUDA that the driver knows.
    pub fn version(&self) -> (u32, u32) {
        let version = self.version.unsigned_abs();
        (version / 1000, version % 1000 / 10)
    }

    /// The file that was loaded.
    pub fn file(&self) -> &Path {
        self.functions.path()
    }

    /// The ordinal of the device that an address belongs to; `None` of one that the driver does not know.
    pub fn device_of(&self, pointer: DevicePtr) -> Option<usize> {
        /// `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
        const DEVICE_ORDINAL: c_int = 9;
        let mut ordinal: c_int = -1;
        // SAFETY: writes one integer; the address is looked up and not read.
        let found =
            unsafe { self.functions.pointer_attribute((&raw mut ordinal).cast(), DEVICE_ORDINAL, pointer) };
        found.ok().and_then(|()| usize::try_from(ordinal).ok())
    }

    /// Number of devices.
    pub fn device_count(&self) -> Result<usize, CudaError> {
        let mut count = 0;
        // SAFETY: writes one integer.
        unsafe { self.functions.device_count(&mut count) }?;
        Ok(usize::try_from(count).unwrap_or(0))
    }
}
