//! Tile calls become the statements of the variants that do them, and distributed tiles the registers of one thread.
//!
//! A call is handed to the dispatcher with the block of threads around it and the threads among them that reach it, and
//! what it declares stands in place: before the stores that fill its sources, as in listing 6 of seed 003. Accesses
//! then go to the memory behind their buffers (`tile_memory.rs`), and of barriers that stand side by side one is kept.
//! Order: after `resolve_scope_ids`, before all others, which read no tile calls. Kernels in Nest form pass by.

use coulis_ir::expr::{Expr, Var};
use coulis_ir::remark::{IN_PLACE, SYNCHRONIZED};
use coulis_ir::stmt::TileOp;
use coulis_ir::visit::{for_each_stmt, rewrite_stmt};
use coulis_ir::{
    Attr, Buffer, ExecScope, Form, Kernel, MemScope, Stmt, SyncKind, Target, ThreadTag, TileCall,
};
use coulis_tile::{
    Block, Call, Cluster, CopyFacts, CopyOp, Emitted, Facts, NamedBarriers, Operand, ReduceOp, Row,
    ThreadIndex, TileError,
};

use crate::active_threads::Around;
use crate::pass::{LowerError, Options, Pass};
use crate::tile_memory::{TileMemory, unsupported};
use crate::walk::try_map_children;

/// The pass.
pub const PASS: Pass = Pass {
    name: "dispatch_tiles",
    from: Form::Tiled,
    to: Form::Nest,
    run: dispatch_tiles,
    doc: "replaces tile calls by the statements of the variants that do them",
};

/// Replaces tile calls by statements.
pub fn dispatch_tiles(kernel: Kernel, options: &Options) -> Result<Kernel, LowerError> {
    let mut dispatch = Dispatch::new(options.target, &kernel.body);
    let params = dispatch.memory.parameters(&kernel)?;
    let body = dispatch.stmt(kernel.body)?;
    let body = without_repeated_barriers(dispatch.memory.redirect(body)?);
    Ok(Kernel { params, body, ..kernel })
}

/// What becomes of every variant for each tile call of a Tiled kernel, in order of the text.
///
/// # Errors
/// Where a call is wrong whatever the variant. That no variant accepts is an answer, not an error.
pub fn explain_tiles(kernel: &Kernel, target: &Target) -> Result<Vec<(TileCall, Vec<Row>)>, LowerError> {
    let options = Options { target, simple_mode: false };
    let kernel = crate::resolve_scope_ids::resolve_scope_ids(kernel.clone(), &options)?;
    let mut dispatch = Dispatch::new(target, &kernel.body);
    dispatch.only_explain = true;
    dispatch.memory.parameters(&kernel)?;
    dispatch.stmt(kernel.body)?;
    Ok(dispatch.explained)
}

struct Dispatch<'a> {
    target: &'a Target,
    /// Launches around the statement.
    launches: Vec<(ThreadTag, Var, Expr)>,
    /// Every launch of threads in the outermost launch around the statement.
    region: Vec<(ThreadTag, Expr)>,
    memory: TileMemory,
    /// Conditions, loops and names around the statement.
    around: Around,
    /// Named barriers that calls may take.
    barriers: NamedBarriers,
    /// Whether the program orders its accesses to shared memory itself.
    is_ordered: bool,
    only_explain: bool,
    explained: Vec<(TileCall, Vec<Row>)>,
}

impl<'a> Dispatch<'a> {
    fn new(target: &'a Target, body: &Stmt) -> Dispatch<'a> {
        Dispatch {
            target,
            launches: Vec::new(),
            region: Vec::new(),
            memory: TileMemory::default(),
            around: Around::default(),
            barriers: NamedBarriers::beside(named_barriers(body)),
            is_ordered: false,
            only_explain: false,
            explained: Vec::new(),
        }
    }

    fn stmt(&mut self, stmt: Stmt) -> Result<Stmt, LowerError> {
        match stmt {
            Stmt::Seq(stmts) => self.seq(stmts),
            single @ (Stmt::Tile(_) | Stmt::AllocBuffer(_) | Stmt::View { .. }) => self.seq(vec![single]),
            Stmt::LaunchThread { tag, var, extent, body } => {
                let outermost = self.region.is_empty();
                if outermost {
                    self.region = launches_of(tag, &extent, &body);
                }
                self.launches.push((tag, var.clone(), extent.clone()));
                let body = self.stmt(*body);
                self.launches.pop();
                if outermost {
                    self.region.clear();
                }
                Ok(Stmt::LaunchThread { tag, var, extent, body: Box::new(body?) })
            }
            Stmt::If { cond, then, otherwise } => {
                self.around.under(&cond, true);
                let then = self.stmt(*then);
                self.around.leave();
                self.around.under(&cond, false);
                let otherwise = otherwise.map(|s| self.stmt(*s)).transpose();
                self.around.leave();
                Ok(Stmt::If { cond, then: Box::new(then?), otherwise: otherwise?.map(Box::new) })
            }
            Stmt::For { var, min, extent, kind, body } => {
                self.around.looped(&extent);
                let body = self.stmt(*body);
                self.around.leave();
                Ok(Stmt::for_(var, min, extent, kind, body?))
            }
            Stmt::Let { var, value, body } => {
                self.around.name(&var, &value);
                Ok(Stmt::let_(var, value, self.stmt(*body)?))
            }
            Stmt::Annotate { node, key, value, body } => {
                let outer = self.is_ordered;
                self.is_ordered |= key == SYNCHRONIZED;
                let body = self.stmt(*body);
                self.is_ordered = outer;
                Ok(Stmt::Annotate { node, key, value, body: Box::new(body?) })
            }
            other => try_map_children(other, &mut |s| self.stmt(s)),
        }
    }

    fn seq(&mut self, stmts: Vec<Stmt>) -> Result<Stmt, LowerError> {
        let mut done: Vec<Stmt> = Vec::new();
        let mut rest = stmts.into_iter();
        while let Some(stmt) = rest.next() {
            match stmt {
                Stmt::AllocBuffer(buffer) => {
                    let own = self.memory.allocated(&buffer)?;
                    let body = self.seq(rest.collect())?;
                    done.push(Stmt::allocate(own, body));
                    break;
                }
                Stmt::View { buffer, source, local } => self.memory.window(&buffer, &source, local)?,
                Stmt::Tile(call) => {
                    let Some(emitted) = self.call(&call)? else { continue };
                    let mut inside = self.fillers(&call, &mut done);
                    let Emitted { registers, shared, body } = emitted;
                    let body =
                        if shared.is_empty() || self.is_ordered { body } else { remark(SYNCHRONIZED, body) };
                    inside.push(body);
                    inside.push(self.seq(rest.collect())?);
                    let body = Stmt::seq(inside);
                    let body = registers
                        .into_iter()
                        .rev()
                        .fold(body, |body, register| remark(IN_PLACE, Stmt::allocate(register, body)));
                    done.push(shared.into_iter().rev().fold(body, |body, b| Stmt::allocate(b, body)));
                    break;
                }
                other => done.push(self.stmt(other)?),
            }
        }
        Ok(Stmt::seq(done))
    }

    /// The statements of a call; `None` where calls are only explained. An error shows the call.
    fn call(&mut self, call: &TileCall) -> Result<Option<Emitted>, LowerError> {
        self.dispatched(call).map_err(|error| match error {
            LowerError::Tile { error, .. } => LowerError::Call {
                site: call.site,
                error,
                call: call_text(call).into(),
                arch: self.target.arch.as_str().into(),
            },
            other => other,
        })
    }

    fn dispatched(&mut self, call: &TileCall) -> Result<Option<Emitted>, LowerError> {
        let block = self.block(call)?;
        let active = self.around.active(&block, &self.launches, self.target.warp);
        let registers = |b: &Buffer| self.memory.registers(b);
        let mut seen = Call::of(call, self.target, &block, &active, &self.barriers, &registers)?;
        seen.cluster = self.cluster()?;
        seen.repeated_along = self.repeated_along(call);
        for operand in seen.dsts.iter_mut().chain(&mut seen.srcs) {
            let mut mins = operand.region.ranges.iter().map(|(min, _)| min);
            operand.differs_in_cluster = mins.any(|min| self.around.differs_in_cluster(min, &self.launches));
        }
        check_regions(call)?;
        let rows = match &call.op {
            TileOp::Copy => {
                let facts = CopyFacts { call: seen };
                if !self.only_explain {
                    let emitted = coulis_tile::dispatch::<CopyOp>(call, &facts)?.1;
                    self.check_alike(call, &facts.call)?;
                    return Ok(Some(emitted));
                }
                coulis_tile::explain_call::<CopyOp>(call, &facts)?
            }
            TileOp::Reduce { .. } | TileOp::ReduceBy { .. } => {
                let facts = Facts::of(call, seen)?;
                if !self.only_explain {
                    let mut emitted = coulis_tile::dispatch::<ReduceOp>(call, &facts)?.1;
                    self.check_alike(call, &facts.call)?;
                    // The next iteration writes memory that threads of this one may still read. Other blocks do not: a
                    // barrier of the cluster ends what reads theirs.
                    if self.is_ordered && !emitted.shared.is_empty() && self.around.is_in_loop() {
                        let wait = facts.block_sync().map_err(unsupported)?;
                        emitted.body = Stmt::seq([wait, emitted.body]);
                    }
                    return Ok(Some(emitted));
                }
                coulis_tile::explain_call::<ReduceOp>(call, &facts)?
            }
        };
        self.explained.push((call.clone(), rows));
        Ok(None)
    }

    /// Refuses parts of memory that begin elsewhere for some of the threads that do the call together.
    fn check_alike(&self, call: &TileCall, seen: &Call) -> Result<(), LowerError> {
        let n_together = seen.scope_threads();
        let in_memory = |operand: &&Operand| !operand.is_spread && operand.scope() != MemScope::Local;
        for operand in seen.dsts.iter().chain(&seen.srcs).filter(in_memory) {
            for (dim, (min, _)) in operand.region.ranges.iter().enumerate() {
                let values = self.around.values(min, seen.block, &self.launches).unwrap_or_default();
                let come = (0u32..).zip(&values).filter(|(thread, _)| seen.active.may_come(*thread));
                let come: Vec<_> = come.map(|(thread, value)| (thread / n_together, value)).collect();
                if come.windows(2).any(|pair| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1) {
                    let (buffer, scope) = (operand.region.buffer.name.clone(), call.scope.name());
                    let min = coulis_ir::print::print_expr(min);
                    return Err(LowerError::from(TileError::Differs { buffer, dim, min, scope }));
                }
            }
        }
        Ok(())
    }

    /// The index of blocks that all do the call with the same destinations, where there is one.
    fn repeated_along(&self, call: &TileCall) -> Option<ThreadTag> {
        let mins: Vec<&Expr> = call.dsts.iter().flat_map(|dst| &dst.ranges).map(|(min, _)| min).collect();
        let repeats = |(tag, var, extent): &&(ThreadTag, Var, Expr)| {
            let is_block = matches!(tag, ThreadTag::BlockX | ThreadTag::BlockY | ThreadTag::BlockZ);
            // The blocks of one cluster do a call of a cluster together.
            let of_one_cluster = |(other, _, n): &(ThreadTag, Var, Expr)| {
                call.scope == ExecScope::Cluster && other.grid_tag() == Some(*tag) && n == extent
            };
            is_block
                && !extent.is_int(1)
                && !self.launches.iter().any(of_one_cluster)
                && self.around.is_unseen(var, &mins)
        };
        self.launches.iter().find(repeats).map(|(tag, ..)| *tag)
    }

    /// The blocks of the cluster around a call, where the grid has clusters.
    fn cluster(&self) -> Result<Option<Cluster>, LowerError> {
        let indices = self.indices(ThreadTag::is_of_cluster)?;
        if indices.is_empty() {
            return Ok(None);
        }
        let absent = self.around.splits_cluster(&self.launches);
        Ok(Some(Cluster { blocks: Block::new(indices), absent }))
    }

    /// The threads of the block around a call.
    fn block(&self, call: &TileCall) -> Result<Block, LowerError> {
        let is_shared = match call.scope {
            ExecScope::Thread => false,
            ExecScope::Warp | ExecScope::Warpgroup | ExecScope::Cta | ExecScope::Cluster => true,
        };
        for (tag, extent) in &self.region {
            let around = self.launches.iter().any(|(own, ..)| own == tag);
            if is_shared && !around && !extent.is_int(1) {
                return Err(LowerError::CallOutsideLaunch { scope: call.scope.name(), tag: tag.name() });
            }
        }
        Ok(Block::new(self.indices(ThreadTag::is_thread)?))
    }

    /// The launched indices of some kind, which have constant extents.
    fn indices(&self, is_wanted: fn(ThreadTag) -> bool) -> Result<Vec<ThreadIndex>, LowerError> {
        let mut indices = Vec::new();
        for (tag, var, extent) in self.launches.iter().filter(|(tag, ..)| is_wanted(*tag)) {
            let constant = extent.as_int().and_then(|n| u32::try_from(n).ok()).filter(|n| *n >= 1);
            let Some(extent) = constant else {
                let extent = coulis_ir::print::print_expr(extent);
                return Err(LowerError::ThreadExtent { tag: tag.name(), extent });
            };
            if !indices.iter().any(|index: &ThreadIndex| index.tag == *tag) {
                indices.push(ThreadIndex { tag: *tag, var: var.clone(), extent });
            }
        }
        Ok(indices)
    }

    /// Takes the stores that fill the sources' registers from the end of `done`.
    fn fillers(&self, call: &TileCall, done: &mut Vec<Stmt>) -> Vec<Stmt> {
        let fills = |stmt: &Stmt| match stmt {
            Stmt::Store { buffer, .. } => call.srcs.iter().any(|src| src.buffer.data == buffer.data),
            _ => false,
        };
        let keep = done.iter().rposition(|stmt| !fills(stmt)).map_or(0, |at| at + 1);
        done.split_off(keep)
    }
}

/// The call as text, with its reducer by name.
fn call_text(call: &TileCall) -> String {
    let mut call = call.clone();
    if let TileOp::ReduceBy { reducer, axes, accum } = &call.op {
        let (name, axes, accum) = (reducer.name.clone(), axes.clone(), *accum);
        call.op = TileOp::Reduce { name, axes, accum };
    }
    coulis_ir::print::print_stmt(&Stmt::Tile(Box::new(call))).trim().to_owned()
}

/// Refuses regions that lie outside their buffers, where both are constants.
fn check_regions(call: &TileCall) -> Result<(), LowerError> {
    for region in call.dsts.iter().chain(&call.srcs) {
        for (dim, ((min, extent), whole)) in region.ranges.iter().zip(&region.buffer.shape).enumerate() {
            let (Some(min), Some(extent), Some(whole)) = (min.as_int(), extent.as_int(), whole.as_int())
            else {
                continue;
            };
            if min < 0 || extent < 0 || min + extent > whole {
                let buffer = region.buffer.name.clone();
                return Err(LowerError::from(TileError::Region {
                    buffer,
                    dim,
                    min,
                    end: min + extent,
                    whole,
                }));
            }
        }
    }
    Ok(())
}

/// The named barriers that a program uses itself.
fn named_barriers(body: &Stmt) -> Vec<u32> {
    let mut used = Vec::new();
    for_each_stmt(body, &mut |stmt| {
        if let Stmt::Sync(SyncKind::Warpgroup(id) | SyncKind::Named { id, .. }) = stmt {
            used.push(*id);
        }
    });
    used
}

/// The statement without barriers that follow another one at least as wide at once.
fn without_repeated_barriers(body: Stmt) -> Stmt {
    rewrite_stmt(body, &mut |_| None, &mut |stmt| match stmt {
        Stmt::Seq(stmts) => {
            let mut kept: Vec<Stmt> = Vec::with_capacity(stmts.len());
            for stmt in stmts {
                match (kept.last_mut(), &stmt) {
                    (Some(Stmt::Sync(a)), Stmt::Sync(b)) if a == b || *a == SyncKind::Cluster => {}
                    (Some(Stmt::Sync(a)), Stmt::Sync(SyncKind::Cluster)) => *a = SyncKind::Cluster,
                    (Some(Stmt::Sync(SyncKind::Cta)), Stmt::Sync(_)) => {}
                    (Some(Stmt::Sync(a)), Stmt::Sync(SyncKind::Cta)) => *a = SyncKind::Cta,
                    _ => kept.push(stmt),
                }
            }
            Stmt::seq(kept)
        }
        other => other,
    })
}

fn remark(key: &str, body: Stmt) -> Stmt {
    Stmt::Annotate { node: None, key: key.to_owned(), value: Attr::Bool(true), body: Box::new(body) }
}

/// The launches of threads in a region, its outermost launch included.
fn launches_of(tag: ThreadTag, extent: &Expr, body: &Stmt) -> Vec<(ThreadTag, Expr)> {
    let mut found = vec![(tag, extent.clone())];
    for_each_stmt(body, &mut |stmt| {
        if let Stmt::LaunchThread { tag, extent, .. } = stmt {
            found.push((*tag, extent.clone()));
        }
    });
    found.retain(|(tag, _)| tag.is_thread());
    found
}
