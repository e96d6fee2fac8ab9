//! `# test: lower [after=PASS] [simple] [target=cpu|sm_90a|...] [vector_bytes=64]`: the kernels are lowered.
//! Printed is the result.
//!
//! `after` stops at a pass, `simple` keeps loops whole as the listings of seed 003 do. The targets are those
//! of the CPU of [`cpu`] and the architectures of CUDA, so that what is printed does not depend on the
//! machine. A refusal is a fault without a line.

use coulis_ir::{Kernel, Target};
use coulis_lower::{Options, PASSES};

use super::{kernels, print_like};
use crate::filetest::{Found, Kind, Task};

/// The kind.
pub static KIND: Kind = Kind {
    name: "lower",
    words: &["after=", "simple", "target=", "vector_bytes="],
    is_canonical: |_| false,
    run,
};

/// A CPU of two threads with 32 registers of 64 bytes.
fn cpu() -> Target {
    Target::cpu(64, 2)
}

fn run(task: &Task) -> Result<Found, String> {
    let name = task.words.get("target").map_or("cpu", String::as_str);
    let found = if name == "cpu" { Some(cpu()) } else { Target::cuda(name) };
    let Some(mut target) = found else {
        let names: Vec<&str> = ["cpu"].into_iter().chain(Target::cuda_archs()).collect();
        return Err(format!("there is no target `{name}`; targets are {}", names.join(", ")));
    };
    if let Some(bytes) = task.words.get("vector_bytes") {
        target.vector_bytes = bytes.parse().map_err(|_| format!("`{bytes}` is no number of bytes"))?;
    }
    let after = task.words.get("after");
    if let Some(after) = after.filter(|after| PASSES.iter().all(|p| p.name != after.as_str())) {
        let names: Vec<&str> = PASSES.iter().map(|p| p.name).collect();
        return Err(format!("there is no pass `{after}`; passes are {}", names.join(", ")));
    }
    let options = Options { target: &target, simple_mode: task.words.contains_key("simple") };
    let kernels = match kernels(task.text) {
        Ok(kernels) => kernels,
        Err(found) => return Ok(found),
    };
    let mut lowered: Vec<Kernel> = Vec::new();
    for kernel in kernels {
        let mut seen = None;
        let result = coulis::lower_kernel(kernel, &options, &mut |pass, kernel| {
            if Some(pass.name) == after.map(String::as_str) {
                seen = Some(kernel.clone());
            }
        });
        match (seen, result) {
            (Some(kernel), _) => lowered.push(kernel),
            (None, Ok(result)) => lowered.push(result.checked.kernel().clone()),
            (None, Err(error)) => return Ok(Found::error(&error)),
        }
    }
    Ok(Found::printed(print_like(task.text, &lowered)))
}
