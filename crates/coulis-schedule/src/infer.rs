//! Bound inference: which part of each stage is computed where it is attached, and by which loops.
//!
//! Stages are placed consumers first. A stage at the root covers its whole domain. A stage attached in a loop
//! covers what its consumers read while the loops outside of that point stand still: each loop around the point is
//! a fixed index, each other loop of a consumer runs over its full range. Source: seed 003; the rules for
//! splits and fusions keep the whole range of an axis whole. What elements of memory say of a region is in `indirect.rs`.

use coulis_ir::hash::FastMap;

use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{for_each_expr, substitute_expr, uses_any};
use coulis_ir::{BinaryOp, Buffer, Expr, LoopKind, MemScope, Node, ThreadTag, Var};
use coulis_tensor::IterVar;

use crate::covered::{check_argument, check_arguments_inside};
use crate::error::ScheduleError;
use crate::fold;
use crate::indirect;
use crate::interval::{Interval, bounds};
use crate::launch::{self, Launches, is_block, shares};
use crate::primitive::clamp::clamped;
use crate::ranges::{self, Domains};
use crate::schedule::{Schedule, Values};
use crate::stage::{Attach, Relation, Stage, StageId};
use crate::thread_error::ThreadError;

/// One loop of a placed stage.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    /// The leaf that it runs.
    pub leaf: IterVar,
    /// Its index in the kernel.
    pub var: Var,
    /// Number of iterations, in sizes and indices of outer loops.
    pub extent: Expr,
    /// The block or thread index that it is bound to; its index is then that of the launch, but for `vthread`.
    pub thread: Option<ThreadTag>,
}

impl Loop {
    /// Whether it runs exactly once and is left out.
    pub fn is_unit(&self) -> bool {
        self.extent.is_int(1)
    }

    /// The value of its leaf.
    pub fn value(&self) -> Expr {
        let dtype = self.leaf.dtype();
        if self.is_unit() { fold::int(0, dtype) } else { fold::cast(&self.var.expr(), dtype) }
    }

    /// The index of the launch that it runs over, where it does and has more than one value.
    pub fn launched(&self) -> Option<ThreadTag> {
        self.thread.filter(|tag| *tag != ThreadTag::VThread && !self.is_unit())
    }

    /// Whether it is a loop in the text: neither a single iteration nor an index of the launch.
    pub fn is_loop(&self) -> bool {
        !self.is_unit() && self.launched().is_none()
    }
}

/// A stage with all that is needed to write its loops.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    /// Realised ranges of the root axes.
    pub domains: Domains,
    /// Extents of all axes, in sizes and loop indices.
    pub extents: Values,
    /// Its loops, outermost first.
    pub loops: Vec<Loop>,
    /// Values of all axes from 0.
    pub offsets: Values,
    /// Values of the root axes.
    pub absolutes: Values,
    /// The loops around it that belong to other stages, outermost first.
    pub path: Vec<Loop>,
    /// Whether the realised range may differ from the declared domain.
    pub partial: bool,
    /// Where its results live.
    pub scope: MemScope,
    /// The stage at the root of its launch.
    pub root: StageId,
    /// What is known around the stage.
    pub known: Analyzer,
}

/// Tells an analyzer the ranges of loops; those of launch indices are for [`Launches::bind`] to tell.
pub(crate) fn bind(analyzer: &mut Analyzer, loops: &[Loop]) {
    for l in loops.iter().filter(|l| l.is_loop()) {
        analyzer.bind(&l.var, &fold::int(0, l.var.dtype()), &l.extent);
    }
}

/// Places every stage that is not inlined, and says which indices each launch has.
pub(crate) fn place(schedule: &Schedule) -> Result<(FastMap<StageId, Placed>, Launches), ScheduleError> {
    let mut placed: FastMap<StageId, Placed> = FastMap::default();
    let mut launches = Launches::default();
    for stage in schedule.stages.iter().rev() {
        let root = launch::root_of(schedule, stage);
        let mut domains = ranges::declared(stage);
        let (mut path, mut scope) = (Vec::new(), stage.scope.unwrap_or(MemScope::Global));
        if let Attach::At(parent, axis) = &stage.attach {
            let parent = schedule.by_id(*parent);
            path = check_attach(schedule, &placed, stage, parent, axis)?;
            let inferred = || launch::inferred_scope(path.iter().filter_map(|l| l.thread));
            scope = stage.scope.unwrap_or_else(inferred);
            if stage.is_arg() {
                scope = MemScope::Global;
            }
            let around = Around { launches: &launches, root, scope };
            realised(schedule, &placed, stage, &path, &around, &mut domains);
            if stage.is_arg() {
                check_argument(schedule, &placed, stage, parent, axis, (&path, &domains))?;
            }
        }
        let at = place_one(schedule, stage, domains, path, (root, scope), &mut launches)?;
        placed.insert(stage.id, at);
    }
    launches.check(schedule)?;
    check_memory(schedule, &placed, &launches)?;
    check_arguments_inside(schedule, &placed, &launches)?;
    Ok((placed, launches))
}

/// Refuses memory that ends before it is read, that every block would write, or whose size is not known.
fn check_memory(
    schedule: &Schedule,
    placed: &FastMap<StageId, Placed>,
    launches: &Launches,
) -> Result<(), ScheduleError> {
    for stage in schedule.stages.iter().filter(|s| !s.is_arg() && s.attach != Attach::Inline) {
        let Some(at) = placed.get(&stage.id).filter(|at| !launches.of(at.root).is_empty()) else { continue };
        let name = schedule.stage_name(stage.id);
        let attached = stage.attach != Attach::Root;
        if !attached && at.scope != MemScope::Global {
            return Err(ThreadError::Ends { stage: name, scope: at.scope.name() }.into());
        }
        if attached && at.scope == MemScope::Global {
            return Err(ThreadError::GlobalInside { stage: name }.into());
        }
        // A launch asks for dynamic memory before its indices and loops have values.
        let is_dynamic = at.scope == MemScope::SharedDyn;
        let around = at.path.iter().map(|l| l.var.clone());
        let around: Vec<Var> = around.chain(launches.of(at.root).iter().map(|i| i.var.clone())).collect();
        for axis in stage.axes.iter().filter(|_| attached) {
            let extent = &at.domains[axis.var()].1;
            let fits = if is_dynamic { !uses_any(extent, &around) } else { extent.as_int().is_some() };
            if !fits {
                let (axis, extent) = (stage.axis_name(axis), coulis_ir::print::print_expr(extent));
                let takes =
                    if is_dynamic { "extents made of sizes of arguments" } else { "constant extents" };
                return Err(
                    ThreadError::Size { stage: name, scope: at.scope.name(), takes, axis, extent }.into()
                );
            }
        }
    }
    Ok(())
}

fn place_one(
    schedule: &Schedule,
    stage: &Stage,
    mut domains: Domains,
    path: Vec<Loop>,
    (root, scope): (StageId, MemScope),
    launches: &mut Launches,
) -> Result<Placed, ScheduleError> {
    let mut analyzer = schedule.analyzer();
    launches.bind(root, &mut analyzer);
    bind(&mut analyzer, &path);
    for (min, extent) in domains.values_mut() {
        *min = analyzer.simplify(min);
        *extent = analyzer.simplify(extent);
    }
    let mut extents = ranges::extents(stage, &domains, &analyzer);
    let mut loops = Vec::new();
    for leaf in &stage.leaves {
        let shifted = domains.get(leaf.var()).is_some_and(|(min, _)| !min.is_int(0));
        let thread = stage.thread_of(leaf);
        let extent = extents.get(leaf.var()).cloned().unwrap_or_else(|| fold::int(1, leaf.dtype()));
        let of_launch = |tag: &ThreadTag| {
            *tag != ThreadTag::VThread && (!extent.is_int(1) || stage.attach == Attach::Root)
        };
        let var = match thread.filter(of_launch) {
            Some(tag) => launches.var(root, tag, leaf.dtype()),
            None if shifted => leaf.var().fresh(),
            None => leaf.var().clone(),
        };
        loops.push(Loop { leaf: leaf.clone(), var, extent, thread });
    }
    let leaves: Values = loops.iter().map(|l| (l.leaf.var().clone(), l.value())).collect();
    let offsets = ranges::offsets(stage, &extents, &leaves);
    let roots = ranges::absolutes(stage, &domains, &offsets);
    let offsets: Values =
        offsets.into_iter().map(|(v, e)| (v, substitute_shape(&e, &roots, &loops))).collect();
    let absolutes = ranges::absolutes(stage, &domains, &offsets);
    // Extents that mention root axes (triangular domains) are now said in loop indices.
    for extent in extents.values_mut() {
        *extent = substitute_expr(extent, &absolutes);
    }
    for l in &mut loops {
        l.extent = substitute_expr(&l.extent, &absolutes);
    }
    for (min, extent) in domains.values_mut() {
        *min = substitute_expr(min, &absolutes);
        *extent = substitute_expr(extent, &absolutes);
    }
    let indices: Vec<Var> = loops.iter().map(|l| l.var.clone()).collect();
    for l in &loops {
        let Some(tag) = l.thread else { continue };
        let bound = (&l.leaf, tag, &l.extent);
        launch::check_bound(schedule, stage, bound, scope, &domains, (&l.var, &indices))?;
        if tag != ThreadTag::VThread {
            let extent = if is_block(tag) {
                launch::block_extent(stage, &l.leaf, &l.extent, &analyzer)
            } else {
                l.extent.clone()
            };
            launches.note(root, stage, &l.leaf, tag, &extent)?;
        }
    }
    let partial = stage.attach != Attach::Root;
    launches.bind(root, &mut analyzer);
    Ok(Placed { domains, extents, loops, offsets, absolutes, path, partial, scope, root, known: analyzer })
}

/// Offsets mention root axes only through extents of fused and split axes; a loop index that is itself a root axis
/// stays, where the loop is not left out.
fn substitute_shape(expr: &Expr, absolutes: &Values, loops: &[Loop]) -> Expr {
    let indices: Vec<&Var> = loops.iter().filter(|l| !l.is_unit()).map(|l| &l.var).collect();
    let map: Values =
        absolutes.iter().filter(|(v, _)| !indices.contains(v)).map(|(v, e)| (v.clone(), e.clone())).collect();
    substitute_expr(expr, &map)
}

/// Whether the stage `inner` runs inside the loop `axis` of `parent`.
fn runs_inside(schedule: &Schedule, inner: &Stage, parent: &Stage, axis: &IterVar) -> bool {
    if inner.id == parent.id {
        return true;
    }
    let Attach::At(holder, at) = &inner.attach else { return false };
    let holder = schedule.by_id(*holder);
    if holder.id == parent.id {
        let position = |a: &IterVar| parent.leaves.iter().position(|l| l == a);
        return position(at) >= position(axis);
    }
    runs_inside(schedule, holder, parent, axis)
}

/// Checks the point where a stage is attached; the loops around it.
fn check_attach(
    schedule: &Schedule,
    placed: &FastMap<StageId, Placed>,
    stage: &Stage,
    parent: &Stage,
    axis: &IterVar,
) -> Result<Vec<Loop>, ScheduleError> {
    let position = parent.leaf_position("compute_at", axis)?;
    let consumers = schedule.consumers(stage);
    let names = || consumers.iter().map(|s| schedule.stage_name(s.id)).collect::<Vec<_>>();
    let outside = consumers.iter().find(|c| !runs_inside(schedule, c, parent, axis));
    let refused = |consumer: String| ScheduleError::OutsideConsumers {
        stage: schedule.stage_name(stage.id),
        parent: schedule.stage_name(parent.id),
        axis: parent.axis_name(axis),
        consumer,
        consumers: names(),
    };
    if let Some(consumer) = outside {
        return Err(refused(format!("`{}`", schedule.stage_name(consumer.id))));
    }
    let Some(of_parent) = placed.get(&parent.id) else { return Err(refused("nobody".to_owned())) };
    let mut path = of_parent.path.clone();
    for l in &of_parent.loops[..=position] {
        let kind = parent.kind_of(&l.leaf);
        if kind == LoopKind::Vectorized && !l.is_unit() {
            return Err(ScheduleError::AttachInside {
                stage: schedule.stage_name(stage.id),
                parent: schedule.stage_name(parent.id),
                axis: parent.axis_name(&l.leaf),
                kind: "vectorized",
            });
        }
        path.push(l.clone());
    }
    Ok(path)
}

/// What a stage's realised range depends on beside its consumers.
struct Around<'a> {
    launches: &'a Launches,
    root: StageId,
    scope: MemScope,
}

impl Around<'_> {
    /// The indices that stand still: loops around the point, and indices of the launch, but for those that share
    /// the memory of the stage.
    fn fixed(&self, path: &[Loop]) -> Vec<Var> {
        // A loop of one iteration has no index of its own: that of its thread is the one of other stages' loops too.
        let still = |l: &&Loop| !l.is_unit() && l.thread.is_none_or(|tag| !shares(self.scope, tag));
        let loops = path.iter().filter(still).map(|l| l.var.clone());
        let indices = self.launches.of(self.root).iter().filter(|i| !shares(self.scope, i.tag));
        loops.chain(indices.map(|i| i.var.clone())).collect()
    }

    /// The indices of the launch and what they run over.
    fn moving(&self) -> Vec<(Var, Expr)> {
        self.launches.of(self.root).iter().map(|i| (i.var.clone(), i.extent.clone())).collect()
    }
}

/// Narrows the domains of the data axes of `stage` to what its consumers read inside the loops of `path`.
fn realised(
    schedule: &Schedule,
    placed: &FastMap<StageId, Placed>,
    stage: &Stage,
    path: &[Loop],
    around: &Around,
    domains: &mut Domains,
) {
    let mut analyzer = schedule.analyzer();
    around.launches.bind(around.root, &mut analyzer);
    bind(&mut analyzer, path);
    let fixed = around.fixed(path);
    let moving = around.moving();
    let mut hull: Vec<Option<Interval>> = vec![None; stage.axes.len()];
    let mut whole = vec![false; stage.axes.len()];
    for consumer in schedule.consumers(stage) {
        let Some(at) = placed.get(&consumer.id) else { continue };
        let env = root_intervals(consumer, at, &fixed, &analyzer);
        for indices in reads_of(consumer, &stage.outputs) {
            for (dim, index) in indices.iter().enumerate() {
                let found = bounds(index, &env, &analyzer)
                    .and_then(|range| relax(range, at, &moving, &fixed, &analyzer))
                    .map(|(lo, hi)| (analyzer.simplify(&lo), analyzer.simplify(&hi)));
                let found = narrower(found, by_loops(index, at, &moving, &fixed, &analyzer))
                    .filter(|range| indirect::is_at_hand(schedule, range));
                match (found, &mut hull[dim]) {
                    (None, _) => whole[dim] = true,
                    (Some(range), slot @ None) => *slot = Some(range),
                    (Some(range), Some(known)) if !indirect::are_of_same_elements(&range, known) => {
                        whole[dim] = true;
                    }
                    (Some((lo, hi)), Some((a, b))) => {
                        *a = fold::min(&analyzer, a, &lo);
                        *b = fold::max(&analyzer, b, &hi);
                    }
                }
            }
        }
    }
    for ((axis, range), whole) in stage.axes.iter().zip(hull).zip(whole) {
        let Some((lo, hi)) = range.filter(|_| !whole) else { continue };
        let Some((min, extent)) = domains.get_mut(axis.var()) else { continue };
        let last = fold::sub(&fold::add(min, extent), &fold::int(1, extent.dtype()));
        let within = fold::proves(&analyzer, BinaryOp::Le, &lo, min)
            && fold::proves(&analyzer, BinaryOp::Ge, &hi, &last);
        if !within {
            let dtype = axis.dtype();
            let (lo, hi) = match around.scope {
                MemScope::Global => (lo, hi),
                _ => with_constant_extent(&analyzer, (lo, hi)),
            };
            let count = fold::add(&fold::sub(&hi, &lo), &fold::int(1, dtype));
            let starts_at_0 = min.is_int(0);
            *min = fold::cast(&analyzer.simplify(&lo), dtype);
            let declared = std::mem::replace(extent, fold::cast(&analyzer.simplify(&count), dtype));
            if stage.clamped && starts_at_0 {
                *min = clamped(&analyzer, (min, extent), &declared).unwrap_or_else(|| min.clone());
            }
        }
    }
}

/// The range, or where its length is no constant a wider one whose length is: memory of a block or a thread takes constant extents,
/// and what is before the begin or behind the end of the axis there is under the guard of the stage's own loops.
fn with_constant_extent(analyzer: &Analyzer, (lo, hi): Interval) -> Interval {
    let wider = |lo: Expr| {
        let behind = most_behind(analyzer, &lo, &hi)?;
        let hi = fold::add(&lo, &fold::int(behind, lo.dtype()));
        Some((lo, hi))
    };
    let found = at_most(analyzer, &lo).into_iter().find_map(wider);
    found.unwrap_or((lo, hi))
}

/// The value, then others that are surely no larger: those of both arms of the larger of two, those of an arm of the smaller of
/// two that are no larger than the other arm either.
fn at_most(analyzer: &Analyzer, value: &Expr) -> Vec<Expr> {
    let mut found = vec![value.clone()];
    let arms = match value.node() {
        Node::Binary(op @ (BinaryOp::Min | BinaryOp::Max), a, b) => [(*op, a, b), (*op, b, a)],
        _ => return found,
    };
    for (op, arm, other) in arms {
        let mut below = at_most(analyzer, arm);
        below.retain(|x| op == BinaryOp::Max || fold::proves(analyzer, BinaryOp::Le, x, other));
        found.extend(below);
    }
    found
}

/// A constant that the value is surely at most behind `lo`: of the smaller of two that of one, of the larger of two the larger.
fn most_behind(analyzer: &Analyzer, lo: &Expr, value: &Expr) -> Option<i128> {
    if let Some(behind) = analyzer.simplify(&fold::sub(value, lo)).as_int() {
        return Some(behind);
    }
    let behind = |value: &Expr| most_behind(analyzer, lo, value);
    match value.node() {
        Node::Binary(BinaryOp::Min, a, b) => match (behind(a), behind(b)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        },
        Node::Binary(BinaryOp::Max, a, b) => Some(behind(a)?.max(behind(b)?)),
        _ => None,
    }
}

/// The range of an index that divides, from the loops themselves: what a quotient or a remainder takes of an axis may be one
/// loop of it, and the range of the whole axis does not tell.
fn by_loops(
    index: &Expr,
    at: &Placed,
    moving: &[(Var, Expr)],
    fixed: &[Var],
    analyzer: &Analyzer,
) -> Option<Interval> {
    let mut divides = false;
    for_each_expr(index, &mut |e| {
        divides |= matches!(e.node(), Node::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod, ..));
    });
    if !divides {
        return None;
    }
    let mut known = analyzer.clone();
    bind(&mut known, &at.path);
    bind(&mut known, &at.loops);
    let value = known.simplify(&substitute_expr(index, &at.absolutes));
    let (lo, hi) = relax((value.clone(), value), at, moving, fixed, analyzer)?;
    Some((analyzer.simplify(&lo), analyzer.simplify(&hi)))
}

/// The range that is known to hold fewer points; the first of two that do not tell.
fn narrower(a: Option<Interval>, b: Option<Interval>) -> Option<Interval> {
    let width = |range: &Interval| fold::sub(&range.1, &range.0).as_int();
    match (a, b) {
        (a, None) => a,
        (None, b) => b,
        (Some(a), Some(b)) => {
            let is_narrower = width(&b).is_some_and(|b| width(&a).is_none_or(|a| b < a));
            Some(if is_narrower { b } else { a })
        }
    }
}

/// The indices of each read of the buffers in the body of a stage.
pub(crate) fn reads_of(stage: &Stage, buffers: &[Buffer]) -> Vec<Vec<Expr>> {
    let mut found = Vec::new();
    for expr in stage.body.exprs() {
        for_each_expr(expr, &mut |e| {
            if let Node::Load(buffer, indices) = e.node()
                && buffers.contains(buffer)
                && !found.contains(indices)
            {
                found.push(indices.clone());
            }
        });
    }
    found
}

/// Bounds of an axis while some loops stand still.
#[derive(Clone)]
struct AxisSet {
    lo: Expr,
    hi: Expr,
    /// All of the axis's range.
    full: bool,
}

/// The intervals of the root axes of a consumer when the loops with indices in `fixed` stand still.
fn root_intervals(stage: &Stage, at: &Placed, fixed: &[Var], analyzer: &Analyzer) -> FastMap<Var, Interval> {
    let mut sets: FastMap<Var, AxisSet> = FastMap::default();
    for l in &at.loops {
        let stands = fixed.contains(&l.var);
        let value = l.value();
        let set = if l.is_unit() {
            AxisSet { lo: value.clone(), hi: value, full: true }
        } else if stands {
            AxisSet { lo: value.clone(), hi: value, full: false }
        } else {
            full_set(&l.extent)
        };
        sets.insert(l.leaf.var().clone(), set);
    }
    let extent = |axis: &IterVar| at.extents.get(axis.var()).cloned();
    for relation in stage.relations.iter().rev() {
        match relation {
            Relation::Split { parent, outer, inner, by } => {
                let parts = (sets.get(outer.var()), sets.get(inner.var()), extent(inner), extent(parent));
                if let (Some(o), Some(i), Some(inner_extent), Some(parent_extent)) = parts {
                    let join = |a: &Expr, b: &Expr| by.parent_of((a, b), &inner_extent, &parent_extent);
                    let set = if o.full && i.full {
                        full_set(&parent_extent)
                    } else {
                        AxisSet { lo: join(&o.lo, &i.lo), hi: join(&o.hi, &i.hi), full: false }
                    };
                    sets.insert(parent.var().clone(), set);
                }
            }
            Relation::Fuse { outer, inner, fused } => {
                let parts = (sets.get(fused.var()), extent(outer), extent(inner));
                if let (Some(f), Some(outer_extent), Some(inner_extent)) = parts {
                    let (o, i) = unfuse(f, &outer_extent, &inner_extent, analyzer);
                    sets.insert(outer.var().clone(), o);
                    sets.insert(inner.var().clone(), i);
                }
            }
            Relation::Singleton { .. } => {}
        }
    }
    let mut env = FastMap::default();
    for axis in stage.axes.iter().chain(stage.reduce_axes()) {
        if let (Some(set), Some((min, _))) = (sets.get(axis.var()), at.domains.get(axis.var())) {
            env.insert(axis.var().clone(), (fold::add(min, &set.lo), fold::add(min, &set.hi)));
        }
    }
    env
}

fn full_set(extent: &Expr) -> AxisSet {
    let hi = fold::sub(extent, &fold::int(1, extent.dtype()));
    AxisSet { lo: fold::int(0, extent.dtype()), hi, full: true }
}

/// The sets of two fused axes. A range that does not stay in one row of the inner axis takes whole rows.
fn unfuse(fused: &AxisSet, outer: &Expr, inner: &Expr, analyzer: &Analyzer) -> (AxisSet, AxisSet) {
    if fused.full {
        return (full_set(outer), full_set(inner));
    }
    let (lo, hi) = (fold::floordiv(&fused.lo, inner), fold::floordiv(&fused.hi, inner));
    let one_row = fold::proves(analyzer, BinaryOp::Eq, &lo, &hi);
    let rest = if one_row {
        let (a, b) = (fold::floormod(&fused.lo, inner), fold::floormod(&fused.hi, inner));
        AxisSet { lo: a, hi: b, full: inner.is_int(1) }
    } else {
        full_set(inner)
    };
    let hi = if one_row { lo.clone() } else { hi };
    (AxisSet { lo, hi, full: outer.is_int(1) }, rest)
}

/// Widens a range over every loop of the consumer, around it, and index of the launch that does not stand still;
/// innermost first, since extents mention outer indices.
fn relax(
    range: Interval,
    at: &Placed,
    indices: &[(Var, Expr)],
    fixed: &[Var],
    analyzer: &Analyzer,
) -> Option<Interval> {
    let (mut lo, mut hi) = range;
    let loops = at.path.iter().chain(&at.loops).filter(|l| !l.is_unit());
    let loops: Vec<(Var, Expr)> = loops.map(|l| (l.var.clone(), l.extent.clone())).collect();
    for (var, extent) in indices.iter().chain(&loops).rev().filter(|(var, _)| !fixed.contains(var)) {
        let only = [var.clone()];
        if !uses_any(&lo, &only) && !uses_any(&hi, &only) {
            continue;
        }
        let last = fold::sub(extent, &fold::int(1, extent.dtype()));
        let env = FastMap::from_iter([(var.clone(), (fold::int(0, var.dtype()), last))]);
        lo = bounds(&lo, &env, analyzer)?.0;
        hi = bounds(&hi, &env, analyzer)?.1;
    }
    Some((lo, hi))
}
