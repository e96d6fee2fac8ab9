//! The environment variables that coulis reads, as a value, so that tests need not change the process.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the environment says. Empty variables count as unset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `COULIS_CC`: the C compiler, and no other.
    pub coulis_cc: Option<OsString>,
    /// `CC`: a C compiler to try first.
    pub cc: Option<OsString>,
    /// `COULIS_CUDA_PATH`: the folder of CUDA, and no other.
    pub coulis_cuda_path: Option<OsString>,
    /// `CUDA_HOME`: a folder of CUDA to try first.
    pub cuda_home: Option<OsString>,
    /// `CUDA_PATH`: the next one.
    pub cuda_path: Option<OsString>,
    /// `VIRTUAL_ENV`: the folder of a Python environment.
    pub virtual_env: Option<OsString>,
    /// `CONDA_PREFIX`: the same.
    pub conda_prefix: Option<OsString>,
    /// `LD_LIBRARY_PATH`.
    pub ld_library_path: Option<OsString>,
    /// `PATH`.
    pub path: Option<OsString>,
    /// `COULIS_CPU`: the most that kernels on the CPU may use of it, `baseline`, `avx2` or `avx512`.
    pub coulis_cpu: Option<OsString>,
    /// `COULIS_CACHE_DIR`.
    pub coulis_cache_dir: Option<OsString>,
    /// `XDG_CACHE_HOME`.
    pub xdg_cache_home: Option<OsString>,
    /// `HOME`.
    pub home: Option<OsString>,
}

impl Environment {
    /// That of this process.
    pub fn of_process() -> Environment {
        let get = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Environment {
            coulis_cc: get("COULIS_CC"),
            cc: get("CC"),
            coulis_cuda_path: get("COULIS_CUDA_PATH"),
            cuda_home: get("CUDA_HOME"),
            cuda_path: get("CUDA_PATH"),
            virtual_env: get("VIRTUAL_ENV"),
            conda_prefix: get("CONDA_PREFIX"),
            ld_library_path: get("LD_LIBRARY_PATH"),
            path: get("PATH"),
            coulis_cpu: get("COULIS_CPU"),
            coulis_cache_dir: get("COULIS_CACHE_DIR"),
            xdg_cache_home: get("XDG_CACHE_HOME"),
            home: get("HOME"),
        }
    }

    /// The folder of everything that coulis caches; `None` where nothing says where a user's cache is.
    pub fn cache_dir(&self) -> Option<PathBuf> {
        if let Some(dir) = &self.coulis_cache_dir {
            return Some(PathBuf::from(dir));
        }
        let absolute = |dir: &&OsString| Path::new(dir).is_absolute();
        if let Some(dir) = self.xdg_cache_home.as_ref().filter(absolute) {
            return Some(Path::new(dir).join("coulis"));
        }
        self.home.as_ref().map(|home| Path::new(home).join(".cache/coulis"))
    }

    /// The folder of compilers and libraries that `cargo xtask setup` fetches.
    pub fn toolchain_dir(&self) -> Option<PathBuf> {
        self.cache_dir().map(|dir| dir.join("toolchain"))
    }

    /// The first file of that name in `PATH` that may be executed.
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        let path = self.path.as_ref()?;
        std::env::split_paths(path).map(|dir| dir.join(name)).find(|file| is_executable(file))
    }
}

/// Whether it is a file that someone may execute.
pub(crate) fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    /// The names that this file reads.
    fn read_here() -> Vec<&'static str> {
        include_str!("environment.rs").split('"').filter(|word| word.starts_with("COULIS_")).collect()
    }

    #[test]
    fn the_page_tells_of_every_variable_of_its_own() {
        let page = include_str!("../../../docs/environment.md");
        let names: Vec<&str> = read_here().into_iter().filter(|name| *name != "COULIS_").collect();
        assert!(names.len() >= 4, "{names:?}");
        for name in names {
            assert!(page.contains(&format!("| `{name}` |")), "{name}");
        }
    }
}
