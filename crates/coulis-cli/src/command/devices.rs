//! `coulis devices`: devices, compilers, and where they were looked for.

use coulis::machine::{MachineInfo, machine};

use crate::command::{Command, Entry};
use crate::failure::Failure;
use crate::output::answer;

/// The command.
pub const COMMAND: Entry = Entry::new::<Args>("devices", |words| Command::read(words, run));

/// List devices, compilers and where they were looked for.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  coulis devices")]
struct Args {}

fn run(_args: &Args) -> Result<(), Failure> {
    answer(&as_text(&machine()?))
}

fn as_text(machine: &MachineInfo) -> String {
    let mut lines = vec![("device".to_owned(), machine.device.clone())];
    match &machine.compiler {
        Ok((command, version)) => {
            lines.push(("C compiler".to_owned(), command.clone()));
            lines.push(("version".to_owned(), version.clone()));
        }
        Err(why) => lines.push(("C compiler".to_owned(), why.clone())),
    }
    for (name, value) in &machine.variables {
        lines.push(((*name).to_owned(), value.clone().unwrap_or_else(|| "not set".to_owned())));
    }
    lines.push(("threads".to_owned(), machine.threads.to_string()));
    lines.push(("vector bytes".to_owned(), machine.vector_bytes.to_string()));
    let cache = machine.cache.as_ref().map_or_else(|| "none".to_owned(), |dir| dir.display().to_string());
    lines.push(("cache".to_owned(), cache));
    lines.extend(machine.cuda.iter().cloned());
    lines.iter().map(|(name, value)| format!("{name:<16} {value}\n")).collect()
}
