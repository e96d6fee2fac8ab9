//! From stages to a kernel of loops.
//!
//! The stages at the root follow each other; an attached stage stands at the head of the body of its loop, with its
//! memory allocated there, so that each iteration has its own. A reduction stores its start values just outside
//! its outermost loop that derives from a reduce axis, and folds inside. Guards stand innermost: data axes, reduce
//! axes, then the reduction's own condition. All components of a tuple are computed before any is stored
//! (contract N17). A root stage whose axes are bound becomes one launch, and so does each other one, one after the
//! other, with the tensors between them in global memory around. Source: seed 003.

use coulis_ir::hash::{FastMap, FastSet};
use std::collections::BTreeMap;
use std::sync::Arc;

use coulis_ir::visit::{for_each_expr, for_each_stmt, rewrite_exprs, stmt_exprs, substitute_expr, uses_any};
use coulis_ir::{
    Attr, BinaryOp, Buffer, BufferId, Expr, Form, Kernel, LoopKind, Node, Param, Stmt, ThreadTag, Var,
};
use coulis_tensor::{Body, Reduction, Tensor};

use crate::accumulate::{self, is_wide, stored};
use crate::covered;
use crate::error::ScheduleError;
use crate::fold;
use crate::grid;
use crate::infer::{self, Loop, Placed};
use crate::inline;
use crate::launch::{Launches, is_block, launched};
use crate::order;
use crate::primitive::double_buffer;
use crate::ranges;
use crate::reads;
use crate::runs;
use crate::schedule::{Schedule, Values};
use crate::stage::{Attach, GridFinish, Stage, StageId, Turn};
use crate::stores::{Point, Purpose, likely, nested, output_names, store_each, with_read_first};
use crate::thread_error::ThreadError;

/// The kernel that a schedule describes: in Nest form, or in Tiled form where threads reduce together. `args` are its
/// parameters: every input and output, and any computed tensor that the program keeps.
pub fn build_nest(schedule: &Schedule, args: &[Tensor], name: &str) -> Result<Kernel, ScheduleError> {
    let program = coulis_tensor::Program::new(schedule.program().outputs(), args)?;
    covered::check_stored(schedule, &program)?;
    let mut schedule = inline::without_inlined(schedule)?;
    for stage in schedule.stages.iter_mut().map(Arc::make_mut) {
        stage.note_args(&program);
    }
    reads::check(&schedule)?;
    order::keep_order(&mut schedule)?;
    accumulate::widen(&mut schedule.stages);
    let (placed, launches) = infer::place(&schedule)?;
    let mut builder = Builder { schedule: &schedule, placed, launches, realised: FastMap::default() };
    builder.realise(&program);
    let mut body = Stmt::NOP;
    for stage in schedule.stages.iter().rev().filter(|s| s.attach == Attach::Root) {
        body = builder.with_stage(stage, body)?;
    }
    builder.check_reads(&body)?;
    let params: Vec<Param> = args
        .iter()
        .map(|a| Param::Buffer { handle: Var::handle(a.name()), buffer: a.buffer().clone() })
        .collect();
    let attrs = BTreeMap::from([
        ("from_legacy_te_schedule".to_owned(), Attr::Bool(true)),
        ("global_symbol".to_owned(), Attr::Str(name.to_owned())),
        ("tir.noalias".to_owned(), Attr::Bool(true)),
    ]);
    let form = if has_tile_calls(&body) { Form::Tiled } else { Form::Nest };
    let kernel = Kernel { name: name.to_owned(), params, attrs, form, body };
    check_variables(&kernel)?;
    Ok(kernel)
}

fn has_tile_calls(body: &Stmt) -> bool {
    let mut found = false;
    for_each_stmt(body, &mut |stmt| found |= matches!(stmt, Stmt::Tile(_)));
    found
}

/// What stands inside loops over the data axes, from the point there and the new loops.
pub(crate) type DataBody<'a> = &'a mut dyn FnMut(&Point, &[Loop]) -> Result<Stmt, ScheduleError>;

/// An intermediate result in memory of the size of its realised range.
pub(crate) struct Realised {
    pub buffer: Buffer,
    pub mins: Vec<Expr>,
}

/// What the statements of a schedule are made from.
pub(crate) struct Builder<'a> {
    pub schedule: &'a Schedule,
    pub placed: FastMap<StageId, Placed>,
    pub launches: Launches,
    pub realised: FastMap<BufferId, Realised>,
}

impl Builder<'_> {
    pub(crate) fn at(&self, stage: &Stage) -> &Placed {
        &self.placed[&stage.id]
    }

    /// Makes a buffer for each result that is no argument.
    fn realise(&mut self, program: &coulis_tensor::Program) {
        for stage in self.told_last() {
            let at = &self.placed[&stage.id];
            let domains: Vec<&(Expr, Expr)> = stage.axes.iter().map(|a| &at.domains[a.var()]).collect();
            for output in &stage.outputs {
                if program.args().iter().any(|a| a.buffer() == output) {
                    continue;
                }
                let mut shape: Vec<Expr> = domains
                    .iter()
                    .map(|(_, extent)| self.redirected(&self.known_extent(stage, extent)))
                    .collect();
                align(stage, &mut shape);
                let buffer = Buffer::new(&output.name, output.dtype, shape, at.scope);
                let mins = domains.iter().map(|(min, _)| self.redirected(min)).collect();
                self.realised.insert(output.id, Realised { buffer, mins });
            }
        }
    }

    /// The stage, then `rest`, with the memory of the stage around both.
    fn with_stage(&self, stage: &Stage, rest: Stmt) -> Result<Stmt, ScheduleError> {
        let produced = match stage.attach {
            Attach::Root => self.root(stage)?,
            Attach::At(..) | Attach::Inline => {
                self.handed_over(stage, self.in_known_region(stage, self.produce(stage)?))
            }
        };
        let mut body = Stmt::seq([produced, rest]);
        for output in stage.outputs.iter().rev() {
            if let Some(realised) = self.realised.get(&output.id) {
                body = Stmt::allocate(realised.buffer.clone(), body);
                if stage.double_buffer {
                    if stage.attach == Attach::Root {
                        let stage = self.schedule.stage_name(stage.id);
                        return Err(ThreadError::NoLoop { stage }.into());
                    }
                    body = double_buffer::marked(body);
                }
            }
        }
        Ok(body)
    }

    /// A stage at the root, in its launch if it has one.
    fn root(&self, stage: &Stage) -> Result<Stmt, ScheduleError> {
        if self.is_over_blocks(stage) {
            return self.over_blocks(stage);
        }
        let body = self.redirect_reads(self.produce(stage)?);
        let group = self.launches.of(stage.id);
        let body = if group.is_empty() { body } else { launched(group, body) };
        Ok(if self.follows_a_launch(stage) { grid::in_last_block(body) } else { body })
    }

    /// Whether the last block of the launch before the stage's own is to do that, and can.
    fn follows_a_launch(&self, stage: &Stage) -> bool {
        if stage.finish != Some(GridFinish::LastBlock) || stage.attach != Attach::Root {
            return false;
        }
        let roots = self.schedule.stages.iter().filter(|s| s.attach == Attach::Root);
        let before = roots.take_while(|s| s.id != stage.id).last();
        before.is_some_and(|before| {
            let (of, own) = (self.launches.of(before.id), self.launches.of(stage.id));
            before.finish.is_none() && !own.is_empty() && grid::last_block_does(of, own)
        })
    }

    fn produce(&self, stage: &Stage) -> Result<Stmt, ScheduleError> {
        let at = self.at(stage);
        // One block has no parts to bring together.
        let is_of_blocks = |l: &Loop| l.thread.is_some_and(is_block) && stage.origin(&l.leaf).reduce;
        if stage.finish.is_some() && !at.loops.iter().any(is_of_blocks) && !self.follows_a_launch(stage) {
            let stage = self.schedule.stage_name(stage.id);
            return Err(ThreadError::NothingToFinish { stage }.into());
        }
        match &stage.body {
            Body::Plain(exprs) => {
                let body = match &stage.turn {
                    None => self.store_of(stage, exprs, &at.absolutes, None),
                    Some(Turn { filled: Some(filled), .. }) => return self.filled(stage, filled, exprs),
                    Some(turn) => self.turned(stage, turn, exprs),
                };
                let body = self.guarded(stage, body)?;
                self.loops(stage, 0, stage.leaves.len(), body)
            }
            Body::Reduce(reduction) if self.is_cross_thread(stage) => self.cross_thread(stage, reduction),
            Body::Reduce(reduction) => self.reduction(stage, reduction),
        }
    }

    /// Stores what the expressions are at such values of the axes, at the point of the loops, or at another
    /// place along the last axis.
    pub(crate) fn store_of(
        &self,
        stage: &Stage,
        exprs: &[Expr],
        values: &Values,
        place: Option<&Expr>,
    ) -> Stmt {
        let values: Vec<Expr> = exprs.iter().map(|e| substitute_expr(e, values)).collect();
        let mut elements = self.elements(stage, &self.at(stage).offsets);
        for last in elements.iter_mut().filter_map(|element| element.indices.last_mut()) {
            *last = place.cloned().unwrap_or_else(|| last.clone());
        }
        store_each(&output_names(stage), &elements, &stored(stage, &values))
    }

    /// Stores all components at the point of the loops.
    fn store(&self, stage: &Stage, values: &[Expr]) -> Stmt {
        self.store_results(stage, &self.at(stage).offsets, &stored(stage, values))
    }

    /// A store at the point of the loops, under everything that must hold for it.
    pub(crate) fn guarded(&self, stage: &Stage, body: Stmt) -> Result<Stmt, ScheduleError> {
        let at = self.at(stage);
        let known = at.known_inside();
        let point =
            Point { offsets: &at.offsets, absolutes: &at.absolutes, known: &known, extents: &at.extents };
        let predicate = self.predicate(stage, &point, &[])?;
        let guards = self.guards_of(stage, &point, Purpose::Main);
        Ok(nested(self.one_of_many(stage).into_iter().chain(likely(guards)).chain(predicate), body))
    }

    fn reduction(&self, stage: &Stage, r: &Reduction) -> Result<Stmt, ScheduleError> {
        let at = self.at(stage);
        let n_loops = stage.leaves.len();
        let sub = |exprs: &[Expr]| -> Vec<Expr> {
            exprs.iter().map(|e| substitute_expr(e, &at.absolutes)).collect()
        };
        let sources = sub(&r.sources);
        if r.axes.is_empty() && r.condition.is_none() && r.init.is_empty() {
            let body = self.guarded(stage, self.store(stage, &sources))?;
            return self.loops(stage, 0, n_loops, body);
        }
        let common = stage.leaves.iter().position(|l| stage.origin(l).reduce).unwrap_or(n_loops);
        if is_wide(stage, r) {
            return self.accumulated(stage, r, common);
        }
        let state = |(element, identity): (Expr, &Expr)| {
            if element.dtype() == identity.dtype() { element } else { element.cast(identity.dtype()) }
        };
        let results = self.results(stage, &at.offsets);
        let state: Vec<Expr> = results.into_iter().zip(&r.identity).map(state).collect();
        // The combiner may use data axes; its parameters are not among them.
        let in_order = !r.step_needs_ascending || ranges::is_ascending(stage, &stage.leaves);
        let folded = |sources: &[Expr]| {
            let folded = if in_order { r.fold(&state, sources) } else { r.merge(&state, sources) };
            self.store(stage, &sub(&folded))
        };
        let is_launched = !self.launches.of(at.root).is_empty();
        let mut update = if is_launched { with_read_first(&sources, folded) } else { folded(&sources) };
        if let Some(condition) = &r.condition {
            update = Stmt::if_(substitute_expr(condition, &at.absolutes), update);
        }
        if let Some(begins) = self.begins(stage, r) {
            let update = match begins.into_iter().reduce(Expr::and) {
                Some(is_first) => Stmt::If {
                    cond: is_first,
                    then: Box::new(self.store(stage, &sources)),
                    otherwise: Some(Box::new(update)),
                },
                None => self.store(stage, &sources),
            };
            return self.loops(stage, 0, n_loops, self.guarded(stage, update)?);
        }
        let update = self.guarded(stage, update)?;
        let one_by_one = || self.loops(stage, common, n_loops, update.clone());
        let init = self.init(stage, r, common)?;
        let folded = match (runs::position(stage, r), &r.quick) {
            (Some(run_at), Some(quick)) if in_order && !is_wide(stage, r) => {
                let run = self.run(stage, r, quick, run_at, &update)?;
                let in_runs = Stmt::seq([init.clone(), self.loops(stage, common, run_at, run)?]);
                match &quick.spoilt {
                    Some(spoilt) => {
                        let again = Stmt::seq([init, one_by_one()?]);
                        let checked = self.unless_spoilt(stage, spoilt, common, in_runs, again.clone())?;
                        checked.unwrap_or(again)
                    }
                    None => in_runs,
                }
            }
            _ => Stmt::seq([init, one_by_one()?]),
        };
        self.loops(stage, 0, common, folded)
    }

    /// What holds at the first element of a fold that starts from it; `None` where it starts from the identity.
    fn begins(&self, stage: &Stage, r: &Reduction) -> Option<Vec<Expr>> {
        let at = self.at(stage);
        let is_plain = r.init.is_empty() && r.condition.is_none() && stage.store_predicate.is_none();
        let asks = stage.attrs.values().any(|attr| attr.until_settled);
        if !stage.from_first || !is_plain || asks || runs::position(stage, r).is_some() {
            return None;
        }
        let mut begins = Vec::new();
        for l in at.loops.iter().filter(|l| stage.origin(&l.leaf).reduce) {
            let holds_one = l.extent.as_int().is_some_and(|n| n > 0) && !stage.origin(&l.leaf).data;
            if !holds_one || l.thread.is_some() || l.launched().is_some() {
                return None;
            }
            if !l.is_unit() {
                begins.push(fold::compare(BinaryOp::Eq, &l.var.expr(), &fold::int(0, l.var.dtype())));
            }
        }
        let known = at.known_inside();
        let point =
            Point { offsets: &at.offsets, absolutes: &at.absolutes, known: &known, extents: &at.extents };
        let guards = self.guards_of(stage, &point, Purpose::Main);
        guards.iter().all(|guard| !guard.is_reduce).then_some(begins)
    }

    /// The loops that store the start values.
    fn init(&self, stage: &Stage, r: &Reduction, common: usize) -> Result<Stmt, ScheduleError> {
        self.data_nest(stage, common, "_init", &mut |point, _| {
            let values: Vec<Expr> = r.start().iter().map(|e| substitute_expr(e, point.absolutes)).collect();
            let guards = self.guards_of(stage, point, Purpose::Data);
            let store = self.store_results(stage, point.offsets, &stored(stage, &values));
            Ok(nested(self.one_of_many(stage).into_iter().chain(likely(guards)), store))
        })
    }

    /// Loops over the data axes once more, without the reduce axes: those at `common` and after get new indices of a
    /// name with that suffix, those before stand around. `body` gets the new loops too.
    pub(crate) fn data_nest(
        &self,
        stage: &Stage,
        common: usize,
        suffix: &str,
        body: DataBody<'_>,
    ) -> Result<Stmt, ScheduleError> {
        let at = self.at(stage);
        let extents = self.data_extents(stage);
        let mut leaves: Values =
            at.loops[..common].iter().map(|l| (l.leaf.var().clone(), l.value())).collect();
        let mut loops: Vec<Loop> = Vec::new();
        for l in at.loops[common..].iter().filter(|l| stage.origin(&l.leaf).data) {
            let fresh = if l.launched().is_some() {
                l.clone()
            } else {
                let var = l.var.renamed(&format!("{}{suffix}", l.var.name()));
                Loop { var, extent: extents[l.leaf.var()].clone(), ..l.clone() }
            };
            leaves.insert(l.leaf.var().clone(), fresh.value());
            loops.push(fresh);
        }
        let offsets = ranges::offsets(stage, &extents, &leaves);
        let absolutes = ranges::absolutes(stage, &at.domains, &offsets);
        let mut known = at.known.clone();
        infer::bind(&mut known, &at.loops[..common]);
        infer::bind(&mut known, &loops);
        let point = Point { offsets: &offsets, absolutes: &absolutes, known: &known, extents: &extents };
        let mut body = body(&point, &loops)?;
        for l in loops.iter().rev() {
            body = self.one_loop(stage, l, body)?;
        }
        Ok(body)
    }

    /// Extents of all axes for loops that visit each point of the data axes at least once. A loop over data and reduce
    /// axes fused has no iteration where a reduce axis is empty, and the results of an empty fold are stored all the
    /// same; so there each reduce axis counts for at least 1, in the loop and in the indices that divide by it.
    fn data_extents(&self, stage: &Stage) -> Values {
        let at = self.at(stage);
        let is_mixed = |l: &Loop| stage.origin(&l.leaf).data && stage.origin(&l.leaf).reduce;
        let mut extents = at.extents.clone();
        if !at.loops.iter().any(is_mixed) {
            return extents;
        }
        let mut domains = at.domains.clone();
        for axis in stage.reduce_axes() {
            if let Some((_, extent)) = domains.get_mut(axis.var()) {
                *extent = fold::max(&at.known, extent, &fold::int(1, extent.dtype()));
            }
        }
        let raised = ranges::extents(stage, &domains, &at.known);
        extents.extend(raised.into_iter().filter(|(var, _)| {
            stage.all_axes.iter().any(|axis| axis.var() == var && stage.origin(axis).reduce)
        }));
        extents
    }

    /// Loops `from..to` of the stage around `body`, with the stages that are attached at them.
    pub(crate) fn loops(
        &self,
        stage: &Stage,
        from: usize,
        to: usize,
        body: Stmt,
    ) -> Result<Stmt, ScheduleError> {
        self.walked(stage, from, to, body, &[])
    }

    /// The same, with some of the loops from their last iteration to their first.
    pub(crate) fn walked(
        &self,
        stage: &Stage,
        from: usize,
        to: usize,
        body: Stmt,
        backwards: &[&Loop],
    ) -> Result<Stmt, ScheduleError> {
        let at = self.at(stage);
        let mut body = body;
        for (nth, l) in at.loops[..to].iter().enumerate().skip(from).rev() {
            let attached = self.schedule.stages.iter().rev().filter(|s| match &s.attach {
                Attach::At(parent, axis) => *parent == stage.id && *axis == l.leaf,
                Attach::Root | Attach::Inline => false,
            });
            for inner in attached {
                body = self.with_stage(inner, body)?;
            }
            body = self.unless_settled(stage, nth, body)?;
            let extent = self.extent_there(stage, nth);
            let l = &Loop { extent, ..l.clone() };
            if backwards.iter().any(|b| b.var == l.var) {
                // Places in stages that are attached here are told by the loop's own variable, later.
                let turn = Loop { var: l.var.renamed(&format!("{}_back", l.var.name())), ..l.clone() };
                let last = fold::sub(&l.extent, &fold::int(1, l.var.dtype()));
                body = Stmt::let_(l.var.clone(), fold::sub(&last, &turn.var.expr()), body);
                body = self.one_loop(stage, &turn, body)?;
                continue;
            }
            body = self.one_loop(stage, l, body)?;
        }
        Ok(body)
    }

    /// The extent of a loop. One that memory says is read where the loops around are at a point of the stage, and is 0
    /// elsewhere.
    pub(crate) fn extent_there(&self, stage: &Stage, nth: usize) -> Expr {
        let loops = &self.at(stage).loops;
        let extent = loops[nth].extent.clone();
        if !extent.reads_memory() {
            return extent;
        }
        let inside: Vec<Var> = loops[nth..].iter().map(|l| l.var.clone()).collect();
        let around = self.guards(stage).into_iter().map(|guard| guard.condition);
        match around.filter(|condition| !uses_any(condition, &inside)).reduce(Expr::and) {
            Some(there) => Expr::if_then_else(there, extent.clone(), fold::int(0, extent.dtype())),
            None => extent,
        }
    }

    pub(crate) fn one_loop(&self, stage: &Stage, l: &Loop, body: Stmt) -> Result<Stmt, ScheduleError> {
        let kind = stage.kind_of(&l.leaf);
        if kind == LoopKind::Parallel && !self.launches.of(self.at(stage).root).is_empty() {
            let (stage, axis) = (self.schedule.stage_name(stage.id), stage.axis_name(&l.leaf));
            return Err(ThreadError::Parallel { stage, axis }.into());
        }
        if !l.is_unit() && l.extent.as_int().is_none() {
            let kind = match kind {
                LoopKind::Serial | LoopKind::Parallel => None,
                LoopKind::Unrolled => Some("unrolled"),
                LoopKind::Vectorized => Some("vectorized"),
            };
            if let Some(kind) = kind {
                return Err(ScheduleError::NonConstantExtent {
                    stage: self.schedule.stage_name(stage.id),
                    axis: stage.axis_name(&l.leaf),
                    kind,
                    extent: coulis_ir::print::print_expr(&l.extent),
                });
            }
        }
        let mut looped = if !l.is_loop() {
            body
        } else if l.thread == Some(ThreadTag::VThread) {
            let (var, extent) = (l.var.clone(), l.extent.clone());
            Stmt::LaunchThread { tag: ThreadTag::VThread, var, extent, body: Box::new(body) }
        } else {
            Stmt::for_(l.var.clone(), fold::int(0, l.var.dtype()), l.extent.clone(), kind, body)
        };
        if let Some(attr) = stage.attrs.get(l.leaf.var()) {
            for (key, value) in attr.pragmas.iter().rev() {
                // The loop that it is about is the one right inside; its index is not in sight here.
                let key = coulis_ir::remark::pragma_key(key);
                looped = Stmt::Annotate { node: None, key, value: value.clone(), body: Box::new(looped) };
            }
        }
        Ok(looped)
    }

    /// Turns reads of intermediate tensors into reads of their memory, in terms of the indices of launches as loops
    /// have them: a launch may count them anew.
    pub(crate) fn redirect_reads(&self, mut body: Stmt) -> Stmt {
        rewrite_exprs(&mut body, &mut |e| inline::other_reads(e, &|b, i| self.in_memory(b, i)));
        body
    }

    /// The expression with reads of intermediate tensors in it turned into reads of their memory.
    fn redirected(&self, expr: &Expr) -> Expr {
        inline::replace_reads(expr, &|buffer, indices| self.in_memory(buffer, indices))
    }

    /// The element of an intermediate tensor's memory.
    fn in_memory(&self, buffer: &Buffer, indices: &[Expr]) -> Option<Expr> {
        let realised = self.realised.get(&buffer.id)?;
        let places = indices.iter().zip(&realised.mins).zip(&realised.buffer.shape);
        let moved = places.map(|((i, min), extent)| match extent.is_int(1) {
            true => fold::int(0, i.dtype()),
            false => fold::sub(i, min),
        });
        Some(realised.buffer.at(moved.collect::<Vec<_>>()))
    }

    /// Refuses reads of memory outside the loop that allocates it.
    fn check_reads(&self, body: &Stmt) -> Result<(), ScheduleError> {
        let mut open = FastSet::default();
        let mine: FastMap<BufferId, &str> =
            self.realised.values().map(|r| (r.buffer.id, r.buffer.name.as_str())).collect();
        check_reads_in(body, &mine, &mut open)
            .map_err(|stage| ScheduleError::ReadOutsideAttach { stage: stage.to_owned() })
    }
}

fn check_reads_in<'m>(
    stmt: &Stmt,
    mine: &FastMap<BufferId, &'m str>,
    open: &mut FastSet<BufferId>,
) -> Result<(), &'m str> {
    let mut outside = None;
    for expr in stmt_exprs(stmt) {
        for_each_expr(expr, &mut |e| {
            if let Node::Load(buffer, _) = e.node()
                && let Some(name) = mine.get(&buffer.id)
                && !open.contains(&buffer.id)
            {
                outside = Some(*name);
            }
        });
    }
    if let Some(name) = outside {
        return Err(name);
    }
    let allocated = match stmt {
        Stmt::Allocate { buffer, .. } => Some(buffer.id),
        _ => None,
    };
    open.extend(allocated);
    for child in coulis_ir::visit::stmt_children(stmt) {
        check_reads_in(child, mine, open)?;
    }
    if let Some(id) = allocated {
        open.remove(&id);
    }
    Ok(())
}

/// Pads the extents of an intermediate so that the strides asked for come out.
fn align(stage: &Stage, shape: &mut [Expr]) {
    for demand in &stage.aligns {
        if let Some(extent) = shape.get(demand.dim + 1).and_then(Expr::as_int) {
            let dtype = shape[demand.dim + 1].dtype();
            shape[demand.dim + 1] = fold::int(demand.padded(extent), dtype);
        }
    }
}

/// Refuses a kernel that uses a variable which no argument determines.
fn check_variables(kernel: &Kernel) -> Result<(), ScheduleError> {
    let mut known: FastSet<Var> = FastSet::default();
    for buffer in kernel.param_buffers() {
        known.extend(buffer.shape.iter().chain(&buffer.strides).filter_map(|e| e.as_var().cloned()));
    }
    for_each_stmt(&kernel.body, &mut |stmt| match stmt {
        Stmt::For { var, .. } | Stmt::Let { var, .. } | Stmt::LaunchThread { var, .. } => {
            known.insert(var.clone());
        }
        _ => {}
    });
    let mut unknown: Option<Var> = None;
    let mut visit = |expr: &Expr| {
        for_each_expr(expr, &mut |e| {
            if let Node::Let(var, _, _) = e.node() {
                known.insert(var.clone());
            }
            if let Some(var) = e.as_var()
                && !known.contains(var)
            {
                unknown.get_or_insert(var.clone());
            }
        });
    };
    for buffer in kernel.param_buffers() {
        buffer.shape.iter().chain(&buffer.strides).for_each(&mut visit);
    }
    for_each_stmt(&kernel.body, &mut |stmt| stmt_exprs(stmt).into_iter().for_each(&mut visit));
    match unknown {
        Some(var) => {
            Err(ScheduleError::UnboundVariable { kernel: kernel.name.clone(), var: var.name().to_owned() })
        }
        None => Ok(()),
    }
}
