//! peel: a fold of neighbours begins where a wide access may, and what that leaves at both ends is folded apart.
//!
//! Rows of odd length begin anywhere, each at another distance from the next boundary of accesses. As many whole accesses as
//! every row surely holds become one stage, which begins at the first boundary of its row; the few elements before and
//! after them, as many in every row, become another, and the old stage combines the two. So no access needs a mask, and
//! none reads what is not its row's. The order of the fold changes, so only an associative and commutative reducer is
//! folded like this. Source: the loop peeling of vectorising compilers, with a count that does not depend on the row.

use std::sync::Arc;

use coulis_ir::visit::{for_each_expr, substitute_expr, uses_any};
use coulis_ir::{BinaryOp, Buffer, Expr, MemScope, Node};
use coulis_tensor::{Body, IterKind, IterVar, Reduction};

use crate::error::ScheduleError;
use crate::example::sums;
use crate::fold;
use crate::inline::map_body;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::schedule::{Schedule, StageRef, Values};
use crate::stage::{Stage, StageId};
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
        let stage = schedule.by_id(self.stage);
        let name = schedule.stage_name(stage.id);
        stage.leaf_position("peel", &self.axis)?;
        let Body::Reduce(reduction) = &stage.body else {
            let (wanted, found) = ("a reduction", "no reduction");
            return Err(ScheduleError::WrongBody { primitive: "peel", stage: name, wanted, found });
        };
        if self.axis.kind() != IterKind::Reduce {
            return Err(stage.wrong_kind("peel", &self.axis, IterKind::Reduce));
        }
        if !(reduction.claims.associative && reduction.claims.commutative) {
            let (primitive, reducer) = ("peel", reduction.name.clone());
            return Err(ScheduleError::UnclaimedLaws { primitive, stage: name, reducer });
        }
        let bad = |what, wanted, found: String| {
            Err(ScheduleError::BadValue { primitive: "peel", stage: name.clone(), what, wanted, found })
        };
        if !stage.relations.is_empty() || !stage.attrs.is_empty() || !stage.aligns.is_empty() {
            let found = "loops that were scheduled".to_owned();
            return bad("stage", "one whose loops are as they were made", found);
        }
        if !reduction.init.is_empty() {
            return bad(
                "stage",
                "a fold that starts from the identity",
                "one that starts from values".to_owned(),
            );
        }
        if self.lanes < 2 {
            return bad("lanes", "at least 2", self.lanes.to_string());
        }
        let length = length(&self.axis);
        if length.is_none_or(|n| n < 2 * self.lanes) {
            let found = length.map_or("no constant".to_owned(), |n| n.to_string());
            return bad("axis", "a loop of a constant number of steps from 0 that holds two accesses", found);
        }
        if row_begin(reduction, &self.axis).is_none() {
            let found = "others".to_owned();
            return bad("stage", "reads along the axis of neighbours in one row of one tensor", found);
        }
        schedule.check_holds_none("peel", self.stage)
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(StageId, StageId), ScheduleError> {
        let (words, ends) = (schedule.fresh_id(), schedule.fresh_id());
        let position = schedule.position(self.stage);
        let stage = &schedule.stages[position];
        let Body::Reduce(reduction) = &stage.body else { return Ok((self.stage, self.stage)) };
        // Parts are as wide as the state, or each of them would be rounded.
        let wide = reduction.accumulating();
        let reduction = wide.as_ref().unwrap_or(reduction);
        let Some(parts) = self.parts(reduction) else { return Ok((self.stage, self.stage)) };
        let dtype = self.axis.dtype();
        let whole = fold::int(parts.whole.into(), dtype);
        let after = |at: &Expr| fold::add(at, &parts.before);
        let of_words =
            part(schedule, stage, reduction, &self.axis, (words, "words", parts.whole), &|at, _| after(at));
        let of_ends = part(schedule, stage, reduction, &self.axis, (ends, "ends", parts.ends), &|at, map| {
            let before = substitute_expr(&parts.before, map);
            let is_before = fold::compare(BinaryOp::Lt, at, &before);
            Expr::select(is_before, at.clone(), fold::add(at, &whole))
        });
        let indices: Vec<Expr> = stage.axes.iter().map(IterVar::expr).collect();
        let state = |of: &Stage| -> Vec<Expr> { of.outputs.iter().map(|o| o.at(indices.clone())).collect() };
        let combined = reduction.merge(&state(&of_words), &state(&of_ends));
        let stored =
            combined.iter().zip(&stage.outputs).map(|(value, output)| fold::cast(value, output.dtype));
        let (axes, body) = (stage.axes.clone(), Body::Plain(stored.collect()));
        Arc::make_mut(&mut schedule.stages[position]).redefine(axes, body);
        schedule.stages.insert(position, Arc::new(of_ends));
        schedule.stages.insert(position, Arc::new(of_words));
        Ok((words, ends))
    }
}

impl Peel {
    /// The parts of a row; `None` where the check fails.
    fn parts(&self, reduction: &Reduction) -> Option<Parts> {
        let begin = row_begin(reduction, &self.axis)?;
        let length = length(&self.axis)?;
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

/// Steps of a loop that begins at 0, where they are a constant.
fn length(axis: &IterVar) -> Option<i64> {
    let (min, extent) = axis.dom()?;
    extent.as_int().filter(|_| min.is_int(0)).and_then(|n| i64::try_from(n).ok())
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
    let is_inner = stride(outer.len()).is_int(1) && last.as_var() == Some(axis.var());
    if !is_inner || outer.iter().any(|index| uses_any(index, &along)) || !buffer.elem_offset.is_int(0) {
        return None;
    }
    let each = outer.iter().enumerate().map(|(d, index)| fold::mul(index, &stride(d)));
    let begin = each.reduce(|a, b| fold::add(&a, &b)).unwrap_or_else(|| fold::int(0, axis.dtype()));
    Some(fold::cast(&begin, axis.dtype()))
}

/// A stage that folds `n` of the elements along the axis; `at` gives the place of each in its row, from its
/// number and the new data axes.
fn part(
    schedule: &Schedule,
    stage: &Stage,
    reduction: &Reduction,
    axis: &IterVar,
    (id, suffix, n): (StageId, &str, i64),
    at: &dyn Fn(&Expr, &Values) -> Expr,
) -> Stage {
    let mut name = format!("{}.{suffix}", stage.name);
    while schedule.stages.iter().any(|s| s.name == name) {
        name.push_str(".d");
    }
    let mut map = Values::default();
    let mut renewed = |old: &IterVar, kind, extent: Option<Expr>| {
        let var = old.var().fresh();
        let (min, whole) = old.dom().map_or_else(
            || (fold::int(0, old.dtype()), fold::int(1, old.dtype())),
            |(min, extent)| (substitute_expr(min, &map), substitute_expr(extent, &map)),
        );
        map.insert(old.var().clone(), var.expr());
        IterVar::new(var, kind, min, extent.unwrap_or(whole))
    };
    let axes: Vec<IterVar> = stage.axes.iter().map(|old| renewed(old, IterKind::Data, None)).collect();
    let reduced: Vec<IterVar> = (reduction.axes.iter())
        .map(|old| renewed(old, IterKind::Reduce, (old == axis).then(|| fold::int(n.into(), old.dtype()))))
        .collect();
    let number = map[axis.var()].clone();
    let place = substitute_expr(&at(&number, &map), &map);
    map.insert(axis.var().clone(), place);
    let whole = Body::Reduce(Box::new(Reduction { axes: Vec::new(), ..reduction.clone() }));
    let body = match map_body(&whole, &|e| substitute_expr(e, &map)) {
        Body::Reduce(r) => Body::Reduce(Box::new(Reduction { axes: reduced, ..*r })),
        plain @ Body::Plain(_) => plain,
    };
    let shape: Vec<Expr> = axes.iter().filter_map(|a| a.dom().map(|(_, e)| e.clone())).collect();
    let outputs = stage.outputs.iter().enumerate().map(|(c, output)| {
        let one = stage.outputs.len() == 1;
        let name = if one { name.clone() } else { format!("{name}.v{c}") };
        let dtype = reduction.identity.get(c).map_or(output.dtype, Expr::dtype);
        Buffer::new(&name, dtype, shape.clone(), MemScope::Global)
    });
    let outputs = outputs.collect();
    Stage::new(id, name, outputs, axes, body)
}
