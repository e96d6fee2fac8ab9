//! `# test: simulate [warp=64] [orders=N] [max_steps=N] [inout=C] [n=5 ...]`: bare functions run on the simulator. Each
//! violation stands on its line, as `# error race between lanes: MESSAGE`.
//!
//! Parameters hold what `simulated` says; those of `inout` are written and hold zeros before. Other words are sizes,
//! strides and scalars by name. The simulator shows violations in the printed kernel, so the file holds the
//! text as it is printed; `BLESS=1` brings it into that form. A typed error is a fault of the whole file.

use coulis_ir::print::print_kernel;
use coulis_sim::Options;

use super::kernels;
use crate::filetest::{Fault, Found, Kind, Place, Task};
use crate::simulated::{Setup, simulate};

/// The kind.
pub static KIND: Kind = Kind {
    name: "simulate",
    words: &["warp=", "orders=", "max_steps=", "inout=", "*="],
    is_canonical: |_| true,
    run,
};

fn run(task: &Task) -> Result<Found, String> {
    let kernels = match kernels(task.text) {
        Ok(kernels) => kernels,
        Err(found) => return Ok(found),
    };
    let number = |key: &str, default: u64| match task.words.get(key) {
        Some(value) => value.parse::<u64>().map_err(|_| format!("`{key}={value}` is no number")),
        None => Ok(default),
    };
    let defaults = Options::default();
    let options = Options {
        warp: number("warp", 32)? as u32,
        warp_orders: number("orders", 2)? as u32,
        max_steps: number("max_steps", defaults.max_steps)?,
        ..defaults
    };
    let value = |name: &str| task.words.get(name).and_then(|v| v.parse().ok());
    let inout: Vec<&str> = task.words.get("inout").map_or(Vec::new(), |names| names.split(',').collect());
    let setup = Setup { value: &value, inout: &inout, options: &options };
    let mut found = Found::default();
    let mut texts = Vec::new();
    let mut n_code: usize = 0;
    for kernel in kernels {
        let text = print_kernel(&kernel);
        match simulate(kernel, &setup)? {
            Ok(done) => {
                let mut at = n_code;
                for line in done.report.listing.lines() {
                    match line.trim_start().strip_prefix("# ^^^^ ") {
                        Some(fault) => found.faults.push(Fault {
                            place: Place::Code(at.saturating_sub(1)),
                            text: fault.trim().to_owned(),
                        }),
                        None => at += 1,
                    }
                }
            }
            Err(error) => {
                found.faults.push(Fault { place: Place::Whole, text: format!("simulate: {error}") });
            }
        }
        n_code += text.lines().filter(|l| !l.trim().is_empty()).count();
        texts.push(text);
    }
    found.text = texts.join("\n");
    found.canonical = Some(found.text.clone());
    Ok(found)
}
