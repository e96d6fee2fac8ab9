//! A tile call as every variant sees it: machine, scope, threads, operands, options.

use coulis_ir::simplify::Analyzer;
use coulis_ir::stmt::Region;
use coulis_ir::{
    Attr, Buffer, Element, ExecScope, Expr, MemScope, Stmt, SyncKind, Target, ThreadTag, TileCall,
};

use crate::active::ActiveSet;
use crate::barriers::NamedBarriers;
use crate::block::{Block, constant};
use crate::error::TileError;
use crate::facts::is_row_major;

/// One operand of a call.
#[derive(Clone, Debug)]
pub struct Operand {
    /// The part of a buffer that the call names.
    pub region: Region,
    /// The calling thread's own memory of a buffer that is spread over threads: one-dimensional, in physical order. The
    /// buffer itself where it is not spread.
    pub register: Buffer,
    /// Whether the buffer's layout spreads it over threads.
    pub is_spread: bool,
    /// Whether blocks of a cluster may name different parts of the buffer.
    pub differs_in_cluster: bool,
}

/// The blocks of the cluster that a call is in.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The blocks, numbered as threads of a block are: x fastest.
    pub blocks: Block,
    /// Why not all of them may reach the call, where that is so.
    pub absent: Option<String>,
}

impl Operand {
    /// The buffer as the call names it.
    pub fn tile(&self) -> &Buffer {
        &self.region.buffer
    }

    /// Where the buffer lives.
    pub fn scope(&self) -> MemScope {
        self.region.buffer.scope
    }

    /// Whether it lives in shared memory, of either kind.
    pub fn is_shared(&self) -> bool {
        matches!(self.scope(), MemScope::Shared | MemScope::SharedDyn)
    }

    /// The region's extents, where all are constants.
    pub fn extents(&self) -> Option<Vec<i64>> {
        let extent = |(_, extent): &(Expr, Expr)| extent.as_int().and_then(|n| i64::try_from(n).ok());
        self.region.ranges.iter().map(extent).collect()
    }

    /// Elements of the region, where its extents are constants.
    pub fn size(&self) -> Option<i64> {
        self.extents()?.iter().try_fold(1i64, |n, extent| n.checked_mul(*extent))
    }

    /// Whether the region is the whole buffer.
    pub fn is_whole(&self) -> bool {
        self.region == Region::whole(&self.region.buffer)
    }

    /// Whether the rows of the region lie one element after another and begin at multiples of `lanes` elements, so that
    /// as many are one vector.
    pub fn is_aligned(&self, lanes: i64) -> bool {
        let tile = self.tile();
        let multiple = |expr: &Expr| {
            let rest = expr.clone().floormod(Expr::int_of(i128::from(lanes), expr.dtype()));
            Analyzer::new().can_prove(&rest.equal(Expr::int_of(0, expr.dtype())))
        };
        let (Some((first, extent)), Some(whole)) = (self.region.ranges.last(), tile.shape.last()) else {
            return false;
        };
        // Where the last dimension has one element the elements of the next one lie apart.
        let is_contiguous = !extent.is_int(1) || whole.is_int(1);
        tile.strides.is_empty()
            && is_row_major(tile)
            && is_contiguous
            && multiple(first)
            && multiple(whole)
            && multiple(&tile.elem_offset)
            && i64::from(tile.align) % (lanes * tile.dtype.bytes() as i64) == 0
    }

    /// The element at coordinates that count from the region's first element. Only for buffers that are not spread.
    pub fn element(&self, coords: &[Expr]) -> Element {
        let mins = self.region.ranges.iter().map(|(min, _)| min);
        let indices = mins.zip(coords).map(|(min, at)| plus(min, at)).collect();
        Element { buffer: self.region.buffer.clone(), indices }
    }

    /// The value of [`Operand::element`].
    pub fn value(&self, coords: &[Expr]) -> Expr {
        let Element { buffer, indices } = self.element(coords);
        Expr::load(buffer, indices)
    }
}

/// `a + b` without zeros, of the wider of their types.
fn plus(a: &Expr, b: &Expr) -> Expr {
    match (a.is_int(0), b.is_int(0)) {
        (true, _) => b.clone(),
        (false, true) => a.clone(),
        (false, false) => {
            let (a, b) = Expr::promoted(a.clone(), b.clone());
            a + b
        }
    }
}

/// The options of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `ftz=True`: adds may flush subnormal numbers to 0.
    pub ftz: bool,
    /// `thread_reduce=`: whether lanes that share a result fold together, where the call says so.
    pub thread_reduce: Option<bool>,
    /// `lanes=`: the operands are one register a thread, and each `lanes` consecutive threads fold together.
    pub lanes: Option<u32>,
    /// `warps=`: the operands are one register a thread, and all threads of the block, which has as many warps, fold
    /// together.
    pub warps: Option<u32>,
}

impl Options {
    /// The options of a call, typed.
    ///
    /// # Errors
    /// An option that does not exist, or of another type.
    pub fn of(call: &TileCall) -> Result<Options, TileError> {
        let mut options = Options::default();
        for (name, value) in &call.options {
            let wanted = match (name.as_str(), value) {
                ("ftz", Attr::Bool(value)) => {
                    options.ftz = *value;
                    continue;
                }
                ("thread_reduce", Attr::Bool(value)) => {
                    options.thread_reduce = Some(*value);
                    continue;
                }
                ("lanes", Attr::Int(value)) if u32::try_from(*value).is_ok_and(|n| n > 0) => {
                    options.lanes = u32::try_from(*value).ok();
                    continue;
                }
                ("warps", Attr::Int(value)) if u32::try_from(*value).is_ok_and(|n| n > 0) => {
                    options.warps = u32::try_from(*value).ok();
                    continue;
                }
                ("ftz" | "thread_reduce", _) => "`True` or `False`",
                ("lanes" | "warps", _) => "a number of at least 1",
                _ => "one of `ftz`, `thread_reduce`, `lanes`, `warps`",
            };
            return Err(TileError::Option { name: name.clone(), wanted, found: format!("{value:?}") });
        }
        Ok(options)
    }
}

/// A tile call as every variant sees it.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// The machine.
    pub target: &'a Target,
    /// Who executes the call together.
    pub scope: ExecScope,
    /// The threads of the block.
    pub block: &'a Block,
    /// The blocks of the cluster, where the grid has clusters.
    pub cluster: Option<Cluster>,
    /// The threads of the block that reach the call.
    pub active: &'a ActiveSet,
    /// Barriers that the call may take.
    pub barriers: &'a NamedBarriers,
    /// Destinations.
    pub dsts: Vec<Operand>,
    /// Sources.
    pub srcs: Vec<Operand>,
    /// Options.
    pub options: Options,
    /// The index of the blocks that all do this with the same destinations, where nothing tells them apart.
    pub repeated_along: Option<ThreadTag>,
}

/// The threads of the call's scope that reach it together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participants {
    /// Threads of each instance that comes: the scope's size, or less where the block has fewer.
    pub n_threads: u32,
    /// Threads from the first of one instance to the first of the next.
    pub stride: u32,
    /// Numbers of the instances that may come, ascending.
    pub instances: Vec<u32>,
}

impl Participants {
    /// The calling thread's place in its instance, `int32`, 0 to `n_threads - 1`.
    pub fn rank(&self, block: &Block) -> Expr {
        block.digit(self.stride.min(block.n_threads()), 1)
    }

    /// The number of the calling thread's instance in the block, `int32`.
    pub fn number(&self, block: &Block) -> Expr {
        match &self.instances[..] {
            [only] => constant(*only),
            _ => block.digit(block.n_threads().div_ceil(self.stride), self.stride),
        }
    }
}

impl<'a> Call<'a> {
    /// The call as variants see it. `register` gives the calling thread's own memory of a buffer that is spread over
    /// threads.
    ///
    /// # Errors
    /// Where an option does not exist or is of another type.
    pub fn of(
        call: &TileCall,
        target: &'a Target,
        block: &'a Block,
        active: &'a ActiveSet,
        barriers: &'a NamedBarriers,
        register: &dyn Fn(&Buffer) -> Option<Buffer>,
    ) -> Result<Call<'a>, TileError> {
        let operand = |region: &Region| {
            let own = register(&region.buffer);
            let is_spread = own.is_some();
            Operand {
                region: region.clone(),
                register: own.unwrap_or_else(|| region.buffer.clone()),
                is_spread,
                differs_in_cluster: false,
            }
        };
        Ok(Call {
            target,
            scope: call.scope,
            block,
            cluster: None,
            active,
            barriers,
            dsts: call.dsts.iter().map(operand).collect(),
            srcs: call.srcs.iter().map(operand).collect(),
            options: Options::of(call)?,
            repeated_along: None,
        })
    }

    /// Threads of one whole instance of the call's scope; of a cluster, those in one block.
    pub fn scope_threads(&self) -> u32 {
        match self.scope {
            ExecScope::Thread => 1,
            ExecScope::Warp => self.target.warp,
            ExecScope::Warpgroup => 4 * self.target.warp,
            ExecScope::Cta | ExecScope::Cluster => self.block.n_threads(),
        }
    }

    /// The threads of a block that reach the call together, or what was found instead of whole instances of one size.
    pub fn participants(&self) -> Result<Participants, String> {
        if self.scope == ExecScope::Cluster {
            match &self.cluster {
                None => return Err("a grid without clusters".to_owned()),
                Some(cluster) => {
                    if let Some(why) = &cluster.absent {
                        return Err(format!("{} of which come {why}", self.scope_noun()));
                    }
                }
            }
        }
        let (n, stride) = (self.block.n_threads(), self.scope_threads().max(1));
        if let Some(why) = self.active.split_by(|thread| thread / stride) {
            return Err(format!("{} of which come {why}", self.scope_noun()));
        }
        let instances: Vec<u32> =
            (0..n.div_ceil(stride)).filter(|at| self.active.may_come(at * stride)).collect();
        let size = |at: &u32| stride.min(n - at * stride);
        let Some(n_threads) = instances.first().map(size) else {
            return Err(format!("no {} at all", self.scope.name()));
        };
        match instances.iter().map(size).find(|other| *other != n_threads) {
            Some(other) => Err(format!("{}s of {n_threads} and of {other} threads", self.scope.name())),
            None => Ok(Participants { n_threads, stride, instances }),
        }
    }

    fn scope_noun(&self) -> String {
        match self.scope {
            ExecScope::Cta => format!("a cta of {} threads", self.block.n_threads()),
            ExecScope::Cluster => match &self.cluster {
                Some(cluster) => format!("a cluster of {} ctas", cluster.blocks.n_threads()),
                None => "a cluster".to_owned(),
            },
            scope => format!("{}s", scope.name()),
        }
    }

    /// As [`Call::sync`], for those of them that are in one block.
    ///
    /// # Errors
    /// As there.
    pub fn block_sync(&self) -> Result<Stmt, String> {
        match self.scope {
            ExecScope::Cluster if self.block.n_threads() == 1 => Ok(Stmt::NOP),
            ExecScope::Cluster => Ok(Stmt::Sync(SyncKind::Cta)),
            ExecScope::Thread | ExecScope::Warp | ExecScope::Warpgroup | ExecScope::Cta => self.sync(),
        }
    }

    /// The barrier that all threads which reach the call with the calling thread pass: they wait for one another, and
    /// what they wrote to memory is visible to them afterwards.
    ///
    /// # Errors
    /// Where threads of an instance stay away, or barriers are used up; the text says what was found.
    pub fn sync(&self) -> Result<Stmt, String> {
        let together = self.participants()?;
        if self.scope == ExecScope::Cluster {
            return Ok(Stmt::Sync(SyncKind::Cluster));
        }
        if together.n_threads == 1 {
            return Ok(Stmt::NOP);
        }
        if together.n_threads == self.block.n_threads() {
            return Ok(Stmt::Sync(SyncKind::Cta));
        }
        if together.stride <= self.target.warp {
            return Ok(Stmt::Sync(SyncKind::Warp));
        }
        if !together.n_threads.is_multiple_of(self.target.warp) {
            return Err(format!("{} threads, which are not whole warps", together.n_threads));
        }
        let one = |at: u32| {
            let id = self.barriers.of(at * together.stride, together.n_threads);
            let id = id.ok_or("a kernel whose named barriers are all in use")?;
            Ok::<Stmt, String>(Stmt::Sync(SyncKind::Named { id, threads: together.n_threads }))
        };
        let mut instances = together.instances.iter().rev();
        let Some(last) = instances.next() else { return Ok(Stmt::NOP) };
        let number = together.number(self.block);
        instances.try_fold(one(*last)?, |rest, at| {
            let cond = number.clone().equal(constant(*at));
            Ok(Stmt::If { cond, then: Box::new(one(*at)?), otherwise: Some(Box::new(rest)) })
        })
    }
}
