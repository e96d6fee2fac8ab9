//! Kernels as C text, compiled by the C compiler that is found and kept in the disk cache. A kernel that the compiler
//! refuses (compilers have bugs, and folders fill up) is executed instead, with a notice, unless the caller asked for
//! compiled code and nothing else.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use coulis_codegen::{Options, Source, dialect_named, emit};
use coulis_exec::{Level, Pace, Pool, PoolError};
use coulis_ir::args::Bindings;
use coulis_ir::{Checked, Kernel, Target, interrupt};

use crate::cache::{Cache, Key};
use crate::compiler::Compiler;
use crate::device::cpu_exec::CpuExec;
use crate::device::{
    CpuKind, CpuOptions, Device, Executable, Info, Launched, Origin, Parameter, Restored, n_threads,
};
use crate::environment::Environment;
use crate::error::{Notice, RuntimeError};
use crate::features;
use crate::library::{self, Body, Loaded};
use crate::recipe::{self, Recipe};

/// Name of the device.
pub const NAME: &str = "cpu_c";

/// Part of the key of compiled files: raised when the meaning of a cached file changes though its text does not.
const GENERATOR: &str = concat!("coulis cpu_c 1 ", env!("CARGO_PKG_VERSION"));

/// The device.
pub struct CpuC {
    compiler: Compiler,
    /// What kernels may use of the CPU.
    level: Level,
    cache: Cache,
    target: Target,
    pool: &'static Pool,
    /// What runs kernels that the compiler refuses; `None` where that is an error.
    second: Option<CpuExec>,
    notices: Mutex<Vec<Notice>>,
}

impl CpuC {
    /// Finds the compiler and opens the cache, for a CPU of that level.
    pub fn open(
        options: &CpuOptions,
        environment: &Environment,
        level: Level,
    ) -> Result<(CpuC, Option<Notice>), RuntimeError> {
        let dir = options.cache_dir.clone().or_else(|| environment.cache_dir().map(|dir| dir.join("cpu")));
        let identity_key = |stamp: &str| Key::of(&[b"compiler", stamp.as_bytes()]);
        let recall = |stamp: &str| {
            let words = Cache::words_in(dir.as_deref()?, &identity_key(stamp))?;
            String::from_utf8(words).ok()
        };
        let compiler = Compiler::find_known(options.compiler.as_deref(), environment, &recall)?;
        let (cache, notice) = Cache::open(dir.as_deref());
        if let Some(stamp) = compiler.news() {
            cache.keep_words(&identity_key(stamp), compiler.identity().as_bytes());
        }
        let n_threads = n_threads(options);
        let device = CpuC {
            compiler,
            level,
            cache,
            target: features::target(n_threads, level),
            pool: Pool::global(n_threads),
            second: (options.kind == CpuKind::Auto).then(|| CpuExec::open(options, level)),
            notices: Mutex::default(),
        };
        Ok((device, notice))
    }

    /// The compiler that was found.
    pub fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    fn key(&self, source: &Source) -> Key {
        Key::of(&[
            GENERATOR.as_bytes(),
            source.text.as_bytes(),
            self.compiler.flags(self.level).join(" ").as_bytes(),
            self.compiler.command().as_bytes(),
            self.compiler.identity().as_bytes(),
            features::fingerprint().as_bytes(),
        ])
    }

    /// Key of the recipe of a plan; `None` where it cannot be told which file of coulis runs.
    fn plan_key(&self, plan: &str) -> Option<Key> {
        Some(Key::of(&[
            b"recipe",
            GENERATOR.as_bytes(),
            recipe::generator()?.as_bytes(),
            plan.as_bytes(),
            format!("{:?}", self.target).as_bytes(),
            self.compiler.flags(self.level).join(" ").as_bytes(),
            self.compiler.command().as_bytes(),
            self.compiler.identity().as_bytes(),
            features::fingerprint().as_bytes(),
        ]))
    }

    fn executable(
        &self,
        signature: &Kernel,
        parameters: Vec<Parameter>,
        source: Source,
        loaded: Loaded,
        origin: Origin,
        start: Instant,
    ) -> Arc<dyn Executable> {
        let seconds = start.elapsed().as_secs_f64();
        let info = Info { kernel: signature.name.clone(), device: NAME, origin, seconds };
        Arc::new(Compiled { info, source, loaded, parameters, pool: self.pool, pace: Pace::new() })
    }

    /// The executable of a kernel, its text, and the key of its file. `ends_early` where its outer loops look
    /// for an interrupt.
    fn make(
        &self,
        kernel: &Checked,
        ends_early: bool,
    ) -> Result<(Arc<dyn Executable>, Source, Key), RuntimeError> {
        let name = &kernel.kernel().name;
        let at_emit = |error| RuntimeError::Emit { kernel: name.clone(), error };
        let dialect = dialect_named("c").map_err(at_emit)?;
        let options = Options { ends_early, ..Options::for_target(&self.target) };
        let source = emit(kernel, dialect, options).map_err(at_emit)?;
        let start = Instant::now();
        let key = self.key(&source);
        let mut origin = Origin::Memory;
        let (loaded, _) = library::loaded(&key, || {
            let (loaded, from) = self.load(name, &source, &key)?;
            origin = from;
            Ok(loaded)
        })?;
        let kernel = kernel.kernel();
        let parameters = Parameter::all_of(kernel);
        let executable = self.executable(kernel, parameters, source.clone(), loaded, origin, start);
        Ok((executable, source, key))
    }

    /// The kernel on the executor, if `error` is the compiler's and this device has that second way.
    fn execute(&self, kernel: &Checked, error: RuntimeError) -> Result<Arc<dyn Executable>, RuntimeError> {
        // The compiler hears of Ctrl-C too.
        if interrupt::is_asked() {
            return Err(RuntimeError::Interrupted { kernel: kernel.kernel().name.clone() });
        }
        let (Some(second), RuntimeError::CompileFailed { .. }) = (&self.second, &error) else {
            return Err(error);
        };
        let executable = second.compile(kernel)?;
        let notice = Notice::NotCompiled(first_lines(&error.to_string()));
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
        Ok(executable)
    }

    /// The file of a recipe, if it is there and loads.
    fn find(&self, recipe: &Recipe) -> Option<(Loaded, Origin)> {
        let (name, entry) = (&recipe.signature.name, &recipe.source.entry);
        let mut origin = Origin::Memory;
        let found = library::loaded(&recipe.file, || {
            let missing = || RuntimeError::Load { kernel: name.clone(), message: "it is gone".to_owned() };
            let file = self.cache.lookup(&recipe.file).ok_or_else(missing)?;
            origin = Origin::Disk;
            // SAFETY: the cache vouches that this user stored the file under this key, and the recipe next to
            // it by the same hand says that the key's text has this entry.
            unsafe { library::load(name, &file, entry) }
        });
        found.ok().map(|(loaded, _)| (loaded, origin))
    }

    /// The library of `source`, from the disk or compiled.
    fn load(&self, name: &str, source: &Source, key: &Key) -> Result<(Loaded, Origin), RuntimeError> {
        if let Some(file) = self.cache.lookup(key) {
            // SAFETY: the cache vouches that this user stored the file under the hash of this very text.
            if let Ok(loaded) = unsafe { library::load(name, &file, &source.entry) } {
                return Ok((loaded, Origin::Disk));
            }
        }
        let stored = self
            .cache
            .store(key, name, &|output| self.compiler.compile(name, &source.text, self.level, output))?;
        // SAFETY: the file was compiled from text that the emitter made, whose entry has that type.
        let loaded = unsafe { library::load(name, stored.file(), &source.entry) }?;
        Ok((loaded, Origin::Compiled))
    }
}

impl Device for CpuC {
    fn name(&self) -> &'static str {
        NAME
    }

    fn target(&self) -> Target {
        self.target.clone()
    }

    fn compile(&self, kernel: &Checked) -> Result<Arc<dyn Executable>, RuntimeError> {
        match self.make(kernel, true) {
            Ok((executable, _, _)) => Ok(executable),
            Err(error) => self.execute(kernel, error),
        }
    }

    fn compile_as(
        &self,
        kernel: &Checked,
        plan: &str,
        note: &str,
    ) -> Result<Arc<dyn Executable>, RuntimeError> {
        let (executable, source, file) = match self.make(kernel, false) {
            Ok(made) => made,
            Err(error) => return self.execute(kernel, error),
        };
        let signature = recipe::signature(kernel.kernel());
        let parameters = executable.parameters().to_vec();
        let recipe = Recipe { signature, parameters, source, file, note: note.to_owned() };
        if let (Some(key), Some(bytes)) = (self.plan_key(plan), recipe.write()) {
            self.cache.keep_words(&key, &bytes);
        }
        Ok(executable)
    }

    fn restore(&self, plan: &str) -> Option<Restored> {
        let start = Instant::now();
        let bytes = self.cache.words(&self.plan_key(plan)?)?;
        let recipe = Recipe::read(&bytes)?;
        let (loaded, origin) = self.find(&recipe)?;
        let Recipe { signature, parameters, source, note, .. } = recipe;
        let executable = self.executable(&signature, parameters, source, loaded, origin, start);
        Some(Restored { executable, signature, note })
    }

    fn take_notices(&self) -> Vec<Notice> {
        let mut notices = self.cache.take_notices();
        notices.append(&mut self.notices.lock().unwrap_or_else(PoisonError::into_inner));
        notices
    }
}

/// A compiler's words up to and including its first error.
fn first_lines(words: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in words.lines() {
        lines.push(line);
        if line.contains("error:") {
            break;
        }
    }
    lines.join("\n")
}

struct Compiled {
    info: Info,
    source: Source,
    loaded: Loaded,
    parameters: Vec<Parameter>,
    pool: &'static Pool,
    pace: Pace,
}

/// What the text's callback gets back: the pool, and what failed there. Its first field is the text's, where
/// its loops end early.
#[repr(C)]
struct Launch<'a> {
    interrupt: *const AtomicBool,
    pool: &'static Pool,
    pace: &'a Pace,
    failure: Mutex<Option<PoolError>>,
}

/// Context and function of a parallel loop, for other threads.
struct Job {
    body: Body,
    context: *mut c_void,
}

// SAFETY: the text's bodies read their context and write to disjoint elements, so any thread may run them.
unsafe impl Sync for Job {}

impl Job {
    /// # Safety
    /// The text gave `body` and `context` together, and the context is alive.
    unsafe fn run(&self, begin: i64, end: i64) {
        // SAFETY: as above.
        unsafe { (self.body)(self.context, begin, end) }
    }
}

/// The iterations in ranges, over the threads of the pool.
unsafe extern "C" fn parallel_for(pool: *mut c_void, extent: i64, body: Body, context: *mut c_void) {
    // SAFETY: the pointer is the one that `launch` handed to the entry, which has not returned.
    let launch = unsafe { &*pool.cast::<Launch>() };
    let job = Job { body, context };
    // No panic may cross the C frames between here and `launch`.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        launch.pool.spread(extent, launch.pace, &|range| {
            // SAFETY: the entry waits for this call, so the context on its stack is alive.
            unsafe { job.run(range.start, range.end) }
        })
    }));
    let failure = match outcome {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error,
        Err(_) => PoolError::PartPanicked { part: 0, message: "the launch panicked".to_owned() },
    };
    *launch.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
}

impl Executable for Compiled {
    fn info(&self) -> &Info {
        &self.info
    }

    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    unsafe fn launch(&self, bindings: &Bindings, buffers: &[*mut u8]) -> Launched {
        let kernel = || self.info.kernel.clone();
        let pointers = Parameter::data_pointers(&self.info.kernel, &self.parameters, buffers)?;
        let mut scalars = Vec::with_capacity(self.source.scalars.len());
        for var in &self.source.scalars {
            let value = bindings.get(&var.id());
            scalars.push(*value.ok_or_else(|| RuntimeError::UnboundVar { var: var.name().to_owned() })?);
        }
        let flag = interrupt::flag();
        let launch = Launch { interrupt: flag, pool: self.pool, pace: &self.pace, failure: Mutex::new(None) };
        // SAFETY: the entry's text takes exactly these pointers and scalars, and the caller answers for the memory.
        let status = unsafe {
            (self.loaded.entry)(
                pointers.as_ptr(),
                scalars.as_ptr(),
                parallel_for,
                (&raw const launch).cast_mut().cast(),
            )
        };
        if let Some(error) = launch.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error.into());
        }
        if self.source.ends_early && flag.load(Ordering::Relaxed) {
            return Err(RuntimeError::Interrupted { kernel: kernel() });
        }
        match status {
            0 => Ok(None),
            2 => Err(RuntimeError::DivisionByZero { kernel: kernel() }),
            3 => Err(RuntimeError::NegativeLength { kernel: kernel() }),
            _ => Err(RuntimeError::OutOfMemory { kernel: kernel() }),
        }
    }

    fn hears_interrupts(&self) -> bool {
        self.source.ends_early
    }

    fn source(&self) -> Option<&str> {
        Some(&self.source.text)
    }
}
