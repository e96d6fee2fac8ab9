//! cut: the first elements along an axis are folded apart from those behind them.
//!
//! A row that is no whole number of vectors is folded by vectors as far as these go, and what is left in another way, such as
//! one row a lane: a loop over both would end in a guard for each lane, or in one for all of them. The order of the fold
//! changes where a part is scheduled, so only an associative and commutative reducer is folded like this. Source: the
//! splitting of index sets of vectorising compilers.

use std::sync::Arc;

use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::substitute_expr;
use coulis_ir::{Buffer, Expr, MemScope, Var};
use coulis_tensor::{Body, IterKind, IterVar, Reduction};

use crate::error::ScheduleError;
use crate::example::sums;
use crate::fold;
use crate::inline::map_body;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::schedule::{Schedule, StageRef, Values};
use crate::stage::{Factored, Stage, StageId};
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "cut",
    signature: "s.cut(stage, axis, length)",
    summary: "the first `length` elements along the axis become a stage, those behind them another, and the old stage \
              combines the two",
    before: "\
for i in range(5):
    B[i] = T.float32(0)
    for k in range(13):
        B[i] = B[i] + A[i, k]",
    call: "B_head, B_tail = s.cut(B, k, 8)",
    after: "\
B_head = T.allocate([5], \"float32\", \"global\")
for i in range(5):
    B_head[i] = T.float32(0)
    for k in range(8):
        B_head[i] = B_head[i] + A[i, k]
B_tail = T.allocate([5], \"float32\", \"global\")
for i in range(5):
    B_tail[i] = T.float32(0)
    for k in range(5):
        B_tail[i] = B_tail[i] + A[i, k + 8]
for i in range(5):
    B[i] = B_head[i] + B_tail[i]",
    example: || sums(&[Expr::int(5)], Expr::int(13)),
    apply: apply::<Cut>,
};

/// Arguments of cut.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    pub stage: StageId,
    pub axis: IterVar,
    pub length: i64,
}

impl Schedule {
    /// The first `length` elements along the axis become a stage, those behind them another, and the old stage combines the
    /// two: the new stages.
    ///
    /// # Errors
    /// For a stage that is no fold of an associative and commutative reducer, or is scheduled; and for an axis without a
    /// constant length that is greater than `length`.
    pub fn cut(
        &mut self,
        stage: impl Into<StageRef>,
        axis: &IterVar,
        length: i64,
    ) -> Result<(StageId, StageId), ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(Cut { stage, axis: axis.clone(), length })
    }
}

impl Primitive for Cut {
    type Output = (StageId, StageId);
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<Cut, ScheduleError> {
        call.at_most(3)?;
        let stage = call.stage(0, "stage")?;
        let length = call.as_int(call.arg(2, "length")?, "length")?;
        Ok(Cut { stage, axis: call.axis(stage, 1, "axis")?, length })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let stage = Arg::Name(schedule.stage_name(self.stage));
        let axis = axis_arg(schedule, self.stage, &self.axis);
        Step::on_schedule("cut", vec![stage, axis, Arg::Int(self.length)])
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        foldable_in_parts("cut", schedule, self.stage, &self.axis)?;
        let bad = |what, wanted, found| schedule.bad_value("cut", self.stage, what, wanted, found);
        let Some(length) = self.axis.length() else {
            let found = "no constant".to_owned();
            return bad("axis", "a loop of a constant number of steps from 0", found);
        };
        if !(0 < self.length && self.length < length) {
            let found = format!("{} of {length}", self.length);
            return bad("length", "at least 1 and less than all elements", found);
        }
        schedule.check_holds_none("cut", self.stage)
    }

    fn apply(self, schedule: &mut Schedule) -> Result<(StageId, StageId), ScheduleError> {
        let Some(length) = self.axis.length() else { return Ok((self.stage, self.stage)) };
        let behind = fold::int(self.length.into(), self.axis.dtype());
        let of_tail = fold::int((length - self.length).into(), self.axis.dtype());
        let head = Part { suffix: "head", n: behind.clone(), at: &|at, _| at.clone() };
        let tail = Part { suffix: "tail", n: of_tail, at: &|at, _| fold::add(at, &behind) };
        Ok(fold_in_parts(schedule, self.stage, &self.axis, [head, tail]))
    }
}

/// The fold of a stage whose elements along the axis may be folded apart from each other.
pub(super) fn foldable_in_parts<'a>(
    primitive: &'static str,
    schedule: &'a Schedule,
    stage: StageId,
    axis: &IterVar,
) -> Result<&'a Reduction, ScheduleError> {
    let stage = schedule.by_id(stage);
    let name = schedule.stage_name(stage.id);
    let reduction = stage.reduction_as_made(primitive, axis)?;
    if !reduction.claims.any_order() {
        let reducer = reduction.name.clone();
        return Err(ScheduleError::UnclaimedLaws { primitive, stage: name, reducer });
    }
    if !reduction.init.is_empty() {
        let (wanted, found) =
            ("a fold that starts from the identity", "one that starts from values".to_owned());
        return Err(ScheduleError::BadValue { primitive, stage: name, what: "stage", wanted, found });
    }
    Ok(reduction)
}

/// Elements along an axis that are folded by themselves.
pub(super) struct Part<'a> {
    /// What its stage's name ends in.
    pub suffix: &'static str,
    /// How many they are.
    pub n: Expr,
    /// The place of each in its row, from its number and the new data axes.
    pub at: &'a dyn Fn(&Expr, &Values) -> Expr,
}

/// Has each part of a stage's elements along the axis folded by a stage of its own, and the old stage combine the two: the new
/// stages.
pub(super) fn fold_in_parts(
    schedule: &mut Schedule,
    id: StageId,
    axis: &IterVar,
    parts: [Part<'_>; 2],
) -> (StageId, StageId) {
    let ids = (schedule.fresh_id(), schedule.fresh_id());
    let position = schedule.position(id);
    let stage = &schedule.stages[position];
    let Body::Reduce(reduction) = &stage.body else { return (id, id) };
    // Parts are as wide as the state, or each of them would be rounded.
    let wide = reduction.accumulating();
    let reduction = wide.as_ref().unwrap_or(reduction);
    let [first, second] = parts;
    let first = part(schedule, stage, reduction, axis, ids.0, &first);
    let second = part(schedule, stage, reduction, axis, ids.1, &second);
    let indices: Vec<Expr> = stage.axes.iter().map(IterVar::expr).collect();
    let state = |of: &Stage| -> Vec<Expr> { of.outputs.iter().map(|o| o.at(indices.clone())).collect() };
    let combined = reduction.merge(&state(&first), &state(&second));
    let stored = combined.iter().zip(&stage.outputs).map(|(value, output)| fold::cast(value, output.dtype));
    let (axes, body) = (stage.axes.clone(), Body::Plain(stored.collect()));
    Arc::make_mut(&mut schedule.stages[position]).redefine(axes, body);
    schedule.stages.insert(position, Arc::new(second));
    schedule.stages.insert(position, Arc::new(first));
    ids
}

/// The stage that folds a part.
pub(super) fn part(
    schedule: &Schedule,
    stage: &Stage,
    reduction: &Reduction,
    axis: &IterVar,
    id: StageId,
    part: &Part<'_>,
) -> Stage {
    let name = schedule.free_name(format!("{}.{}", stage.name, part.suffix));
    let all = stage.axes.iter().chain(&reduction.axes);
    let vars: Vec<Var> = all.clone().map(|old| old.var().fresh()).collect();
    let mut map: Values = all.zip(&vars).map(|(old, var)| (old.var().clone(), var.expr())).collect();
    // What depends on the axis depends on the place in the row, as domains of axes that lie within it do.
    let place = substitute_expr(&(part.at)(&map[axis.var()], &map), &map);
    map.insert(axis.var().clone(), place);
    let renewed = |(old, var): (&IterVar, &Var), kind, extent: Option<&Expr>| {
        let (min, whole) = old.dom().map_or_else(
            || (fold::int(0, old.dtype()), fold::int(1, old.dtype())),
            |(min, extent)| (substitute_expr(min, &map), substitute_expr(extent, &map)),
        );
        let extent = extent.map_or(whole, |extent| substitute_expr(extent, &map));
        IterVar::new(var.clone(), kind, min, extent)
    };
    let (of_data, of_fold) = vars.split_at(stage.axes.len());
    let axes: Vec<IterVar> =
        stage.axes.iter().zip(of_data).map(|pair| renewed(pair, IterKind::Data, None)).collect();
    let reduced: Vec<IterVar> = (reduction.axes.iter().zip(of_fold))
        .map(|pair| renewed(pair, IterKind::Reduce, (pair.0 == axis).then_some(&part.n)))
        .collect();
    let now = |old: &IterVar| reduction.axes.iter().position(|a| a == old).map(|at| reduced[at].clone());
    // Partial states are those of the part, too.
    let factored = stage.factored.iter().map(|of| {
        let around = of.around.iter().filter_map(now).collect();
        Factored { dim: of.dim, around }
    });
    let factored: Vec<Factored> = factored.collect();
    let whole = Body::Reduce(Box::new(Reduction { axes: Vec::new(), ..reduction.clone() }));
    let body = match map_body(&whole, &|e| substitute_expr(e, &map)) {
        Body::Reduce(r) => {
            let r = Reduction { axes: reduced, ..*r };
            Body::Reduce(Box::new(where_taken(r, &axes, schedule.analyzer())))
        }
        plain @ Body::Plain(_) => plain,
    };
    let shape: Vec<Expr> = axes.iter().filter_map(|a| a.dom().map(|(_, e)| e.clone())).collect();
    // All fields of the state, of which some may be no results.
    let outputs = reduction.identity.iter().enumerate().map(|(c, identity)| {
        let name = if reduction.arity() == 1 { name.clone() } else { format!("{name}.v{c}") };
        Buffer::new(&name, identity.dtype(), shape.clone(), MemScope::Global)
    });
    let outputs = outputs.collect();
    Stage { factored, ..Stage::new(id, name, outputs, axes, body) }
}

/// The fold of a part whose condition, if it has one, is decided where the part's elements decide it. One point that is left under a
/// condition is what is folded there or the identity.
fn where_taken(r: Reduction, axes: &[IterVar], mut known: Analyzer) -> Reduction {
    let Some(condition) = &r.condition else { return r };
    for axis in axes.iter().chain(&r.axes) {
        if let Some((min, extent)) = axis.dom() {
            known.bind(axis.var(), min, extent);
        }
    }
    let simpler = known.simplify(condition);
    if simpler == *condition {
        return r;
    }
    let body = Body::Reduce(Box::new(Reduction { axes: Vec::new(), ..r.clone() }));
    let Body::Reduce(plain) = map_body(&body, &|e| known.simplify(e)) else { return r };
    let condition = Some(simpler).filter(|condition| !condition.is_int(1));
    let r = Reduction { axes: r.axes, condition, ..*plain };
    match &r.condition {
        Some(condition) if r.axes.iter().all(|axis| axis.length() == Some(1)) => {
            let first = r.axes.iter().map(|axis| (axis.var().clone(), fold::int(0, axis.dtype())));
            let first: Values = first.collect();
            let taken = |(source, none): (&Expr, &Expr)| {
                let one = Expr::if_then_else(condition.clone(), source.clone(), none.clone());
                substitute_expr(&one, &first)
            };
            let sources = r.sources.iter().zip(&r.identity).map(taken).collect();
            Reduction { sources, axes: Vec::new(), condition: None, step: None, quick: None, ..r }
        }
        Some(_) | None => r,
    }
}
