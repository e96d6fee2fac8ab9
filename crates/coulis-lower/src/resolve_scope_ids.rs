//! Scope ids become launches: the extents of the thread hierarchy are completed, and every id is an expression of them.
//!
//! What stands before `T.device_entry()` stays on the host; what follows is launched. Extents are closed
//! under composition and quotient, with the warp of the machine as the one width that is known beforehand:
//! four warps of 32 lanes are 128 threads, and 256 threads in two warpgroups are eight warps. Extents that
//! contradict each other are an error, and so is a block whose number of threads follows from nothing. The
//! number of a thread counts `threadIdx.x` fastest. In the same way blocks, clusters and blocks of a cluster
//! are completed, axis by axis: four clusters of two blocks are eight blocks. Global memory that the device
//! code allocates becomes a temporary of the function. The program orders its own accesses to shared memory,
//! so that its body is marked and `place_barriers` adds none. Order: first of all; the next pass reads
//! launches.
//!
//! Source: the scope ids of seeds 000 to 002.

use coulis_ir::hash::FastMap;
use coulis_ir::remark::SYNCHRONIZED;

use coulis_ir::expr::{Expr, Var};
use coulis_ir::print::print_expr;
use coulis_ir::simplify::Analyzer;
use coulis_ir::{Attr, Buffer, DType, Form, Kernel, MemScope, ScopeId, Stmt, ThreadTag};
use coulis_tile::{Block, ThreadIndex};

use crate::binders::substituted;
use crate::pass::{LowerError, Options, Pass};

/// The pass.
pub const PASS: Pass = Pass {
    name: "resolve_scope_ids",
    from: Form::Tiled,
    to: Form::Tiled,
    run: resolve_scope_ids,
    doc: "turns scope ids into launches, and completes the extents of the thread hierarchy",
};

const GRID: [(ThreadTag, &str); 3] =
    [(ThreadTag::BlockX, "bx"), (ThreadTag::BlockY, "by"), (ThreadTag::BlockZ, "bz")];
const CLUSTER: [(ThreadTag, &str); 3] =
    [(ThreadTag::ClusterX, "cx"), (ThreadTag::ClusterY, "cy"), (ThreadTag::ClusterZ, "cz")];
const BLOCK: [(ThreadTag, &str); 3] =
    [(ThreadTag::ThreadX, "tx"), (ThreadTag::ThreadY, "ty"), (ThreadTag::ThreadZ, "tz")];

/// Turns scope ids into launches.
pub fn resolve_scope_ids(kernel: Kernel, options: &Options) -> Result<Kernel, LowerError> {
    let mut has_entry = false;
    coulis_ir::visit::for_each_stmt(&kernel.body, &mut |s| {
        has_entry |= matches!(s, Stmt::DeviceEntry | Stmt::ScopeIds { .. });
    });
    if !has_entry {
        return Ok(kernel);
    }
    if !options.target.has_threads() {
        return Err(LowerError::NoThreads);
    }
    let body = host(kernel.body, options.target.warp)?;
    Ok(Kernel { body, ..kernel })
}

fn wrong(message: impl Into<String>) -> LowerError {
    LowerError::ScopeIds { message: message.into() }
}

/// A statement of the host, with what follows the entry launched.
fn host(stmt: Stmt, warp: u32) -> Result<Stmt, LowerError> {
    let stmts = match stmt {
        Stmt::Seq(stmts) => stmts,
        Stmt::Let { var, value, body } => return Ok(Stmt::let_(var, value, host(*body, warp)?)),
        Stmt::Allocate { buffer, body } => return Ok(Stmt::allocate(buffer, host(*body, warp)?)),
        Stmt::ScopeIds { id, .. } => return Err(before_entry(id)),
        other => vec![other],
    };
    let mut done = Vec::new();
    let mut rest = stmts.into_iter();
    while let Some(stmt) = rest.next() {
        match stmt {
            Stmt::DeviceEntry => {
                done.push(launched(Stmt::seq(rest), warp)?);
                break;
            }
            // The rest of the block stands inside.
            open @ (Stmt::Let { .. } | Stmt::Allocate { .. }) if rest.len() == 0 => {
                done.push(host(open, warp)?)
            }
            Stmt::AllocBuffer(buffer) if buffer.scope == MemScope::Global => {
                let inside = host(Stmt::seq(rest), warp)?;
                done.push(Stmt::allocate(buffer, inside));
                break;
            }
            Stmt::ScopeIds { id, .. } => return Err(before_entry(id)),
            other => done.push(other),
        }
    }
    Ok(Stmt::seq(done))
}

fn before_entry(id: ScopeId) -> LowerError {
    wrong(format!("`T.{}` stands before `T.device_entry()`, after which the device runs", id.name()))
}

/// One declaration of scope ids.
struct Declared {
    id: ScopeId,
    vars: Vec<Var>,
    extents: Vec<Expr>,
}

/// The device code under its launches.
fn launched(body: Stmt, warp: u32) -> Result<Stmt, LowerError> {
    let mut taken = Taken::default();
    let body = taken.straight(body)?;
    let hierarchy = Hierarchy::of(&taken.ids, warp)?;
    let body = substituted(body, &hierarchy.values(&taken.ids, warp)?);
    let marked = Stmt::Annotate {
        node: None,
        key: SYNCHRONIZED.to_owned(),
        value: Attr::Bool(true),
        body: Box::new(body),
    };
    let launch = |body: Stmt, (tag, var, extent): &(ThreadTag, Var, Expr)| Stmt::LaunchThread {
        tag: *tag,
        var: var.clone(),
        extent: extent.clone(),
        body: Box::new(body),
    };
    let launches = hierarchy.grid.iter().chain(&hierarchy.cluster).chain(&hierarchy.block).rev();
    let stmt = launches.fold(marked, launch);
    Ok(taken.globals.into_iter().rev().fold(stmt, |body, buffer| Stmt::allocate(buffer, body)))
}

/// What is taken out of device code.
#[derive(Default)]
struct Taken {
    ids: Vec<Declared>,
    globals: Vec<Buffer>,
}

impl Taken {
    /// The statement without scope ids and allocations of global memory. Scope ids stand where every thread passes once.
    fn straight(&mut self, stmt: Stmt) -> Result<Stmt, LowerError> {
        match stmt {
            Stmt::Seq(stmts) => {
                let parts: Vec<Stmt> =
                    stmts.into_iter().map(|s| self.straight(s)).collect::<Result<_, _>>()?;
                Ok(Stmt::seq(parts))
            }
            Stmt::ScopeIds { id, vars, extents } => {
                self.ids.push(Declared { id, vars, extents });
                Ok(Stmt::NOP)
            }
            Stmt::AllocBuffer(buffer) if buffer.scope == MemScope::Global => {
                self.globals.push(buffer);
                Ok(Stmt::NOP)
            }
            Stmt::Let { var, value, body } => Ok(Stmt::let_(var, value, self.straight(*body)?)),
            Stmt::Allocate { buffer, body } => Ok(Stmt::allocate(buffer, self.straight(*body)?)),
            Stmt::Annotate { node, key, value, body } => {
                Ok(Stmt::Annotate { node, key, value, body: Box::new(self.straight(*body)?) })
            }
            Stmt::DeviceEntry => {
                Err(wrong("`T.device_entry()` stands twice; a function has one device region"))
            }
            other => {
                let mut inside = None;
                coulis_ir::visit::for_each_stmt(&other, &mut |s| match s {
                    Stmt::ScopeIds { id, .. } => inside = Some(format!("T.{}", id.name())),
                    Stmt::DeviceEntry => inside = Some("T.device_entry".to_owned()),
                    _ => {}
                });
                match inside {
                    Some(name) => Err(wrong(format!(
                        "`{name}` stands under a loop or condition; it stands where every thread passes once"
                    ))),
                    None => Ok(other),
                }
            }
        }
    }
}

/// Where an extent comes from, for errors.
type Source = String;

/// The launches of a device region.
struct Hierarchy {
    grid: Vec<(ThreadTag, Var, Expr)>,
    /// Places in a cluster; empty where there are none.
    cluster: Vec<(ThreadTag, Var, Expr)>,
    block: Vec<(ThreadTag, Var, Expr)>,
    /// Threads of a block, where their number is a constant.
    n_threads: Option<u32>,
}

impl Hierarchy {
    fn of(ids: &[Declared], warp: u32) -> Result<Hierarchy, LowerError> {
        let cluster_extents = cluster_of(ids)?;
        let Some(grid_extents) = grid_of(ids, cluster_extents.as_deref())? else {
            return Err(wrong("the number of blocks follows from nothing; declare it by `T.cta_id([...])`"));
        };
        let thread_extents = dims_of(ids, ScopeId::Thread)?;
        let n_threads = closed(ids, thread_extents.as_deref(), warp)?;
        let block_extents = match (thread_extents, n_threads) {
            (Some(extents), _) => extents,
            (None, Some(n)) => vec![int(n)],
            (None, None) => {
                let legal = "declare a thread extent, as `T.thread_id([128])`, or warps, as `T.warp_id([4])`";
                return Err(wrong(format!("the number of threads of a block follows from nothing; {legal}")));
            }
        };
        let launch = |tags: [(ThreadTag, &str); 3], id: ScopeId, extents: Vec<Expr>| {
            let named = ids.iter().find(|d| d.id == id && d.vars.len() == extents.len());
            let index = |(at, ((tag, name), extent)): (usize, ((ThreadTag, &str), Expr))| {
                let name = named.map_or(name, |d| d.vars[at].name());
                (tag, Var::size(name, extent.dtype()), extent)
            };
            tags.into_iter().zip(extents).enumerate().map(index).collect::<Vec<_>>()
        };
        Ok(Hierarchy {
            grid: launch(GRID, ScopeId::Cta, grid_extents),
            cluster: launch(CLUSTER, ScopeId::CtaInCluster, cluster_extents.unwrap_or_default()),
            block: launch(BLOCK, ScopeId::Thread, block_extents),
            n_threads,
        })
    }

    /// The value of each declared variable.
    fn values(&self, ids: &[Declared], warp: u32) -> Result<FastMap<Var, Expr>, LowerError> {
        let mut values = FastMap::default();
        for declared in ids {
            for (var, value) in declared.vars.iter().zip(self.value(declared, warp)?) {
                values.insert(var.clone(), value.cast(var.dtype()));
            }
        }
        Ok(values)
    }

    /// The number of the cluster along each axis.
    fn clusters(&self, declared: &Declared) -> Result<Vec<Expr>, LowerError> {
        if declared.vars.len() > self.grid.len() {
            let (found, wanted) = (declared.vars.len(), self.grid.len());
            return Err(wrong(format!("`T.cluster_id` has {wanted} extents and gives {found} names")));
        }
        let number = |(axis, (_, block, _)): (usize, &(ThreadTag, Var, Expr))| {
            let size = self.cluster.get(axis).map_or_else(|| Expr::int(1), |(_, _, n)| n.clone());
            block.expr().floordiv(size.cast(block.dtype()))
        };
        Ok(self.grid.iter().enumerate().map(number).collect())
    }

    fn value(&self, declared: &Declared, warp: u32) -> Result<Vec<Expr>, LowerError> {
        let vars =
            |of: &[(ThreadTag, Var, Expr)]| of.iter().map(|(_, var, _)| var.expr()).collect::<Vec<_>>();
        let dims = match declared.id {
            ScopeId::Cta => Some(&self.grid),
            ScopeId::CtaInCluster => Some(&self.cluster),
            ScopeId::Cluster => return self.clusters(declared),
            ScopeId::Thread => Some(&self.block),
            ScopeId::Warp
            | ScopeId::Warpgroup
            | ScopeId::WarpInWarpgroup
            | ScopeId::Lane
            | ScopeId::ThreadInWarpgroup => None,
        };
        if let Some(dims) = dims
            && declared.vars.len() <= dims.len()
            && (declared.vars.len() == dims.len() || declared.id != ScopeId::Thread)
        {
            return Ok(vars(dims));
        }
        if declared.vars.len() > 1 {
            let (name, found) = (declared.id.name(), declared.vars.len());
            let wanted = dims.map_or(1, |dims| dims.len());
            return Err(wrong(format!("`T.{name}` has {wanted} extents and gives {found} names")));
        }
        let Some(n_threads) = self.n_threads else {
            return Err(wrong(format!("`T.{}` needs a constant number of threads", declared.id.name())));
        };
        let index = |(tag, var, extent): &(ThreadTag, Var, Expr)| {
            let extent = extent.as_int().and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
            ThreadIndex { tag: *tag, var: var.clone(), extent }
        };
        let block = Block::new(self.block.iter().map(index).collect());
        let digit = |extent: u32, stride: u32| block.digit(extent.max(1), stride.min(n_threads.max(1)));
        let n_of = |unit: u32| n_threads.div_ceil(unit);
        Ok(vec![match declared.id {
            ScopeId::Cta | ScopeId::CtaInCluster | ScopeId::Cluster | ScopeId::Thread => block.linear(),
            ScopeId::Lane => digit(warp.min(n_threads), 1),
            ScopeId::Warp => digit(n_of(warp), warp),
            ScopeId::Warpgroup => digit(n_of(4 * warp), 4 * warp),
            ScopeId::WarpInWarpgroup => digit(n_of(warp).min(4), warp),
            ScopeId::ThreadInWarpgroup => digit((4 * warp).min(n_threads), 1),
        }])
    }
}

/// The extents of a cluster, where there are clusters.
fn cluster_of(ids: &[Declared]) -> Result<Option<Vec<Expr>>, LowerError> {
    let Some(extents) = dims_of(ids, ScopeId::CtaInCluster)? else {
        return match ids.iter().find(|d| matches!(d.id, ScopeId::CtaInCluster | ScopeId::Cluster)) {
            Some(declared) => {
                let (name, legal) = (declared.id.name(), "declare it by `T.cta_id_in_cluster([...])`");
                Err(wrong(format!("the size of the clusters of `T.{name}` follows from nothing; {legal}")))
            }
            None => Ok(None),
        };
    };
    extents.iter().try_for_each(|extent| constant(ScopeId::CtaInCluster, extent).map(|_| ()))?;
    Ok(Some(extents))
}

/// The extents of the grid: as declared, or clusters times their blocks; both where both are.
fn grid_of(ids: &[Declared], cluster: Option<&[Expr]>) -> Result<Option<Vec<Expr>>, LowerError> {
    let declared = dims_of(ids, ScopeId::Cta)?;
    let Some(cluster) = cluster else { return Ok(declared) };
    let clusters = dims_of(ids, ScopeId::Cluster)?;
    let rank = [declared.as_ref(), clusters.as_ref()].into_iter().flatten().map(Vec::len).max().unwrap_or(0);
    let rank = rank.max(cluster.len());
    let at = |extents: &[Expr], axis: usize| extents.get(axis).cloned().unwrap_or_else(|| Expr::int(1));
    let product = |clusters: &[Expr], axis: usize| {
        let (n, size) = Expr::promoted(at(clusters, axis), at(cluster, axis));
        Analyzer::new().simplify(&(n * size))
    };
    let grid: Vec<Expr> = match (declared, clusters) {
        (None, None) => return Ok(None),
        (None, Some(clusters)) => (0..rank).map(|axis| product(&clusters, axis)).collect(),
        (Some(grid), clusters) => {
            for (axis, clusters) in clusters.iter().flat_map(|c| (0..rank).map(move |axis| (axis, c))) {
                let (found, by) = (at(&grid, axis), product(clusters, axis));
                let (a, b) = Expr::promoted(found.clone(), by.clone());
                if a != b && !Analyzer::new().can_prove(&a.equal(b)) {
                    return Err(wrong(format!(
                        "inconsistent extents: a grid has {} blocks along {} by `T.cta_id`, and {} by `T.cluster_id` and `T.cta_id_in_cluster`",
                        print_expr(&found),
                        AXES[axis.min(2)],
                        print_expr(&by)
                    )));
                }
            }
            (0..rank).map(|axis| at(&grid, axis)).collect()
        }
    };
    for (axis, (blocks, size)) in grid.iter().zip(cluster).enumerate() {
        if let (Some(blocks), Some(size)) = (blocks.as_int(), size.as_int())
            && blocks % size != 0
        {
            return Err(wrong(format!(
                "non-divisible extents: {blocks} blocks along {} are not whole clusters of {size}",
                AXES[axis]
            )));
        }
    }
    Ok(Some(grid))
}

/// Names of the axes of a grid.
const AXES: [&str; 3] = ["x", "y", "z"];

fn int(value: u32) -> Expr {
    Expr::int_of(i128::from(value), DType::I32)
}

/// The extents of ids that have up to three, from the declarations that give them.
fn dims_of(ids: &[Declared], id: ScopeId) -> Result<Option<Vec<Expr>>, LowerError> {
    let mut found: Option<&Declared> = None;
    for declared in ids.iter().filter(|d| d.id == id && !d.extents.is_empty()) {
        let name = id.name();
        if declared.extents.len() > 3 {
            let n = declared.extents.len();
            return Err(wrong(format!("`T.{name}` takes at most 3 extents, got {n}")));
        }
        match found {
            Some(first) if first.extents != declared.extents => {
                return Err(wrong(format!(
                    "inconsistent extents: `T.{name}` is declared twice, with different extents"
                )));
            }
            _ => found = Some(declared),
        }
    }
    Ok(found.map(|declared| declared.extents.clone()))
}

/// The threads of a block, after all extents are compared.
fn closed(ids: &[Declared], threads: Option<&[Expr]>, warp: u32) -> Result<Option<u32>, LowerError> {
    let one = |id: ScopeId| -> Result<Option<u32>, LowerError> {
        let Some(extents) = dims_of(ids, id)? else { return Ok(None) };
        match extents.as_slice() {
            [only] => constant(id, only).map(Some),
            more => Err(wrong(format!("`T.{}` takes 1 extent, got {}", id.name(), more.len()))),
        }
    };
    let n_warps = one(ScopeId::Warp)?;
    let n_warpgroups = one(ScopeId::Warpgroup)?;
    let warps_in_wg = one(ScopeId::WarpInWarpgroup)?;
    let threads_in_wg = one(ScopeId::ThreadInWarpgroup)?;
    let lanes = one(ScopeId::Lane)?;
    let declared = match threads {
        Some(extents) => {
            // Blocks of an unknown size have indices, and no warps that the program could name.
            let constants: Option<u32> =
                extents.iter().try_fold(1u32, |n, e| n.checked_mul(u32::try_from(e.as_int()?).ok()?));
            match constants {
                Some(n) if n >= 1 => Some((n, "`T.thread_id`".to_owned())),
                Some(_) => return Err(wrong("`T.thread_id` declares a block of no threads")),
                None => return Ok(None),
            }
        }
        None => None,
    };
    let times = |a: u32, b: u32| a.checked_mul(b).ok_or_else(|| wrong("a block of more than 2^32 threads"));
    let mut counts: Vec<(u32, Source)> = declared.into_iter().collect();
    if let Some(n) = n_warps {
        counts.push((times(n, warp)?, format!("`T.warp_id([{n}])` of {warp} lanes")));
    }
    if let Some(n) = n_warpgroups {
        match (warps_in_wg, threads_in_wg) {
            (Some(k), _) => {
                let text = format!("`T.warpgroup_id([{n}])` with `T.warp_id_in_wg([{k}])` of {warp} lanes");
                counts.push((times(times(n, k)?, warp)?, text));
            }
            (None, Some(k)) => {
                let text = format!("`T.warpgroup_id([{n}])` with `T.thread_id_in_wg([{k}])`");
                counts.push((times(n, k)?, text));
            }
            // A lone warpgroup may have less than four warps, as something else may say.
            (None, None) if n == 1 && !counts.is_empty() => {}
            (None, None) => {
                counts.push((
                    times(n, 4 * warp)?,
                    format!("`T.warpgroup_id([{n}])` of 4 warps of {warp} lanes"),
                ));
            }
        }
    }
    let Some((n_threads, source)) = counts.first().cloned() else { return Ok(None) };
    if let Some((other, by)) = counts.iter().find(|(n, _)| *n != n_threads) {
        let small = n_warps == Some(1) && n_threads < warp && counts.len() == 2;
        if !small {
            return Err(wrong(format!(
                "inconsistent extents: a block has {n_threads} threads by {source}, and {other} by {by}"
            )));
        }
    }
    let check = |name: &str, found: Option<u32>, wanted: u32| match found {
        Some(found) if found != wanted => Err(wrong(format!(
            "inconsistent extents: `T.{name}` declares {found}, and there are {wanted} in a block of {n_threads} \
             threads with warps of {warp} lanes"
        ))),
        _ => Ok(()),
    };
    let is_cut = |unit: u32| n_threads > unit && !n_threads.is_multiple_of(unit);
    if is_cut(warp) && (n_warps.is_some() || lanes.is_some()) {
        return Err(wrong(format!(
            "non-divisible extents: {n_threads} threads are not whole warps of {warp} lanes"
        )));
    }
    if is_cut(4 * warp) && (n_warpgroups.is_some() || warps_in_wg.is_some() || threads_in_wg.is_some()) {
        return Err(wrong(format!(
            "non-divisible extents: {n_threads} threads are not whole warpgroups of {} threads",
            4 * warp
        )));
    }
    check("lane_id", lanes.filter(|n| *n != warp || n_threads > warp), warp.min(n_threads))?;
    check("warp_id", n_warps, n_threads.div_ceil(warp))?;
    check("warpgroup_id", n_warpgroups, n_threads.div_ceil(4 * warp))?;
    check("warp_id_in_wg", warps_in_wg, n_threads.div_ceil(warp).min(4))?;
    check("thread_id_in_wg", threads_in_wg, n_threads.min(4 * warp))?;
    Ok(Some(n_threads))
}

fn constant(id: ScopeId, extent: &Expr) -> Result<u32, LowerError> {
    match extent.as_int().and_then(|n| u32::try_from(n).ok()).filter(|n| *n >= 1) {
        Some(n) => Ok(n),
        None => {
            let found = print_expr(extent);
            Err(wrong(format!("`T.{}` takes a constant extent of at least 1, got `{found}`", id.name())))
        }
    }
}
