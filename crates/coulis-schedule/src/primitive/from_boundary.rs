//! from_boundary: a copy of rows in which each begins where a wide access may, with what is before that at its end.
//!
//! Rows of odd length begin anywhere, each at another distance from the next boundary of accesses. The copy
//! of a row has the elements from its first boundary on first, and those before it behind the last one;
//! whoever reads the copy takes the elements in that order. So copy and readers run over whole accesses, of
//! which the last one or two of a row alone are taken apart. A fold's order changes, so only an associative
//! and commutative reducer is folded like this; a map stores each result in its own place. Source: as
//! [`crate::primitive::peel`], for rows that are kept.

use std::sync::Arc;

use coulis_ir::visit::{for_each_expr, substitute_expr, uses_any};
use coulis_ir::{BinaryOp, Buffer, Expr, MemScope, Node, Var};
use coulis_tensor::{Body, IterKind, IterVar, Reduction};

use crate::error::ScheduleError;
use crate::example::less_their_sum;
use crate::fold;
use crate::inline::{map_body, replace_reads};
use crate::primitive::cache_read::{CacheRead, TensorRef, dimension_axis};
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply};
use crate::ranges::dependent;
use crate::schedule::{Schedule, StageRef, Values};
use crate::stage::{Filled, Stage, StageId, Turn};
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "from_boundary",
    signature: "s.from_boundary(tensor, scope, readers, lanes)",
    summary: "as cache_read, of rows that are copied from their first boundary of accesses of so many lanes, with \
              what is before it at the end; the readers take the elements in that order",
    before: "\
B = T.allocate([5], \"float32\", \"global\")
for i in range(5):
    B[i] = T.float32(0)
    for k in range(13):
        B[i] = B[i] + A[i, k]
for i, j in T.grid(5, 13):
    C[i, j] = A[i, j] - B[i]",
    call: "A_shared = s.from_boundary(A, \"shared\", [B, C], 4)",
    after: "\
A_shared = T.allocate([5, 13], \"float32\", \"shared\")
for ax0, ax1 in T.grid(5, 13):
    if T.likely(ax1 + 3 < 13):
        A_shared[ax0, ax1] = A[ax0, ax1 + ((ax0 * 13 + 3) // 4 * 4 - ax0 * 13)]
    else:
        if ax1 + ((ax0 * 13 + 3) // 4 * 4 - ax0 * 13) < 13:
            A_shared[ax0, ax1] = A[ax0, ax1 + ((ax0 * 13 + 3) // 4 * 4 - ax0 * 13)]
        else:
            A_shared[ax0, ax1] = A[ax0, ax1 + ((ax0 * 13 + 3) // 4 * 4 - ax0 * 13) - 13]
B = T.allocate([5], \"float32\", \"global\")
for i in range(5):
    B[i] = T.float32(0)
    for k in range(13):
        B[i] = B[i] + A_shared[i, k]
for i, j in T.grid(5, 13):
    if T.likely(j + 3 < 13):
        C[i, j + ((i * 13 + 3) // 4 * 4 - i * 13)] = A_shared[i, j] - B[i]
    else:
        if j + ((i * 13 + 3) // 4 * 4 - i * 13) < 13:
            C[i, j + ((i * 13 + 3) // 4 * 4 - i * 13)] = A_shared[i, j] - B[i]
        else:
            C[i, j + ((i * 13 + 3) // 4 * 4 - i * 13) - 13] = A_shared[i, j] - B[i]",
    example: less_their_sum,
    apply: apply::<FromBoundary>,
};

/// Arguments of from_boundary.
#[derive(Clone, Debug)]
pub(crate) struct FromBoundary {
    pub cache: CacheRead,
    pub lanes: i64,
}

impl Schedule {
    /// As [`Schedule::cache_read`] of rows, each copied from its first boundary of accesses of so many lanes
    /// on, with what is before that at its end; the readers take the elements in that order.
    pub fn from_boundary(
        &mut self,
        tensor: impl Into<TensorRef>,
        scope: MemScope,
        readers: &[StageRef],
        lanes: i64,
    ) -> Result<StageId, ScheduleError> {
        let cache = self.cache_of(tensor.into(), scope, readers, "from_boundary")?;
        self.call(FromBoundary { cache, lanes })
    }
}

/// How a reader reads the rows.
struct Reading {
    /// The indices of all its reads but the last.
    outer: Vec<Expr>,
    /// Its axis along a row.
    along: IterVar,
}

impl Primitive for FromBoundary {
    type Output = StageId;
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<FromBoundary, ScheduleError> {
        call.at_most(4)?;
        FromBoundary::of(call)
    }

    fn step(&self, schedule: &Schedule) -> Step {
        Step::on_schedule("from_boundary", self.args(schedule))
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        self.check_as(schedule, Self::ENTRY.name)
    }

    fn apply(self, schedule: &mut Schedule) -> Result<StageId, ScheduleError> {
        Ok(self.copied(schedule, None))
    }
}

impl FromBoundary {
    /// The first four arguments of a call.
    pub(crate) fn of(call: &Call) -> Result<FromBoundary, ScheduleError> {
        let lanes = call.as_int(call.arg(3, "lanes")?, "lanes")?;
        Ok(FromBoundary { cache: CacheRead::of(call)?, lanes })
    }

    /// These as a step has them.
    pub(crate) fn args(&self, schedule: &Schedule) -> Vec<Arg> {
        let mut args = self.cache.args(schedule);
        args.push(Arg::Int(self.lanes));
        args
    }

    /// Whether `primitive` may take the rows like this.
    pub(crate) fn check_as(&self, schedule: &Schedule, primitive: &'static str) -> Result<(), ScheduleError> {
        self.cache.check_as(primitive, schedule)?;
        let tensor = &self.cache.tensor;
        let bad = |stage: String, what, wanted, found: &str| {
            let found = found.to_owned();
            Err(ScheduleError::BadValue { primitive, stage, what, wanted, found })
        };
        let of_tensor = || tensor.name.clone();
        if self.lanes < 2 {
            return bad(of_tensor(), "lanes", "at least 2", &self.lanes.to_string());
        }
        if row_length(tensor).is_none_or(|n| n < 2 * self.lanes) {
            let wanted = "rows of a constant number of neighbours that hold two accesses";
            return bad(of_tensor(), "tensor", wanted, "others");
        }
        if !schedule.program().args().iter().any(|a| a.buffer() == tensor) {
            return bad(of_tensor(), "tensor", "an argument of the program", "an intermediate");
        }
        for &reader in &self.cache.readers {
            let stage = schedule.by_id(reader);
            let name = || schedule.stage_name(reader);
            let is_new = stage.relations.is_empty() && stage.attrs.is_empty() && stage.aligns.is_empty();
            if !is_new || stage.turn.is_some() {
                let wanted = "ones whose loops are as they were made";
                return bad(name(), "readers", wanted, "loops that were scheduled");
            }
            let Some(reading) = reading(stage, tensor) else {
                let wanted = "ones that read one row of the tensor along a loop over all of it";
                return bad(name(), "readers", wanted, "others");
            };
            if let Some(other) = dependent(stage, &[reading.along.var().clone()]) {
                let wanted = "ones with no loop that depends on the one along the row";
                return bad(name(), "readers", wanted, &format!("`{}`, which does", other.name()));
            }
            match &stage.body {
                Body::Reduce(r) if !r.claims.any_order() => {
                    let reducer = r.name.clone();
                    return Err(ScheduleError::UnclaimedLaws { primitive, stage: name(), reducer });
                }
                Body::Reduce(_) => {}
                Body::Plain(exprs) => {
                    let is_result = stage.is_output && schedule.consumers(stage).is_empty();
                    if !is_result || stage.axes.last() != Some(&reading.along) {
                        let wanted =
                            "folds along rows, and results of the program whose rows are the tensor's";
                        return bad(name(), "readers", wanted, "others");
                    }
                    let inputs: Vec<Buffer> =
                        schedule.program().args().iter().map(|a| a.buffer().clone()).collect();
                    let places = [reading.along.var().clone()];
                    let mut reads_computed = false;
                    exprs.iter().for_each(|e| {
                        for_each_expr(e, &mut |e| {
                            if let Node::Load(buffer, indices) = e.node() {
                                let is_along = indices.iter().any(|index| uses_any(index, &places));
                                reads_computed |= is_along && !inputs.contains(buffer);
                            }
                        });
                    });
                    if reads_computed {
                        let wanted = "results that read nothing computed along the row";
                        return bad(name(), "readers", wanted, "others");
                    }
                }
            }
            schedule.check_holds_none(primitive, reader)?;
        }
        Ok(())
    }

    /// The copy, and the readers that read it. `filled`: elements of a row of the copy, and what is behind a row's own.
    pub(crate) fn copied(self, schedule: &mut Schedule, filled: Option<(i64, Expr)>) -> StageId {
        let FromBoundary { cache: CacheRead { tensor, scope, readers }, lanes } = self;
        let name = schedule.free_name(format!("{}.{}", tensor.name, scope.name()));
        let axes: Vec<IterVar> = tensor.shape.iter().enumerate().map(dimension_axis).collect();
        let Some((along, outer)) = axes.split_last() else { return schedule.fresh_id() };
        let outer: Vec<Expr> = outer.iter().map(IterVar::expr).collect();
        let mut turn = turned(&tensor, &outer, along, lanes);
        let (mut shape, mut axes) = (tensor.shape.clone(), axes.clone());
        if let Some((length, with)) = &filled
            && let (Some(extent), Some(last)) = (shape.last_mut(), axes.last_mut())
        {
            *extent = fold::int((*length).into(), extent.dtype());
            *last = longer(along, *length);
            turn.filled =
                filled_rows(&tensor, lanes, along).map(|f| Filled { with: Some(with.clone()), ..f });
        }
        let copy = Buffer::new(&name, tensor.dtype, shape, scope);
        let from: Vec<Expr> = outer.iter().cloned().chain([turn.place.expr()]).collect();
        let id = schedule.fresh_id();
        let mut stage = Stage::new(id, name, vec![copy.clone()], axes, Body::Plain(vec![tensor.at(from)]));
        stage.scope = Some(scope);
        turn.stores = false;
        stage.turn = Some(turn);
        let mut first = schedule.stages.len();
        for reader in readers {
            first = first.min(schedule.position(reader));
            let stage = schedule.by_id_mut(reader);
            let Some(Reading { outer, along }) = reading(stage, &tensor) else { continue };
            let mut turn = turned(&tensor, &outer, &along, lanes);
            // The copy is read as the loop runs, all else at the element's own place.
            let number = along.var().fresh();
            let place = match &stage.body {
                Body::Plain(_) => turn.place.expr(),
                Body::Reduce(_) => turn.either(&along.expr()),
            };
            let to_place = Values::from_iter([(along.var().clone(), place)]);
            let to_number = Values::from_iter([(number.clone(), along.expr())]);
            let of_copy = |buffer: &Buffer, indices: &[Expr]| {
                let (_, outer) = indices.split_last()?;
                let at = outer.iter().cloned().chain([number.expr()]).collect::<Vec<_>>();
                (*buffer == tensor).then(|| copy.at(at))
            };
            let change = |e: &Expr| {
                let read = replace_reads(e, &of_copy);
                substitute_expr(&substitute_expr(&read, &to_place), &to_number)
            };
            stage.body = match map_body(&stage.body, &change) {
                Body::Reduce(reduction) => Body::Reduce(Box::new(reduction.out_of_order())),
                plain @ Body::Plain(_) => plain,
            };
            if let Some((length, _)) = filled {
                turn.filled = filled_rows(&tensor, lanes, &along);
                let of = |axis: &IterVar| if *axis == along { longer(axis, length) } else { axis.clone() };
                let axes = stage.axes.iter().map(of).collect();
                let body = match stage.body.clone() {
                    Body::Reduce(r) => {
                        Body::Reduce(Box::new(Reduction { axes: r.axes.iter().map(of).collect(), ..*r }))
                    }
                    plain @ Body::Plain(_) => plain,
                };
                stage.redefine(axes, body);
            }
            if let Body::Plain(_) = stage.body {
                stage.turn = Some(turn);
            }
        }
        schedule.stages.insert(first, Arc::new(stage));
        id
    }
}

/// The axis with another length.
fn longer(axis: &IterVar, length: i64) -> IterVar {
    let (zero, length) = (fold::int(0, axis.dtype()), fold::int(length.into(), axis.dtype()));
    IterVar::new(axis.var().clone(), axis.kind(), zero, length)
}

/// Rows made longer than the tensor's.
fn filled_rows(tensor: &Buffer, lanes: i64, along: &IterVar) -> Option<Filled> {
    let int = |n: i64| fold::int(n.into(), along.dtype());
    let whole = (row_length(tensor)? - (lanes - 1)) / lanes;
    Some(Filled { lanes: int(lanes), whole: int(whole), with: None })
}

/// The turn of the rows of a tensor, `outer` being the indices of one and `along` the loop over it.
fn turned(tensor: &Buffer, outer: &[Expr], along: &IterVar, lanes: i64) -> Turn {
    let dtype = along.dtype();
    let begin = outer.iter().enumerate().map(|(d, index)| fold::mul(index, &stride(tensor, d)));
    let begin = begin.reduce(|a, b| fold::add(&a, &b)).unwrap_or_else(|| fold::int(0, dtype));
    let begin = fold::cast(&begin, dtype);
    // What is before the boundary is written so that it cancels against the row's begin in addresses.
    let most = fold::int((lanes - 1).into(), dtype);
    let lanes = fold::int(lanes.into(), dtype);
    let turns = fold::floordiv(&fold::add(&begin, &most), &lanes);
    let by = fold::sub(&fold::mul(&turns, &lanes), &begin);
    let length = tensor.shape.last().map_or_else(|| fold::int(0, dtype), |n| fold::cast(n, dtype));
    Turn {
        along: along.var().clone(),
        by,
        most,
        length,
        place: Var::new("place", dtype),
        stores: true,
        filled: None,
    }
}

fn stride(tensor: &Buffer, dim: usize) -> Expr {
    let compact = || tensor.shape[dim + 1..].iter().cloned().reduce(|a, b| fold::mul(&a, &b));
    let explicit = tensor.strides.get(dim).cloned().or_else(compact);
    explicit.unwrap_or_else(|| Expr::int(1))
}

/// Neighbours of a row, where they are a constant number.
pub(crate) fn row_length(tensor: &Buffer) -> Option<i64> {
    let last = tensor.shape.len().checked_sub(1)?;
    let is_dense = stride(tensor, last).is_int(1) && tensor.elem_offset.is_int(0);
    tensor.shape[last].as_int().filter(|_| is_dense).and_then(|n| i64::try_from(n).ok())
}

/// How the stage reads the tensor, where all its reads are of one element at a step of one of its loops,
/// which runs over a whole row.
fn reading(stage: &Stage, tensor: &Buffer) -> Option<Reading> {
    let mut found: Vec<Vec<Expr>> = Vec::new();
    for expr in stage.body.exprs() {
        for_each_expr(expr, &mut |e| {
            if let Node::Load(buffer, indices) = e.node()
                && buffer == tensor
                && !found.contains(indices)
            {
                found.push(indices.clone());
            }
        });
    }
    let [indices] = &found[..] else { return None };
    let (last, outer) = indices.split_last()?;
    let var = last.as_var()?;
    let along = stage.axes.iter().chain(stage.reduce_axes()).find(|axis| axis.var() == var)?;
    let (min, extent) = along.dom()?;
    let is_whole = min.is_int(0) && extent.as_int() == tensor.shape.last().and_then(Expr::as_int);
    let is_of_kind = match stage.body {
        Body::Plain(_) => along.kind() == IterKind::Data,
        Body::Reduce(_) => along.kind() == IterKind::Reduce,
    };
    let is_fixed = !outer.iter().any(|index| uses_any(index, std::slice::from_ref(var)));
    (is_whole && is_of_kind && is_fixed).then(|| Reading { outer: outer.to_vec(), along: along.clone() })
}

impl Turn {
    /// The place of the element of that number, from the boundary on, and whether it is behind the boundary; else the other.
    pub(crate) fn sides(&self, number: &Expr) -> (Expr, Expr, Expr) {
        let behind = fold::add(number, &self.by);
        let before = fold::sub(&behind, &self.length);
        (fold::compare(BinaryOp::Lt, &behind, &self.length), behind, before)
    }

    /// The place as one expression.
    fn either(&self, number: &Expr) -> Expr {
        let (is_behind, behind, before) = self.sides(number);
        Expr::select(is_behind, behind, before)
    }
}
