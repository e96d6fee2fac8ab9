//! Reductions over blocks: parts in global memory, folded by a second launch or by the last block.
//!
//! Each block folds its points and stores its part of each element. The parts of an element are then folded
//! by the threads that the reduce axes have, each taking every so many parts in order, and combined as
//! everywhere else, so the result is the same in every run. With `last_block` every block takes a ticket of
//! its row of blocks (those that differ only in bound reduce axes) after publishing its parts; the one with
//! the last ticket folds, and puts the counter back to 0 for the next call. A stage that is not reduced over
//! blocks itself, but reads what the launch before it left, may ask for the same: its launch is marked, and a
//! pass moves it behind a ticket. Source: fault U6 (docs/sources.md); CUDA C++ Programming Guide, memory
//! fence functions.

use coulis_ir::remark::IN_LAST_BLOCK;
use coulis_ir::ticket::Tickets;
use coulis_ir::visit::{substitute_expr, substitute_stmt};
use coulis_ir::{Attr, BinaryOp, Buffer, DType, Expr, MemScope, Stmt, ThreadTag, Var};
use coulis_tensor::{Body, Reduction};

use crate::accumulate::field_name;
use crate::cross_thread::is_spread;
use crate::error::ScheduleError;
use crate::fold;
use crate::launch::{Index, is_block, launched, one_thread};
use crate::nest::Builder;
use crate::schedule::Values;
use crate::stage::{GridFinish, Stage};
use crate::stores::{Point, Purpose, nested, store_all, under_all};
use crate::thread_error::ThreadError;

/// What the parts of a reduction over blocks are.
struct Parts {
    /// One buffer a component: parts, then the dimensions of the result.
    buffers: Vec<Buffer>,
    /// Number of parts of an element.
    count: Expr,
    /// Which part a block makes.
    mine: Expr,
}

impl Builder<'_> {
    /// Whether a reduce loop of the stage runs over blocks.
    pub(crate) fn is_over_blocks(&self, stage: &Stage) -> bool {
        let loops = &self.at(stage).loops;
        loops.iter().any(|l| is_spread(stage, l) && l.launched().is_some_and(is_block))
    }

    /// A stage at the root that is reduced over blocks, with its launches and the memory of the parts.
    pub(crate) fn over_blocks(&self, stage: &Stage) -> Result<Stmt, ScheduleError> {
        let at = self.at(stage);
        let Body::Reduce(r) = &stage.body else { return Ok(Stmt::NOP) };
        let group = self.launches.of(at.root);
        let Some(finish) = stage.finish else {
            let spread = at.loops.iter().find(|l| is_spread(stage, l) && l.launched().is_some_and(is_block));
            let (axis, tag) = spread.map_or((String::new(), ""), |l| {
                (stage.axis_name(&l.leaf), l.thread.map_or("", |tag| tag.name()))
            });
            let stage = self.schedule.stage_name(stage.id);
            return Err(ThreadError::NoFinish { stage, axis, tag }.into());
        };
        let parts = self.parts(stage, r);
        let first = self.fold_together(stage, r, &mut |total| {
            let known = self.known_behind_fold(stage);
            let point =
                Point { offsets: &at.offsets, absolutes: &at.absolutes, known: &known, extents: &at.extents };
            let guards = self.guards_of(stage, &point, Purpose::Data).into_iter().map(|g| g.condition);
            let store = store_all(
                &(0..r.arity()).map(|field| field_name(stage, field)).collect::<Vec<_>>(),
                &parts.buffers,
                &place(stage, &at.offsets, &parts.mine),
                total,
            );
            Ok(under_all(self.one_of_many(stage).into_iter().chain(guards), store))
        })?;
        let first = self.redirect_reads(first);
        let body = match finish {
            GridFinish::SecondKernel => {
                let second = self.redirect_reads(self.finish(stage, r, &parts, None)?);
                Stmt::seq([launched(group, first), self.second_launch(stage, second)])
            }
            GridFinish::LastBlock => {
                let (tickets, last) = self.last_block(stage, r, &parts)?;
                let last = self.redirect_reads(last);
                tickets.with_counter(launched(group, Stmt::seq([first, last])))
            }
        };
        Ok(parts.buffers.into_iter().rev().fold(body, |body, b| Stmt::allocate(b, body)))
    }

    /// Indices of the launch on which a reduce loop of the stage runs: of blocks or of threads.
    fn spread(&self, stage: &Stage, blocks: bool) -> Vec<&Index> {
        let at = self.at(stage);
        let is_mine =
            |i: &&Index| at.loops.iter().any(|l| l.launched() == Some(i.tag) && is_spread(stage, l));
        self.launches.of(at.root).iter().filter(|i| is_block(i.tag) == blocks).filter(is_mine).collect()
    }

    fn parts(&self, stage: &Stage, r: &Reduction) -> Parts {
        let at = self.at(stage);
        let (count, mine) = linear(self.spread(stage, true));
        let mut shape = vec![count.clone()];
        shape.extend(stage.axes.iter().map(|a| at.domains[a.var()].1.clone()));
        let buffers = r
            .identity
            .iter()
            .enumerate()
            .map(|(field, id)| {
                let name = format!("{}.part", field_name(stage, field));
                Buffer::new(&name, id.dtype(), shape.clone(), MemScope::Global)
            })
            .collect();
        Parts { buffers, count, mine }
    }

    /// Folds the parts of each element and stores the result; where `last` is false nothing is read or stored.
    fn finish(
        &self,
        stage: &Stage,
        r: &Reduction,
        parts: &Parts,
        last: Option<&Expr>,
    ) -> Result<Stmt, ScheduleError> {
        let threads = self.spread(stage, false);
        let (n_threads, thread) = linear(threads.clone());
        self.data_nest(stage, 0, "_last", &mut |point, _| {
            let sub = |exprs: Vec<Expr>| -> Vec<Expr> {
                exprs.iter().map(|e| substitute_expr(e, point.absolutes)).collect()
            };
            let mut fill = |mine: &[Buffer]| {
                let names: Vec<String> = mine.iter().map(|b| b.name.clone()).collect();
                let zero = [Expr::int(0)];
                let dtype = parts.count.dtype();
                let round = Var::size("part", dtype);
                let part = fold::add(&fold::mul(&round.expr(), &n_threads), &thread);
                let part = fold::cast(&part, dtype);
                let state: Vec<Expr> = mine.iter().map(|b| b.at(zero.clone())).collect();
                let at = place(stage, point.offsets, &part);
                let found: Vec<Expr> = parts.buffers.iter().map(|b| b.at(at.clone())).collect();
                let update = store_all(&names, mine, &zero, &sub(r.merge(&state, &found)));
                let rounds = fold::ceildiv(point.known, &parts.count, &n_threads);
                let mut known = point.known.clone();
                known.bind(&round, &fold::int(0, dtype), &rounds);
                let inside = fold::compare(BinaryOp::Lt, &part, &parts.count);
                let inside = (!known.can_prove(&inside)).then_some(inside);
                let guards = self.guards_of(stage, point, Purpose::Data).into_iter().map(|g| g.condition);
                let update = nested(guards.chain(inside), update);
                let fold = Stmt::range(round, rounds, update);
                let start = store_all(&names, mine, &zero, &r.identity);
                Ok(Stmt::seq([start, nested(last.cloned(), fold)]))
            };
            let mut store = |total: &[Expr]| {
                let values =
                    if r.init.is_empty() { total.to_vec() } else { r.merge(&sub(r.init.clone()), total) };
                self.store_total(stage, point, &sub(values), last.cloned().into_iter().collect())
            };
            self.combine_threads(stage, r, &threads, &mut fill, &mut store)
        })
    }

    /// The finishing nest in a launch of its own, without the blocks of the reduce axes.
    fn second_launch(&self, stage: &Stage, body: Stmt) -> Stmt {
        let blocks: Vec<_> = self.spread(stage, true).iter().map(|i| i.tag).collect();
        let group = self.launches.of(self.at(stage).root);
        let mut indices: Vec<Index> = Vec::new();
        let mut map = Values::default();
        for index in group.iter().filter(|i| !blocks.contains(&i.tag)) {
            let mut fresh = index.clone();
            fresh.var = index.var.fresh();
            map.insert(index.var.clone(), fresh.var.expr());
            indices.push(fresh);
        }
        if indices.is_empty() {
            indices.push(one_thread());
        }
        launched(&indices, substitute_stmt(body, &map))
    }

    /// The tickets, and what a block does after it stored its parts.
    fn last_block(
        &self,
        stage: &Stage,
        r: &Reduction,
        parts: &Parts,
    ) -> Result<(Tickets, Stmt), ScheduleError> {
        let group = self.launches.of(self.at(stage).root);
        let over = self.spread(stage, true);
        let rows = group.iter().filter(|i| is_block(i.tag) && over.iter().all(|o| o.tag != i.tag));
        let (n_rows, row) = linear(rows.collect());
        let first = group.iter().filter(|i| !is_block(i.tag) && !i.is_unit()).map(Index::is_zero);
        let tickets = Tickets::new(&stage.name, n_rows, row, first.reduce(|a, b| a.and(b)));
        let one = fold::int(1, parts.count.dtype());
        let highest = fold::cast(&fold::sub(&parts.count, &one), DType::U32);
        let last = self.finish(stage, r, parts, Some(&tickets.is_last()))?;
        let last = tickets.around(&highest, last);
        Ok((tickets, last))
    }
}

/// The launch, marked to be done by the last block of the launch before it.
pub(crate) fn in_last_block(launch: Stmt) -> Stmt {
    let key = IN_LAST_BLOCK.to_owned();
    Stmt::Annotate { node: None, key, value: Attr::Bool(true), body: Box::new(launch) }
}

/// Whether blocks of a launch can do another launch: that has one block, or as many along an index as the first has, and as
/// many threads along each axis, or one warp of them along x; and the first one is sure to have a block. That such blocks
/// read only what those of their index leave is shown when the launches are joined. Blocks of clusters do none.
pub(crate) fn last_block_does(first: &[Index], last: &[Index]) -> bool {
    const WARPS: [i128; 2] = [32, 64];
    let blocks = |indices: &[Index]| {
        indices.iter().filter(|i| is_block(i.tag)).try_fold(1i128, |n, i| n.checked_mul(i.extent.as_int()?))
    };
    let threads = |indices: &[Index]| {
        [ThreadTag::ThreadX, ThreadTag::ThreadY, ThreadTag::ThreadZ].map(|tag| {
            let index = indices.iter().find(|i| i.tag == tag);
            index.map_or(Some(1), |i| i.extent.as_int())
        })
    };
    let (all, few) = (threads(first), threads(last));
    let is_warp = matches!((all, few), ([Some(all), Some(1), Some(1)], [Some(few), Some(1), Some(1)])
        if few < all && WARPS.contains(&few));
    let is_shared = |index: &Index| {
        let mine = first.iter().find(|i| i.tag == index.tag).and_then(|i| i.extent.as_int());
        index.is_unit() || mine.is_some() && mine == index.extent.as_int()
    };
    let are_shared = last.iter().filter(|i| is_block(i.tag)).all(is_shared);
    let has_clusters = first.iter().chain(last).any(|i| i.tag.is_of_cluster() && !i.is_unit());
    blocks(first).is_some_and(|n| n >= 1) && are_shared && !has_clusters && (all == few || is_warp)
}

/// The product of the extents of indices, and their linear index, the first fastest. Those of one value are in no launch.
fn linear(indices: Vec<&Index>) -> (Expr, Expr) {
    let (mut count, mut at) = (Expr::int(1), Expr::int(0));
    for index in indices.into_iter().filter(|index| !index.is_unit()) {
        at = fold::add(&at, &fold::mul(&index.var.expr(), &count));
        count = fold::mul(&index.extent, &count);
    }
    (count, at)
}

/// Where a part stands in its buffer.
fn place(stage: &Stage, offsets: &Values, part: &Expr) -> Vec<Expr> {
    let mut indices = vec![part.clone()];
    indices.extend(stage.axes.iter().map(|axis| offsets[axis.var()].clone()));
    indices
}
