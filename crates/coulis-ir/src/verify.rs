//! The verifier: lists every fault of a kernel, and hands out the permit.
//!
//! All properties are checked, whatever fails first (V12 to V14 only where V3 to V7 hold), and the faults are shown in the printed kernel as comments, so
//! that a report can be given back as input. [`PROPERTIES`] says what each id stands for:
//!
//! | id | property | file |
//! |---|---|---|
//! | V1 | statements are of the kernel's form | `verify/forms.rs` |
//! | V2 | vectors occur only in forms that have them | `verify/forms.rs` |
//! | V3 | operands and results have the types that the operation takes and gives; constants fit their type | `verify/types.rs` |
//! | V4 | accesses have the number of indices that form and buffer ask for, of integer types | `verify/types.rs` |
//! | V5 | stored values have the buffer's element type and the lanes of the index | `verify/types.rs` |
//! | V6 | conditions are scalar bools; loop, launch and allocation extents are scalar integers | `verify/types.rs` |
//! | V7 | a name has the type of the value it is bound to | `verify/types.rs` |
//! | V8 | variables are defined where they are used | `verify/scopes.rs` |
//! | V9 | a variable is not defined again inside its own scope | `verify/scopes.rs` |
//! | V10 | accessed buffers are parameters, allocated around the access, or aliases of one of these | `verify/scopes.rs` |
//! | V11 | Flat: the extent of an unrolled loop is a constant | `verify/loops.rs` |
//! | V12 | no access is certain to be outside its buffer, where the extents are constants | `verify/bounds.rs` |
//! | V13 | iterations of a parallel loop do not store to one place | `verify/races.rs` |
//! | V14 | iterations of a parallel loop do not fold into one place | `verify/races.rs` |
//! | V20 | threads of a block, where constant, are at most 1024 | `verify/threads.rs` |
//! | V21 | barriers are reached by all the threads that they wait for | `verify/threads.rs` |
//! | V22 | a hardware index is launched once on a path | `verify/threads.rs` |
//!
//! Not checked yet: accesses that may, but need not, be outside (symbolic extents, values from memory, guards);
//! regions of tile calls; strided parameters in Flat form; places that parallel iterations share only for some sizes
//! or under conditions; races between a store and a load of different iterations, between threads of a block, and
//! between parameters that overlap; memory that is read before it is written; barriers under conditions on memory;
//! warp barriers under conditions on flat thread indices; that local memory has a constant size; laws of tile calls
//! (dispatch checks them).

mod bounds;
mod forms;
mod loops;
mod races;
mod scopes;
#[cfg(test)]
mod tests;
mod threads;
mod types;

use std::collections::HashMap;

use crate::form::Checked;
use crate::kernel::Kernel;
use crate::print::{Notes, print_kernel_with_notes};
use crate::stmt::Stmt;
use crate::visit::for_each_stmt;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Property id, `V12`.
    pub code: &'static str,
    /// What was found and what is legal.
    pub message: String,
}

/// All faults of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{kernel}` has {} fault{}: {}", faults.len(), if faults.len() == 1 { "" } else { "s" }, first(faults))]
pub struct Faults {
    /// Kernel name.
    pub kernel: String,
    /// The faults, in order of the text.
    pub faults: Vec<Fault>,
    /// The printed kernel with a caret comment under each faulty line.
    pub listing: String,
}

fn first(faults: &[Fault]) -> String {
    faults.first().map(|f| format!("{}: {}", f.code, f.message)).unwrap_or_default()
}

/// Ids and sentences of all properties, in order.
pub const PROPERTIES: &[(&str, &str)] = &[
    ("V1", "statements are of the kernel's form"),
    ("V2", "vectors occur only in forms that have them"),
    ("V3", "operands and results have the types that the operation takes and gives"),
    ("V4", "accesses have the number of indices that form and buffer ask for"),
    ("V5", "stored values have the buffer's element type and the lanes of the index"),
    ("V6", "conditions are scalar bools, extents are scalar integers"),
    ("V7", "a name has the type of the value it is bound to"),
    ("V8", "variables are defined where they are used"),
    ("V9", "a variable is not defined again inside its own scope"),
    ("V10", "accessed buffers are parameters, allocated around the access, or aliases of one of these"),
    ("V11", "the extent of an unrolled loop of a Flat kernel is a constant"),
    ("V12", "no access is certain to be outside its buffer"),
    ("V13", "iterations of a parallel loop do not store to one place"),
    ("V14", "iterations of a parallel loop do not fold into one place"),
    ("V20", "threads of a block are at most 1024"),
    ("V21", "barriers are reached by all the threads that they wait for"),
    ("V22", "a hardware index is launched once on a path"),
];

/// A group of properties: looks at a kernel, reports what it finds.
type Group = for<'k> fn(&'k Kernel, &mut Report<'k>);

/// Groups that look at any tree.
const GROUPS: &[Group] = &[
    forms::check_forms,
    types::check_types,
    scopes::check_scopes,
    loops::check_loops,
    threads::check_threads,
];

/// Groups that reason about values, and so take kernels whose types are right.
const GROUPS_ON_VALUES: &[Group] = &[bounds::check_bounds, races::check_races];

/// Faults as they are found. A fault belongs to a statement, or to the signature.
#[derive(Default)]
struct Report<'k> {
    found: Vec<(Option<&'k Stmt>, Fault)>,
}

impl<'k> Report<'k> {
    fn at(&mut self, stmt: &'k Stmt, code: &'static str, message: String) {
        self.add(Some(stmt), code, message);
    }

    fn add(&mut self, stmt: Option<&'k Stmt>, code: &'static str, message: String) {
        let fault = Fault { code, message };
        let same = |(other, f): &(Option<&Stmt>, Fault)| match (other, stmt) {
            (Some(a), Some(b)) => std::ptr::eq(*a, b) && *f == fault,
            (None, None) => *f == fault,
            _ => false,
        };
        if !self.found.iter().any(same) {
            self.found.push((stmt, fault));
        }
    }
}

/// Checks every property; the permit is what emitters and executors ask for.
pub fn verify(kernel: Kernel) -> Result<Checked, Faults> {
    let mut report = Report::default();
    for group in GROUPS {
        group(&kernel, &mut report);
    }
    let is_of_types = |code: &str| matches!(code, "V3" | "V4" | "V5" | "V6" | "V7");
    if !report.found.iter().any(|(_, fault)| is_of_types(fault.code)) {
        for group in GROUPS_ON_VALUES {
            group(&kernel, &mut report);
        }
    }
    if report.found.is_empty() {
        return Ok(Checked::permit(kernel));
    }
    let mut found = report.found;
    let place = |stmt: &Stmt| std::ptr::from_ref(stmt).addr();
    let mut order = HashMap::new();
    for_each_stmt(&kernel.body, &mut |stmt| {
        let next = order.len() + 1;
        order.insert(place(stmt), next);
    });
    found.sort_by_key(|(stmt, _)| stmt.and_then(|s| order.get(&place(s)).copied()).unwrap_or(0));
    let mut notes = Notes::default();
    for (stmt, fault) in &found {
        let text = format!("error {}: {}", fault.code, fault.message);
        match stmt {
            Some(stmt) => notes.on_stmt(stmt, text),
            None => notes.on_signature(text),
        }
    }
    let listing = print_kernel_with_notes(&kernel, notes);
    let faults = found.into_iter().map(|(_, fault)| fault).collect();
    Err(Faults { kernel: kernel.name.clone(), faults, listing })
}
