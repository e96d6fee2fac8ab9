//! Devices: what they are, and the context that a process shares on each.
//!
//! coulis uses the primary context of a device, as the CUDA runtime does, so that memory and streams of other
//! libraries in the process are valid here. Where it is not the thread's current one it is made current for
//! each call and the caller's is put back, so that no thread finds another context current than it left.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use coulis_ir::{BlockLimits, Multiprocessor, Target};

use crate::cuda::driver::{DevicePtr, Driver, Handle, PoolProperties};
use crate::cuda::error::CudaError;
use crate::cuda::search::Search;

/// The oldest compute capability that kernels are made for: the first with bf16 arithmetic.
const OLDEST: (u32, u32) = (8, 0);
/// The oldest compute capability whose kernels can wait for the launch before theirs.
const OVERLAPPING: (u32, u32) = (9, 0);
/// The oldest CUDA whose graphs keep such launches when they are captured.
const OVERLAPPING_IN_GRAPHS: (u32, u32) = (12, 3);

/// Numbers that the driver knows of a device. Source: CUDA Driver API, CUdevice_attribute.
#[derive(Clone, Copy)]
#[repr(i32)]
enum Attribute {
    MaxThreadsPerBlock = 1,
    MaxBlockX = 2,
    MaxBlockY = 3,
    MaxBlockZ = 4,
    MaxGridX = 5,
    MaxGridY = 6,
    MaxGridZ = 7,
    SharedPerBlock = 8,
    WarpSize = 10,
    Multiprocessors = 16,
    MemoryClockKilohertz = 36,
    MemoryBusBits = 37,
    SecondLevelCache = 38,
    MaxThreadsPerMultiprocessor = 39,
    CapabilityMajor = 75,
    CapabilityMinor = 76,
    SharedPerMultiprocessor = 81,
    RegistersPerMultiprocessor = 82,
    SharedPerBlockOptIn = 97,
    MaxBlocksPerMultiprocessor = 106,
    MemoryPools = 115,
}

/// What a device is and allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Number by which it is opened.
    pub ordinal: usize,
    /// Its name.
    pub name: String,
    /// Compute capability.
    pub capability: (u32, u32),
    /// Architecture that kernels are compiled for.
    pub arch: String,
    /// Lanes of a warp.
    pub warp: u32,
    /// Multiprocessors.
    pub n_multiprocessors: u32,
    /// Threads that one multiprocessor holds at most.
    pub max_threads_per_multiprocessor: u32,
    /// Blocks that one multiprocessor holds at most.
    pub max_blocks_per_multiprocessor: u32,
    /// 32-bit registers of one multiprocessor.
    pub registers_per_multiprocessor: u32,
    /// Bytes of shared memory of one multiprocessor.
    pub shared_bytes_per_multiprocessor: u32,
    /// Limits of a launch.
    pub limits: Limits,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Bytes of the second-level cache.
    pub cache_bytes: u64,
    /// Bytes that memory delivers a second by its clock and width; 0 where the driver does not say.
    pub memory_bytes_per_second: u64,
    /// Whether memory can be allocated in the order of a stream.
    pub has_pools: bool,
}

/// Limits of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Blocks along x, y and z at most.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z at most.
    pub block: [u32; 3],
    /// Threads of a block at most.
    pub threads: u32,
    /// Bytes of shared memory of a block that asks for nothing special.
    pub shared_bytes: u32,
    /// Bytes of shared memory of a block at most.
    pub shared_bytes_opt_in: u32,
}

impl Limits {
    /// Those of every GPU that kernels are made for, with the shared memory of a target.
    pub fn of_target(target: &Target) -> Limits {
        Limits {
            grid: [i32::MAX as u32, 65535, 65535],
            block: [1024, 1024, 64],
            threads: target.block.threads,
            shared_bytes: target.block.shared_bytes,
            shared_bytes_opt_in: target.block.shared_dyn_bytes,
        }
    }
}

impl Facts {
    /// The device's numbers, as its driver gives them.
    pub fn of(driver: &Driver, ordinal: usize) -> Result<Facts, CudaError> {
        let device = device_of(driver, ordinal)?;
        let get = |attribute: Attribute| -> Result<u32, CudaError> {
            let mut value = 0;
            // SAFETY: writes one integer.
            unsafe { driver.device_attribute(&mut value, attribute as c_int, device) }?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        let mut name = [0u8; 256];
        // SAFETY: writes a string of at most that length, its zero byte included.
        unsafe { driver.device_name(name.as_mut_ptr().cast::<c_char>(), 256, device) }?;
        let name: Vec<u8> = name.iter().copied().take_while(|byte| *byte != 0).collect();
        let name = String::from_utf8_lossy(&name).into_owned();
        let mut memory_bytes = 0;
        // SAFETY: writes one integer.
        unsafe { driver.device_memory(&mut memory_bytes, device) }?;
        let capability = (get(Attribute::CapabilityMajor)?, get(Attribute::CapabilityMinor)?);
        // Both are gone from newest drivers' lists of what is kept up; a planner goes without.
        let clock = get(Attribute::MemoryClockKilohertz).unwrap_or(0);
        let bits = get(Attribute::MemoryBusBits).unwrap_or(0);
        Ok(Facts {
            ordinal,
            name,
            capability,
            arch: arch_of(capability),
            warp: get(Attribute::WarpSize)?,
            n_multiprocessors: get(Attribute::Multiprocessors)?,
            max_threads_per_multiprocessor: get(Attribute::MaxThreadsPerMultiprocessor)?,
            max_blocks_per_multiprocessor: get(Attribute::MaxBlocksPerMultiprocessor)?,
            registers_per_multiprocessor: get(Attribute::RegistersPerMultiprocessor)?,
            shared_bytes_per_multiprocessor: get(Attribute::SharedPerMultiprocessor)?,
            limits: Limits {
                grid: [get(Attribute::MaxGridX)?, get(Attribute::MaxGridY)?, get(Attribute::MaxGridZ)?],
                block: [get(Attribute::MaxBlockX)?, get(Attribute::MaxBlockY)?, get(Attribute::MaxBlockZ)?],
                threads: get(Attribute::MaxThreadsPerBlock)?,
                shared_bytes: get(Attribute::SharedPerBlock)?,
                shared_bytes_opt_in: get(Attribute::SharedPerBlockOptIn)?,
            },
            memory_bytes: memory_bytes as u64,
            cache_bytes: u64::from(get(Attribute::SecondLevelCache)?),
            // Two transfers a clock.
            memory_bytes_per_second: 2 * u64::from(clock) * 1000 * u64::from(bits) / 8,
            has_pools: get(Attribute::MemoryPools)? != 0,
        })
    }

    /// The facts that kernels are planned with.
    pub fn target(&self) -> Target {
        let known = Target::cuda(&self.arch).or_else(|| Target::cuda("sm_80"));
        let known = known.unwrap_or_else(|| Target::simulated(self.warp));
        let n_threads = self.n_multiprocessors.saturating_mul(self.max_threads_per_multiprocessor);
        Target {
            arch: self.arch.clone(),
            warp: self.warp,
            n_threads,
            shared_cache_bytes: self.cache_bytes,
            thread_bytes_per_second: match self.memory_bytes_per_second {
                0 => known.thread_bytes_per_second,
                stated => stated / u64::from(n_threads.max(1)),
            },
            multiprocessor: Multiprocessor {
                threads: self.max_threads_per_multiprocessor,
                registers: self.registers_per_multiprocessor,
            },
            block: BlockLimits {
                threads: self.limits.threads,
                shared_bytes: self.limits.shared_bytes,
                shared_dyn_bytes: self.limits.shared_bytes_opt_in,
                registers: known.block.registers,
            },
            ..known
        }
    }
}

/// The architecture of a compute capability: the one with all its features, where there are such.
fn arch_of((major, minor): (u32, u32)) -> String {
    let all_features = if major >= 9 { "a" } else { "" };
    format!("sm_{major}{minor}{all_features}")
}

fn device_of(driver: &Driver, ordinal: usize) -> Result<c_int, CudaError> {
    let count = driver.device_count()?;
    let number = c_int::try_from(ordinal).ok().filter(|_| ordinal < count);
    let number = number.ok_or(CudaError::NoDevice { ordinal, count })?;
    let mut device = 0;
    // SAFETY: writes one integer.
    unsafe { driver.device(&mut device, number) }?;
    Ok(device)
}

/// The shared context of a device.
#[derive(Debug)]
pub struct Context {
    driver: &'static Driver,
    raw: Handle,
    facts: Facts,
    /// Where workspaces come from; `None` where the device has no pools.
    pool: Option<Handle>,
}

// SAFETY: contexts and pools may be used from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// The context of a device; opened once a process and kept to its end.
    pub fn open(search: &Search, ordinal: usize) -> Result<Arc<Context>, CudaError> {
        static OPENED: Mutex<Vec<Arc<Context>>> = Mutex::new(Vec::new());
        let driver = Driver::load(search)?;
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |c: &&Arc<Context>| c.facts.ordinal == ordinal && ptr::eq(c.driver, driver);
        if let Some(context) = opened.iter().find(is_known) {
            return Ok(context.clone());
        }
        let facts = Facts::of(driver, ordinal)?;
        if facts.capability < OLDEST {
            let Facts { name, capability, .. } = facts;
            return Err(CudaError::TooOld { ordinal, name, capability });
        }
        let device = device_of(driver, ordinal)?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one pointer; the context is kept to the end of the process.
        unsafe { driver.primary_context(&mut raw, device) }?;
        let mut context = Context { driver, raw, facts, pool: None };
        if context.facts.has_pools {
            context.pool = Some(context.make_pool(device)?);
        }
        let context = Arc::new(context);
        opened.push(context.clone());
        Ok(context)
    }

    /// A pool that keeps what was freed for the next workspace.
    fn make_pool(&self, device: c_int) -> Result<Handle, CudaError> {
        const RELEASE_THRESHOLD: c_int = 4;
        let entered = self.enter()?;
        let properties = PoolProperties::of_device(device);
        let mut pool = ptr::null_mut();
        let mut keep = u64::MAX;
        // SAFETY: the pool is kept as long as the context; the attribute is a 64-bit number.
        unsafe {
            entered.pool_create(&mut pool, &properties)?;
            entered.pool_set(pool, RELEASE_THRESHOLD, (&raw mut keep).cast::<c_void>())?;
        }
        Ok(pool)
    }

    /// What the device is.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Whether a launch may begin while the one before it ends. Source: CUDA C++ Programming Guide, programmatic dependent
    /// launch.
    pub fn overlaps_launches(&self) -> bool {
        self.facts.capability >= OVERLAPPING && self.driver.version() >= OVERLAPPING_IN_GRAPHS
    }

    /// The driver.
    pub fn driver(&self) -> &'static Driver {
        self.driver
    }

    /// Makes the context current until the result is dropped.
    pub fn enter(&self) -> Result<Entered, CudaError> {
        let mut current = ptr::null_mut();
        // SAFETY: writes one pointer; the context lives to the end of the process.
        let is_pushed = unsafe {
            self.driver.current_context(&mut current)?;
            let is_other = current != self.raw;
            if is_other {
                self.driver.push_context(self.raw)?;
            }
            is_other
        };
        Ok(Entered { driver: self.driver, is_pushed, thread: std::marker::PhantomData })
    }

    /// Free and all bytes of the device's memory.
    pub fn memory_info(&self) -> Result<(u64, u64), CudaError> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two integers.
        unsafe { self.enter()?.memory_info(&mut free, &mut total) }?;
        Ok((free as u64, total as u64))
    }

    /// Gives memory that workspaces no longer use back to the device.
    pub fn trim(&self) -> Result<(), CudaError> {
        let Some(pool) = self.pool else { return Ok(()) };
        // SAFETY: the pool is alive.
        unsafe { self.enter()?.pool_trim(pool, 0) }
    }

    /// Allocates in the order of a stream.
    pub(crate) fn allocate_on(&self, stream: Handle, bytes: usize) -> Result<DevicePtr, CudaError> {
        let entered = self.enter()?;
        let mut pointer = 0;
        // SAFETY: writes one address.
        unsafe {
            match self.pool {
                Some(pool) => entered.allocate_async(&mut pointer, bytes, pool, stream)?,
                None => entered.allocate(&mut pointer, bytes)?,
            }
        }
        Ok(pointer)
    }

    /// Frees what [`Context::allocate_on`] gave, in the order of a stream.
    ///
    /// # Safety
    /// Nothing that is put on any stream later uses the memory.
    pub(crate) unsafe fn free_on(&self, stream: Handle, pointer: DevicePtr) -> Result<(), CudaError> {
        let entered = self.enter()?;
        // SAFETY: the caller's promise; without pools, work that uses the memory is waited for.
        unsafe {
            if self.pool.is_some() {
                return entered.free_async(pointer, stream);
            }
            entered.stream_synchronize(stream)?;
            entered.free(pointer)
        }
    }
}

/// Keeps a context current on this thread.
#[derive(Debug)]
pub struct Entered {
    driver: &'static Driver,
    /// Whether another one was current before.
    is_pushed: bool,
    /// The current context is a matter of one thread.
    thread: std::marker::PhantomData<*const ()>,
}

impl std::ops::Deref for Entered {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        self.driver
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if !self.is_pushed {
            return;
        }
        let mut context = ptr::null_mut();
        // SAFETY: the context that `enter` pushed is the topmost of this thread.
        let _ = unsafe { self.driver.pop_context(&mut context) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_with_features_of_their_own_get_the_arch_that_has_them() {
        for (capability, arch) in [
            ((8, 0), "sm_80"),
            ((8, 6), "sm_86"),
            ((8, 9), "sm_89"),
            ((9, 0), "sm_90a"),
            ((10, 0), "sm_100a"),
            ((10, 3), "sm_103a"),
            ((12, 0), "sm_120a"),
        ] {
            assert_eq!(arch_of(capability), arch);
            assert!(Target::cuda(arch).is_some());
        }
    }
}
