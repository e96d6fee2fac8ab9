//! `coulis cache [ls|clear|path]`: the folders of compiled kernels, one for each kind of device, and of what `tune` found.

use coulis::Error;
use coulis::machine::{CacheEntry, cache_dirs, cache_entries, clear_cache};

use crate::command::{Command, Entry};
use crate::failure::Failure;
use crate::output::answer;

/// What to do with the cache.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Action {
    /// List the entries.
    Ls,
    /// Remove the entries.
    Clear,
    /// Print the folders.
    Path,
}

/// The command.
pub const COMMAND: Entry = Entry::new::<Args>("cache", |words| Command::read(words, run));

/// Show or clear the compile cache.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  coulis cache\n  coulis cache clear\n  coulis cache path")]
struct Args {
    /// What to do
    #[arg(value_enum, default_value_t = Action::Ls)]
    action: Action,
}

fn run(args: &Args) -> Result<(), Failure> {
    match args.action {
        Action::Path => match cache_dirs().as_slice() {
            [] => Err(Error::user("cache", "there is no cache folder").into()),
            dirs => answer(&dirs.iter().map(|dir| format!("{}\n", dir.display())).collect::<String>()),
        },
        Action::Ls => {
            let entries = cache_entries()?;
            let line = |e: &CacheEntry| format!("{:>10}  {}\n", e.bytes, e.path.display());
            answer(&format!("{}{}", entries.iter().map(line).collect::<String>(), total("", &entries)))
        }
        Action::Clear => answer(&total("removed ", &clear_cache()?)),
    }
}

fn total(verb: &str, entries: &[CacheEntry]) -> String {
    format!("{verb}{} files, {} bytes\n", entries.len(), entries.iter().map(|e| e.bytes).sum::<u64>())
}
