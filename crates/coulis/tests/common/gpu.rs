//! The GPU of tests that run on one where there is one.

use std::sync::{Arc, OnceLock};

use coulis_runtime::{Cuda, CudaOptions};

/// The first GPU, where there is one.
pub fn gpu() -> Option<&'static Arc<Cuda>> {
    static GPU: OnceLock<Option<Arc<Cuda>>> = OnceLock::new();
    let open = || match Cuda::open(0, &CudaOptions::default()) {
        Ok((device, _)) => Some(device),
        Err(error) => {
            println!("SKIP on a GPU: {error}");
            None
        }
    };
    GPU.get_or_init(open).as_ref()
}
