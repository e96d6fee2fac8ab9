//! Bytecode: what one warp executes, all lanes of it at a time.

use coulis_ir::{DType, Expr, SyncKind};

use crate::lanes::{F1, F2, F3};

/// Where an operand lies: a register, a constant, or an element of local memory at a constant index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand(u32);

/// An operand, taken apart.
pub(crate) enum Source {
    Register(usize),
    Constant(usize),
    Slot(usize),
}

impl Operand {
    pub(crate) fn register(n: u32) -> Operand {
        Operand(n)
    }

    pub(crate) fn constant(n: u32) -> Operand {
        Operand(n | 1 << 30)
    }

    pub(crate) fn slot(n: u32) -> Operand {
        Operand(n | 2 << 30)
    }

    #[inline(always)]
    pub(crate) fn source(self) -> Source {
        let n = (self.0 & ((1 << 30) - 1)) as usize;
        match self.0 >> 30 {
            0 => Source::Register(n),
            1 => Source::Constant(n),
            _ => Source::Slot(n),
        }
    }
}

/// A run of operands in [`Code::operands`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// What an atomic update does to memory.
pub(crate) enum Update<const W: usize> {
    /// Old value and argument to new value.
    Fold(F2<W>),
    Exchange,
    CompareSwap,
}

/// One instruction. `d` is the first register of a result.
pub(crate) enum Instr<const W: usize> {
    /// A statement begins: it is what violations name, and is counted.
    Stmt(u32),
    /// To all lanes.
    Copy {
        d: u32,
        a: Operand,
    },
    /// To the active lanes.
    Merge {
        d: u32,
        a: Operand,
    },
    /// Where nothing decides `by`, nothing decides what it chose.
    Taint {
        d: u32,
        by: Operand,
    },
    Map1 {
        f: F1<W>,
        d: u32,
        a: Operand,
    },
    Map2 {
        f: F2<W>,
        d: u32,
        a: Operand,
        b: Operand,
    },
    Map3 {
        f: F3<W>,
        d: u32,
        a: Operand,
        b: Operand,
        c: Operand,
    },
    Select {
        d: u32,
        cond: Operand,
        a: Operand,
        b: Operand,
    },
    /// An integer divisor.
    Divisor {
        b: Operand,
    },
    /// An element of local memory is about to be read; what is not taken need not be written.
    Written {
        array: u32,
        slot: u32,
        taken: Operand,
    },
    /// As [`Instr::Written`], at an index.
    LoadLocal {
        d: u32,
        array: u32,
        at: Operand,
        taken: Operand,
    },
    StoreSlot {
        slot: u32,
        a: Operand,
    },
    StoreLocal {
        array: u32,
        at: Operand,
        a: Operand,
    },
    /// Local memory comes into scope: nothing in it is written.
    Forget {
        array: u32,
    },
    /// `taken` has an operand for each of `at`: what is not taken need not be written.
    Load {
        d: u32,
        region: u32,
        at: Span,
        taken: Span,
    },
    Store {
        region: u32,
        at: Span,
        from: Span,
    },
    /// Where no active lane has the condition, on to `otherwise`; `end` is after both branches. A condition that nothing
    /// decides is a violation, unless all that follows from it is a value.
    If {
        cond: Operand,
        reports: bool,
        otherwise: u32,
        end: u32,
    },
    /// The end of a branch: on to the other one if lanes wait there, else to `end` with all of them.
    EndBranch {
        end: u32,
    },
    /// Lanes from here on are those of a loop.
    EnterLoop {
        i: u32,
        min: Operand,
    },
    /// Lanes at the end of their loop leave; where none is left, on to `exit`.
    TestLoop {
        i: u32,
        end: Operand,
        exit: u32,
        stmt: u32,
    },
    NextLoop {
        i: u32,
        top: u32,
    },
    Sync(SyncKind),
    Shuffle {
        shift: Shift,
        d: u32,
        mask: Operand,
        value: Operand,
        lane: Operand,
        width: Operand,
        size: Operand,
        active: bool,
    },
    Vote {
        vote: Vote,
        d: u32,
        mask: Operand,
        pred: Operand,
        active: bool,
    },
    Redux {
        fold: F2<W>,
        d: u32,
        mask: Operand,
        value: Operand,
        active: bool,
    },
    ActiveMask {
        d: u32,
    },
    Atomic {
        update: Update<W>,
        d: u32,
        region: u32,
        at: Operand,
        a: Operand,
        b: Operand,
    },
    /// An element of the shared memory of a block of the cluster.
    ClusterLoad {
        d: u32,
        region: u32,
        at: Operand,
        block: Operand,
    },
    Fence,
    End,
}

/// Which lane a shuffle takes the value of, from the number that comes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shift {
    /// So many lanes further on.
    Down,
    /// So many lanes back.
    Up,
    /// The lane whose number differs in these bits.
    Xor,
    /// The lane of that number.
    To,
}

/// What a vote gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    /// Whether any named lane holds.
    Any,
    /// Whether all of them do.
    All,
    /// The bits of those that do.
    Ballot,
}

/// Memory of each thread.
#[derive(Clone, Debug)]
pub(crate) struct LocalArray {
    pub(crate) name: String,
    pub(crate) first: u32,
    pub(crate) len: u32,
}

/// What each thread of a launch executes.
pub(crate) struct Code<const W: usize> {
    pub(crate) instrs: Vec<Instr<W>>,
    pub(crate) operands: Vec<Operand>,
    pub(crate) constants: Vec<[u64; W]>,
    pub(crate) arrays: Vec<LocalArray>,
    pub(crate) n_registers: u32,
    pub(crate) n_slots: u32,
    /// Registers of `threadIdx` and `blockIdx`, x first, where the body has them.
    pub(crate) thread_registers: [Option<u32>; 3],
    pub(crate) block_registers: [Option<u32>; 3],
    /// Registers of the place in the cluster, x first, where the body has them.
    pub(crate) cluster_registers: [Option<u32>; 3],
}

impl<const W: usize> Code<W> {
    /// Whether it has no fences, and no barriers but those of the block and of a warp.
    pub(crate) fn has_block_barriers_only(&self) -> bool {
        self.instrs.iter().all(|instr| match instr {
            Instr::Fence
            | Instr::ClusterLoad { .. }
            | Instr::Sync(SyncKind::Warpgroup(_) | SyncKind::Named { .. } | SyncKind::Cluster) => false,
            Instr::Sync(SyncKind::Cta | SyncKind::Warp) => true,
            _ => true,
        })
    }
}

/// What memory is.
#[derive(Clone, Debug)]
pub(crate) enum RegionKind {
    /// Of a parameter; its number among all arguments, extents and strides.
    Argument { n: usize, shape: Vec<i64>, strides: Vec<i64> },
    /// Global memory of the kernel, zero at the start, and at the end, where said.
    Temporary { zeroed: bool, left_zero: bool },
    /// Of each block.
    Shared {
        /// Whether the launch asks for it, rather than the kernel's text.
        at_launch: bool,
    },
}

/// Memory that several threads see.
#[derive(Clone, Debug)]
pub(crate) struct RegionInfo {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) kind: RegionKind,
    /// Elements from the first to past the last, and how many of them lie before element `[0, ..., 0]`.
    pub(crate) len: usize,
    pub(crate) before: i64,
    /// How many there are side by side: one a block of a cluster.
    pub(crate) copies: usize,
    /// Whether the kernel stores to it.
    pub(crate) is_written: bool,
}

impl RegionInfo {
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.kind, RegionKind::Shared { .. })
    }
}

/// A launch with known extents.
pub(crate) struct LaunchCode<const W: usize> {
    pub(crate) grid: [u32; 3],
    pub(crate) cluster: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) code: Code<W>,
}

/// A compiled kernel for one set of arguments.
pub(crate) struct Plan<'k, const W: usize> {
    pub(crate) regions: Vec<RegionInfo>,
    pub(crate) launches: Vec<LaunchCode<W>>,
    /// Statements by number.
    pub(crate) stmts: Vec<&'k coulis_ir::Stmt>,
}

/// Whether evaluating the node itself, apart from its operands, can neither read memory nor fail.
pub(crate) fn is_harmless(expr: &Expr) -> bool {
    use coulis_ir::Node;
    match expr.node() {
        Node::Int(_) | Node::Float(_) | Node::Var(_) => true,
        Node::Binary(op, a, b) => {
            !op.is_division() || a.dtype().is_float() || b.as_int().is_some_and(|n| n != 0)
        }
        Node::Not(_)
        | Node::Cast(_)
        | Node::Select(..)
        | Node::Call(..)
        | Node::Ramp(..)
        | Node::Broadcast(_) => true,
        Node::IfThenElse(..) | Node::Load(..) | Node::Let(..) => false,
    }
}
