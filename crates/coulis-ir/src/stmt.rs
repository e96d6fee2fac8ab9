//! Statements: the owned, small tree that carries all effects.

use crate::atom::AtomCall;
use crate::buffer::Buffer;
use crate::expr::{Expr, Var};
use crate::kernel::Attr;
use crate::reducer::Reducer;
use crate::remark::ROLLED;

/// How a loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopKind {
    /// One iteration after another.
    Serial,
    /// Iterations spread over CPU threads in contiguous, static parts.
    Parallel,
    /// Expanded in text.
    Unrolled,
    /// One vector operation; lowered to ramps and broadcasts.
    Vectorized,
}

impl LoopKind {
    /// The name after `T.` in text (`range` for serial loops).
    pub const fn name(self) -> &'static str {
        match self {
            LoopKind::Serial => "serial",
            LoopKind::Parallel => "parallel",
            LoopKind::Unrolled => "unroll",
            LoopKind::Vectorized => "vectorized",
        }
    }
}

/// Threads of a block, at most, on every GPU; a target may have fewer. Source: as of [`ThreadTag::max_extent`].
pub const MAX_BLOCK_THREADS: i64 = 1024;

/// Blocks of a cluster, at most, on every GPU; a target has fewer, as [`crate::target::Target::cluster_blocks`] says. Source:
/// CUDA C++ Programming Guide, thread block clusters: 8 are portable, and 16 what a part may allow.
pub const MAX_CLUSTER_BLOCKS: i64 = 16;

/// A hardware index that a loop is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ThreadTag {
    /// `blockIdx.x`
    BlockX,
    /// `blockIdx.y`
    BlockY,
    /// `blockIdx.z`
    BlockZ,
    /// `clusterCtaIdx.x`: the block's place in its cluster, `blockIdx.x % extent`.
    ClusterX,
    /// `clusterCtaIdx.y`: as along x.
    ClusterY,
    /// `clusterCtaIdx.z`: as along x.
    ClusterZ,
    /// `threadIdx.x`
    ThreadX,
    /// `threadIdx.y`
    ThreadY,
    /// `threadIdx.z`
    ThreadZ,
    /// `vthread`: a virtual thread, expanded into the body.
    VThread,
}

impl ThreadTag {
    /// Every tag.
    pub const ALL: [ThreadTag; 10] = [
        ThreadTag::BlockX,
        ThreadTag::BlockY,
        ThreadTag::BlockZ,
        ThreadTag::ClusterX,
        ThreadTag::ClusterY,
        ThreadTag::ClusterZ,
        ThreadTag::ThreadX,
        ThreadTag::ThreadY,
        ThreadTag::ThreadZ,
        ThreadTag::VThread,
    ];

    /// The largest extent of the index, on every GPU; `None` for those of clusters, whose size is the
    /// target's, and for virtual threads. Source: CUDA C++ Programming Guide, technical specifications per
    /// compute capability.
    pub fn max_extent(self) -> Option<i64> {
        match self {
            ThreadTag::BlockX => Some((1 << 31) - 1),
            ThreadTag::BlockY | ThreadTag::BlockZ => Some(65_535),
            ThreadTag::ThreadX | ThreadTag::ThreadY => Some(MAX_BLOCK_THREADS),
            ThreadTag::ThreadZ => Some(64),
            ThreadTag::ClusterX | ThreadTag::ClusterY | ThreadTag::ClusterZ | ThreadTag::VThread => None,
        }
    }

    /// The name in text.
    pub const fn name(self) -> &'static str {
        match self {
            ThreadTag::BlockX => "blockIdx.x",
            ThreadTag::BlockY => "blockIdx.y",
            ThreadTag::BlockZ => "blockIdx.z",
            ThreadTag::ClusterX => "clusterCtaIdx.x",
            ThreadTag::ClusterY => "clusterCtaIdx.y",
            ThreadTag::ClusterZ => "clusterCtaIdx.z",
            ThreadTag::ThreadX => "threadIdx.x",
            ThreadTag::ThreadY => "threadIdx.y",
            ThreadTag::ThreadZ => "threadIdx.z",
            ThreadTag::VThread => "vthread",
        }
    }

    /// Whether it counts the threads of a block.
    pub const fn is_thread(self) -> bool {
        match self {
            ThreadTag::ThreadX | ThreadTag::ThreadY | ThreadTag::ThreadZ => true,
            ThreadTag::BlockX
            | ThreadTag::BlockY
            | ThreadTag::BlockZ
            | ThreadTag::ClusterX
            | ThreadTag::ClusterY
            | ThreadTag::ClusterZ
            | ThreadTag::VThread => false,
        }
    }

    /// Whether it counts the blocks of a cluster.
    pub const fn is_of_cluster(self) -> bool {
        matches!(self, ThreadTag::ClusterX | ThreadTag::ClusterY | ThreadTag::ClusterZ)
    }

    /// Whether it counts blocks: of the grid, or of a cluster.
    pub const fn is_of_grid(self) -> bool {
        matches!(self, ThreadTag::BlockX | ThreadTag::BlockY | ThreadTag::BlockZ) || self.is_of_cluster()
    }

    /// The index of blocks whose place in a cluster it counts.
    pub const fn grid_tag(self) -> Option<ThreadTag> {
        match self {
            ThreadTag::ClusterX => Some(ThreadTag::BlockX),
            ThreadTag::ClusterY => Some(ThreadTag::BlockY),
            ThreadTag::ClusterZ => Some(ThreadTag::BlockZ),
            ThreadTag::BlockX
            | ThreadTag::BlockY
            | ThreadTag::BlockZ
            | ThreadTag::ThreadX
            | ThreadTag::ThreadY
            | ThreadTag::ThreadZ
            | ThreadTag::VThread => None,
        }
    }
}

/// The threads that execute one call together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExecScope {
    /// One thread alone.
    Thread,
    /// The lanes of one warp.
    Warp,
    /// Four warps.
    Warpgroup,
    /// All threads of a block.
    Cta,
    /// A cluster of blocks.
    Cluster,
}

impl ExecScope {
    /// The prefix in text: `Tx.warp.sum`; empty for one thread.
    pub const fn name(self) -> &'static str {
        match self {
            ExecScope::Thread => "thread",
            ExecScope::Warp => "warp",
            ExecScope::Warpgroup => "warpgroup",
            ExecScope::Cta => "cta",
            ExecScope::Cluster => "cluster",
        }
    }
}

/// A call that declares an index of the thread hierarchy in a tile program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScopeId {
    /// `T.cta_id([...])`: block of the grid, up to three extents.
    Cta,
    /// `T.cluster_id([...])`: cluster of the grid, up to three extents.
    Cluster,
    /// `T.cta_id_in_cluster([...])`: block of the cluster, up to three extents.
    CtaInCluster,
    /// `T.thread_id([...])`: thread of the block, up to three extents.
    Thread,
    /// `T.warp_id([...])`: warp of the block.
    Warp,
    /// `T.warpgroup_id([...])`: warpgroup of the block.
    Warpgroup,
    /// `T.warp_id_in_wg([...])`: warp of the warpgroup.
    WarpInWarpgroup,
    /// `T.lane_id([...])`: lane of the warp.
    Lane,
    /// `T.thread_id_in_wg([...])`: thread of the warpgroup.
    ThreadInWarpgroup,
}

impl ScopeId {
    /// Every scope id.
    pub const ALL: [ScopeId; 9] = [
        ScopeId::Cta,
        ScopeId::Cluster,
        ScopeId::CtaInCluster,
        ScopeId::Thread,
        ScopeId::Warp,
        ScopeId::Warpgroup,
        ScopeId::WarpInWarpgroup,
        ScopeId::Lane,
        ScopeId::ThreadInWarpgroup,
    ];

    /// The name after `T.` in text.
    pub const fn name(self) -> &'static str {
        match self {
            ScopeId::Cta => "cta_id",
            ScopeId::Cluster => "cluster_id",
            ScopeId::CtaInCluster => "cta_id_in_cluster",
            ScopeId::Thread => "thread_id",
            ScopeId::Warp => "warp_id",
            ScopeId::Warpgroup => "warpgroup_id",
            ScopeId::WarpInWarpgroup => "warp_id_in_wg",
            ScopeId::Lane => "lane_id",
            ScopeId::ThreadInWarpgroup => "thread_id_in_wg",
        }
    }
}

/// A barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncKind {
    /// All threads of all blocks of the cluster (`T.cuda.cluster_sync()`); what one wrote before it, in shared or global
    /// memory, the others see after it.
    Cluster,
    /// All threads of the block (`T.cuda.cta_sync()`).
    Cta,
    /// The lanes of the warp (`T.cuda.warp_sync()`).
    Warp,
    /// The threads of a warpgroup, by named barrier 1 to 15 (`T.cuda.warpgroup_sync(id)`). Another warpgroup
    /// needs another one.
    Warpgroup(u32),
    /// Whole warps of the block, `threads` threads in all, by named barrier (`T.cuda.named_barrier_sync(id, threads)`).
    Named {
        /// Barrier, 1 to 15.
        id: u32,
        /// Threads that it waits for, a multiple of the warp's lanes.
        threads: u32,
    },
}

impl SyncKind {
    /// Whether all threads of the block pass it together.
    pub const fn is_of_block(self) -> bool {
        match self {
            SyncKind::Cluster | SyncKind::Cta => true,
            SyncKind::Warp | SyncKind::Warpgroup(_) | SyncKind::Named { .. } => false,
        }
    }
}

/// A rectangular part of a buffer, of the buffer's rank. An index is an extent of 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// The buffer.
    pub buffer: Buffer,
    /// `(min, extent)` a dimension.
    pub ranges: Vec<(Expr, Expr)>,
}

impl Region {
    /// The whole buffer.
    pub fn whole(buffer: &Buffer) -> Region {
        let ranges = buffer.shape.iter().map(|extent| (Expr::int(0), extent.clone())).collect();
        Region { buffer: buffer.clone(), ranges }
    }
}

/// What a tile call does.
#[derive(Clone, Debug, PartialEq)]
pub enum TileOp {
    /// Element-wise copy of the source to the destination.
    Copy,
    /// A reduction by a reducer of the catalogue, named as in text (`sum`, `logsumexp`).
    Reduce {
        /// Catalogue name.
        name: String,
        /// Reduced axes of the source; negative ones count from the end.
        axes: Vec<i64>,
        /// Whether the destination's old value takes part.
        accum: bool,
    },
    /// A reduction by the program's own reducer.
    ReduceBy {
        /// The reducer.
        reducer: Box<Reducer>,
        /// Reduced axes of the source; negative ones count from the end.
        axes: Vec<i64>,
        /// Whether the destination's old value takes part.
        accum: bool,
    },
}

/// Where a text has a statement. No part of what the statement is: all sites are equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Site {
    /// Line and column in characters, both from 1; none where no text has it.
    pub place: Option<(u32, u32)>,
}

impl PartialEq for Site {
    fn eq(&self, _: &Site) -> bool {
        true
    }
}

impl std::fmt::Display for Site {
    /// `line 3, column 5: `, as errors of reading begin; empty where no text has it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.place {
            Some((line, column)) => write!(f, "line {line}, column {column}: "),
            None => Ok(()),
        }
    }
}

/// A call that the threads of a scope execute together; dispatch replaces it by a variant's statements.
#[derive(Clone, Debug, PartialEq)]
pub struct TileCall {
    /// What it does.
    pub op: TileOp,
    /// Who does it.
    pub scope: ExecScope,
    /// Destinations.
    pub dsts: Vec<Region>,
    /// Sources.
    pub srcs: Vec<Region>,
    /// `dispatch="name"`: the variant that must be taken.
    pub dispatch: Option<String>,
    /// Further options, by name: `ftz`, `thread_reduce`.
    pub options: Vec<(String, Attr)>,
    /// Where its text has it.
    pub site: Site,
}

/// How a buffer stands in a statement; see [`Stmt::each_buffer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is visible from here on.
    Declared,
    /// Another one is declared to be a window on its memory.
    Viewed,
    /// It may be written, and read as well.
    Written,
    /// It is read, or a hint is about it.
    Read,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// One after another; empty does nothing.
    Seq(Vec<Stmt>),
    /// `for var in [min, min + extent)`.
    For {
        /// Index, visible in the body.
        var: Var,
        /// First value.
        min: Expr,
        /// Number of iterations; at most 0 means none.
        extent: Expr,
        /// How it runs.
        kind: LoopKind,
        /// Body.
        body: Box<Stmt>,
    },
    /// Takes one of two branches.
    If {
        /// Scalar bool.
        cond: Expr,
        /// Executed when it holds.
        then: Box<Stmt>,
        /// Executed when it does not.
        otherwise: Option<Box<Stmt>>,
    },
    /// Writes one element, or one vector where the index or the value is one.
    Store {
        /// Destination.
        buffer: Buffer,
        /// One index a dimension; one in all in Flat form.
        indices: Vec<Expr>,
        /// Value, of the buffer's element type.
        value: Expr,
    },
    /// Binds a name to a value in the rest of the body.
    Let {
        /// The name.
        var: Var,
        /// The value.
        value: Expr,
        /// Where it is visible.
        body: Box<Stmt>,
    },
    /// Memory that lives while the body runs. Its contents start unwritten.
    Allocate {
        /// The buffer; compact, its shape the extents.
        buffer: Buffer,
        /// Where it is visible.
        body: Box<Stmt>,
    },
    /// A remark on the body that passes read: `pragma_auto_unroll_max_step`, say.
    Annotate {
        /// The axis or name it is about, if any.
        node: Option<Var>,
        /// Key.
        key: String,
        /// Value.
        value: Attr,
        /// The statement it is about.
        body: Box<Stmt>,
    },
    /// Runs the body once for each value of a hardware index.
    LaunchThread {
        /// Which index.
        tag: ThreadTag,
        /// Its variable.
        var: Var,
        /// Number of values.
        extent: Expr,
        /// Body.
        body: Box<Stmt>,
    },
    /// Everything after this in the function runs on the device (tile programs).
    DeviceEntry,
    /// Declares indices of the thread hierarchy (tile programs); visible to the end of the function.
    ScopeIds {
        /// Which.
        id: ScopeId,
        /// One variable an extent; empty when the program drops them.
        vars: Vec<Var>,
        /// Extents; empty when they are to be inferred.
        extents: Vec<Expr>,
    },
    /// `T.alloc_buffer`: memory visible to the end of the enclosing block (tile programs).
    AllocBuffer(Buffer),
    /// A second window on the memory of another buffer (`buf.view`, `buf.local`), visible to the end of the block.
    View {
        /// The window; its `data` is the source's.
        buffer: Buffer,
        /// The buffer it looks at.
        source: Buffer,
        /// Whether it is the calling thread's own registers (`.local`).
        local: bool,
    },
    /// A cooperative call, before dispatch.
    Tile(Box<TileCall>),
    /// An instruction that works across threads or on memory that they share.
    Atom(Box<AtomCall>),
    /// A barrier.
    Sync(SyncKind),
}

impl Stmt {
    /// The statement that does nothing.
    pub const NOP: Stmt = Stmt::Seq(Vec::new());

    /// One after another, with nested sequences flattened; a single statement stands alone.
    pub fn seq(stmts: impl IntoIterator<Item = Stmt>) -> Stmt {
        let mut all: Vec<Stmt> = stmts.into_iter().collect();
        if all.iter().any(|stmt| matches!(stmt, Stmt::Seq(_))) {
            let length = |stmt: &Stmt| if let Stmt::Seq(inner) = stmt { inner.len() } else { 1 };
            let mut flat = Vec::with_capacity(all.iter().map(length).sum());
            for stmt in all {
                match stmt {
                    Stmt::Seq(inner) => flat.extend(inner),
                    other => flat.push(other),
                }
            }
            all = flat;
        }
        if all.len() == 1 { all.remove(0) } else { Stmt::Seq(all) }
    }

    /// Calls `f` with each buffer that stands in the statement itself, and with how. Those that its expressions load are not
    /// among them, nor is what stands in statements below it.
    pub fn each_buffer<'s>(&'s self, f: &mut impl FnMut(&'s Buffer, Role)) {
        match self {
            Stmt::Store { buffer, .. } => f(buffer, Role::Written),
            Stmt::Allocate { buffer, .. } | Stmt::AllocBuffer(buffer) => f(buffer, Role::Declared),
            Stmt::View { buffer, source, local: _ } => {
                f(buffer, Role::Declared);
                f(source, Role::Viewed);
            }
            Stmt::Tile(call) => {
                call.dsts.iter().for_each(|region| f(&region.buffer, Role::Written));
                call.srcs.iter().for_each(|region| f(&region.buffer, Role::Read));
            }
            Stmt::Atom(call) => {
                call.dst.iter().for_each(|element| f(&element.buffer, Role::Written));
                let role = if call.writes_memory() { Role::Written } else { Role::Read };
                call.memory.iter().for_each(|element| f(&element.buffer, role));
            }
            Stmt::Seq(_)
            | Stmt::For { .. }
            | Stmt::If { .. }
            | Stmt::Let { .. }
            | Stmt::Annotate { .. }
            | Stmt::LaunchThread { .. }
            | Stmt::DeviceEntry
            | Stmt::ScopeIds { .. }
            | Stmt::Sync(_) => {}
        }
    }

    /// The variables that the statement binds, a buffer's pointer apart.
    pub fn bound_vars(&self) -> &[Var] {
        match self {
            Stmt::For { var, .. } | Stmt::Let { var, .. } | Stmt::LaunchThread { var, .. } => {
                std::slice::from_ref(var)
            }
            Stmt::ScopeIds { vars, .. } => vars,
            Stmt::Seq(_)
            | Stmt::If { .. }
            | Stmt::Store { .. }
            | Stmt::Allocate { .. }
            | Stmt::Annotate { .. }
            | Stmt::DeviceEntry
            | Stmt::AllocBuffer(_)
            | Stmt::View { .. }
            | Stmt::Tile(_)
            | Stmt::Atom(_)
            | Stmt::Sync(_) => &[],
        }
    }

    /// The statements of a sequence, nested ones flattened; another statement stands alone.
    pub fn in_sequence(&self) -> Vec<&Stmt> {
        match self {
            Stmt::Seq(stmts) => stmts.iter().flat_map(Stmt::in_sequence).collect(),
            other => vec![other],
        }
    }

    /// Whether it does nothing.
    pub fn is_nop(&self) -> bool {
        matches!(self, Stmt::Seq(stmts) if stmts.iter().all(Stmt::is_nop))
    }

    /// A loop.
    pub fn for_(var: Var, min: Expr, extent: Expr, kind: LoopKind, body: Stmt) -> Stmt {
        Stmt::For { var, min, extent, kind, body: Box::new(body) }
    }

    /// A serial loop from 0.
    pub fn range(var: Var, extent: Expr, body: Stmt) -> Stmt {
        let zero = Expr::int_of(0, var.dtype());
        Stmt::for_(var, zero, extent, LoopKind::Serial, body)
    }

    /// A serial loop from 0 that stays a loop, see [`ROLLED`].
    pub fn rolled(var: Var, extent: Expr, body: Stmt) -> Stmt {
        let (key, value) = (ROLLED.to_owned(), Attr::Bool(true));
        Stmt::Annotate { node: None, key, value, body: Box::new(Stmt::range(var, extent, body)) }
    }

    /// A branch without an else.
    pub fn if_(cond: Expr, then: Stmt) -> Stmt {
        Stmt::If { cond, then: Box::new(then), otherwise: None }
    }

    /// A store.
    pub fn store(buffer: &Buffer, indices: impl Into<Vec<Expr>>, value: Expr) -> Stmt {
        Stmt::Store { buffer: buffer.clone(), indices: indices.into(), value }
    }

    /// A binding.
    pub fn let_(var: Var, value: Expr, body: Stmt) -> Stmt {
        Stmt::Let { var, value, body: Box::new(body) }
    }

    /// An allocation.
    pub fn allocate(buffer: Buffer, body: Stmt) -> Stmt {
        Stmt::Allocate { buffer, body: Box::new(body) }
    }
}
