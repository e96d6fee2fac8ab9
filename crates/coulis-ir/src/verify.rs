//! The verifier: lists every fault of a kernel, and hands out the permit.
//!
//! All properties are checked, whatever fails first (V12 to V14 only where V3 to V7 hold), and the faults are
//! shown in the printed kernel as comments, so that a report can be given back as input. [`properties`] lists them; files
//! that check one or several are the groups of [`GROUPS`].
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
mod iterations;
mod lanes;
mod launches;
mod limits;
mod loops;
mod races;
mod registers;
mod scopes;
mod stores;
mod suspects;
#[cfg(test)]
mod tests;
mod threads;
mod types;
mod unwritten;
mod witness;

use std::collections::HashMap;

use coulis_layout::counted;

use crate::form::{Checked, Form};
use crate::kernel::Kernel;
use crate::print::{Notes, print_kernel_with_notes};
use crate::stack::{depth, with_stack_for};
use crate::stmt::Stmt;
use crate::target::Target;
use crate::visit::for_each_stmt;

use self::crowd::Crowds;
use self::witness::{Launched, Scene};

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
    /// As [`Property::is_of_schedule`].
    pub fn is_of_schedule(&self) -> bool {
        self.property().is_some_and(|property| property.is_of_schedule)
    }

    /// As [`Property::pragma`].
    pub fn pragma(&self) -> Option<&'static str> {
        self.property()?.pragma
    }

    fn property(&self) -> Option<&'static Property> {
        properties().find(|property| property.id == self.code)
    }
}

/// All faults of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{kernel}` has {}: {}", counted(faults.len(), "fault"), first(faults))]
pub struct Faults {
    /// Kernel name.
    pub kernel: String,
    /// The faults, in order of the text.
    pub faults: Vec<Fault>,
    /// The printed kernel with a caret comment under each faulty line.
    pub listing: String,
}

/// Lines of a listing that is shown whole.
const WHOLE_LINES: usize = 200;
/// Faults around which lines of a longer one are shown.
const SHOWN_FAULTS: usize = 4;
/// Lines before and after each of them, and at the top.
const LINES_AROUND: usize = 6;

impl Faults {
    /// The listing; where it is long, its top and the lines around the first faults, with how many are left out between them.
    pub fn excerpt(&self) -> String {
        let lines: Vec<&str> = self.listing.trim_end().lines().collect();
        if lines.len() <= WHOLE_LINES {
            return lines.join("\n");
        }
        let faulty = lines.iter().enumerate().filter(|(_, line)| line.contains("# ^^^^ error"));
        let mut shown = String::new();
        let mut next = 0;
        for at in std::iter::once(0).chain(faulty.map(|(at, _)| at).take(SHOWN_FAULTS)) {
            let from = at.saturating_sub(LINES_AROUND).max(next);
            if from > next {
                shown.push_str(&format!("... {}\n", counted(from - next, "line")));
            }
            next = next.max((at + LINES_AROUND + 1).min(lines.len()));
            lines[from.min(next)..next].iter().for_each(|line| shown.extend([line, "\n"]));
        }
        if next < lines.len() {
            shown.push_str(&format!("... {}", counted(lines.len() - next, "line")));
        }
        shown.trim_end().to_owned()
    }
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
    /// Whether a schedule brings it about that a kernel lacks it which is right otherwise: it leaves work to no thread, or
    /// asks for more than the machine has, clusters among it.
    pub is_of_schedule: bool,
    /// The pragma that asks for it of what is below, where one does: without the pragma there is no fault.
    pub pragma: Option<&'static str>,
}

impl Property {
    const fn new(id: &'static str, says: &'static str) -> Property {
        Property { id, says, is_of_schedule: false, pragma: None }
    }

    const fn of_schedule(id: &'static str, says: &'static str) -> Property {
        Property { is_of_schedule: true, ..Property::new(id, says) }
    }

    const fn of_pragma(id: &'static str, pragma: &'static str, says: &'static str) -> Property {
        Property { pragma: Some(pragma), ..Property::new(id, says) }
    }
}

/// Properties that one file checks.
struct Group {
    properties: &'static [Property],
    checks: &'static [Check],
}

/// A look for faults: of what, and when. Kinds of checks run one after another, those of one kind in the order of
/// [`GROUPS`].
enum Check {
    /// Of any tree.
    Tree(OfKernel),
    /// Of a kernel whose types are right, since it reasons about values.
    Values(OfKernel),
    /// Of a Flat kernel that is compiled for a machine, whatever that is.
    Memory(OfKernel),
    /// Of each launch on a machine with threads.
    Launch(for<'k> fn(&mut InLaunch<'_, 'k>, &mut Report<'k>)),
    /// Of the kernel around the launches, after these.
    Launches(OfKernel),
}

type OfKernel = for<'k> fn(&'k Kernel, &mut Report<'k>);

/// A launch that is looked at.
struct InLaunch<'a, 'k> {
    launched: &'a Launched<'k>,
    /// It for some sizes.
    scenes: &'a [Scene<'a, 'k>],
    target: &'a Target,
    /// Threads that were followed.
    crowds: Crowds,
}

/// Every group. Those before the first of [`FIRST_FOR_A_TARGET`] ask for no machine, but for what they repeat of one.
const GROUPS: &[Group] = &[
    forms::GROUP,
    types::GROUP,
    scopes::GROUP,
    loops::GROUP,
    bounds::GROUP,
    races::GROUP,
    threads::GROUP,
    launches::GROUP,
    limits::GROUP,
    atoms::GROUP,
    stores::GROUP,
    clusters::GROUP,
    lanes::GROUP,
    async_copies::GROUP,
    unwritten::GROUP,
];

/// All properties.
pub fn properties() -> impl Iterator<Item = &'static Property> {
    GROUPS.iter().flat_map(|group| group.properties)
}

/// Every check of the groups.
fn checks() -> impl Iterator<Item = &'static Check> {
    GROUPS.iter().flat_map(|group| group.checks)
}

/// The first property that asks for a machine; with it and those after it a kernel is looked at by [`verify_for`].
pub const FIRST_FOR_A_TARGET: &str = "V23";

/// Faults as they are found. A fault belongs to a statement, or to the signature.
#[derive(Default)]
struct Report<'k> {
    found: Vec<(Option<&'k Stmt>, Fault)>,
}

impl<'k> Report<'k> {
    fn at(&mut self, stmt: &'k Stmt, code: &'static str, message: String) {
        self.add(Some(stmt), code, message);
    }

    /// Whether a property of the group was found missing.
    fn has_any_of(&self, group: &Group) -> bool {
        self.found.iter().any(|(_, fault)| group.properties.iter().any(|property| property.id == fault.code))
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

/// What asks for no machine; whether types are right and names defined.
fn check_kernel<'k>(kernel: &'k Kernel, report: &mut Report<'k>) -> bool {
    for check in checks() {
        if let Check::Tree(check) = check {
            check(kernel, report);
        }
    }
    let typed = !report.has_any_of(&types::GROUP);
    if typed {
        for check in checks() {
            if let Check::Values(check) = check {
                check(kernel, report);
            }
        }
    }
    typed && !report.has_any_of(&scopes::GROUP)
}

/// What a machine adds.
fn check_for<'k>(kernel: &'k Kernel, target: &Target, report: &mut Report<'k>) {
    for check in checks() {
        if let Check::Memory(check) = check {
            check(kernel, report);
        }
    }
    if !target.has_threads() {
        return;
    }
    let Some(parts) = launches::parts(kernel, report) else { return };
    let samples = witness::samples(kernel);
    for launched in &witness::launched(&parts) {
        let scenes: Vec<Scene> = samples.iter().filter_map(|sample| Scene::new(launched, sample)).collect();
        let mut at = InLaunch { launched, scenes: &scenes, target, crowds: Crowds::default() };
        for check in checks() {
            if let Check::Launch(check) = check {
                check(&mut at, report);
            }
        }
    }
    for check in checks() {
        if let Check::Launches(check) = check {
            check(kernel, report);
        }
    }
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
