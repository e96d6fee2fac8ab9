//! Reductions whose threads fold together.
//!
//! Each thread folds the points of the loops that are not bound into a state of its own, under all guards;
//! points outside the domain change nothing. Then one cooperative call combines the states of the threads
//! that differ only in bound reduce axes, at the scope of the block or, where the block is one warp, of the
//! warp. It stands under no condition, so that every thread arrives. The store follows: by one thread where
//! the memory is common, by each where it is a thread's own. A start value is folded in there, once.
//!
//! The states of a block are one register tile: element (spatial indices, reduce indices) is in the thread with these
//! indices, and axis `tx` of its layout is the thread's linear index, x fastest. A dimension of one group stands for
//! the spatial indices where there are none.
//!
//! Blocks of a cluster fold together in one step more: each leaves its total in shared memory of its own, and
//! a call at the scope of the cluster combines these for every block. Source: seed 003; faults C1, C3, C4, C5
//! and C14 (docs/sources.md) are what is different here.

use coulis_ir::reducer::Reducer;
use coulis_ir::stmt::{Region, TileOp};
use coulis_ir::visit::{substitute_expr, uses_any};
use coulis_ir::{
    BinaryOp, Buffer, DType, ExecScope, Expr, Lambda, MemScope, Node, Site, Stmt, Target, ThreadTag,
    TileCall, Var,
};
use coulis_layout::tile::{AxisStride, Iter, TileLayout};
use coulis_tensor::Reduction;

use crate::accumulate::stored;
use crate::error::ScheduleError;
use crate::fold;
use crate::infer::Loop;
use crate::launch::{Index, is_block};
use crate::nest::Builder;
use crate::ranges;
use crate::stage::Stage;
use crate::stores::{Point, Purpose, likely, nested, store_all, under_all, with_read_first};
use crate::thread_error::ThreadError;

/// The layout axis that counts the threads of a block.
const THREADS: &str = "tx";

impl Builder<'_> {
    /// Whether a reduce loop of the stage runs over an index of the launch.
    pub(crate) fn is_cross_thread(&self, stage: &Stage) -> bool {
        self.at(stage).loops.iter().any(|l| is_spread(stage, l))
    }

    /// A reduction by the threads of a block, with its store.
    pub(crate) fn cross_thread(&self, stage: &Stage, r: &Reduction) -> Result<Stmt, ScheduleError> {
        let at = self.at(stage);
        self.fold_together(stage, r, &mut |total| {
            let known = self.known_behind_fold(stage);
            let point =
                Point { offsets: &at.offsets, absolutes: &at.absolutes, known: &known, extents: &at.extents };
            let init: Vec<Expr> = r.init.iter().map(|e| substitute_expr(e, &at.absolutes)).collect();
            let combine = |a: &[Expr], b: &[Expr]| -> Vec<Expr> {
                r.merge(a, b).iter().map(|e| substitute_expr(e, &at.absolutes)).collect()
            };
            let values = if init.is_empty() { total.to_vec() } else { combine(&init, total) };
            self.store_total(stage, &point, &values, Vec::new())
        })
    }

    /// The store of results after the reduce axes are gone, under all that must hold for it.
    pub(crate) fn store_total(
        &self,
        stage: &Stage,
        point: &Point,
        values: &[Expr],
        further: Vec<Expr>,
    ) -> Result<Stmt, ScheduleError> {
        let gone: Vec<Var> = self
            .at(stage)
            .loops
            .iter()
            .filter(|l| l.is_loop() && stage.origin(&l.leaf).reduce)
            .map(|l| l.var.clone())
            .collect();
        let predicate = self.predicate(stage, point, &gone)?;
        let guards = self.guards_of(stage, point, Purpose::Data).into_iter().map(|g| g.condition);
        let conditions = self.one_of_many(stage).into_iter().chain(guards).chain(predicate).chain(further);
        let store = self.store_results(stage, point.offsets, &stored(stage, values));
        Ok(under_all(conditions, store))
    }

    /// The loops of the stage around a fold by all threads; `finish` says what becomes of the total.
    pub(crate) fn fold_together(
        &self,
        stage: &Stage,
        r: &Reduction,
        finish: &mut dyn FnMut(&[Expr]) -> Result<Stmt, ScheduleError>,
    ) -> Result<Stmt, ScheduleError> {
        self.check_together(stage, r)?;
        let at = self.at(stage);
        let common = self.n_around_fold(stage);
        let spread = |i: &&Index| {
            let mut loops = at.loops.iter();
            !is_block(i.tag) && loops.any(|l| l.launched() == Some(i.tag) && is_spread(stage, l))
        };
        let threads: Vec<&Index> = self.launches.of(at.root).iter().filter(spread).collect();
        let mut fill = |mine: &[Buffer]| self.fill(stage, r, common, mine);
        let body = self.combine_threads(stage, r, &threads, &mut fill, finish)?;
        self.loops(stage, 0, common, body)
    }

    /// What one thread folds: its state starts at the identity, unless its one point is there for sure.
    fn fill(
        &self,
        stage: &Stage,
        r: &Reduction,
        common: usize,
        mine: &[Buffer],
    ) -> Result<Stmt, ScheduleError> {
        let at = self.at(stage);
        let sub = |exprs: &[Expr]| -> Vec<Expr> {
            exprs.iter().map(|e| substitute_expr(e, &at.absolutes)).collect()
        };
        let names: Vec<String> = mine.iter().map(|b| b.name.clone()).collect();
        let zero = [Expr::int(0)];
        let sources = sub(&r.sources);
        let condition = r.condition.as_ref().map(|c| substitute_expr(c, &at.absolutes));
        let mut guards = self.guards(stage);
        let is_loop = common < at.loops.len();
        if !is_loop && condition.is_none() && sources.iter().all(|source| self.is_own_element(stage, source))
        {
            guards.retain(|g| g.is_reduce);
        }
        if !is_loop && condition.is_none() && guards.is_empty() {
            return Ok(store_all(&names, mine, &zero, &sources));
        }
        let start = store_all(&names, mine, &zero, &r.identity);
        let folded = |sources: &[Expr]| {
            let state: Vec<Expr> = mine.iter().map(|b| b.at(zero.clone())).collect();
            let serial = at.loops.iter().filter(|l| l.is_loop() && stage.origin(&l.leaf).reduce);
            let serial: Vec<_> = serial.map(|l| l.leaf.clone()).collect();
            let in_order = !r.step_needs_ascending || ranges::is_ascending(stage, &serial);
            let values = sub(&if in_order { r.fold(&state, sources) } else { r.merge(&state, sources) });
            store_all(&names, mine, &zero, &values)
        };
        let update = match is_loop {
            true => with_read_first(&sources, folded),
            false => store_all(&names, mine, &zero, &sources),
        };
        let update = nested(condition, update);
        let update = nested(likely(guards), update);
        Ok(Stmt::seq([start, self.loops(stage, common, at.loops.len(), update)?]))
    }

    /// Whether an expression is one element of a tensor that this kernel keeps, inside it and stored whatever the loops are.
    fn is_own_element(&self, stage: &Stage, expr: &Expr) -> bool {
        let Node::Load(buffer, indices) = expr.node() else { return false };
        let Some(realised) = self.realised.get(&buffer.id) else { return false };
        let stored_by = self.schedule.stages.iter().find(|stage| stage.outputs.contains(buffer));
        if !stored_by.is_some_and(|stage| self.fills_memory(stage)) {
            return false;
        }
        let known = self.at(stage).known_inside();
        let places = indices.iter().zip(&realised.mins).zip(&realised.buffer.shape);
        let mut inside = places.map(|((index, min), extent)| {
            let place = known.simplify(&fold::sub(index, min));
            let zero = fold::int(0, place.dtype());
            fold::proves(&known, BinaryOp::Ge, &place, &zero)
                && fold::proves(&known, BinaryOp::Lt, &place, extent)
        });
        inside.all(|ok| ok)
    }

    /// The states of the threads that differ only in `over`, which may be of several blocks of a cluster,
    /// filled and combined; then what becomes of the total.
    pub(crate) fn combine_threads(
        &self,
        stage: &Stage,
        r: &Reduction,
        over: &[&Index],
        fill: &mut dyn FnMut(&[Buffer]) -> Result<Stmt, ScheduleError>,
        finish: &mut dyn FnMut(&[Expr]) -> Result<Stmt, ScheduleError>,
    ) -> Result<Stmt, ScheduleError> {
        let (blocks, threads): (Vec<&Index>, Vec<&Index>) =
            over.iter().copied().partition(|i| i.tag.is_of_cluster());
        if blocks.is_empty() {
            return self.combine_in_block(stage, r, &threads, fill, finish);
        }
        self.combine_in_block(stage, r, &threads, fill, &mut |total| {
            self.combine_in_cluster(stage, r, &threads, total, finish)
        })
    }

    /// The totals of the blocks of a cluster, `total` being that of the executing one, combined; then what becomes of that.
    fn combine_in_cluster(
        &self,
        stage: &Stage,
        r: &Reduction,
        folded: &[&Index],
        total: &[Expr],
        finish: &mut dyn FnMut(&[Expr]) -> Result<Stmt, ScheduleError>,
    ) -> Result<Stmt, ScheduleError> {
        let at = self.at(stage);
        let values = at.absolutes.values().chain(at.offsets.values());
        let ranges = at.domains.values().flat_map(|(min, extent)| [min, extent]);
        let seen: Vec<&Expr> = values.chain(ranges).collect();
        // Threads that have totals of their own; the others have what one of them has.
        let is_group = |i: &&Index| {
            !folded.iter().any(|f| f.tag == i.tag)
                && seen.iter().any(|e| uses_any(e, std::slice::from_ref(&i.var)))
        };
        let threads = self.launches.of(at.root).iter().filter(|i| !i.tag.is_of_grid() && !i.is_unit());
        let (groups, alike): (Vec<&Index>, Vec<&Index>) = threads.partition(is_group);
        let mut n_groups = Expr::int(1);
        let mut group = Expr::int(0);
        for index in groups {
            group = fold::add(&group, &fold::mul(&fold::cast(&index.var.expr(), DType::I32), &n_groups));
            n_groups = fold::mul(&fold::cast(&index.extent, DType::I32), &n_groups);
        }
        let buffers = |stem: &str, shape: Vec<Expr>| -> Vec<Buffer> {
            let make = |(c, id): (usize, &Expr)| {
                let name = if r.arity() == 1 { stem.to_owned() } else { format!("{stem}{c}") };
                Buffer::new(&name, id.dtype(), shape.clone(), MemScope::Shared)
            };
            r.identity.iter().enumerate().map(make).collect()
        };
        let parts = buffers("of_block", vec![n_groups.clone(), Expr::int(1)]);
        let wholes = buffers("of_cluster", vec![n_groups]);
        let names: Vec<String> = parts.iter().map(|b| b.name.clone()).collect();
        let store = store_all(&names, &parts, &[group.clone(), Expr::int(0)], total);
        let call = TileCall {
            op: TileOp::ReduceBy { reducer: self.combiner(stage, r), axes: vec![1], accum: false },
            scope: ExecScope::Cluster,
            dsts: wholes.iter().map(Region::whole).collect(),
            srcs: parts.iter().map(Region::whole).collect(),
            dispatch: None,
            options: Vec::new(),
            site: Site::default(),
        };
        let found: Vec<Expr> = wholes.iter().map(|b| b.at([group.clone()])).collect();
        let mut stmts: Vec<Stmt> = parts.iter().chain(&wholes).cloned().map(Stmt::AllocBuffer).collect();
        stmts.push(under_all(alike.into_iter().map(Index::is_zero), store));
        stmts.push(Stmt::Tile(Box::new(call)));
        stmts.push(finish(&found)?);
        Ok(Stmt::seq(stmts))
    }

    /// The combination of a stage's states as a reducer.
    fn combiner(&self, stage: &Stage, r: &Reduction) -> Box<Reducer> {
        let map = &self.at(stage).absolutes;
        let combine = Lambda {
            params: r.combine.params.clone(),
            body: r.combine.body.iter().map(|e| substitute_expr(e, map)).collect(),
        };
        let mut reducer = Reducer::plain(combine, r.identity.clone());
        reducer.claims = r.claims;
        Box::new(reducer)
    }

    /// The same of threads of one block.
    fn combine_in_block(
        &self,
        stage: &Stage,
        r: &Reduction,
        threads: &[&Index],
        fill: &mut dyn FnMut(&[Buffer]) -> Result<Stmt, ScheduleError>,
        finish: &mut dyn FnMut(&[Expr]) -> Result<Stmt, ScheduleError>,
    ) -> Result<Stmt, ScheduleError> {
        let first =
            |buffers: &[Buffer]| -> Vec<Expr> { buffers.iter().map(|b| b.at([Expr::int(0)])).collect() };
        let one = r.arity() == 1;
        let named = |stem: &str, c: usize| if one { stem.to_owned() } else { format!("{stem}{c}") };
        if threads.is_empty() {
            let mine: Vec<Buffer> = r
                .identity
                .iter()
                .enumerate()
                .map(|(c, id)| {
                    Buffer::new(&named("mine", c), id.dtype(), vec![Expr::int(1)], MemScope::Local)
                })
                .collect();
            let body = Stmt::seq([fill(&mine)?, finish(&first(&mine))?]);
            return Ok(mine.into_iter().rev().fold(body, |body, b| Stmt::allocate(b, body)));
        }
        let tile = Tile::of(self.launches.of(self.at(stage).root), threads);
        let registers: Vec<Buffer> = r
            .identity
            .iter()
            .enumerate()
            .map(|(c, id)| {
                Buffer::new(&format!("red_buf{c}"), id.dtype(), tile.shape(), MemScope::Local)
                    .derive(|b| b.layout = Some(tile.layout()))
            })
            .collect();
        let window = |stem: &str, shape: Vec<Expr>, layout: Option<TileLayout>| -> Vec<Buffer> {
            let make = |(c, b): (usize, &Buffer)| {
                b.derive(|d| {
                    d.name = named(stem, c);
                    d.shape = shape.clone();
                    d.layout = layout.clone();
                })
            };
            registers.iter().enumerate().map(make).collect()
        };
        let own = || vec![Expr::int(1)];
        let mine = window("mine", own(), None);
        let total = window("total", tile.groups_shape(), Some(tile.groups_layout()));
        let views = |windows: &[Buffer], sources: &[Buffer], local| -> Vec<Stmt> {
            let view = |(buffer, source): (&Buffer, &Buffer)| Stmt::View {
                buffer: buffer.clone(),
                source: source.clone(),
                local,
            };
            windows.iter().zip(sources).map(view).collect()
        };
        let whole = window("whole", own(), None);
        let call = TileCall {
            op: TileOp::ReduceBy { reducer: self.combiner(stage, r), axes: tile.axes(), accum: false },
            scope: tile.scope(),
            dsts: total.iter().map(Region::whole).collect(),
            srcs: registers.iter().map(Region::whole).collect(),
            dispatch: None,
            options: Vec::new(),
            site: Site::default(),
        };
        let mut stmts: Vec<Stmt> = registers.iter().cloned().map(Stmt::AllocBuffer).collect();
        stmts.extend(views(&mine, &registers, true));
        stmts.push(fill(&mine)?);
        stmts.extend(views(&total, &registers, false));
        stmts.push(Stmt::Tile(Box::new(call)));
        stmts.extend(views(&whole, &total, true));
        stmts.push(finish(&first(&whole))?);
        Ok(Stmt::seq(stmts))
    }

    /// Refuses what threads cannot fold together.
    fn check_together(&self, stage: &Stage, r: &Reduction) -> Result<(), ScheduleError> {
        let at = self.at(stage);
        let name = || self.schedule.stage_name(stage.id);
        if !r.claims.any_order() {
            let (primitive, reducer) = ("bind", r.name.clone());
            return Err(ScheduleError::UnclaimedLaws { primitive, stage: name(), reducer });
        }
        let owner = |l: &Loop| {
            let found = self.schedule.stages.iter().find(|s| s.leaves.contains(&l.leaf));
            found.map_or((name(), l.leaf.name().to_owned()), |s| {
                (self.schedule.stage_name(s.id), s.axis_name(&l.leaf))
            })
        };
        let virtual_thread = |l: &&Loop| l.thread == Some(ThreadTag::VThread) && !l.is_unit();
        if let Some(l) = at.path.iter().chain(&at.loops).find(virtual_thread) {
            let (owner, axis) = owner(l);
            return Err(ThreadError::VThread { stage: name(), owner, axis }.into());
        }
        let Some(reduced) = at.loops.iter().find(|l| is_spread(stage, l)) else { return Ok(()) };
        let is_reduce = |l: &Loop| !l.is_unit() && stage.origin(&l.leaf).reduce;
        let first = at.loops.iter().position(is_reduce).unwrap_or(0);
        if let Some(l) = at.loops[first..].iter().find(|l| l.is_loop() && stage.origin(&l.leaf).data) {
            return Err(ThreadError::DataInside {
                stage: name(),
                axis: stage.axis_name(&l.leaf),
                reduced: stage.axis_name(&reduced.leaf),
                tag: reduced.thread.map_or("", ThreadTag::name),
            }
            .into());
        }
        let indices = self.launches.of(at.root).iter().filter(|i| !is_block(i.tag) && !i.is_unit());
        let indices: Vec<Var> = indices.map(|i| i.var.clone()).collect();
        let around = at.loops.iter().filter(|l| !stage.origin(&l.leaf).reduce);
        if let Some(l) = at.path.iter().chain(around).find(|l| l.is_loop() && uses_any(&l.extent, &indices)) {
            let (owner, axis) = owner(l);
            let extent = coulis_ir::print::print_expr(&l.extent);
            return Err(ThreadError::Uneven { stage: name(), owner, axis, extent }.into());
        }
        Ok(())
    }
}

/// Whether a loop spreads a reduction over an index of the launch.
pub(crate) fn is_spread(stage: &Stage, l: &Loop) -> bool {
    l.launched().is_some() && stage.origin(&l.leaf).reduce
}

/// The register tile of the threads of a block.
struct Tile {
    /// Extents and weights in the linear index of those that tell groups apart, slowest first; at least one.
    groups: Vec<(i64, i64)>,
    /// Those that are folded, slowest first.
    folded: Vec<(i64, i64)>,
}

impl Tile {
    fn of(indices: &[Index], folded: &[&Index]) -> Tile {
        let mut tile = Tile { groups: Vec::new(), folded: Vec::new() };
        let mut weight = 1;
        for tag in [ThreadTag::ThreadX, ThreadTag::ThreadY, ThreadTag::ThreadZ] {
            let Some(index) = indices.iter().find(|i| i.tag == tag && !i.is_unit()) else { continue };
            let extent = index.extent.as_int().and_then(|e| i64::try_from(e).ok()).unwrap_or(1);
            let is_folded = folded.iter().any(|i| i.tag == tag);
            let part = if is_folded { &mut tile.folded } else { &mut tile.groups };
            part.insert(0, (extent, weight));
            weight *= extent;
        }
        if tile.groups.is_empty() {
            tile.groups.push((1, weight));
        }
        tile
    }

    /// Who folds: the warp where the block is one on every machine, else the block.
    fn scope(&self) -> ExecScope {
        let threads: i64 = self.groups.iter().chain(&self.folded).map(|(extent, _)| extent).product();
        if threads <= i64::from(Target::LEAST_WARP) { ExecScope::Warp } else { ExecScope::Cta }
    }

    fn shape(&self) -> Vec<Expr> {
        extents(self.groups.iter().chain(&self.folded))
    }

    fn groups_shape(&self) -> Vec<Expr> {
        extents(self.groups.iter())
    }

    fn layout(&self) -> TileLayout {
        let shard = iters(self.groups.iter().chain(&self.folded));
        TileLayout { shard, replica: Vec::new(), offset: Vec::new(), swizzle: None }
    }

    fn groups_layout(&self) -> TileLayout {
        let (shard, replica) = (iters(self.groups.iter()), iters(self.folded.iter()));
        TileLayout { shard, replica, offset: Vec::new(), swizzle: None }
    }

    /// The dimensions that are folded away.
    fn axes(&self) -> Vec<i64> {
        (self.groups.len()..self.groups.len() + self.folded.len()).map(|axis| axis as i64).collect()
    }
}

fn extents<'a>(parts: impl Iterator<Item = &'a (i64, i64)>) -> Vec<Expr> {
    parts.map(|(extent, _)| Expr::int_of(i128::from(*extent), coulis_ir::DType::I32)).collect()
}

fn iters<'a>(parts: impl Iterator<Item = &'a (i64, i64)>) -> Vec<Iter> {
    let iter = |(extent, stride): &(i64, i64)| Iter {
        extent: *extent,
        step: AxisStride { stride: *stride, axis: THREADS.to_owned() },
    };
    parts.map(iter).collect()
}
