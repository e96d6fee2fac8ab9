//! The commands: one file each and one line here.

mod bench;
mod cache;
mod completions;
mod devices;
mod explain;
mod lower;
mod normalize;
mod reduce;
mod run;
mod tune;

use clap::{ArgMatches, FromArgMatches, Subcommand, error::ErrorKind};

use crate::failure::Failure;

/// What a command is: the documentation of its arguments says what it does.
pub struct Entry {
    /// What one types.
    name: &'static str,
    /// Adds its arguments to those of the command line.
    declare: fn(clap::Command) -> clap::Command,
    /// Reads the arguments.
    read: fn(&ArgMatches) -> Result<Command, clap::Error>,
}

impl Entry {
    const fn new<A: clap::Args>(
        name: &'static str,
        read: fn(&ArgMatches) -> Result<Command, clap::Error>,
    ) -> Entry {
        Entry { name, declare: A::augment_args, read }
    }
}

/// Every command, in the order of the help.
const COMMANDS: &[&Entry] = &[
    &reduce::COMMAND,
    &normalize::COMMAND,
    &lower::COMMAND,
    &explain::COMMAND,
    &run::COMMAND,
    &bench::COMMAND,
    &devices::COMMAND,
    &cache::COMMAND,
    &completions::COMMAND,
    &tune::COMMAND,
];

/// A command with its arguments.
pub struct Command(Box<dyn FnOnce() -> Result<(), Failure>>);

impl Command {
    /// `run`, with the arguments that are among the words.
    fn read<A: FromArgMatches + 'static>(
        words: &ArgMatches,
        run: fn(&A) -> Result<(), Failure>,
    ) -> Result<Command, clap::Error> {
        let args = A::from_arg_matches(words)?;
        Ok(Command(Box::new(move || run(&args))))
    }

    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        (self.0)()
    }
}

impl Subcommand for Command {
    fn augment_subcommands(line: clap::Command) -> clap::Command {
        let declared = COMMANDS.iter().map(|entry| (entry.declare)(clap::Command::new(entry.name)));
        line.subcommands(declared)
    }

    fn augment_subcommands_for_update(line: clap::Command) -> clap::Command {
        Command::augment_subcommands(line)
    }

    fn has_subcommand(name: &str) -> bool {
        COMMANDS.iter().any(|entry| entry.name == name)
    }
}

impl FromArgMatches for Command {
    fn from_arg_matches(words: &ArgMatches) -> Result<Command, clap::Error> {
        let (name, words) =
            words.subcommand().ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        let entry = COMMANDS.iter().find(|entry| entry.name == name);
        (entry.ok_or_else(|| clap::Error::new(ErrorKind::InvalidSubcommand))?.read)(words)
    }

    fn update_from_arg_matches(&mut self, words: &ArgMatches) -> Result<(), clap::Error> {
        *self = Command::from_arg_matches(words)?;
        Ok(())
    }
}
