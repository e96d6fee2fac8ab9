//! A copy of rows from their boundaries on that holds an element in which folds see none wherever a row has no more.
//!
//! Threads take a row by whole accesses, as many each, and a row is seldom as long. What it lacks is a
//! condition of each access behind its end, in the copy, in the fold and in what reads it again, each of
//! which waits for the one before. In a copy that is as long as the threads' accesses together the fold has
//! no conditions: what is behind a row's end is an element that changes no result (the neutral element that
//! its reducer states). The accesses that every row surely has are copied, and stored by maps, under one
//! condition each, several at a time, and what a row has besides is taken apart, after those. Source: as
//! [`crate::primitive::from_boundary`].

use coulis_ir::visit::map_children;
use coulis_ir::{Buffer, Expr, MemScope, Node, Var};
use coulis_tensor::{Body, Reduction};

use crate::error::ScheduleError;
use crate::example::less_their_sum;
use crate::primitive::cache_read::TensorRef;
use crate::primitive::from_boundary::{FromBoundary, row_length};
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply};
use crate::schedule::{Schedule, StageRef};
use crate::stage::StageId;
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "filled",
    signature: "s.filled(tensor, scope, readers, lanes, length)",
    summary: "as from_boundary, of a copy whose rows have so many elements: those that no row has are one that the \
              folds may take any number of times, and the readers run over all of them",
    before: "\
B = T.allocate([5], \"float32\", \"global\")
for i in range(5):
    B[i] = T.float32(0)
    for k in range(13):
        B[i] = B[i] + A[i, k]
for i, j in T.grid(5, 13):
    C[i, j] = A[i, j] - B[i]",
    call: "A_shared = s.filled(A, \"shared\", [B, C], 4, 16)",
    after: "\
A_shared = T.allocate([5, 16], \"float32\", \"shared\")
for ax0, ax1 in T.grid(5, 16):
    if T.likely(ax1 // 4 < 2):
        A_shared[ax0, ax1] = A[ax0, ax1 + ((ax0 * 13 + 3) // 4 * 4 - ax0 * 13)]
    if not T.likely(ax1 // 4 < 2):
        if ax1 < 13:
            if ax1 + ((ax0 * 13 + 3) // 4 * 4 - ax0 * 13) < 13:
                A_shared[ax0, ax1] = A[ax0, ax1 + ((ax0 * 13 + 3) // 4 * 4 - ax0 * 13)]
            else:
                A_shared[ax0, ax1] = A[ax0, ax1 + ((ax0 * 13 + 3) // 4 * 4 - ax0 * 13) - 13]
        else:
            A_shared[ax0, ax1] = T.float32(0)
B = T.allocate([5], \"float32\", \"global\")
for i in range(5):
    B[i] = T.float32(0)
    for k in range(16):
        B[i] = B[i] + A_shared[i, k]
for i, j in T.grid(5, 16):
    if T.likely(j // 4 < 2):
        C[i, j + ((i * 13 + 3) // 4 * 4 - i * 13)] = A_shared[i, j] - B[i]
    if not T.likely(j // 4 < 2):
        if j < 13:
            if j + ((i * 13 + 3) // 4 * 4 - i * 13) < 13:
                C[i, j + ((i * 13 + 3) // 4 * 4 - i * 13)] = A_shared[i, j] - B[i]
            else:
                C[i, j + ((i * 13 + 3) // 4 * 4 - i * 13) - 13] = A_shared[i, j] - B[i]",
    example: less_their_sum,
    apply: apply::<FilledRows>,
};

/// Arguments of filled.
#[derive(Clone, Debug)]
pub(crate) struct FilledRows {
    pub rows: FromBoundary,
    /// Elements of a row of the copy.
    pub length: i64,
}

impl Schedule {
    /// As [`Schedule::from_boundary`], of a copy whose rows have `length` elements, a whole number of
    /// accesses: those that no row has are one that the folds may take any number of times. All readers run
    /// over all elements of the copy.
    pub fn filled(
        &mut self,
        tensor: impl Into<TensorRef>,
        scope: MemScope,
        readers: &[StageRef],
        lanes: i64,
        length: i64,
    ) -> Result<StageId, ScheduleError> {
        let cache = self.cache_of(tensor.into(), scope, readers, "filled")?;
        self.call(FilledRows { rows: FromBoundary { cache, lanes }, length })
    }
}

impl Primitive for FilledRows {
    type Output = StageId;
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<FilledRows, ScheduleError> {
        call.at_most(5)?;
        let length = call.as_int(call.arg(4, "length")?, "length")?;
        Ok(FilledRows { rows: FromBoundary::of(call)?, length })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let mut args = self.rows.args(schedule);
        args.push(Arg::Int(self.length));
        Step::on_schedule("filled", args)
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        self.rows.check_as(schedule, "filled")?;
        let (tensor, lanes) = (&self.rows.cache.tensor, self.rows.lanes);
        let bad = |stage: String, what, wanted, found: String| {
            Err(ScheduleError::BadValue { primitive: "filled", stage, what, wanted, found })
        };
        let is_short = row_length(tensor).is_none_or(|length| self.length < length);
        if is_short || self.length % lanes != 0 {
            let wanted = "a whole number of accesses, no shorter than a row";
            return bad(tensor.name.clone(), "length", wanted, self.length.to_string());
        }
        let mut chosen: Option<&Expr> = None;
        for &reader in &self.rows.cache.readers {
            let Body::Reduce(fold) = &schedule.by_id(reader).body else { continue };
            let name = || schedule.stage_name(reader);
            let [element] = &fold.neutral[..] else {
                let wanted = "folds with an element that changes nothing";
                return bad(name(), "readers", wanted, format!("`{}`, which has none", fold.name));
            };
            if fold.condition.is_some() || !reads_only(fold, tensor) {
                let wanted = "folds of all elements of the tensor as they are, and of nothing else";
                return bad(name(), "readers", wanted, "others".to_owned());
            }
            if chosen.is_some_and(|other| other != element) {
                let wanted = "folds with the same element that changes nothing";
                return bad(name(), "readers", wanted, "others".to_owned());
            }
            chosen = Some(element);
        }
        if chosen.is_none() {
            return bad(tensor.name.clone(), "readers", "a fold among them", "none".to_owned());
        }
        Ok(())
    }

    fn apply(self, schedule: &mut Schedule) -> Result<StageId, ScheduleError> {
        let readers = self.rows.cache.readers.clone();
        let element = readers.iter().find_map(|reader| match &schedule.by_id(*reader).body {
            Body::Reduce(fold) => fold.neutral.first().cloned(),
            Body::Plain(_) => None,
        });
        Ok(self.rows.copied(schedule, element.map(|element| (self.length, element))))
    }
}

/// Whether the fold takes what it reads of the tensor, and nothing that depends on where that stands.
fn reads_only(fold: &Reduction, tensor: &Buffer) -> bool {
    let axes: Vec<_> = fold.axes.iter().map(|axis| axis.var().clone()).collect();
    let of_runs = fold.quick.iter().flat_map(|quick| &quick.sources);
    fold.sources.iter().chain(of_runs).all(|source| is_placeless(source, tensor, &axes))
}

fn is_placeless(source: &Expr, tensor: &Buffer, axes: &[Var]) -> bool {
    match source.node() {
        Node::Load(buffer, _) => buffer == tensor,
        Node::Var(var) => !axes.contains(var),
        _ => {
            let mut holds = true;
            map_children(source, &mut |child| {
                holds &= is_placeless(child, tensor, axes);
                child.clone()
            });
            holds
        }
    }
}
