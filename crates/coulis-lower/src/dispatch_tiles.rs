//! Tile calls become the statements of the variants that do them, and distributed tiles the registers of one thread.
//!
//! A tile whose layout spreads it over threads becomes a local buffer of what one thread holds; its `.local` windows
//! are that buffer, and its other windows exist for the calls alone. A call is handed to the dispatcher with the
//! block of threads around it, and what it declares stands in place: before the stores that fill its sources, as in
//! listing 6 of seed 003. The kernel is launched by `launch_thread`; scope ids are not read yet. Order: first of all,
//! since no other pass reads tile calls. Kernels in Nest form pass by.

use std::collections::HashMap;

use coulis_ir::buffer::BufferId;
use coulis_ir::expr::{Expr, Node, Var};
use coulis_ir::stmt::TileOp;
use coulis_ir::visit::{for_each_expr, for_each_stmt, map_children, rewrite_stmt};
use coulis_ir::{Attr, Buffer, ExecScope, Form, Kernel, MemScope, Stmt, Target, ThreadTag, TileCall};
use coulis_tile::{
    ActiveSet, Block, Call, CopyFacts, CopyOp, Emitted, Facts, NamedBarriers, ReduceOp, Row, ThreadIndex,
    TileError, is_row_major,
};

use crate::pass::{Context, LowerError, Pass};
use crate::walk::try_map_children;

/// The pass.
pub const PASS: Pass = Pass {
    name: "dispatch_tiles",
    from: Form::Tiled,
    to: Form::Nest,
    run: dispatch_tiles,
    doc: "replaces tile calls by the statements of the variants that do them",
};

/// Key of the remark on an allocation that stays where it stands.
pub const IN_PLACE: &str = "in_place";

/// Key of the remark on statements whose accesses to shared memory are ordered among themselves.
pub const SYNCHRONIZED: &str = "synchronized";

/// Replaces tile calls by statements.
pub fn dispatch_tiles(kernel: Kernel, context: &Context) -> Result<Kernel, LowerError> {
    let mut dispatch = Dispatch::new(context.target);
    let body = dispatch.stmt(kernel.body)?;
    let body = dispatch.redirect(body)?;
    Ok(Kernel { body, ..kernel })
}

/// What becomes of every variant for each tile call of a Tiled kernel, in order of the text.
///
/// # Errors
/// Where a call is wrong whatever the variant. That no variant accepts is an answer, not an error.
pub fn explain_tiles(kernel: &Kernel, target: &Target) -> Result<Vec<(TileCall, Vec<Row>)>, LowerError> {
    let mut dispatch = Dispatch::new(target);
    dispatch.only_explain = true;
    dispatch.stmt(kernel.body.clone())?;
    Ok(dispatch.explained)
}

struct Dispatch<'a> {
    target: &'a Target,
    /// Launches of threads around the statement.
    launches: Vec<(ThreadTag, Var, Expr)>,
    /// Every launch of threads in the outermost launch around the statement.
    region: Vec<(ThreadTag, Expr)>,
    /// What one thread holds of a distributed tile, by data pointer.
    registers: HashMap<Var, Buffer>,
    /// Windows that are another buffer from now on.
    windows: HashMap<BufferId, Buffer>,
    /// Conditions and loops around the statement that not all threads may share.
    divergent: Vec<Expr>,
    /// Named barriers that calls may take.
    barriers: NamedBarriers,
    only_explain: bool,
    explained: Vec<(TileCall, Vec<Row>)>,
}

impl<'a> Dispatch<'a> {
    fn new(target: &'a Target) -> Dispatch<'a> {
        Dispatch {
            target,
            launches: Vec::new(),
            region: Vec::new(),
            registers: HashMap::new(),
            windows: HashMap::new(),
            divergent: Vec::new(),
            barriers: NamedBarriers::default(),
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
                self.divergent.push(cond.clone());
                let then = self.stmt(*then);
                let otherwise = otherwise.map(|s| self.stmt(*s)).transpose();
                self.divergent.pop();
                Ok(Stmt::If { cond, then: Box::new(then?), otherwise: otherwise?.map(Box::new) })
            }
            Stmt::For { var, min, extent, kind, body } => {
                self.divergent.push(extent.clone());
                let body = self.stmt(*body);
                self.divergent.pop();
                Ok(Stmt::for_(var, min, extent, kind, body?))
            }
            Stmt::DeviceEntry | Stmt::ScopeIds { .. } => Err(unsupported(
                "lowering of kernels with scope ids; launch their threads with `T.launch_thread`",
            )),
            other => try_map_children(other, &mut |s| self.stmt(s)),
        }
    }

    fn seq(&mut self, stmts: Vec<Stmt>) -> Result<Stmt, LowerError> {
        let mut done: Vec<Stmt> = Vec::new();
        let mut rest = stmts.into_iter();
        while let Some(stmt) = rest.next() {
            match stmt {
                Stmt::AllocBuffer(buffer) => {
                    let own = self.own_memory(&buffer)?;
                    let body = self.seq(rest.collect())?;
                    done.push(Stmt::allocate(own, body));
                    break;
                }
                Stmt::View { buffer, source, local } => self.window(&buffer, &source, local)?,
                Stmt::Tile(call) => {
                    let Some(emitted) = self.call(&call)? else { continue };
                    let mut inside = self.fillers(&call, &mut done);
                    let Emitted { registers, shared, body } = emitted;
                    let body = if shared.is_empty() { body } else { remark(SYNCHRONIZED, body) };
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

    /// The memory of one thread for a tile of the program.
    fn own_memory(&mut self, buffer: &Buffer) -> Result<Buffer, LowerError> {
        let Some(layout) = &buffer.layout else { return Ok(buffer.clone()) };
        if !layout.is_distributed() {
            if is_row_major(buffer) {
                let plain = buffer.derive(|b| b.layout = None);
                self.windows.insert(buffer.id, plain.clone());
                return Ok(plain);
            }
            return Err(unsupported(&format!("lowering of `{}` with the layout `{layout}`", buffer.name)));
        }
        if buffer.scope != MemScope::Local {
            let scope = buffer.scope.name();
            return Err(unsupported(&format!("a distributed tile, `{}`, in {scope} memory", buffer.name)));
        }
        let span = Expr::int_of(i128::from(layout.memory_span()), coulis_ir::DType::I32);
        let own = buffer.derive(|b| {
            b.layout = None;
            b.shape = vec![span.clone()];
        });
        self.registers.insert(buffer.data.clone(), own.clone());
        Ok(own)
    }

    fn window(&mut self, buffer: &Buffer, source: &Buffer, local: bool) -> Result<(), LowerError> {
        match self.registers.get(&source.data) {
            Some(own) if local => {
                let fits = buffer.rank() == 1 && buffer.shape == own.shape && buffer.dtype == own.dtype;
                if !fits || (buffer.layout.is_some() && !is_row_major(buffer)) {
                    let what = format!(
                        "a window `{}` other than all {:?} elements of a thread",
                        buffer.name, own.shape[0]
                    );
                    return Err(unsupported(&what));
                }
                self.windows.insert(buffer.id, own.clone());
            }
            // A window on the whole tile is there for tile calls; direct accesses are refused in `redirect`.
            Some(_) => {}
            None if local => {
                let what = format!("`.local` of `{}`, which is not spread over threads", source.name);
                return Err(unsupported(&what));
            }
            None => {
                let plain = buffer.derive(|b| b.layout = None);
                self.windows.insert(buffer.id, plain);
            }
        }
        Ok(())
    }

    /// The statements of a call; `None` where calls are only explained.
    fn call(&mut self, call: &TileCall) -> Result<Option<Emitted>, LowerError> {
        let block = self.block(call)?;
        let active = ActiveSet::all(block.n_threads());
        let registers = |b: &Buffer| self.registers.get(&b.data).cloned();
        let seen = Call::of(call, self.target, &block, &active, &self.barriers, &registers)?;
        let rows = match &call.op {
            TileOp::Copy => {
                let facts = CopyFacts { call: seen };
                if !self.only_explain {
                    return Ok(Some(coulis_tile::dispatch::<CopyOp>(call, &facts)?.1));
                }
                coulis_tile::explain_call::<CopyOp>(call, &facts)?
            }
            TileOp::Reduce { .. } | TileOp::ReduceBy { .. } => {
                let facts = Facts::of(call, seen)?;
                if !self.only_explain {
                    return Ok(Some(coulis_tile::dispatch::<ReduceOp>(call, &facts)?.1));
                }
                coulis_tile::explain_call::<ReduceOp>(call, &facts)?
            }
        };
        self.explained.push((call.clone(), rows));
        Ok(None)
    }

    /// The threads around a call, all of which reach it.
    fn block(&self, call: &TileCall) -> Result<Block, LowerError> {
        let is_shared = match call.scope {
            ExecScope::Thread => false,
            ExecScope::Warp | ExecScope::Warpgroup | ExecScope::Cta | ExecScope::Cluster => true,
        };
        if is_shared && let Some(cond) = self.divergent.iter().find(|e| self.differs(e)) {
            let cond = coulis_ir::print::print_expr(cond);
            return Err(LowerError::DivergentCall { scope: call.scope.name(), cond });
        }
        for (tag, extent) in &self.region {
            let around = self.launches.iter().any(|(own, ..)| own == tag);
            if is_shared && !around && !extent.is_int(1) {
                return Err(LowerError::CallOutsideLaunch { scope: call.scope.name(), tag: tag.name() });
            }
        }
        let mut indices = Vec::new();
        for (tag, var, extent) in &self.launches {
            if !is_thread(*tag) {
                continue;
            }
            let constant = extent.as_int().and_then(|n| u32::try_from(n).ok()).filter(|n| *n >= 1);
            let Some(extent) = constant else {
                let extent = coulis_ir::print::print_expr(extent);
                return Err(LowerError::ThreadExtent { tag: tag.name(), extent });
            };
            if !indices.iter().any(|index: &ThreadIndex| index.tag == *tag) {
                indices.push(ThreadIndex { tag: *tag, var: var.clone(), extent });
            }
        }
        Ok(Block::new(indices))
    }

    /// Whether the value may differ between the threads of a block.
    fn differs(&self, expr: &Expr) -> bool {
        let mut differs = false;
        for_each_expr(expr, &mut |e| {
            let is_index = |v: &Var| self.launches.iter().any(|(tag, own, _)| own == v && is_thread(*tag));
            differs |= e.as_var().is_some_and(is_index) || matches!(e.node(), Node::Load(..));
        });
        differs
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

    /// The statement with accesses to windows going to the memory behind them.
    fn redirect(&self, body: Stmt) -> Result<Stmt, LowerError> {
        let body = rewrite_stmt(body, &mut |e| self.expr(e), &mut |stmt| match stmt {
            Stmt::Store { buffer, indices, value } => {
                Stmt::Store { buffer: self.behind(&buffer), indices, value }
            }
            Stmt::Atom(mut call) => {
                for element in call.dst.iter_mut().chain(&mut call.memory) {
                    element.buffer = self.behind(&element.buffer);
                }
                Stmt::Atom(call)
            }
            other => other,
        });
        let own = |b: &Buffer| self.registers.get(&b.data).is_some_and(|own| own != b);
        let direct = coulis_ir::visit::buffers_of(&body).into_iter().find(own);
        match direct {
            Some(buffer) => Err(LowerError::DirectAccess { buffer: buffer.name.clone() }),
            None => Ok(body),
        }
    }

    fn behind(&self, buffer: &Buffer) -> Buffer {
        self.windows.get(&buffer.id).unwrap_or(buffer).clone()
    }

    fn expr(&self, expr: &Expr) -> Expr {
        let new = map_children(expr, &mut |child| self.expr(child));
        match new.node() {
            Node::Load(buffer, indices) => Expr::load(self.behind(buffer), indices.clone()),
            _ => new,
        }
    }
}

fn unsupported(what: &str) -> LowerError {
    LowerError::Tile(TileError::Unsupported { what: what.to_owned() })
}

fn remark(key: &str, body: Stmt) -> Stmt {
    Stmt::Annotate { node: None, key: key.to_owned(), value: Attr::Bool(true), body: Box::new(body) }
}

/// Whether the tag counts threads of a block.
pub fn is_thread(tag: ThreadTag) -> bool {
    match tag {
        ThreadTag::ThreadX | ThreadTag::ThreadY | ThreadTag::ThreadZ => true,
        ThreadTag::BlockX | ThreadTag::BlockY | ThreadTag::BlockZ | ThreadTag::VThread => false,
    }
}

/// The launches of threads in a region, its outermost launch included.
fn launches_of(tag: ThreadTag, extent: &Expr, body: &Stmt) -> Vec<(ThreadTag, Expr)> {
    let mut found = vec![(tag, extent.clone())];
    for_each_stmt(body, &mut |stmt| {
        if let Stmt::LaunchThread { tag, extent, .. } = stmt {
            found.push((*tag, extent.clone()));
        }
    });
    found.retain(|(tag, _)| is_thread(*tag));
    found
}
