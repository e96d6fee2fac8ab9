//! Machine code as text, by NVIDIA's disassembler.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::cuda::error::CudaError;
use crate::cuda::search::Search;

/// The instructions of a cubin, by `nvdisasm` where `search` finds it.
pub fn disassemble(search: &Search, cubin: &[u8]) -> Result<String, CudaError> {
    let (program, _) = search.find_disassembler()?;
    let failed = |reason: String| CudaError::Disassembler { program: program.display().to_string(), reason };
    let dir = tempfile::Builder::new().prefix("coulis-").tempdir().map_err(|e| failed(e.to_string()))?;
    let file = dir.path().join("kernel.cubin");
    std::fs::write(&file, cubin).map_err(|e| failed(e.to_string()))?;
    run(&program, &file).map_err(failed)
}

fn run(program: &Path, file: &Path) -> Result<String, String> {
    let output = Command::new(program)
        .args(["--print-code", "--no-dataflow"])
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
}
