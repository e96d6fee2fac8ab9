//! The verifier: lists every fault of a kernel, and hands out the permit.
//!
//! All properties are checked, whatever fails first (V12 to V14 only where V3 to V7 hold), and the faults are
//! shown in the printed kernel as comments, so that a report can be given back as input. [`PROPERTIES`] says
//! what each id stands for:
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
//! | V13 | iterations of a parallel loop do not store to one place, nor to one that another reads | `verify/races.rs` |
//! | V14 | iterations of a parallel loop do not fold into one place | `verify/races.rs` |
//! | V20 | threads of a block, where constant, are at most 1024 | `verify/threads.rs` |
//! | V21 | barriers are reached by all the threads that they wait for | `verify/threads.rs` |
//! | V22 | a hardware index is launched once on a path | `verify/threads.rs` |
//!
//! [`verify_for`] also checks what a kernel needs on its machine. On a machine with threads, of a Flat kernel:
//!
//! | id | property | file |
//! |---|---|---|
//! | V23 | statements stand in launches, and launches stand outermost | `device.rs` |
//! | V24 | extents of a grid and of a block are what the machine has | `verify/limits.rs` |
//! | V25 | shared memory has a size that a block may have, a constant one unless it is asked for at launch | `verify/limits.rs` |
//! | V26 | local memory has a constant size, and the registers of a thread hold what of it is live at one time | `verify/limits.rs`, `verify/registers.rs` |
//! | V27 | no thread index leaves a store as it is: all its values would store to one element | `verify/stores.rs` |
//! | V28 | no two threads store to one element in one execution of a statement, and no two blocks in any | `verify/stores.rs` |
//! | V29 | allocated memory is written before it is read (on every machine) | `verify/unwritten.rs` |
//! | V30 | masks name the caller, and lanes that come to the statement | `verify/lanes.rs` |
//! | V31 | masks are not made of the lanes that happen to be active | `verify/lanes.rs` |
//! | V32 | widths of shuffles are constant powers of two, for warps of the machine's length | `verify/atoms.rs` |
//! | V33 | atomic updates work on shared or global memory of types that machines update | `verify/atoms.rs` |
//! | V34 | named barriers are 1 to 15, and wait for whole warps | `verify/atoms.rs` |
//! | V35 | clusters have a size that the machine has, and a grid is whole clusters | `verify/limits.rs` |
//! | V36 | another block's shared memory is read in a cluster, and no block ends before | `verify/clusters.rs` |
//!
//! There V20 has the machine's own limit, and V21 follows what threads keep in memory of their own, and counts who
//! comes to warp, named and cluster barriers. These are faults that a kernel shows when it runs, so the simulator takes the
//! permit of [`verify`] and reports, and what is compiled for a GPU takes that of [`verify_for`].
//!
//! Not checked yet: accesses that may, but need not, be outside (symbolic extents, values from memory, guards);
//! regions of tile calls; strided parameters in Flat form; places that parallel iterations share only for some sizes
//! or under conditions; races between a store and a load of different iterations or threads, between stores of
//! different statements or iterations, and between parameters that overlap; memory that is read before it is written
//! where conditions decide; who comes to a statement where memory decides; laws of tile calls (dispatch checks them).

mod atoms;
mod bounds;
mod clusters;
mod company;
mod crowd;
mod forms;
mod lanes;
mod limits;
mod loops;
mod races;
mod registers;
mod scopes;
mod stores;
#[cfg(test)]
mod tests;
mod threads;
mod types;
mod unwritten;
mod witness;

use std::collections::HashMap;

use crate::device::{DeviceError, host_parts};
use crate::form::{Checked, Form};
use crate::kernel::Kernel;
use crate::print::{Notes, print_kernel_with_notes};
use crate::stack::{depth, with_stack_for};
use crate::stmt::Stmt;
use crate::target::Target;
use crate::visit::for_each_stmt;

pub use self::registers::{local_bytes, register_bytes};

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Property id, `V12`.
    pub code: &'static str,
    /// What was found and what is legal.
    pub message: String,
}

impl Fault {
    /// Whether a schedule brings it about that is right otherwise: it leaves work to no thread, or asks for more than the
    /// machine has, clusters among it.
    pub fn is_of_schedule(&self) -> bool {
        matches!(self.code, "V20" | "V23" | "V24" | "V25" | "V26" | "V35")
    }
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
    ("V13", "iterations of a parallel loop do not store to one place, nor to one that another reads"),
    ("V14", "iterations of a parallel loop do not fold into one place"),
    ("V20", "threads of a block are at most 1024"),
    ("V21", "barriers are reached by all the threads that they wait for"),
    ("V22", "a hardware index is launched once on a path"),
    ("V23", "statements stand in launches, and launches stand outermost"),
    ("V24", "extents of a grid and of a block are what the machine has"),
    ("V25", "shared memory has a constant size that a block may have"),
    (
        "V26",
        "local memory has a constant size, and the registers of a thread hold what of it is live at one time",
    ),
    ("V27", "no thread index leaves a store as it is"),
    ("V28", "no two threads store to one element in one execution of a statement, and no two blocks in any"),
    ("V29", "allocated memory is written before it is read"),
    ("V30", "masks name the caller, and lanes that come to the statement"),
    ("V31", "masks are not made of the lanes that happen to be active"),
    ("V32", "widths of shuffles are constant powers of two, for warps of the machine's length"),
    ("V33", "atomic updates work on shared or global memory of types that machines update"),
    ("V34", "named barriers are 1 to 15, and wait for whole warps"),
    ("V35", "clusters have a size that the machine has, and a grid is whole clusters"),
    ("V36", "another block's shared memory is read in a cluster, and no block ends before"),
];

/// The first property that only [`verify_for`] checks.
pub const FIRST_FOR_A_TARGET: &str = "V23";

/// A group of properties: looks at a kernel, reports what it finds.
type Group = for<'k> fn(&'k Kernel, &mut Report<'k>);

/// Groups that look at any tree.
const GROUPS: &[Group] = &[
    forms::check_forms,
    types::check_types,
    scopes::check_scopes,
    loops::check_loops,
    threads::check_threads,
    atoms::check_barrier_numbers,
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

/// Checks V1 to V22; the permit is what emitters and executors ask for.
pub fn verify(kernel: Kernel) -> Result<Checked, Faults> {
    let mut report = Report::default();
    with_stack_for(depth(&kernel.body), || check_kernel(&kernel, &mut report));
    let found = report.found;
    judge(&kernel, found).map(|()| Checked::permit(kernel))
}

/// Checks every property, with what the machine has; the permit of kernels that are compiled for a GPU.
pub fn verify_for(kernel: Kernel, target: &Target) -> Result<Checked, Faults> {
    let mut report = Report::default();
    with_stack_for(depth(&kernel.body), || {
        if check_kernel(&kernel, &mut report) && kernel.form == Form::Flat {
            check_for(&kernel, target, &mut report);
        }
    });
    let found = report.found;
    judge(&kernel, found).map(|()| Checked::permit(kernel))
}

/// The permit of [`verify_for`] for a kernel that has the one of [`verify`]: checks only what the machine adds.
pub fn verify_more_for(checked: Checked, target: &Target) -> Result<Checked, Faults> {
    let mut report = Report::default();
    let kernel = checked.kernel();
    if kernel.form == Form::Flat {
        with_stack_for(depth(&kernel.body), || check_for(kernel, target, &mut report));
    }
    let found = report.found;
    judge(checked.kernel(), found).map(|()| checked)
}

/// V1 to V22, and V34 as it is on every machine; whether types are right and names defined.
fn check_kernel<'k>(kernel: &'k Kernel, report: &mut Report<'k>) -> bool {
    for group in GROUPS {
        group(kernel, report);
    }
    let is_of_types = |code: &str| matches!(code, "V3" | "V4" | "V5" | "V6" | "V7");
    let typed = !report.found.iter().any(|(_, fault)| is_of_types(fault.code));
    if typed {
        for group in GROUPS_ON_VALUES {
            group(kernel, report);
        }
    }
    typed && !report.found.iter().any(|(_, fault)| matches!(fault.code, "V8" | "V9" | "V10"))
}

/// V23 to V36, and V20 and V21 as the machine has them.
fn check_for<'k>(kernel: &'k Kernel, target: &Target, report: &mut Report<'k>) {
    unwritten::check_unwritten(kernel, report);
    if !target.has_threads() {
        return;
    }
    let parts = match host_parts(kernel) {
        Ok(parts) => parts,
        // A second launch of one tag is V22.
        Err((_, DeviceError::Twice { .. })) => return,
        Err((stmt, error)) => {
            report.at(stmt, "V23", error.to_string());
            return;
        }
    };
    let samples = witness::samples(kernel);
    for launched in witness::launched(&parts) {
        limits::check_limits(&launched, target, report);
        atoms::check_atoms(launched.launch.body, target, report);
        let scenes: Vec<witness::Scene> =
            samples.iter().filter_map(|sample| witness::Scene::new(&launched, sample)).collect();
        let mut crowds = crowd::Crowds::default();
        stores::check_stores(&launched, &scenes, &mut crowds, report);
        clusters::check_clusters(&launched, target, report);
        lanes::check_lanes(&launched, &scenes, &mut crowds, target, report);
    }
    threads::check_barriers_of_private_values(&kernel.body, report);
}

/// Orders the faults by the text and shows them in the printed kernel.
fn judge<'k>(kernel: &'k Kernel, mut found: Vec<(Option<&'k Stmt>, Fault)>) -> Result<(), Faults> {
    if found.is_empty() {
        return Ok(());
    }
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
    let listing = print_kernel_with_notes(kernel, notes);
    let faults = found.into_iter().map(|(_, fault)| fault).collect();
    Err(Faults { kernel: kernel.name.clone(), faults, listing })
}
