//! Where the parts of CUDA are looked for.
//!
//! NVRTC and the disassembler: the caller's option, `COULIS_CUDA_PATH`, `CUDA_HOME`, `CUDA_PATH`, the toolchain folder
//! under the user's cache, the site-packages of the running Python, the system. The first two are decisive:
//! `COULIS_CUDA_PATH=/nonexistent` means that there is no compiler. A folder may be a toolkit, a site-packages folder
//! with NVIDIA's wheels in it, or the folder of the file itself.
//!
//! The driver belongs to the system and not to a toolkit. It is first asked for by its plain name, because a process
//! may hold it already and must never hold two, then in the folders where containers put it.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::cuda::error::{CudaError, LibraryName};
use crate::environment::{Environment, is_executable};

/// What was found at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The variable that names the place is not set.
    Unset,
    /// Nothing.
    Nothing,
    /// A file that cannot be used, and why.
    Unusable(PathBuf, String),
    /// The file that is used.
    Here(PathBuf),
}

/// A place that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Who names it: `CUDA_HOME`, `the toolchain folder`.
    pub origin: &'static str,
    /// The folder; empty where it is not set.
    pub folder: PathBuf,
    /// What was there.
    pub found: Found,
}

impl fmt::Display for Looked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            Found::Unset => write!(f, "{} (not set)", self.origin),
            Found::Nothing => write!(f, "{} `{}`", self.origin, self.folder.display()),
            Found::Unusable(file, why) => write!(f, "{} `{}` ({why})", self.origin, file.display()),
            Found::Here(file) => write!(f, "{} `{}` (found)", self.origin, file.display()),
        }
    }
}

/// What guides the search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The caller's folder of CUDA, and no other.
    pub option: Option<PathBuf>,
    /// The caller's file of the driver, and no other.
    pub driver: Option<PathBuf>,
    /// Folders of packages of the Python that runs coulis.
    pub site_packages: Vec<PathBuf>,
    /// The environment.
    pub environment: Environment,
}

/// Folders below a place where libraries may lie.
const LIBRARY_FOLDERS: [&str; 7] = [
    "lib64",
    "lib",
    "nvidia/cu13/lib",
    "nvidia/cuda_nvrtc/lib",
    "targets/x86_64-linux/lib",
    "targets/sbsa-linux/lib",
    "",
];

/// Folders below a place where programs may lie.
const PROGRAM_FOLDERS: [&str; 4] = ["bin", "nvidia/cu13/bin", "nvidia/cuda_nvcc/bin", ""];

/// Folders of the system where toolkits or their libraries lie.
const SYSTEM: [&str; 8] = [
    "/usr/local/cuda",
    "/opt/cuda",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib/cuda",
    "/usr",
    "/usr/local",
];

/// Folders where containers and other systems put the driver.
const DRIVER_FOLDERS: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/local/nvidia/lib64",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
];

/// A place before it was looked at: no folder where its variable is not set.
type Place = (&'static str, Option<PathBuf>);

impl Search {
    /// The search by the environment of this process.
    pub fn of_process() -> Search {
        Search { environment: Environment::of_process(), ..Search::default() }
    }

    /// Places of toolkits, in order.
    fn places(&self) -> Vec<Place> {
        let path = |value: &Option<OsString>| value.as_ref().map(PathBuf::from);
        let environment = &self.environment;
        if let Some(option) = &self.option {
            return vec![("the option", Some(option.clone()))];
        }
        if let Some(only) = path(&environment.coulis_cuda_path) {
            return vec![("COULIS_CUDA_PATH", Some(only))];
        }
        let mut places = vec![
            ("COULIS_CUDA_PATH", None),
            ("CUDA_HOME", path(&environment.cuda_home)),
            ("CUDA_PATH", path(&environment.cuda_path)),
            ("the toolchain folder", environment.toolchain_dir().map(|dir| dir.join("cuda"))),
        ];
        let packages = self.site_packages.iter().cloned().chain(python_packages(environment));
        places.extend(packages.map(|folder| ("site-packages", Some(folder))));
        if let Some(path) = &environment.ld_library_path {
            places.extend(std::env::split_paths(path).map(|folder| ("LD_LIBRARY_PATH", Some(folder))));
        }
        places.extend(numbered_toolkits().into_iter().map(|folder| ("the system", Some(folder))));
        places.extend(SYSTEM.iter().map(|folder| ("the system", Some(PathBuf::from(folder)))));
        places
    }

    /// The file of NVRTC, with all places up to it.
    pub fn find_nvrtc(&self) -> Result<(PathBuf, Vec<Looked>), CudaError> {
        first(LibraryName::Nvrtc, self.places(), |folder| {
            LIBRARY_FOLDERS.iter().find_map(|below| newest(&folder.join(below), LibraryName::Nvrtc.file()))
        })
    }

    /// The file of the disassembler, with all places up to it.
    pub fn find_disassembler(&self) -> Result<(PathBuf, Vec<Looked>), CudaError> {
        let name = LibraryName::Disassembler.file();
        let mut places = self.places();
        let is_decided = self.option.is_some() || self.environment.coulis_cuda_path.is_some();
        if let Some(path) = self.environment.path.as_ref().filter(|_| !is_decided) {
            places.extend(std::env::split_paths(path).map(|folder| ("PATH", Some(folder))));
        }
        first(LibraryName::Disassembler, places, |folder| {
            PROGRAM_FOLDERS.iter().map(|below| folder.join(below).join(name)).find(|file| is_executable(file))
        })
    }

    /// Opens the driver.
    pub(crate) fn load_driver(&self) -> Result<(PathBuf, Library), CudaError> {
        let name = LibraryName::Driver.file();
        let mut candidates: Vec<(&'static str, PathBuf)> = Vec::new();
        if let Some(file) = &self.driver {
            candidates.push(("the option", file.clone()));
        } else {
            candidates.push(("the system's loader", PathBuf::from(name)));
            candidates.extend(DRIVER_FOLDERS.iter().map(|dir| ("the system", Path::new(dir).join(name))));
        }
        let mut looked = Vec::new();
        for (origin, file) in candidates {
            let is_plain = file.components().count() == 1;
            if !is_plain && !file.exists() {
                let folder = file.parent().unwrap_or(&file).to_owned();
                looked.push(Looked { origin, folder, found: Found::Nothing });
                continue;
            }
            // SAFETY: the file has the name that only NVIDIA's driver has.
            match unsafe { Library::new(&file) } {
                Ok(library) => return Ok((file, library)),
                Err(_) if is_plain => looked.push(Looked { origin, folder: file, found: Found::Nothing }),
                Err(error) => {
                    let found = Found::Unusable(file.clone(), error.to_string());
                    looked.push(Looked { origin, folder: file, found });
                }
            }
        }
        Err(CudaError::NotFound { library: LibraryName::Driver, looked })
    }
}

/// The first place where `look` finds a file.
fn first(
    library: LibraryName,
    places: Vec<Place>,
    look: impl Fn(&Path) -> Option<PathBuf>,
) -> Result<(PathBuf, Vec<Looked>), CudaError> {
    let mut looked = Vec::new();
    for (origin, folder) in places {
        let Some(folder) = folder else {
            looked.push(Looked { origin, folder: PathBuf::new(), found: Found::Unset });
            continue;
        };
        let found = look(&folder);
        let file = found.clone();
        let found = found.map_or(Found::Nothing, Found::Here);
        looked.push(Looked { origin, folder, found });
        if let Some(file) = file {
            return Ok((file, looked));
        }
    }
    Err(CudaError::NotFound { library, looked })
}

/// The file `name` or `name.N.N` of the highest number in a folder.
fn newest(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut best: Option<(Vec<u32>, PathBuf)> = None;
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let file = entry.file_name();
        let Some(rest) = file.to_str().and_then(|file| file.strip_prefix(name)) else { continue };
        let numbers: Option<Vec<u32>> =
            rest.split('.').skip(1).map(|number| number.parse().ok()).collect::<Option<_>>();
        let is_version = rest.is_empty() || rest.starts_with('.');
        let Some(numbers) = numbers.filter(|_| is_version) else { continue };
        if best.as_ref().is_none_or(|(known, _)| numbers > *known) {
            best = Some((numbers, entry.path()));
        }
    }
    best.map(|(_, file)| file)
}

/// Folders of packages of the Python environment that is active, else of the `python3` in `PATH`.
fn python_packages(environment: &Environment) -> Vec<PathBuf> {
    let active = environment.virtual_env.as_ref().or(environment.conda_prefix.as_ref());
    let prefix = active.map(PathBuf::from).or_else(|| {
        let program = environment.find_program("python3")?;
        Some(program.parent()?.parent()?.to_owned())
    });
    let Some(library) = prefix.map(|prefix| prefix.join("lib")) else { return Vec::new() };
    let versions = sorted_folders(&library, "python3.");
    let packages = versions.iter().flat_map(|dir| [dir.join("site-packages"), dir.join("dist-packages")]);
    packages.filter(|dir| dir.is_dir()).collect()
}

/// `/usr/local/cuda-13.0` and its like, newest first.
fn numbered_toolkits() -> Vec<PathBuf> {
    sorted_folders(Path::new("/usr/local"), "cuda-")
}

/// Folders whose names begin so and go on with a version, newest first.
fn sorted_folders(parent: &Path, begin: &str) -> Vec<PathBuf> {
    let Ok(listing) = std::fs::read_dir(parent) else { return Vec::new() };
    let mut folders: Vec<(Vec<u32>, PathBuf)> = listing
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let version = name.to_str()?.strip_prefix(begin)?;
            let numbers = version.split('.').map(|number| number.parse().ok()).collect::<Option<_>>()?;
            Some((numbers, entry.path()))
        })
        .collect();
    folders.sort();
    folders.into_iter().rev().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn touch(file: &Path) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, b"").unwrap();
    }

    fn search(environment: Environment) -> Search {
        Search { environment, ..Search::default() }
    }

    fn set(path: &Path) -> Option<OsString> {
        Some(path.as_os_str().to_owned())
    }

    #[test]
    fn places_are_taken_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let files = [
            at("own/lib64/libnvrtc.so.13"),
            at("home/lib/libnvrtc.so.12"),
            at("path/targets/x86_64-linux/lib/libnvrtc.so.13"),
            at("cache/toolchain/cuda/nvidia/cu13/lib/libnvrtc.so.13"),
            at("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13"),
        ];
        files.iter().for_each(|file| touch(file));
        let mut environment = Environment {
            coulis_cuda_path: set(&at("own")),
            cuda_home: set(&at("home")),
            cuda_path: set(&at("path")),
            coulis_cache_dir: set(&at("cache")),
            virtual_env: set(&at("venv")),
            ..Environment::default()
        };
        let found = |environment: &Environment| search(environment.clone()).find_nvrtc().unwrap().0;
        assert_eq!(found(&environment), files[0]);
        environment.coulis_cuda_path = None;
        assert_eq!(found(&environment), files[1]);
        environment.cuda_home = None;
        assert_eq!(found(&environment), files[2]);
        environment.cuda_path = None;
        assert_eq!(found(&environment), files[3]);
        environment.coulis_cache_dir = None;
        assert_eq!(found(&environment), files[4]);
        let option = Search { option: Some(at("home")), environment, ..Search::default() };
        assert_eq!(option.find_nvrtc().unwrap().0, files[1]);
    }

    #[test]
    fn a_named_folder_without_the_library_ends_the_search() {
        let dir = tempfile::tempdir().unwrap();
        touch(&dir.path().join("home/lib64/libnvrtc.so.13"));
        let environment = Environment {
            coulis_cuda_path: Some("/nonexistent".into()),
            cuda_home: set(&dir.path().join("home")),
            ..Environment::default()
        };
        let error = search(environment).find_nvrtc().unwrap_err();
        assert_eq!(
            error.to_string(),
            "NVRTC (`libnvrtc.so`) was not found; it comes with a CUDA toolkit and with the package \
             nvidia-cuda-nvrtc; COULIS_CUDA_PATH names its folder; looked in COULIS_CUDA_PATH `/nonexistent`"
        );
    }

    #[test]
    fn of_many_places_a_message_names_a_few() {
        let looked = |origin, folder: &str, found| Looked { origin, folder: folder.into(), found };
        let refused = Found::Unusable("/e/libnvrtc.so".into(), "no ELF file".to_owned());
        let mut all = vec![looked("CUDA_HOME", "", Found::Unset), looked("CUDA_PATH", "", Found::Unset)];
        all.extend(["/a", "/b", "/c", "/d"].map(|folder| looked("the system", folder, Found::Nothing)));
        all.push(looked("the system", "/e", refused));
        let error = CudaError::NotFound { library: LibraryName::Nvrtc, looked: all };
        let said = error.to_string();
        let (_, places) = said.split_once("; looked in ").unwrap();
        assert_eq!(
            places,
            "the system `/e/libnvrtc.so` (no ELF file), the system `/a`, the system `/b` and 2 more, which \
             `coulis devices` lists; not set: CUDA_HOME, CUDA_PATH"
        );
        assert_eq!(error.looked().len(), 7);
    }

    #[test]
    fn the_newest_file_of_a_folder_is_taken_and_lookalikes_are_not() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "libnvrtc.so",
            "libnvrtc.so.9",
            "libnvrtc.so.13",
            "libnvrtc.so.12.8",
            "libnvrtc.so.99x",
            "libnvrtc.sorry",
        ] {
            touch(&dir.path().join(name));
        }
        assert_eq!(newest(dir.path(), "libnvrtc.so"), Some(dir.path().join("libnvrtc.so.13")));
        assert_eq!(newest(dir.path(), "libother.so"), None);
    }

    #[test]
    fn a_driver_that_is_not_there_is_told_with_its_place() {
        let file = PathBuf::from("/nonexistent/libcuda.so.1");
        let search = Search { driver: Some(file), ..Search::default() };
        let error = search.load_driver().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the CUDA driver (`libcuda.so.1`) was not found; it comes with the driver of an NVIDIA GPU; \
             looked in the option `/nonexistent`"
        );
    }

    #[test]
    fn a_file_that_is_no_library_is_told_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("libcuda.so.1");
        touch(&file);
        let search = Search { driver: Some(file.clone()), ..Search::default() };
        let CudaError::NotFound { looked, .. } = search.load_driver().unwrap_err() else { panic!() };
        assert!(matches!(&looked[..], [Looked { found: Found::Unusable(path, _), .. }] if *path == file));
    }
}
