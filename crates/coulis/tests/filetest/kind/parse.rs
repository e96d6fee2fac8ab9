//! `# test: parse [canonical] [form=nest|tiled|flat]`: the text is read. Printed is the canonical text.
//!
//! What is printed is read back to an equal kernel that prints the same. With `canonical` the file is that text itself.
//! A refusal stands on its line, as `# error parse: MESSAGE`.

use coulis_script::parse_module;

use super::{kernels, print_like};
use crate::filetest::{Found, Kind, Task};

/// The kind.
pub static KIND: Kind = Kind {
    name: "parse",
    words: &["canonical", "form="],
    is_canonical: |words| words.contains_key("canonical"),
    run,
};

fn run(task: &Task) -> Result<Found, String> {
    let kernels = match kernels(task.text) {
        Ok(kernels) => kernels,
        Err(found) => return Ok(found),
    };
    let text = print_like(task.text, &kernels);
    let again =
        parse_module(&text).map_err(|error| format!("what is printed is not read: {error}\n{text}"))?;
    if again != kernels {
        return Err(format!("what is printed is read as another kernel:\n{text}"));
    }
    if let (Some(form), Some(kernel)) = (task.words.get("form"), kernels.first())
        && !kernel.form.name().eq_ignore_ascii_case(form)
    {
        return Err(format!("the kernel is in {} form, not {form}", kernel.form.name()));
    }
    Ok(Found { text: text.clone(), canonical: Some(text), faults: Vec::new() })
}
