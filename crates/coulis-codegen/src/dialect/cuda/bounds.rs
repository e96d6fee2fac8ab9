//! Bounds of a launch: threads of a block, and how many blocks a multiprocessor is to hold.
//!
//! The latter is a macro, so that a compiler that spills registers for it is asked again without it, for the same text. Source: CUDA
//! C++ Programming Guide, launch bounds.

use super::words_in;

const RESIDENT: &str = "RESIDENT";
/// What the macro is where nobody says otherwise.
const DEFINITION: &str = "#ifndef RESIDENT\n#define RESIDENT(blocks) , blocks\n#endif\n";
/// The option of the compiler by which threads have as many registers as they may have, whatever a multiprocessor is to hold.
pub const WITHOUT_RESIDENT: &str = "--define-macro=RESIDENT(blocks)=";

/// Whether a text says how many blocks a multiprocessor is to hold.
pub fn asks_for_resident(text: &str) -> bool {
    words_in(text, &[RESIDENT]).contains(&true)
}

/// The definition that such a text begins with.
pub(super) fn definition(text: &str) -> &'static str {
    if asks_for_resident(text) { DEFINITION } else { "" }
}

/// The bounds of blocks of so many threads, of which a multiprocessor is to hold that many.
pub(super) fn launch_bounds(threads: Option<i128>, blocks: Option<i64>) -> String {
    match (threads.filter(|n| *n > 1), blocks) {
        (None, _) => String::new(),
        (Some(n), None) => format!("__launch_bounds__({n}) "),
        (Some(n), Some(blocks)) => format!("__launch_bounds__({n} {RESIDENT}({blocks})) "),
    }
}
