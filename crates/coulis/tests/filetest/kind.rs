//! The kinds of file tests: a file each, and a line here.

mod lower;
mod parse;
mod run;
mod schedule;
mod simulate;
mod verify;

use coulis_ir::Kernel;
use coulis_ir::print::{print_kernel, print_module};

use super::{Fault, Found, Kind, Place};

/// Every kind.
pub static KINDS: &[&Kind] =
    &[&parse::KIND, &verify::KIND, &schedule::KIND, &lower::KIND, &run::KIND, &simulate::KIND];

/// The kernels of a file, or the fault of its text on its line.
fn kernels(text: &str) -> Result<Vec<Kernel>, Found> {
    coulis_script::parse_module(text).map_err(|error| {
        let text = format!("parse: {}", error.kind).replace('\n', " ");
        Found { faults: vec![Fault { place: Place::Line(error.line), text }], ..Found::default() }
    })
}

/// Kernels as text: a module where the file holds one, else bare functions.
fn print_like(file: &str, kernels: &[Kernel]) -> String {
    if file.lines().any(|line| line.starts_with("@I.ir_module")) {
        print_module(kernels)
    } else {
        kernels.iter().map(print_kernel).collect::<Vec<_>>().join("\n")
    }
}
