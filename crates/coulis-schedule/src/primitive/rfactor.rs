//! rfactor: a reduction becomes a reduction of partial reductions.
//!
//! The loop that is factored becomes a dimension of a new stage of partial results; the old stage folds those.
//! Source: seed 003. The new order of the fold gives the same result only for an associative and commutative
//! reducer, so anything else is refused. One that selects one of two states, and tells left from right where it could
//! select either, as an argmax may, is folded with the place of its element as one more field that nobody sees.

use coulis_ir::hash::FastSet;
use std::sync::Arc;

use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{substitute_expr, uses_any};
use coulis_ir::{BinaryOp, Buffer, Expr, Lambda, MemScope, Rewalk, Var};
use coulis_tensor::{Body, IterKind, IterVar, QuickFold, Reduction};

use crate::error::ScheduleError;
use crate::example::{after, size, sums};
use crate::fold;
use crate::primitive::cache_read::dimension_axis;
use crate::primitive::split::Split;
use crate::primitive::{Call, Primitive, PrimitiveEntry, apply, axis_arg};
use crate::ranges;
use crate::schedule::{Schedule, StageRef, Values};
use crate::stage::{Factored, Relation, Stage, StageId};
use crate::trace::{Arg, Step};

/// The catalogue's line.
pub const ENTRY: PrimitiveEntry = PrimitiveEntry {
    name: "rfactor",
    signature: "s.rfactor(stage, axis, factor_axis=0)",
    summary: "the loop becomes a dimension of a new stage of partial results, which the old stage folds",
    before: "\
for i in range(n):
    B[i] = T.float32(0)
    for k_outer, k_inner in T.grid((m + 15) // 16, 16):
        if T.likely(k_outer * 16 + k_inner < m):
            B[i] = B[i] + A[i, k_outer * 16 + k_inner]",
    call: "B_rf = s.rfactor(B, k_inner)",
    after: "\
B_rf = T.allocate([16, n], \"float32\", \"global\")
for k_inner, i in T.grid(16, n):
    B_rf[k_inner, i] = T.float32(0)
    for k_outer in range((m + 15) // 16):
        if T.likely(k_outer * 16 + k_inner < m):
            B_rf[k_inner, i] = B_rf[k_inner, i] + A[i, k_outer * 16 + k_inner]
for ax0 in range(n):
    B[ax0] = T.float32(0)
    for k_inner_v in range(16):
        B[ax0] = B[ax0] + B_rf[k_inner_v, ax0]",
    example: || {
        after(sums(&[size("n")], size("m")), |s| {
            let k = s.stage("B")?.reduce_axes()[0].clone();
            s.split("B", &k, Split::Factor(16)).map(|_| ())
        })
    },
    apply: apply::<Rfactor>,
};

/// Arguments of rfactor.
#[derive(Clone, Debug)]
pub(crate) struct Rfactor {
    pub stage: StageId,
    pub axis: IterVar,
    pub factor_axis: i64,
}

impl Schedule {
    /// The loop becomes dimension 0 of a new stage of partial results, which the old stage folds.
    pub fn rfactor(&mut self, stage: impl Into<StageRef>, axis: &IterVar) -> Result<StageId, ScheduleError> {
        self.rfactor_at(stage, axis, 0)
    }

    /// As [`Schedule::rfactor`], with the position of the new dimension; negative ones count from the end.
    pub fn rfactor_at(
        &mut self,
        stage: impl Into<StageRef>,
        axis: &IterVar,
        factor_axis: i64,
    ) -> Result<StageId, ScheduleError> {
        let stage = self.find(&stage.into())?;
        self.call(Rfactor { stage, axis: axis.clone(), factor_axis })
    }
}

impl Primitive for Rfactor {
    type Output = StageId;
    const ENTRY: &'static PrimitiveEntry = &ENTRY;

    fn read(call: &Call) -> Result<Rfactor, ScheduleError> {
        call.at_most(3)?;
        let stage = call.stage(0, "stage")?;
        let axis = call.axis(stage, 1, "axis")?;
        let factor_axis = match call.maybe(2, "factor_axis") {
            Some(arg) => call.as_int(arg, "factor_axis")?,
            None => 0,
        };
        Ok(Rfactor { stage, axis, factor_axis })
    }

    fn step(&self, schedule: &Schedule) -> Step {
        let stage = Arg::Name(schedule.stage_name(self.stage));
        let args = vec![stage, axis_arg(schedule, self.stage, &self.axis)];
        let step = Step::on_schedule("rfactor", args);
        if self.factor_axis == 0 { step } else { step.option("factor_axis", Arg::Int(self.factor_axis)) }
    }

    fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let stage = schedule.by_id(self.stage);
        let name = schedule.stage_name(stage.id);
        stage.leaf_position("rfactor", &self.axis)?;
        let Body::Reduce(reduction) = &stage.body else {
            return Err(ScheduleError::WrongBody {
                primitive: "rfactor",
                stage: name,
                wanted: "a reduction",
                found: "no reduction",
            });
        };
        if self.axis.kind() != IterKind::Reduce {
            return Err(stage.wrong_kind("rfactor", &self.axis, IterKind::Reduce));
        }
        let axis = stage.axis_name(&self.axis);
        let touched = touched(stage, &self.axis);
        let data = stage.all_axes.iter().any(|a| touched.contains(a.var()) && stage.origin(a).data);
        if data {
            let reason = "it is fused with a data axis; fuse after factoring";
            return Err(ScheduleError::CannotFactor { stage: name, axis, reason });
        }
        if !reduction.claims.any_order() && reduction.in_any_order().is_none() {
            let (primitive, reducer) = ("rfactor", reduction.name.clone());
            return Err(ScheduleError::UnclaimedLaws { primitive, stage: name, reducer });
        }
        let extents = ranges::extents(stage, &ranges::declared(stage), &schedule.analyzer());
        let vars: Vec<Var> = stage.all_axes.iter().map(|a| a.var().clone()).collect();
        if extents.get(self.axis.var()).is_none_or(|extent| uses_any(extent, &vars)) {
            let reason = "its extent depends on another axis, so the partial results have no shape; split it and \
                          factor the inner axis";
            return Err(ScheduleError::CannotFactor { stage: name, axis, reason });
        }
        let parts: Vec<Var> = touched.iter().cloned().collect();
        if ranges::dependent(stage, &parts).is_some() {
            let reason =
                "the extent of another axis depends on it, and would be that of none of the partial results";
            return Err(ScheduleError::CannotFactor { stage: name, axis, reason });
        }
        schedule.check_holds_none("rfactor", self.stage)?;
        let high = stage.axes.len() as i64;
        let low = -(high + 1);
        if self.factor_axis < low || self.factor_axis > high {
            let found = self.factor_axis;
            return Err(ScheduleError::FactorAxis { stage: name, low, high, found });
        }
        Ok(())
    }

    fn apply(self, schedule: &mut Schedule) -> Result<StageId, ScheduleError> {
        let id = schedule.fresh_id();
        let position = schedule.position(self.stage);
        let stage = &schedule.stages[position];
        let Body::Reduce(reduction) = &stage.body else { return Ok(self.stage) };
        // Partial results are as wide as the state, or each of them would be rounded.
        let ordered = if reduction.claims.commutative { None } else { reduction.in_any_order() };
        let reduction = ordered.as_ref().unwrap_or(reduction);
        let wide = reduction.accumulating();
        let reduction = wide.as_ref().unwrap_or(reduction);
        let rank = stage.axes.len() as i64;
        let at = if self.factor_axis < 0 { self.factor_axis + rank + 1 } else { self.factor_axis } as usize;

        let name = schedule.free_name(format!("{}.rf", stage.name));
        let (axes, partial, renewed) =
            partial_reduction(stage, reduction, &self.axis, at, &schedule.analyzer());
        let shape: Vec<Expr> = axes.iter().filter_map(|a| a.dom().map(|(_, e)| e.clone())).collect();
        let outputs: Vec<Buffer> = reduction
            .identity
            .iter()
            .enumerate()
            .map(|(c, identity)| {
                let one = reduction.arity() == 1;
                let name = if one { name.clone() } else { format!("{name}.v{c}") };
                Buffer::new(&name, identity.dtype(), shape.clone(), MemScope::Global)
            })
            .collect();
        let mut factored = Stage::new(id, name, outputs, axes, Body::Reduce(Box::new(partial)));
        factored.n_results = stage.n_results;
        let moved = |before: &Factored| Factored {
            dim: before.dim + usize::from(before.dim >= at),
            around: those(&renewed, |old| {
                stage.roots_of(old).iter().all(|root| before.around.contains(root))
            }),
        };
        let order = ranges::ascending_order(stage).unwrap_or_default();
        let outside = order.split(|leaf| *leaf == self.axis).next().unwrap_or_default();
        let around = |old: &IterVar| {
            let parts = || order.iter().filter(|leaf| *leaf == old || stage.roots_of(leaf).contains(old));
            parts().next().is_some() && parts().all(|leaf| outside.contains(leaf))
        };
        let own = Factored { dim: at, around: those(&renewed, around) };
        factored.factored = stage.factored.iter().map(moved).chain([own]).collect();
        let is_outermost = outside.is_empty() && !order.is_empty();
        let extent = shape[at].clone();
        let (axes, mut last) = final_reduction(stage, reduction, &factored.outputs, &self.axis, &extent, at);
        if reduction.step_needs_ascending && last.settled.is_some() {
            // Its states are of elements one after another, or settle nothing.
            last.step_needs_ascending = is_outermost;
            last.settled = last.settled.filter(|_| is_outermost);
        }
        let factored_before = stage.factored.clone();
        let stage = Arc::make_mut(&mut schedule.stages[position]);
        stage.redefine(axes, Body::Reduce(Box::new(last)));
        // Its dimensions are the ones that it had.
        stage.factored = factored_before;
        schedule.stages.insert(position, Arc::new(factored));
        Ok(id)
    }
}

/// Every axis that is related to `axis` through relations, in either direction.
fn touched(stage: &Stage, axis: &IterVar) -> FastSet<Var> {
    let mut touched = FastSet::from_iter([axis.var().clone()]);
    loop {
        let before = touched.len();
        for relation in &stage.relations {
            let group = match relation {
                Relation::Split { parent, outer, inner, .. } => vec![parent, outer, inner],
                Relation::Fuse { outer, inner, fused } => vec![outer, inner, fused],
                Relation::Singleton { axis } => vec![axis],
            };
            if group.iter().any(|a| touched.contains(a.var())) {
                touched.extend(group.iter().map(|a| a.var().clone()));
            }
        }
        if touched.len() == before {
            return touched;
        }
    }
}

/// The place among the stage's reduce axes of the first one that a loop derives from.
fn root_of(stage: &Stage, leaf: &IterVar) -> Option<usize> {
    let parent = stage.relations.iter().find_map(|relation| match relation {
        Relation::Split { parent, outer, inner, .. } => (outer == leaf || inner == leaf).then_some(parent),
        Relation::Fuse { outer, fused, .. } => (fused == leaf).then_some(outer),
        Relation::Singleton { .. } => None,
    });
    match parent {
        Some(parent) => root_of(stage, parent),
        None => stage.reduce_axes().iter().position(|a| a == leaf),
    }
}

/// The new axes of those old ones.
fn those(renewed: &[(IterVar, IterVar)], of: impl Fn(&IterVar) -> bool) -> Vec<IterVar> {
    renewed.iter().filter(|(old, _)| of(old)).map(|(_, new)| new.clone()).collect()
}

/// Axes and body of the stage of partial results, and its reduce axes beside the ones that they are in place of. All its axes are
/// new, of the old names.
fn partial_reduction(
    stage: &Stage,
    reduction: &Reduction,
    axis: &IterVar,
    at: usize,
    analyzer: &Analyzer,
) -> (Vec<IterVar>, Reduction, Vec<(IterVar, IterVar)>) {
    let touched = touched(stage, axis);
    let domains = ranges::declared(stage);
    let extents = ranges::extents(stage, &domains, analyzer);
    let mut map = Values::default();
    let mut known = analyzer.clone();

    let mut axes: Vec<IterVar> = Vec::new();
    for old in &stage.axes {
        axes.push(renewed(old, &domains[old.var()], IterKind::Data, &mut map, &mut known));
    }
    let zero = |a: &IterVar| fold::int(0, a.dtype());
    let mut leaves = Values::default();
    let factored_domain = (zero(axis), extents[axis.var()].clone());
    let mut leaf_map = Values::default();
    let factored = renewed(axis, &factored_domain, IterKind::Data, &mut leaf_map, &mut known);
    leaves.insert(axis.var().clone(), factored.expr());

    // Reduce axes that the factoring does not touch stay; then come the other loops of those that it does.
    let mut kept: Vec<(IterVar, IterVar)> = Vec::new();
    for old in stage.reduce_axes().iter().filter(|a| !touched.contains(a.var())) {
        let new = renewed(old, &domains[old.var()], IterKind::Reduce, &mut map, &mut known);
        kept.push((old.clone(), new));
    }
    for leaf in stage.leaves.iter().filter(|l| touched.contains(l.var()) && *l != axis) {
        let domain = (zero(leaf), substitute_expr(&extents[leaf.var()], &map));
        let new = renewed(leaf, &domain, IterKind::Reduce, &mut leaf_map, &mut known);
        leaves.insert(leaf.var().clone(), new.expr());
        kept.push((leaf.clone(), new));
    }
    if reduction.step_needs_ascending
        && let Some(order) = ranges::ascending_order(stage)
    {
        // What counts as ascending in the new stage is the order in which its axes are listed.
        kept.sort_by_key(|(old, _)| (root_of(stage, old), order.iter().position(|a| a == old)));
    }
    let renewed = kept.clone();
    let (kept, reduce_axes): (Vec<IterVar>, Vec<IterVar>) = kept.into_iter().unzip();
    let offsets = ranges::offsets(stage, &extents, &leaves);
    for root in stage.reduce_axes().iter().filter(|a| touched.contains(a.var())) {
        let min = substitute_expr(&domains[root.var()].0, &map);
        let value = fold::add(&min, &substitute_expr(&offsets[root.var()], &map));
        map.insert(root.var().clone(), known.simplify(&value));
    }

    // Points of the loops that are no points of the reduction.
    let marked = ranges::marked(stage, &extents, analyzer);
    let mut inside: Option<Expr> = None;
    for axis in stage.all_axes.iter().filter(|a| marked.contains(a.var()) && touched.contains(a.var())) {
        let value = substitute_expr(&offsets[axis.var()], &map);
        let extent = substitute_expr(&extents[axis.var()], &map);
        if !fold::proves(&known, BinaryOp::Lt, &value, &extent) {
            let bound = known.simplify(&fold::compare(BinaryOp::Lt, &value, &extent));
            inside = Some(inside.map_or(bound.clone(), |all| all.and(bound)));
        }
    }
    let sub = |exprs: &[Expr]| exprs.iter().map(|e| substitute_expr(e, &map)).collect::<Vec<_>>();
    let condition = reduction.condition.as_ref().map(|c| substitute_expr(c, &map));
    let condition = match (inside, condition) {
        (Some(inside), Some(condition)) => Some(inside.and(condition).likely()),
        (Some(inside), None) => Some(inside.likely()),
        (None, condition) => condition,
    };
    let lambda = |l: &Lambda| Lambda { params: l.params.clone(), body: sub(&l.body) };
    axes.insert(at, factored);
    let in_order = !reduction.step_needs_ascending || ranges::is_ascending(stage, &kept);
    let partial = Reduction {
        name: reduction.name.clone(),
        combine: lambda(&reduction.combine),
        step: reduction.step.as_ref().filter(|_| in_order).map(lambda),
        step_needs_ascending: reduction.step_needs_ascending,
        identity: reduction.identity.clone(),
        sources: sub(&reduction.sources),
        axes: reduce_axes,
        condition,
        init: Vec::new(),
        claims: reduction.claims,
        settled: reduction.settled.as_ref().filter(|_| in_order).map(lambda),
        neutral: reduction.neutral.clone(),
        quick: reduction.quick.as_ref().filter(|_| in_order).map(|quick| QuickFold {
            identity: quick.identity.clone(),
            sources: sub(&quick.sources),
            step: lambda(&quick.step),
            close: lambda(&quick.close),
            max_steps: quick.max_steps,
            max_joined: quick.max_joined,
            rewalks: (quick.rewalks.iter())
                .map(|walk| Rewalk {
                    needed: lambda(&walk.needed),
                    start: lambda(&walk.start),
                    step: lambda(&walk.step),
                    backwards: walk.backwards,
                    gives_up: walk.gives_up.as_ref().map(lambda),
                })
                .collect(),
            spoilt: quick.spoilt.as_ref().map(lambda),
        }),
    };
    (axes, partial, renewed)
}

/// A new axis of the name and domain of an old one.
fn renewed(
    old: &IterVar,
    domain: &(Expr, Expr),
    kind: IterKind,
    map: &mut Values,
    known: &mut Analyzer,
) -> IterVar {
    let var = old.var().fresh();
    let (min, extent) = (substitute_expr(&domain.0, map), substitute_expr(&domain.1, map));
    known.bind(&var, &min, &extent);
    map.insert(old.var().clone(), var.expr());
    IterVar::new(var, kind, min, extent)
}

/// Axes and body of the fold of the partial results.
fn final_reduction(
    stage: &Stage,
    reduction: &Reduction,
    partials: &[Buffer],
    axis: &IterVar,
    extent: &Expr,
    at: usize,
) -> (Vec<IterVar>, Reduction) {
    let shape: Vec<Expr> =
        stage.axes.iter().filter_map(|a| a.dom().map(|(_, extent)| extent.clone())).collect();
    let axes: Vec<IterVar> = shape.iter().enumerate().map(dimension_axis).collect();
    let map: Values =
        stage.axes.iter().zip(&axes).map(|(old, new)| (old.var().clone(), new.expr())).collect();
    let over = IterVar::new(
        Var::size(&format!("{}_v", axis.name()), axis.dtype()),
        IterKind::Reduce,
        fold::int(0, axis.dtype()),
        extent.clone(),
    );
    let mut indices: Vec<Expr> = axes.iter().map(IterVar::expr).collect();
    indices.insert(at, over.expr());
    let sub = |exprs: &[Expr]| exprs.iter().map(|e| substitute_expr(e, &map)).collect::<Vec<_>>();
    let combine = Lambda { params: reduction.combine.params.clone(), body: sub(&reduction.combine.body) };
    let last = Reduction {
        name: reduction.name.clone(),
        combine,
        step: None,
        step_needs_ascending: false,
        identity: reduction.identity.clone(),
        sources: partials.iter().map(|p| p.at(indices.clone())).collect(),
        axes: vec![over],
        condition: None,
        init: sub(&reduction.init),
        claims: reduction.claims,
        quick: None,
        settled: reduction.settled.as_ref().map(|l| Lambda { params: l.params.clone(), body: sub(&l.body) }),
        neutral: Vec::new(),
    };
    (axes, last)
}
