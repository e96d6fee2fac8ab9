//! `# test: verify`: bare functions are verified. Each fault stands on its line, as `# error V21: MESSAGE`.
//!
//! The verifier shows faults in the printed kernel, so the file holds the text as it is printed; `BLESS=1` brings it
//! into that form.

use coulis_ir::print::print_kernel;
use coulis_ir::verify::verify;

use super::kernels;
use crate::filetest::{Fault, Found, Kind, Place, Task};

/// The kind.
pub static KIND: Kind = Kind { name: "verify", words: &[], is_canonical: |_| true, run };

fn run(task: &Task) -> Result<Found, String> {
    let kernels = match kernels(task.text) {
        Ok(kernels) => kernels,
        Err(found) => return Ok(found),
    };
    let mut found = Found::default();
    let mut texts = Vec::new();
    let mut n_code: usize = 0;
    for kernel in kernels {
        let text = print_kernel(&kernel);
        if let Err(faults) = verify(kernel) {
            let mut at = n_code;
            for line in faults.listing.lines() {
                match line.trim_start().strip_prefix("# ^^^^ error ") {
                    Some(fault) => found.faults.push(Fault {
                        place: Place::Code(at.saturating_sub(1)),
                        text: fault.trim().to_owned(),
                    }),
                    None => at += 1,
                }
            }
        }
        n_code += text.lines().filter(|l| !l.trim().is_empty()).count();
        texts.push(text);
    }
    found.text = texts.join("\n");
    found.canonical = Some(found.text.clone());
    Ok(found)
}
