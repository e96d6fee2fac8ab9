//! Launches: the block and thread indices of each stage at the root and of all that is computed inside it.
//!
//! A root stage and the stages attached in it are one launch, which has one variable an index. Loops bound to the
//! index are that variable, so that a bound loop is no statement: the launch stands around the whole nest. Which
//! indices move freely under a stage's memory follows from who shares that memory: global memory is everybody's,
//! shared memory a block's, warp memory a row of threads', local memory one thread's. Source: seed 003.

use coulis_ir::hash::FastMap;
use std::sync::OnceLock;

use coulis_ir::print::print_expr;
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{substitute_stmt, uses_any};
use coulis_ir::{
    BinaryOp, DType, Expr, MAX_BLOCK_THREADS, MAX_CLUSTER_BLOCKS, MemScope, Stmt, ThreadTag, Var,
};
use coulis_tensor::IterVar;

use crate::error::ScheduleError;
use crate::fold;
use crate::ranges::Domains;
use crate::schedule::Schedule;
use crate::stage::{Attach, GridFinish, Stage, StageId};
use crate::thread_error::ThreadError;

/// The variable by which store predicates name a block or thread index.
pub fn thread_index(tag: ThreadTag) -> Var {
    static INDICES: OnceLock<[(ThreadTag, Var); ThreadTag::ALL.len()]> = OnceLock::new();
    let indices = INDICES.get_or_init(|| ThreadTag::ALL.map(|tag| (tag, Var::size(tag.name(), DType::I32))));
    let (_, var) = indices.iter().find(|(other, _)| *other == tag).expect("every tag is among all tags");
    var.clone()
}

/// Whether the tag counts blocks of a grid, or clusters where there are some along its axis.
pub(crate) fn is_block(tag: ThreadTag) -> bool {
    match tag {
        ThreadTag::BlockX | ThreadTag::BlockY | ThreadTag::BlockZ => true,
        ThreadTag::ClusterX | ThreadTag::ClusterY | ThreadTag::ClusterZ => false,
        ThreadTag::ThreadX | ThreadTag::ThreadY | ThreadTag::ThreadZ | ThreadTag::VThread => false,
    }
}

/// Whether all indices of the tag see the same memory of that scope.
pub(crate) fn shares(scope: MemScope, tag: ThreadTag) -> bool {
    match scope {
        MemScope::Global => true,
        MemScope::Shared | MemScope::SharedDyn => !tag.is_of_grid(),
        MemScope::Warp => tag == ThreadTag::ThreadX,
        MemScope::Local => false,
    }
}

/// The scope of a stage that sets none, by the bound loops around the point where it is attached.
pub(crate) fn inferred_scope(around: impl Iterator<Item = ThreadTag>) -> MemScope {
    let by = |tag: ThreadTag| if tag.is_of_grid() { MemScope::Shared } else { MemScope::Local };
    around.map(by).max().unwrap_or(MemScope::Global)
}

/// The stage at the root in whose nest a stage is computed.
pub(crate) fn root_of(schedule: &Schedule, stage: &Stage) -> StageId {
    let mut at = stage;
    while let Attach::At(parent, _) = &at.attach {
        at = schedule.by_id(*parent);
    }
    at.id
}

/// One index of a launch.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub tag: ThreadTag,
    pub var: Var,
    /// Number of values; 1 until a loop says otherwise.
    pub extent: Expr,
    /// The stage and axis that said so.
    owner: Option<(String, String)>,
}

impl Index {
    /// Whether it has one value, which is 0.
    pub fn is_unit(&self) -> bool {
        self.extent.is_int(1)
    }

    /// The condition that it is 0.
    pub fn is_zero(&self) -> Expr {
        fold::compare(BinaryOp::Eq, &self.var.expr(), &fold::int(0, self.var.dtype()))
    }
}

/// The indices of every launch, by the stage at its root.
#[derive(Clone, Debug, Default)]
pub(crate) struct Launches {
    groups: FastMap<StageId, Vec<Index>>,
}

impl Launches {
    /// The indices of a launch: blocks, then blocks of a cluster, then threads, each in the order in which stages bind them.
    pub fn of(&self, root: StageId) -> &[Index] {
        self.groups.get(&root).map_or(&[], Vec::as_slice)
    }

    /// The variable of an index, made when it is first asked for.
    pub fn var(&mut self, root: StageId, tag: ThreadTag, dtype: DType) -> Var {
        let group = self.groups.entry(root).or_default();
        if let Some(index) = group.iter().find(|i| i.tag == tag) {
            return index.var.clone();
        }
        let var = Var::size(tag.name(), dtype);
        let index = Index { tag, var: var.clone(), extent: fold::int(1, dtype), owner: None };
        let rank = |tag: ThreadTag| (!tag.is_of_grid(), tag.is_of_cluster());
        let at = group.iter().position(|i| rank(i.tag) > rank(tag)).unwrap_or(group.len());
        group.insert(at, index);
        var
    }

    /// Takes note of the extent of a bound loop.
    pub fn note(
        &mut self,
        root: StageId,
        stage: &Stage,
        axis: &IterVar,
        tag: ThreadTag,
        extent: &Expr,
    ) -> Result<(), ScheduleError> {
        if extent.is_int(1) {
            return Ok(());
        }
        let (name, axis) = (stage.name.clone(), stage.axis_name(axis));
        let Some(index) = self.groups.entry(root).or_default().iter_mut().find(|i| i.tag == tag) else {
            return Ok(());
        };
        match &index.owner {
            Some((other, other_axis)) if index.extent != *extent => Err(ThreadError::Mismatch {
                tag: tag.name(),
                stage: name,
                axis,
                extent: print_expr(extent),
                other: other.clone(),
                other_axis: other_axis.clone(),
                other_extent: print_expr(&index.extent),
            }
            .into()),
            Some(_) => Ok(()),
            None => {
                index.owner = Some((name, axis));
                index.extent = extent.clone();
                Ok(())
            }
        }
    }

    /// Tells an analyzer the ranges of the indices that are known so far.
    pub fn bind(&self, root: StageId, analyzer: &mut Analyzer) {
        for index in self.of(root).iter().filter(|i| !i.is_unit()) {
            analyzer.bind(&index.var, &fold::int(0, index.var.dtype()), &index.extent);
        }
    }

    /// Refuses launches that no device takes.
    pub fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let Some(bound) = schedule.stages.iter().find(|s| !self.of(s.id).is_empty()) else { return Ok(()) };
        for stage in schedule.stages.iter().filter(|s| s.attach == Attach::Root) {
            let name = schedule.stage_name(stage.id);
            let group = self.of(stage.id);
            if group.is_empty() {
                let other = schedule.stage_name(bound.id);
                return Err(ThreadError::Unbound { stage: name, other }.into());
            }
            if let Some(index) = group.iter().find(|i| i.tag.is_of_cluster() && !i.is_unit())
                && stage.finish.is_some()
            {
                return Err(ThreadError::FinishOfClusters { stage: name, tag: index.tag.name() }.into());
            }
            let parts = |of: &[&Index]| {
                let part = |i: &&Index| format!("{} {}", i.tag.name(), print_expr(&i.extent));
                of.iter().map(part).collect::<Vec<_>>().join(", ")
            };
            let product = |of: &[&Index]| {
                of.iter().filter_map(|i| i.extent.as_int()).fold(1i128, |n, extent| n.saturating_mul(extent))
            };
            let clusters: Vec<&Index> = group.iter().filter(|i| i.tag.is_of_cluster()).collect();
            let (found, limit) = (product(&clusters), i128::from(MAX_CLUSTER_BLOCKS));
            if found > limit {
                let parts = parts(&clusters);
                return Err(ThreadError::ClusterTooLarge { stage: name, found, parts, limit }.into());
            }
            let threads: Vec<&Index> = group.iter().filter(|i| !i.tag.is_of_grid()).collect();
            let n = product(&threads);
            // Along one index, or of all.
            let too_long = threads.iter().find_map(|i| {
                let (found, limit) = (i.extent.as_int()?, i128::from(i.tag.max_extent()?));
                (found > limit).then_some((found, limit))
            });
            let limit = i128::from(MAX_BLOCK_THREADS);
            let too_many = (n > limit).then_some((n, limit));
            if let Some((found, limit)) = too_many.or(too_long) {
                let parts = parts(&threads);
                return Err(ThreadError::BlockTooLarge { stage: name, found, parts, limit }.into());
            }
        }
        Ok(())
    }
}

/// Refuses a bound loop that its stage cannot have where it is computed. `domains` are the realised ranges of the
/// root axes, `var` the index that the loop runs over, `loops` the indices of all loops of the stage.
pub(crate) fn check_bound(
    schedule: &Schedule,
    stage: &Stage,
    (axis, tag, extent): (&IterVar, ThreadTag, &Expr),
    scope: MemScope,
    domains: &Domains,
    (var, loops): (&Var, &[Var]),
) -> Result<(), ScheduleError> {
    let (name, axis_name) = (schedule.stage_name(stage.id), stage.axis_name(axis));
    let text = || print_expr(extent);
    if tag == ThreadTag::VThread || !is_block(tag) {
        if extent.as_int().is_none_or(|n| n < 1) {
            let (tag, extent) = (tag.name(), text());
            return Err(ThreadError::Extent { stage: name, axis: axis_name, tag, extent }.into());
        }
    } else {
        let mut has_read = false;
        coulis_ir::visit::for_each_expr(extent, &mut |e| {
            has_read |= matches!(e.node(), coulis_ir::Node::Load(..));
        });
        if uses_any(extent, loops) || has_read {
            let (tag, extent) = (tag.name(), text());
            return Err(ThreadError::BlockExtent { stage: name, axis: axis_name, tag, extent }.into());
        }
    }
    if extent.is_int(1) || tag == ThreadTag::VThread {
        return Ok(());
    }
    let attached = stage.attach != Attach::Root;
    let is_data = stage.origin(axis).data;
    if attached && (is_block(tag) || is_data && tag.is_of_cluster()) {
        return Err(ThreadError::BlockInside { stage: name, axis: axis_name, tag: tag.name() }.into());
    }
    if attached && is_data && !shares(scope, tag) {
        let (tag, scope) = (tag.name(), scope.name());
        return Err(ThreadError::Private { stage: name, axis: axis_name, tag, scope }.into());
    }
    let chosen = domains.values().any(|(min, extent)| {
        let vars = std::slice::from_ref(var);
        uses_any(min, vars) || uses_any(extent, vars)
    });
    if !is_data && chosen {
        return Err(ThreadError::SameIndex { stage: name, axis: axis_name, tag: tag.name() }.into());
    }
    Ok(())
}

/// The launch of these indices around a body. Indices of one value are left out, unless no other is left: a kernel
/// has at least one.
pub(crate) fn launched(indices: &[Index], body: Stmt) -> Stmt {
    let mut kept: Vec<Index> = indices.iter().filter(|i| !i.is_unit()).cloned().collect();
    if kept.is_empty() {
        kept.extend(indices.first().cloned());
    }
    let (kept, body) = by_blocks(kept, body);
    kept.into_iter().rev().fold(body, |body, index| Stmt::LaunchThread {
        tag: index.tag,
        var: index.var.clone(),
        extent: index.extent.clone(),
        body: Box::new(body),
    })
}

/// The indices and the body where blocks are counted as a device does, which counts those of all clusters: an
/// axis that is bound to an index of blocks along which there are clusters runs over these.
fn by_blocks(mut indices: Vec<Index>, mut body: Stmt) -> (Vec<Index>, Stmt) {
    let clusters: Vec<Index> = indices.iter().filter(|i| i.tag.is_of_cluster()).cloned().collect();
    for cluster in clusters {
        let Some(tag) = cluster.tag.grid_tag() else { continue };
        let Some(index) = indices.iter_mut().find(|i| i.tag == tag) else {
            let var = Var::size(tag.name(), cluster.var.dtype());
            indices.insert(0, Index { tag, var, extent: cluster.extent, owner: cluster.owner });
            continue;
        };
        let (counted, var) = (index.var.fresh(), index.var.clone());
        let n_blocks = fold::cast(&cluster.extent, var.dtype());
        index.extent = fold::mul(&index.extent, &n_blocks);
        index.var = counted.clone();
        let number = fold::floordiv(&counted.expr(), &n_blocks);
        body = substitute_stmt(body, &FastMap::from_iter([(var, number)]));
    }
    (indices, body)
}

/// A launch of one thread.
pub(crate) fn one_thread() -> Index {
    let tag = ThreadTag::ThreadX;
    Index { tag, var: Var::size(tag.name(), DType::I32), extent: Expr::int(1), owner: None }
}

/// The extent of a reduce loop bound to blocks: at least 1 where the last block has to finish, for with no block at
/// all nobody would store the result of an empty fold.
pub(crate) fn block_extent(stage: &Stage, axis: &IterVar, extent: &Expr, known: &Analyzer) -> Expr {
    let one = fold::int(1, extent.dtype());
    if stage.origin(axis).reduce && stage.finish == Some(GridFinish::LastBlock) {
        return fold::max(known, extent, &one);
    }
    extent.clone()
}
