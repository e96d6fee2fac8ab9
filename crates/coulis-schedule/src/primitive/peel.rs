//! peel: a fold of neighbours begins where a wide access may, and what that leaves at both ends is folded apart.
//!
//! Rows of odd length begin anywhere, each at another distance from the next boundary of accesses. As many whole accesses as
//! every row surely holds become one stage, which begins at the first boundary of its row; the few elements before and
//! after them, as many in every row, become another, and the old stage combines the two. So no access needs a mask, and
//! none reads what is not its row's. The order of the fold changes, so only an associative and commutative reducer is
//! folded like this. Source: the loop peeling of vectorising compilers, with a count that does not depend on the row.

use coulis_ir::visit::{for_each_expr, substitute_expr, uses_any};
use coulis_ir::{BinaryOp, Buffer, Expr, Node};
use coulis_tensor::{Body, IterVar, Reduction};

use crate::error::ScheduleError;
use crate::example::sums;
use crate::fold;
use crate::primitive::cut::{Part, fold_in_parts, foldable_in_parts};
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::ranges::dependent;
use crate::schedule::{Schedule, StageRef, Values};
use crate::stage::StageId;
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "peel",
    signature: "s.peel(stage, axis, lanes)",
    summary: "the elements along the axis that are whole accesses of so many lanes, as many in every row, become a \
              stage, those at both ends another, and the old stage combines the two",
    before: "\
for i in range(5):
    B[i] = T.float32(0)
    for k in range(13):
        B[i] = B[i] + A[i, k]",
    call: "B_words, B_ends = s.peel(B, k, 4)",
    after: "\
B_words = T.allocate([5], \"float32\", \"global\")
for i in range(5):
    B_words[i] = T.float32(0)
    for k in range(8):
        B_words[i] = B_words[i] + A[i, k + ((i * 13 + 3) // 4 * 4 - i * 13)]
B_ends = T.allocate([5], \"float32\", \"global\")
for i in range(5):
    B_ends[i] = T.float32(0)
    for k in range(5):
        B_ends[i] = B_ends[i] + A[i, T.Select(k < (i * 13 + 3) // 4 * 4 - i * 13, k, k + 8)]
for i in range(5):
    B[i] = B_words[i] + B_ends[i]",
    example: || sums(&[Expr::int(5)], Expr::int(13)),
    apply: apply::<Peel>,
};

/// Arguments of peel.
#[derive(Clone, Debug)]
pub(crate) struct Peel {
    pub stage: StageId,
    pub axis: IterVar,
    pub lanes: i64,
}

impl Schedule {
    /// The elements along the axis that are whole accesses of so many lanes become a stage, those at both ends of each row
    /// another, and the old stage combines the two: the new stages.
    pub fn peel(
        &mut self,
        stage: impl Into<StageRef>,
        axis: &IterVar,
        lanes: i64,
    ) -> Result<(StageId, StageId), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(Peel { stage, axis: axis.clone(), lanes })
    }
}

/// The elements of a row: those before the first boundary, how many follow it in whole accesses, and how many are left.
struct Parts {
    before: Expr,
    whole: i64,
    ends: i64,
}

impl Primitive for Peel {
    type Output = (StageId, StageId);
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<Peel, ScheduleError> {
        call.at_most(3)?;
        let stage = call.stage(0, "stage")?;
        let lanes = call.as_int(call.arg(2, "lanes")?, "lanes")?;
        Ok(Peel { stage, axis: call.axis(stage, 1, "axis")?, lanes })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let stage = Arg::Name(schedule.stage_name(self.stage));
        let axis = axis_arg(schedule, self.stage, &self.axis);
        Step::on_schedule("peel", vec![stage, axis, Arg::Int(self.lanes)])
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let reduction = foldable_in_parts("peel", schedule, self.stage, &self.axis)?;
        let bad = |what, wanted, found| schedule.bad_value("peel", self.stage, what, wanted, found);
        if self.lanes < 2 {
            return bad("lanes", "at least 2", self.lanes.to_string());
        }
        let length = self.axis.length();
        if length.is_none_or(|n| n < 2 * self.lanes) {
            let found = length.map_or("no constant".to_owned(), |n| n.to_string());
            return bad("axis", "a loop of a constant number of steps from 0 that holds two accesses", found);
        }
        if let Some(other) = dependent(schedule.by_id(self.stage), &[self.axis.var().clone()]) {
            let found = format!("`{}`, on which the steps of `{}` depend", self.axis.name(), other.name());
            return bad("axis", "a loop on which no other depends", found);
        }
        if row_begin(reduction, &self.axis).is_none() {
            let found = "others".to_owned();
            return bad("stage", "reads along the axis of neighbours in one row of one tensor", found);
        }
        schedule.check_holds_none("peel", self.stage)
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(StageId, StageId), ScheduleError> {
        let Body::Reduce(reduction) = &schedule.by_id(self.stage).body else {
            return Ok((self.stage, self.stage));
        };
        let Some(parts) = self.parts(reduction) else { return Ok((self.stage, self.stage)) };
        let [whole, at_ends] = [parts.whole, parts.ends].map(|n| fold::int(n.into(), self.axis.dtype()));
        let words = Part { suffix: "words", n: whole.clone(), at: &|at, _| fold::add(at, &parts.before) };
        let of_ends = |at: &Expr, map: &Values| {
            let before = substitute_expr(&parts.before, map);
            let is_before = fold::compare(BinaryOp::Lt, at, &before);
            Expr::select(is_before, at.clone(), fold::add(at, &whole))
        };
        let ends = Part { suffix: "ends", n: at_ends, at: &of_ends };
        Ok(fold_in_parts(schedule, self.stage, &self.axis, [words, ends]))
    }
}

impl Peel {
    /// The parts of a row; `None` where the check fails.
    fn parts(&self, reduction: &Reduction) -> Option<Parts> {
        let begin = row_begin(reduction, &self.axis)?;
        let length = self.axis.length()?;
        // A boundary comes after at most `lanes - 1` elements, whatever the row.
        let whole = (length - (self.lanes - 1)) / self.lanes * self.lanes;
        // What is before the boundary is written so that it cancels against the row's begin in addresses.
        let dtype = self.axis.dtype();
        let lanes = fold::int(self.lanes.into(), dtype);
        let turns = fold::floordiv(&fold::add(&begin, &fold::int((self.lanes - 1).into(), dtype)), &lanes);
        let before = fold::sub(&fold::mul(&turns, &lanes), &begin);
        Some(Parts { before, whole, ends: length - whole })
    }
}

/// Elements between the first of the tensor and the one at the axis' first step, where all reads along the axis are of
/// neighbours in the same row of one tensor; in the axis' type.
fn row_begin(reduction: &Reduction, axis: &IterVar) -> Option<Expr> {
    let along = [axis.var().clone()];
    let mut reads: Vec<(Buffer, Vec<Expr>)> = Vec::new();
    let sources = reduction.sources.iter().chain(reduction.quick.iter().flat_map(|quick| &quick.sources));
    for source in sources.chain(&reduction.condition) {
        for_each_expr(source, &mut |e| {
            if let Node::Load(buffer, indices) = e.node()
                && indices.iter().any(|index| uses_any(index, &along))
                && !reads.iter().any(|(b, i)| b == buffer && i == indices)
            {
                reads.push((buffer.clone(), indices.clone()));
            }
        });
    }
    let [(buffer, indices)] = &reads[..] else { return None };
    let (last, outer) = indices.split_last()?;
    let compact =
        |d: usize| buffer.shape[d + 1..].iter().fold(fold::int(1, axis.dtype()), |n, e| fold::mul(&n, e));
    let stride = |d: usize| buffer.strides.get(d).cloned().unwrap_or_else(|| compact(d));
    let first = steps_behind(last, axis)?;
    if !stride(outer.len()).is_int(1)
        || outer.iter().any(|index| uses_any(index, &along))
        || !buffer.elem_offset.is_int(0)
    {
        return None;
    }
    let each = outer.iter().enumerate().map(|(d, index)| fold::mul(index, &stride(d)));
    let begin = each.reduce(|a, b| fold::add(&a, &b)).unwrap_or_else(|| fold::int(0, axis.dtype()));
    Some(fold::add(&fold::cast(&begin, axis.dtype()), &first))
}

/// What an index that is otherwise the axis adds to it, a constant.
fn steps_behind(index: &Expr, axis: &IterVar) -> Option<Expr> {
    match index.node() {
        Node::Binary(BinaryOp::Add, a, b) if a.as_var() == Some(axis.var()) => {
            b.as_int().map(|n| fold::int(n, axis.dtype()))
        }
        _ => (index.as_var() == Some(axis.var())).then(|| fold::int(0, axis.dtype())),
    }
}
