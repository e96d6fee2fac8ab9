//! A GPU as a device: kernels are emitted, compiled, loaded and kept ready.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use coulis_codegen::{Module, dialect_named, emit_module};
use coulis_ir::{Checked, Target};

use crate::cache::Key;
use crate::cuda::compile::CudaCompiler;
use crate::cuda::context::{Context, Facts};
use crate::cuda::driver::Driver;
use crate::cuda::error::CudaError;
use crate::cuda::executable::{CudaExecutable, LoadedModule};
use crate::cuda::search::Search;
use crate::cuda::stream::Stream;
use crate::device::{Device, Executable, Info, Origin, Parameter};
use crate::environment::Environment;
use crate::error::{Notice, RuntimeError};

/// Name of the device.
pub const NAME: &str = "cuda";

/// How a GPU is opened.
#[derive(Clone, Debug, Default)]
pub struct CudaOptions {
    /// The folder of CUDA; else it is looked for.
    pub cuda_path: Option<PathBuf>,
    /// The file of the driver; else it is looked for.
    pub driver: Option<PathBuf>,
    /// Folders of packages of the Python that runs coulis.
    pub site_packages: Vec<PathBuf>,
    /// The cache folder of cubins; else `cuda` in the user's cache folder of coulis.
    pub cache_dir: Option<PathBuf>,
    /// The environment; else that of this process.
    pub environment: Option<Environment>,
}

impl CudaOptions {
    /// What guides the search of libraries.
    pub fn search(&self) -> Search {
        Search {
            option: self.cuda_path.clone(),
            driver: self.driver.clone(),
            site_packages: self.site_packages.clone(),
            environment: self.environment.clone().unwrap_or_else(Environment::of_process),
        }
    }
}

/// What executables share with their device.
pub(crate) struct Shared {
    pub(crate) context: Arc<Context>,
    pub(crate) stream: Stream,
    compiler: CudaCompiler,
    loaded: Mutex<HashMap<Key, Arc<LoadedModule>>>,
}

impl Shared {
    /// The module of a text: loaded before, from the disk, or compiled.
    pub(crate) fn module(
        &self,
        kernel: &str,
        module: &Module,
    ) -> Result<(Arc<LoadedModule>, Origin), CudaError> {
        let arch = &self.context.facts().arch;
        let key = self.compiler.key(&module.text, arch)?;
        let table = || self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = table().get(&key) {
            return Ok((known.clone(), Origin::Memory));
        }
        let (cubins, origin) = self.compiler.cubins(kernel, &module.parts(), arch)?;
        let loaded = Arc::new(LoadedModule::load(&self.context, &cubins, module)?);
        Ok((table().entry(key).or_insert(loaded).clone(), origin))
    }
}

/// A GPU.
pub struct Cuda {
    shared: Arc<Shared>,
    target: Target,
}

impl Cuda {
    /// Opens the GPU of that number. The notice says why it is slower than it could be.
    pub fn open(ordinal: usize, options: &CudaOptions) -> Result<(Arc<Cuda>, Option<Notice>), CudaError> {
        let search = options.search();
        let context = Context::open(&search, ordinal)?;
        let stream = Stream::new(&context)?;
        let (compiler, notice) = CudaCompiler::open(&search, options.cache_dir.as_deref());
        let target = context.facts().target();
        let shared = Arc::new(Shared { context, stream, compiler, loaded: Mutex::default() });
        Ok((Arc::new(Cuda { shared, target }), notice))
    }

    /// The GPUs that there are, and the driver that told so.
    pub fn all(options: &CudaOptions) -> Result<(&'static Driver, Vec<Facts>), CudaError> {
        let driver = Driver::load(&options.search())?;
        let facts = (0..driver.device_count()?).map(|ordinal| Facts::of(driver, ordinal));
        Ok((driver, facts.collect::<Result<_, _>>()?))
    }

    /// What the GPU is.
    pub fn facts(&self) -> &Facts {
        self.shared.context.facts()
    }

    /// The context that the process shares on this GPU.
    pub fn context(&self) -> &Arc<Context> {
        &self.shared.context
    }

    /// The stream that [`Executable::launch`] uses.
    pub fn stream(&self) -> &Stream {
        &self.shared.stream
    }

    /// The compiler.
    pub fn compiler(&self) -> &CudaCompiler {
        &self.shared.compiler
    }

    /// As [`Device::compile`], with the methods that only a GPU has.
    pub fn prepare(&self, kernel: &Checked) -> Result<Arc<CudaExecutable>, RuntimeError> {
        let name = &kernel.kernel().name;
        let at_emit = |error| RuntimeError::Emit { kernel: name.clone(), error };
        let dialect = dialect_named("cuda").map_err(at_emit)?;
        let module = emit_module(kernel, dialect).map_err(at_emit)?;
        let parameters = Parameter::all_of(kernel.kernel());
        // SAFETY: the text and what is said of its launches come from the emitter, for a checked kernel.
        Ok(unsafe { self.load(name, module, parameters) }?)
    }

    /// Makes a module ready to run that was not emitted for a checked kernel.
    ///
    /// # Safety
    /// The functions of the text take the arguments that the module says, and touch nothing outside of the buffers
    /// and temporaries that they are given.
    pub unsafe fn load(
        &self,
        name: &str,
        module: Module,
        parameters: Vec<Parameter>,
    ) -> Result<Arc<CudaExecutable>, CudaError> {
        let start = Instant::now();
        let (loaded, origin) = self.shared.module(name, &module)?;
        let seconds = start.elapsed().as_secs_f64();
        let info = Info { kernel: name.to_owned(), device: NAME, origin, seconds };
        // SAFETY: the caller's promise.
        Ok(Arc::new(unsafe { CudaExecutable::new(info, self.shared.clone(), module, parameters, loaded) }))
    }
}

impl Device for Cuda {
    fn name(&self) -> &'static str {
        NAME
    }

    fn target(&self) -> Target {
        self.target.clone()
    }

    fn memory_bytes_per_second(&self) -> Option<u64> {
        Some(self.facts().memory_bytes_per_second).filter(|&rate| rate > 0)
    }

    fn compile(&self, kernel: &Checked) -> Result<Arc<dyn Executable>, RuntimeError> {
        Ok(self.prepare(kernel)?)
    }

    fn take_notices(&self) -> Vec<Notice> {
        self.shared.compiler.take_notices()
    }
}
