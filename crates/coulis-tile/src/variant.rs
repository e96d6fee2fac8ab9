//! Variants: ways to do a tile call, as entries of a slice.

use coulis_ir::{Buffer, Stmt};

use crate::dispatch::Op;
use crate::need::{Decline, Need};
use crate::reduce::ReduceOp;
use crate::rounding::{Accuracy, Steps};

/// What a variant promises of its numbers beyond the reducer's own terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numerics {
    /// Whether subnormal numbers become 0 where the call allows it by `ftz=True`. Nobody flushes unasked (contract N10).
    pub flushes_where_allowed: bool,
    /// In which order the members of a group are combined.
    pub order: &'static str,
    /// Combinations that an element passes at most, as a formula of the call's sizes.
    pub longest_chain: &'static str,
}

/// The statements that do a call.
#[derive(Clone, Debug)]
pub struct Emitted {
    /// Registers that are declared where the call stands, outermost first.
    pub registers: Vec<Buffer>,
    /// Shared memory that the statements use.
    pub shared: Vec<Buffer>,
    /// The statements. Their accesses to shared memory need no further barriers among themselves.
    pub body: Stmt,
}

/// Why a variant that has all it needs gives no statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The call is not for it, which shows only now; the search goes on.
    Decline(Decline),
    /// A fault of the variant: ours, and no reason to search on.
    Bug(String),
}

/// One way to do the calls of an operation.
pub struct Variant<O: Op = ReduceOp> {
    /// Name, as in `dispatch="name"`.
    pub name: &'static str,
    /// Further names that `dispatch=` takes for it.
    pub aliases: &'static [&'static str],
    /// One sentence of what it does.
    pub doc: &'static str,
    /// The highest one that accepts is chosen. Two of one priority never accept the same call.
    pub priority: u32,
    /// What it asks of a call.
    pub needs: &'static [&'static Need<O>],
    /// What it promises.
    pub numerics: Numerics,
    /// The combinations that it makes of a call that has all it needs.
    pub steps: fn(&O::Facts<'_>) -> Result<Steps, String>,
    /// How inputs change what it does: an input of the call, and its effect.
    pub inputs: &'static [(&'static str, &'static str)],
    /// Its statements, for a call that has all it needs.
    pub emit: fn(&O::Facts<'_>) -> Result<Emitted, Refusal>,
}

impl<O: Op> Variant<O> {
    /// Whether `dispatch="name"` means it.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// Whether no need fails. Says less than [`Variant::declines`], and looks no further than the first that does.
    pub fn accepts(&self, facts: &O::Facts<'_>) -> bool {
        self.needs.iter().all(|need| (need.check)(facts).is_ok())
    }

    /// All needs that fail, in the order of the list; empty where the variant accepts.
    pub fn declines(&self, facts: &O::Facts<'_>) -> Vec<Decline> {
        let failed = |need: &&'static Need<O>| {
            let (wanted, found) = (need.check)(facts).err()?;
            Some(Decline { need: need.name, wanted, found })
        };
        self.needs.iter().copied().filter_map(|need| failed(&need)).collect()
    }
}

/// What became of a variant for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does the call.
    Chosen,
    /// It could do the call, and a better one does.
    Accepts,
    /// It lacks what it needs: every need that failed.
    Declined(Vec<Decline>),
}

/// One line of the table that explains a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name of the variant.
    pub name: &'static str,
    /// Its priority.
    pub priority: u32,
    /// What became of it.
    pub verdict: Verdict,
    /// How far its results may be from the exact ones, where it accepts and the operation computes.
    pub accuracy: Option<Accuracy>,
}

impl Verdict {
    /// `chosen`, `accepts` or `declined`.
    pub const fn name(&self) -> &'static str {
        match self {
            Verdict::Chosen => "chosen",
            Verdict::Accepts => "accepts",
            Verdict::Declined(_) => "declined",
        }
    }
}

/// The rows as lines of text: name, priority, verdict, and the error that its numbers may have, or every failed need with
/// what was wanted and found.
pub fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let line = |row: &Row| {
        let reasons = match &row.verdict {
            Verdict::Chosen | Verdict::Accepts => row.accuracy.map(|a| a.to_string()).unwrap_or_default(),
            Verdict::Declined(declines) => {
                let reason = |d: &Decline| format!("{}: wanted {}, found {}", d.need, d.wanted, d.found);
                declines.iter().map(reason).collect::<Vec<_>>().join("; ")
            }
        };
        let text = format!("  {:width$}  {:2}  {:8}  {reasons}", row.name, row.priority, row.verdict.name());
        text.trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
