//! The verifier: lists every fault of a kernel, and hands out the permit.
//!
//! All properties are checked, whatever fails first (V12 to V14 only where V3 to V7 hold), and the faults are
//! shown in the printed kernel as comments, so that a report can be given back as input. [`PROPERTIES`] lists them, with
//! the file that checks each.
//!
//! [`verify`] checks what is wrong on every machine, [`verify_for`] also what a kernel needs on its machine: from
//! [`FIRST_FOR_A_TARGET`] on, of Flat kernels on a machine with threads (V29 on every machine).
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

mod async_copies;
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

/// What a kernel has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Property {
    /// Id, `V12`.
    pub id: &'static str,
    /// The property, as a sentence.
    pub says: &'static str,
    /// The file that checks it, from this module's folder.
    pub file: &'static str,
}

/// All properties, in order.
pub const PROPERTIES: &[Property] = &[
    Property { id: "V1", says: "statements are of the kernel's form", file: "forms.rs" },
    Property { id: "V2", says: "vectors occur only in forms that have them", file: "forms.rs" },
    Property {
        id: "V3",
        says: "operands and results have the types that the operation takes and gives; constants fit their type",
        file: "types.rs",
    },
    Property {
        id: "V4",
        says: "accesses have the number of indices that form and buffer ask for, of integer types",
        file: "types.rs",
    },
    Property {
        id: "V5",
        says: "stored values have the buffer's element type and the lanes of the index",
        file: "types.rs",
    },
    Property {
        id: "V6",
        says: "conditions are scalar bools; loop, launch and allocation extents are scalar integers",
        file: "types.rs",
    },
    Property { id: "V7", says: "a name has the type of the value it is bound to", file: "types.rs" },
    Property { id: "V8", says: "variables are defined where they are used", file: "scopes.rs" },
    Property { id: "V9", says: "a variable is not defined again inside its own scope", file: "scopes.rs" },
    Property {
        id: "V10",
        says: "accessed buffers are parameters, allocated around the access, or aliases of one of these",
        file: "scopes.rs",
    },
    Property { id: "V11", says: "Flat: the extent of an unrolled loop is a constant", file: "loops.rs" },
    Property {
        id: "V12",
        says: "no access is certain to be outside its buffer, where the extents are constants",
        file: "bounds.rs",
    },
    Property {
        id: "V13",
        says: "iterations of a parallel loop do not store to one place, nor to one that another reads",
        file: "races.rs",
    },
    Property {
        id: "V14",
        says: "iterations of a parallel loop do not fold into one place",
        file: "races.rs",
    },
    Property { id: "V20", says: "threads of a block, where constant, are at most 1024", file: "threads.rs" },
    Property {
        id: "V21",
        says: "barriers are reached by all the threads that they wait for",
        file: "threads.rs",
    },
    Property { id: "V22", says: "a hardware index is launched once on a path", file: "threads.rs" },
    Property {
        id: "V23",
        says: "statements stand in launches, and launches stand outermost",
        file: "../device.rs",
    },
    Property {
        id: "V24",
        says: "extents of a grid and of a block are what the machine has",
        file: "limits.rs",
    },
    Property {
        id: "V25",
        says: "shared memory has a size that a block may have, a constant one unless it is asked for at launch",
        file: "limits.rs",
    },
    Property {
        id: "V26",
        says: "local memory has a constant size, and the registers of a thread hold what of it is live at one time",
        file: "limits.rs and registers.rs",
    },
    Property {
        id: "V27",
        says: "no thread index leaves a store as it is: all its values would store to one element",
        file: "stores.rs",
    },
    Property {
        id: "V28",
        says: "no two threads store to one element in one execution of a statement, and no two blocks in any",
        file: "stores.rs",
    },
    Property {
        id: "V29",
        says: "allocated memory is written before it is read (on every machine)",
        file: "unwritten.rs",
    },
    Property {
        id: "V30",
        says: "masks name the caller, and lanes that come to the statement",
        file: "lanes.rs",
    },
    Property {
        id: "V31",
        says: "masks are not made of the lanes that happen to be active",
        file: "lanes.rs",
    },
    Property {
        id: "V32",
        says: "widths of shuffles are constant powers of two, for warps of the machine's length",
        file: "atoms.rs",
    },
    Property {
        id: "V33",
        says: "atomic updates work on shared or global memory of types that machines update",
        file: "atoms.rs",
    },
    Property { id: "V34", says: "named barriers are 1 to 15, and wait for whole warps", file: "atoms.rs" },
    Property {
        id: "V35",
        says: "clusters have a size that the machine has, and a grid is whole clusters",
        file: "limits.rs",
    },
    Property {
        id: "V36",
        says: "another block's shared memory is read in a cluster, and no block ends before",
        file: "clusters.rs",
    },
    Property {
        id: "V37",
        says: "where words are copied into shared memory asynchronously, nothing reads it, and no barrier stands",
        file: "async_copies.rs",
    },
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
    async_copies::check_async_copies,
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

/// Checks V1 to V22, and V34 and V37, which ask for no machine; the permit is what emitters and executors ask for.
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

/// V1 to V22, V37, and V34 as it is on every machine; whether types are right and names defined.
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
